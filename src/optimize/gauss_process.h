/* A Gaussian process for values of designs: exact, for a few hundred rows up to a few thousand of a
 * larger table. On smooth functions it beats networks by far where rows are few, and it says how
 * unsure it is.
 *
 *     k(a, b) = s^2 (1 + r^2 / 4)^-2 + l^2 a'b,   r^2 = sum_j w_j (a_j - b_j)^2,   noise n^2
 *
 * the rational quadratic kernel with a weight (an inverse squared length scale) a column, and a
 * line. s, l, n and the weights have the largest marginal likelihood of some rows, with a weak
 * prior. */
#ifndef N2_GAUSS_PROCESS_H
#define N2_GAUSS_PROCESS_H

#include "base/ctx.h"

typedef struct n2_gauss_process n2_gauss_process;

enum { N2_PROCESS_ROWS = 1000, N2_PROCESS_DRAWS = 8 }; /* the most that are learnt from, drawn */

/* x is rows x width, row-major, of a size near 1; y is standardised. The first N2_PROCESS_ROWS rows
 * are learnt from: they should be in a random order. Fails with N2CE_ENOMEM, N2CE_ECANCELED, or
 * N2CE_ENAN where the rows make no covariance; *out is then NULL. `like`: tuned as this one, if the
 * width is the same; NULL: anew. */
n2ce_status n2_gauss_process_fit(n2ce_ctx *ctx, const float *x, const float *y, size_t rows,
                                 size_t width, const n2_gauss_process *like,
                                 n2_gauss_process **out);
void n2_gauss_process_free(n2_gauss_process *p); /* NULL is fine */

/* How many rows it learnt from, and what it says of each of these from all the others. */
size_t n2_gauss_process_rows(const n2_gauss_process *p);
const double *n2_gauss_process_left_out(const n2_gauss_process *p);

/* Makes n functions that could be the truth as well, given the rows: draws of the process, by
 * waves that are conditioned on the rows. Once a process. */
n2ce_status n2_gauss_process_draw(n2_gauss_process *p, uint64_t seed, size_t n);

/* Expected values of rows; and how far each of the functions that were drawn is from them, rows x
 * draws, unless that is NULL. These add up to nothing over the draws, and have the variance of the
 * process, noise aside. */
n2ce_status n2_gauss_process_ask(const n2_gauss_process *p, const float *x, size_t n, double *mean,
                                 double *apart);

/* The standard deviation of the noise. */
double n2_gauss_process_noise(const n2_gauss_process *p);

#endif
