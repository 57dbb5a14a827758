/* Unconstrained least-squares importance fitting.
 *
 * The loss of a coefficient vector on a fold, a' H a / 2 - h' a, needs the fold's H and h only.
 * So the samples are passed over once per bandwidth, and a lambda costs a factorisation. */
#include "kernel_fit.h"

#include "base/linalg.h"
#include "base/numerics.h"
#include "base/pool.h"

#include <string.h>

enum {
    LAMBDAS = 9, /* 10, 10^0.5, .. 10^-3: the smoothest first, so that it wins a tie */
    STRIPE = 16, /* rows of H per item */
};

typedef struct ulsif {
    double *gram;  /* folds x centres x centres, lower triangles: sums over denominator rows */
    double *sum;   /* folds x centres: sums over numerator rows */
    double *all;   /* centres x centres, lower triangle: gram over all folds */
    double *total; /* centres: sum over all folds */
    double *work;  /* threads x (centres x centres + centres) */
    double *score; /* folds x LAMBDAS */
} ulsif;

static double lambda_at(size_t i) { return pow(10, 1 - 0.5 * (double)i); }

static n2ce_status prepare(n2_kernel_fit *fit) {
    const size_t b = fit->centres, threads = (size_t)n2_ctx_threads(fit->ctx);
    ulsif *u = n2_arena_alloc(&fit->arena, 1, sizeof *u);
    if (!u) return N2CE_ENOMEM;
    *u = (ulsif){
        .gram = n2_arena_alloc(&fit->arena, fit->folds * b * b, sizeof(double)),
        .sum = n2_arena_alloc(&fit->arena, fit->folds * b, sizeof(double)),
        .all = n2_arena_alloc(&fit->arena, b * b, sizeof(double)),
        .total = n2_arena_alloc(&fit->arena, b, sizeof(double)),
        .work = n2_arena_alloc(&fit->arena, threads * (b * b + b), sizeof(double)),
        .score = n2_arena_alloc(&fit->arena, fit->folds * LAMBDAS, sizeof(double)),
    };
    fit->scratch = u;
    return u->gram && u->sum && u->all && u->total && u->work && u->score ? N2CE_OK : N2CE_ENOMEM;
}

/* ---- sums ------------------------------------------------------------------------------- */

/* row[j] += sum_i k[i][l] k[i][j] for j <= l; four samples at a time. */
static void add_products(double *restrict row, const double *k, size_t b, size_t n, size_t l) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const double *k0 = k + i * b, *k1 = k0 + b, *k2 = k1 + b, *k3 = k2 + b;
        const double c0 = k0[l], c1 = k1[l], c2 = k2[l], c3 = k3[l];
        for (size_t j = 0; j <= l; j++)
            row[j] += (c0 * k0[j] + c1 * k1[j]) + (c2 * k2[j] + c3 * k3[j]);
    }
    for (; i < n; i++) {
        const double *last = k + i * b, c = last[l];
        for (size_t j = 0; j <= l; j++) row[j] += c * last[j];
    }
}

static size_t stripes(const n2_kernel_fit *fit) { return (fit->centres + STRIPE - 1) / STRIPE; }

/* A stripe of one fold's gram matrix, the samples in cache-sized steps. */
static void gram_stripe(void *arg, size_t item, int worker) {
    (void)worker;
    enum { STEP = 64 };
    const n2_kernel_fit *fit = arg;
    const ulsif *u = fit->scratch;
    const size_t fold = item / stripes(fit), b = fit->centres;
    const size_t from = item % stripes(fit) * STRIPE, to = from + STRIPE < b ? from + STRIPE : b;
    const size_t end = n2_fold_begin(fit->den.n, fit->folds, fold + 1);
    double *gram = u->gram + fold * b * b;
    memset(gram + from * b, 0, (to - from) * b * sizeof *gram);
    for (size_t i = n2_fold_begin(fit->den.n, fit->folds, fold); i < end; i += STEP) {
        const size_t n = end - i < STEP ? end - i : STEP;
        for (size_t l = from; l < to; l++) add_products(gram + l * b, fit->den.k + i * b, b, n, l);
    }
}

static void add(double *restrict to, const double *restrict from, size_t n) {
    for (size_t i = 0; i < n; i++) to[i] += from[i];
}

static n2ce_status sum_folds(n2_kernel_fit *fit) {
    const ulsif *u = fit->scratch;
    const size_t b = fit->centres;
    N2_TRY(n2_parallel_for(fit->ctx, fit->folds * stripes(fit), gram_stripe, fit));
    memset(u->sum, 0, fit->folds * b * sizeof *u->sum);
    memset(u->total, 0, b * sizeof *u->total);
    memset(u->all, 0, b * b * sizeof *u->all);
    for (size_t f = 0; f < fit->folds; f++) {
        const size_t end = n2_fold_begin(fit->num.n, fit->folds, f + 1);
        for (size_t i = n2_fold_begin(fit->num.n, fit->folds, f); i < end; i++)
            add(u->sum + f * b, fit->num.k + i * b, b);
        add(u->total, u->sum + f * b, b);
        add(u->all, u->gram + f * b * b, b * b);
    }
    return N2CE_OK;
}

/* ---- solutions -------------------------------------------------------------------------- */

/* (H + lambda I)^-1 h, negative coefficients rounded up to 0; H is destroyed. */
static bool solve_rounded(double *gram, double *alpha, size_t b, double lambda) {
    for (size_t l = 0; l < b; l++) gram[l * b + l] += lambda;
    if (!n2_cholesky(gram, b)) return false;
    n2_cholesky_solve(gram, b, alpha, 1);
    for (size_t l = 0; l < b; l++) alpha[l] = alpha[l] > 0 ? alpha[l] : 0;
    return true;
}

/* Takes a centre out: its coefficient becomes 0 and no other is touched by it. */
static void remove_centre(double *gram, double *alpha, size_t b, size_t l) {
    for (size_t j = 0; j < l; j++) gram[l * b + j] = 0;
    for (size_t i = l + 1; i < b; i++) gram[i * b + l] = 0;
    alpha[l] = 0;
}

/* H and h over all rows outside a fold, without the centres inside it. */
static void train_without(const n2_kernel_fit *fit, size_t fold, double *gram, double *alpha) {
    const ulsif *u = fit->scratch;
    const size_t b = fit->centres, begin = n2_fold_begin(fit->num.n, fit->folds, fold);
    const size_t end = n2_fold_begin(fit->num.n, fit->folds, fold + 1);
    const size_t den = n2_fold_begin(fit->den.n, fit->folds, fold + 1) -
                       n2_fold_begin(fit->den.n, fit->folds, fold);
    const double n_num = (double)(fit->num.n - (end - begin)), n_den = (double)(fit->den.n - den);
    const double *gram_out = u->gram + fold * b * b, *sum_out = u->sum + fold * b;
    for (size_t i = 0; i < b * b; i++) gram[i] = (u->all[i] - gram_out[i]) / n_den;
    for (size_t l = 0; l < b; l++) alpha[l] = (u->total[l] - sum_out[l]) / n_num;
    for (size_t l = 0; l < b; l++)
        if (n2_centre_within(fit, l, begin, end)) remove_centre(gram, alpha, b, l);
}

/* a' H a / 2 - h' a on a fold. */
static double held_out_loss(const n2_kernel_fit *fit, size_t fold, const double *alpha) {
    const ulsif *u = fit->scratch;
    const size_t b = fit->centres;
    const double *gram = u->gram + fold * b * b;
    double square = 0;
    for (size_t l = 0; l < b; l++)
        square += alpha[l] * (2 * n2_dot(gram + l * b, alpha, l) + gram[l * b + l] * alpha[l]);
    const size_t num = n2_fold_begin(fit->num.n, fit->folds, fold + 1) -
                       n2_fold_begin(fit->num.n, fit->folds, fold);
    const size_t den = n2_fold_begin(fit->den.n, fit->folds, fold + 1) -
                       n2_fold_begin(fit->den.n, fit->folds, fold);
    return square / (2 * (double)den) - n2_dot(u->sum + fold * b, alpha, b) / (double)num;
}

static void validate_cell(void *arg, size_t item, int worker) {
    const n2_kernel_fit *fit = arg;
    const ulsif *u = fit->scratch;
    const size_t b = fit->centres, fold = item / LAMBDAS;
    double *gram = u->work + (size_t)worker * (b * b + b), *alpha = gram + b * b;
    train_without(fit, fold, gram, alpha);
    const bool solved = solve_rounded(gram, alpha, b, lambda_at(item % LAMBDAS));
    u->score[item] = solved ? -held_out_loss(fit, fold, alpha) : -N2_INFINITY;
}

static n2ce_status validate(n2_kernel_fit *fit, double *score, double *lambda) {
    const ulsif *u = fit->scratch;
    N2_TRY(sum_folds(fit));
    N2_TRY(n2_parallel_for(fit->ctx, fit->folds * LAMBDAS, validate_cell, fit));
    *score = -N2_INFINITY;
    *lambda = lambda_at(0);
    for (size_t i = 0; i < LAMBDAS; i++) {
        double sum = 0;
        for (size_t f = 0; f < fit->folds; f++) sum += u->score[f * LAMBDAS + i];
        if (!(sum > *score)) continue;
        *score = sum;
        *lambda = lambda_at(i);
    }
    return N2CE_OK;
}

static n2ce_status solve(n2_kernel_fit *fit, double lambda, double *alpha) {
    const ulsif *u = fit->scratch;
    const size_t b = fit->centres;
    N2_TRY(sum_folds(fit));
    for (size_t i = 0; i < b * b; i++) u->all[i] /= (double)fit->den.n;
    for (size_t l = 0; l < b; l++) alpha[l] = u->total[l] / (double)fit->num.n;
    if (solve_rounded(u->all, alpha, b, lambda)) return N2CE_OK;
    return n2_fail(fit->ctx, N2CE_ERANGE,
                   "The kernel matrix of uLSIF could not be factored; standardise the columns.");
}

const n2_kernel_solver n2_ulsif_solver = {prepare, validate, solve};
