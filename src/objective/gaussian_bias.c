#include "gaussian_bias.h"

#include "base/numerics.h"

#include <math.h>

/* E[ c(s) ] and E[ c(s) (s - length) ] for s ~ N(mean, 1), where c = r/(M+r) is what
 * the weight M/(M+r) lacks to 1 and r = exp(length s - length^2/2). As M grows the
 * integrand moves up by `length`, so the trapezoid reaches that far; the step
 * resolves the sigmoid c, whose width is 1/length. */
static void missing_weight(double length, double mean, double m, double *share, double *moment) {
    const double reach = 10, top = fmin(length, 28) + reach;
    const double h = fmax(fmin(0.1, 0.5 / length), 1e-3);
    const long steps = (long)((reach + top) / h);
    n2_sum zeroth = {0, 0}, first = {0, 0};
    for (long i = 0; i <= steps; i++) {
        const double z = (double)i * h - reach, s = mean + z;
        const double c = 1 / (1 + m * exp(length * length / 2 - length * s));
        const double mass = h * exp(-z * z / 2) * 0.3989422804014327 * c;
        n2_sum_add(&zeroth, mass);
        n2_sum_add(&first, mass * (s - length));
    }
    *share = n2_sum_value(&zeroth);
    *moment = n2_sum_value(&first);
}

/* The bias is  -E_num[c (x - a)] + E_p[c (x - a)]  with c as above. c depends on x
 * only through s = u.x, u = a/|a|; across u, x - a is centred under p and has mean
 * target - (u.target) u under num. At a = 0 the ratio is 1 and c = 1/(1+M). */
double n2_gaussian_squared_bias(const double *a, const double *target, size_t dim, double m) {
    double length2 = 0, target2 = 0, inner = 0;
    for (size_t d = 0; d < dim; d++) {
        length2 += a[d] * a[d];
        target2 += target[d] * target[d];
        inner += a[d] * target[d];
    }
    const double length = sqrt(length2);
    if (length < 1e-9) return target2 / ((1 + m) * (1 + m));
    const double along = inner / length;
    const double across2 = fmax(0, target2 - along * along);
    double num_share, num_moment, p_share, p_moment;
    missing_weight(length, along, m, &num_share, &num_moment);
    missing_weight(length, length, m, &p_share, &p_moment);
    const double bias_along = p_moment - num_moment;
    return bias_along * bias_along + across2 * num_share * num_share;
}
