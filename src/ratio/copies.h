/* Rows that stand in a sample several times though its values hardly ever repeat, as when a file
 * was joined to itself: copies are no new evidence.
 *
 * Counts and levels repeat by nature, the more so the fewer values a column has; and two samples of
 * them that are far apart share hardly any row. So rows are taken for copies only if
 *
 *   - pairs of equal rows are three times as frequent within samples as between them,
 *   - twenty times as frequent as columns with these values make them if they are independent,
 *     or, of one column, if its values are on no grid,
 *   - in some column a twentieth of a sample's values differ, and of all rows a twentieth,
 *   - and no row is a twentieth of a sample by itself (zeros, say). */
#ifndef N2_COPIES_H
#define N2_COPIES_H

#include "base/ctx.h"

/* A row of d numbers, the at-th of its sample; rows by their numbers, for qsort. */
typedef struct n2_whole_row {
    const double *x;
    size_t d, at, sample;
} n2_whole_row;

int n2_compare_rows(const void *a, const void *b);

/* What n sorted values of a column make of it. */
typedef struct n2_column_look {
    double alike; /* the chance that two of them are equal */
    double distinct;
    bool grid; /* they are neighbours on a grid, as whole numbers are */
} n2_column_look;

n2_column_look n2_look_at_column(const double *sorted, size_t n);

/* Whether rows of d columns could hardly be equal so often by themselves: `equal` pairs of all that
 * there are, where independent columns make `by_nature`. `varied`: that of some column many values
 * differ; grid: of one column. */
bool n2_hardly_equal(double equal, double by_nature, size_t d, bool varied, bool grid);

/* Of rows[s], n[s] rows of d numbers each, keeps one of each, in their order, if there are copies.
 * n[s] becomes the number that is left, *dropped that of the others. Fails with N2CE_ENOMEM. */
n2ce_status n2_copies_drop(n2ce_ctx *ctx, double *rows[2], size_t n[2], size_t d, size_t *dropped);

#endif
