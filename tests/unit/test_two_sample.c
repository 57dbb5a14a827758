/* Facts about the two-sample test: p is right where there is nothing to find, and small where one
 * of its statistics sees a difference. */
#include "contexts.h"
#include "failing_alloc.h"
#include "samples.h"

#include "base/numerics.h"
#include "ratio/two_sample.h"

#include <math.h>
#include <string.h>

static n2_two_sample run(const double *num, const double *den, size_t n, size_t d, uint64_t seed) {
    n2ce_ctx *ctx = new_ctx(2);
    n2_two_sample out;
    const n2_two_sample_data data = {.num = num, .den = den, .n_num = n, .n_den = n, .d = d};
    assert_int_equal(n2_two_sample_test(ctx, &data, 199, seed, &out), N2CE_OK);
    n2ce_ctx_free(ctx);
    return out;
}

/* 400 pairs of samples of one distribution, half of them whole numbers with many ties: p is at most
 * 0.05 in 20 of them, give or take four standard deviations. */
static void labels_mean_nothing_under_the_null(void **state) {
    (void)state;
    enum { TESTS = 400, N = 30, D = 2 };
    double *x = normals(TESTS * 2 * N * D, 0, 1, 31);
    size_t small = 0, half = 0;
    for (size_t i = TESTS * N * D; i < TESTS * 2 * N * D; i++) x[i] = round(x[i]);
    for (size_t t = 0; t < TESTS; t++) {
        const double *num = x + 2 * t * N * D;
        const n2_two_sample r = run(num, num + N * D, N, D, t);
        assert_true(r.p > 0 && r.p <= 1);
        assert_true(fabs(200 * r.p - round(200 * r.p)) < 1e-9);
        small += r.p <= 0.05;
        half += r.p <= 0.5;
    }
    assert_true(small >= 3 && small <= 37);
    assert_true(half >= 160 && half <= 240);
    free(x);
}

/* A difference that only one statistic is made for: the test finds it, and names it or another that
 * sees it. */
static void each_difference_is_found(void **state) {
    (void)state;
    enum { N = 300, D = 6 };
    double *a = normals(N * D, 0, 1, 1), *b = normals(N * D, 0, 1, 2);
    double *changed = normals(N * D, 0, 1, 1);
    const n2_two_sample same = run(a, b, N, D, 1);
    assert_true(same.p > 0.01);
    for (size_t i = 0; i < N; i++) changed[i * D] = a[i * D] + 0.5;
    n2_two_sample r = run(changed, b, N, D, 1);
    assert_true(r.p < 0.02 && r.each[N2_TS_COLUMNS] < 0.02 && r.each[N2_TS_PAIRS] > 0.02);
    for (size_t i = 0; i < N; i++) changed[i * D] = 1.6 * a[i * D];
    r = run(changed, b, N, D, 1);
    assert_true(r.p < 0.02 && r.each[N2_TS_SPREADS] < 0.02);
    for (size_t i = 0; i < N; i++) changed[i * D] = 0.8 * a[i * D] + 0.6 * a[i * D + 1];
    r = run(changed, b, N, D, 1);
    assert_true(r.p < 0.02 && r.each[N2_TS_PAIRS] < 0.02 && r.each[N2_TS_COLUMNS] > 0.02);
    free(a);
    free(b);
    free(changed);
}

/* Monotone maps of columns, and the order of rows within a sample, change nothing but the draws of
 * labels. */
static void only_ranks_matter(void **state) {
    (void)state;
    enum { N = 80, D = 3 };
    double *a = normals(N * D, 0.3, 1, 5), *b = normals(N * D, 0, 1, 6);
    const n2_two_sample before = run(a, b, N, D, 9);
    for (size_t i = 0; i < N * D; i++) {
        a[i] = exp(3 * a[i]);
        b[i] = exp(3 * b[i]);
    }
    const n2_two_sample after = run(a, b, N, D, 9);
    assert_true(before.p == after.p);
    for (size_t k = 0; k < N2_TS_STATISTICS; k++) assert_true(before.each[k] == after.each[k]);
    free(a);
    free(b);
}

/* Levels of a category have no order: those in the middle tell samples apart as well. */
static void categories_are_levels(void **state) {
    (void)state;
    enum { N = 200 };
    static const size_t levels[] = {3};
    double num[N], den[N];
    for (size_t i = 0; i < N; i++) {
        num[i] = (double)(i % 3);
        den[i] = i % 10 < 6 ? 1 : i % 10 < 8 ? 0 : 2;
    }
    n2ce_ctx *ctx = new_ctx(1);
    n2_two_sample out;
    const n2_two_sample_data data = {num, den, N, N, 1, levels};
    assert_int_equal(n2_two_sample_test(ctx, &data, 199, 1, &out), N2CE_OK);
    assert_true(out.p < 0.01);
    n2ce_ctx_free(ctx);
}

/* The same bytes whatever the number of threads; without memory a status and no leak. */
static void threads_and_memory(void **state) {
    (void)state;
    enum { N = 50, D = 4 };
    double *a = normals(N * D, 0, 1, 3), *b = normals(N * D, 0, 1, 4);
    const n2_two_sample_data data = {.num = a, .den = b, .n_num = N, .n_den = N, .d = D};
    n2_two_sample out[2];
    for (int t = 0; t < 2; t++) {
        n2ce_ctx *ctx = new_ctx(t ? 7 : 1);
        assert_int_equal(n2_two_sample_test(ctx, &data, 99, 5, &out[t]), N2CE_OK);
        n2ce_ctx_free(ctx);
    }
    assert_memory_equal(&out[0], &out[1], sizeof out[0]);
    n2ce_status status = N2CE_ENOMEM;
    for (size_t n = 0; status != N2CE_OK; n++) {
        assert_true(n < 200);
        failing_alloc memory = failing_alloc_new(n, false);
        const n2ce_ctx_options options = failing_alloc_options(&memory, 1);
        n2ce_ctx *ctx;
        status = n2ce_ctx_new(&ctx, &options);
        if (status == N2CE_OK) {
            status = n2_two_sample_test(ctx, &data, 19, 5, &out[0]);
            n2ce_ctx_free(ctx);
        }
        assert_int_equal(status, memory.calls > n ? N2CE_ENOMEM : N2CE_OK);
        assert_int_equal(memory.live, 0);
    }
    free(a);
    free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_mean_nothing_under_the_null),
        cmocka_unit_test(each_difference_is_found),
        cmocka_unit_test(only_ranks_matter),
        cmocka_unit_test(categories_are_levels),
        cmocka_unit_test(threads_and_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
