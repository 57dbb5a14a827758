/* Graphs of one output whose ops go to a vendor's library, beside ref. Where there is no GPU, or no
 * library, the tests say so and are skipped. */
#ifndef N2_TEST_LIBRARY_PROBLEM_H
#define N2_TEST_LIBRARY_PROBLEM_H

#include "contexts.h"
#include "fast_backend.h"
#include "ref/ref.h"

#include "engine/plan.h"
#include "rewrite/rewrites.h"

/* A GPU all of whose products, unless the fused MLP takes them, and convolutions go to a library;
 * op: which of them it must have. */
static const n2_backend *open_library_or_skip(n2_op_id op, n2_precision precision) {
    const n2_backend *cuda = open_cuda_as_or_skip(precision);
    const char *about;
    if (!n2_cuda_has_library(cuda, (int)op, &about)) {
        printf("no library: skipped. %s\n", about);
        exit(77);
    }
    n2_cuda_use_library(cuda, N2_LIBRARY_ALWAYS);
    return cuda;
}

/* A graph with one output, on some backend. */
typedef struct problem {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *graph;
    n2_plan *plan;
} problem;

typedef n2_node build(problem *p, const void *arg);

static problem start(const n2_backend *backend, build *f, const void *arg) {
    problem p = {.ctx = new_ctx(1)};
    assert_int_equal(n2_store_new(p.ctx, backend->bytes, &p.store), N2CE_OK);
    p.graph = n2_graph_new(p.store);
    assert_non_null(p.graph);
    const n2_node y = f(&p, arg);
    if (n2_plan_compile(p.graph, backend, &y, 1, &p.plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(p.ctx));
    n2_plan_seed(p.plan, 5, 0);
    return p;
}

static void stop(problem *p) {
    n2_plan_free(p->plan);
    n2_graph_free(p->graph);
    n2_store_free(p->store);
    n2ce_ctx_free(p->ctx);
}

static void run(problem *p, int n) {
    if (n2_plan_run_many(p->plan, (uint64_t)n) != N2CE_OK) fail_msg("%s", n2ce_errmsg(p->ctx));
}

/* Numbers between -1 and 1 that a float32 has exactly. */
static n2_node numbers(problem *p, const char *name, n2_shape shape) {
    n2_tensor *t = n2_store_add(p->store, name, shape);
    const size_t n = (size_t)n2_elements(shape);
    double *x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    assert_non_null(t);
    uint32_t state = (uint32_t)name[0] * 2654435761u + 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (double)(state >> 8) / 8388608.0 - 1;
    }
    n2_tensor_set(p->store, t, x);
    free(x);
    return n2g_read(p->graph, t);
}

/* The output of one run; the caller frees it. */
static double *output_of(const n2_backend *backend, build *f, const void *arg, size_t n) {
    problem p = start(backend, f, arg);
    double *out = calloc(n, sizeof *out);
    assert_non_null(out);
    run(&p, 1);
    n2_plan_get(p.plan, 0, out);
    stop(&p);
    return out;
}

/* As near to ref as other ops are, of the largest number; and by as many calls as expected. */
static void check_output(const n2_backend *cuda, double close, build *f, const void *arg, size_t n,
                         size_t calls) {
    const size_t before = n2_cuda_library_calls(cuda);
    double *x = output_of(cuda, f, arg, n), *y = output_of(n2_ref_backend(), f, arg, n);
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(y[i]));
    for (size_t i = 0; i < n; i++) assert_close(x[i], y[i], 0, close * most);
    assert_true(n2_cuda_library_calls(cuda) - before >= calls);
    free(x);
    free(y);
}

#endif
