/* Dense linear algebra for matrices of a few hundred rows: the Gaussian process,
 * the kernel ratios, covariances.
 *
 * Matrices are double and row-major, without padding. Nothing allocates, nothing
 * is threaded, so results are the same everywhere the arithmetic is. Vectors are
 * matrices of one column. */
#ifndef N2_LINALG_H
#define N2_LINALG_H

#include <stdbool.h>
#include <stddef.h>

/* sum_i x_i y_i, in an order that vectorises and depends on n only. */
double n2_dot(const double *x, const double *y, size_t n);

/* sum_i (a_i x_i + b_i) x_i, likewise. */
double n2_quadratic(const double *a, const double *b, const double *x, size_t n);

/* out[8 r + c] = sum_k a[r a_row + k a_step] b[k b_step + c] for r and c below 8, k below n: the
 * tile that larger products are made of. The sums are taken in the order of k on every machine. */
enum { N2_TILE = 8 };
typedef void n2_tile_fn(const double *a, size_t a_row, size_t a_step, const double *b,
                        size_t b_step, size_t n, double *out);
n2_tile_fn n2_tile_product;

/* out (k x n) = A' B, A being m x k and B m x n. */
void n2_turned_product(const double *a, const double *b, size_t m, size_t k, size_t n, double *out);

/* Cholesky factor L of a symmetric positive definite n x n matrix, A = L L', in
 * place in the lower triangle, zeros above. Only the lower triangle of A is read.
 * Returns false if A is not positive definite (a pivot <= 0 or not finite); A is
 * then garbage. n^3 / 3 operations: 10 ms for n = 400. */
bool n2_cholesky(double *a, size_t n);

/* For the factor l of A: ln det A = 2 sum ln L_ii. */
double n2_cholesky_log_det(const double *l, size_t n);

/* Solves A X = B in place; B is n x columns. */
void n2_cholesky_solve(const double *l, size_t n, double *b, size_t columns);

/* Solves L X = B in place; B is n x columns. */
void n2_lower_solve(const double *l, size_t n, double *b, size_t columns);

/* L^-1, n x n, zeros above the diagonal. May not overlap l. */
void n2_lower_inverse(const double *l, size_t n, double *inverse);

/* A^-1, n x n, both triangles and exactly symmetric. May not overlap l. */
void n2_cholesky_inverse(const double *l, size_t n, double *inverse);

/* Eigenvalues of a symmetric n x n matrix in ascending order and, unless v is
 * NULL, orthonormal eigenvectors in the columns of v (n x n; their signs are
 * arbitrary). Only the lower triangle of A is read; all of A is destroyed. Values
 * are right to a few units in the last place of the largest. Returns false if
 * something is not finite or the iteration does not converge. */
bool n2_symmetric_eigen(double *a, size_t n, double *values, double *v);

/* X = L Q for a k x n matrix X, k <= n, with a lower L and an n x n Q whose rows are orthonormal
 * whatever X is. The diagonal of L, none of it negative, goes to `diagonal`; X is destroyed. Where
 * the rows of X are orthogonal already, Q begins with their directions and `diagonal` is their
 * lengths. */
void n2_row_basis(double *x, size_t k, size_t n, double *diagonal, double *q);

#endif
