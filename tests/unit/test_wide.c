/* Wide jobs, which have a launch of their own (cuda/wide/wide.h): passes over pictures of more than
 * a million numbers, with every way of broadcasting, beside other jobs of the same level.
 *
 * N2CE_TEST_DEVICE names the backend under test: fast_backend.h. */
#include "close.h"
#include "contexts.h"
#include "fast_backend.h"
#include "ref/ref.h"

#include "engine/plan.h"
#include "rewrite/rewrites.h"

#include <stdlib.h>

typedef struct bench {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
} bench;

static bench open_bench(const n2_backend *backend) {
    bench b = {.ctx = new_ctx(2)};
    assert_int_equal(n2_store_new(b.ctx, backend->bytes, &b.store), N2CE_OK);
    assert_non_null(b.g = n2_graph_new(b.store));
    return b;
}

static void close_bench(bench *b) {
    n2_plan_free(b->plan);
    n2_graph_free(b->g);
    n2_store_free(b->store);
    n2ce_ctx_free(b->ctx);
}

static n2_node numbers(bench *b, const char *name, n2_shape shape, double phase) {
    const size_t n = (size_t)n2_elements(shape);
    double *x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = (double)(float)(sin(0.37 * (double)i + phase) + 0.1);
    n2_tensor *t = n2_store_add(b->store, name, shape);
    assert_non_null(t);
    n2_tensor_set(b->store, t, x);
    free(x);
    return n2g_read(b->g, t);
}

/* Operands of every kind; a small sum beside; the last output needs all others. */
enum { OUTPUTS = 4 };
static void build(bench *b, n2_shape s, n2_node out[OUTPUTS]) {
    n2_graph *g = b->g;
    const int64_t n = s.dim[0], c = s.dim[3];
    const n2_node x = numbers(b, "x", s, 0), y = numbers(b, "y", s, 1);
    const n2_node bias = numbers(b, "bias", n2_dims(c), 2);
    const n2_node scale = numbers(b, "scale", n2_dims(n, 1, 1, c), 3);
    const n2_node one = numbers(b, "one", n2_dims(n, 1, 1, 1), 4);
    const n2_node column = numbers(b, "column", n2_dims(s.dim[1], 1, 1), 5);
    out[0] = n2g_scale(g, n2g_add(g, n2g_add(g, x, bias), y), 0.7071);
    out[1] = n2g_mul(g, n2g_mul(g, x, scale), one);
    out[2] = n2g_scale(g, n2g_total(g, n2g_mul(g, scale, scale)), 1e-3);
    const n2_node rest = n2g_mul(g, n2g_add(g, n2g_silu(g, out[0]), column), out[2]);
    out[3] = n2g_maximum(g, n2g_sub(g, n2g_gelu(g, out[1]), rest), n2g_constant(g, -0.5));
}

static void run(const n2_backend *backend, n2_shape s, double *values, int runs) {
    bench b = open_bench(backend);
    n2_node out[OUTPUTS];
    build(&b, s, out);
    assert_int_equal(n2_plan_compile(b.g, backend, out, OUTPUTS, &b.plan), N2CE_OK);
    for (int k = 0; k < runs; k++) assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    const size_t n = (size_t)n2_elements(s);
    for (size_t k = 0, at = 0; k < OUTPUTS; at += k++ == 2 ? 1 : n)
        n2_plan_get(b.plan, k, values + at);
    close_bench(&b);
}

static void check(n2_shape s) {
    const size_t n = 3 * (size_t)n2_elements(s) + 1;
    double *expected = calloc(n, sizeof *expected), *found = calloc(n, sizeof *found);
    assert_true(expected && found);
    run(n2_ref_backend(), s, expected, 1);
    run(fast_backend(), s, found, 2);
    for (size_t i = 0; i < n; i++)
        if (fabs(found[i] - expected[i]) > 1e-5 * (1 + fabs(expected[i])))
            fail_msg("%s element %zu is %.9g, not %.9g", n2_shape_text(s, (char[64]){0}), i,
                     found[i], expected[i]);
    free(expected);
    free(found);
}

/* Channels of whole vectors; and such that vectors end in the middle of a row, or of everything. */
static void passes_broadcast(void **state) {
    (void)state;
    check(n2_dims(8, 16, 64, 128));
    check(n2_dims(5, 129, 543, 3));
}

/* Launches by their time, with the ops behind them; the runs of a profile count as runs. */
static void a_profile_names_what_is_launched(void **state) {
    (void)state;
    bench b = open_bench(fast_backend());
    n2_node out[OUTPUTS];
    build(&b, n2_dims(8, 16, 64, 128), out);
    n2_text text = n2_text_new(b.ctx);
    assert_int_equal(n2_plan_compile(b.g, fast_backend(), out, OUTPUTS, &b.plan), N2CE_OK);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    assert_int_equal(n2_plan_profile(b.plan, &text), N2CE_OK);
    assert_int_equal(n2_plan_runs(b.plan), is_cuda() ? 4 : 1);
    for (size_t k = 0; is_cuda() && k < 4; k++) {
        static const char *const words[] = {" launches, one after the other", " wide", " level 0",
                                            "[8 x 16 x 64 x 128]"};
        if (!strstr(text.data, words[k])) fail_msg("no \"%s\" in %s", words[k], text.data);
    }
    n2_text_free(&text);
    close_bench(&b);
}

/* ---- passes that become one ---------------------------------------------- */

typedef size_t build_chain(bench *b, n2_shape s, n2_node *out);

static size_t one_sum(bench *b, n2_shape s, n2_node *out) {
    out[0] = n2g_add(b->g, numbers(b, "x", s, 0), numbers(b, "y", s, 1));
    return 1;
}

static size_t residual_sum(bench *b, n2_shape s, n2_node *out) {
    const n2_node h = numbers(b, "h", s, 0), skip = numbers(b, "skip", s, 1);
    const n2_node bias = numbers(b, "bias", n2_dims(s.dim[3]), 2);
    out[0] = n2g_scale(b->g, n2g_add(b->g, n2g_add(b->g, h, bias), skip), 0.7071);
    return 1;
}

/* Activations behind sums, and the gate of a gradient. */
static size_t activations(bench *b, n2_shape s, n2_node *out) {
    const n2_node x = numbers(b, "x", s, 0), y = numbers(b, "y", s, 1);
    out[0] = n2g_lrelu(b->g, n2g_sub(b->g, x, y), 0.2);
    return 1;
}
static size_t smooth_ones(bench *b, n2_shape s, n2_node *out) {
    const n2_node bias = numbers(b, "bias", n2_dims(s.dim[3]), 2);
    out[0] = n2g_tanh(b->g, n2g_add(b->g, numbers(b, "x", s, 0), bias));
    return 1;
}
static size_t gate(bench *b, n2_shape s, n2_node *out) {
    const n2_node x = numbers(b, "x", s, 0), y = n2g_lrelu(b->g, x, 0.2);
    const n2_node loss = n2g_total(b->g, n2g_mul(b->g, y, numbers(b, "y", s, 1)));
    n2g_grad(b->g, loss, &x, 1, out);
    return 1;
}

static size_t three_gradients(bench *b, n2_shape s, n2_node *out) {
    const n2_node sum = n2g_add(b->g, numbers(b, "x", s, 0), numbers(b, "y", s, 1));
    out[0] = n2g_add(b->g, numbers(b, "z", s, 2), sum);
    return 1;
}

/* What is made in between is an output too. */
static size_t two_outputs(bench *b, n2_shape s, n2_node *out) {
    out[0] = n2g_silu(b->g, numbers(b, "x", s, 0));
    out[1] = n2g_mul(b->g, n2g_add(b->g, out[0], numbers(b, "y", s, 1)), out[0]);
    return 2;
}

/* Over pixels and pictures, over pixels, over all: slices of them, and whole ones. */
static size_t sums(bench *b, n2_shape s, n2_node *out) {
    const n2_node x = numbers(b, "x", s, 0);
    out[0] = n2g_sum(b->g, x, n2_axis(0) | n2_axis(1) | n2_axis(2));
    out[1] = n2g_sum(b->g, x, n2_axis(1) | n2_axis(2));
    out[2] = n2g_sum(b->g, n2g_mul(b->g, x, x), n2_axis(0) | n2_axis(1));
    out[3] = n2g_total(b->g, x);
    return 4;
}

/* Columns of something wider are written by who makes them, and the other size is read. */
static size_t joined(bench *b, n2_shape s, n2_node *out) {
    const n2_shape half = n2_dims(s.dim[0], s.dim[1] / 2, s.dim[2] / 2, s.dim[3]);
    const n2_node up = n2g_upsample2(b->g, numbers(b, "x", half, 0));
    const n2_node y = numbers(b, "y", s, 1);
    out[0] = n2g_concat(b->g, n2g_add(b->g, up, y), n2g_scale(b->g, y, 3), 3);
    return 1;
}

static size_t launches_of(build_chain *chain, const n2_backend *backend, n2_shape s, double *x) {
    bench b = open_bench(backend);
    n2_node out[OUTPUTS];
    const size_t n = chain(&b, s, out);
    assert_int_equal(n2_plan_compile(b.g, backend, out, n, &b.plan), N2CE_OK);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    for (size_t k = 0, at = 0; k < n; at += (size_t)n2_elements(n2_shape_at(b.g, out[k++])))
        n2_plan_get(b.plan, k, x + at);
    const size_t launches = n2_plan_measure(b.plan).launches;
    close_bench(&b);
    return launches;
}

/* As many launches as so many sums have, and the same numbers as ref has. */
static void check_chain(build_chain *chain, size_t sums) {
    const n2_shape s = n2_dims(8, 32, 64, 64);
    const size_t n = 2 * (size_t)n2_elements(s);
    double *expected = calloc(n, sizeof *expected), *found = calloc(n, sizeof *found);
    assert_true(expected && found);
    const size_t one = launches_of(one_sum, fast_backend(), s, found);
    memset(found, 0, n * sizeof *found);
    launches_of(chain, n2_ref_backend(), s, expected);
    assert_int_equal(launches_of(chain, fast_backend(), s, found), is_cuda() ? one + sums - 1 : 0);
    for (size_t i = 0; i < n; i++)
        if (fabs(found[i] - expected[i]) > 1e-5 * (1 + fabs(expected[i])))
            fail_msg("element %zu is %.9g, not %.9g", i, found[i], expected[i]);
    free(expected);
    free(found);
}

static void gates_are_passes(void **state) {
    (void)state;
    enum { ROOM = 1 << 21 };
    const n2_shape s = n2_dims(8, 32, 64, 64);
    double *expected = calloc(ROOM, sizeof *expected), *found = calloc(ROOM, sizeof *found);
    assert_true(expected && found);
    launches_of(gate, n2_ref_backend(), s, expected);
    launches_of(gate, fast_backend(), s, found);
    for (size_t i = 0; i < ROOM; i++) assert_close(found[i], expected[i], 1e-5, 1e-5);
    free(expected);
    free(found);
}

/* The gradient of a norm, to which that of another reader is added. */
static size_t norm_and(bench *b, n2_shape s, n2_node *out, bool other) {
    const n2_node x = numbers(b, "x", s, 0), w = numbers(b, "w", s, 1), v = numbers(b, "v", s, 2);
    const n2_norm norm = {.groups = 8, .act = N2_ACT_SILU, .eps = 1e-5};
    const n2_node y = n2g_norm(b->g, x, N2_NONE, N2_NONE, N2_NONE, norm);
    n2_node loss = n2g_total(b->g, n2g_mul(b->g, y, w));
    if (other) loss = n2g_add(b->g, loss, n2g_total(b->g, n2g_mul(b->g, x, v)));
    n2g_grad(b->g, loss, &x, 1, out);
    return 1;
}
static size_t norm_alone(bench *b, n2_shape s, n2_node *out) { return norm_and(b, s, out, false); }
static size_t norm_and_other(bench *b, n2_shape s, n2_node *out) {
    return norm_and(b, s, out, true);
}

static void norms_add_to_their_gradients(void **state) {
    (void)state;
    enum { ROOM = 1 << 21 };
    const n2_shape s = n2_dims(8, 32, 64, 64);
    double *expected = calloc(ROOM, sizeof *expected), *found = calloc(ROOM, sizeof *found);
    assert_true(expected && found);
    const size_t alone = launches_of(norm_alone, fast_backend(), s, found);
    launches_of(norm_and_other, n2_ref_backend(), s, expected);
    assert_int_equal(launches_of(norm_and_other, fast_backend(), s, found), alone);
    for (size_t i = 0; i < ROOM; i++) assert_close(found[i], expected[i], 1e-4, 1e-4);
    free(expected);
    free(found);
}

static void sums_of_pictures(void **state) {
    (void)state;
    static const int64_t shapes[][4] = {{8, 32, 64, 64}, {5, 129, 543, 3}, {2, 3, 2, 90000}};
    for (size_t k = 0; k < COUNT_OF(shapes); k++) {
        enum { ROOM = 1 << 19 };
        const n2_shape s = n2_shape_of(shapes[k], 4);
        double *expected = calloc(ROOM, sizeof *expected), *found = calloc(ROOM, sizeof *found);
        assert_true(expected && found);
        launches_of(sums, n2_ref_backend(), s, expected);
        launches_of(sums, fast_backend(), s, found);
        for (size_t i = 0; i < ROOM; i++) /* floats, up to 350,000 to a sum */
            assert_close(found[i], expected[i], 3e-5, 0.1);
        free(expected);
        free(found);
    }
}

static void passes_become_one(void **state) {
    (void)state;
    check_chain(residual_sum, 1);
    check_chain(three_gradients, 1);
    check_chain(activations, 1);
    check_chain(smooth_ones, 1);
    check_chain(two_outputs, 1);
    check_chain(joined, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_broadcast), cmocka_unit_test(passes_become_one),
        cmocka_unit_test(sums_of_pictures), cmocka_unit_test(norms_add_to_their_gradients),
        cmocka_unit_test(gates_are_passes), cmocka_unit_test(a_profile_names_what_is_launched)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
