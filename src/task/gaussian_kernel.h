/* The inner loop of the Gaussian study. */
#ifndef N2_GAUSSIAN_KERNEL_H
#define N2_GAUSSIAN_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

/* One side of the objective at one parameter: f = a.z + offset, r = exp(f),
 * weight = 1 / (1 + r inv_m) for the numerator and r / (1 + r inv_m) for the
 * denominator. inv_m = 1/M; 0 is NWJ. */
typedef struct n2_gaussian_side {
    const float *a;
    float offset, inv_m;
    bool is_den;
} n2_gaussian_side;

/* Adds sum_i w_i z_i (dim values) and, last, sum_i w_i to `sums`. Samples come in
 * blocks of 16, block b holding coordinate d of its samples at z[(b dim + d) 16].
 * `weights` is scratch for n rounded up to 16. */
typedef void n2_gaussian_moments_fn(const n2_gaussian_side *side, const float *z, size_t n,
                                    size_t dim, float *weights, double *sums);

#endif
