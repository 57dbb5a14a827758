/* What the fits of kernel_ratio.h share: shuffled samples, distances to the centres, kernels
 * of the bandwidth in use. Private to kernel_ratio.c, ulsif.c and kliep.c.
 *
 * Rows are shuffled once, so fold f is simply the f-th stretch of rows. */
#ifndef N2_KERNEL_FIT_H
#define N2_KERNEL_FIT_H

#include "base/arena.h"

typedef struct n2_kernel_side {
    size_t n;   /* rows */
    double *x;  /* n x cols */
    double *d2; /* n x centres, squared distances */
    double *k;  /* n x centres, exp(-d2 / (2 sigma^2)) */
} n2_kernel_side;

typedef struct n2_kernel_fit {
    n2ce_ctx *ctx;
    n2_arena arena; /* owns everything below */
    size_t cols, centres, folds;
    double *centre;     /* centres x cols */
    size_t *centre_row; /* the numerator's row a centre is, ascending */
    n2_kernel_side num, den;
    double inv_2s2; /* 1 / (2 sigma^2) of the kernels */
    void *scratch;  /* the method's own */
} n2_kernel_fit;

/* A method. `validate` scores the bandwidth whose kernels are in the fit, higher is better,
 * and finds the best lambda for it. `solve` fits all rows. After a cancellation both may leave
 * rubbish. */
typedef struct n2_kernel_solver {
    n2ce_status (*prepare)(n2_kernel_fit *fit);
    n2ce_status (*validate)(n2_kernel_fit *fit, double *score, double *lambda);
    n2ce_status (*solve)(n2_kernel_fit *fit, double lambda, double *alpha);
} n2_kernel_solver;

extern const n2_kernel_solver n2_ulsif_solver, n2_kliep_solver;

/* Fold f of n rows is [n2_fold_begin(n, folds, f), n2_fold_begin(n, folds, f + 1)). */
static inline size_t n2_fold_begin(size_t n, size_t folds, size_t f) { return n * f / folds; }

/* Is centre l a numerator row of this stretch? */
static inline bool n2_centre_within(const n2_kernel_fit *fit, size_t l, size_t begin, size_t end) {
    return fit->centre_row[l] >= begin && fit->centre_row[l] < end;
}

#endif
