/* "bench distill": an iteration of SiDA, at the size of the study. */
#include "bench_run.h"
#include "diffusion/distill.h"

static const n2ce_option options[] = {
    {"size", 0, N2CE_OPTION_WORD, "16", 0, 0, "16|32|64", "SIDE", "side of the pictures"},
    {"batch", 0, N2CE_OPTION_COUNT, "32", 1, 1e5, NULL, "N", "rows a step: pictures"},
    {"width", 0, N2CE_OPTION_COUNT, "64", 4, 4096, NULL, "W",
     "width of the network: channels of the first layer, a multiple of 4"},
    {"method", 0, N2CE_OPTION_WORD, "sida", 0, 0, "sid|sida", "NAME",
     "way to distil: with real pictures (sida), or without"},
    N2_BENCH_SECONDS_OPTION("3"),
    N2_BENCH_OPTIONS,
    {0},
};

static size_t side_of(const n2ce_options *o) {
    return n2_options_has_word(o, "size", "16")   ? 16
           : n2_options_has_word(o, "size", "32") ? 32
                                                  : 64;
}

/* Black pictures do as well as others. */
static n2ce_status make_task(n2ce_ctx *ctx, const n2ce_options *o, n2_images **pictures,
                             n2_denoiser **teacher, n2_distillation *task) {
    enum { PICTURES = 1024 };
    n2_denoiser_spec spec;
    const n2_distill_method method =
        n2_options_has_word(o, "method", "sida") ? N2_DISTILL_SIDA : N2_DISTILL_SID;
    N2_TRY(n2_images_new(ctx, PICTURES, side_of(o), side_of(o), 3, pictures));
    N2_TRY(
        n2_denoiser_spec_for(ctx, "s", *pictures, (int64_t)n2_options_count(o, "width"), 0, &spec));
    spec.net.augment = n2_unet_s.augment;
    N2_TRY(n2_denoiser_new(ctx, &spec, n2_options_count(o, "seed"), teacher));
    *task = (n2_distillation){
        .teacher = *teacher, .pictures = *pictures, .plan = n2_distill_defaults(method)};
    task->plan.batch = (int64_t)n2_options_count(o, "batch");
    return N2CE_OK;
}

static n2_node build(const n2ce_options *o, n2_graph *g, n2_bench_about *about) {
    n2ce_ctx *ctx = n2_store_ctx(n2_graph_store(g));
    n2_images *pictures = NULL;
    n2_denoiser *teacher = NULL;
    n2_distillation task;
    n2_node loss = N2_NONE;
    about->title = "iteration of SiDA";
    about->pictures = (int64_t)n2_options_count(o, "batch");
    about->status = make_task(ctx, o, &pictures, &teacher, &task);
    if (about->status == N2CE_OK) {
        about->parameters = 2 * n2_parameters_count(&teacher->net.parameters);
        loss = n2_distill_iteration(g, &task);
    }
    n2_denoiser_free(teacher);
    n2_images_free(pictures);
    return loss;
}

static n2ce_status run(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    const n2_bench b = {build, n2ce_options_number(o, "seconds"), 0};
    return n2_bench_run(ctx, o, &b, answer);
}

const n2ce_task n2_bench_distill_task = {
    .name = "bench distill",
    .summary = "time an iteration of the distillation of a diffusion model",
    .description =
        "SiDA with N2CE on the network S (6,989,891 parameters and more, three of them): a step "
        "of\n"
        "the fake score, which is a discriminator too, and one of the generator, with the average\n"
        "of its weights. ./run bench images runs the same work in PyTorch beside it.\n",
    .examples = "n2ce bench distill --device cpu --batch 4\n"
                "n2ce bench distill --device cuda --batch 512 --precision bf16 --plan\n",
    .options = options,
    .run = run,
};
