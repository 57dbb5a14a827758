/* Facts about scores of the Gaussian part of a ratio: densities, waymarks, influence, directions
 * without spread, memory. */
#include "failing_alloc.h"
#include "gaussians.h"

#include "base/linalg.h"

/* ---- scores ---- */

static double log_density(const n2_moments *m, size_t d, const double *x) {
    double l[MOST * MOST], z[MOST], square = 0;
    memcpy(l, m->cov, d * d * sizeof *l);
    assert_true(n2_cholesky(l, d));
    for (size_t i = 0; i < d; i++) z[i] = x[i] - m->mean[i];
    n2_lower_solve(l, d, z, 1);
    for (size_t i = 0; i < d; i++) square += z[i] * z[i];
    return -0.5 * (square + n2_cholesky_log_det(l, d));
}

/* ln N(x; num) - ln N(x; den), from the densities; rows on both sides of a block's end. */
static void scores_are_log_ratios_of_densities(void **state) {
    (void)state;
    enum { N = 131 };
    n2ce_ctx *ctx = new_ctx(2);
    static const size_t dims[] = {1, 2, 5};
    for (size_t k = 0; k < COUNT_OF(dims); k++) {
        const size_t d = dims[k];
        double *x = mixed(N, d, 1, 2, 1), *y = mixed(N, d, 0, 1, 2), f[N];
        n2_moments a = moments_of(ctx, x, N, d), b = moments_of(ctx, y, N, d);
        n2_gauss *g = new_gauss(ctx, d, &a, &b);
        assert_int_equal(n2_gauss_score(g, x, N, f), N2CE_OK);
        for (size_t i = 0; i < N; i++) {
            const double *row = x + i * d;
            assert_close(f[i], log_density(&a, d, row) - log_density(&b, d, row), 1e-10, 1e-10);
        }
        n2_gauss_free(g);
        n2_moments_free(ctx, &a);
        n2_moments_free(ctx, &b);
        free(x);
        free(y);
    }
    n2ce_ctx_free(ctx);
}

/* ---- waymarks ---- */

static n2_gauss *far_apart(n2ce_ctx *ctx, size_t d, double shift, double sd) {
    enum { N = 400 };
    double *x = mixed(N, d, shift, sd, 1), *y = mixed(N, d, 0, 1, 2);
    n2_moments a = moments_of(ctx, x, N, d), b = moments_of(ctx, y, N, d);
    n2_gauss *g = new_gauss(ctx, d, &a, &b);
    n2_moments_free(ctx, &a);
    n2_moments_free(ctx, &b);
    free(x);
    free(y);
    return g;
}

/* Ratios of neighbouring waymarks multiply to the whole ratio, at every row. */
static void waymark_ratios_telescope(void **state) {
    (void)state;
    enum { D = 4, STAGES = 7, N = 50 };
    n2ce_ctx *ctx = new_ctx(1);
    n2_gauss *g = far_apart(ctx, D, 6, 0.3);
    double alpha[STAGES + 1], ab[2 * D], c, whole[N], part[N], *x = mixed(N, D, 3, 2, 3);
    double sum[N] = {0};
    n2_gauss_waymarks(g, STAGES, alpha);
    for (size_t k = 0; k < STAGES; k++) {
        n2_gauss_waymark_ratio(g, alpha[k + 1], alpha[k], ab, ab + D, &c);
        assert_int_equal(n2_gauss_quadratic(g, ab, c, x, N, part), N2CE_OK);
        for (size_t i = 0; i < N; i++) sum[i] += part[i];
    }
    assert_int_equal(n2_gauss_score(g, x, N, whole), N2CE_OK);
    for (size_t i = 0; i < N; i++) assert_close(sum[i], whole[i], 1e-11, 1e-11);
    free(x);
    n2_gauss_free(g);
    n2ce_ctx_free(ctx);
}

/* From 1 down to 0, with the same divergence from each to the next, however far apart the
 * samples are and however different their widths. */
static void waymarks_have_equal_divergences(void **state) {
    (void)state;
    static const double cases[][2] = {{0.3, 1}, {10, 1}, {0, 1e-4}, {0, 30}, {-20, 0.01}};
    static const size_t stages[] = {1, 2, 5, 12, 32};
    n2ce_ctx *ctx = new_ctx(1);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t j = 0; j < COUNT_OF(stages); j++) {
            const size_t n = stages[j];
            n2_gauss *g = far_apart(ctx, 2, cases[i][0], cases[i][1]);
            double alpha[33];
            n2_gauss_waymarks(g, n, alpha);
            assert_close(alpha[0], 1, 0, 0);
            assert_close(alpha[n], 0, 0, 0);
            const double first = n2_gauss_waymark_kl(g, alpha[n], alpha[n - 1]);
            assert_true(first > 0);
            for (size_t k = 0; k < n; k++) {
                assert_true(alpha[k] > alpha[k + 1]);
                assert_close(n2_gauss_waymark_kl(g, alpha[k + 1], alpha[k]), first, 1e-9, 0);
            }
            n2_gauss_free(g);
        }
    n2ce_ctx_free(ctx);
}

/* Stages make the steps small: twelve of them bridge 50 nats in steps of less than 10. */
static void more_stages_are_smaller_steps(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_gauss *g = far_apart(ctx, 2, 10, 1);
    double before = n2_gauss_waymark_kl(g, 0, 1);
    assert_true(before > 30);
    for (size_t n = 2; n <= 12; n++) {
        double alpha[13];
        n2_gauss_waymarks(g, n, alpha);
        const double step = n2_gauss_waymark_kl(g, alpha[1], alpha[0]);
        assert_true(step < before);
        before = step;
    }
    assert_true(before < 10);
    n2_gauss_free(g);
    n2ce_ctx_free(ctx);
}

/* ---- influence ---- */

/* KL when the denominator is a mixture of (1 - e) of itself and e of one row. */
static double kl_with_weight(n2ce_ctx *ctx, size_t d, const n2_moments *num, const n2_moments *den,
                             const double *row, double e) {
    double mean[MOST], cov[MOST * MOST];
    for (size_t i = 0; i < d; i++) mean[i] = den->mean[i] + e * (row[i] - den->mean[i]);
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++)
            cov[i * d + j] = (1 - e) * den->cov[i * d + j] +
                             e * (1 - e) * (row[i] - den->mean[i]) * (row[j] - den->mean[j]);
    const n2_moments moved = moments(MANY, mean, cov);
    return kl_of(ctx, d, num, &moved);
}

/* The influence of a row is the derivative of KL with respect to its weight. */
static void influence_is_the_slope_in_a_rows_weight(void **state) {
    (void)state;
    enum { N = 60, D = 3 };
    n2ce_ctx *ctx = new_ctx(1);
    double *x = mixed(N, D, 1, 1.5, 1), *y = mixed(N, D, 0, 1, 2), out[N];
    n2_moments a = moments_of(ctx, x, N, D), b = moments_of(ctx, y, N, D);
    n2_gauss *g = new_gauss(ctx, D, &a, &b);
    a.n = MANY;
    assert_int_equal(n2_gauss_influence_den(g, y, N, out), N2CE_OK);
    const double e = 1e-5;
    double largest = 0;
    for (size_t i = 0; i < N; i++) {
        const double *row = y + i * D;
        const double slope =
            (kl_with_weight(ctx, D, &a, &b, row, e) - kl_with_weight(ctx, D, &a, &b, row, -e)) /
            (2 * e);
        assert_close(out[i], slope, 1e-4, 1e-4);
        largest = fmax(largest, fabs(slope));
    }
    assert_true(largest > 1);                              /* there was something to find */
    assert_close(mean_of(out, N), 0, 0, 10 * largest / N); /* up to n - 1 instead of n */
    n2_gauss_free(g);
    n2_moments_free(ctx, &a);
    n2_moments_free(ctx, &b);
    free(x);
    free(y);
    n2ce_ctx_free(ctx);
}

/* ---- directions without spread ---- */

/* Column `of` twice, or a constant, or the sum of two: columns of d and one more. */
typedef enum extra { TWICE, CONSTANT, SUM } extra;

static double *with_extra(const double *x, size_t n, size_t d, extra what) {
    double *wide = new_doubles(n * (d + 1));
    for (size_t i = 0; i < n; i++) {
        memcpy(wide + i * (d + 1), x + i * d, d * sizeof *x);
        const double *row = x + i * d;
        wide[i * (d + 1) + d] = what == TWICE ? row[0] : what == SUM ? row[0] - 3 * row[1] : 7;
    }
    return wide;
}

/* A column that says nothing new changes neither divergence nor scores. */
static void redundant_columns_change_nothing(void **state) {
    (void)state;
    enum { N = 200, D = 3 };
    n2ce_ctx *ctx = new_ctx(1);
    double *x = mixed(N, D, 0.5, 1.5, 1), *y = mixed(N, D, 0, 1, 2), f[N], g[N];
    n2_moments a = moments_of(ctx, x, N, D), b = moments_of(ctx, y, N, D);
    n2_gauss *narrow = new_gauss(ctx, D, &a, &b);
    assert_int_equal(n2_gauss_score(narrow, x, N, f), N2CE_OK);
    for (extra what = TWICE; what <= SUM; what++) {
        double *xw = with_extra(x, N, D, what), *yw = with_extra(y, N, D, what);
        n2_moments aw = moments_of(ctx, xw, N, D + 1), bw = moments_of(ctx, yw, N, D + 1);
        n2_gauss *wide = new_gauss(ctx, D + 1, &aw, &bw);
        assert_int_equal(n2_gauss_score(wide, xw, N, g), N2CE_OK);
        for (size_t i = 0; i < N; i++) assert_close(g[i], f[i], 1e-5, 1e-5);
        assert_close(kl_of(ctx, D + 1, &aw, &bw), kl_of(ctx, D, &a, &b), 1e-5, 0);
        n2_gauss_free(wide);
        n2_moments_free(ctx, &aw);
        n2_moments_free(ctx, &bw);
        free(xw);
        free(yw);
    }
    n2_gauss_free(narrow);
    n2_moments_free(ctx, &a);
    n2_moments_free(ctx, &b);
    free(x);
    free(y);
    n2ce_ctx_free(ctx);
}

static void redundant_columns_do_not_change_mi(void **state) {
    (void)state;
    enum { N = 200, D = 4 };
    n2ce_ctx *ctx = new_ctx(1);
    double *x = mixed(N, D, 0, 1, 3);
    n2_moments m = moments_of(ctx, x, N, D);
    for (extra what = TWICE; what <= CONSTANT; what++) {
        /* y is the last two columns; what is added to them must come from them */
        double *swapped = new_doubles(N * D);
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; j < D; j++) swapped[i * D + j] = x[i * D + (j + 2) % D];
        double *wide = with_extra(swapped, N, D, what);
        double *ordered = new_doubles(N * (D + 1));
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; j <= D; j++)
                ordered[i * (D + 1) + j] = wide[i * (D + 1) + (j < D ? (j + 2) % D : D)];
        n2_moments mw = moments_of(ctx, ordered, N, D + 1);
        assert_close(mi_of(ctx, D + 1, 2, &mw), mi_of(ctx, D, 2, &m), 1e-5, 1e-7);
        n2_moments_free(ctx, &mw);
        free(swapped);
        free(wide);
        free(ordered);
    }
    n2_moments_free(ctx, &m);
    free(x);
    n2ce_ctx_free(ctx);
}

/* A sample without any spread against one with: far apart, and still numbers. */
static void no_spread_on_one_side_is_far_away(void **state) {
    (void)state;
    enum { N = 50 };
    n2ce_ctx *ctx = new_ctx(1);
    double *x = normals(N, 0, 1, 1), y[N], f[N];
    for (size_t i = 0; i < N; i++) y[i] = 0.25;
    n2_moments a = moments_of(ctx, x, N, 1), b = moments_of(ctx, y, N, 1);
    for (int swap = 0; swap < 2; swap++) {
        n2_gauss *g = new_gauss(ctx, 1, swap ? &a : &b, swap ? &b : &a);
        assert_int_equal(n2_gauss_score(g, x, N, f), N2CE_OK);
        for (size_t i = 0; i < N; i++) assert_true(isfinite(f[i]));
        assert_true(n2_gauss_waymark_kl(g, 0, 1) > 10);
        n2_gauss_free(g);
    }
    n2_moments_free(ctx, &a);
    n2_moments_free(ctx, &b);
    free(x);
    n2ce_ctx_free(ctx);
}

/* Numbers that are no covariance are refused with a sentence. */
static void no_basis_is_an_error(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double mean[] = {0, 0}, good[] = {1, 0, 0, 1}, bad[] = {1, (double)NAN, (double)NAN, 1};
    const n2_moments num = moments(50, mean, bad), den = moments(50, mean, good);
    n2_gauss *g = (n2_gauss *)1;
    assert_int_equal(n2_gauss_new(ctx, 2, &num, &den, &g), N2CE_ERANGE);
    assert_null(g);
    assert_non_null(strstr(n2ce_errmsg(ctx), "covariances"));
    assert_int_equal(n2_gauss_new(ctx, 2, &den, &num, &g), N2CE_ERANGE);
    assert_null(g);
    assert_true(isnan(kl_of(ctx, 2, &num, &den)));
    n2ce_ctx_free(ctx);
}

/* ---- memory ---- */

static n2ce_status whole_life(n2ce_ctx *ctx, const double *x, size_t n) {
    n2_moments a = {0}, b;
    n2_gauss *g = NULL, *two = NULL;
    double f[100], margins[4];
    n2_fold_sums *s = NULL;
    const size_t bounds[] = {0, n};
    n2ce_status status = n2_fold_sums_new(ctx, (n2_rows_view){x, n, 2}, bounds, 1, &s);
    if (status == N2CE_OK) status = n2_moments_without(s, N2_ALL_FOLDS, &a);
    if (status == N2CE_OK) status = n2_gauss_new_all(ctx, 2, 1, 1, &a, NULL, &g);
    if (status == N2CE_OK) b = margins_of(&a, 2, 1, margins);
    if (status == N2CE_OK) status = n2_gauss_new(ctx, 2, &a, &b, &two);
    if (status == N2CE_OK) status = n2_gauss_score(two, x, n, f);
    n2_gauss_scoring *scoring = NULL;
    const n2_score_rows pairs = {x, n / 2, f, 1, n, f + n / 2};
    if (status == N2CE_OK) status = n2_gauss_scoring_new(g, &pairs, NULL, &scoring);
    n2_gauss_scoring_free(scoring);
    if (status == N2CE_OK) status = n2_gauss_influence_den(two, x, n, f);
    if (status == N2CE_OK) status = n2_gauss_mi(ctx, 2, 1, &a, f);
    if (status == N2CE_OK) status = n2_gauss_kl(ctx, 2, &a, &b, f);
    n2_fold_sums_free(s);
    n2_gauss_free(g);
    n2_gauss_free(two);
    n2_moments_free(ctx, &a);
    return status;
}

static void every_failed_allocation_is_an_error(void **state) {
    (void)state;
    double *x = normals(200, 0, 1, 1);
    n2ce_status status = N2CE_ENOMEM;
    size_t n = 1; /* 0 is the context's own */
    for (; status != N2CE_OK; n++) {
        failing_alloc memory = failing_alloc_new(n, false);
        const n2ce_ctx_options options = failing_alloc_options(&memory, 2);
        n2ce_ctx *ctx;
        assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
        status = whole_life(ctx, x, 100);
        assert_int_equal(status, memory.calls > n ? N2CE_ENOMEM : N2CE_OK);
        n2ce_ctx_free(ctx);
        assert_int_equal(memory.live, 0);
    }
    assert_true(n > 8);
    free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_log_ratios_of_densities),
        cmocka_unit_test(waymark_ratios_telescope),
        cmocka_unit_test(waymarks_have_equal_divergences),
        cmocka_unit_test(more_stages_are_smaller_steps),
        cmocka_unit_test(influence_is_the_slope_in_a_rows_weight),
        cmocka_unit_test(redundant_columns_change_nothing),
        cmocka_unit_test(redundant_columns_do_not_change_mi),
        cmocka_unit_test(no_spread_on_one_side_is_far_away),
        cmocka_unit_test(no_basis_is_an_error),
        cmocka_unit_test(every_failed_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
