/* Facts about the memory of a plan: what it says it needs, and what happens where there is less. On
 * the processor, or on the GPU that N2CE_TEST_DEVICE names. */
#define _POSIX_C_SOURCE 200809L
#include "close.h"
#include "contexts.h"
#include "fast_backend.h"

#include "base/host_memory.h"
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_of_a_plan_are_told),
        cmocka_unit_test(more_than_there_is),
        cmocka_unit_test(more_than_can_be_counted),
        cmocka_unit_test(a_small_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
