/* The kernel distance: squared maximum mean discrepancies of subsets. */
#include "row_panels.h"

#include "base/numerics.h"
#include "base/pool.h"
#include "base/random.h"

typedef struct kid_job {
    n2ce_ctx *ctx;
    const n2_feature_rows *side[2];
    size_t subset, room; /* room: numbers of a packed subset */
    uint64_t seed;
    size_t *order;    /* of every worker, for the larger set */
    double *packed;   /* of every worker, two subsets */
    double *estimate; /* of every subset */
} kid_job;

/* The first m of a shuffled 0 .. n-1. */
static void draw_subset(n2_stream s, size_t n, size_t m, size_t *order) {
    for (size_t i = 0; i < n; i++) order[i] = i;
    for (size_t i = 0; i < m; i++) {
        const size_t k = i + n2_random_below(s, i, n - i), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

/* The mean kernel of rows of a with rows of b; of a set with itself, of different rows. */
static double mean_kernel(const n2_row_panels *a, const n2_row_panels *b) {
    const bool same = a == b;
    double tile[N2_TILE * N2_TILE], sum = 0;
    for (size_t i = 0; i < a->panels; i++)
        for (size_t k = same ? i : 0; k < b->panels; k++) {
            n2_row_panels_multiply(a, i, b, k, tile);
            for (size_t t = 0; t < N2_TILE * N2_TILE; t++) {
                const size_t row = i * N2_TILE + t / N2_TILE, column = k * N2_TILE + t % N2_TILE;
                if (row >= a->n || column >= b->n || (same && column <= row)) continue;
                const double base = tile[t] / (double)a->d + 1;
                sum += base * base * base;
            }
        }
    const double n = (double)a->n, m = (double)b->n;
    return same ? 2 * sum / (n * (n - 1)) : sum / (n * m);
}

static void estimate_subset(void *arg, size_t item, int worker) {
    const kid_job *job = arg;
    if (n2_cancelled(job->ctx)) return;
    const size_t larger = job->side[job->side[0]->n < job->side[1]->n]->n;
    size_t *order = job->order + (size_t)worker * larger;
    double *packed = job->packed + (size_t)worker * 2 * job->room;
    n2_row_panels p[2];
    for (uint32_t s = 0; s < 2; s++) {
        const n2_stream stream = {job->seed, s, (uint32_t)item};
        draw_subset(stream, job->side[s]->n, job->subset, order);
        p[s] = n2_row_panels_pack(job->side[s], order, job->subset, packed + s * job->room);
    }
    job->estimate[item] =
        mean_kernel(&p[0], &p[0]) + mean_kernel(&p[1], &p[1]) - 2 * mean_kernel(&p[0], &p[1]);
}

static void gather(const kid_job *job, n2_kid *out) {
    n2_tally t = {0};
    for (size_t i = 0; i < N2_KID_SUBSETS; i++) n2_tally_add(&t, job->estimate[i]);
    *out = (n2_kid){n2_tally_mean(&t), n2_tally_spread(&t), N2_KID_SUBSETS, job->subset};
}

n2ce_status n2_kid_distance(n2ce_ctx *ctx, const n2_feature_rows *a, const n2_feature_rows *b,
                            uint64_t seed, n2_kid *out) {
    const size_t least = a->n < b->n ? a->n : b->n, larger = a->n < b->n ? b->n : a->n;
    if (least < 4) return n2_fail(ctx, N2CE_EINVAL, "The kernel distance needs 4 rows a set.");
    const size_t threads = (size_t)n2_ctx_threads(ctx);
    kid_job job = {.ctx = ctx, .side = {a, b}, .seed = seed};
    job.subset = least / 2 < N2_KID_ROWS ? least / 2 : N2_KID_ROWS;
    job.room = n2_panels_of(job.subset) * N2_TILE * a->d;
    job.order = n2_alloc(ctx, threads * larger, sizeof *job.order);
    job.packed = n2_alloc(ctx, threads * 2 * job.room, sizeof *job.packed);
    job.estimate = n2_alloc(ctx, N2_KID_SUBSETS, sizeof *job.estimate);
    n2ce_status status = job.order && job.packed && job.estimate ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_parallel_for(ctx, N2_KID_SUBSETS, estimate_subset, &job);
    if (status == N2CE_OK && n2_cancelled(ctx))
        status = n2_fail(ctx, N2CE_ECANCELED, "Stopped on request.");
    if (status == N2CE_OK) gather(&job, out);
    n2_free(ctx, job.order);
    n2_free(ctx, job.packed);
    n2_free(ctx, job.estimate);
    return status;
}
