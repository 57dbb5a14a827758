/* The Gaussian part of a log ratio, in closed form.
 *
 * Both samples are summarised by their means and covariances. In the basis where the
 * denominator is N(0, I) and the numerator N(delta, diag lambda) the log ratio of the two
 * Gaussians is a sum over directions, and so is that of any two waymarks between them.
 * It is exact if both samples are Gaussian, however far apart they are; what it misses
 * is left to the critic. */
#ifndef N2_GAUSS_H
#define N2_GAUSS_H

#include "base/ctx.h"

#include <stdint.h>

/* ---- moments ---- */

/* Rows of samples: n x d doubles, row-major. */
typedef struct n2_rows_view {
    const double *x;
    size_t n, d;
} n2_rows_view;

typedef struct n2_moments {
    double n;     /* rows */
    double *mean; /* d */
    double *cov;  /* d x d, divided by n - 1 */
} n2_moments;

/* Sums over the rows of each fold, from which the moments of any folds follow. Fold k has rows
 * bounds[k] .. bounds[k + 1] - 1. The rows are not needed later. */
typedef struct n2_fold_sums n2_fold_sums;
n2ce_status n2_fold_sums_new(n2ce_ctx *ctx, n2_rows_view rows, const size_t *bounds, size_t folds,
                             n2_fold_sums **out);
void n2_fold_sums_free(n2_fold_sums *s); /* NULL is fine */

/* Moments of all folds but one; N2_ALL_FOLDS: of all. */
#define N2_ALL_FOLDS SIZE_MAX
n2ce_status n2_moments_without(const n2_fold_sums *s, size_t fold, n2_moments *out);
void n2_moments_free(n2ce_ctx *ctx, n2_moments *m);

/* With hardly more rows than columns covariances are mostly noise: pulls them to 0. */
void n2_moments_shrink(n2_moments *m, size_t d);

/* ---- the ratio ---- */

typedef struct n2_gauss {
    n2ce_ctx *ctx;
    size_t d;
    size_t dx;              /* 0; or of a joint sample (x, y) the coordinates of x */
    double *basis;          /* d x d: u = basis (x - centre); with dx in pairs (below) */
    double *centre;         /* mean of the denominator */
    double *lambda, *delta; /* variance and mean of the numerator along each direction */
    double *whiten;         /* d x d, lower: whiten (x - centre) is N(0, I) under the
                               denominator, block by block where that has blocks */
} n2_gauss;

/* Fails with N2CE_ENOMEM, or N2CE_ERANGE if no basis can be found. Directions in which a
 * sample has no spread get a tiny one. */
n2ce_status n2_gauss_new(n2ce_ctx *ctx, size_t d, const n2_moments *num, const n2_moments *den,
                         n2_gauss **out);
void n2_gauss_free(n2_gauss *g); /* NULL is fine */

/* Leaves out directions along which one sample varies a billion times less than the other, or x and
 * y are one: of indicators of levels, that some combinations never occur, which no normal tells
 * well. Returns whether there were any. */
bool n2_gauss_drop_degenerate(n2_gauss *g);

/* n of them, side by side on all threads: what each needs is held at the same time. After a failure
 * all of out are NULL.
 *
 * With dx, at least 1 and less than d, they are of joint samples, num, and the denominator is the
 * product of the margins of the first dx and the other coordinates; den is not read. Of its
 * directions i and i + k, k being the lesser of dx and d - dx, one is p + q and the other p - q for
 * a p of the x alone and a q of the y alone, and from 2 k on both samples are N(0, 1): so u costs
 * half or less of the products. */
n2ce_status n2_gauss_new_all(n2ce_ctx *ctx, size_t d, size_t dx, size_t n, const n2_moments *num,
                             const n2_moments *den, n2_gauss **out);

/* Sets g->dx to dx if the directions are such pairs, as those of a joint sample that was read from
 * a file are; else to 0. */
void n2_gauss_find_pairs(n2_gauss *g, size_t dx);

/* Numbers that each of them needs, on the way or for good; its moments, two of them, and what rows
 * are scored by included. */
static inline size_t n2_gauss_numbers(size_t d) { return 9 * d * d + 16 * d; }

/* ln N(x; num) - ln N(x; den) of n rows, on all threads. */
n2ce_status n2_gauss_score(const n2_gauss *g, const double *x, size_t n, double *f);

/* The same by items, for threads that take some of them when they have time (pool.h). Of a joint
 * sample with it, if shifts > 0, that of pairs of different rows: pairs[s stride + i], s < shifts,
 * is that of (x of row i, y of row i + s + 1), row n being row 0 again. */
typedef struct n2_score_rows {
    const double *x; /* n x d */
    size_t n;
    double *f;
    size_t shifts, stride;
    double *pairs;
} n2_score_rows;

/* lender: another one of as many columns, freed later, whose memory for workers is used, so that
 * a worker may be at one item of all of them at a time; or NULL. */
typedef struct n2_gauss_scoring n2_gauss_scoring;
n2ce_status n2_gauss_scoring_new(const n2_gauss *g, const n2_score_rows *rows,
                                 const n2_gauss_scoring *lender, n2_gauss_scoring **out);
size_t n2_gauss_scoring_items(const n2_gauss_scoring *s);
void n2_gauss_scoring_item(void *scoring, size_t item, int worker); /* an n2_item_fn */
void n2_gauss_scoring_free(n2_gauss_scoring *s);                    /* NULL is fine */

/* sum_i a_i u_i^2 + b_i u_i + c along the directions, at n rows; ab is a and then b. Of a joint
 * sample without those directions along which there is nothing to tell, from 2 k on. */
n2ce_status n2_gauss_quadratic(const n2_gauss *g, const double *ab, double c, const double *x,
                               size_t n, double *f);

/* Writes the numerator's and the denominator's row of pair i. */
typedef void n2_pair_fn(void *arg, size_t i, double *num, double *den);

/* A pair's rows are mixed to a row of each waymark a, sqrt(1 - a^2) num + a den as seen from the
 * centre. For every stage k, whose waymarks are alpha[k] (side 0) and alpha[k + 1] (side 1), the
 * log ratio of these two at the rows of the first n[side] pairs, to f[side], stage by stage. Each
 * pair is asked for once, on all threads. */
n2ce_status n2_gauss_stages(const n2_gauss *g, const double *alpha, size_t stages,
                            const size_t n[2], n2_pair_fn *pair, void *arg, double *const f[2]);

/* KL between waymarks: u = sqrt(1 - a^2) u_num + a u_den, for a = from and a = to. */
double n2_gauss_waymark_kl(const n2_gauss *g, double from, double to);

/* The log ratio of two waymarks is  sum_i a_i u_i^2 + b_i u_i + c;  a and b have d
 * numbers. */
void n2_gauss_waymark_ratio(const n2_gauss *g, double from, double to, double *a, double *b,
                            double *c);

/* alpha[0] = 1 (denominator) > ... > alpha[stages] = 0 (numerator), so that the Gaussian
 * divergence is the same from each to the next, as far as numbers between 0 and 1 allow; evenly
 * spaced if there is less than 1e-20 nats of it. */
void n2_gauss_waymarks(const n2_gauss *g, size_t stages, double *alpha);

/* ---- divergences, free of the bias that finite samples give them ---- */

/* KL(num || den) of independent Gaussian samples, unbiased: traces and log determinants
 * are corrected by the Wishart distribution's moments. NaN if a sample has fewer than
 * d + 3 rows, or no basis can be found. Fails with N2CE_ENOMEM. */
n2ce_status n2_gauss_kl(n2ce_ctx *ctx, size_t d, const n2_moments *num, const n2_moments *den,
                        double *out);

/* Mutual information of the first dx and the other coordinates, unbiased likewise. */
n2ce_status n2_gauss_mi(n2ce_ctx *ctx, size_t d, size_t dx, const n2_moments *joint, double *out);

/* How much each row of the denominator moves KL(num || den) of the Gaussians: the
 * influence function, with mean 0. */
n2ce_status n2_gauss_influence_den(const n2_gauss *g, const double *x, size_t n, double *out);

#endif
