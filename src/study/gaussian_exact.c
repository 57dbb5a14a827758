/* What can be said about the Gaussian study without sampling. */
#include "gaussian.h"

#include "base/numerics.h"
#include "objective/gaussian_bias.h"

#include <math.h>

double n2_gaussian_mle_score(const n2_gaussian_setting *s) {
    double gap = 0;
    for (size_t d = 0; d < s->dim; d++)
        gap += (s->start[d] - s->target[d]) * (s->start[d] - s->target[d]);
    const double shrink = (1 - s->step_size) * (1 - s->step_size), n = (double)s->steps;
    if (shrink == 1) return gap;
    return gap * (1 - pow(shrink, n)) / (1 - shrink) / n;
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
