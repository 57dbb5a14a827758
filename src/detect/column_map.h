/* From columns of a table of normal rows to features in which distances mean something.
 *
 * There are two views of a table, of one width. In the plain one a column of numbers is
 * standardised. In the normal one it is first mapped monotonically to normal margins, beyond the
 * least and the largest value that were seen in proportion to the distance from them: so a row
 * can be far outside in either. A column of levels is 0 or the same c for each level, c such that
 * two rows are on average as far apart as they are along a column of numbers; the levels beyond
 * the 32 most frequent ones share a feature.
 *
 * A missing number is the column's mean, and a feature of its own says that it is missing. What
 * the normal rows do not have at all is counted in the last feature: another value in a column
 * that was constant, a missing one in a column that was complete, a level that is new. Each
 * counts as five standard deviations. */
#ifndef N2_COLUMN_MAP_H
#define N2_COLUMN_MAP_H

#include "base/ctx.h"

typedef enum n2_column_view { N2_VIEW_PLAIN, N2_VIEW_NORMAL } n2_column_view;
enum { N2_VIEWS = 2 };

typedef struct n2_column_map n2_column_map;

/* Rows of a table that was read with keep_missing: n x cols, a missing number is NaN, and so is a
 * level that is unknown. levels[c] is how many levels column c has; 0: it holds numbers. Fails
 * with N2CE_ENOMEM. */
n2ce_status n2_column_map_new(n2ce_ctx *ctx, const double *rows, size_t n, size_t cols,
                              const size_t *levels, n2_column_map **out);
void n2_column_map_free(n2_column_map *m); /* NULL is fine */

size_t n2_column_map_width(const n2_column_map *m);

/* Features of n rows, n x width, on all threads. Fails with N2CE_ENOMEM. */
n2ce_status n2_column_map_apply(const n2_column_map *m, n2_column_view view, const double *rows,
                                size_t n, double *out);

/* What a column mostly holds: the mean of numbers, NaN if there is none, or the most frequent
 * level. */
double n2_column_map_usual(const n2_column_map *m, size_t column);

/* How far two values of a column are apart, in standard deviations; 5 for what has none. */
double n2_column_map_step(const n2_column_map *m, size_t column, double a, double b);

#endif
