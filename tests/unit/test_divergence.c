/* Facts about the closed forms: the M-path from 2 JS to KL, its cap, the magnitude rule. */
#include "close.h"

#include "base/numerics.h"
#include "n2ce.h"

#include <string.h>

static const double magnitudes[] = {1, 10, 100, 1e4, 1e6};

/* ---- an independent quadrature ---------------------------------------------------- */

static double normal_log_density(double x, double mean) {
    return -(x - mean) * (x - mean) / 2 - log(2 * 3.14159265358979323846) / 2;
}

/* ln of the mixture alpha den + (1-alpha) num, with num = N(d,1) and den = N(0,1). */
static double mixture_log_density(double x, double d, double alpha) {
    const double num = normal_log_density(x, d) + log(1 - alpha);
    const double den = normal_log_density(x, 0) + log(alpha);
    const double top = fmax(num, den);
    return top + log(exp(num - top) + exp(den - top));
}

/* KL(N(mean,1) || mixture), Simpson's rule. */
static double kl_to_mixture(double mean, double d, double alpha) {
    enum { STEPS = 24000 };
    const double from = -12, h = (d + 24) / STEPS;
    double sum = 0;
    for (int i = 0; i <= STEPS; i++) {
        const double x = from + i * h, log_p = normal_log_density(x, mean);
        const double weight = i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2;
        sum += weight * exp(log_p) * (log_p - mixture_log_density(x, d, alpha));
    }
    return sum * h / 3;
}

/* D_alpha by its definition: two KLs to the mixture. */
static double d_alpha(double d, double alpha) {
    return (1 - alpha) * kl_to_mixture(d, d, alpha) + alpha * kl_to_mixture(0, d, alpha);
}

/* sup L_M = E_num ln r/(M+r) + M E_den ln M/(M+r) at the true ratio, Simpson's rule. */
static double supremum(double d, double m) {
    enum { STEPS = 24000 };
    const double from = -12, h = (d + 24) / STEPS;
    double sum = 0;
    for (int i = 0; i <= STEPS; i++) {
        const double x = from + i * h, f = d * x - d * d / 2;
        const double weight = i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2;
        sum -= weight * exp(normal_log_density(x, d)) * log1p(m * exp(-f));
        sum -= weight * exp(normal_log_density(x, 0)) * m * log1p(exp(f) / m);
    }
    return sum * h / 3;
}

/* ---- entropy and cap ---------------------------------------------------------------- */

/* h is 0 at the ends, ln 2 in the middle, symmetric, and NaN outside [0,1]. */
static void binary_entropy_is_what_it_is(void **state) {
    (void)state;
    assert_close(n2ce_binary_entropy(0), 0, 0, 0);
    assert_close(n2ce_binary_entropy(1), 0, 0, 0);
    assert_close(n2ce_binary_entropy(0.5), log(2), 1e-15, 0);
    for (double a = 1e-3; a < 0.5; a *= 1.1) {
        assert_close(n2ce_binary_entropy(a), n2ce_binary_entropy(1 - a), 1e-12, 0);
        const long double b = (long double)a, h = -b * logl(b) - (1 - b) * log1pl(-b);
        assert_close(n2ce_binary_entropy(a), (double)h, 1e-15, 0);
        assert_true(n2ce_binary_entropy(a) < log(2));
    }
    assert_close(n2ce_binary_entropy(1e-300), 1e-300 * (1 - log(1e-300)), 1e-14, 0);
    const double outside[] = {-1e-300, -1, 1.0000001, 2, N2_INFINITY, -N2_INFINITY, N2_NAN};
    for (size_t i = 0; i < COUNT_OF(outside); i++)
        assert_true(isnan(n2ce_binary_entropy(outside[i])));
}

/* The cap is (1+M) h(M/(1+M)): 1.386, 3.351, 5.610, 10.210, 14.816 nats. */
static void the_cap_has_the_published_values(void **state) {
    (void)state;
    static const double caps[] = {1.386, 3.351, 5.610, 10.210, 14.816};
    for (size_t i = 0; i < COUNT_OF(magnitudes); i++) {
        const double m = magnitudes[i];
        assert_close(n2ce_bound_cap(m), caps[i], 0, 6e-4);
        assert_close(n2ce_bound_cap(m), (1 + m) * n2ce_binary_entropy(m / (1 + m)), 1e-9, 0);
    }
}

/* The cap is exact for every M, grows with it, and is close to 1 + ln(1+M). */
static void the_cap_is_exact_and_grows(void **state) {
    (void)state;
    double last = 0;
    for (double m = 1; m < 1e300; m *= 3.7) {
        const long double l = (long double)m, exact = log1pl(l) + l * log1pl(1 / l);
        assert_close(n2ce_bound_cap(m), (double)exact, 4 * DBL_EPSILON, 0);
        assert_close(n2ce_bound_cap(m), 1 + log1p(m), 0, 0.5 / m + 1e-12);
        assert_true(n2ce_bound_cap(m) > last);
        last = n2ce_bound_cap(m);
    }
    assert_close(n2ce_bound_cap(N2_INFINITY), N2_INFINITY, 0, 0);
    const double too_small[] = {0.999, 0, -1, -N2_INFINITY, N2_NAN};
    for (size_t i = 0; i < COUNT_OF(too_small); i++)
        assert_true(isnan(n2ce_bound_cap(too_small[i])));
}

/* ---- Gaussians ---------------------------------------------------------------------- */

/* path(M) at KL 0.5, 2, 8, 20: the table of the facts, to its three digits. */
static void the_gaussian_path_has_the_tabulated_values(void **state) {
    (void)state;
    static const double kls[] = {0.5, 2, 8, 20};
    static const double table[4][5] = {{0.223, 0.433, 0.492, 0.500, 0.500},
                                       {0.674, 1.450, 1.866, 1.997, 2.000},
                                       {1.265, 3.001, 4.762, 7.101, 7.874},
                                       {1.382, 3.337, 5.573, 10.000, 13.984}};
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < 5; i++)
            assert_close(n2ce_path_gaussian(sqrt(2 * kls[k]), magnitudes[i]), table[k][i], 0, 1e-3);
}

/* path(M) = (1+M) D_alpha = (1+M) h(alpha) + sup L_M, each side from its definition. */
static void the_path_is_the_scaled_divergence_and_the_optimal_loss(void **state) {
    (void)state;
    static const double distances[] = {0.1, 1, 2, 4, 6.3};
    for (size_t k = 0; k < COUNT_OF(distances); k++)
        for (size_t i = 0; i < COUNT_OF(magnitudes); i++) {
            const double m = magnitudes[i], d = distances[k], path = n2ce_path_gaussian(d, m);
            assert_close(path, (1 + m) * d_alpha(d, m / (1 + m)), 0, 1e-10 * (1 + m));
            const double cap = (1 + m) * n2ce_binary_entropy(m / (1 + m));
            assert_close(path, cap + supremum(d, m), 0, 1e-9);
        }
}

/* At M = 1 it is twice the Jensen-Shannon divergence, which is at most ln 2. */
static void at_one_it_is_twice_jensen_shannon(void **state) {
    (void)state;
    for (double d = 0; d < 12; d += 0.7) {
        const double js = (kl_to_mixture(d, d, 0.5) + kl_to_mixture(0, d, 0.5)) / 2;
        assert_close(n2ce_path_gaussian(d, 1), 2 * js, 0, 1e-10);
        assert_true(js <= log(2));
    }
}

/* At infinity it is the KL, distance^2 / 2, and a huge M is already there. */
static void at_infinity_it_is_the_kl(void **state) {
    (void)state;
    static const double distances[] = {0, 0.01, 1, 3, 100, 1e4};
    for (size_t k = 0; k < COUNT_OF(distances); k++) {
        const double d = distances[k];
        assert_close(n2ce_path_gaussian(d, N2_INFINITY), d * d / 2, 0, 0);
    }
    for (double d = 0; d < 5; d += 0.3)
        assert_close(n2ce_path_gaussian(d, 1e60), d * d / 2, 0, 1e-10);
}

/* The path grows with M and with the distance, from 0 to its cap. */
static void the_gaussian_path_is_monotone(void **state) {
    (void)state;
    static const double distances[] = {0, 0.03, 0.3, 1, 2, 3.5, 7, 20, 99, 101, 1e6, 1e300};
    for (size_t k = 0; k < COUNT_OF(distances); k++)
        for (double m = 1; m < 1e13; m *= 10) {
            const double path = n2ce_path_gaussian(distances[k], m);
            assert_true(path >= -1e-10 && path <= n2ce_bound_cap(m) + 1e-10);
            assert_true(path <= distances[k] * distances[k] / 2 + 1e-10);
            assert_true(n2ce_path_gaussian(distances[k], 10 * m) >= path - 1e-10);
            if (k > 0) assert_true(path >= n2ce_path_gaussian(distances[k - 1], m) - 1e-10);
        }
}

/* Identical distributions have no divergence; impossible arguments give NaN. */
static void the_gaussian_path_at_the_edges(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(magnitudes); i++)
        assert_close(n2ce_path_gaussian(0, magnitudes[i]), 0, 0, 1e-10);
    assert_true(isnan(n2ce_path_gaussian(-1, 10)));
    assert_true(isnan(n2ce_path_gaussian(N2_NAN, 10)));
    assert_true(isnan(n2ce_path_gaussian(N2_INFINITY, 10)));
    assert_true(isnan(n2ce_path_gaussian(1, 0.5)));
    assert_true(isnan(n2ce_path_gaussian(1, N2_NAN)));
}

/* ---- discrete distributions ------------------------------------------------------------ */

static const double num[] = {0.5, 0.25, 0.125, 0.125, 0};
static const double den[] = {0.1, 0.3, 0.05, 0.15, 0.4};
enum { N = 5 };

static double path_of(const double *p, const double *q, size_t n, double m) {
    double path = -1;
    assert_int_equal(n2ce_path_discrete(NULL, p, q, n, m, &path), N2CE_OK);
    return path;
}

/* (1+M) D_alpha from its definition, in long double. */
static double discrete_by_definition(const double *p, const double *q, size_t n, double magnitude) {
    const long double m = (long double)magnitude, alpha = m / (1 + m);
    long double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const long double a = (long double)p[i], b = (long double)q[i];
        const long double mix = alpha * b + (1 - alpha) * a;
        if (a > 0) sum += (1 - alpha) * a * logl(a / mix);
        if (b > 0) sum += alpha * b * logl(b / mix);
    }
    return (double)((1 + m) * sum);
}

/* The discrete path is the definition, and symmetric at M = 1. */
static void the_discrete_path_is_the_definition(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(magnitudes); i++) {
        const double m = magnitudes[i];
        assert_close(path_of(num, den, N, m), discrete_by_definition(num, den, N, m), 1e-11, 0);
        assert_close(path_of(den, num, N, m), discrete_by_definition(den, num, N, m), 1e-11, 0);
        assert_close(path_of(num, num, N, m), 0, 0, 1e-15);
    }
    assert_close(path_of(num, den, N, 1), path_of(den, num, N, 1), 1e-14, 0);
}

/* At infinity it is KL(num || den); infinite where den has no mass and num has. */
static void the_discrete_path_ends_at_the_kl(void **state) {
    (void)state;
    double kl = 0;
    for (size_t i = 0; i < N; i++) kl += num[i] > 0 ? num[i] * log(num[i] / den[i]) : 0;
    assert_close(path_of(num, den, N, N2_INFINITY), kl, 1e-14, 0);
    assert_close(path_of(num, den, N, 1e15), kl, 1e-12, 0);
    assert_close(path_of(den, num, N, N2_INFINITY), N2_INFINITY, 0, 0);
    assert_true(isfinite(path_of(den, num, N, 1e15)));
}

/* Counts are as good as probabilities; both sides are normalised. */
static void the_discrete_path_normalises(void **state) {
    (void)state;
    double counts[N], tiny[N];
    for (size_t i = 0; i < N; i++) {
        counts[i] = num[i] * 800;
        tiny[i] = den[i] * 1e-200;
    }
    for (size_t i = 0; i < COUNT_OF(magnitudes); i++)
        assert_close(path_of(counts, tiny, N, magnitudes[i]), path_of(num, den, N, magnitudes[i]),
                     1e-12, 0);
}

/* Distributions without common support are as far apart as the cap allows. */
static void disjoint_distributions_reach_the_cap(void **state) {
    (void)state;
    static const double left[] = {1, 0}, right[] = {0, 1}, almost[] = {1e-310, 1};
    for (size_t i = 0; i < COUNT_OF(magnitudes); i++) {
        const double cap = n2ce_bound_cap(magnitudes[i]);
        assert_close(path_of(left, right, 2, magnitudes[i]), cap, 1e-12, 0);
        assert_close(path_of(left, almost, 2, magnitudes[i]), cap, 1e-12, 0);
    }
}

/* The path grows with M up to the KL. */
static void the_discrete_path_is_monotone(void **state) {
    (void)state;
    for (double m = 1; m < 1e12; m *= 10) {
        assert_true(path_of(num, den, N, m) < path_of(num, den, N, 10 * m));
        assert_true(path_of(num, den, N, m) < path_of(num, den, N, N2_INFINITY));
    }
}

static void assert_fails(n2ce_status status, const double *p, const double *q, size_t n, double m) {
    n2ce_ctx *ctx = NULL;
    assert_int_equal(n2ce_ctx_new(&ctx, NULL), N2CE_OK);
    double path = 42;
    assert_int_equal(n2ce_path_discrete(ctx, p, q, n, m, &path), status);
    assert_close(path, 42, 0, 0);
    assert_true(strlen(n2ce_errmsg(ctx)) > 0);
    n2ce_ctx_free(ctx);
}

/* What is no distribution, and M < 1, are refused with a message. */
static void wrong_distributions_are_refused(void **state) {
    (void)state;
    static const double negative[] = {0.5, -0.1, 0.6}, zero[] = {0, 0, 0};
    const double with_nan[] = {0.5, N2_NAN, 0.5}, with_inf[] = {0.5, N2_INFINITY, 0.5};
    assert_fails(N2CE_EINVAL, negative, den, 3, 1);
    assert_fails(N2CE_EINVAL, num, negative, 3, 1);
    assert_fails(N2CE_EINVAL, zero, den, 3, 1);
    assert_fails(N2CE_EINVAL, num, zero, 3, 1);
    assert_fails(N2CE_ENAN, with_nan, den, 3, 1);
    assert_fails(N2CE_ENAN, num, with_inf, 3, 1);
    assert_fails(N2CE_EINVAL, num, den, 0, 1);
    assert_fails(N2CE_EINVAL, NULL, den, N, 1);
    assert_fails(N2CE_EINVAL, num, NULL, N, 1);
    assert_fails(N2CE_EINVAL, num, den, N, 0.5);
    assert_fails(N2CE_EINVAL, num, den, N, N2_NAN);
    assert_int_equal(n2ce_path_discrete(NULL, num, den, N, 1, NULL), N2CE_EINVAL);
}

/* ---- the magnitude rule ---------------------------------------------------------------- */

/* M = C sqrt(n), never below 1, sqrt(10) if no constant is given. */
static void the_recommended_magnitude_is_c_root_n(void **state) {
    (void)state;
    assert_close(N2CE_MAGNITUDE_C, sqrt(10), 1e-15, 0);
    for (double n = 1; n < 1e12; n *= 3) {
        assert_close(n2ce_magnitude_for(n, 0), sqrt(10 * n), 1e-14, 0);
        assert_close(n2ce_magnitude_for(n, 4.5), 4.5 * sqrt(n), 1e-14, 0);
    }
    assert_close(n2ce_magnitude_for(4, 0.1), 1, 0, 0);
    assert_close(n2ce_magnitude_for(500, 4.5), 100, 0.01, 0);
    const double wrong[] = {0, 0.5, -1, N2_NAN};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_true(isnan(n2ce_magnitude_for(wrong[i], 1)));
    assert_true(isnan(n2ce_magnitude_for(10, -1)));
    assert_true(isnan(n2ce_magnitude_for(10, N2_NAN)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binary_entropy_is_what_it_is),
        cmocka_unit_test(the_cap_has_the_published_values),
        cmocka_unit_test(the_cap_is_exact_and_grows),
        cmocka_unit_test(the_gaussian_path_has_the_tabulated_values),
        cmocka_unit_test(the_path_is_the_scaled_divergence_and_the_optimal_loss),
        cmocka_unit_test(at_one_it_is_twice_jensen_shannon),
        cmocka_unit_test(at_infinity_it_is_the_kl),
        cmocka_unit_test(the_gaussian_path_is_monotone),
        cmocka_unit_test(the_gaussian_path_at_the_edges),
        cmocka_unit_test(the_discrete_path_is_the_definition),
        cmocka_unit_test(the_discrete_path_ends_at_the_kl),
        cmocka_unit_test(the_discrete_path_normalises),
        cmocka_unit_test(disjoint_distributions_reach_the_cap),
        cmocka_unit_test(the_discrete_path_is_monotone),
        cmocka_unit_test(wrong_distributions_are_refused),
        cmocka_unit_test(the_recommended_magnitude_is_c_root_n),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
