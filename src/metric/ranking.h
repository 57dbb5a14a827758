/* How well scores tell odd rows from normal ones.
 *
 * Going down from the largest score, precision is the share of odd rows among those seen so far,
 * recall the share of the odd ones that were seen. Rows of one score are seen at once, so their
 * order does not matter. The odd rows are the positives: chance has an AUPRC of about their share,
 * the prevalence, and an AUROC of one half. */
#ifndef N2_RANKING_H
#define N2_RANKING_H

#include "base/arena.h"

typedef struct n2_rank_areas {
    size_t n, odd;
    double prevalence; /* odd / n */
    double auprc;      /* trapezoids under precision over recall, from recall 0, precision 1: not
                          the average precision */
    double auroc;      /* probability that an odd row scores above a normal one; ties are half */
} n2_rank_areas;

/* Of n rows, with at least one odd and one normal among them; scores grow with oddness and may be
 * infinite. Fails with N2CE_EINVAL for rows of one kind only, N2CE_EDATA for a score that is NaN,
 * N2CE_ENOMEM. */
n2ce_status n2_rank_scores(n2ce_ctx *ctx, const double *scores, const unsigned char *is_odd,
                           size_t n, n2_rank_areas *out);

/* Precision where recall first reaches i / (points - 1), i below `points`, which is at least 2; at
 * recall 0 it is 1. Fails likewise. */
n2ce_status n2_precision_at_recall(n2ce_ctx *ctx, const double *scores, const unsigned char *is_odd,
                                   size_t n, size_t points, double *precision);

typedef enum n2_row_kind { N2_RANKED_ANY, N2_RANKED_NORMAL, N2_RANKED_ODD } n2_row_kind;

/* The numbers of the rows of a kind with the largest scores, `count` at most, the largest first and
 * equal ones in their order; *found of them. Fails with N2CE_EDATA, N2CE_ENOMEM as above. */
n2ce_status n2_largest_scores(n2ce_ctx *ctx, const double *scores, const unsigned char *is_odd,
                              size_t n, n2_row_kind kind, size_t count, size_t *largest,
                              size_t *found);

#endif
