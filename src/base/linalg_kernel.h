/* The inner loops of linalg.c, once per instruction set (isa.h), to the same bits in each. */
#ifndef N2_LINALG_KERNEL_H
#define N2_LINALG_KERNEL_H

#include <stddef.h>

typedef double n2_dot_fn(const double *x, const double *y, size_t n);

typedef double n2_quadratic_fn(const double *a, const double *b, const double *x, size_t n);

/* row[0..n) -= sum_k c[k * step] m[k][0..n) for k in [0, rows); m has a row every `stride`
 * numbers. */
typedef void n2_subtract_rows_fn(double *row, size_t n, const double *m, size_t stride, size_t rows,
                                 const double *c, size_t step);

/* row[j] -= a x[j] + b y[j] */
typedef void n2_subtract_two_fn(double *row, size_t n, double a, const double *x, double b,
                                const double *y);

/* Rotation after rotation, n of them: rows k and k + 1 of x, `stride` apart, (a, b), become
 * (c[k] a + s[k] b, c[k] b - s[k] a). */
typedef void n2_rotate_fn(double *x, size_t stride, size_t columns, size_t n, const double *c,
                          const double *s);

#endif
