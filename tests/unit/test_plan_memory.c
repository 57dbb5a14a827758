/* Facts about the memory of a plan: what it says it needs, and what happens where there is less. On
 * the processor, or on the GPU that N2CE_TEST_DEVICE names. */
#define _POSIX_C_SOURCE 200809L
#include "close.h"
#include "contexts.h"
#include "fast_backend.h"

#include "base/host_memory.h"
#include "cpu/conv_patches.h"
#include "engine/plan.h"
#include "rewrite/rewrites.h"

#include <stdlib.h>
#include <string.h>

typedef struct bench {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
} bench;

static bench open_bench(void) {
    bench b = {.ctx = new_ctx(2)};
    assert_int_equal(n2_store_new(b.ctx, sizeof(float), &b.store), N2CE_OK);
    b.g = n2_graph_new(b.store);
    assert_non_null(b.g);
    return b;
}

static void close_bench(bench *b) {
    n2_plan_free(b->plan);
    n2_graph_free(b->g);
    n2_store_free(b->store);
    n2ce_ctx_free(b->ctx);
}

static void assert_says(const bench *b, const char *part) {
    if (!strstr(n2ce_errmsg(b->ctx), part))
        fail_msg("\"%s\" is not in: %s", part, n2ce_errmsg(b->ctx));
}

/* ---- the parts ------------------------------------------------------------- */

static n2_node pictures_and_sum(bench *b, int64_t n) {
    n2_tensor *kernel = n2_store_add(b->store, "kernel", n2_dims(3, 3, 4, 8));
    const n2_node x = n2g_randn(b->g, n2_dims(n, 8, 8, 4));
    const n2_window same = {1, 1, 1, 1, 1, 1};
    const n2_node y = n2g_conv2d(b->g, x, n2g_read(b->g, kernel), same);
    const n2_node all = n2g_total(b->g, n2g_mul(b->g, y, y));
    n2_node dk, read = n2g_read(b->g, kernel);
    n2g_grad(b->g, all, &read, 1, &dk);
    return dk;
}

static void the_parts_of_a_plan_are_told(void **state) {
    (void)state;
    bench b = open_bench();
    const n2_node dk = pictures_and_sum(&b, 64);
    assert_int_equal(n2_plan_compile(b.g, fast_backend(), &dk, 1, &b.plan), N2CE_OK);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    const n2_plan_size size = n2_plan_measure(b.plan);
    assert_int_equal(size.bytes, size.values + size.tiles + size.scratch + size.kernels);
    assert_int_equal(size.tensors, 3 * 3 * 4 * 8 * sizeof(float));
    assert_true(size.values >= 3 * 3 * 4 * 8 * sizeof(float));
    assert_true(size.tiles >= 8 * 8 * 8 * sizeof(float)); /* y of a picture at least */
    assert_true(is_cuda() ? size.kernels > 0 : size.kernels == 0 && size.scratch > 0);
    close_bench(&b);
}

/* A tile's last rows may be fewer, and done in another way: the memory of a tile is enough. */
static void scratch_is_enough_for_fewer_pictures(void **state) {
    (void)state;
    static const n2_op_id ops[] = {N2_OP_conv2d, N2_OP_conv2d_input, N2_OP_conv2d_weight};
    const n2_attr attr = {.window = {2, 2, 1, 1, 1, 1}};
    for (int k = 0; k < 3; k++)
        for (int64_t channels = 16; channels <= 256; channels *= 4)
            for (int64_t n = 2; n <= 64; n++) {
                const n2_node_data node = {.op = n2_ops[ops[k]], .attr = &attr};
                const n2_view x = {.shape = n2_dims(n, 32, 32, channels)};
                const n2_view w = {.shape = n2_dims(4, 4, channels, channels)};
                const n2_view y = {.shape = n2_dims(n, 16, 16, channels)};
                n2_call c = {.node = &node};
                c.in[0] = k == 1 ? y : x;
                c.in[1] = k == 2 ? y : w;
                c.out = k == 0 ? y : k == 1 ? x : w;
                const int64_t all = n2_conv_scratch(&c);
                n2_conv fewer = n2_conv_of(&c);
                for (fewer.n = 1; fewer.n < n; fewer.n++) {
                    const n2_winograd g = n2_winograd_of(ops[k], &fewer);
                    assert_true(g.r && n2_winograd_scratch(ops[k], &g) <= all);
                }
            }
}

/* ---- too large ------------------------------------------------------------- */

static n2_node much(bench *b, int64_t rows) {
    return n2g_exp(b->g, n2g_randn(b->g, n2_dims(rows, 1 << 20)));
}

static void more_than_there_is(void **state) {
    (void)state;
    bench b = open_bench();
    if (!is_cuda() && n2_host_memory() == SIZE_MAX) skip(); /* the system does not say */
    const n2_node x = much(&b, 1 << 20);
    const n2ce_status status = n2_plan_compile(b.g, fast_backend(), &x, 1, &b.plan);
    assert_int_equal(status, is_cuda() ? N2CE_EDEVICE : N2CE_ENOMEM);
    assert_null(b.plan);
    assert_says(&b, "this plan needs 4.0 TiB (values 4.0 TiB, ");
    assert_says(&b, "Use a smaller batch");
    close_bench(&b);
}

/* Sums of sizes that size_t does not hold are not taken for small ones. */
static void more_than_can_be_counted(void **state) {
    (void)state;
    bench b = open_bench();
    n2_node x[9];
    for (int k = 0; k < 9; k++)
        x[k] = n2g_randn(b.g, n2_dims((int64_t)1 << 30, (int64_t)1 << 28, 2 + k % 2));
    assert_int_equal(n2_plan_compile(b.g, fast_backend(), x, 9, &b.plan), N2CE_ENOMEM);
    assert_says(&b, "bytes. Use a smaller batch.");
    close_bench(&b);
}

/* Nothing is left behind by a plan that did not fit: the next one, which needs all there is, does.
 */
static void a_small_gpu(void **state) {
    (void)state;
    if (!is_emulated()) skip();
    size_t before, after, left;
    bench b = open_bench();
    n2_device *device = fast_backend()->device;
    const n2_node x = much(&b, 1), y = much(&b, 4);
    device->memory(device, &before, &left);
    setenv("N2CE_EMULATED_MEMORY", "16777216", 1);
    assert_int_equal(n2_plan_compile(b.g, fast_backend(), &y, 1, &b.plan), N2CE_EDEVICE);
    assert_says(&b, "The GPU is out of memory: this plan needs ");
    assert_says(&b, "16.0 MiB are free");
    device->memory(device, &after, &left);
    assert_int_equal(before, after);
    assert_int_equal(n2_plan_compile(b.g, fast_backend(), &x, 1, &b.plan), N2CE_OK);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    unsetenv("N2CE_EMULATED_MEMORY");
    close_bench(&b);
}

/* ---- values that are made again ---------------------------------------------- */

enum { LAYERS = 6, C = 8 };

typedef struct network {
    bench b;
    n2_node out[2 + LAYERS];
    size_t n;
} network;

/* Convolutions, each behind a norm with its activation; some dropout; a residual sum. With
 * `twice`, the loss is of a gradient by the pictures. */
static n2_node forward(bench *b, n2_node x, n2_node *kernels) {
    const n2_window same = {1, 1, 1, 1, 1, 1};
    char name[32];
    for (int k = 0; k < LAYERS; k++) {
        snprintf(name, sizeof name, "kernel %d", k);
        n2_tensor *t = n2_store_add(b->store, name, n2_dims(3, 3, C, C));
        double w[9 * C * C];
        for (int i = 0; i < 9 * C * C; i++) w[i] = 0.2 * sin(0.37 * i + k);
        n2_tensor_set(b->store, t, w);
        kernels[k] = n2g_read(b->g, t);
        n2_node y = n2g_norm(b->g, x, N2_NONE, N2_NONE, N2_NONE,
                             ((n2_norm){.groups = 4, .eps = 1e-5, .act = N2_ACT_SILU}));
        if (k % 2) y = n2g_dropout(b->g, y, 0.25);
        y = n2g_conv2d(b->g, y, kernels[k], same);
        x = k % 3 == 2 ? n2g_add(b->g, y, x) : y;
    }
    return x;
}

static network build(int64_t n, int64_t side, bool twice) {
    network net = {.b = open_bench(), .n = 1 + LAYERS};
    n2_graph *g = net.b.g;
    n2_node kernels[LAYERS];
    const n2_node x = n2g_randn(g, n2_dims(n, side, side, C));
    const n2_node y = forward(&net.b, x, kernels);
    n2_node loss = n2g_mean(g, n2g_mul(g, y, y), 15), dx;
    if (twice) {
        n2g_grad(g, n2g_reshape(g, loss, n2_scalar_shape()), &x, 1, &dx);
        loss = n2g_mean(g, n2g_mul(g, dx, dx), 15);
    }
    net.out[0] = loss = n2g_reshape(g, loss, n2_scalar_shape());
    n2g_grad(g, loss, kernels, LAYERS, net.out + 1);
    for (int k = 0; k < LAYERS; k++) {
        n2_tensor *t = n2_store_at(net.b.store, (size_t)k);
        n2g_assign(g, t, n2g_sub(g, kernels[k], n2g_scale(g, net.out[1 + k], 0.1)));
    }
    return net;
}

/* Two steps; the values of all outputs in the end. */
static n2_plan_size run(network *net, const n2_backend *backend, n2_recompute when,
                        double *values) {
    if (n2_plan_compile_with(net->b.g, backend, net->out, net->n, when, &net->b.plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(net->b.ctx));
    assert_int_equal(n2_plan_run_many(net->b.plan, 2), N2CE_OK);
    for (size_t k = 0; k < net->n; k++) n2_plan_get(net->b.plan, k, values + 1000 * k);
    return n2_plan_measure(net->b.plan);
}

/* With at most this share of the memory for values; 0: it is not looked at. */
static void assert_same_again(int64_t n, int64_t side, bool twice, double share) {
    static double kept[8000], again[8000];
    network a = build(n, side, twice), b = build(n, side, twice);
    const n2_plan_size large = run(&a, fast_backend(), N2_RECOMPUTE_NEVER, kept);
    const n2_plan_size small = run(&b, fast_backend(), N2_RECOMPUTE_ALWAYS, again);
    assert_memory_equal(kept, again, sizeof kept);
    assert_true(isfinite(kept[0]) && kept[0] > 0);
    assert_int_equal(large.again, 0);
    assert_true(small.again >= LAYERS);
    const size_t before = large.values + large.tiles, after = small.values + small.tiles;
    if (share > 0 && (double)after > share * (double)before)
        fail_msg("%zu bytes and %zu bytes", before, after);
    close_bench(&a.b);
    close_bench(&b.b);
}

static void what_is_made_again_is_the_same(void **state) {
    (void)state;
    assert_same_again(32, 8, false, 0);
    assert_same_again(5, 8, false, 0); /* few rows: whole nodes, on a processor */
    assert_same_again(16, 8, true, 0);
    if (is_emulated()) return;
    assert_same_again(16, 72, false, is_cuda() ? 0 : 0.7); /* a tile of one row, on a processor */
    assert_same_again(1, 200, false, is_cuda() ? 0 : 0.8);
}

/* A plan that does not fit as it is, and does if values are made again. */
static void where_memory_is_short_values_are_made_again(void **state) {
    (void)state;
    if (!is_emulated()) skip();
    network net = build(12, 296, false);
    n2_plan *plan = NULL;
    setenv("N2CE_EMULATED_MEMORY", "30000000", 1);
    assert_int_equal(n2_plan_compile(net.b.g, fast_backend(), net.out, net.n, &plan), N2CE_EDEVICE);
    assert_null(plan);
    setenv("N2CE_EMULATED_MEMORY", "400000000", 1);
    assert_int_equal(
        n2_plan_compile_with(net.b.g, fast_backend(), net.out, net.n, N2_RECOMPUTE_NEVER, &plan),
        N2CE_EDEVICE);
    if (n2_plan_compile(net.b.g, fast_backend(), net.out, net.n, &plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(net.b.ctx));
    assert_true(n2_plan_measure(plan).again >= LAYERS);
    n2_plan_free(plan);
    unsetenv("N2CE_EMULATED_MEMORY");
    close_bench(&net.b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_of_a_plan_are_told),
        cmocka_unit_test(scratch_is_enough_for_fewer_pictures),
        cmocka_unit_test(more_than_there_is),
        cmocka_unit_test(more_than_can_be_counted),
        cmocka_unit_test(a_small_gpu),
        cmocka_unit_test(what_is_made_again_is_the_same),
        cmocka_unit_test(where_memory_is_short_values_are_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
