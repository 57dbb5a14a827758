#include "cma.h"

#include "base/arena.h"
#include "base/linalg.h"
#include "base/numerics.h"
#include "base/pool.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OFFSPRING = 64, MOST_WHOLE = 256, STREAM = 0x434D0000 };

/* What all searches share: Hansen's names. */
typedef struct rates {
    size_t n, lambda, mu;
    double weight[MOST_OFFSPRING], mueff, cc, cs, c1, cmu, damps, chi;
    double lag;    /* generations between decompositions */
    bool diagonal; /* covariances are: b is not there, c and scratch are shorter */
} rates;

/* Of many numbers the variances alone are learnt, and faster (Ros and Hansen 2008): a whole
 * covariance takes n^3 operations to decompose, and more generations than anybody runs to learn. */
static void keep_apart(rates *r) {
    const double faster = ((double)r->n + 1.5) / 3;
    r->diagonal = true;
    r->c1 = fmin(1, r->c1 * faster);
    r->cmu = fmin(1 - r->c1, r->cmu * faster);
    r->lag = 0;
}

static rates usual_rates(size_t n) {
    rates r = {.n = n, .lambda = 4 + (size_t)(3 * log((double)n))};
    const double d = (double)n;
    double sum = 0, squares = 0;
    if (r.lambda > MOST_OFFSPRING) r.lambda = MOST_OFFSPRING;
    r.mu = r.lambda / 2;
    for (size_t i = 0; i < r.mu; i++)
        sum += r.weight[i] = log((double)r.lambda / 2 + 0.5) - log((double)i + 1);
    for (size_t i = 0; i < r.mu; i++) {
        r.weight[i] /= sum;
        squares += r.weight[i] * r.weight[i];
    }
    r.mueff = 1 / squares;
    r.cc = (4 + r.mueff / d) / (d + 4 + 2 * r.mueff / d);
    r.cs = (r.mueff + 2) / (d + r.mueff + 5);
    r.c1 = 2 / ((d + 1.3) * (d + 1.3) + r.mueff);
    r.cmu = fmin(1 - r.c1, 2 * (r.mueff - 2 + 1 / r.mueff) / ((d + 2) * (d + 2) + r.mueff));
    r.damps = 1 + 2 * fmax(0, sqrt((r.mueff - 1) / (d + 1)) - 1) + r.cs;
    r.chi = sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d));
    r.lag = 1 / (r.c1 + r.cmu) / d / 10;
    if (n > MOST_WHOLE) keep_apart(&r);
    return r;
}

/* One search. */
typedef struct search {
    double *mean, *c, *b, *deviation; /* covariance, its eigenvectors, roots of its eigenvalues */
    double *ps, *pc, *best, *scratch; /* scratch: as long as c, and 4 n */
    double *offspring, *value;        /* lambda x n and lambda, in the common list */
    double sigma, most;
    size_t decomposed; /* in which generation */
} search;

typedef struct hunt {
    rates r;
    search *searches;
    size_t count, generation;
    uint64_t seed;
} hunt;

/* ---- a generation ---------------------------------------------------------------------------- */

static void sample(void *arg, size_t k, int worker) {
    const hunt *h = arg;
    const size_t n = h->r.n;
    search *s = &h->searches[k];
    const n2_stream stream = {h->seed, STREAM + (uint32_t)k, (uint32_t)h->generation};
    (void)worker;
    for (size_t i = 0; i < h->r.lambda; i++) {
        double *z = s->scratch, *x = s->offspring + i * n;
        for (size_t c = 0; c < n; c++) {
            float e;
            n2_fill_normal(stream, i * n + c, 1, &e);
            z[c] = s->deviation[c] * (double)e;
        }
        for (size_t c = 0; c < n; c++)
            x[c] = s->mean[c] + s->sigma * (h->r.diagonal ? z[c] : n2_dot(s->b + c * n, z, n));
    }
}

typedef struct rank {
    double value;
    size_t i;
} rank;

static int best_first(const void *a, const void *b) {
    const rank *p = a, *q = b;
    if (p->value != q->value) return p->value > q->value ? -1 : 1;
    return p->i < q->i ? -1 : p->i > q->i;
}

/* C^-1/2 y, by way of the eigenvectors. */
static void whiten(const rates *r, const search *s, const double *y, double *out, double *scratch) {
    const size_t n = r->n;
    for (size_t c = 0; c < n && r->diagonal; c++) out[c] = y[c] / s->deviation[c];
    if (r->diagonal) return;
    for (size_t e = 0; e < n; e++) {
        double sum = 0;
        for (size_t c = 0; c < n; c++) sum += s->b[c * n + e] * y[c];
        scratch[e] = sum / s->deviation[e];
    }
    for (size_t c = 0; c < n; c++) out[c] = n2_dot(s->b + c * n, scratch, n);
}

static void adapt_covariance(const rates *r, search *s, const rank *order, const double *old,
                             bool steady) {
    const size_t n = r->n;
    const double rest = 1 - r->c1 - r->cmu + (steady ? 0 : r->c1 * r->cc * (2 - r->cc));
    for (size_t a = 0; a < n; a++)
        for (size_t b = r->diagonal ? a : 0; b <= a; b++) {
            double sum = 0;
            for (size_t i = 0; i < r->mu; i++) {
                const double *x = s->offspring + order[i].i * n;
                sum += r->weight[i] * (x[a] - old[a]) * (x[b] - old[b]);
            }
            double *c = &s->c[r->diagonal ? a : a * n + b];
            *c = rest * *c + r->c1 * s->pc[a] * s->pc[b] + r->cmu * sum / (s->sigma * s->sigma);
            if (!r->diagonal) s->c[b * n + a] = *c;
        }
}

static size_t numbers_of_covariance(const rates *r) { return r->diagonal ? r->n : r->n * r->n; }

static void begin_covariance(const rates *r, search *s) {
    const size_t n = r->n;
    for (size_t i = 0; i < n && r->diagonal; i++) s->c[i] = 1;
    for (size_t i = 0; i < n * n && !r->diagonal; i++) s->c[i] = s->b[i] = i % (n + 1) == 0;
}

/* Where the covariance went bad it starts afresh. */
static void decompose(const rates *r, search *s) {
    const size_t n = r->n, numbers = numbers_of_covariance(r);
    double *copy = r->diagonal ? s->deviation : s->scratch;
    memcpy(copy, s->c, numbers * sizeof *copy);
    bool fine = r->diagonal || n2_symmetric_eigen(copy, n, s->deviation, s->b);
    for (size_t c = 0; c < n; c++) fine &= s->deviation[c] > 0;
    for (size_t c = 0; c < n; c++) s->deviation[c] = fine ? sqrt(s->deviation[c]) : 1;
    if (!fine) begin_covariance(r, s);
}

static void move_paths(const hunt *h, search *s, const double *old, bool *steady) {
    const rates *r = &h->r;
    const size_t n = r->n;
    double *y = s->scratch + numbers_of_covariance(r) + n, *white = y + n, norm = 0;
    for (size_t c = 0; c < n; c++) y[c] = (s->mean[c] - old[c]) / s->sigma;
    whiten(r, s, y, white, white + n);
    for (size_t c = 0; c < n; c++) {
        s->ps[c] = (1 - r->cs) * s->ps[c] + sqrt(r->cs * (2 - r->cs) * r->mueff) * white[c];
        norm += s->ps[c] * s->ps[c];
    }
    const double settled = 1 - pow(1 - r->cs, 2 * (double)(h->generation + 1));
    *steady = norm / (double)n / settled < 2 + 4 / ((double)n + 1);
    const double push = *steady ? sqrt(r->cc * (2 - r->cc) * r->mueff) : 0;
    for (size_t c = 0; c < n; c++) s->pc[c] = (1 - r->cc) * s->pc[c] + push * y[c];
}

static void update(void *arg, size_t k, int worker) {
    const hunt *h = arg;
    const rates *r = &h->r;
    const size_t n = r->n;
    search *s = &h->searches[k];
    rank order[MOST_OFFSPRING];
    double *old = s->scratch + numbers_of_covariance(r), norm = 0;
    bool steady;
    (void)worker;
    for (size_t i = 0; i < r->lambda; i++) order[i] = (rank){s->value[i], i};
    qsort(order, r->lambda, sizeof *order, best_first);
    if (order[0].value > s->most) {
        s->most = order[0].value;
        memcpy(s->best, s->offspring + order[0].i * n, n * sizeof *s->best);
    }
    memcpy(old, s->mean, n * sizeof *old);
    for (size_t c = 0; c < n; c++) {
        s->mean[c] = 0;
        for (size_t i = 0; i < r->mu; i++)
            s->mean[c] += r->weight[i] * s->offspring[order[i].i * n + c];
    }
    move_paths(h, s, old, &steady);
    adapt_covariance(r, s, order, old, steady);
    for (size_t c = 0; c < n; c++) norm += s->ps[c] * s->ps[c];
    s->sigma *= exp(fmin(1, r->cs / r->damps * (sqrt(norm) / r->chi - 1)));
    if ((double)(h->generation - s->decomposed) < r->lag) return;
    decompose(r, s);
    s->decomposed = h->generation;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static n2ce_status new_search(n2_arena *arena, const rates *r, const double *start, double sigma,
                              search *s) {
    const size_t n = r->n, numbers = numbers_of_covariance(r), room = 3 * numbers + 9 * n;
    double *at = n2_arena_alloc(arena, room, sizeof *at);
    if (!at) return N2CE_ENOMEM;
    double **const parts[] = {&s->mean, &s->deviation, &s->ps, &s->pc, &s->best};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++, at += n) *parts[i] = at;
    s->c = at;
    s->b = at + numbers;
    s->scratch = at + 2 * numbers;
    begin_covariance(r, s);
    for (size_t c = 0; c < n; c++) s->deviation[c] = 1;
    memcpy(s->mean, start, n * sizeof *start);
    memcpy(s->best, start, n * sizeof *start);
    s->sigma = sigma;
    s->most = -N2_INFINITY;
    return N2CE_OK;
}

static n2ce_status run_hunt(n2_arena *arena, const n2_cma *o, hunt *h, double *x) {
    const size_t n = o->dim, lambda = h->r.lambda;
    double *points = n2_arena_alloc(arena, h->count * lambda * n, sizeof *points);
    double *values = n2_arena_alloc(arena, h->count * lambda, sizeof *values);
    h->searches = n2_arena_alloc(arena, h->count, sizeof *h->searches);
    if (!h->searches || !points || !values) return N2CE_ENOMEM;
    for (size_t k = 0; k < h->count; k++) {
        N2_TRY(new_search(arena, &h->r, x + k * n, o->sigma, &h->searches[k]));
        h->searches[k].offspring = points + k * lambda * n;
        h->searches[k].value = values + k * lambda;
    }
    for (; h->generation < o->generations; h->generation++) {
        N2_TRY(n2_parallel_for(arena->ctx, h->count, sample, h));
        N2_TRY(o->ask(o->user, points, h->count * lambda, values));
        N2_TRY(n2_parallel_for(arena->ctx, h->count, update, h));
    }
    for (size_t k = 0; k < h->count; k++) memcpy(x + k * n, h->searches[k].best, n * sizeof *x);
    return N2CE_OK;
}

n2ce_status n2_cma_maximise(n2ce_ctx *ctx, const n2_cma *o, size_t searches, double *x) {
    n2_arena arena = n2_arena_new(ctx);
    hunt h = {.r = usual_rates(o->dim), .count = searches, .seed = o->seed};
    const n2ce_status status = run_hunt(&arena, o, &h, x);
    n2_arena_free(&arena);
    return status;
}
