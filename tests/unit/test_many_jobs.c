/* Plans of many more jobs than a multilayer perceptron has: a deep network with norms and residual
 * sums, forward and back. A shallow one runs as ref does; a deep one, of more than ten thousand
 * nodes, is scheduled in seconds. */
#define _POSIX_C_SOURCE 200809L
#include "contexts.h"
#include "fast_backend.h"
#include "ref/ref.h"
#include "stores.h"

#include "engine/plan.h"
#include "rewrite/rewrites.h"

#include <time.h>

typedef struct network {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *graph;
    n2_plan *plan;
} network;

typedef struct size {
    int layers;
    int64_t rows, width;
} size;

static n2_tensor *weights(network *n, int layer, int64_t width) {
    char name[32];
    snprintf(name, sizeof name, "w%d", layer);
    n2_tensor *t = n2_store_add(n->store, name, n2_dims(width, width));
    const size_t all = (size_t)(width * width);
    double *x = calloc(all, sizeof *x);
    assert_non_null(t);
    assert_non_null(x);
    for (size_t i = 0; i < all; i++) x[i] = (double)((i * 7 + (size_t)layer * 13) % 31) / 62 - 0.25;
    n2_tensor_set(n->store, t, x);
    free(x);
    return t;
}

/* Subtracts the mean of every row and divides by its root mean square. */
static n2_node normalise(n2_graph *g, n2_node x) {
    const n2_node centred = n2g_sub(g, x, n2g_mean(g, x, n2_axis(1)));
    const n2_node square = n2g_mean(g, n2g_mul(g, centred, centred), n2_axis(1));
    return n2g_div(g, centred, n2g_sqrt(g, n2g_affine(g, square, 1, 1e-3)));
}

/* A step of gradient descent; returns the loss. */
static n2_node build(network *n, const size *s) {
    n2_graph *g = n->graph;
    const size_t layers = (size_t)s->layers;
    n2_tensor **w = calloc(layers, sizeof *w);
    n2_node *read = calloc(layers, sizeof *read), *dw = calloc(layers, sizeof *dw);
    assert_true(w && read && dw);
    n2_node x = n2g_randn(g, n2_dims(s->rows, s->width));
    for (size_t k = 0; k < layers; k++) {
        w[k] = weights(n, (int)k, s->width);
        read[k] = n2g_read(g, w[k]);
        const n2_node h = n2g_matmul(g, normalise(g, x), read[k], false, true);
        x = n2g_add(g, x, n2g_scale(g, n2g_silu(g, h), 0.1));
    }
    const n2_node loss = n2g_total(g, n2g_mul(g, x, x));
    n2g_grad(g, loss, read, layers, dw);
    for (size_t k = 0; k < layers; k++)
        n2g_assign(g, w[k], n2g_sub(g, read[k], n2g_scale(g, dw[k], 1e-3)));
    free(w);
    free(read);
    free(dw);
    return loss;
}

static network start(const n2_backend *backend, const size *s) {
    network n = {.ctx = new_ctx(1)};
    assert_int_equal(n2_store_new(n.ctx, backend->bytes, &n.store), N2CE_OK);
    n.graph = n2_graph_new(n.store);
    assert_non_null(n.graph);
    const n2_node loss = build(&n, s);
    if (n2_plan_compile(n.graph, backend, &loss, 1, &n.plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(n.ctx));
    n2_plan_seed(n.plan, 7, 0);
    return n;
}

static void stop(network *n) {
    n2_plan_free(n->plan);
    n2_graph_free(n->graph);
    n2_store_free(n->store);
    n2ce_ctx_free(n->ctx);
}

static void run(network *n) {
    if (n2_plan_run(n->plan) != N2CE_OK) fail_msg("%s", n2ce_errmsg(n->ctx));
}

/* Steps of both, and after each the same loss. */
static void check_steps(const size *s) {
    network a = start(open_cuda_or_skip(true), s), b = start(n2_ref_backend(), s);
    for (int k = 0; k < 3; k++) {
        run(&a);
        run(&b);
        /* losses of a few hundred; other random numbers would be off by tens */
        assert_close(n2_plan_scalar(a.plan, 0), n2_plan_scalar(b.plan, 0), 1e-3, 0);
    }
    stop(&a);
    stop(&b);
}

static void a_network_with_norms_learns_as_ref(void **state) {
    (void)state;
    check_steps(&(size){6, 5, 12});
    check_steps(&(size){4, 3, 140});
}

/* The processor's seconds: the machine may be busy. */
static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Recording, scheduling and capturing happen at the first run. An emulated GPU need not run it. */
static void check_schedule(const size *s) {
    setenv("N2CE_EMULATED_IDLE", "1", 1);
    network n = start(open_cuda_or_skip(true), s);
    const double begin = cpu_seconds();
    run(&n);
    const double seconds = cpu_seconds() - begin;
    unsetenv("N2CE_EMULATED_IDLE");
    const n2_plan_size all = n2_plan_measure(n.plan);
    printf("%zu nodes, %zu launches: %.2f s\n", all.nodes, all.launches, seconds);
    assert_true(all.nodes > 10000);
    assert_true(all.launches < 10 * (size_t)s->layers); /* of more than 40 nodes each */
    assert_true(seconds < 10);
    stop(&n);
}

static void ten_thousand_nodes_are_scheduled_in_seconds(void **state) {
    (void)state;
    check_schedule(&(size){300, 2, 140});
    check_schedule(&(size){300, 4, 16});
}

int main(void) {
    open_cuda_or_skip(true);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network_with_norms_learns_as_ref),
        cmocka_unit_test(ten_thousand_nodes_are_scheduled_in_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
