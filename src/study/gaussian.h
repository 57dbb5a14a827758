/* The Gaussian location family: p_a = N(a, I), target q* = N(a*, I), noise
 * q0 = N(0, I), log ratio f_a(x) = a.x - |a|^2/2. Gradient ascent on an objective of
 * the family from a_0, with fresh samples at every step (paper, appendix "Gaussian
 * Simulation"; docs/math.md#gaussian). */
#ifndef N2_GAUSSIAN_H
#define N2_GAUSSIAN_H

#include "base/arena.h"

enum {
    N2_GAUSSIAN_COLUMNS = 64, /* objectives compared at most */
    N2_GAUSSIAN_POINTS = 301, /* points kept of a trajectory at most */
    N2_GAUSSIAN_WAVE = 256,   /* runs held in memory at once */
    N2_BIAS_POINTS = 61       /* magnitudes of a bias curve, 10 a decade */
};

/* One objective, and what the paper printed for it (NaN: nothing). */
typedef struct n2_gaussian_column {
    n2ce_family family;
    double magnitude;
    double paper_mean, paper_std;
} n2_gaussian_column;

typedef struct n2_gaussian_setting {
    size_t dim;
    uint64_t n, runs, steps;
    double step_size;
    uint64_t seed;
    const double *target, *start;
    n2_gaussian_column columns[N2_GAUSSIAN_COLUMNS];
    size_t n_columns;
} n2_gaussian_setting;

/* Statistics over runs of one column. A run's score is the mean over its steps
 * of |a_t - a*|^2, its gradient error the mean squared distance of the sampled
 * gradient from the exact maximum-likelihood one. */
typedef struct n2_gaussian_score {
    double mean, std, gradient_error;
} n2_gaussian_score;

/* Distance |a_t - a*| over the runs of the first wave, and the first run's path
 * through the first two coordinates. Arrays of n_points. */
typedef struct n2_gaussian_path {
    double *low, *median, *high; /* 10 %, 50 %, 90 % */
    double *x, *y;
} n2_gaussian_path;

typedef struct n2_gaussian_result {
    uint64_t runs_done;
    n2_gaussian_score scores[N2_GAUSSIAN_COLUMNS];
    size_t n_points;
    double *step; /* n_points */
    n2_gaussian_path paths[N2_GAUSSIAN_COLUMNS];
} n2_gaussian_result;

/* Simulates. Progress runs from `done` on, in units of one run's work. Fails with
 * N2CE_ENOMEM, or N2CE_ECANCELED with the runs finished so far in the result. */
typedef struct n2_gaussian_progress {
    double done, total;
} n2_gaussian_progress;
n2ce_status n2_gaussian_simulate(n2ce_ctx *ctx, const n2_gaussian_setting *setting,
                                 n2_gaussian_progress *progress, n2_arena *arena,
                                 n2_gaussian_result *result);

/* Work of one run, in the units of progress. */
double n2_gaussian_work(const n2_gaussian_setting *setting);

/* ---- exact arithmetic ---- */

/* Score of gradient ascent on the exact likelihood: no sampling at all. */
double n2_gaussian_mle_score(const n2_gaussian_setting *setting);

/* Squared bias against M from 1 to 1e6 at one point, and the slope of the
 * least-squares line through (ln M, ln bias^2) for M from 10 to 1000; NaN where
 * the bias is zero. */
typedef struct n2_bias_curve {
    const char *where;
    double *point; /* dim */
    double magnitude[N2_BIAS_POINTS], squared[N2_BIAS_POINTS];
    double slope;
} n2_bias_curve;

enum { N2_BIAS_CURVES = 3 };

typedef struct n2_gaussian_bias {
    n2_bias_curve curves[N2_BIAS_CURVES];
} n2_gaussian_bias;

/* Curves at three points of the straight path that exact maximum likelihood takes
 * from start to target: where it passes nearest to the noise, at the start, and
 * half-way between the two. */
n2ce_status n2_gaussian_bias_curves(const n2_gaussian_setting *setting, n2_arena *arena,
                                    n2_gaussian_bias *bias);

/* ---- showing it (gaussian_view.c, gaussian_page.c) ---- */

typedef struct n2_gaussian_study {
    size_t n_settings;
    const n2_gaussian_setting *settings;
    const n2_gaussian_result *results;
    const n2_gaussian_bias *bias;
    const n2ce_options *options;
    bool interrupted;
} n2_gaussian_study;

n2ce_status n2_gaussian_show(n2ce_ctx *ctx, const n2_gaussian_study *study, n2ce_answer *answer);
n2ce_status n2_gaussian_page(n2ce_ctx *ctx, const n2_gaussian_study *study, char **html);

const char *n2_family_name(n2ce_family family); /* "n2ce", "nwj", "neg-reweight" */
void n2_column_label(const n2_gaussian_column *c, char *buffer, size_t size); /* "M = 100" */

#endif
