#include "numerics.h"

#include <math.h>

double n2_softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }

double n2_log_sigmoid(double x) { return -n2_softplus(-x); }

double n2_sigmoid(double x) {
    if (x >= 0) return 1 / (1 + exp(-x));
    const double e = exp(x);
    return e / (1 + e);
}

double n2_logsumexp(const double *x, size_t n) {
    double top = -N2_INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i])) return x[i];
        if (x[i] > top) top = x[i];
    }
    if (isinf(top)) return top;
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += exp(x[i] - top);
    return top + log(sum);
}

double n2_scaled_softplus(double x, double a) {
    const double log_a = log(a);
    if (x > log_a) return a * ((x - log_a) + log1p(a * exp(-x)));
    const double r = exp(x);
    return r < 1e-17 * a ? r : a * log1p(r / a); /* r / a might underflow */
}

double n2_shifted_softplus(double x, double a) {
    const double log_a = log(a);
    if (!(x > log_a)) return (log_a - x) + log1p(exp(x) / a);
    return log1p(a * exp(-x));
}

/* When the sum is infinite the correction would be inf - inf. */
void n2_sum_add(n2_sum *s, double x) {
    const double t = s->sum + x;
    if (isfinite(t)) s->lost += fabs(s->sum) >= fabs(x) ? (s->sum - t) + x : (x - t) + s->sum;
    s->sum = t;
}

double n2_sum_value(const n2_sum *s) { return isfinite(s->sum) ? s->sum + s->lost : s->sum; }
