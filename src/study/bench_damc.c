/* "bench damc": the loops of an iteration of DAMC, one at a time. */
#include "bench_run.h"
#include "lebm/damc.h"

static const n2ce_option damc_options[] = {
    {"loop", 0, N2CE_OPTION_WORD, "draw", 0, 0, "draw|move|sampler|step", "LOOP",
     "draw: a step of the slow sampler for ten batches (100 in ten iterations); move: one of "
     "Langevin dynamics (30); "
     "sampler: of training the sampler (6); step: of training decoder and prior (1)"},
    {"width", 0, N2CE_OPTION_COUNT, "32", 4, 256, NULL, "W",
     "width of networks: a decoder's layers have 8, 4 and 2 times as many channels"},
    {"batch", 0, N2CE_OPTION_COUNT, "128", 1, 1e5, NULL, "N", "rows a step: pictures"},
    N2_BENCH_SECONDS_OPTION("2"),
    N2_BENCH_OPTIONS,
    {0},
};

static n2_build_step *chosen_loop(const n2ce_options *o, const n2_phase *phase) {
    if (n2_options_has_word(o, "loop", "draw")) return phase->inner[1].build;
    if (n2_options_has_word(o, "loop", "move")) return phase->inner[3].build;
    if (n2_options_has_word(o, "loop", "sampler")) return phase->inner[4].build;
    return phase->build;
}

static n2ce_status new_learner(n2_store *store, const n2ce_options *o, n2_damc_learner *out) {
    n2_damc_spec spec = n2_damc_defaults();
    n2_damc_training how = n2_damc_training_defaults();
    n2_damc model;
    spec.decoder_width = spec.encoder_width = (int64_t)n2_options_count(o, "width");
    how.batch = (int64_t)n2_options_count(o, "batch");
    N2_TRY(n2_damc_new(store, &spec, n2_options_count(o, "seed"), &model));
    n2_tensor *pictures = n2_store_add(store, "pictures", n2_dims(how.batch, 28, 28, 1));
    return pictures ? n2_damc_learner_new(store, &model, &how, pictures, out) : N2CE_ENOMEM;
}

static n2_node build_loop(const n2ce_options *o, n2_graph *g, n2_bench_about *about) {
    n2_damc_learner learner;
    n2_outputs outputs = {.n = 0};
    if (new_learner(n2_graph_store(g), o, &learner) != N2CE_OK) return N2_NONE;
    const n2_phase phase = n2_damc_phase(&learner);
    if (chosen_loop(o, &phase)(&learner, g, &outputs) != N2CE_OK) return N2_NONE;
    about->title = n2ce_options_get(o, "loop");
    about->pictures = learner.how.batch;
    about->parameters = n2_parameters_count(&learner.model.decoder_parameters) +
                        n2_parameters_count(&learner.model.sampler_parameters) +
                        n2_parameters_count(&learner.model.prior.parameters);
    return n2g_total(g, n2g_read(g, learner.count));
}

static n2ce_status run_damc(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    const n2_bench b = {build_loop, n2ce_options_number(o, "seconds"), 0};
    return n2_bench_run(ctx, o, &b, answer);
}

const n2ce_task n2_bench_damc_task = {
    .name = "bench damc",
    .summary = "time the loops of training with an amortised sampler",
    .description = "An iteration of DAMC draws codes by its slow sampler, moves them by Langevin\n"
                   "dynamics through the decoder, and trains sampler, decoder and prior. This\n"
                   "times one of its loops; n2ce study anomaly does all of it.\n",
    .examples = "n2ce bench damc --loop draw --device cuda --plan\n"
                "n2ce bench damc --loop move --width 8 --device cpu --threads 2\n",
    .options = damc_options,
    .run = run_damc,
};
