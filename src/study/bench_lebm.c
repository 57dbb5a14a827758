/* "bench lebm" and "bench ld": latent energy-based models of pictures. */
#include "bench_run.h"
#include "lebm/lebm.h"

/* ---- a joint training step ---------------------------------------------------------------- */

static const n2ce_option lebm_options[] = {
    {"size", 0, N2CE_OPTION_WORD, "32", 0, 0, "28|32|64", "SIDE",
     "side of the pictures: 28 with one channel, 32 or 64 with three"},
    {"batch", 0, N2CE_OPTION_COUNT, "128", 1, 1e5, NULL, "N", "rows a step: pictures"},
    {"M", 'M', N2CE_OPTION_COUNT, "100", 1, 1e4, NULL, "M",
     "noise magnitude; so many rows of noise for every picture"},
    N2_BENCH_SECONDS_OPTION("3"),
    N2_BENCH_OPTIONS,
    {0},
};

static const n2_image_spec *spec_of_size(const n2ce_options *o) {
    return n2_image_spec_named(n2_options_has_word(o, "size", "28")   ? "mnist"
                               : n2_options_has_word(o, "size", "32") ? "svhn"
                                                                      : "celeba");
}

/* Pictures of uniform numbers in [-1, 1]. */
static n2_node pictures(n2_graph *g, const n2_image_spec *spec, int64_t n) {
    n2_parameters data = n2_parameters_new(n2_graph_store(g), 1);
    const n2_shape shape = n2_dims(n, spec->side, spec->side, spec->channels);
    return n2g_read(g, n2_parameter(&data, "pictures", shape, 1));
}

/* The same sizes for pictures of all sizes. */
static bool new_lebm(n2_graph *g, const n2ce_options *o, n2_lebm_nets *nets) {
    enum { WIDTH = 64, EMBEDDING = 1024, NZ = 100 };
    n2_lebm_spec spec = {.net = spec_of_size(o),
                         .nz = NZ,
                         .encoder_width = WIDTH,
                         .embedding = EMBEDDING,
                         .decoder_width = WIDTH,
                         .prior = n2_prior_defaults()};
    spec.prior.noise = (int64_t)n2_options_count(o, "M");
    spec.prior.magnitude = (double)spec.prior.noise;
    const uint64_t seed = n2_options_count(o, "seed");
    return n2_lebm_nets_new(n2_graph_store(g), &spec, seed, nets) == N2CE_OK ||
           n2_graph_out_of_memory(g);
}

static n2_node build_lebm(const n2ce_options *o, n2_graph *g, n2_bench_about *about) {
    const int64_t n = (int64_t)n2_options_count(o, "batch");
    n2_lebm_nets m;
    n2_lebm_batch batch;
    n2_lebm_bound bound;
    if (!new_lebm(g, o, &m)) return N2_NONE;
    about->title = "joint training step";
    about->pictures = n;
    about->parameters = n2_parameters_count(&m.vae) + n2_parameters_count(&m.prior.parameters);
    const n2_node x = pictures(g, m.spec.net, n);
    n2_lebm_encode(g, &batch, &m.encoder, x, n2g_randn(g, n2_dims(n, m.spec.nz)));
    const n2_node critic = n2_prior_loss(g, &m.prior, batch.z);
    const n2_optimiser for_ratio = {.adam = {0.9, 0.999, 1e-8, 0}, .rate = 2e-4, .clip = 100};
    n2_minimise(g, &for_ratio, "ratio", &m.prior.parameters, critic, NULL);
    n2_lebm_bound_of(g, &bound, &m.decoder, &m.prior, &batch, 5);
    const n2_optimiser for_vae = {.adam = {0.5, 0.999, 1e-8, 0}, .rate = 2e-4, .clip = 100};
    n2_minimise(g, &for_vae, "vae", &m.vae, bound.loss, NULL);
    return bound.loss;
}

static n2ce_status run_lebm(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    const n2_bench b = {build_lebm, n2ce_options_number(o, "seconds"), 0};
    return n2_bench_run(ctx, o, &b, answer);
}

const n2ce_task n2_bench_lebm_task = {
    .name = "bench lebm",
    .summary = "time a joint training step of a latent energy-based model of pictures",
    .description =
        "Pictures are encoded; the ratio network (K = 3, code of 100 numbers) takes a step on the\n"
        "codes against M times as much noise, then encoder and decoder take one through it. Adam,\n"
        "gradients clipped at 100. ./run bench images runs the same work in PyTorch beside it.\n",
    .examples = "n2ce bench lebm --device cpu --threads 2\n"
                "n2ce bench lebm --device cuda --plan --seconds 1\n",
    .options = lebm_options,
    .run = run_lebm,
};

/* ---- Langevin dynamics through a decoder -------------------------------------------------- */

enum { LD_NZ = 8 };

static const n2ce_option ld_options[] = {
    {"ngf", 0, N2CE_OPTION_COUNT, "128", 1, 1024, NULL, "W",
     "width of the decoder: its layers have 8, 4 and 2 times as many channels"},
    {"batch", 0, N2CE_OPTION_COUNT, "128", 1, 1e5, NULL, "N", "rows a step: pictures"},
    {"steps", 0, N2CE_OPTION_COUNT, "30", 1, 1000, NULL, "T", "steps of Langevin dynamics, a run"},
    N2_BENCH_SECONDS_OPTION("3"),
    N2_BENCH_OPTIONS,
    {0},
};

typedef struct posterior {
    n2_image_decoder decoder;
    n2_node x;
} posterior;

/* log p(x, z) of each picture without its constant: -|x - g(z)|^2 / (2 sd^2) - |z|^2 / 2. */
static n2_node log_posterior(n2_graph *g, n2_node z, const void *model) {
    const double sd = 0.3;
    const posterior *p = model;
    const n2_node made = n2_image_decode(g, &p->decoder, z);
    if (!made.id) return N2_NONE;
    const int64_t n = n2_shape_at(g, made).dim[0];
    const n2_node miss = n2g_sub(g, p->x, made);
    const int axes = n2_axis(1) | n2_axis(2) | n2_axis(3);
    const n2_node sum = n2g_sum(g, n2g_mul(g, miss, miss), axes);
    const n2_node fit = n2g_scale(g, n2g_reshape(g, sum, n2_dims(n, 1)), -0.5 / (sd * sd));
    return n2g_add(g, fit, n2g_scale(g, n2g_sum(g, n2g_mul(g, z, z), n2_axis(1)), -0.5));
}

/* All steps are one graph: the chain begins anew in every run. */
static n2_node build_ld(const n2ce_options *o, n2_graph *g, n2_bench_about *about) {
    const n2_image_spec *spec = n2_image_spec_named("mnist");
    const int64_t n = (int64_t)n2_options_count(o, "batch");
    n2_parameters parameters = n2_parameters_new(n2_graph_store(g), n2_options_count(o, "seed"));
    posterior p = {.x = pictures(g, spec, n)};
    p.decoder = n2_image_decoder_new(&parameters, spec, (int64_t)n2_options_count(o, "ngf"), LD_NZ);
    about->title = "Langevin dynamics";
    about->pictures = n;
    about->parameters = n2_parameters_count(&parameters);
    n2_node z = n2g_randn(g, n2_dims(n, LD_NZ));
    for (uint64_t t = n2_options_count(o, "steps"); t > 0; t--)
        z = n2_langevin_move(g, z, n2_score(g, z, log_posterior, &p, NULL), 0.1);
    return n2g_total(g, n2g_mean(g, n2g_mul(g, z, z), N2_ALL_AXES));
}

static n2ce_status run_ld(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    const n2_bench b = {build_ld, n2ce_options_number(o, "seconds"), 0};
    return n2_bench_run(ctx, o, &b, answer);
}

const n2ce_task n2_bench_ld_task = {
    .name = "bench ld",
    .summary = "time Langevin dynamics of a decoder's posterior",
    .description =
        "Codes of 8 numbers follow the gradient of log p(code | picture) through the decoder of\n"
        "28 x 28 pictures, with noise: x is the decoder's picture and noise of 0.3. A run begins\n"
        "anew and does all steps. ./run bench images runs the same work in PyTorch beside it.\n",
    .examples = "n2ce bench ld --ngf 32 --device cpu --threads 2\n"
                "n2ce bench ld --device cuda\n",
    .options = ld_options,
    .run = run_ld,
};
