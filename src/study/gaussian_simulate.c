/* Monte Carlo side of the Gaussian study.
 *
 * A run is one item of work: it draws the samples of a step once and lets every
 * objective use them, so columns are compared on common random numbers, and run k
 * is a pure function of (seed, k). Runs go through memory in waves; statistics are
 * updated run after run in order, so nothing depends on the number of threads. */
#include "gaussian.h"

#include "base/isa.h"
#include "base/numerics.h"
#include "base/pool.h"
#include "base/random.h"
#include "comm/comm.h"
#include "objective/linear_moments.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

N2_ISA_TABLE(n2_linear_moments_fn, n2_linear_moments);

/* Scratch of one worker. */
typedef struct workspace {
    float *z, *weights; /* one chunk of samples */
    float *a32;         /* columns x dim, the parameters as the kernel reads them */
    double *a;          /* columns x dim */
    double *sums[2];    /* per side, columns x (dim + 1) */
} workspace;

/* What one run leaves behind. */
typedef struct run_record {
    bool done;
    double *score, *gradient_error; /* columns */
    float *distance;                /* columns x points; NULL after the first wave */
} run_record;

typedef struct simulation {
    n2ce_ctx *ctx;
    const n2_gaussian_setting *setting;
    n2_gaussian_result *result;
    n2_gaussian_progress *progress;
    n2_linear_moments_fn *moments;
    size_t chunk;  /* samples held at once */
    size_t stride; /* steps between kept points */
    uint64_t first_run;
    workspace *workspaces;
    run_record *records;
    atomic_uint_fast64_t steps_done;
} simulation;

/* ---- one step ------------------------------------------------------------ */

static double dot(const double *a, const double *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static double squared_distance(const double *a, const double *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

/* 1/M of a side: nwj is M = infinity on both, neg-reweight M = 1 on the data's. */
static float inverse_magnitude(const n2_gaussian_column *c, bool is_den) {
    if (c->family == N2CE_FAMILY_NWJ) return 0;
    if (c->family == N2CE_FAMILY_NEG_REWEIGHT && !is_den) return 1;
    return (float)(1 / c->magnitude);
}

/* Numerator samples are x = a* + z: the shift goes into the offset here and into the
 * moments in ascend(). */
static void describe_sides(const n2_gaussian_setting *s, const workspace *w, bool is_den,
                           n2_linear_side *sides) {
    for (size_t c = 0; c < s->n_columns; c++) {
        const double *a = w->a + c * s->dim;
        const double shift = is_den ? 0 : dot(a, s->target, s->dim);
        sides[c] = (n2_linear_side){
            .a = w->a32 + c * s->dim,
            .offset = (float)(shift - dot(a, a, s->dim) / 2),
            .inv_m = inverse_magnitude(&s->columns[c], is_den),
            .is_den = is_den,
        };
    }
}

/* Samples of one side, chunk by chunk, weighed by every column. */
static bool weigh_side(const simulation *sim, workspace *w, n2_stream stream, bool is_den) {
    const n2_gaussian_setting *s = sim->setting;
    n2_linear_side sides[N2_GAUSSIAN_COLUMNS];
    double *sums = w->sums[is_den];
    describe_sides(s, w, is_den, sides);
    memset(sums, 0, s->n_columns * (s->dim + 1) * sizeof *sums);
    for (uint64_t at = 0; at < s->n; at += sim->chunk) {
        if (n2_cancelled(sim->ctx)) return false;
        const size_t n = s->n - at < sim->chunk ? (size_t)(s->n - at) : sim->chunk;
        const size_t padded = (n + N2_LANES - 1) / N2_LANES * N2_LANES;
        n2_fill_normal(stream, at * s->dim, padded * s->dim, w->z);
        sim->moments(sides, s->n_columns, w->z, n, s->dim, w->weights, sums);
    }
    return true;
}

/* Moves one column along its gradient
 *     mean_num w (x - a) - mean_den w (x - a),   x = a* + z on the num side,
 * and returns the squared distance of that gradient from the exact a* - a. */
static double ascend(const n2_gaussian_setting *s, workspace *w, size_t c) {
    const size_t dim = s->dim;
    const double *num = w->sums[0] + c * (dim + 1), *den = w->sums[1] + c * (dim + 1);
    const double n = (double)s->n;
    double *a = w->a + c * dim, error = 0;
    for (size_t d = 0; d < dim; d++) {
        const double gap = s->target[d] - a[d];
        const double from_num = num[d] + gap * num[dim];
        const double from_den = den[d] - a[d] * den[dim];
        const double gradient = (from_num - from_den) / n;
        error += (gradient - gap) * (gradient - gap);
        a[d] += s->step_size * gradient;
        w->a32[c * dim + d] = (float)a[d];
    }
    return error;
}

/* ---- one run ------------------------------------------------------------- */

static void keep_point(const simulation *sim, const workspace *w, uint64_t run, uint64_t step) {
    const n2_gaussian_setting *s = sim->setting;
    run_record *record = &sim->records[run - sim->first_run];
    if (!record->distance || step % sim->stride != 0) return;
    const size_t point = (size_t)(step / sim->stride);
    for (size_t c = 0; c < s->n_columns; c++) {
        const double *a = w->a + c * s->dim;
        record->distance[c * sim->result->n_points + point] =
            (float)sqrt(squared_distance(a, s->target, s->dim));
        if (run > 0) continue;
        sim->result->paths[c].x[point] = a[0];
        sim->result->paths[c].y[point] = s->dim > 1 ? a[1] : 0;
    }
}

static void report_step(simulation *sim, int worker) {
    const uint64_t steps = atomic_fetch_add(&sim->steps_done, 1) + 1;
    if (worker != 0) return; /* one voice */
    const double runs = (double)steps / (double)sim->setting->steps;
    n2_progress(sim->ctx, sim->progress->done + runs * n2_gaussian_work(sim->setting),
                sim->progress->total);
}

static void reset_parameters(const n2_gaussian_setting *s, workspace *w) {
    for (size_t i = 0; i < s->n_columns * s->dim; i++) {
        w->a[i] = s->start[i % s->dim];
        w->a32[i] = (float)w->a[i];
    }
}

static void simulate_run(void *arg, size_t item, int worker) {
    simulation *sim = arg;
    const n2_gaussian_setting *s = sim->setting;
    workspace *w = &sim->workspaces[worker];
    run_record *record = &sim->records[item];
    const uint64_t run = sim->first_run + item;
    record->done = false;
    memset(record->score, 0, s->n_columns * sizeof *record->score);
    memset(record->gradient_error, 0, s->n_columns * sizeof *record->gradient_error);
    reset_parameters(s, w);
    for (uint64_t t = 0; t < s->steps; t++) {
        keep_point(sim, w, run, t);
        const n2_stream num = {s->seed, (uint32_t)(2 * run), (uint32_t)t};
        const n2_stream den = {s->seed, (uint32_t)(2 * run + 1), (uint32_t)t};
        if (!weigh_side(sim, w, num, false) || !weigh_side(sim, w, den, true)) return;
        for (size_t c = 0; c < s->n_columns; c++) {
            record->score[c] += squared_distance(w->a + c * s->dim, s->target, s->dim);
            record->gradient_error[c] += ascend(s, w, c);
        }
        report_step(sim, worker);
    }
    keep_point(sim, w, run, s->steps);
    for (size_t c = 0; c < s->n_columns; c++) {
        record->score[c] /= (double)s->steps;
        record->gradient_error[c] /= (double)s->steps;
    }
    record->done = true;
}

/* ---- statistics over runs ------------------------------------------------ */

/* Welford's update; `std` holds the sum of squared deviations until the end. */
static void add_run(n2_gaussian_result *result, size_t n_columns, const run_record *record) {
    const double n = (double)++result->runs_done;
    for (size_t c = 0; c < n_columns; c++) {
        n2_gaussian_score *score = &result->scores[c];
        const double gap = record->score[c] - score->mean;
        score->mean += gap / n;
        score->std += gap * (record->score[c] - score->mean);
        score->gradient_error += (record->gradient_error[c] - score->gradient_error) / n;
    }
}

static int compare_floats(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double quantile(const float *sorted, size_t n, double q) {
    const double at = q * (double)(n - 1);
    const size_t i = (size_t)at;
    const double rest = at - (double)i;
    return i + 1 < n ? (1 - rest) * (double)sorted[i] + rest * (double)sorted[i + 1]
                     : (double)sorted[i];
}

/* Quantiles of the distance at every kept point over the finished runs. */
static void summarise_paths(const simulation *sim, size_t n_runs) {
    const size_t n_points = sim->result->n_points;
    for (size_t c = 0; c < sim->setting->n_columns; c++) {
        n2_gaussian_path *path = &sim->result->paths[c];
        for (size_t p = 0; p < n_points; p++) {
            float values[N2_GAUSSIAN_WAVE];
            size_t n = 0;
            for (size_t r = 0; r < n_runs; r++)
                if (sim->records[r].done) values[n++] = sim->records[r].distance[c * n_points + p];
            if (n == 0) return;
            qsort(values, n, sizeof values[0], compare_floats);
            path->low[p] = quantile(values, n, 0.1);
            path->median[p] = quantile(values, n, 0.5);
            path->high[p] = quantile(values, n, 0.9);
        }
    }
}

/* ---- memory and the whole ------------------------------------------------ */

static void *zeros(n2_arena *arena, size_t n, size_t size, bool *ok) {
    void *p = n2_arena_alloc(arena, n, size);
    *ok &= p != NULL;
    return p;
}

static bool make_workspaces(simulation *sim, n2_arena *arena) {
    const n2_gaussian_setting *s = sim->setting;
    const size_t threads = (size_t)n2_ctx_threads(sim->ctx), columns = s->n_columns;
    bool ok = true;
    sim->workspaces = zeros(arena, threads, sizeof *sim->workspaces, &ok);
    for (size_t i = 0; ok && i < threads; i++) {
        workspace *w = &sim->workspaces[i];
        w->z = zeros(arena, sim->chunk * s->dim, sizeof *w->z, &ok);
        w->weights = zeros(arena, N2_LINEAR_GROUP * sim->chunk, sizeof *w->weights, &ok);
        w->a = zeros(arena, columns * s->dim, sizeof *w->a, &ok);
        w->a32 = zeros(arena, columns * s->dim, sizeof *w->a32, &ok);
        for (int side = 0; side < 2; side++)
            w->sums[side] = zeros(arena, columns * (s->dim + 1), sizeof(double), &ok);
    }
    return ok;
}

static bool make_records(simulation *sim, n2_arena *arena) {
    const n2_gaussian_setting *s = sim->setting;
    const size_t n = s->runs < N2_GAUSSIAN_WAVE ? (size_t)s->runs : N2_GAUSSIAN_WAVE;
    bool ok = true;
    sim->records = zeros(arena, n, sizeof *sim->records, &ok);
    for (size_t i = 0; ok && i < n; i++) {
        run_record *r = &sim->records[i];
        r->score = zeros(arena, s->n_columns, sizeof *r->score, &ok);
        r->gradient_error = zeros(arena, s->n_columns, sizeof *r->gradient_error, &ok);
        r->distance = zeros(arena, s->n_columns * sim->result->n_points, sizeof(float), &ok);
    }
    return ok;
}

static bool make_result(simulation *sim, n2_arena *arena) {
    n2_gaussian_result *result = sim->result;
    const size_t n = (size_t)(sim->setting->steps / sim->stride) + 1;
    bool ok = true;
    result->n_points = n;
    result->step = zeros(arena, n, sizeof(double), &ok);
    for (size_t p = 0; ok && p < n; p++) result->step[p] = (double)(p * sim->stride);
    for (size_t c = 0; c < sim->setting->n_columns; c++) {
        n2_gaussian_path *path = &result->paths[c];
        double **arrays[] = {&path->low, &path->median, &path->high, &path->x, &path->y};
        for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
            *arrays[i] = zeros(arena, n, sizeof(double), &ok);
    }
    return ok;
}

/* Runs of a wave that this rank does: from `first` on. */
typedef struct own_runs {
    simulation *sim;
    size_t first;
} own_runs;

static void simulate_own(void *arg, size_t item, int worker) {
    const own_runs *own = arg;
    simulate_run(own->sim, own->first + item, worker);
}

static size_t first_of(n2ce_ctx *ctx, int rank, size_t n) {
    return n * (size_t)rank / (size_t)n2_ranks(ctx);
}

static n2ce_status pass_record(const simulation *sim, int root, run_record *r) {
    const size_t columns = sim->setting->n_columns;
    N2_TRY(n2_comm_broadcast(sim->ctx, root, &r->done, sizeof r->done));
    N2_TRY(n2_comm_broadcast(sim->ctx, root, r->score, columns * sizeof *r->score));
    N2_TRY(
        n2_comm_broadcast(sim->ctx, root, r->gradient_error, columns * sizeof *r->gradient_error));
    if (!r->distance) return N2CE_OK;
    return n2_comm_broadcast(sim->ctx, root, r->distance,
                             columns * sim->result->n_points * sizeof *r->distance);
}

/* Ranks do neighbouring runs each, and all have all records. */
static n2ce_status simulate_runs(simulation *sim, size_t n) {
    const int rank = n2_rank(sim->ctx), ranks = n2_ranks(sim->ctx);
    own_runs own = {sim, first_of(sim->ctx, rank, n)};
    N2_TRY(
        n2_parallel_for(sim->ctx, first_of(sim->ctx, rank + 1, n) - own.first, simulate_own, &own));
    for (int root = 0; ranks > 1 && root < ranks; root++)
        for (size_t i = first_of(sim->ctx, root, n); i < first_of(sim->ctx, root + 1, n); i++)
            N2_TRY(pass_record(sim, root, &sim->records[i]));
    return N2CE_OK;
}

/* Runs first_run .. first_run + n - 1, and their place in the statistics. */
static n2ce_status simulate_wave(simulation *sim, size_t n) {
    const n2_gaussian_setting *s = sim->setting;
    for (size_t i = 0; i < n; i++) sim->records[i].done = false;
    N2_TRY(simulate_runs(sim, n));
    for (size_t i = 0; i < n; i++)
        if (sim->records[i].done) add_run(sim->result, s->n_columns, &sim->records[i]);
    if (sim->first_run == 0) {
        summarise_paths(sim, n);
        for (size_t i = 0; i < n; i++) sim->records[i].distance = NULL;
    }
    bool stop = n2_cancelled(sim->ctx);
    N2_TRY(n2_comm_any(sim->ctx, &stop));
    return stop ? N2CE_ECANCELED : N2CE_OK;
}

static void finish_scores(n2_gaussian_result *result, size_t n_columns) {
    const double n = (double)result->runs_done;
    for (size_t c = 0; c < n_columns; c++)
        result->scores[c].std = n > 1 ? sqrt(result->scores[c].std / (n - 1)) : N2_NAN;
}

double n2_gaussian_work(const n2_gaussian_setting *s) {
    return (double)s->n * (double)s->steps * (double)s->dim * (double)s->n_columns;
}

/* About 8192 numbers a chunk stay in the first-level cache; at most 512 samples are
 * summed in single precision; at least 128 make up for adding the lanes. */
static size_t chunk_samples(size_t dim) {
    size_t blocks = 8192 / (N2_LANES * dim);
    if (blocks < 8) blocks = 8;
    if (blocks > 32) blocks = 32;
    return blocks * N2_LANES;
}

n2ce_status n2_gaussian_simulate(n2ce_ctx *ctx, const n2_gaussian_setting *s,
                                 n2_gaussian_progress *progress, n2_arena *arena,
                                 n2_gaussian_result *result) {
    memset(result, 0, sizeof *result);
    simulation sim = {
        .ctx = ctx,
        .setting = s,
        .result = result,
        .progress = progress,
        .moments = n2_linear_moments_table[n2_isa_current()],
        .chunk = chunk_samples(s->dim),
        .stride = (size_t)(s->steps / N2_GAUSSIAN_POINTS) + 1,
    };
    n2_arena scratch = n2_arena_new(ctx);
    n2ce_status status = N2CE_ENOMEM;
    if (make_result(&sim, arena) && make_records(&sim, &scratch) && make_workspaces(&sim, &scratch))
        status = N2CE_OK;
    while (status == N2CE_OK && sim.first_run < s->runs) {
        const uint64_t left = s->runs - sim.first_run;
        const size_t n = left < N2_GAUSSIAN_WAVE ? (size_t)left : N2_GAUSSIAN_WAVE;
        status = simulate_wave(&sim, n);
        sim.first_run += n;
    }
    finish_scores(result, s->n_columns);
    progress->done += (double)s->runs * n2_gaussian_work(s);
    n2_arena_free(&scratch);
    return status;
}
