/* "bench unet": the small score network of pictures. */
#include "bench_run.h"
#include "model/edm.h"

#include <stdio.h>
#include <string.h>

static const n2ce_option options[] = {
    {"size", 0, N2CE_OPTION_WORD, "32", 0, 0, "16|32|64", "SIDE", "side of the pictures"},
    {"batch", 0, N2CE_OPTION_COUNT, "32", 1, 1e5, NULL, "N", "rows a step: pictures"},
    {"width", 0, N2CE_OPTION_COUNT, "64", 4, 4096, NULL, "W",
     "width of the network: channels of the first layer, a multiple of 4"},
    {"forward", 0, N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,
     "the loss alone, without gradients and updates"},
    N2_BENCH_SECONDS_OPTION("3"),
    N2_BENCH_OPTIONS,
    {0},
};

static int64_t side_of(const n2ce_options *o) {
    return n2_options_has_word(o, "size", "16")   ? 16
           : n2_options_has_word(o, "size", "32") ? 32
                                                  : 64;
}

/* Pictures of uniform numbers in [-1, 1]. */
static n2_node pictures(const n2ce_options *o, n2_graph *g, int64_t n) {
    n2_parameters data = n2_parameters_new(n2_graph_store(g), 1);
    const n2_shape shape = n2_dims(n, side_of(o), side_of(o), 3);
    return n2g_read(g, n2_parameter(&data, "pictures", shape, 1));
}

/* Of every parameter, from what it begins with. */
static void average_all(n2_graph *g, const n2_parameters *p) {
    n2_store *store = n2_graph_store(g);
    for (size_t i = 0; i < p->n; i++) {
        char name[128];
        snprintf(name, sizeof name, "average.%s", p->list[i]->name);
        n2_tensor *average = n2_store_add(store, name, p->list[i]->shape);
        if (!average) {
            n2_graph_out_of_memory(g);
            return;
        }
        memcpy(average->data, p->list[i]->data, n2_tensor_bytes(store, average));
        n2_average(g, average, p->list[i], 0.9999);
    }
}

static n2ce_status check_width(n2ce_ctx *ctx, int64_t width) {
    if (width % 4 == 0) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL, "A width of %lld: it must be divisible by 4.",
                   (long long)width);
}

static n2_node build(const n2ce_options *o, n2_graph *g, n2_bench_about *about) {
    const n2_edm edm = N2_EDM_DEFAULTS;
    const bool forward = n2_options_flag(o, "forward");
    const int64_t n = (int64_t)n2_options_count(o, "batch");
    n2_parameters p = n2_parameters_new(n2_graph_store(g), n2_options_count(o, "seed"));
    n2_unet_spec spec = n2_unet_s;
    spec.base = (int64_t)n2_options_count(o, "width");
    about->status = check_width(n2_store_ctx(n2_graph_store(g)), spec.base);
    if (about->status != N2CE_OK) return N2_NONE;
    const n2_unet net = n2_unet_new(&p, "", &spec);
    about->title = forward ? "loss of a U-Net" : "training step of a U-Net";
    about->pictures = n;
    about->parameters = n2_parameters_count(&p);
    const n2_unet_input in = {
        .x = pictures(o, g, n), .level = n2_edm_sigmas(g, &edm, n), .training = !forward};
    if (!in.x.id) return N2_NONE;
    const n2_node noise = n2g_randn(g, n2_shape_at(g, in.x));
    const n2_node loss = n2_edm_loss(g, &edm, &net, &in, noise);
    if (forward) return loss;
    n2_optimiser adam = N2_OPTIMISER_DEFAULTS;
    if (n2_precision_of_options(o).narrow == N2_F16) adam.loss_scale = N2_HALF_LOSS_SCALE;
    n2_minimise(g, &adam, "adam", &p, loss, NULL);
    average_all(g, &p);
    return loss;
}

static n2ce_status run(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    const n2_bench b = {build, n2ce_options_number(o, "seconds"), 0};
    return n2_bench_run(ctx, o, &b, answer);
}

const n2ce_task n2_bench_unet_task = {
    .name = "bench unet",
    .summary = "time a training step of a score network of pictures",
    .description =
        "The network S, EDM's for CIFAR-10 with base 64, multiples 1, 2, 2 and two blocks a level\n"
        "(6,990,467 parameters), with EDM's loss, Adam and the running average of its weights.\n"
        "./run bench images runs the same work in PyTorch beside it.\n",
    .examples = "n2ce bench unet --device cpu --threads 2\n"
                "n2ce bench unet --device cuda --batch 512 --plan\n"
                "n2ce bench unet --device cuda --batch 512 --forward --json\n",
    .options = options,
    .run = run,
};
