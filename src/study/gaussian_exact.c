/* What can be said about the Gaussian study without sampling. */
#include "gaussian.h"

#include "base/numerics.h"

#include <math.h>

double n2_gaussian_mle_score(const n2_gaussian_setting *s) {
    double gap = 0;
    for (size_t d = 0; d < s->dim; d++)
        gap += (s->start[d] - s->target[d]) * (s->start[d] - s->target[d]);
    const double shrink = (1 - s->step_size) * (1 - s->step_size), n = (double)s->steps;
    if (shrink == 1) return gap;
    return gap * (1 - pow(shrink, n)) / (1 - shrink) / n;
}

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

static double fitted_slope(const n2_bias_curve *curve) {
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int i = 0; i < N2_BIAS_POINTS; i++) {
        if (curve->magnitude[i] < 9.99 || curve->magnitude[i] > 1001) continue;
        const double x = log(curve->magnitude[i]), y = log(curve->squared[i]);
        n += 1;
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    const double slope = (n * sxy - sx * sy) / (n * sxx - sx * sx);
    return isfinite(slope) ? slope : N2_NAN;
}

/* Where on the segment from start (0) to target (1) the noise, at 0, is nearest. */
static double nearest_to_noise(const n2_gaussian_setting *s) {
    double along = 0, length2 = 0;
    for (size_t d = 0; d < s->dim; d++) {
        const double way = s->target[d] - s->start[d];
        along -= s->start[d] * way;
        length2 += way * way;
    }
    return length2 > 0 ? fmin(1, fmax(0, along / length2)) : 0;
}

n2ce_status n2_gaussian_bias_curves(const n2_gaussian_setting *s, n2_arena *arena,
                                    n2_gaussian_bias *bias) {
    static const char *const where[N2_BIAS_CURVES] = {"nearest the noise", "half-way to the start",
                                                      "at the start"};
    const double nearest = nearest_to_noise(s);
    for (int k = 0; k < N2_BIAS_CURVES; k++) {
        n2_bias_curve *curve = &bias->curves[k];
        const double at = nearest * (2 - k) / 2;
        curve->where = where[k];
        curve->point = n2_arena_alloc(arena, s->dim, sizeof(double));
        if (!curve->point) return N2CE_ENOMEM;
        for (size_t d = 0; d < s->dim; d++)
            curve->point[d] = s->start[d] + at * (s->target[d] - s->start[d]);
        for (int i = 0; i < N2_BIAS_POINTS; i++) {
            curve->magnitude[i] = pow(10, i / 10.0);
            curve->squared[i] =
                n2_gaussian_squared_bias(curve->point, s->target, s->dim, curve->magnitude[i]);
        }
        curve->slope = fitted_slope(curve);
    }
    return N2CE_OK;
}
