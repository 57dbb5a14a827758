/* Oracles that are a random forest of 100 trees, fitted anew for every seed to rows of the full
 * table that the seed draws: what Design-Bench does where nobody can try a design. Its labels
 * disagree with those of the table, so that offline designs score otherwise than they did. */
#ifndef N2_FOREST_ORACLE_H
#define N2_FOREST_ORACLE_H

#include "design_task.h"
#include "forest.h"

/* All rows of a table as the forest sees them, and their values. */
typedef struct n2_judged_rows {
    const double *x, *y;
    size_t rows, cols;
} n2_judged_rows;

/* Fits bench->oracle to `fit_to` of the rows, which the bench's seed and the stream draw without
 * repetition. */
n2ce_status n2_forest_oracle_fit(n2_design_bench *bench, const n2_judged_rows *all, size_t fit_to,
                                 uint32_t stream);

/* n2_design_task.end of such a task. */
void n2_forest_oracle_end(n2_design_bench *bench);

/* The first k of a random order of n numbers, in `order`, which has room for n. */
void n2_draw_rows(uint64_t seed, uint32_t stream, size_t n, size_t k, size_t *order);

/* Fills the offline set with the rows up to a percentile of y, or `most` of them by the seed and
 * the stream if they are more (0: all). The space must be set. */
n2ce_status n2_offline_up_to(n2_design_bench *bench, const double *x, const double *y, size_t rows,
                             double percentile, size_t most, uint32_t stream);

#endif
