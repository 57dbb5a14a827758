/* Explicit fits of the codes of pictures: what a practitioner would try before a learnt prior.
 *
 * One Gaussian with the mean and full covariance of all posteriors together, or a mixture of k by
 * expectation and maximisation, in double. */
#ifndef N2_PRIOR_FIT_H
#define N2_PRIOR_FIT_H

#include "base/ctx.h"

typedef struct n2_code_mixture {
    size_t k, d;
    double *weight;    /* [k], they add up to 1 */
    double *mean;      /* [k x d] */
    double *factor;    /* [k x d x d]: Cholesky's, lower */
    double likelihood; /* mean of ln p over the rows that it was fitted to, nats */
    size_t rounds;     /* of EM */
} n2_code_mixture;

/* n posteriors as n2_lebm_codes has them, means and log variances side by side: the mean of the
 * means; their covariance and, on the diagonal, the mean of the variances. Fails with N2CE_EDATA
 * for codes that are not finite or fewer than two, N2CE_ENOMEM. n2_code_mixture_free is due after
 * success only. */
n2ce_status n2_code_gaussian_fit(n2ce_ctx *ctx, const float *codes, size_t n, size_t d,
                                 n2_code_mixture *out);

/* A code of each of n posteriors, drawn: [n x d]. */
void n2_code_draw(const float *codes, size_t n, size_t d, uint64_t seed, double *z);

/* k Gaussians for rows z [n x d], n at least 2 k. Centres begin far apart (k-means++), with the
 * covariance of all; rounds end when the likelihood grows by less than 1e-4 nats, or at 60.
 * Variances have a floor of 1e-6 of the mean one. Same rows and seed: same bytes on any number of
 * threads. Fails with N2CE_EINVAL, N2CE_EDATA, N2CE_ENOMEM, N2CE_ECANCELED. */
n2ce_status n2_code_mixture_fit(n2ce_ctx *ctx, const double *z, size_t n, size_t d, size_t k,
                                uint64_t seed, n2_code_mixture *out);
void n2_code_mixture_free(n2ce_ctx *ctx, n2_code_mixture *m);

/* The mean over n rows z of ln p(z) / N(z; 0, I), nats. N2CE_ENOMEM. */
n2ce_status n2_code_mixture_gain(n2ce_ctx *ctx, const n2_code_mixture *m, const double *z, size_t n,
                                 double *nats);

/* n draws, [n x d]. N2CE_ENOMEM. */
n2ce_status n2_code_mixture_sample(n2ce_ctx *ctx, const n2_code_mixture *m, size_t n, uint64_t seed,
                                   double *z);

#endif
