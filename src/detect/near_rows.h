/* How far rows are from their nearest normal rows, for where they are.
 *
 *     score(x) = d(x) / sqrt(max(s(x), u / 4)),    d(x) = mean distance to the k nearest rows,
 *
 * s(x) is the mean of d over these rows, u over all rows: half way, on a log scale, between the
 * distance itself, which calls every row of a sparse region odd, and the local outlier factor's
 * ratio, which does not mind how sparse it is. Distances are Euclidean, exact, in double. */
#ifndef N2_NEAR_ROWS_H
#define N2_NEAR_ROWS_H

#include "base/ctx.h"

typedef struct n2_near_rows n2_near_rows;

enum { N2_NEAREST = 5, N2_NEAREST_MOST = 20 };

/* n x d rows, which are copied, and k of them, at most N2_NEAREST_MOST, that count as near.
 * Compares all with all: 2 n^2 d operations, on all threads. Fails with N2CE_ENOMEM,
 * N2CE_ECANCELED. */
n2ce_status n2_near_rows_new(n2ce_ctx *ctx, const double *x, size_t n, size_t d, size_t k,
                             n2_near_rows **out);
void n2_near_rows_free(n2_near_rows *s); /* NULL is fine */

/* Scores of n new rows, each by itself: the same whatever stands beside it. */
n2ce_status n2_near_rows_score(const n2_near_rows *s, const double *x, size_t n, double *score);

/* d of its own rows, each without itself; n numbers, owned by it. */
const double *n2_near_rows_reach(const n2_near_rows *s);

/* Which row is the nearest to one row. */
n2ce_status n2_near_rows_nearest(const n2_near_rows *s, const double *x, size_t *row);

#endif
