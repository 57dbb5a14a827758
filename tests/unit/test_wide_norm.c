/* Norms that have a launch of their own (cuda/wide/norm.h), and their gradients: channels in slices
 * of every kind, pictures that fit a block's memory and such that do not, in 16 bits where the
 * backend has them.
 *
 * N2CE_TEST_DEVICE names the backend under test: fast_backend.h. */
#include "close.h"
#include "contexts.h"
#include "fast_backend.h"
#include "ref/ref.h"

#include "engine/plan.h"
#include "rewrite/rewrites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct problem {
    n2_shape x;
    n2_norm norm;
    bool each; /* pictures have parameters of their own */
} problem;

enum { INPUTS = 4, OUTPUTS = 1 + INPUTS };

static n2_node numbers(n2_graph *g, n2_store *store, const char *name, n2_shape shape,
                       double middle) {
    const size_t n = (size_t)n2_elements(shape);
    double *x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = (double)(float)(middle + sin(0.37 * (double)i * (double)i + (double)name[0]));
    n2_tensor *t = n2_store_add(store, name, shape);
    assert_non_null(t);
    n2_tensor_set(store, t, x);
    free(x);
    return n2g_read(g, t);
}

/* sum(w tanh(norm(norm(2 x)))), which has values in 16 bits before, between and behind the norms;
 * outputs: it, and its gradients by x and the parameters of the first norm. */
static void build(n2_graph *g, n2_store *store, const problem *p, n2_node out[OUTPUTS]) {
    const int64_t n = p->x.dim[0], c = p->x.dim[p->x.rank - 1];
    const n2_shape parameter = p->each ? n2_dims(n, c) : n2_dims(c);
    const n2_node in[INPUTS] = {
        numbers(g, store, "x", p->x, 0.3), numbers(g, store, "shift", parameter, 0),
        numbers(g, store, "gamma", parameter, 1), numbers(g, store, "beta", parameter, 0)};
    const n2_norm only = {p->norm.groups, N2_ACT_NONE, 0.1, 0};
    const n2_node first = n2g_norm(g, n2g_scale(g, in[0], 2), in[1], in[2], in[3], p->norm);
    const n2_node second = n2g_norm(g, first, N2_NONE, N2_NONE, in[3], only);
    const n2_node weights = numbers(g, store, "weights", p->x, 0.1);
    out[0] = n2g_total(g, n2g_mul(g, weights, n2g_tanh(g, second)));
    n2g_grad(g, out[0], in, INPUTS, out + 1);
}

/* Values of all outputs, one after the other; returns how many. */
static size_t run(const n2_backend *backend, const problem *p, double *values) {
    n2ce_ctx *ctx = new_ctx(2);
    n2_store *store;
    assert_int_equal(n2_store_new(ctx, backend->bytes, &store), N2CE_OK);
    n2_graph *g = n2_graph_new(store);
    n2_node out[OUTPUTS];
    n2_plan *plan;
    build(g, store, p, out);
    if (n2_plan_compile(g, backend, out, OUTPUTS, &plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(ctx));
    for (int k = 0; k < 2; k++) assert_int_equal(n2_plan_run(plan), N2CE_OK);
    size_t at = 0;
    for (size_t k = 0; k < OUTPUTS; at += (size_t)n2_elements(n2_shape_at(g, out[k++])))
        n2_plan_get(plan, k, values + at);
    n2_plan_free(plan);
    n2_graph_free(g);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
    return at;
}

/* Of all gradients: the largest error against the largest number; in 16 bits, where a number near 0
 * may come out on the other side of a LeakyReLU, the root of their mean squares. */
static double error_of(const double *found, const double *expected, size_t n, bool narrow) {
    double largest = 1, off = 0, square = 0, square_off = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = found[i] - expected[i];
        largest = fmax(largest, fabs(expected[i]));
        off = fmax(off, isnan(d) ? (double)INFINITY : fabs(d));
        square += expected[i] * expected[i];
        square_off += d * d;
    }
    return narrow ? sqrt(square_off / square) : off / largest;
}

static void check(const problem *p) {
    const size_t most = 1 + 4 * (size_t)n2_elements(p->x);
    double *expected = calloc(most, sizeof *expected), *found = calloc(most, sizeof *found);
    assert_true(expected && found);
    const size_t n = run(n2_ref_backend(), p, expected);
    assert_int_equal(run(fast_backend(), p, found), n);
    const char *device = getenv("N2CE_TEST_DEVICE");
    const bool narrow = device && (strstr(device, "bf16") || strstr(device, "half"));
    const double error = error_of(found + 1, expected + 1, n - 1, narrow);
    if (!(error <= (narrow ? 2e-2 : 1e-5)))
        fail_msg("%s, %d groups, activation %d: gradients are off by %.3g of the largest",
                 n2_shape_text(p->x, (char[64]){0}), p->norm.groups, p->norm.act, error);
    free(expected);
    free(found);
}

static void all_shapes(void **state) {
    (void)state;
    const n2_norm silu = {1, N2_ACT_SILU, 1e-3, 0}, lrelu = {1, N2_ACT_LRELU, 1e-3, 0.2};
    static const struct {
        int64_t n, h, w, c;
        int32_t groups;
    } shapes[] = {
        {3, 5, 7, 64, 16},    /* groups of half a vector */
        {2, 9, 9, 24, 4},     /* of three quarters of one */
        {2, 8, 8, 96, 16},    /* the same; several slices */
        {5, 1, 1, 64, 64},    /* a pixel, instance norm */
        {2, 4, 4, 512, 512},  /* many channels */
        {2, 3, 5, 72, 3},     /* whole vectors, not of a power of two */
        {2, 6, 6, 40, 1},     /* one group */
        {1, 17, 19, 2048, 1}, /* as wide as it may be, and more than fits */
        {1, 3, 3, 2056, 1},   /* and wider */
        {3, 4, 5, 20, 5},     /* no whole vectors */
        {1, 40, 50, 64, 1},   /* a cluster of blocks */
        {1, 33, 65, 16, 16},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int k = 0; k < 2; k++) {
            const n2_shape s = n2_dims(shapes[i].n, shapes[i].h, shapes[i].w, shapes[i].c);
            problem p = {.x = s, .norm = k ? lrelu : silu, .each = (i + (size_t)k) % 2 == 0};
            p.norm.groups = shapes[i].groups;
            const bool many = n2_elements(s) > 1 << 18; /* some are too near 0 for a LeakyReLU */
            if (!k || !many) check(&p);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
