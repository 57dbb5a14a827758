/* Nearest rows of one set to the rows of another, all against all on all threads. */
#ifndef N2_NEIGHBOURS_H
#define N2_NEIGHBOURS_H

#include "base/arena.h"
#include "row_panels.h"

/* Rows packed for products, with |x|^2 of each. */
typedef struct n2_packed_rows {
    n2_row_panels rows;
    double *squares; /* of whole panels */
} n2_packed_rows;

/* Memory of the arena; of more than `most` rows so many, one of each of equal steps. */
n2ce_status n2_pack_rows(n2_arena *arena, const n2_feature_rows *rows, size_t most,
                         n2_packed_rows *out);

/* Squared distances of the rows of panel i of a from those of panel k of b, [8 x 8]. Equal rows are
 * at distance 0 exactly. */
void n2_panel_distances(const n2_packed_rows *a, size_t i, const n2_packed_rows *b, size_t k,
                        double out[N2_TILE * N2_TILE]);

/* Squared distances of every row of `of` to its k nearest in `among`, [n x k], the nearest first;
 * k is at most N2_NEIGHBOURS_MAX. Where both are the same object, a row is no neighbour of itself.
 * Neighbours that are not there are at infinity. Fails with N2CE_ENOMEM, N2CE_ECANCELED. */
n2ce_status n2_nearest_squares(n2ce_ctx *ctx, const n2_packed_rows *of, const n2_packed_rows *among,
                               size_t k, double *squares);

#endif
