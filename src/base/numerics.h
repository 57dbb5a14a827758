/* Stable elementary functions, in one place. Exact to a few units in the last
 * place over the whole range of double (tests/unit/test_numerics.c). NaN in, NaN
 * out. */
#ifndef N2_NUMERICS_H
#define N2_NUMERICS_H

#include <math.h>
#include <stddef.h>

/* The C constants are floats, which strict warnings rightly refuse to widen. */
#define N2_INFINITY ((double)INFINITY)
#define N2_NAN      ((double)NAN)

double n2_softplus(double x);    /* ln(1 + e^x), also known as log1pexp */
double n2_log_sigmoid(double x); /* ln(1 / (1 + e^-x)) = -softplus(-x) */
double n2_sigmoid(double x);     /* 1 / (1 + e^-x) */

/* ln sum_i e^x[i]; -infinity for n = 0. */
double n2_logsumexp(const double *x, size_t n);

/* a softplus(x - ln a) = a ln(1 + e^x / a) for a > 0, without the rounding of
 * ln a: this is the noise term of N2CE with a = M. */
double n2_scaled_softplus(double x, double a);

/* softplus(ln a - x) = ln(1 + a e^-x): the data term of N2CE with a = M. */
double n2_shifted_softplus(double x, double a);

/* Compensated sum (Neumaier): the order of the terms does not matter beyond the
 * last place. */
typedef struct n2_sum {
    double sum, lost;
} n2_sum;
void n2_sum_add(n2_sum *s, double x);
double n2_sum_value(const n2_sum *s);

/* A mean in the making, and the spread about it; what is not finite is left out. */
typedef struct n2_tally {
    size_t n;
    double mean, squares;
} n2_tally;
void n2_tally_add(n2_tally *t, double x);
double n2_tally_mean(const n2_tally *t);   /* NaN: of nothing */
double n2_tally_spread(const n2_tally *t); /* standard deviation; NaN: of fewer than two */

/* psi(x) = d/dx ln Gamma(x) for x > 0, to 1e-14 relative, also near its root at
 * 1.46; NaN for x <= 0. */
double n2_digamma(double x);

/* The standard normal distribution. The quantile is exact to 1e-15 relative or so
 * (p near 1: as exact as p is); -infinity at 0, infinity at 1, NaN outside. */
double n2_normal_cdf(double x);
double n2_normal_quantile(double p);

/* Inverse of the distribution function of Student's t, to 1e-11 relative or 1e-15
 * absolute; dof > 0 need not be whole, infinity is the normal distribution. Beyond
 * DBL_MAX, which small dof reach, it is infinite. */
double n2_student_quantile(double p, double dof);

#endif
