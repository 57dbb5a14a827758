/* "bench conv": how fast convolutions and their gradients are, for the shapes of networks. */
#include "bench_time.h"

#include "base/random.h"
#include "cuda/cuda.h"
#include "rewrite/rewrites.h"
#include "task/device_options.h"
#include "task/task.h"
#include "task/vocabulary.h"

#include <math.h>
#include <string.h>

static const n2ce_option options[] = {
    {"network", 0, N2CE_OPTION_WORD, "all", 0, 0, "all|unet|lebm|ld", "NAME",
     "whose shapes: the small score network, the image latent EBM, the decoder of digits"},
    {"pictures", 0, N2CE_OPTION_COUNT, "0", 0, 65536, NULL, "N",
     "of each; 0: as many as a step of the network has, or 8 on a processor"},
    {"seconds", 0, N2CE_OPTION_REAL, "0.05", 0.001, 1e3, NULL, "S",
     "time to measure for, each of six plans a shape"},
    N2_SEED_OPTION,
    {"device", 0, N2CE_OPTION_TEXT, "cpu", 0, 0, NULL, "DEVICE",
     "where to compute: cpu, cuda, cuda:N for GPU N"},
    N2_PICTURES_PRECISION_OPTION,
    {0},
};

/* A square picture, a square kernel; `side` is that of x. */
typedef struct shape {
    const char *network;
    int64_t n, side, c_in, c_out, kernel;
    int32_t stride, zeros;
} shape;

static const shape shapes[] = {
    {"unet", 512, 32, 3, 64, 3, 1, 1},    {"unet", 512, 32, 64, 64, 3, 1, 1},
    {"unet", 512, 32, 128, 64, 3, 1, 1},  {"unet", 512, 32, 192, 64, 3, 1, 1},
    {"unet", 512, 32, 128, 128, 3, 1, 1}, {"unet", 512, 32, 64, 3, 3, 1, 1},
    {"unet", 512, 32, 128, 64, 1, 1, 0},  {"unet", 512, 16, 64, 64, 3, 1, 1},
    {"unet", 512, 16, 64, 128, 3, 1, 1},  {"unet", 512, 16, 128, 128, 3, 1, 1},
    {"unet", 512, 16, 256, 128, 3, 1, 1}, {"unet", 512, 16, 128, 384, 1, 1, 0},
    {"unet", 512, 8, 128, 128, 3, 1, 1},  {"unet", 512, 8, 256, 128, 3, 1, 1},
    {"lebm", 128, 32, 3, 64, 3, 1, 1},    {"lebm", 128, 32, 64, 128, 4, 2, 1},
    {"lebm", 128, 16, 128, 256, 4, 2, 1}, {"lebm", 128, 8, 256, 512, 4, 2, 1},
    {"lebm", 128, 32, 3, 128, 4, 2, 1},   {"ld", 128, 14, 512, 1024, 4, 2, 1},
    {"ld", 128, 28, 256, 512, 4, 2, 1},   {"ld", 128, 28, 1, 256, 3, 1, 1},
};

/* A shape that is being measured. */
typedef struct bench {
    n2ce_ctx *ctx;
    const n2ce_options *o;
    const n2_backend *backend;
    shape s;
} bench;

static int64_t side_of_y(const shape *s) {
    return (s->side + 2 * s->zeros - s->kernel) / s->stride + 1;
}

static double flops_of(const shape *s) {
    const double pixels = (double)(s->n * side_of_y(s) * side_of_y(s));
    return 2 * pixels * (double)(s->kernel * s->kernel * s->c_in * s->c_out);
}

/* ---- graphs ----------------------------------------------------------------- */

/* Pairs of ops, several times: a longer graph takes longer by those that it has more, whatever
 * comes before and behind. */
typedef enum pair { FORWARD_AND_INPUT, FORWARD_AND_WEIGHT, INPUT_AND_WEIGHT, N_PAIRS } pair;
enum { FEW_PAIRS = 1, MANY_PAIRS = 4 };

typedef struct nodes {
    n2_graph *g;
    n2_node x, y, kernel[MANY_PAIRS];
    n2_window v;
    const shape *s;
} nodes;

static n2_node forward(const nodes *n, n2_node x, n2_node kernel) {
    return n2g_conv2d(n->g, x, kernel, n->v);
}
static n2_node by_input(const nodes *n, n2_node y, n2_node kernel) {
    return n2g_conv2d_input(n->g, y, kernel, n->s->side, n->s->side, n->v);
}
static n2_node by_weight(const nodes *n, n2_node x, n2_node y) {
    return n2g_conv2d_weight(n->g, x, y, n->s->kernel, n->s->kernel, n->v);
}

/* One of the three. */
static n2_node build_one(const nodes *n, int op) {
    return op == 0   ? forward(n, n->x, n->kernel[0])
           : op == 1 ? by_input(n, n->y, n->kernel[0])
                     : by_weight(n, n->x, n->y);
}

/* One number in the end, so that all are made. */
static n2_node build_pairs(const nodes *n, pair which, int times) {
    n2_node x = n->x, sum = n2g_constant(n->g, 0);
    for (int k = 0; k < times; k++) {
        if (which == FORWARD_AND_INPUT) {
            x = by_input(n, forward(n, x, n->kernel[0]), n->kernel[0]);
            continue;
        }
        const n2_node w = which == FORWARD_AND_WEIGHT
                              ? by_weight(n, n->x, forward(n, n->x, n->kernel[k]))
                              : by_weight(n, by_input(n, n->y, n->kernel[k]), n->y);
        sum = n2g_add(n->g, sum, n2g_total(n->g, w));
    }
    return which == FORWARD_AND_INPUT ? n2g_total(n->g, x) : sum;
}

static n2_tensor *add_tensor(const bench *b, n2_store *store, const char *name, n2_shape dims,
                             double scale, uint32_t stream) {
    n2_tensor *t = n2_store_add(store, name, dims);
    const n2_stream random = {n2_options_count(b->o, "seed"), stream, 0};
    const size_t n = (size_t)n2_elements(dims);
    if (!t) return NULL;
    n2_fill_normal(random, 0, n, t->data);
    for (size_t i = 0; i < n; i++) ((float *)t->data)[i] *= (float)scale;
    return t;
}

/* Pictures and kernels; on a device pictures are scaled: what an op makes may lie in 16 bits. */
static bool read_nodes(const bench *b, n2_graph *g, nodes *n) {
    const shape *s = &b->s;
    n2_store *store = n2_graph_store(g);
    const int64_t side = side_of_y(s);
    const double scale = 1 / sqrt((double)(s->kernel * s->kernel * s->c_in));
    n2_tensor *x = add_tensor(b, store, "x", n2_dims(s->n, s->side, s->side, s->c_in), 1, 1);
    n2_tensor *y = add_tensor(b, store, "y", n2_dims(s->n, side, side, s->c_out), 1, 2);
    if (!x || !y) return false;
    n->g = g;
    n->s = s;
    n->v = (n2_window){s->stride, s->stride, s->zeros, s->zeros, s->zeros, s->zeros};
    n->x = n2g_read(g, x);
    n->y = n2g_read(g, y);
    if (b->backend->device) n->x = n2g_scale(g, n->x, 0.5), n->y = n2g_scale(g, n->y, 0.5);
    for (int k = 0; k < MANY_PAIRS; k++) {
        const char name[] = {'k', (char)('0' + k), 0};
        n2_tensor *t = add_tensor(b, store, name, n2_dims(s->kernel, s->kernel, s->c_in, s->c_out),
                                  scale, (uint32_t)k + 3);
        if (!t) return false;
        n->kernel[k] = n2g_read(g, t);
    }
    return true;
}

/* ---- time ------------------------------------------------------------------- */

/* So many pairs of ops; none: an op by itself, of pictures as they are. */
static n2ce_status time_graph(const bench *b, n2_graph *g, int which, int times, double *seconds) {
    nodes n;
    n2_plan *plan = NULL;
    if (!read_nodes(b, g, &n)) return N2CE_ENOMEM;
    const n2_node out = times ? build_pairs(&n, (pair)which, times) : build_one(&n, which);
    N2_TRY(n2_plan_compile(g, b->backend, &out, 1, &plan));
    const n2ce_status status =
        n2_bench_time(b->ctx, plan, n2ce_options_number(b->o, "seconds"), seconds);
    n2_plan_free(plan);
    return status;
}

static n2ce_status time_ops(const bench *b, int which, int times, double *seconds) {
    n2_store *store;
    N2_TRY(n2_store_new(b->ctx, sizeof(float), &store));
    n2_graph *g = n2_graph_new(store);
    const n2ce_status status = g ? time_graph(b, g, which, times, seconds) : N2CE_ENOMEM;
    n2_graph_free(g);
    n2_store_free(store);
    return status;
}

/* Seconds of the three ops, each by itself: what a processor does is not hidden by launches. */
static n2ce_status measure_each(const bench *b, double seconds[3]) {
    for (int op = 0; op < 3; op++) N2_TRY(time_ops(b, op, 0, &seconds[op]));
    return N2CE_OK;
}

/* The same, from those of their pairs. */
static n2ce_status measure_pairs(const bench *b, double seconds[3]) {
    double of_pair[N_PAIRS];
    for (int p = 0; p < N_PAIRS; p++) {
        double few, many;
        N2_TRY(time_ops(b, p, FEW_PAIRS, &few));
        N2_TRY(time_ops(b, p, MANY_PAIRS, &many));
        of_pair[p] = (many - few) / (MANY_PAIRS - FEW_PAIRS);
    }
    const double all = (of_pair[0] + of_pair[1] + of_pair[2]) / 2;
    seconds[0] = all - of_pair[INPUT_AND_WEIGHT];
    seconds[1] = all - of_pair[FORWARD_AND_WEIGHT];
    seconds[2] = all - of_pair[FORWARD_AND_INPUT];
    return N2CE_OK;
}

/* ---- the answer ------------------------------------------------------------- */

static void show(n2_writer *w, const shape *s, const double seconds[3], bool first) {
    static const char *const names[] = {"forward", "input", "weight"};
    n2_text_add(&w->text, "%-5s %4lld x %2lld x %2lld x %4lld -> %4lld, %lld x %lld / %d",
                s->network, (long long)s->n, (long long)s->side, (long long)s->side,
                (long long)s->c_in, (long long)s->c_out, (long long)s->kernel, (long long)s->kernel,
                (int)s->stride);
    n2_text_add(&w->json,
                "%s{\"network\": \"%s\", \"pictures\": %lld, \"side\": %lld, \"in\": %lld, "
                "\"out\": %lld, \"kernel\": %lld, \"stride\": %d",
                first ? "" : ",\n  ", s->network, (long long)s->n, (long long)s->side,
                (long long)s->c_in, (long long)s->c_out, (long long)s->kernel, (int)s->stride);
    for (int k = 0; k < 3; k++) {
        const double us = 1e6 * seconds[k], tflops = flops_of(s) / seconds[k] * 1e-12;
        n2_text_add(&w->text, " %9.1f us %7.3f TF/s", us, tflops);
        n2_text_add(&w->json, ", \"%s\": {\"us\": %.6g, \"tflops\": %.6g}", names[k], us, tflops);
        n2_text_add(&w->brief, "%.6g\n", us);
    }
    n2_text_add(&w->text, "\n");
    n2_text_add(&w->json, "}");
}

static n2ce_status bench_all(n2ce_ctx *ctx, const n2ce_options *o, const n2_backend *backend,
                             n2_writer *w) {
    const char *about = "no library", *network = n2ce_options_get(o, "network");
    const size_t all = sizeof shapes / sizeof shapes[0];
    const int64_t asked = (int64_t)n2_options_count(o, "pictures");
    if (backend->device) n2_cuda_has_library(backend, N2_OP_conv2d, &about);
    n2_text_add(&w->text, "%s; %s\n%48s %22s %22s\n", backend->name, about, "forward",
                "by pictures", "by kernels");
    n2_text_add(&w->json, "{\"device\": \"%s\", \"library\": \"%s\", \"convolutions\": [",
                backend->name, about);
    bool first = true;
    for (size_t i = 0; i < all; i++) {
        double seconds[3];
        if (strcmp(network, "all") != 0 && strcmp(network, shapes[i].network) != 0) continue;
        bench b = {.ctx = ctx, .o = o, .backend = backend, .s = shapes[i]};
        if (asked || !backend->device) b.s.n = asked ? asked : 8;
        N2_TRY((backend->device ? measure_pairs : measure_each)(&b, seconds));
        show(w, &b.s, seconds, first);
        n2_progress(ctx, (double)(i + 1), (double)all);
        first = false;
    }
    n2_text_add(&w->json, "]}\n");
    return N2CE_OK;
}

static n2ce_status run(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    n2_device_choice choice;
    N2_TRY(n2_choice_of_options(ctx, o, &choice));
    n2_writer w = n2_writer_new(ctx);
    const n2ce_status status = bench_all(ctx, o, n2_choice_backend(&choice), &w);
    if (status == N2CE_OK) return n2_writer_take(&w, answer);
    n2_writer_free(&w);
    return status;
}

const n2ce_task n2_bench_conv_task = {
    .name = "bench conv",
    .summary = "time convolutions and their gradients, for the shapes of networks",
    .description =
        "Convolutions of the networks that ./run bench images trains: forward, by pictures, which\n"
        "is the transposed convolution, and by kernels. On a processor each is timed by itself; on "
        "a\n"
        "GPU plans with one and with four of two ops, and what the ops take is worked out of the\n"
        "differences. ./run bench conv runs PyTorch beside it.\n",
    .examples = "n2ce bench conv --network unet --device cuda --precision bf16\n",
    .options = options,
    .run = run,
};
