/* Facts about the elementary functions, over the whole range of float and double. */
#include "close.h"

#include "base/numerics.h"

#include <stdlib.h>

static const double eps = DBL_EPSILON;

enum { GRID = 8192 };

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static size_t add_both_signs(double *x, size_t n, double value) {
    x[n] = value;
    x[n + 1] = -value;
    return n + 2;
}

/* Numbers of every size and sign in ascending order, infinities included. */
static size_t make_grid(double x[GRID]) {
    const double edges[] = {0,      N2_INFINITY, DBL_MAX, DBL_MIN, 4.9e-324, 3.40282347e38,
                            709.78, 709.79,      745.13,  745.14,  87.5,     88.8,
                            36.7,   36.8,        1e4,     1.18e-38};
    size_t n = 0;
    for (size_t i = 0; i < COUNT_OF(edges); i++) n = add_both_signs(x, n, edges[i]);
    for (int k = -300; k <= 300; k++) {
        n = add_both_signs(x, n, pow(10, k));
        n = add_both_signs(x, n, 3.7 * pow(10, k));
    }
    for (int i = 1; i < 1500; i++) n = add_both_signs(x, n, i * 0.513);
    qsort(x, n, sizeof *x, compare_doubles);
    return n;
}

static long double softplus_ld(long double x) {
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

/* softplus is ln(1 + e^x) to a few units in the last place, whatever x is. */
static void softplus_is_exact_for_every_double(void **state) {
    (void)state;
    double x[GRID];
    const size_t n = make_grid(x);
    for (size_t i = 0; i < n; i++)
        assert_close(n2_softplus(x[i]), (double)softplus_ld((long double)x[i]), 4 * eps, 1e-323);
}

/* softplus(x) - softplus(-x) = x. */
static void softplus_differs_from_its_mirror_by_x(void **state) {
    (void)state;
    double x[GRID];
    const size_t n = make_grid(x);
    for (size_t i = 0; i < n; i++) {
        const double a = n2_softplus(x[i]), b = n2_softplus(-x[i]);
        if (isfinite(x[i])) assert_close(a - b, x[i], 2 * eps, 2 * eps * fmin(a, b));
    }
}

/* ln sigmoid(x) = -softplus(-x), and its exponential is sigmoid(x). */
static void log_sigmoid_is_a_mirrored_softplus(void **state) {
    (void)state;
    double x[GRID];
    const size_t n = make_grid(x);
    for (size_t i = 0; i < n; i++) {
        assert_close(n2_log_sigmoid(x[i]), -n2_softplus(-x[i]), 0, 0);
        assert_close(n2_log_sigmoid(x[i]), -(double)softplus_ld(-(long double)x[i]), 4 * eps,
                     1e-323);
        if (x[i] > -30) assert_close(exp(n2_log_sigmoid(x[i])), n2_sigmoid(x[i]), 40 * eps, 0);
    }
}

/* sigmoid is 1 / (1 + e^-x) everywhere, and sigmoid(x) + sigmoid(-x) = 1. */
static void sigmoid_is_exact_for_every_double(void **state) {
    (void)state;
    double x[GRID];
    const size_t n = make_grid(x);
    for (size_t i = 0; i < n; i++) {
        const double expected = (double)(1 / (1 + expl(-(long double)x[i])));
        assert_close(n2_sigmoid(x[i]), expected, 4 * eps, 1e-323);
        assert_close(n2_sigmoid(x[i]) + n2_sigmoid(-x[i]), 1, 2 * eps, 0);
    }
}

/* softplus, log-sigmoid and sigmoid never decrease. */
static void the_sigmoid_family_is_monotone(void **state) {
    (void)state;
    double x[GRID];
    const size_t n = make_grid(x);
    for (size_t i = 1; i < n; i++) {
        assert_true(n2_softplus(x[i]) >= n2_softplus(x[i - 1]));
        assert_true(n2_log_sigmoid(x[i]) >= n2_log_sigmoid(x[i - 1]));
        assert_true(n2_sigmoid(x[i]) >= n2_sigmoid(x[i - 1]));
    }
}

/* At 0 and at the infinities the values are known exactly. */
static void the_ends_are_exact(void **state) {
    (void)state;
    assert_close(n2_softplus(0), log(2), eps, 0);
    assert_close(n2_softplus(-0.0), log(2), eps, 0);
    assert_close(n2_softplus(N2_INFINITY), N2_INFINITY, 0, 0);
    assert_close(n2_softplus(-N2_INFINITY), 0, 0, 0);
    assert_close(n2_log_sigmoid(N2_INFINITY), 0, 0, 0);
    assert_close(n2_log_sigmoid(-N2_INFINITY), -N2_INFINITY, 0, 0);
    assert_close(n2_sigmoid(0), 0.5, 0, 0);
    assert_close(n2_sigmoid(N2_INFINITY), 1, 0, 0);
    assert_close(n2_sigmoid(-N2_INFINITY), 0, 0, 0);
    assert_close(n2_scaled_softplus(-N2_INFINITY, 10), 0, 0, 0);
    assert_close(n2_scaled_softplus(N2_INFINITY, 10), N2_INFINITY, 0, 0);
    assert_close(n2_shifted_softplus(-N2_INFINITY, 10), N2_INFINITY, 0, 0);
    assert_close(n2_shifted_softplus(N2_INFINITY, 10), 0, 0, 0);
}

/* NaN in, NaN out. */
static void nan_is_never_swallowed(void **state) {
    (void)state;
    const double one_nan[] = {1, N2_NAN, N2_INFINITY};
    assert_true(isnan(n2_softplus(N2_NAN)));
    assert_true(isnan(n2_log_sigmoid(N2_NAN)));
    assert_true(isnan(n2_sigmoid(N2_NAN)));
    assert_true(isnan(n2_scaled_softplus(N2_NAN, 10)));
    assert_true(isnan(n2_shifted_softplus(N2_NAN, 10)));
    assert_true(isnan(n2_logsumexp(one_nan, 3)));
}

/* ---- the terms of N2CE ---------------------------------------------------- */

static const double magnitudes[] = {1, 1.5, 2, 10, 1000, 1e6, 1e9, 1e12};

static long double scaled_ld(long double x, long double a) {
    return x > 11000 ? a * (x - logl(a)) : a * log1pl(expl(x) / a);
}

static long double shifted_ld(long double x, long double a) {
    return x < -11000 ? logl(a) - x : log1pl(a * expl(-x));
}

/* a softplus(x - ln a) to a few units in the last place, for every x and M to 1e12. */
static void scaled_softplus_is_exact(void **state) {
    (void)state;
    double x[GRID];
    const size_t n = make_grid(x);
    for (size_t k = 0; k < COUNT_OF(magnitudes); k++)
        for (size_t i = 0; i < n; i++) {
            const double m = magnitudes[k];
            const double expected = (double)scaled_ld((long double)x[i], (long double)m);
            assert_close(n2_scaled_softplus(x[i], m), expected, 16 * eps, 1e-308);
        }
}

/* The noise term of a very small ratio is that ratio, however small it is. */
static void scaled_softplus_of_a_tiny_ratio_is_the_ratio(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT_OF(magnitudes); k++)
        for (double x = -40; x > -708; x -= 1.25)
            assert_close(n2_scaled_softplus(x, magnitudes[k]), exp(x), 4 * eps, 0);
}

/* softplus(ln a - x) to a few units in the last place, for every x and M to 1e12. */
static void shifted_softplus_is_exact(void **state) {
    (void)state;
    double x[GRID];
    const size_t n = make_grid(x);
    for (size_t k = 0; k < COUNT_OF(magnitudes); k++)
        for (size_t i = 0; i < n; i++) {
            const double m = magnitudes[k];
            const double expected = (double)shifted_ld((long double)x[i], (long double)m);
            assert_close(n2_shifted_softplus(x[i], m), expected, 16 * eps, 1e-308);
        }
}

/* With M = 1 the terms are softplus(x) and softplus(-x). */
static void magnitude_one_is_plain_softplus(void **state) {
    (void)state;
    double x[GRID];
    const size_t n = make_grid(x);
    for (size_t i = 0; i < n; i++) {
        assert_close(n2_scaled_softplus(x[i], 1), n2_softplus(x[i]), 4 * eps, 1e-323);
        assert_close(n2_shifted_softplus(x[i], 1), n2_softplus(-x[i]), 4 * eps, 1e-323);
    }
}

/* The noise term grows with the ratio and the data term falls with it. */
static void the_terms_are_monotone_up_to_rounding(void **state) {
    (void)state;
    double x[GRID];
    const size_t n = make_grid(x);
    for (size_t k = 0; k < COUNT_OF(magnitudes); k++)
        for (size_t i = 1; i < n; i++) {
            const double m = magnitudes[k], low = x[i - 1], high = x[i];
            assert_true(n2_scaled_softplus(high, m) >= n2_scaled_softplus(low, m) * (1 - 16 * eps));
            assert_true(n2_shifted_softplus(high, m) * (1 - 16 * eps) <=
                        n2_shifted_softplus(low, m));
        }
}

/* As M grows the noise term tends to the ratio and the data term to ln M - x. */
static void a_huge_magnitude_is_the_linear_limit(void **state) {
    (void)state;
    for (double x = -30; x <= 30; x += 0.7) {
        assert_close(n2_scaled_softplus(x, 1e300), exp(x), 4 * eps, 0);
        assert_close(n2_shifted_softplus(x, 1e300), log(1e300) - x, 4 * eps, 0);
    }
}

/* ---- sums ----------------------------------------------------------------- */

/* ln sum e^x of nothing is -infinity, of one number that number. */
static void logsumexp_of_none_and_of_one(void **state) {
    (void)state;
    double x[GRID];
    const size_t n = make_grid(x);
    assert_close(n2_logsumexp(NULL, 0), -N2_INFINITY, 0, 0);
    for (size_t i = 0; i < n; i++) assert_close(n2_logsumexp(&x[i], 1), x[i], 0, 0);
}

/* ln(e^0 + e^x) = softplus(x), in either order. */
static void logsumexp_with_zero_is_softplus(void **state) {
    (void)state;
    double x[GRID];
    const size_t n = make_grid(x);
    for (size_t i = 0; i < n; i++) {
        const double zero_first[] = {0, x[i]}, zero_last[] = {x[i], 0};
        const double absolute = x[i] < 0 ? 2 * eps : 0;
        assert_close(n2_logsumexp(zero_first, 2), n2_softplus(x[i]), 4 * eps, absolute);
        assert_close(n2_logsumexp(zero_last, 2), n2_softplus(x[i]), 4 * eps, absolute);
    }
}

/* Equal terms add ln n; a common shift comes out; -infinity adds nothing. */
static void logsumexp_shifts_and_ignores_nothing_else(void **state) {
    (void)state;
    static const double shifts[] = {0, 1e-300, 700, -700, 1e4, -1e4, 1e15, 1e300, -1e300};
    for (size_t k = 0; k < COUNT_OF(shifts); k++) {
        double x[100];
        for (size_t i = 0; i < 100; i++) x[i] = shifts[k];
        assert_close(n2_logsumexp(x, 100), shifts[k] + log(100), 4 * eps, 0);
        x[17] = -N2_INFINITY;
        assert_close(n2_logsumexp(x, 100), shifts[k] + log(99), 4 * eps, 0);
        x[3] = N2_INFINITY;
        assert_close(n2_logsumexp(x, 100), N2_INFINITY, 0, 0);
    }
    const double nothing[] = {-N2_INFINITY, -N2_INFINITY};
    assert_close(n2_logsumexp(nothing, 2), -N2_INFINITY, 0, 0);
}

static double sum_of(const double *x, size_t n) {
    n2_sum sum = {0, 0};
    for (size_t i = 0; i < n; i++) n2_sum_add(&sum, x[i]);
    return n2_sum_value(&sum);
}

/* 1e100 + 1 - 1e100 is 1 in each of its six orders. */
static void a_one_between_giants_is_not_lost(void **state) {
    (void)state;
    static const double orders[6][3] = {{1e100, 1, -1e100}, {1e100, -1e100, 1}, {1, 1e100, -1e100},
                                        {1, -1e100, 1e100}, {-1e100, 1, 1e100}, {-1e100, 1e100, 1}};
    for (size_t k = 0; k < 6; k++) assert_close(sum_of(orders[k], 3), 1, 0, 0);
}

static void shuffle(double *x, size_t n, uint32_t *random) {
    for (size_t i = n - 1; i > 0; i--) {
        *random = *random * 1664525u + 1013904223u;
        const size_t j = (*random >> 8) % (i + 1);
        const double kept = x[i];
        x[i] = x[j];
        x[j] = kept;
    }
}

/* Terms of sixteen orders of magnitude and both signs sum alike in any order. */
static void the_order_of_terms_does_not_matter(void **state) {
    (void)state;
    enum { N = 1000 };
    double x[N];
    long double exact = 0;
    uint32_t random = 1;
    for (size_t i = 0; i < N; i++) {
        x[i] = pow(10, (double)(i % 17) - 8) * (i % 3 ? 1.1 : -1.7) * (1 + (double)i / N);
        exact += (long double)x[i];
    }
    for (int k = 0; k < 100; k++) {
        shuffle(x, N, &random);
        assert_close(sum_of(x, N), (double)exact, 2 * eps, 0);
    }
}

/* Infinity stays infinity, opposite infinities are NaN, and NaN stays NaN. */
static void infinite_sums_are_infinite(void **state) {
    (void)state;
    const double plus[] = {1, N2_INFINITY, 2}, both[] = {N2_INFINITY, -N2_INFINITY, 2};
    const double too_much[] = {DBL_MAX, DBL_MAX}, not_a_number[] = {1, N2_NAN, 2};
    assert_close(sum_of(plus, 3), N2_INFINITY, 0, 0);
    assert_close(sum_of(both, 3), N2_NAN, 0, 0);
    assert_close(sum_of(too_much, 2), N2_INFINITY, 0, 0);
    assert_close(sum_of(not_a_number, 3), N2_NAN, 0, 0);
    assert_close(sum_of(NULL, 0), 0, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softplus_is_exact_for_every_double),
        cmocka_unit_test(softplus_differs_from_its_mirror_by_x),
        cmocka_unit_test(log_sigmoid_is_a_mirrored_softplus),
        cmocka_unit_test(sigmoid_is_exact_for_every_double),
        cmocka_unit_test(the_sigmoid_family_is_monotone),
        cmocka_unit_test(the_ends_are_exact),
        cmocka_unit_test(nan_is_never_swallowed),
        cmocka_unit_test(scaled_softplus_is_exact),
        cmocka_unit_test(scaled_softplus_of_a_tiny_ratio_is_the_ratio),
        cmocka_unit_test(shifted_softplus_is_exact),
        cmocka_unit_test(magnitude_one_is_plain_softplus),
        cmocka_unit_test(the_terms_are_monotone_up_to_rounding),
        cmocka_unit_test(a_huge_magnitude_is_the_linear_limit),
        cmocka_unit_test(logsumexp_of_none_and_of_one),
        cmocka_unit_test(logsumexp_with_zero_is_softplus),
        cmocka_unit_test(logsumexp_shifts_and_ignores_nothing_else),
        cmocka_unit_test(a_one_between_giants_is_not_lost),
        cmocka_unit_test(the_order_of_terms_does_not_matter),
        cmocka_unit_test(infinite_sums_are_infinite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
