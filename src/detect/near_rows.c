#include "near_rows.h"

#include "base/linalg.h"
#include "base/pool.h"

#include <math.h>
#include <string.h>

enum {
    QUERIES = 64 /* rows that meet a tile of others while that is in the cache */
};

/* Of the mean distance, what a local scale is at least: duplicates have none. */
static const double LEAST_SCALE = 0.25;

/* Squares of distances below this share of the two lengths are rounding. */
static const double ROUNDING = 1e-14;

struct n2_near_rows {
    n2ce_ctx *ctx;
    size_t n, d, k;
    double *tiles;   /* N2_TILE rows side by side, feature by feature; the last padded by zeros */
    double *squares; /* of the rows' lengths */
    double *reach;   /* mean distance of each to its nearest */
    double unit;     /* the mean of these */
};

/* The nearest rows of one row so far, the nearest first. */
typedef struct nearest {
    size_t n;
    size_t row[N2_NEAREST_MOST];
    double square[N2_NEAREST_MOST];
} nearest;

static void offer(nearest *best, size_t k, size_t row, double square) {
    if (best->n == k && !(square < best->square[k - 1])) return;
    size_t at = best->n < k ? best->n++ : k - 1;
    for (; at > 0 && best->square[at - 1] > square; at--) {
        best->square[at] = best->square[at - 1];
        best->row[at] = best->row[at - 1];
    }
    best->square[at] = square;
    best->row[at] = row;
}

static size_t count_tiles(const n2_near_rows *s) { return (s->n + N2_TILE - 1) / N2_TILE; }

static double mean_distance(const nearest *best) {
    double sum = 0;
    for (size_t i = 0; i < best->n; i++) sum += sqrt(best->square[i]);
    return best->n > 0 ? sum / (double)best->n : 0;
}

/* ---- some rows against all ----------------------------------------------- */

/* Up to QUERIES rows, padded to whole tiles. own: the first of them is this one of the set's own
 * rows, and does not count as its own neighbour; SIZE_MAX: they are others. */
typedef struct queries {
    double *x; /* QUERIES x d */
    double square[QUERIES];
    size_t n, own;
    nearest best[QUERIES];
} queries;

static void meet_tile(const n2_near_rows *s, queries *q, size_t tile) {
    double product[N2_TILE * N2_TILE];
    const size_t first = tile * N2_TILE, left = s->n - first;
    const size_t width = left < N2_TILE ? left : N2_TILE;
    for (size_t r = 0; r < q->n; r += N2_TILE) {
        n2_tile_product(q->x + r * s->d, s->d, 1, s->tiles + first * s->d, N2_TILE, s->d, product);
        for (size_t i = r; i < q->n && i < r + N2_TILE; i++)
            for (size_t c = 0; c < width; c++) {
                const double lengths = q->square[i] + s->squares[first + c];
                const double square = lengths - 2 * product[(i - r) * N2_TILE + c];
                if (q->own != SIZE_MAX && q->own + i == first + c) continue;
                offer(&q->best[i], s->k, first + c, square > ROUNDING * lengths ? square : 0);
            }
    }
}

static void find_nearest(const n2_near_rows *s, const double *x, queries *q) {
    memcpy(q->x, x, q->n * s->d * sizeof *x);
    memset(q->x + q->n * s->d, 0, (QUERIES - q->n) * s->d * sizeof *x);
    for (size_t i = 0; i < q->n; i++) {
        q->square[i] = n2_dot(q->x + i * s->d, q->x + i * s->d, s->d);
        q->best[i].n = 0;
    }
    for (size_t t = 0; t < count_tiles(s); t++) meet_tile(s, q, t);
}

static double score_of(const n2_near_rows *s, const nearest *best) {
    double scale = 0;
    for (size_t i = 0; i < best->n; i++) scale += s->reach[best->row[i]];
    scale = fmax(scale / (double)best->n, LEAST_SCALE * s->unit);
    return mean_distance(best) / sqrt(scale);
}

typedef struct score_job {
    const n2_near_rows *s;
    const double *x;
    size_t n;
    bool own;
    double *out, *room; /* room: QUERIES x d for each worker */
} score_job;

static void score_some(void *arg, size_t item, int worker) {
    const score_job *job = arg;
    const n2_near_rows *s = job->s;
    const size_t first = item * QUERIES, left = job->n - first;
    if (n2_cancelled(s->ctx)) return;
    queries q = {.x = job->room + (size_t)worker * QUERIES * s->d,
                 .n = left < QUERIES ? left : QUERIES,
                 .own = job->own ? first : SIZE_MAX};
    find_nearest(s, job->x + first * s->d, &q);
    for (size_t i = 0; i < q.n; i++)
        job->out[first + i] = job->own ? mean_distance(&q.best[i]) : score_of(s, &q.best[i]);
}

static n2ce_status run_job(const n2_near_rows *s, const double *x, size_t n, bool own,
                           double *out) {
    const size_t workers = (size_t)n2_ctx_threads(s->ctx);
    score_job job = {.s = s, .x = x, .n = n, .own = own, .out = out};
    job.room = n2_alloc(s->ctx, workers * QUERIES, s->d * sizeof *job.room);
    if (!job.room) return N2CE_ENOMEM;
    n2ce_status status = n2_parallel_for(s->ctx, (n + QUERIES - 1) / QUERIES, score_some, &job);
    n2_free(s->ctx, job.room);
    return status == N2CE_OK && n2_cancelled(s->ctx) ? N2CE_ECANCELED : status;
}

n2ce_status n2_near_rows_score(const n2_near_rows *s, const double *x, size_t n, double *score) {
    return run_job(s, x, n, false, score);
}

n2ce_status n2_near_rows_nearest(const n2_near_rows *s, const double *x, size_t *row) {
    queries q = {.x = n2_alloc(s->ctx, QUERIES, s->d * sizeof *q.x), .n = 1, .own = SIZE_MAX};
    if (!q.x) return N2CE_ENOMEM;
    find_nearest(s, x, &q);
    *row = q.best[0].row[0];
    n2_free(s->ctx, q.x);
    return N2CE_OK;
}

const double *n2_near_rows_reach(const n2_near_rows *s) { return s->reach; }

/* ---- the set ------------------------------------------------------------- */

void n2_near_rows_free(n2_near_rows *s) {
    if (!s) return;
    n2_free(s->ctx, s->tiles);
    n2_free(s->ctx, s->squares);
    n2_free(s->ctx, s->reach);
    n2_free(s->ctx, s);
}

static n2ce_status fill(n2_near_rows *s, const double *x) {
    s->tiles = n2_alloc(s->ctx, count_tiles(s) * N2_TILE, s->d * sizeof *s->tiles);
    s->squares = n2_alloc(s->ctx, s->n, sizeof *s->squares);
    s->reach = n2_alloc(s->ctx, s->n, sizeof *s->reach);
    if (!s->tiles || !s->squares || !s->reach) return N2CE_ENOMEM;
    for (size_t i = 0; i < s->n; i++) {
        double *tile = s->tiles + i / N2_TILE * N2_TILE * s->d;
        for (size_t j = 0; j < s->d; j++) tile[j * N2_TILE + i % N2_TILE] = x[i * s->d + j];
        s->squares[i] = n2_dot(x + i * s->d, x + i * s->d, s->d);
    }
    N2_TRY(run_job(s, x, s->n, true, s->reach));
    for (size_t i = 0; i < s->n; i++) s->unit += s->reach[i] / (double)s->n;
    if (!(s->unit > 0)) s->unit = 1; /* all rows are the same */
    return N2CE_OK;
}

n2ce_status n2_near_rows_new(n2ce_ctx *ctx, const double *x, size_t n, size_t d, size_t k,
                             n2_near_rows **out) {
    n2_near_rows *s = *out = n2_alloc(ctx, 1, sizeof *s);
    if (!s) return N2CE_ENOMEM;
    *s = (n2_near_rows){.ctx = ctx, .n = n, .d = d, .k = n <= k ? n - 1 : k};
    if (s->k == 0) s->k = 1;
    const n2ce_status status = fill(s, x);
    if (status == N2CE_OK) return N2CE_OK;
    n2_near_rows_free(s);
    *out = NULL;
    return status;
}
