/* Normal rows that are equal, and whether they are copies of one another.
 *
 * Where a file was joined to itself an expert has seen copies of the rows that were held out for
 * it, and every new row would be odder than those. So copies are dealt into one fold. Rows of names
 * and counts repeat by nature, and so will new ones: these are dealt one by one. Rows are copies if
 * there are five pairs of them or more, ten different rows or more, no row is a twentieth of all
 * (zeros, say), and one of these holds:
 *
 *   - a column of numbers with as many values as a quarter of the different rows is on no grid, as
 *     measurements are, and how often a row is there varies at most one and a half times as much as
 *     if rows were drawn, each as likely (goods have prices, and some are sold more often);
 *   - rows repeat twenty times as often as independent columns with these values make them, and how
 *     often a row is there varies at most half as much.
 *
 * Values are equal as numbers are, and missing ones are. */
#ifndef N2_EQUAL_ROWS_H
#define N2_EQUAL_ROWS_H

#include "base/ctx.h"

typedef struct n2_equal_rows {
    n2ce_ctx *ctx;
    const double *x; /* n x cols, not owned */
    size_t n, cols;
    size_t *order;  /* of the rows, by their values, and of equal ones by their number */
    size_t *group;  /* of each row; groups are numbered as their first rows come */
    size_t groups;  /* different rows */
    size_t largest; /* how often the most frequent one is there */
    double pairs;   /* of equal rows */
} n2_equal_rows;

/* x must outlive it. Fails with N2CE_ENOMEM; *out is then NULL. */
n2ce_status n2_equal_rows_new(n2ce_ctx *ctx, const double *x, size_t n, size_t cols,
                              n2_equal_rows **out);
void n2_equal_rows_free(n2_equal_rows *e); /* NULL is fine */

/* The first of the rows that a row is equal to; SIZE_MAX: it is equal to none. */
size_t n2_equal_rows_find(const n2_equal_rows *e, const double *row);

/* Whether equal rows are copies; levels[c] is how many levels column c has, 0: it holds numbers.
 * Fails with N2CE_ENOMEM. */
n2ce_status n2_equal_rows_are_copies(const n2_equal_rows *e, const size_t *levels, bool *copies);

#endif
