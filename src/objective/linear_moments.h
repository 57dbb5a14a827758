/* Moments of samples under the weights that an objective gives them, where the log ratio is linear:
 * the gradient of the objective, and the inner loop of the Gaussian study. */
#ifndef N2_LINEAR_MOMENTS_H
#define N2_LINEAR_MOMENTS_H

#include <stdbool.h>
#include <stddef.h>

/* One side of one objective at its parameter: f = a.z + offset, r = exp(f),
 * weight = 1 / (1 + r inv_m) for the numerator and r / (1 + r inv_m) for the
 * denominator. inv_m = 1/M; 0 is NWJ. */
typedef struct n2_linear_side {
    const float *a;
    float offset, inv_m;
    bool is_den;
} n2_linear_side;

enum { N2_LINEAR_GROUP = 4 }; /* sides that share one pass over the samples */

/* For every side, adds sum_i w_i z_i (dim values) and, last, sum_i w_i to its
 * dim + 1 sums. Samples come in blocks of 16, block b holding coordinate d of its
 * samples at z[(b dim + d) 16], aligned to 64 bytes. `weights` is scratch for
 * N2_LINEAR_GROUP times n rounded up to 16, aligned likewise. */
typedef void n2_linear_moments_fn(const n2_linear_side *sides, size_t n_sides, const float *z,
                                  size_t n, size_t dim, float *weights, double *sums);

#endif
