/* How a row of the operator table is checked: a problem of each shape, its derivatives against
 * differences, and a fast backend against ref. For test_ops.c. */
#ifndef TEST_OP_CHECK_H
#define TEST_OP_CHECK_H

#include "fast_backend.h"
#include "op_table.h"
#include "ref/ref.h"

#include "base/random.h"
#include "rewrite/rewrites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one row, one shape, one backend --------------------------------------- */

static const int thread_counts[] = {1, 2, 7};
static n2ce_ctx *contexts[COUNT_OF(thread_counts)];
static bool seen[N2_OP_COUNT];

/* L = sum(w y) and T = sum(v dL/dx). Outputs: L, T, y, dL/dx of each input that has a gradient,
 * dT/dx likewise. */
typedef struct problem {
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
    n2_tensor *x[MOST_INPUTS]; /* those with a gradient */
    size_t n_x, n_outputs;
    n2_node outputs[MOST_OUTPUTS];
} problem;

static double *doubles(size_t n) {
    double *p = calloc(n + 1, sizeof *p);
    assert_non_null(p);
    return p;
}

/* Numbers that float holds, a function of the stream. */
static void fill(n2_store *store, n2_tensor *t, uint32_t stream, double low, double high,
                 int64_t below, bool grid) {
    const size_t n = (size_t)n2_elements(t->shape);
    double *x = doubles(n);
    float *u = malloc((n + 1) * sizeof *u);
    assert_non_null(u);
    n2_fill_uniform((n2_stream){20240607, stream, 0}, 0, n, u);
    for (size_t i = 0; i < n; i++) {
        x[i] = (double)(float)(low + (high - low) * (double)u[i]);
        if (fabs(x[i]) < 0.05) x[i] += x[i] < 0 ? -0.0625 : 0.0625;
        if (grid) x[i] = floor(x[i] * 64) / 64 + (stream + 1) / 256.0;
        if (below) x[i] = fmin(floor((double)u[i] * (double)below), (double)below - 1);
    }
    n2_tensor_set(store, t, x);
    free(x);
    free(u);
}

static n2_node add_tensor(problem *p, const char *name, n2_shape shape, n2_tensor **out) {
    *out = n2_store_add(p->store, name, shape);
    assert_non_null(*out);
    return n2g_read(p->g, *out);
}

/* sum(weights x), the weights a tensor of their own. */
static n2_node weighted_sum(problem *p, const char *name, uint32_t stream, n2_node x) {
    n2_tensor *w;
    const n2_node weights = add_tensor(p, name, n2_shape_at(p->g, x), &w);
    fill(p->store, w, stream, 0.5, 1.5, 0, false);
    return n2g_total(p->g, n2g_mul(p->g, weights, x));
}

static void build(problem *p, const op_row *row, const op_case *c) {
    static const char *const names[] = {"x0", "x1", "x2", "x3"};
    static const char *const weights[] = {"v0", "v1", "v2", "v3"};
    n2_node in[MOST_INPUTS], x[MOST_INPUTS], *out = p->outputs;
    for (int k = 0; k < c->n; k++) {
        n2_tensor *t;
        in[k] = add_tensor(p, names[k], c->in[k], &t);
        fill(p->store, t, (uint32_t)k, row->low, row->high, c->below[k], row->grid);
        if (c->below[k]) continue;
        p->x[p->n_x] = t;
        x[p->n_x++] = in[k];
    }
    out[2] = row->build(p->g, in);
    out[0] = weighted_sum(p, "w", 8, out[2]);
    n2g_grad(p->g, out[0], x, p->n_x, out + 3);
    p->n_outputs = 3 + p->n_x;
    out[1] = n2g_constant(p->g, 0);
    for (size_t k = 0; k < p->n_x && !row->flat; k++)
        out[1] = n2g_add(p->g, out[1], weighted_sum(p, weights[k], 16 + (uint32_t)k, out[3 + k]));
    if (row->flat || !p->n_x) return;
    n2g_grad(p->g, out[1], x, p->n_x, out + 3 + p->n_x);
    p->n_outputs += p->n_x;
}

static problem open_problem(const op_row *row, const op_case *c, const n2_backend *backend,
                            n2ce_ctx *ctx) {
    problem p = {0};
    assert_int_equal(n2_store_new(ctx, backend->bytes, &p.store), N2CE_OK);
    p.g = n2_graph_new(p.store);
    assert_non_null(p.g);
    build(&p, row, c);
    if (n2_plan_compile(p.g, backend, p.outputs, p.n_outputs, &p.plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(ctx));
    for (uint32_t id = 1; id <= n2_graph_size(p.g); id++) seen[n2_op_of(p.g, (n2_node){id})] = true;
    assert_int_equal(n2_plan_run(p.plan), N2CE_OK);
    return p;
}

static void close_problem(problem *p) {
    n2_plan_free(p->plan);
    n2_graph_free(p->g);
    n2_store_free(p->store);
}

static size_t output_size(const problem *p, size_t k) {
    return (size_t)n2_elements(n2_shape_at(p->g, p->outputs[k]));
}

static double *output(const problem *p, size_t k) {
    double *values = doubles(output_size(p, k));
    n2_plan_get(p->plan, k, values);
    return values;
}

/* ---- derivatives ----------------------------------------------------------- */

/* An input with a gradient, the gradients of L and T by it (T's may be missing), and where it
 * is. */
typedef struct probe {
    n2_tensor *t;
    double *x, *gradient[2], *direction;
    size_t n;
} probe;

/* L and T at x + step direction. */
static void values_at(problem *p, const probe *q, double step, double values[2]) {
    double *moved = doubles(q->n);
    for (size_t i = 0; i < q->n; i++) moved[i] = q->x[i] + step * q->direction[i];
    n2_tensor_set(p->store, q->t, moved);
    assert_int_equal(n2_plan_run(p->plan), N2CE_OK);
    for (size_t k = 0; k < 2; k++) values[k] = n2_plan_scalar(p->plan, k);
    free(moved);
}

/* The derivative along a direction is what central differences say. */
static void check_direction(problem *p, const probe *q) {
    const double h = 1e-5;
    double above[2], below[2];
    values_at(p, q, h, above);
    values_at(p, q, -h, below);
    for (size_t k = 0; k < 2 && q->gradient[k]; k++) {
        double expected = 0, size = 0;
        for (size_t i = 0; i < q->n; i++) {
            expected += q->gradient[k][i] * q->direction[i];
            size += fabs(q->gradient[k][i] * q->direction[i]);
        }
        const double found = (above[k] - below[k]) / (2 * h);
        const double rounding = 1e-10 * fabs(above[k]); /* of the scalar itself, over h */
        if (!is_close(expected, found, 0, 1e-6 * size + 1e-8 + rounding))
            print_error("d %s / d %s\n", k ? "T" : "L", q->t->name);
        assert_close(expected, found, 0, 1e-6 * size + 1e-8 + rounding);
    }
}

/* As many as keep the whole program quick. */
static size_t affordable_probes(const problem *p) {
    const double n = 2e5 / n2_plan_measure(p->plan).flops;
    return n > 10 ? 10 : (size_t)n;
}

/* Along single elements (all, or some of many), and along a direction that moves everything. */
static void check_all_directions(problem *p, const probe *q) {
    const size_t affordable = affordable_probes(p), n = q->n < affordable ? q->n : affordable;
    for (size_t k = 0; k < n; k++) {
        const size_t i = k * (q->n - 1) / (n > 1 ? n - 1 : 1);
        q->direction[i] = 1;
        check_direction(p, q);
        q->direction[i] = 0;
    }
    uint32_t random = 12345;
    for (size_t i = 0; i < q->n; i++) {
        random = random * 1664525u + 1013904223u;
        q->direction[i] = random >> 31 ? 1 : -1;
    }
    if (q->n > n) check_direction(p, q);
    n2_tensor_set(p->store, q->t, q->x);
    assert_int_equal(n2_plan_run(p->plan), N2CE_OK);
}

static void check_derivatives(problem *p, const op_row *row) {
    for (size_t k = 0; k < p->n_x; k++) {
        const size_t n = (size_t)n2_elements(p->x[k]->shape);
        probe q = {p->x[k], doubles(n), {output(p, 3 + k), NULL}, doubles(n), n};
        n2_tensor_get(p->store, q.t, q.x);
        if (row->flat) {
            for (size_t i = 0; i < n; i++) assert_true(q.gradient[0][i] == 0);
        } else {
            q.gradient[1] = output(p, 3 + p->n_x + k);
            check_all_directions(p, &q);
        }
        free(q.x);
        free(q.gradient[0]);
        free(q.gradient[1]);
        free(q.direction);
    }
}

/* ---- cpu ------------------------------------------------------------------- */

/* The largest error is small against the largest number. */
static void check_near(const op_row *row, const problem *ref, const problem *cpu, size_t k) {
    const size_t n = output_size(ref, k);
    double *expected = output(ref, k), *found = output(cpu, k), largest = 0;
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(expected[i]));
    const double relative = fast_tolerance(row->relative > 0 ? row->relative : 1e-5, 4e-3);
    for (size_t i = 0; i < n; i++) {
        const double allowed = relative * largest + row->absolute;
        if (!is_close(found[i], expected[i], 0, allowed))
            print_error("output %zu, element %zu of %zu\n", k, i, n);
        assert_close(found[i], expected[i], 0, allowed);
    }
    free(expected);
    free(found);
}

static void check_same_bytes(const problem *a, const problem *b) {
    for (size_t k = 0; k < a->n_outputs; k++) {
        double *x = output(a, k), *y = output(b, k); /* and a zero behind each */
        assert_memory_equal(x, y, (output_size(a, k) + 1) * sizeof *x);
        free(x);
        free(y);
    }
}

static void print_case(const op_row *row, const op_case *c) {
    char text[64];
    print_error("%s of", row->name);
    for (int k = 0; k < c->n; k++) print_error(" %s", n2_shape_text(c->in[k], text));
    print_error(":\n");
}

static const op_row *current_row;
static const op_case *current_case;

static void check_case(const op_row *row, const op_case *c) {
    current_row = row;
    current_case = c;
    problem ref = open_problem(row, c, n2_ref_backend(), contexts[0]);
    if (!getenv("N2CE_ISA") && !is_cuda()) check_derivatives(&ref, row);
    problem cpu = open_problem(row, c, fast_backend(), contexts[0]);
    for (size_t k = 2; k < ref.n_outputs; k++) check_near(row, &ref, &cpu, k);
    for (size_t i = 1; i < (is_cuda() ? 2 : COUNT_OF(thread_counts)); i++) {
        problem other = open_problem(row, c, fast_backend(), contexts[i]);
        check_same_bytes(&cpu, &other);
        close_problem(&other);
    }
    current_case = NULL;
    close_problem(&ref);
    close_problem(&cpu);
}

static void check_row(void **state) {
    const op_row *row = *state;
    for (size_t i = 0; i < row->n_cases; i++) check_case(row, &row->cases[i]);
}

/* Tells where a row failed. */
static int after_row(void **state) {
    (void)state;
    if (current_case) print_case(current_row, current_case);
    current_case = NULL;
    return 0;
}

/* ---- a graph of one's own --------------------------------------------------- */

typedef struct bench {
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
    const n2_backend *backend;
} bench;

static const n2_backend *backend_at(int i) { return i ? fast_backend() : n2_ref_backend(); }

static bench open_bench(const n2_backend *backend) {
    bench b = {.backend = backend};
    assert_int_equal(n2_store_new(contexts[1], backend->bytes, &b.store), N2CE_OK);
    b.g = n2_graph_new(b.store);
    assert_non_null(b.g);
    return b;
}

static void compile(bench *b, const n2_node *outputs, size_t n) {
    if (n2_plan_compile(b->g, b->backend, outputs, n, &b->plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(contexts[1]));
    for (uint32_t id = 1; id <= n2_graph_size(b->g); id++)
        seen[n2_op_of(b->g, (n2_node){id})] = true;
}

static void close_bench(bench *b) {
    n2_plan_free(b->plan);
    n2_graph_free(b->g);
    n2_store_free(b->store);
}

/* The gradient and the other backend agree with an op that does something else altogether; what
 * PyTorch has too is compared with it in test_golden.c, and the rest here. */
static void check_values(const n2_backend *backend, build_fn *make, const double *x, n2_shape shape,
                         const double *expected, size_t n) {
    bench b = open_bench(backend);
    n2_tensor *t = n2_store_add(b.store, "x", shape);
    n2_tensor_set(b.store, t, x);
    const n2_node in = n2g_read(b.g, t), y = make(b.g, &in);
    compile(&b, &y, 1);
    assert_int_equal(n2_elements(n2_shape_at(b.g, y)), n);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    double *found = doubles(n);
    n2_plan_get(b.plan, 0, found);
    for (size_t i = 0; i < n; i++) assert_close(found[i], expected[i], 1e-6, 0);
    free(found);
    close_bench(&b);
}

#endif
