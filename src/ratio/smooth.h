/* The smooth part of a log ratio: kernel logistic regression on what the Gaussian part misses.
 *
 *     g(x) = c + sum_l w_l k(x, z_l) + sum_j v_j h_j(x)
 *
 * with functions h_j of single columns (shapes.h; there may be none) and centres z_l among the rows
 * of both samples. k is a Gaussian kernel with a scale for every column, so that columns without a
 * say get a scale near 0, or a sum over single columns (of pairs of them, one of x and one of y),
 * which finds in many columns what each of them says alone, or part of both. The weights minimise
 * the NCE loss (M = 1) of base + g, each sample counting one half, plus lambda |g|^2 / n, the norm
 * being that of the kernel, and a little of |v|^2: a convex problem, so there is nothing to start
 * from and nothing to draw. For some thousand rows of few columns it is more exact than a network
 * and takes seconds. */
#ifndef N2_SMOOTH_H
#define N2_SMOOTH_H

#include "shapes.h"

/* Rows of both samples and the log ratio that g is added to. 0: denominator, 1: numerator. */
typedef struct n2_smooth_rows {
    const double *x[2]; /* n x d */
    const double *base[2];
    size_t n[2];
} n2_smooth_rows;

/* Penalties that are tried: lambda falls from 30 by a factor of sqrt(10) each time. */
enum { N2_SMOOTH_PENALTIES = 13, N2_SMOOTH_PATH = 4 };
double n2_smooth_penalty(size_t index);

/* k(x, z) = (1 - share) exp(-|s (x - z)|^2 / 2) + share mean_j 1 / (1 + |t (x_j - z_j)|^2 / 2),
 * with dx > 0 the product of such a mean over the first dx columns and one over the others. */
typedef struct n2_smooth_singles {
    double share, scale; /* t; the columns' variance is 1 */
    size_t dx;
} n2_smooth_singles;

/* Functions of single columns, which take the place of the base, and the ridge of their weights. */
typedef struct n2_smooth_shapes {
    const n2_shapes *of; /* NULL: none */
    double ridge;
} n2_smooth_shapes;

typedef struct n2_smooth {
    n2ce_ctx *ctx;
    size_t d, centres;
    n2_smooth_singles singles;
    double *scale;           /* s: d */
    double *centre;          /* centres x d */
    double *weight;          /* centres */
    const n2_shapes *shapes; /* not its own; NULL: none */
    double *shape_weight;    /* of them */
    double constant;
} n2_smooth;

void n2_smooth_free(n2_smooth *s); /* NULL is fine */

/* Room for one of these sizes. */
n2ce_status n2_smooth_new(n2ce_ctx *ctx, size_t d, size_t centres, const n2_shapes *shapes,
                          n2_smooth **out);

/* Adds g of n rows to f, on all threads: not to be called from inside an item. */
n2ce_status n2_smooth_add(const n2_smooth *s, const double *x, size_t n, double *f);

/* A path of fits to the rows of `train`: one for each penalty, each beginning where the last one
 * ended, judged by the NCE loss of the rows of `held`. */
typedef struct n2_smooth_path {
    size_t d;
    const double *scale; /* d */
    n2_smooth_singles singles;
    n2_smooth_shapes shapes;
    size_t centres;  /* at most; half of them from each side, their first rows */
    size_t first, n; /* penalties first .. first + n - 1, n at most N2_SMOOTH_PATH */
    size_t newton;   /* steps at most for each penalty */
    double enough;   /* a step that moves no log ratio by more is the last one */
    n2_smooth_rows train, held;
    double loss[N2_SMOOTH_PATH];    /* found; infinite where no fit was */
    n2_smooth *fit[N2_SMOOTH_PATH]; /* NULL, unless they are asked for */
} n2_smooth_path;

/* Some paths side by side on all threads; `keep` asks for the fits. Fails with N2CE_ENOMEM and
 * N2CE_ECANCELED, and there are no fits then. */
n2ce_status n2_smooth_paths(n2ce_ctx *ctx, n2_smooth_path *path, size_t n, bool keep);

/* Frees the fits of n paths. */
void n2_smooth_drop(n2_smooth_path *path, size_t n);

/* Scales, single columns' part and the penalty by which halves of the rows predict one another
 * best: one scale for all columns first, then column by column (of more than N2_SMOOTH_COLUMNS of
 * them by groups: the first dx and the others), doubled or halved as long as that helps. *loss is
 * that of the best. */
enum { N2_SMOOTH_COLUMNS = 16 };

typedef struct n2_smooth_choice {
    double *scale;    /* d: room for them */
    const bool *says; /* d: which of many columns have a say; all false or NULL: not known */
    n2_smooth_singles singles;
    n2_smooth_shapes shapes;
    size_t penalty;
    double loss;
} n2_smooth_choice;

n2ce_status n2_smooth_search(n2ce_ctx *ctx, size_t d, size_t dx, const n2_smooth_rows train[2],
                             const n2_smooth_rows held[2], n2_smooth_choice *out);

/* The ridge of shapes->of and the penalty of kernels beside them, for the scales that were found.
 */
n2ce_status n2_smooth_search_shapes(n2ce_ctx *ctx, size_t d, size_t dx,
                                    const n2_smooth_rows train[2], const n2_smooth_rows held[2],
                                    n2_smooth_choice *shaped);

/* NCE loss of log ratios: mean softplus(-f) over the numerator + mean softplus(f) over the
 * denominator. */
double n2_smooth_loss(const double *const f[2], const size_t n[2]);

#endif
