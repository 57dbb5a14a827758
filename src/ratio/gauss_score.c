/* Log ratios of rows by the Gaussian part: rows are taken along the directions in blocks, products
 * of tiles, and what is asked of them there is a sum over directions. */
#include "gauss.h"

#include "base/linalg.h"
#include "base/pool.h"

#include <math.h>
#include <string.h>

/* ---- along the directions ------------------------------------------------ */

/* The basis for products of tiles. Of a joint sample only what p and q of each pair are made of:
 * the first rows, those of the sums. */
typedef struct directions {
    const n2_gauss *g;
    size_t found;    /* directions that products give: all, or pairs */
    size_t n, pitch; /* numbers of u that matter; from one row of it to the next */
    double *panels;  /* N2_TILE directions each, d x N2_TILE */
    double *work;
    size_t rows, each;            /* that a worker has room for; numbers of work */
    bool borrows, borrows_panels; /* work and panels are another's */
} directions;

/* A worker's memory. */
typedef struct room {
    double *x, *u; /* rows as seen from the centre; their u */
    double *p, *q;
} room;

enum { BLOCK_ROWS = 64 };

static size_t padded(size_t n) { return (n + N2_TILE - 1) / N2_TILE * N2_TILE; }

static void fill_panels(const directions *v) {
    const size_t d = v->g->d;
    for (size_t i = 0; i < padded(v->found); i++) {
        double *panel = v->panels + i / N2_TILE * d * N2_TILE + i % N2_TILE;
        for (size_t j = 0; j < d; j++)
            panel[j * N2_TILE] = i < v->found ? v->g->basis[i * d + j] : 0;
    }
}

/* Room for so many rows, a multiple of N2_TILE, for each worker; that of `lender`, if there is one,
 * and its panels if they are of the same directions. */
static n2ce_status directions_new(const n2_gauss *g, size_t rows, const directions *lender,
                                  directions *out) {
    const size_t d = g->d, pairs = g->dx < d - g->dx ? g->dx : d - g->dx;
    const size_t found = g->dx ? pairs : d, pitch = padded(g->dx ? 2 * pairs : d);
    *out = (directions){.g = g,
                        .found = found,
                        .n = g->dx ? 2 * pairs : d,
                        .pitch = pitch,
                        .rows = rows,
                        .each = rows * (d + pitch + 2 * padded(found)),
                        .borrows = lender && lender->rows >= rows,
                        .borrows_panels = lender && lender->g == g};
    const size_t numbers = (size_t)n2_ctx_threads(g->ctx) * out->each;
    out->work = out->borrows ? lender->work : n2_realloc(g->ctx, NULL, numbers, sizeof(double));
    out->panels = out->borrows_panels ? lender->panels
                                      : n2_realloc(g->ctx, NULL, padded(found) * d, sizeof(double));
    if (!out->panels || !out->work) return N2CE_ENOMEM;
    if (!out->borrows_panels) fill_panels(out);
    return N2CE_OK;
}

static void directions_free(directions *v) {
    if (!v->borrows_panels) n2_free(v->g->ctx, v->panels);
    if (!v->borrows) n2_free(v->g->ctx, v->work);
}

static room room_of(const directions *v, int worker) {
    double *x = v->work + (size_t)worker * v->each, *u = x + v->rows * v->g->d;
    double *p = u + v->rows * v->pitch;
    return (room){x, u, p, p + v->rows * padded(v->found)};
}

/* What the coordinates [first, end) of `rows` rows, a multiple of N2_TILE, contribute to the
 * directions that products give. A panel is used for all rows before the next. */
static void along(const directions *v, const double *x, size_t rows, size_t first, size_t end,
                  double *u) {
    const size_t d = v->g->d, pitch = padded(v->found);
    double tile[N2_TILE * N2_TILE];
    for (size_t i = 0; i < pitch; i += N2_TILE)
        for (size_t r = 0; r < rows; r += N2_TILE) {
            n2_tile_product(x + r * d + first, d, 1, v->panels + i * d + first * N2_TILE, N2_TILE,
                            end - first, tile);
            for (size_t k = 0; k < N2_TILE; k++)
                memcpy(u + (r + k) * pitch + i, tile + k * N2_TILE, N2_TILE * sizeof *u);
        }
}

/* u of a pair of p and q. */
static void combine(const double *p, const double *q, size_t n, double *u) {
    for (size_t i = 0; i < n; i++) {
        u[i] = p[i] + q[i];
        u[n + i] = p[i] - q[i];
    }
}

/* u of n rows x, of which there is room for whole tiles. */
static void project(const directions *v, room at, size_t n, double *x, double *u) {
    const size_t d = v->g->d, dx = v->g->dx, all = padded(n), pitch = padded(v->found);
    memset(x + n * d, 0, (all - n) * d * sizeof *x);
    if (!dx) {
        along(v, x, all, 0, d, u);
        return;
    }
    along(v, x, all, 0, dx, at.p);
    along(v, x, all, dx, d, at.q);
    for (size_t r = 0; r < n; r++)
        combine(at.p + r * pitch, at.q + r * pitch, v->found, u + r * v->pitch);
}

/* A row as seen from the centre. */
static void centred(const n2_gauss *g, const double *x, double *out) {
    for (size_t j = 0; j < g->d; j++) out[j] = x[j] - g->centre[j];
}

/* How many of n rows are in the block that begins with `first`. */
static size_t rows_in_block(size_t n, size_t first) {
    const size_t left = n > first ? n - first : 0;
    return left < BLOCK_ROWS ? left : BLOCK_ROWS;
}

/* ---- rows ---- */

/* What is asked at u: sum_i a_i u_i^2 + b_i u_i + c. */
typedef struct question {
    const double *a, *b;
    double c;
} question;

static double ask(const directions *v, question q, const double *u) {
    return q.c + n2_quadratic(q.a, q.b, u, v->n);
}

struct n2_gauss_scoring {
    directions v;
    n2_score_rows rows;
    question asked;
    double ab[];
};

static void score_block(const n2_gauss_scoring *s, size_t first, room at) {
    const directions *v = &s->v;
    const size_t rows = rows_in_block(s->rows.n, first), d = v->g->d;
    for (size_t r = 0; r < rows; r++) centred(v->g, s->rows.x + (first + r) * d, at.x + r * d);
    project(v, at, rows, at.x, at.u);
    for (size_t r = 0; r < rows; r++) s->rows.f[first + r] = ask(v, s->asked, at.u + r * v->pitch);
}

/* u of (x, y) follows from p of x and q of y: pairs cost no product of their own. */
static void score_pair_block(const n2_gauss_scoring *s, size_t first, room at) {
    const directions *v = &s->v;
    const n2_score_rows *in = &s->rows;
    const size_t d = v->g->d, dx = v->g->dx, pitch = padded(v->found);
    const size_t rows = rows_in_block(in->n, first), more = rows + in->shifts;
    for (size_t r = 0; r < more; r++) centred(v->g, in->x + (first + r) % in->n * d, at.x + r * d);
    memset(at.x + more * d, 0, (padded(more) - more) * d * sizeof *at.x);
    along(v, at.x, padded(rows), 0, dx, at.p);
    along(v, at.x, padded(more), dx, d, at.q);
    for (size_t k = 0; k <= in->shifts; k++) /* k = 0: the rows themselves */
        for (size_t r = 0; r < rows; r++) {
            combine(at.p + r * pitch, at.q + (r + k) * pitch, v->found, at.u);
            double *f = k ? in->pairs + (k - 1) * in->stride : in->f;
            f[first + r] = ask(v, s->asked, at.u);
        }
}

void n2_gauss_scoring_item(void *scoring, size_t item, int worker) {
    const n2_gauss_scoring *s = scoring;
    const room at = room_of(&s->v, worker);
    if (s->rows.shifts > 0)
        score_pair_block(s, item * BLOCK_ROWS, at);
    else
        score_block(s, item * BLOCK_ROWS, at);
}

size_t n2_gauss_scoring_items(const n2_gauss_scoring *s) {
    return (s->rows.n + BLOCK_ROWS - 1) / BLOCK_ROWS;
}

n2ce_status n2_gauss_scoring_new(const n2_gauss *g, const n2_score_rows *rows,
                                 const n2_gauss_scoring *lender, n2_gauss_scoring **out) {
    n2_gauss_scoring *s = *out = n2_alloc(g->ctx, 1, sizeof *s + 2 * g->d * sizeof(double));
    if (!s) return N2CE_ENOMEM;
    s->rows = *rows;
    s->asked = (question){s->ab, s->ab + g->d, 0};
    n2_gauss_waymark_ratio(g, 0, 1, s->ab, s->ab + g->d, &s->asked.c);
    const n2ce_status status =
        directions_new(g, padded(BLOCK_ROWS + rows->shifts), lender ? &lender->v : NULL, &s->v);
    if (status == N2CE_OK) return N2CE_OK;
    n2_gauss_scoring_free(s);
    *out = NULL;
    return status;
}

void n2_gauss_scoring_free(n2_gauss_scoring *s) {
    if (!s) return;
    n2ce_ctx *ctx = s->v.g->ctx;
    directions_free(&s->v);
    n2_free(ctx, s);
}

static n2ce_status run(n2_gauss_scoring *s) {
    return n2_parallel_for(s->v.g->ctx, n2_gauss_scoring_items(s), n2_gauss_scoring_item, s);
}

n2ce_status n2_gauss_score(const n2_gauss *g, const double *x, size_t n, double *f) {
    n2_gauss_scoring *s;
    N2_TRY(n2_gauss_scoring_new(g, &(n2_score_rows){.x = x, .n = n, .f = f}, NULL, &s));
    const n2ce_status status = run(s);
    n2_gauss_scoring_free(s);
    return status;
}

n2ce_status n2_gauss_quadratic(const n2_gauss *g, const double *ab, double c, const double *x,
                               size_t n, double *f) {
    n2_gauss_scoring *s;
    N2_TRY(n2_gauss_scoring_new(g, &(n2_score_rows){.x = x, .n = n, .f = f}, NULL, &s));
    s->asked = (question){ab, ab + g->d, c};
    const n2ce_status status = run(s);
    n2_gauss_scoring_free(s);
    return status;
}

/* ---- stages ---- */

/* u of a waymark's row is the mixture of those of its pair: so all stages of a pair, and both
 * sides, cost its two products. */
typedef struct stages_job {
    directions v;
    const double *alpha;
    size_t stages;
    const size_t *n;      /* pairs of each side */
    size_t rows[2];       /* of the denominator and the numerator that a waymark needs */
    const double *ab, *c; /* 2 d for each stage; 1 */
    n2_pair_fn *pair;
    void *arg;
    double *const *f;
} stages_job;

/* u of the first n rows of a block; that of the others is 0. */
static void project_block(const directions *v, room at, double *x, size_t n, double *u) {
    const size_t d = v->g->d;
    for (size_t r = 0; r < n; r++) centred(v->g, x + r * d, x + r * d);
    project(v, at, n, x, u);
    memset(u + n * v->pitch, 0, (BLOCK_ROWS - n) * v->pitch * sizeof *u);
}

/* A stage of the block's pairs on one side; u is their denominators' and then their
 * numerators', and `mixed` a row of scratch. */
static void score_waymark(const stages_job *job, size_t stage, size_t side, size_t first,
                          const double *u, double *mixed) {
    const directions *v = &job->v;
    const size_t d = v->g->d, n = job->n[side], rows = rows_in_block(n, first);
    const double mix = job->alpha[stage + side], keep = sqrt((1 - mix) * (1 + mix));
    const double *ab = job->ab + stage * 2 * d, *den = u, *num = u + BLOCK_ROWS * v->pitch;
    const question asked = {ab, ab + d, job->c[stage]};
    for (size_t r = 0; r < rows; r++, den += v->pitch, num += v->pitch) {
        for (size_t i = 0; i < v->n; i++) mixed[i] = keep * num[i] + mix * den[i];
        job->f[side][stage * n + first + r] = ask(v, asked, mixed);
    }
}

static void score_stage_block(void *arg, size_t item, int worker) {
    const stages_job *job = arg;
    const directions *v = &job->v;
    const room at = room_of(v, worker);
    const size_t first = item * BLOCK_ROWS, d = v->g->d;
    const size_t pairs = job->n[0] > job->n[1] ? job->n[0] : job->n[1];
    double *den = at.x, *num = den + BLOCK_ROWS * d, *num_u = at.u + BLOCK_ROWS * v->pitch;
    for (size_t r = 0; r < rows_in_block(pairs, first); r++)
        job->pair(job->arg, first + r, num + r * d, den + r * d);
    project_block(v, at, den, rows_in_block(job->rows[0], first), at.u);
    project_block(v, at, num, rows_in_block(job->rows[1], first), num_u);
    for (size_t k = 0; k < job->stages; k++)
        for (size_t side = 0; side < 2; side++)
            score_waymark(job, k, side, first, at.u, at.x); /* rows are not needed any more */
}

static n2ce_status score_stages(stages_job *job, double *ab, double *c) {
    const n2_gauss *g = job->v.g;
    const size_t *n = job->n, pairs = n[0] > n[1] ? n[0] : n[1];
    for (size_t side = 0; side < 2; side++) job->rows[side] = job->stages > 1 ? pairs : n[side];
    for (size_t k = 0; k < job->stages; k++, ab += 2 * g->d)
        n2_gauss_waymark_ratio(g, job->alpha[k + 1], job->alpha[k], ab, ab + g->d, c + k);
    return n2_parallel_for(g->ctx, (pairs + BLOCK_ROWS - 1) / BLOCK_ROWS, score_stage_block, job);
}

n2ce_status n2_gauss_stages(const n2_gauss *g, const double *alpha, size_t stages,
                            const size_t n[2], n2_pair_fn *pair, void *arg, double *const f[2]) {
    const size_t d = g->d;
    double *ab = n2_alloc(g->ctx, stages * (2 * d + 1), sizeof *ab), *c = ab + stages * 2 * d;
    if (!ab) return N2CE_ENOMEM;
    stages_job job = {.alpha = alpha,
                      .stages = stages,
                      .n = n,
                      .ab = ab,
                      .c = c,
                      .pair = pair,
                      .arg = arg,
                      .f = f};
    n2ce_status status = directions_new(g, 2 * BLOCK_ROWS, NULL, &job.v);
    if (status == N2CE_OK) status = score_stages(&job, ab, c);
    directions_free(&job.v);
    n2_free(g->ctx, ab);
    return status;
}

/* ---- influence ----------------------------------------------------------- */

/* In the basis the denominator is N(0, I): d KL / d variance_i = (1 - lambda_i -
 * delta_i^2) / 2, d KL / d mean_i = -delta_i; off-diagonal moments matter too, through
 * -(delta_i delta_j) / 2, which is the square of delta'u. */
n2ce_status n2_gauss_influence_den(const n2_gauss *g, const double *x, size_t n, double *out) {
    double *ab = n2_alloc(g->ctx, 2 * g->d, sizeof *ab), *line = n2_alloc(g->ctx, n, sizeof *line);
    n2ce_status status = ab && line ? N2CE_OK : N2CE_ENOMEM;
    double c = 0, size = 0;
    if (status == N2CE_OK) {
        for (size_t i = 0; i < g->d; i++) {
            ab[i] = 0;
            ab[g->d + i] = g->delta[i];
            size += g->delta[i] * g->delta[i];
        }
        status = n2_gauss_quadratic(g, ab, 0, x, n, line);
    }
    if (status == N2CE_OK) {
        for (size_t i = 0; i < g->d; i++) {
            ab[i] = 0.5 * (1 - g->lambda[i]);
            ab[g->d + i] = -g->delta[i];
            c -= ab[i];
        }
        status = n2_gauss_quadratic(g, ab, c, x, n, out);
    }
    for (size_t i = 0; i < n && status == N2CE_OK; i++) out[i] -= 0.5 * (line[i] * line[i] - size);
    n2_free(g->ctx, ab);
    n2_free(g->ctx, line);
    return status;
}
