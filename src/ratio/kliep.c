/* Kullback-Leibler importance estimation.
 *
 * With b_l = mean_den k_l and w_l = b_l alpha_l the constraint says that w is a point of the
 * simplex, and the objective mean_num ln sum_l w_l k_l / b_l is concave. It is climbed by
 * gradient steps that stay on the simplex, projected in relative entropy:
 *
 *     w_l <- w_l g_l^step / sum,   g_l = mean_num (k_l / b_l) / ratio,
 *
 * which is EM for mixture weights at step 1. The step grows while it helps and is halved when
 * it does not. (The paper's Euclidean steps in alpha, which are clipped and rescaled, get stuck
 * far from the maximum where b_l differ much.) The maximum is at most ln max g away. */
#include "kernel_fit.h"

#include "base/linalg.h"
#include "base/numerics.h"
#include "base/pool.h"
#include "kernel_ratio.h"

#include <float.h>
#include <string.h>

enum { MAX_STEPS = 100 };
static const double close_enough = 1e-4; /* to the maximum */
static const double max_step = 1e6;
static const double least_mean = 1e-10; /* a kernel no denominator row sees cannot be scaled */

/* What one maximisation works with; the final one borrows that of fold 0. */
typedef struct climb {
    const n2_kernel_fit *fit;
    size_t num[2], den[2];                /* the rows [from, to) of a side that are held out */
    double *inverse_mean;                 /* 1 / b_l, or 0 for a kernel that is left out */
    double *w, *trial, *alpha, *gradient; /* centres */
    double *ratio;                        /* numerator rows */
    double score;
} climb;

static n2ce_status prepare(n2_kernel_fit *fit) {
    const size_t b = fit->centres;
    climb *climbs = n2_arena_alloc(&fit->arena, fit->folds, sizeof *climbs);
    if (!climbs) return N2CE_ENOMEM;
    fit->scratch = climbs;
    for (size_t f = 0; f < fit->folds; f++) {
        double *memory = n2_arena_alloc(&fit->arena, 5 * b + fit->num.n, sizeof *memory);
        if (!memory) return N2CE_ENOMEM;
        climbs[f] = (climb){.fit = fit,
                            .inverse_mean = memory,
                            .w = memory + b,
                            .trial = memory + 2 * b,
                            .alpha = memory + 3 * b,
                            .gradient = memory + 4 * b,
                            .ratio = memory + 5 * b};
    }
    return N2CE_OK;
}

static void hold_out(climb *c, size_t fold) {
    const n2_kernel_fit *fit = c->fit;
    for (size_t i = 0; i < 2; i++) {
        c->num[i] = n2_fold_begin(fit->num.n, fit->folds, fold + i);
        c->den[i] = n2_fold_begin(fit->den.n, fit->folds, fold + i);
    }
}

static void hold_out_nothing(climb *c) {
    memset(c->num, 0, sizeof c->num);
    memset(c->den, 0, sizeof c->den);
}

/* The first row from i on that is not held out. */
static size_t next_row(const size_t held_out[2], size_t i) {
    return i >= held_out[0] && i < held_out[1] ? held_out[1] : i;
}

/* ---- one maximisation ------------------------------------------------------------------- */

static void find_means(climb *c) {
    const size_t b = c->fit->centres, n = c->fit->den.n;
    const double used = (double)(n - (c->den[1] - c->den[0]));
    double *restrict mean = c->inverse_mean;
    memset(mean, 0, b * sizeof *mean);
    for (size_t i = next_row(c->den, 0); i < n; i = next_row(c->den, i + 1)) {
        const double *k = c->fit->den.k + i * b;
        for (size_t l = 0; l < b; l++) mean[l] += k[l];
    }
    for (size_t l = 0; l < b; l++) mean[l] = mean[l] > least_mean * used ? used / mean[l] : 0;
}

/* Equal weights for all centres that are not held out; false if there are none. */
static bool start(climb *c) {
    const size_t b = c->fit->centres;
    size_t used = 0;
    for (size_t l = 0; l < b; l++) {
        const bool held_out = n2_centre_within(c->fit, l, c->num[0], c->num[1]);
        c->w[l] = c->inverse_mean[l] > 0 && !held_out;
        used += c->w[l] > 0;
    }
    for (size_t l = 0; l < b; l++) c->w[l] /= used ? (double)used : 1;
    return used > 0;
}

static void set_alpha(climb *c, const double *w) {
    for (size_t l = 0; l < c->fit->centres; l++) c->alpha[l] = w[l] * c->inverse_mean[l];
}

/* A row that no kernel reaches counts as the least double: it says nothing about w. */
static double objective(climb *c, const double *w) {
    const size_t b = c->fit->centres, n = c->fit->num.n;
    double sum = 0;
    set_alpha(c, w);
    for (size_t i = next_row(c->num, 0); i < n; i = next_row(c->num, i + 1)) {
        c->ratio[i] = n2_dot(c->fit->num.k + i * b, c->alpha, b);
        sum += log(fmax(c->ratio[i], DBL_MIN));
    }
    return sum / (double)(n - (c->num[1] - c->num[0]));
}

/* g at w, after objective(w). Returns the largest of the centres in use. */
static double gradient(climb *c) {
    const size_t b = c->fit->centres, n = c->fit->num.n;
    const double share = 1 / (double)(n - (c->num[1] - c->num[0]));
    double *restrict g = c->gradient, top = 0;
    memset(g, 0, b * sizeof *g);
    for (size_t i = next_row(c->num, 0); i < n; i = next_row(c->num, i + 1)) {
        if (!(c->ratio[i] > DBL_MIN)) continue;
        const double *k = c->fit->num.k + i * b, factor = share / c->ratio[i];
        for (size_t l = 0; l < b; l++) g[l] += factor * k[l];
    }
    for (size_t l = 0; l < b; l++) {
        g[l] *= c->inverse_mean[l];
        if (c->w[l] > 0 && g[l] > top) top = g[l];
    }
    return top;
}

/* No weight in use falls to 0, from where it could not come back. */
static void take_step(climb *c, double step, double top) {
    const size_t b = c->fit->centres;
    double sum = 0;
    for (size_t l = 0; l < b; l++) {
        const double lift = c->gradient[l] > 0 ? step * log(c->gradient[l] / top) : -700;
        c->trial[l] = c->w[l] > 0 ? fmax(c->w[l] * exp(lift), 1e-30) : 0;
        sum += c->trial[l];
    }
    for (size_t l = 0; l < b; l++) c->trial[l] /= sum;
}

static void accept_trial(climb *c) {
    double *kept = c->w;
    c->w = c->trial;
    c->trial = kept;
}

/* Leaves the coefficients in c->alpha; false if there is no centre to put weight on. */
static bool maximise(climb *c) {
    find_means(c);
    if (!start(c)) return false;
    double now = objective(c, c->w), top = gradient(c), step = 1;
    for (int i = 0; i < MAX_STEPS && top > 1 + close_enough && !n2_cancelled(c->fit->ctx); i++) {
        take_step(c, step, top);
        const double then = objective(c, c->trial);
        if (then >= now) {
            accept_trial(c);
            now = then;
            top = gradient(c);
            step = fmin(1.5 * step, max_step);
        } else {
            step /= 2;
        }
    }
    set_alpha(c, c->w);
    return true;
}

/* ---- the method ------------------------------------------------------------------------- */

/* mean_num ln ratio - mean_den ratio over the rows held out. The paper has the first term
 * only; without the second a kernel that few denominator rows happened to see, and which
 * is therefore scaled up beyond reason, would look good in small samples. */
static double held_out_score(const climb *c) {
    const n2_kernel_fit *fit = c->fit;
    const size_t b = fit->centres;
    double num = 0, den = 0;
    for (size_t i = c->num[0]; i < c->num[1]; i++)
        num += log(fmax(n2_dot(fit->num.k + i * b, c->alpha, b), N2_KERNEL_RATIO_FLOOR));
    for (size_t i = c->den[0]; i < c->den[1]; i++) den += n2_dot(fit->den.k + i * b, c->alpha, b);
    return num / (double)(c->num[1] - c->num[0]) - den / (double)(c->den[1] - c->den[0]);
}

static void validate_fold(void *arg, size_t fold, int worker) {
    (void)worker;
    climb *c = (climb *)arg + fold;
    hold_out(c, fold);
    c->score = maximise(c) ? held_out_score(c) : -N2_INFINITY;
}

static n2ce_status validate(n2_kernel_fit *fit, double *score, double *lambda) {
    const climb *climbs = fit->scratch;
    N2_TRY(n2_parallel_for(fit->ctx, fit->folds, validate_fold, fit->scratch));
    *score = *lambda = 0;
    for (size_t f = 0; f < fit->folds; f++) *score += climbs[f].score;
    return N2CE_OK;
}

static n2ce_status solve(n2_kernel_fit *fit, double lambda, double *alpha) {
    (void)lambda;
    climb *c = fit->scratch;
    hold_out_nothing(c);
    if (!maximise(c))
        return n2_fail(fit->ctx, N2CE_ERANGE,
                       "No denominator row is near a numerator row, so KLIEP has nothing to "
                       "scale the ratio by; standardise the columns, or use another method.");
    memcpy(alpha, c->alpha, fit->centres * sizeof *alpha);
    return N2CE_OK;
}

const n2_kernel_solver n2_kliep_solver = {prepare, validate, solve};
