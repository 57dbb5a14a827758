/* What noise of magnitude M costs: how far the gradient of N2CE is from that of the likelihood. */
#ifndef N2_GAUSSIAN_BIAS_H
#define N2_GAUSSIAN_BIAS_H

#include <stddef.h>

/* Squared norm of  grad L_M - grad L_MLE  for the mean of a Gaussian N(a, I) that is learnt from
 * N(target, I) against the noise N(0, I), at the point a, by quadrature. */
double n2_gaussian_squared_bias(const double *a, const double *target, size_t dim, double m);

#endif
