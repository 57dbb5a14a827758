#include "numerics.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

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

void n2_tally_add(n2_tally *t, double x) {
    if (!isfinite(x)) return;
    const double before = x - t->mean;
    t->mean += before / (double)++t->n;
    t->squares += before * (x - t->mean);
}

double n2_tally_mean(const n2_tally *t) { return t->n ? t->mean : N2_NAN; }

double n2_tally_spread(const n2_tally *t) {
    return t->n > 1 ? sqrt(t->squares / (double)(t->n - 1)) : N2_NAN;
}

/* ---- digamma -----------------------------------------------------------------------------
 *
 * psi(x) ~ ln x - 1/(2x) - sum_k B_2k / (2k x^2k), good to the last place from DIGAMMA_FAR on;
 * psi(x) = psi(x + 1) - 1/x leads there. */

enum { DIGAMMA_FAR = 10 };

static const double bernoulli_over_2k[] = {1. / 12,  -1. / 120,      1. / 252, -1. / 240,
                                           1. / 132, -691. / 32760., 1. / 12};
enum { BERNOULLI_TERMS = sizeof bernoulli_over_2k / sizeof *bernoulli_over_2k };

static double digamma_asymptotic(double x) {
    const double u = 1 / (x * x);
    double sum = 0;
    for (size_t k = BERNOULLI_TERMS; k-- > 0;) sum = (sum + bernoulli_over_2k[k]) * u;
    return log(x) - 0.5 / x - sum;
}

/* psi(b) - psi(a) over b - a, both beyond DIGAMMA_FAR: a Horner scheme of divided differences,
 * so that nothing cancels however close they are. */
static double digamma_slope(double a, double b) {
    const double u = 1 / (a * a), w = 1 / (b * b), h = b - a;
    double value = 0, slope = 0; /* of the sum, as a function of 1 / x^2 */
    for (size_t k = BERNOULLI_TERMS; k-- > 0;) {
        slope = slope * w + (value + bernoulli_over_2k[k]);
        value = (value + bernoulli_over_2k[k]) * u;
    }
    const double log_slope = h == 0 ? 1 / a : log1p(h / a) / h;
    return log_slope + 0.5 / (a * b) + slope * (a + b) * u * w;
}

/* Between 1 and 2 from the distance to the root: relative accuracy where psi is small. */
static double digamma_near_root(double x) {
    const double root = 1.4616321449683623, root_rest = 9.549995429965698e-17;
    double slope = 0;
    for (int k = 0; k < DIGAMMA_FAR; k++) slope += 1 / ((root + k) * (x + k));
    slope += digamma_slope(root + DIGAMMA_FAR, x + DIGAMMA_FAR);
    return ((x - root) - root_rest) * slope;
}

double n2_digamma(double x) {
    if (!(x > 0)) return N2_NAN;
    if (x > 1 && x < 2) return digamma_near_root(x);
    double before = 0;
    for (; x < DIGAMMA_FAR; x++) before += 1 / x;
    return isinf(x) ? x : digamma_asymptotic(x) - before;
}

/* ---- the normal distribution ------------------------------------------------------------- */

static const double sqrt_half = 0.70710678118654752;
static const double inverse_sqrt_pi = 0.56418958354775629;

double n2_normal_cdf(double x) { return 0.5 * erfc(-x * sqrt_half); }

/* Abramowitz and Stegun 26.2.23 for p <= 1/2: right to 5e-4. */
static double rough_normal_quantile(double p) {
    const double t = sqrt(-2 * log(p));
    return (2.515517 + t * (0.802853 + t * 0.010328)) /
               (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) -
           t;
}

/* Halley's method triples the digits: two steps are enough. */
double n2_normal_quantile(double p) {
    if (!(p >= 0 && p <= 1)) return N2_NAN;
    if (p > 0.5) return -n2_normal_quantile(1 - p);
    if (p == 0) return -N2_INFINITY;
    double x = rough_normal_quantile(p);
    for (int step = 0; step < 2; step++) {
        const double density = exp(-0.5 * x * x) * inverse_sqrt_pi * sqrt_half;
        const double newton = (n2_normal_cdf(x) - p) / density;
        x -= newton / (1 + 0.5 * x * newton);
    }
    return x;
}

/* ---- Student's t ------------------------------------------------------------------------- */

/* ln(Gamma(a + 1/2) / Gamma(a)): the difference of two lgammas would cancel for large a. */
static double log_gamma_half_step(double a) {
    double shift = 0;
    for (; a < 12; a++) shift += log1p(-0.5 / (a + 0.5));
    const double u = 1 / (a * a);
    return 0.5 * log(a) + shift -
           (1. / 8 - u * (1. / 192 - u * (1. / 640 - u * (17. / 14336 - u * 31. / 18432)))) / a;
}

/* The continued fraction of the incomplete beta function (DLMF 8.17.22) by Lentz's method:
 * I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) times this. For x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x) {
    double c = 1, d = 0, value = 1;
    for (int k = 1; k < 20000; k++) {
        const double m = floor(k / 2.);
        const double top = k % 2 ? -(a + m) * (a + b + m) * x : m * (b - m) * x;
        const double term = top / ((a + k - 1) * (a + k));
        d = 1 / (1 + term * d);
        c = 1 + term / c;
        value *= c * d;
        if (fabs(c * d - 1) < DBL_EPSILON) break;
    }
    return 1 / value;
}

/* P(T > t) for t > 0; *density_t is t times the density there. With x = dof / (dof + t^2) the
 * tail is I_x(dof/2, 1/2) / 2, and the factor before the fraction happens to be t f(t). */
static double student_tail(double t, double dof, double *density_t) {
    const double a = dof / 2, r = t / sqrt(dof), square = r * r;
    const bool far = r > 1e8; /* there 1 + square is square, and may overflow */
    const double log_x = far ? log(dof) - 2 * log(t) : -log1p(square);
    const double x = 1 / (1 + square), y = far ? 1 : square / (1 + square);
    *density_t = exp(log_gamma_half_step(a) + a * log_x) * inverse_sqrt_pi * sqrt(y);
    if (x < (a + 1) / (a + 2.5)) return 0.5 * *density_t * beta_fraction(a, 0.5, x) / a;
    return 0.5 - *density_t * beta_fraction(0.5, a, y);
}

/* P(T > t) = q < 1/2. Newton on the logarithm of the tail, inside a bracket: heavy tails make
 * it convex and light ones concave, so a step may be too long. */
static double student_upper_quantile(double q, double dof) {
    double low = 0, high = N2_INFINITY, t = -n2_normal_quantile(q);
    for (int step = 0; step < 400 && isfinite(t); step++) {
        double density_t;
        const double tail = student_tail(t, dof, &density_t), miss = log(tail / q);
        if (miss > 0)
            low = t;
        else
            high = t;
        double next = t + t * miss * tail / density_t;
        if (!(next > low && next < high)) next = isinf(high) ? 2 * low : low + (high - low) / 2;
        if (fabs(next - t) <= 4 * DBL_EPSILON * t) return next;
        t = next;
    }
    return t;
}

/* The expansion in 1 / dof (Abramowitz and Stegun 26.7.5), for so many degrees of freedom that
 * the next term is lost in the rounding. */
static double student_near_normal(double p, double dof) {
    const double z = n2_normal_quantile(p), s = z * z;
    const double g1 = (s + 1) / 4, g2 = (s * (5 * s + 16) + 3) / 96;
    const double g3 = (s * (s * (3 * s + 19) + 17) - 15) / 384;
    return isinf(z) ? z : z + z * (g1 + (g2 + g3 / dof) / dof) / dof;
}

double n2_student_quantile(double p, double dof) {
    if (!(p >= 0 && p <= 1 && dof > 0)) return N2_NAN;
    if (dof > 1e6) return student_near_normal(p, dof);
    if (p == 0.5) return 0;
    if (p == 0 || p == 1) return p == 0 ? -N2_INFINITY : N2_INFINITY;
    return p < 0.5 ? -student_upper_quantile(p, dof) : student_upper_quantile(1 - p, dof);
}
