/* How near two sets of pictures are to one another, by features of them: the Fréchet distance, the
 * kernel distance (KID), precision and recall, and the class score.
 *
 * Features are rows of d numbers, as feature_net.h and patch_features.h make them. Sums are taken
 * in double and in an order that depends on the sets only, so any number of threads gives the same
 * bytes. Numbers are comparable only if the features are the same: those of another network, and
 * printed ones of Inception-v3, are not. */
#ifndef N2_METRIC_H
#define N2_METRIC_H

#include "base/ctx.h"

/* n rows of d numbers, row-major, somebody else's. */
typedef struct n2_feature_rows {
    size_t n, d;
    const float *x;
} n2_feature_rows;

/* ---- mean and covariance, from rows that pass by ---- */

typedef struct n2_running_moments n2_running_moments;

/* Memory for d * d sums; d is at least 1. Fails with N2CE_ENOMEM. */
n2ce_status n2_running_moments_new(n2ce_ctx *ctx, size_t d, n2_running_moments **out);
void n2_running_moments_free(n2_running_moments *m); /* NULL is fine */

/* Adds n rows of d numbers, on all threads. Fails with N2CE_EDATA if one is not finite, and
 * N2CE_ENOMEM. */
n2ce_status n2_running_moments_add(n2_running_moments *m, const float *x, size_t n);

/* The mean [d] and the unbiased covariance [d x d] of at least two rows, both triangles. */
void n2_running_moments_get(const n2_running_moments *m, double *mean, double *covariance);

/* ---- the Fréchet distance ---- */

typedef struct n2_gaussian_fit {
    size_t d;
    double *mean, *covariance; /* [d], [d x d], symmetric */
} n2_gaussian_fit;

/* Of the rows; at least two. n2_gaussian_fit_free is due after success only. */
n2ce_status n2_gaussian_fit_rows(n2ce_ctx *ctx, const n2_feature_rows *rows, n2_gaussian_fit *out);
void n2_gaussian_fit_free(n2ce_ctx *ctx, n2_gaussian_fit *fit);

typedef struct n2_frechet {
    double distance;       /* |m_a - m_b|^2 + tr(A + B - 2 (A^1/2 B A^1/2)^1/2), not negative */
    double means;          /* its first term */
    size_t rank_a, rank_b; /* of the covariances, to rounding */
} n2_frechet;

/* The squared 2-Wasserstein distance of the two normal distributions. Covariances of any rank will
 * do: directions without spread contribute what they should, and nothing is inverted. Covariances
 * of no more rows than columns are not of full rank; the distance is right for them, and too large
 * for what they were drawn from. Fails with N2CE_EDATA for what is not finite, N2CE_ENOMEM. */
n2ce_status n2_frechet_distance(n2ce_ctx *ctx, const n2_gaussian_fit *a, const n2_gaussian_fit *b,
                                n2_frechet *out);

/* ---- the kernel distance, KID ---- */

typedef struct n2_kid {
    double mean, spread;    /* over subsets: mean and standard deviation */
    size_t subsets, subset; /* how many, and of how many rows each */
} n2_kid;

enum { N2_KID_SUBSETS = 100, N2_KID_ROWS = 1000 };

/* The unbiased estimate of the squared maximum mean discrepancy with the kernel (x.y / d + 1)^3, of
 * N2_KID_SUBSETS pairs of subsets, drawn without replacement. A subset has N2_KID_ROWS rows, or
 * half of the smaller set where that is less; both sets have at least 4. It may be negative. Fails
 * with N2CE_EINVAL for fewer rows, N2CE_ENOMEM, N2CE_ECANCELED. */
n2ce_status n2_kid_distance(n2ce_ctx *ctx, const n2_feature_rows *a, const n2_feature_rows *b,
                            uint64_t seed, n2_kid *out);

/* ---- precision and recall ---- */

/* Kynkäänniemi et al. 2019. The manifold of a set is the union of balls around its rows, each as
 * large as the distance to the k-th nearest other row. */
typedef struct n2_precision_recall {
    double precision;            /* share of made rows in the manifold of the real ones */
    double recall;               /* share of real rows in the manifold of the made ones */
    size_t real_rows, made_rows; /* that were looked at */
} n2_precision_recall;

enum { N2_NEIGHBOUR_ROWS = 10000, N2_NEIGHBOURS_MAX = 64 };

/* Every row against every other, on all threads; of larger sets N2_NEIGHBOUR_ROWS rows, one
 * of each of equal steps. Fails with N2CE_EINVAL unless 1 <= k <= N2_NEIGHBOURS_MAX and both sets
 * have more than k rows; N2CE_ENOMEM, N2CE_ECANCELED. */
n2ce_status n2_precision_and_recall(n2ce_ctx *ctx, const n2_feature_rows *real,
                                    const n2_feature_rows *made, size_t k,
                                    n2_precision_recall *out);

/* ---- the class score ---- */

typedef struct n2_class_score {
    double mean, spread; /* over splits; the spread of one split is NaN */
    size_t splits;
} n2_class_score;

enum { N2_CLASS_SPLITS = 10 };

/* What the inception score is with Inception-v3's classes: exp of the mean divergence, in nats, of
 * a row's probabilities from their mean over the split, for splits of neighbouring rows. p: [n x
 * c], n at least 1. Fewer than 10 rows a split make fewer splits. */
n2_class_score n2_class_score_of(const double *p, size_t n, size_t c);

#endif
