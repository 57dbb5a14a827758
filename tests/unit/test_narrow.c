/* A network of pictures whose inside lies in memory in 16 bits, trained a few steps beside the same
 * in double precision. Gradient descent with a small rate, so that errors do not grow: what is
 * allowed is a few units of the narrow type's last digit, of the largest number there is.
 *
 * N2CE_TEST_DEVICE names the backend under test, cuda-bf16 or cuda-half: fast_backend.h. */
#include "close.h"
#include "contexts.h"
#include "fast_backend.h"
#include "ref/ref.h"

#include "engine/plan.h"
#include "nn/nn.h"
#include "rewrite/rewrites.h"

#include <stdlib.h>
#include <string.h>

typedef struct bench {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
} bench;

typedef struct sizes {
    int64_t n, side, c;
} sizes;

enum { PARAMETERS = 7, STEPS = 4 };

static n2_tensor *tensor(bench *b, const char *name, n2_shape shape, double size, double middle) {
    const size_t n = (size_t)n2_elements(shape);
    double *x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = (double)(float)(middle + size * sin(0.61 * (double)i + (double)name[0]));
    n2_tensor *t = n2_store_add(b->store, name, shape);
    assert_non_null(t);
    n2_tensor_set(b->store, t, x);
    free(x);
    return t;
}

/* The mean square of conv(up(down(norm(conv(x) + bias) + skip) s)) - y, and its descent. */
static n2_node build(bench *b, sizes s, n2_tensor *w[PARAMETERS], n2_node d[PARAMETERS]) {
    static const n2_window window = {1, 1, 1, 1, 1, 1};
    n2_graph *g = b->g;
    const int64_t c = s.c;
    const n2_shape small = n2_dims(s.n, s.side, s.side, 3);
    n2_node p[PARAMETERS];
    w[0] = tensor(b, "a", n2_dims(3, 3, 3, c), 0.4, 0);
    w[1] = tensor(b, "b", n2_dims(c), 0.3, 0);
    w[2] = tensor(b, "c", n2_dims(c), 0.3, 1);
    w[3] = tensor(b, "d", n2_dims(c), 0.3, 0);
    w[4] = tensor(b, "e", n2_dims(3, 3, c, c), 0.2, 0);
    w[5] = tensor(b, "f", n2_dims(3, 3, 2 * c, 3), 0.2, 0);
    w[6] = tensor(b, "g", n2_dims(3), 0.2, 0);
    for (int k = 0; k < PARAMETERS; k++) p[k] = n2g_read(g, w[k]);
    const n2_node x = n2g_read(g, tensor(b, "x", small, 1, 0));
    const n2_node y = n2g_read(g, tensor(b, "y", small, 1, 0.2));
    const n2_node h = n2g_add(g, n2g_conv2d(g, x, p[0], window), p[1]);
    const n2_node normed = n2g_norm(g, h, N2_NONE, p[2], p[3],
                                    (n2_norm){.groups = 1, .act = N2_ACT_SILU, .eps = 1e-5});
    const n2_node second = n2g_conv2d(g, normed, p[4], window);
    const n2_node joined = n2g_scale(g, n2g_add(g, second, h), 0.70710678);
    const n2_node around = n2g_upsample2(g, n2g_avg_pool2(g, joined));
    const n2_node both = n2g_concat(g, n2g_silu(g, around), joined, 3);
    const n2_node out = n2g_add(g, n2g_conv2d(g, both, p[5], window), p[6]);
    const n2_node miss = n2g_sub(g, out, y);
    const n2_node loss =
        n2g_scale(g, n2g_total(g, n2g_mul(g, miss, miss)), 1 / (double)n2_elements(small));
    n2g_grad(g, loss, p, PARAMETERS, d);
    for (int k = 0; k < PARAMETERS; k++)
        n2g_assign(g, w[k], n2g_sub(g, p[k], n2g_scale(g, d[k], 0.02)));
    return loss;
}

/* Losses, then gradients of the last step. */
static size_t train(const n2_backend *backend, sizes s, double *found) {
    bench b = {.ctx = new_ctx(2)};
    n2_tensor *w[PARAMETERS];
    n2_node out[PARAMETERS + 1];
    assert_int_equal(n2_store_new(b.ctx, backend->bytes, &b.store), N2CE_OK);
    assert_non_null(b.g = n2_graph_new(b.store));
    out[PARAMETERS] = build(&b, s, w, out);
    assert_int_equal(n2_plan_compile(b.g, backend, out, PARAMETERS + 1, &b.plan), N2CE_OK);
    size_t n = 0;
    for (int k = 0; k < STEPS; k++) {
        assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
        found[n++] = n2_plan_scalar(b.plan, PARAMETERS);
    }
    for (size_t k = 0; k < PARAMETERS; k++) {
        n2_plan_get(b.plan, k, found + n);
        n += (size_t)n2_elements(w[k]->shape);
    }
    n2_plan_free(b.plan);
    n2_graph_free(b.g);
    n2_store_free(b.store);
    n2ce_ctx_free(b.ctx);
    return n;
}

static double largest(const double *x, size_t n) {
    double top = 0;
    for (size_t i = 0; i < n; i++) top = fmax(top, fabs(x[i]));
    return top;
}

/* bf16 has 8 bits, half 11: of losses, sums of many, a tenth of that is right. */
static void check(sizes s) {
    enum { ROOM = 1 << 16 };
    double *expected = calloc(ROOM, sizeof *expected), *found = calloc(ROOM, sizeof *found);
    assert_true(expected && found);
    const n2_dtype type = fast_backend()->narrow;
    const double digit = type == N2_BF16 ? 1.0 / 256 : type == N2_F16 ? 1.0 / 2048 : 1e-5;
    const size_t n = train(n2_ref_backend(), s, expected);
    assert_int_equal(train(fast_backend(), s, found), n);
    for (size_t i = 0; i < STEPS; i++) assert_close(found[i], expected[i], digit, 0);
    const double top = largest(expected + STEPS, n - STEPS);
    for (size_t i = STEPS; i < n; i++)
        if (fabs(found[i] - expected[i]) > 3 * digit * top)
            fail_msg("gradient %zu is %g, not %g; the largest is %g", i, found[i], expected[i],
                     top);
    free(expected);
    free(found);
}

/* Channels of whole vectors, and odd ones. */
static void a_network_trains_as_in_double_precision(void **state) {
    (void)state;
    check((sizes){3, 8, 8});
    check((sizes){5, 6, 5});
}

/* ---- sums of what is narrow ---------------------------------------------- */

static const int all_axes[] = {n2_axis(1) | n2_axis(2), n2_axis(0) | n2_axis(1) | n2_axis(2),
                               n2_axis(3), n2_axis(1) | n2_axis(3), 15};
enum { SUMS = COUNT_OF(all_axes) };

static size_t sum_up(const n2_backend *backend, sizes s, double *found) {
    static const n2_window window = {1, 1, 1, 1, 1, 1};
    bench b = {.ctx = new_ctx(2)};
    n2_node out[SUMS + 1];
    assert_int_equal(n2_store_new(b.ctx, backend->bytes, &b.store), N2CE_OK);
    assert_non_null(b.g = n2_graph_new(b.store));
    const n2_node x = n2g_read(b.g, tensor(&b, "x", n2_dims(s.n, s.side, s.side, s.c), 1, 0.1));
    const n2_node k = n2g_read(b.g, tensor(&b, "k", n2_dims(3, 3, s.c, s.c), 0.2, 0));
    const n2_node h = n2g_silu(b.g, n2g_conv2d(b.g, x, k, window));
    for (size_t i = 0; i < SUMS; i++) out[i] = n2g_sum(b.g, h, all_axes[i]);
    out[SUMS] = n2g_total(b.g, n2g_conv2d(b.g, h, k, window));
    assert_int_equal(n2_plan_compile(b.g, backend, out, SUMS + 1, &b.plan), N2CE_OK);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    size_t n = 0;
    for (size_t i = 0; i < SUMS; i++) {
        n2_plan_get(b.plan, i, found + n);
        n += (size_t)n2_elements(n2_shape_at(b.g, out[i]));
    }
    n2_plan_free(b.plan);
    n2_graph_free(b.g);
    n2_store_free(b.store);
    n2ce_ctx_free(b.ctx);
    return n;
}

/* Each number is rounded once, to half a unit of the last digit. */
static void sums_read_what_is_narrow(void **state) {
    (void)state;
    enum { ROOM = 1 << 14 };
    static const sizes of[] = {{3, 8, 16}, {70, 5, 3}, {2, 40, 8}};
    double *expected = calloc(ROOM, sizeof *expected), *found = calloc(ROOM, sizeof *found);
    assert_true(expected && found);
    for (size_t k = 0; k < COUNT_OF(of); k++) {
        const n2_dtype type = fast_backend()->narrow;
        const double digit = type == N2_BF16 ? 1.0 / 256 : type == N2_F16 ? 1.0 / 2048 : 1e-5;
        const size_t n = sum_up(n2_ref_backend(), of[k], expected);
        assert_int_equal(sum_up(fast_backend(), of[k], found), n);
        for (size_t i = 0; i < n; i++)
            assert_close(found[i], expected[i], digit, digit * (i + 1 < n ? 2 : 16));
    }
    free(expected);
    free(found);
}

/* ---- scaled losses --------------------------------------------------------- */

/* Parameters after a few steps of Adam on a loss whose gradients are as small as `size`. */
static size_t descend(const n2_backend *backend, double size, double scale, double *found) {
    static const n2_window window = {1, 1, 1, 1, 1, 1};
    bench b = {.ctx = new_ctx(2)};
    assert_int_equal(n2_store_new(b.ctx, backend->bytes, &b.store), N2CE_OK);
    assert_non_null(b.g = n2_graph_new(b.store));
    n2_parameters p = n2_parameters_new(b.store, 1);
    n2_tensor *k[2] = {n2_parameter(&p, "k0", n2_dims(3, 3, 8, 8), 0.2),
                       n2_parameter(&p, "k1", n2_dims(3, 3, 8, 8), 0.2)};
    n2_node x = n2g_read(b.g, tensor(&b, "x", n2_dims(4, 6, 6, 8), 1, 0));
    for (int i = 0; i < 2; i++) x = n2g_silu(b.g, n2g_conv2d(b.g, x, n2g_read(b.g, k[i]), window));
    const n2_node loss = n2g_scale(b.g, n2g_total(b.g, n2g_mul(b.g, x, x)), size);
    const n2_optimiser o = {
        .adam = {0.9, 0.999, 1e-20, 0}, .rate = 1e-3, .clip = 1e9, .loss_scale = scale};
    n2_minimise(b.g, &o, "adam", &p, loss, NULL);
    assert_int_equal(n2_plan_compile(b.g, backend, &loss, 1, &b.plan), N2CE_OK);
    for (int i = 0; i < STEPS; i++) assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    size_t n = 0;
    for (int i = 0; i < 2; i++, n += 576) n2_tensor_get(b.store, k[i], found + n);
    n2_plan_free(b.plan);
    n2_graph_free(b.g);
    n2_store_free(b.store);
    n2ce_ctx_free(b.ctx);
    return n;
}

/* A power of two changes nothing in float; in half, gradients that would vanish are there. */
static void a_scaled_loss_has_the_same_updates(void **state) {
    (void)state;
    enum { ROOM = 2048 };
    double a[ROOM], b[ROOM], c[ROOM];
    const size_t n = descend(n2_cpu_backend(), 1e-4, 0, a);
    descend(n2_cpu_backend(), 1e-4, N2_HALF_LOSS_SCALE, b);
    assert_memory_equal(a, b, n * sizeof *a);
    if (fast_backend()->narrow != N2_F16) return;
    size_t stayed[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        descend(n2_ref_backend(), 1e-8, 0, a);
        descend(fast_backend(), 1e-8, k ? 65536 : 0, c);
        for (size_t i = 0; i < n; i++) stayed[k] += fabs(c[i] - a[i]) > 1e-3;
    }
    assert_true(stayed[0] > n / 4); /* Adam's steps are 1e-3 each */
    assert_true(stayed[1] < n / 50);
}

/* The same seed, the same bytes. */
static void runs_are_alike(void **state) {
    (void)state;
    enum { ROOM = 1 << 16 };
    double *a = calloc(ROOM, sizeof *a), *b = calloc(ROOM, sizeof *b);
    assert_true(a && b);
    const size_t n = train(fast_backend(), (sizes){3, 6, 6}, a);
    train(fast_backend(), (sizes){3, 6, 6}, b);
    assert_memory_equal(a, b, n * sizeof *a);
    free(a);
    free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network_trains_as_in_double_precision),
        cmocka_unit_test(sums_read_what_is_narrow),
        cmocka_unit_test(a_scaled_loss_has_the_same_updates),
        cmocka_unit_test(runs_are_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
