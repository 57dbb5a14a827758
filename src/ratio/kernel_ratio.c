#include "kernel_ratio.h"

#include "base/numerics.h"
#include "base/pool.h"
#include "base/random.h"
#include "kernel_fit.h"

#include <math.h>
#include <string.h>

enum {
    FOLDS = 5,
    BANDWIDTHS = 9,
    BLOCK = 64,                 /* rows per item */
    MEDIAN_DISTANCES = 1 << 15, /* a side; more would not change the grid */
};

static const n2_kernel_solver *const solvers[] = {
    [N2_ULSIF] = &n2_ulsif_solver,
    [N2_KLIEP] = &n2_kliep_solver,
};

/* Four partial sums, so that the compiler may use vectors without reordering. */
static double squared_distance(const double *x, const double *y, size_t n) {
    double part[4] = {0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++) part[k] += (x[i + k] - y[i + k]) * (x[i + k] - y[i + k]);
    for (; i < n; i++) part[0] += (x[i] - y[i]) * (x[i] - y[i]);
    return (part[0] + part[1]) + (part[2] + part[3]);
}

/* ---- samples and centres ---------------------------------------------------------------- */

static n2ce_status check_side(n2ce_ctx *ctx, const char *name, const double *x, size_t n,
                              size_t cols) {
    if (n < 2)
        return n2_fail(ctx, N2CE_EINVAL,
                       "The %s sample has %zu row%s; a kernel ratio needs at least 2.", name, n,
                       n == 1 ? "" : "s");
    for (size_t i = 0; i < n * cols; i++)
        if (!isfinite(x[i]))
            return n2_fail(ctx, N2CE_ENAN,
                           "Column %zu of row %zu of the %s sample is %g; remove or replace it.",
                           i % cols + 1, i / cols + 1, name, x[i]);
    return N2CE_OK;
}

/* Word i of a random sequence. */
static uint32_t random_word(uint64_t seed, uint32_t stream, size_t i) {
    const uint32_t counter[4] = {(uint32_t)i, 0, 0, stream};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t out[4];
    n2_philox(counter, key, out);
    return out[0];
}

/* Rows 0 .. n-1 of `available` evenly spaced ones, in random order. */
static void shuffled_rows(size_t *row, size_t n, size_t available, uint64_t seed, uint32_t stream) {
    for (size_t i = 0; i < n; i++)
        row[i] = n == available ? i : (size_t)((double)i * (double)available / (double)n);
    for (size_t i = 0; i + 1 < n; i++) {
        const size_t other = i + (size_t)((random_word(seed, stream, i) * (uint64_t)(n - i)) >> 32);
        const size_t kept = row[i];
        row[i] = row[other];
        row[other] = kept;
    }
}

static n2ce_status take_side(n2_kernel_fit *fit, n2_kernel_side *side, const double *x, size_t n,
                             uint64_t seed, uint32_t stream) {
    side->n = n < N2_KERNEL_MAX_ROWS ? n : N2_KERNEL_MAX_ROWS;
    side->x = n2_arena_alloc(&fit->arena, side->n * fit->cols, sizeof(double));
    size_t *row = n2_arena_alloc(&fit->arena, side->n, sizeof *row);
    if (!side->x || !row) return N2CE_ENOMEM;
    shuffled_rows(row, side->n, n, seed, stream);
    for (size_t i = 0; i < side->n; i++)
        memcpy(side->x + i * fit->cols, x + row[i] * fit->cols, fit->cols * sizeof *x);
    return N2CE_OK;
}

static n2ce_status alloc_kernels(n2_kernel_fit *fit, n2_kernel_side *side) {
    side->d2 = n2_arena_alloc(&fit->arena, side->n * fit->centres, sizeof(double));
    side->k = n2_arena_alloc(&fit->arena, side->n * fit->centres, sizeof(double));
    return side->d2 && side->k ? N2CE_OK : N2CE_ENOMEM;
}

/* Evenly spaced among shuffled rows: random, none twice, and in all folds alike. */
static n2ce_status take_centres(n2_kernel_fit *fit, size_t centres) {
    const size_t wanted = centres ? centres : N2_KERNEL_CENTRES, cols = fit->cols;
    fit->centres = wanted < fit->num.n ? wanted : fit->num.n;
    fit->centre = n2_arena_alloc(&fit->arena, fit->centres * cols, sizeof(double));
    fit->centre_row = n2_arena_alloc(&fit->arena, fit->centres, sizeof *fit->centre_row);
    if (!fit->centre || !fit->centre_row) return N2CE_ENOMEM;
    for (size_t l = 0; l < fit->centres; l++) {
        fit->centre_row[l] = l * fit->num.n / fit->centres;
        memcpy(fit->centre + l * cols, fit->num.x + fit->centre_row[l] * cols,
               cols * sizeof(double));
    }
    return N2CE_OK;
}

/* ---- distances and kernels, a block of rows at a time ------------------------------------ */

static size_t blocks(const n2_kernel_side *side) { return (side->n + BLOCK - 1) / BLOCK; }

/* The side an item belongs to, and its rows there. */
static const n2_kernel_side *find_block(const n2_kernel_fit *fit, size_t item, size_t *begin,
                                        size_t *end) {
    const bool is_num = item < blocks(&fit->num);
    const n2_kernel_side *side = is_num ? &fit->num : &fit->den;
    *begin = (is_num ? item : item - blocks(&fit->num)) * BLOCK;
    *end = side->n - *begin < BLOCK ? side->n : *begin + BLOCK;
    return side;
}

static void distance_block(void *arg, size_t item, int worker) {
    (void)worker;
    const n2_kernel_fit *fit = arg;
    size_t begin, end;
    const n2_kernel_side *side = find_block(fit, item, &begin, &end);
    const size_t cols = fit->cols;
    for (size_t i = begin; i < end; i++)
        for (size_t l = 0; l < fit->centres; l++)
            side->d2[i * fit->centres + l] =
                squared_distance(side->x + i * cols, fit->centre + l * cols, cols);
}

static void kernel_block(void *arg, size_t item, int worker) {
    (void)worker;
    const n2_kernel_fit *fit = arg;
    size_t begin, end;
    const n2_kernel_side *side = find_block(fit, item, &begin, &end);
    for (size_t i = begin * fit->centres; i < end * fit->centres; i++)
        side->k[i] = exp(-side->d2[i] * fit->inv_2s2);
}

static n2ce_status for_all_blocks(n2_kernel_fit *fit, n2_item_fn *fn) {
    return n2_parallel_for(fit->ctx, blocks(&fit->num) + blocks(&fit->den), fn, fit);
}

static n2ce_status use_bandwidth(n2_kernel_fit *fit, double sigma) {
    fit->inv_2s2 = 1 / (2 * sigma * sigma);
    return for_all_blocks(fit, kernel_block);
}

/* ---- the median distance ---------------------------------------------------------------- */

/* The k-th smallest of x (from 0); reorders x. */
static double select_nth(double *x, size_t n, size_t k) {
    size_t low = 0, high = n - 1;
    while (low < high) {
        const double pivot = x[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (x[i] < pivot) i++;
            while (x[j] > pivot) j--;
            if (i >= j) break;
            const double kept = x[i];
            x[i++] = x[j];
            x[j--] = kept;
        }
        /* now x[low..j] <= pivot <= x[j+1..high] */
        if (k <= j)
            high = j;
        else
            low = j + 1;
    }
    return x[k];
}

static const double least_square = 1e-290; /* below, the narrowest bandwidth's would underflow */

/* Distances of 0 are left out: a centre and itself, and repeated rows, for which no kernel
 * could be narrow enough. Rows are in random order, so the first ones are as good as any. */
static size_t positive_distances(const n2_kernel_side *side, size_t centres, double *out) {
    const size_t most = MEDIAN_DISTANCES / centres + 1, rows = side->n < most ? side->n : most;
    size_t n = 0;
    for (size_t i = 0; i < rows * centres; i++)
        if (side->d2[i] > least_square) out[n++] = side->d2[i];
    return n;
}

/* The typical distance between a centre and a sample; 1 if all rows are the same. */
static n2ce_status median_distance(n2_kernel_fit *fit, double *out) {
    const size_t most = 2 * (MEDIAN_DISTANCES + fit->centres);
    double *d2 = n2_arena_alloc(&fit->arena, most, sizeof *d2);
    if (!d2) return N2CE_ENOMEM;
    size_t n = positive_distances(&fit->num, fit->centres, d2);
    n += positive_distances(&fit->den, fit->centres, d2 + n);
    *out = n ? sqrt(select_nth(d2, n, n / 2)) : 1;
    if (isfinite(32 * *out * *out)) return N2CE_OK; /* the widest bandwidth's square, doubled */
    return n2_fail(fit->ctx, N2CE_ERANGE,
                   "Squared distances between rows overflow; standardise the columns.");
}

/* ---- the fit ---------------------------------------------------------------------------- */

/* From wide to narrow, so that the smoother one wins a tie. */
static double bandwidth_at(size_t i, double median) { return median * exp2(2 - 0.5 * (double)i); }

/* Sigma and lambda by cross-validation. */
static n2ce_status search(n2_kernel_fit *fit, const n2_kernel_solver *solver, n2_kernel_ratio *r) {
    double median, best = -N2_INFINITY;
    N2_TRY(median_distance(fit, &median));
    r->sigma = bandwidth_at(0, median);
    for (size_t i = 0; i < BANDWIDTHS; i++) {
        const double sigma = bandwidth_at(i, median);
        double score, lambda;
        if (n2_cancelled(fit->ctx)) return N2CE_ECANCELED;
        N2_TRY(use_bandwidth(fit, sigma));
        N2_TRY(solver->validate(fit, &score, &lambda));
        if (i > 0 && !(score > best)) continue;
        best = score;
        r->sigma = sigma;
        r->lambda = lambda;
    }
    return N2CE_OK;
}

static n2ce_status copy_centres(const n2_kernel_fit *fit, n2_kernel_ratio *r) {
    const size_t n = fit->centres * fit->cols;
    r->centres = fit->centres;
    r->centre = n2_alloc(fit->ctx, n, sizeof(double));
    r->alpha = n2_alloc(fit->ctx, fit->centres, sizeof(double));
    if (!r->centre || !r->alpha) return N2CE_ENOMEM;
    memcpy(r->centre, fit->centre, n * sizeof(double));
    return N2CE_OK;
}

static n2ce_status run_fit(n2_kernel_fit *fit, size_t centres, n2_kernel_ratio *r) {
    const n2_kernel_solver *solver = solvers[r->method];
    const size_t least = fit->num.n < fit->den.n ? fit->num.n : fit->den.n;
    fit->folds = least < FOLDS ? least : FOLDS;
    N2_TRY(take_centres(fit, centres));
    N2_TRY(alloc_kernels(fit, &fit->num));
    N2_TRY(alloc_kernels(fit, &fit->den));
    N2_TRY(copy_centres(fit, r));
    N2_TRY(solver->prepare(fit));
    N2_TRY(for_all_blocks(fit, distance_block));
    N2_TRY(search(fit, solver, r));
    N2_TRY(use_bandwidth(fit, r->sigma));
    N2_TRY(solver->solve(fit, r->lambda, r->alpha));
    return n2_cancelled(fit->ctx) ? N2CE_ECANCELED : N2CE_OK;
}

n2ce_status n2_kernel_ratio_fit(n2ce_ctx *ctx, n2_kernel_method method, const double *x_num,
                                size_t n_num, const double *x_den, size_t n_den, size_t cols,
                                size_t centres, uint64_t seed, n2_kernel_ratio **out) {
    *out = NULL;
    if (cols == 0) return n2_fail(ctx, N2CE_EINVAL, "The samples have no columns.");
    N2_TRY(check_side(ctx, "numerator", x_num, n_num, cols));
    N2_TRY(check_side(ctx, "denominator", x_den, n_den, cols));
    n2_kernel_ratio *r = n2_alloc(ctx, 1, sizeof *r);
    if (!r) return N2CE_ENOMEM;
    *r = (n2_kernel_ratio){.ctx = ctx, .method = method, .cols = cols};
    n2_kernel_fit fit = {.ctx = ctx, .arena = n2_arena_new(ctx), .cols = cols};
    n2ce_status status = take_side(&fit, &fit.num, x_num, n_num, seed, 0);
    if (status == N2CE_OK) status = take_side(&fit, &fit.den, x_den, n_den, seed, 1);
    if (status == N2CE_OK) status = run_fit(&fit, centres, r);
    n2_arena_free(&fit.arena);
    if (status == N2CE_OK)
        *out = r;
    else
        n2_kernel_ratio_free(r);
    return status;
}

void n2_kernel_ratio_free(n2_kernel_ratio *r) {
    if (!r) return;
    n2ce_ctx *ctx = r->ctx;
    n2_free(ctx, r->centre);
    n2_free(ctx, r->alpha);
    n2_free(ctx, r);
}

/* ---- scores ----------------------------------------------------------------------------- */

typedef struct score_job {
    const n2_kernel_ratio *ratio;
    const double *x;
    size_t n;
    double *log_ratio;
} score_job;

static double ratio_at(const n2_kernel_ratio *r, const double *x) {
    const double inv_2s2 = 1 / (2 * r->sigma * r->sigma);
    double sum = 0;
    for (size_t l = 0; l < r->centres; l++) {
        const double d2 = squared_distance(x, r->centre + l * r->cols, r->cols);
        sum += r->alpha[l] * exp(-d2 * inv_2s2);
    }
    return sum;
}

static void score_block(void *arg, size_t item, int worker) {
    (void)worker;
    const score_job *job = arg;
    const size_t begin = item * BLOCK, end = job->n - begin < BLOCK ? job->n : begin + BLOCK;
    for (size_t i = begin; i < end; i++) {
        const double ratio = ratio_at(job->ratio, job->x + i * job->ratio->cols);
        const bool low = ratio < N2_KERNEL_RATIO_FLOOR; /* false for NaN */
        job->log_ratio[i] = log(low ? N2_KERNEL_RATIO_FLOOR : ratio);
    }
}

/* Without memory for threads it goes on alone: a score never fails. */
void n2_kernel_ratio_score(const n2_kernel_ratio *r, const double *x, size_t n, double *log_ratio) {
    score_job job = {r, x, n, log_ratio};
    const size_t items = (n + BLOCK - 1) / BLOCK;
    if (n2_parallel_for(r->ctx, items, score_block, &job) == N2CE_OK) return;
    for (size_t i = 0; i < items; i++) score_block(&job, i, 0);
}
