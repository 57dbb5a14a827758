/* CMA-ES (Hansen 2006): many searches side by side, each with a normal distribution that learns its
 * covariance, or, of more than 256 numbers, its variances alone. Population and rates are the usual
 * ones of Hansen's tutorial, with positive weights only. */
#ifndef N2_CMA_H
#define N2_CMA_H

#include "base/ctx.h"

typedef struct n2_cma {
    size_t dim, generations;
    double sigma; /* the first step size */
    uint64_t seed;
    /* Values of rows x dim points: all searches ask at once, once a generation. */
    n2ce_status (*ask)(void *user, const double *x, size_t rows, double *value);
    void *user;
} n2_cma;

/* Starts a search at each of the rows of x, and leaves there the best point that it has seen. The
 * same for any number of threads. Fails with N2CE_ENOMEM, or as ask does. */
n2ce_status n2_cma_maximise(n2ce_ctx *ctx, const n2_cma *o, size_t searches, double *x);

#endif
