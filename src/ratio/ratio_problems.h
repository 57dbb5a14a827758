/* Problems with a known answer, for the study of ratio estimators: samples, the true mutual
 * information or divergence, and where it has a closed form the true log ratio.
 *
 *   bmi                the 40 tasks, in their order, of version 1 of the benchmark of Czyz et al.,
 *                      "Beyond normal" (NeurIPS 2023), package benchmark-mi
 *   gaussian-mi        d/2 correlated pairs, d/4 nats (Rhodes et al. 2020, Choi et al. 2022); the
 *                      number in the name is the total dimension d
 *   mutinfo            d x d dimensions, 2 nats each
 *   correlated-normal  1 x 1 dimension, 1 to 10 nats
 *   tre                one-dimensional normals far apart or of far different widths
 *   shifted-2d         N((4,4), I) against N(0, I) (Choi et al. 2022)
 *   sanity             N(1, 1) against N(0, 1), and the targets of this paper's Gaussian
 *                      simulations in 2 and 5 dimensions against N(0, I) */
#ifndef N2_RATIO_PROBLEMS_H
#define N2_RATIO_PROBLEMS_H

#include "base/ctx.h"

typedef enum n2_problem_kind { N2_PROBLEM_MI, N2_PROBLEM_KL } n2_problem_kind;

/* How the rows are made: what is drawn, and what is done to it. For ratio_problems.c only. */
typedef struct n2_problem_recipe {
    enum {
        N2_BASE_PAIRS,    /* normals; x_i and y_i correlated for i < pairs, all else independent */
        N2_BASE_DENSE,    /* normals; all correlations are rho */
        N2_BASE_STUDENT,  /* multivariate t, identity dispersion, dof degrees of freedom */
        N2_BASE_ADDITIVE, /* x uniform on (0,1), y = x + uniform on (-noise, noise) */
        N2_BASE_SIDES     /* KL: independent normals on either side */
    } base;
    enum {
        N2_MAP_NONE,
        N2_MAP_CDF,
        N2_MAP_BIMODAL,
        N2_MAP_WIGGLY,
        N2_MAP_HALF_CUBE,
        N2_MAP_ASINH,
        N2_MAP_SWISS_ROLL,
        N2_MAP_SPIRAL,
        N2_MAP_SPIRAL_OF_CDF
    } map;
    size_t pairs;
    double rho, nats; /* of a pair; either follows from the other */
    unsigned dof;
    double noise;
    const double *num_mean; /* dim_x numbers */
    double num_sd, den_mean, den_sd;
} n2_problem_recipe;

typedef struct n2_problem {
    const char *group;
    const char *name; /* unique; letters, digits and dashes */
    n2_problem_kind kind;
    size_t dim_x, dim_y; /* KL: the dimension and 0 */
    double truth;        /* nats: MI(x; y), or KL(numerator || denominator) */
    size_t n;            /* rows (KL: per side) of the published protocol */
    n2_problem_recipe recipe;
} n2_problem;

/* The table is made on first use, with every truth from its closed form; any thread may ask. */
size_t n2_problem_count(void);
const n2_problem *n2_problem_at(size_t i);               /* NULL from n2_problem_count() on */
const n2_problem *n2_problem_find(const char *name);     /* NULL if there is none */
double n2_problem_truth(const n2_problem *problem);      /* p->truth, nats */
size_t n2_problem_row_length(const n2_problem *problem); /* dim_x + dim_y */

/* Draws n rows of dim_x + dim_y numbers, one after the other. MI: into `a`, x before y; `b` must be
 * NULL. KL: the numerator into `a`, the denominator into `b`.
 *
 * Row i is a pure function of (problem, seed, i), whatever n and the threads; it varies with the
 * machine's log and sine in the last bits only. Seeds 0..9 are the repetitions of a benchmark.
 * Equal seeds give problems of equal dimensions the same underlying draws: the rows of "wiggly" are
 * those of "bivariate-normal", wiggled. Values are as defined, not rescaled.
 *
 * N2CE_EINVAL if `b` does not fit the kind; N2CE_ENOMEM if no threads can be had. */
n2ce_status n2_problem_draw(n2ce_ctx *ctx, const n2_problem *problem, size_t n, uint64_t seed,
                            double *a, double *b);

/* Brings every column to mean 0 and standard deviation 1 (divisor n; constant columns are only
 * centred), as the bmi benchmark does with its samples before anyone sees them. Mutual information
 * does not change, n2_problem_log_ratio does. */
void n2_problem_rescale(size_t n, size_t row_length, double *rows);

/* ln p(x,y) / (p(x) p(y)), or ln p(row) / q(row), at a row as n2_problem_draw makes it. Minus
 * infinity where the numerator is 0. NaN for problems whose draws are mapped (see the recipe). */
double n2_problem_log_ratio(const n2_problem *problem, const double *row);

#endif
