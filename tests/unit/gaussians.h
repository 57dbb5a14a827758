/* Gaussians from moments, and what they say, for the tests of the Gaussian part of a ratio. */
#ifndef TEST_GAUSSIANS_H
#define TEST_GAUSSIANS_H

#include "samples.h"

#include "ratio/gauss.h"

enum { MOST = 8 }; /* dimensions */

/* So many rows that corrections for finite samples vanish. */
static const double MANY = 1e13;

static inline n2_moments moments(double n, double *mean, double *cov) {
    return (n2_moments){n, mean, cov};
}

static inline n2_gauss *new_gauss(n2ce_ctx *ctx, size_t d, const n2_moments *num,
                                  const n2_moments *den) {
    n2_gauss *g;
    assert_int_equal(n2_gauss_new(ctx, d, num, den, &g), N2CE_OK);
    return g;
}

static inline n2_gauss *new_joint(n2ce_ctx *ctx, size_t d, size_t dx, const n2_moments *joint) {
    n2_gauss *g;
    assert_int_equal(n2_gauss_new_all(ctx, d, dx, 1, joint, NULL, &g), N2CE_OK);
    return g;
}

/* Of the product of the margins, whose covariance goes to cov. */
static inline n2_moments margins_of(const n2_moments *joint, size_t d, size_t dx, double *cov) {
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++)
            cov[i * d + j] = (i < dx) == (j < dx) ? joint->cov[i * d + j] : 0;
    return moments(joint->n, joint->mean, cov);
}

static inline double kl_of(n2ce_ctx *ctx, size_t d, const n2_moments *num, const n2_moments *den) {
    double kl;
    assert_int_equal(n2_gauss_kl(ctx, d, num, den, &kl), N2CE_OK);
    return kl;
}

static inline double mi_of(n2ce_ctx *ctx, size_t d, size_t dx, const n2_moments *joint) {
    double mi;
    assert_int_equal(n2_gauss_mi(ctx, d, dx, joint, &mi), N2CE_OK);
    return mi;
}

static inline n2_moments moments_of(n2ce_ctx *ctx, const double *x, size_t n, size_t d) {
    n2_moments m;
    n2_fold_sums *s;
    const size_t bounds[] = {0, n};
    assert_int_equal(n2_fold_sums_new(ctx, (n2_rows_view){x, n, d}, bounds, 1, &s), N2CE_OK);
    assert_int_equal(n2_moments_without(s, N2_ALL_FOLDS, &m), N2CE_OK);
    n2_fold_sums_free(s);
    return m;
}

/* Rows whose coordinates are mixed, so that everything is correlated. */
static inline double *mixed(size_t n, size_t d, double mean, double sd, uint32_t stream) {
    double *z = normals(n * d, 0, 1, stream), *x = new_doubles(n * d);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < d; j++) {
            x[i * d + j] = mean + sd * z[i * d + j];
            if (j > 0) x[i * d + j] += 0.5 * z[i * d + j - 1] + 0.1 * (double)stream * z[i * d];
        }
    free(z);
    return x;
}

#endif
