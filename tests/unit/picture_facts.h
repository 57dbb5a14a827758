/* Facts about single ops of pictures, beside their rows in the table: what they mean, and what they
 * refuse. Part of test_ops.c. */
#ifndef TEST_PICTURE_FACTS_H
#define TEST_PICTURE_FACTS_H

#include "op_check.h"

static const n2_window dense = {.stride_y = 1, .stride_x = 1};

static void pictures_shrink_and_grow(void **state) {
    (void)state;
    static const double x[] = {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60, 7, 70, 9, 90};
    static const double pooled[] = {3.5, 35, 5.75, 57.5}, twice[] = {1, 10, 1, 10, 2, 20, 2, 20};
    for (int k = 0; k < 2; k++) {
        check_values(backend_at(k), build_avg_pool2, x, n2_dims(1, 2, 4, 2), pooled, 4);
        double grown[16];
        memcpy(grown, twice, sizeof twice);
        memcpy(grown + 8, twice, sizeof twice);
        check_values(backend_at(k), build_upsample2, x, n2_dims(1, 1, 2, 2), grown, 16);
    }
}

static void check_refused(build_fn *make, n2_shape shape, const char *why) {
    bench b = open_bench(n2_ref_backend());
    const n2_node x = n2g_read(b.g, n2_store_add(b.store, "x", shape)), y = make(b.g, &x);
    assert_int_equal(y.id, 0);
    assert_int_equal(n2_graph_status(b.g), N2CE_EINVAL);
    if (!strstr(n2ce_errmsg(contexts[1]), why)) fail_msg("%s", n2ce_errmsg(contexts[1]));
    close_bench(&b);
}

enum { POSITIONS = 6, CHANNELS = 4, GROUPS = 2, IN_GROUP = POSITIONS * CHANNELS / GROUPS };

/* Number k of group i, of all groups of all pictures. */
static int in_group(int i, int k) {
    const int each = CHANNELS / GROUPS;
    return (i / GROUPS * POSITIONS + k / each) * CHANNELS + i % GROUPS * each + k % each;
}

/* Against sums in double, of numbers far from 0. */
static void norm_is_its_formula(void **state) {
    (void)state;
    enum { N = 2, SIZE = N * POSITIONS * CHANNELS };
    static const double scale[] = {1, -2, 0.5, 3}, shift[] = {0, 1, -1, 2};
    double x[SIZE], y[SIZE], found[SIZE];
    for (int i = 0; i < SIZE; i++) x[i] = 100 + i * 37 % 11;
    for (int i = 0; i < N * GROUPS; i++) {
        double mean = 0, variance = 0;
        for (int k = 0; k < IN_GROUP; k++) mean += x[in_group(i, k)] / IN_GROUP;
        for (int k = 0; k < IN_GROUP; k++) variance += pow(x[in_group(i, k)] - mean, 2) / IN_GROUP;
        for (int k = 0; k < IN_GROUP; k++) {
            const int at = in_group(i, k), c = at % CHANNELS;
            y[at] = (x[at] - mean) / sqrt(variance + 1e-5) * scale[c] + shift[c];
        }
    }
    for (int k = 0; k < 2; k++) {
        bench b = open_bench(backend_at(k));
        n2_tensor *t[] = {n2_store_add(b.store, "x", n2_dims(N, 3, 2, CHANNELS)),
                          n2_store_add(b.store, "scale", n2_dims(CHANNELS)),
                          n2_store_add(b.store, "shift", n2_dims(CHANNELS))};
        n2_tensor_set(b.store, t[0], x);
        n2_tensor_set(b.store, t[1], scale);
        n2_tensor_set(b.store, t[2], shift);
        const n2_node in = n2g_read(b.g, t[0]), by = n2g_read(b.g, t[1]);
        const n2_node out =
            n2g_norm(b.g, in, N2_NONE, by, n2g_read(b.g, t[2]), NORM(GROUPS, N2_ACT_NONE, 1e-5));
        compile(&b, &out, 1);
        assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
        n2_plan_get(b.plan, 0, found);
        for (int i = 0; i < SIZE; i++) assert_close(found[i], y[i], 0, k ? 2e-5 : 1e-12);
        close_bench(&b);
    }
}

enum { DROPPED = 5000 };

/* Outputs: x after dropout of ones, and the gradient of its sum, which is the mask. */
static void drop(const n2_backend *backend, uint64_t seed, double out[2][DROPPED]) {
    bench b = open_bench(backend);
    static double ones[DROPPED];
    for (size_t i = 0; i < DROPPED; i++) ones[i] = 1;
    n2_tensor *t = n2_store_add(b.store, "x", n2_dims(DROPPED / 5, 5));
    n2_tensor_set(b.store, t, ones);
    n2_node x = n2g_read(b.g, t), outputs[2];
    outputs[0] = build_dropout(b.g, &x);
    n2g_grad(b.g, n2g_total(b.g, outputs[0]), &x, 1, &outputs[1]);
    compile(&b, outputs, 2);
    n2_plan_seed(b.plan, seed, 0);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    for (size_t k = 0; k < 2; k++) n2_plan_get(b.plan, k, out[k]);
    close_bench(&b);
}

/* The mean stays; a seed has its mask, on every backend, and the gradient goes through it. */
static void dropout_keeps_the_mean_and_follows_the_seed(void **state) {
    (void)state;
    static double first[2][DROPPED], again[2][DROPPED], other[2][DROPPED];
    drop(n2_ref_backend(), 7, first);
    drop(fast_backend(), 7, again);
    drop(fast_backend(), 8, other);
    double sum = 0;
    size_t different = 0;
    for (size_t i = 0; i < DROPPED; i++) {
        sum += first[0][i];
        assert_close(again[0][i], first[0][i], 1e-6, 0);
        assert_close(again[1][i], first[0][i], 1e-6, 0);
        assert_true(first[0][i] == 0 || fabs(first[0][i] - 1 / 0.7) < 1e-12);
        different += again[0][i] != other[0][i];
    }
    assert_close(sum / DROPPED, 1, 0, 0.04); /* four standard errors */
    assert_true(different > DROPPED / 3);
}

BUILD(dropout_of_all, n2g_dropout(g, x[0], 1))
BUILD(three_groups, n2g_norm(g, x[0], x[0], x[0], x[0], NORM(3, N2_ACT_NONE, 1e-5)))
BUILD(wrong_shift, n2g_norm(g, x[0], x[0], N2_NONE, N2_NONE, NORM(2, N2_ACT_NONE, 1e-5)))
BUILD(wrong_gamma, n2g_norm(g, x[0], N2_NONE, x[0], N2_NONE, NORM(2, N2_ACT_NONE, 1e-5)))
BUILD(wrong_beta, n2g_norm(g, x[0], N2_NONE, N2_NONE, x[0], NORM(2, N2_ACT_NONE, 1e-5)))
BUILD(wrong_act, n2g_norm(g, x[0], N2_NONE, N2_NONE, N2_NONE, NORM(2, 7, 1e-5)))
BUILD(wrong_eps, n2g_norm(g, x[0], N2_NONE, N2_NONE, N2_NONE, NORM(2, N2_ACT_NONE, 0)))
BUILD(wrong_dy, n2g_norm_sums(g, x[0], N2_NONE, N2_NONE, N2_NONE, n2g_sum(g, x[0], n2_axis(0)),
                              NORM(2, N2_ACT_NONE, 1)))

static void pictures_that_do_not_fit_are_refused(void **state) {
    (void)state;
    check_refused(build_avg_pool2, n2_dims(2, 3, 4, 1), "[2 x 3 x 4 x 1] is odd");
    check_refused(build_avg_pool2, n2_dims(2, 4, 1, 1), "[2 x 4 x 1 x 1] is odd");
    check_refused(build_avg_pool2, n2_dims(4, 4), "[4 x 4] is not [n, h, w, c]");
    check_refused(build_three_groups, n2_dims(2, 4, 4, 4), "3 groups");
    check_refused(build_three_groups, n2_dims(2, 0, 4, 3), "3 groups");
    check_refused(build_wrong_shift, n2_dims(2, 4, 4, 4), "shift [2 x 4 x 4 x 4]");
    check_refused(build_wrong_gamma, n2_dims(2, 4, 4, 4), "gamma [2 x 4 x 4 x 4]");
    check_refused(build_wrong_beta, n2_dims(2, 4, 4, 4), "beta [2 x 4 x 4 x 4]");
    check_refused(build_wrong_gamma, n2_dims(4), "[4] is not [n, ..., c]");
    check_refused(build_wrong_act, n2_dims(2, 4), "no activation 7");
    check_refused(build_wrong_eps, n2_dims(2, 4), "eps is 0");
    check_refused(build_wrong_dy, n2_dims(2, 4), "dy [1 x 4] for x [2 x 4]");
    check_refused(build_dropout_of_all, n2_dims(2, 4), "a probability of 1");
    check_refused(build_upsample2, n2_dims(4, 4, 2), "[4 x 4 x 2] is not [n, h, w, c]");
}

/* Of pictures x and a kernel k [3 x 3 x 3 x 2]. */
#define WRONG(NAME, EXPRESSION)                                         \
    static n2_node NAME(n2_graph *g, const n2_node *in) {               \
        const n2_node x = in[0], k = n2g_randn(g, n2_dims(3, 3, 3, 2)); \
        return (void)k, EXPRESSION;                                     \
    }
WRONG(no_stride, n2g_conv2d(g, x, k, (n2_window){0, 1, 0, 0, 0, 0}))
WRONG(cut_off, n2g_conv2d(g, x, k, (n2_window){1, 1, 0, -1, 0, 0}))
WRONG(swapped, n2g_conv2d(g, k, x, dense))
WRONG(too_few_axes, n2g_conv2d(g, n2g_reshape(g, x, n2_dims(2, 60)), k, dense))
WRONG(too_large, n2g_conv2d(g, n2g_slice(g, x, 1, 0, 1), k, (n2_window){1, 1, 1, 0, 0, 0}))
WRONG(other_picture, n2g_conv2d_input(g, n2g_conv2d(g, x, k, dense), k, 5, 5, dense))
WRONG(below_nothing, n2g_conv2d_input(g, n2g_conv2d(g, x, k, dense), k, -4, 5, dense))
WRONG(other_kernel, n2g_conv2d_weight(g, x, n2g_conv2d(g, x, k, dense), 2, 3, dense))
WRONG(no_kernel, n2g_conv2d_weight(g, x, x, 0, 1, dense))

static void convolutions_that_do_not_fit_are_refused(void **state) {
    (void)state;
    const n2_shape shape = n2_dims(2, 4, 5, 3);
    check_refused(no_stride, shape, "a stride of 0 x 1");
    check_refused(cut_off, shape, "a padding of 0, -1, 0, 0");
    check_refused(swapped, shape, "[3 x 3 x 3 x 2] and a kernel [2 x 4 x 5 x 3] do not fit");
    check_refused(too_few_axes, shape, "pictures [2 x 60]");
    check_refused(too_large, shape, "smaller than the kernel [3 x 3 x 3 x 2]");
    check_refused(other_picture, shape, "make [2 x 3 x 3 x 2], not [2 x 2 x 3 x 2]");
    check_refused(below_nothing, shape, "conv2d_input: pictures [2 x -4 x 5 x 3]");
    check_refused(other_kernel, shape, "make [2 x 3 x 3 x 2], not [2 x 2 x 3 x 2]");
    check_refused(no_kernel, shape, "a kernel [0 x 1 x 3 x 3]");
}

BUILD(three_heads, n2g_attention(g, x[0], 3))
BUILD(no_heads, n2g_attention(g, x[0], 0))
BUILD(other_dy, n2g_attention_grad(g, x[0], x[0], 2))

static void attention_that_does_not_fit_is_refused(void **state) {
    (void)state;
    check_refused(build_three_heads, n2_dims(2, 5, 12),
                  "the 4 channels of queries in [2 x 5 x 12]");
    check_refused(build_no_heads, n2_dims(2, 5, 12), "do not make 0 heads");
    check_refused(build_three_heads, n2_dims(2, 5, 10),
                  "[2 x 5 x 10] is not [n x positions x 3 channels]");
    check_refused(build_three_heads, n2_dims(2, 5, 0), "[2 x 5 x 0] is not");
    check_refused(build_three_heads, n2_dims(5, 12), "[5 x 12] is not");
    check_refused(build_other_dy, n2_dims(2, 5, 12), "[2 x 5 x 12] is no gradient of");
}

/* Scores so large that their exponentials are not numbers: the largest one takes all. */
static void attention_is_right_for_large_scores(void **state) {
    (void)state;
    static const double qkv[] = {300, 1, 5, -300, 2, 7, 0, 3, 9}; /* q, k, v of 3 positions */
    static const double y[] = {9, 5, 7};
    for (int k = 0; k < 2; k++) {
        bench b = open_bench(backend_at(k));
        n2_tensor *t = n2_store_add(b.store, "qkv", n2_dims(1, 3, 3));
        n2_tensor_set(b.store, t, qkv);
        const n2_node out = n2g_attention(b.g, n2g_read(b.g, t), 1);
        compile(&b, &out, 1);
        assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
        double found[3];
        n2_plan_get(b.plan, 0, found);
        for (int i = 0; i < 3; i++) assert_close(found[i], y[i], fast_tolerance(1e-6, 4e-3), 0);
        close_bench(&b);
    }
}

#endif
