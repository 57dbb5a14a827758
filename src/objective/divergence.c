/* Closed forms of the N2CE family (docs/math.md, "The M-path").
 *
 * With r = num/den, path(M) = (1+M) D_alpha splits over the two samples as
 *
 *     path(M) = E_num[ ln((1+M) r / (M+r)) ] + M E_den[ ln((1+M) / (M+r)) ]
 *
 * which is cap(M) - L_M at the true ratio. */
#include "base/ctx.h"
#include "base/numerics.h"

#include <float.h>
#include <math.h>

double n2ce_binary_entropy(double a) {
    if (!(a >= 0 && a <= 1)) return N2_NAN;
    const double left = a > 0 ? -a * log(a) : 0;
    return left + (a < 1 ? -(1 - a) * log1p(-a) : 0);
}

double n2ce_bound_cap(double magnitude) {
    if (!(magnitude >= 1)) return N2_NAN;
    if (isinf(magnitude)) return N2_INFINITY;
    return log1p(magnitude) + magnitude * log1p(1 / magnitude);
}

/* The density of path(M) at a point where num has mass p and den has mass q, in a
 * form that neither cancels nor overflows:
 *     p ln((1+M) p / (M q + p)) + M q ln((1+M) q / (M q + p)).
 * As M grows the second term tends to q - p. */
static double path_density(double p, double q, double m) {
    if (isinf(m)) return p > 0 ? p * log(p / q) - p + q : q;
    const double mix = (m * q + p) / (1 + m), excess = (p - q) / ((1 + m) * q);
    const double from_num = p > 0 ? p * log(p / mix) : 0;
    if (!(q > 0)) return from_num;
    const double log_mix_over_q = excess < 1e9 ? log1p(excess) : log(mix) - log(q);
    return from_num - m * q * log_mix_over_q;
}

static n2ce_status total_mass(n2ce_ctx *ctx, const char *name, const double *mass, size_t n,
                              double *total) {
    n2_sum sum = {0, 0};
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(mass[i]))
            return n2_fail(ctx, N2CE_ENAN, "Probability %zu of the %s is %g.", i, name, mass[i]);
        if (mass[i] < 0)
            return n2_fail(ctx, N2CE_EINVAL, "Probability %zu of the %s is negative: %g.", i, name,
                           mass[i]);
        n2_sum_add(&sum, mass[i]);
    }
    *total = n2_sum_value(&sum);
    if (*total > 0 && isfinite(*total)) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL, "The probabilities of the %s sum to %g.", name, *total);
}

n2ce_status n2ce_path_discrete(n2ce_ctx *ctx, const double *num, const double *den, size_t n,
                               double magnitude, double *path) {
    if (!num || !den || !path) return n2_fail(ctx, N2CE_EINVAL, N2_NULL_ARGUMENT);
    if (!(magnitude >= 1))
        return n2_fail(ctx, N2CE_EINVAL, "The magnitude M is %g; it must be at least 1.",
                       magnitude);
    if (n > PTRDIFF_MAX / sizeof *num)
        return n2_fail(ctx, N2CE_EINVAL, "%zu values do not fit into any memory.", n);
    double num_total, den_total;
    N2_TRY(total_mass(ctx, "numerator", num, n, &num_total));
    N2_TRY(total_mass(ctx, "denominator", den, n, &den_total));
    n2_sum sum = {0, 0};
    for (size_t i = 0; i < n; i++)
        n2_sum_add(&sum, path_density(num[i] / num_total, den[i] / den_total, magnitude));
    *path = n2_sum_value(&sum);
    return N2CE_OK;
}

/* Only the coordinate s along a - b matters: den is N(0,1), num is N(d,1), and the
 * log ratio is f = d s - d^2/2. The trapezoidal rule converges faster than any
 * power here: the integrand's nearest poles are pi/d off the real axis, so its
 * error is about exp(-2 pi^2 / (d h)). For d > 100 the path has reached its cap to
 * the last digit, for every M that a double can hold. */
double n2ce_path_gaussian(double distance, double magnitude) {
    if (!(distance >= 0 && distance <= DBL_MAX) || !(magnitude >= 1)) return N2_NAN;
    const double d = distance, m = magnitude;
    if (isinf(m)) return d * d / 2;
    if (d > 100) return n2ce_bound_cap(m);
    const double h = fmin(0.1, 0.5 / d), reach = 10;
    const long steps = (long)((d + 2 * reach) / h);
    n2_sum loss = {0, 0};
    for (long i = 0; i <= steps; i++) {
        const double s = (double)i * h - reach, f = d * s - d * d / 2;
        const double p = exp(-(s - d) * (s - d) / 2), q = exp(-s * s / 2);
        n2_sum_add(&loss, p * n2_shifted_softplus(f, m) + q * n2_scaled_softplus(f, m));
    }
    const double one_over_root_two_pi = 0.3989422804014327;
    return n2ce_bound_cap(m) - h * one_over_root_two_pi * n2_sum_value(&loss);
}

double n2ce_magnitude_for(double n, double c) {
    if (!(n >= 1) || !(c >= 0)) return N2_NAN;
    return fmax(1, (c > 0 ? c : N2CE_MAGNITUDE_C) * sqrt(n));
}
