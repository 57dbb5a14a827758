/* Principal components of rows. */
#ifndef N2_PRINCIPAL_H
#define N2_PRINCIPAL_H

#include "base/arena.h"
#include "metric.h"

/* The k directions of largest variance of d-dimensional rows whose moments are known, k <= d:
 * mean [d], direction [k x d] of length 1 each, the first of the largest variance, variance [k].
 * Signs are arbitrary. Fails with N2CE_ENAN if the covariance is not finite, N2CE_ENOMEM. */
n2ce_status n2_principal_components(n2ce_ctx *ctx, const n2_running_moments *m, size_t d, size_t k,
                                    double *mean, double *direction, double *variance);

/* Components learnt from rows, for the projection of others. */
typedef struct n2_principal {
    size_t d, k;
    double *mean, *direction, *variance;
} n2_principal;

/* From at least two rows, on all threads; memory of the arena. Fails as above. */
n2ce_status n2_principal_learn(n2_arena *arena, const n2_feature_rows *rows, size_t k,
                               n2_principal *out);

/* Coordinates [n x k] of rows along the directions, and |x - mean|^2 - |coordinates|^2 [n], what
 * the first k components leave out; either may be NULL. On all threads. */
n2ce_status n2_principal_project(n2ce_ctx *ctx, const n2_principal *p, const n2_feature_rows *rows,
                                 float *coordinates, double *left_out);

#endif
