/* What tasks and methods do with designs: draw, move into the bounds, rank, count. */
#ifndef N2_DESIGN_SPACE_H
#define N2_DESIGN_SPACE_H

#include "base/random.h"
#include "design.h"

/* Rows drawn uniformly: numbers between their bounds, whole numbers and levels alike likely. */
void n2_space_uniform(const n2_space *space, n2_stream stream, size_t rows, double *x);

/* Moves a design to the nearest one that can be tried; a whole number and a level are rounded.
 * Returns whether its numbers were within the bounds. */
bool n2_space_move_inside(const n2_space *space, double *design);

/* The end of every method: keeps a copy of the designs where one is wanted, moves them inside and
 * notes the share that was inside already. */
void n2_proposals_settle(const n2_space *space, n2_proposals *out);

/* Row numbers of the k largest values, best first, earlier rows before later ones where values are
 * equal; with fewer than k rows they come again from the first on. */
n2ce_status n2_designs_best(n2ce_ctx *ctx, const n2_designs *designs, size_t k, size_t *row);

/* How many of the rows x columns designs are different. */
n2ce_status n2_designs_distinct(n2ce_ctx *ctx, const double *x, size_t rows, size_t columns,
                                size_t *distinct);

/* The decimals that n values have: all are multiples of what is returned, 1, 0.1, ... 1e-6; or 0.
 */
double n2_decimals(const double *x, size_t n);

/* Percentile p in [0, 100] of n > 0 values, interpolated linearly between order statistics as
 * NumPy does. Sorts the values. */
double n2_percentile(double *values, size_t n, double p);

/* Keeps the rows with y <= limit, in their order; x has `columns` numbers a row. Returns how
 * many they are. */
size_t n2_keep_up_to(double limit, size_t columns, double *x, double *y, size_t rows);

/* The sum of squared differences of two designs, in ranges of the factors; other levels count as 1.
 * It need not be finished once it is as large as `most`. */
double n2_space_distance(const n2_space *s, const double *a, const double *b, double most);

/* How far each of n designs is from the nearest of m others: root mean square over columns of the
 * difference in ranges, or 1 for another level. `self`: from the nearest other row, where both are
 * the same. `nearest` has the rows; NULL: not wanted. */
void n2_space_nearest(const n2_space *space, const double *from, size_t n, const double *to,
                      size_t m, bool self, double *distance, size_t *nearest);

#endif
