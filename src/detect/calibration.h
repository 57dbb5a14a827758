/* From scores to probabilities, by the scores of normal rows that were held out.
 *
 * Tails put the parts of a score on one scale: minus the log of the share of held-out normal rows
 * that are as odd. Beyond their upper tenth it is extrapolated by an exponential, so that what is
 * odder than every normal row still has an order.
 *
 * Conformal p-values say how odd a whole row is: 1 + the number of held-out normal rows that are
 * odder, in n + 1, and of those that are as odd a random number. If the row is one like them each
 * of these ranks is as likely as any other, whatever the score is (Vovk et al. 2005). */
#ifndef N2_CALIBRATION_H
#define N2_CALIBRATION_H

#include "base/ctx.h"

/* ---- tails --------------------------------------------------------------- */

typedef struct n2_tail {
    double *sorted; /* scores of held-out normal rows */
    size_t n, last; /* beyond sorted[last] it is extrapolated, */
    double mean;    /* by an exponential of this mean */
} n2_tail;

/* The n scores are copied. Fails with N2CE_ENOMEM. */
n2ce_status n2_tail_new(n2ce_ctx *ctx, const double *scores, size_t n, n2_tail *out);
void n2_tail_free(n2ce_ctx *ctx, n2_tail *t);

/* About 0 for what is usual, -ln of a tail's probability for what is not. */
double n2_tail_at(const n2_tail *t, double score);

/* ---- p-values ------------------------------------------------------------ */

/* The rank, 1 to n + 1, of a score among those of n held-out normal rows, sorted; the p-value is
 * this over n + 1. `draw`, uniform in (0, 1], decides among those that are as odd. */
size_t n2_conformal_rank(const double *sorted, size_t n, double score, double draw);

/* The same, 1 to n + copies, where each of the n rows is there so often in the mean: the new one
 * counts as one of them. */
size_t n2_rank_of_copies(const double *sorted, size_t n, double score, double draw, size_t copies);

/* Benjamini and Hochberg 1995: flag the rows of rank at most this, 0: none. count[i] rows have
 * rank i, of ranks 1 to `ranks`; p is rank / ranks. */
size_t n2_flagged_rank(const uint64_t *count, size_t ranks, double fdr);

#endif
