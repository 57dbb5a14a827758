#include "gauss.h"

#include "base/linalg.h"
#include "base/numerics.h"
#include "base/pool.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* ---- the basis ----------------------------------------------------------- */

/* Variances of both, or 1 where there is none. */
static void sizes(const double *a, const double *b, size_t d, double *size) {
    for (size_t i = 0; i < d; i++) {
        size[i] = a[i * d + i] + b[i * d + i];
        if (!(size[i] > 0)) size[i] = 1;
    }
}

enum { MOST_RIDGES = 5 };

/* What is added to variances so that directions without spread have a little: nothing, if
 * it can be done without. */
static double ridge_at(int k) { return k ? 1e-12 * pow(100, k) : 0; }

/* Factor of cov + ridge diag(size). False if a variable is a combination of those before
 * it, as far as rounding lets us know. */
static bool factor(const double *cov, size_t d, const double *size, double ridge, double *l) {
    memcpy(l, cov, d * d * sizeof *l);
    for (size_t i = 0; i < d; i++) l[i * d + i] += ridge * size[i];
    if (!n2_cholesky(l, d)) return false;
    for (size_t i = 0; i < d; i++)
        if (l[i * d + i] * l[i * d + i] < 1e-12 * (cov[i * d + i] + ridge * size[i])) return false;
    return true;
}

static void transpose(double *a, size_t d) {
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < i; j++) {
            const double t = a[i * d + j];
            a[i * d + j] = a[j * d + i];
            a[j * d + i] = t;
        }
}

/* out = V' S for a lower S. Tiles at the edges read a few numbers beyond the ends of v and s, which
 * must be there but do not matter. */
static void turn_rows(const double *v, const double *s, size_t d, double *out) {
    double tile[N2_TILE * N2_TILE];
    for (size_t i = 0; i < d; i += N2_TILE)
        for (size_t j = 0; j < d; j += N2_TILE) {
            const size_t rows = d - i < N2_TILE ? d - i : N2_TILE;
            const size_t columns = d - j < N2_TILE ? d - j : N2_TILE;
            n2_tile_product(v + j * d + i, 1, d, s + j * d + j, d, d - j, tile);
            for (size_t r = 0; r < rows; r++)
                memcpy(out + (i + r) * d + j, tile + r * N2_TILE, columns * sizeof *out);
        }
}

/* With den = L L' and V' (L^-1 num L^-T) V = diag lambda the basis is V' L^-1. l becomes
 * the basis' inverse factor's solution; s and v are scratch of d x d, and something follows each.
 */
static bool diagonalise(n2_gauss *g, const double *num_cov, double *l, double *s, double *v) {
    const size_t d = g->d;
    memcpy(s, num_cov, d * d * sizeof *s);
    n2_lower_solve(l, d, s, d);
    transpose(s, d);
    n2_lower_solve(l, d, s, d);
    for (size_t i = 0; i < d; i++) /* rounding must not make it lopsided */
        for (size_t j = 0; j < i; j++) s[i * d + j] = 0.5 * (s[i * d + j] + s[j * d + i]);
    if (!n2_symmetric_eigen(s, d, g->lambda, v)) return false;
    n2_lower_inverse(l, d, s);
    memcpy(g->whiten, s, d * d * sizeof *s);
    turn_rows(v, s, d, g->basis);
    return true;
}

static void place(n2_gauss *g, const n2_moments *num, const n2_moments *den) {
    const size_t d = g->d;
    /* no spread at all would be an infinite log ratio; eigenvalues are ascending, and what
     * is small beside the last one is rounding */
    const double least = fmax(1e-28, d ? 1e-15 * g->lambda[d - 1] : 0);
    memcpy(g->centre, den->mean, d * sizeof(double));
    for (size_t i = 0; i < d; i++) {
        if (!(g->lambda[i] > least)) g->lambda[i] = least;
        g->delta[i] = 0;
        for (size_t j = 0; j < d; j++)
            g->delta[i] += g->basis[i * d + j] * (num->mean[j] - den->mean[j]);
    }
}

/* A direction in which neither sample has a spread but what the ridge gave it, as where a
 * column is there twice, says nothing. */
static void drop_empty(n2_gauss *g, const double *size, double ridge) {
    for (size_t i = 0; i < g->d; i++) {
        double given = 0; /* of the variance 1 that the denominator has along i */
        for (size_t j = 0; j < g->d; j++)
            given += ridge * size[j] * g->basis[i * g->d + j] * g->basis[i * g->d + j];
        if (given < 0.5 || g->lambda[i] > 2 || fabs(g->delta[i]) > 1e-3) continue;
        g->lambda[i] = 1;
        g->delta[i] = 0;
    }
}

/* Both covariances get the least ridge with which the denominator's has a factor. work is
 * 4 d^2 + d + N2_TILE numbers. */
static bool find_basis(n2_gauss *g, const n2_moments *num, const n2_moments *den, double *work) {
    const size_t d = g->d, dd = d * d;
    double *cov = work + 3 * dd, *size = work + 4 * dd, ridge = 0;
    sizes(num->cov, den->cov, d, size);
    bool found = false;
    for (int k = 0; k < MOST_RIDGES && !found; k++) {
        ridge = ridge_at(k);
        found = factor(den->cov, d, size, ridge, work);
    }
    if (!found) return false;
    memcpy(cov, num->cov, dd * sizeof *cov);
    for (size_t i = 0; i < d; i++) cov[i * d + i] += ridge * size[i];
    if (!diagonalise(g, cov, work, work + dd, work + 2 * dd)) return false;
    place(g, num, den);
    if (ridge > 0) drop_empty(g, size, ridge);
    return true;
}

static n2_gauss *gauss_alloc(n2ce_ctx *ctx, size_t d) {
    n2_gauss *g = n2_alloc(ctx, 1, sizeof *g);
    if (!g) return NULL;
    *g = (n2_gauss){ctx,
                    d,
                    n2_alloc(ctx, d * d, sizeof(double)),
                    n2_alloc(ctx, d, sizeof(double)),
                    n2_alloc(ctx, d, sizeof(double)),
                    n2_alloc(ctx, d, sizeof(double)),
                    n2_alloc(ctx, d * d, sizeof(double))};
    if (g->basis && g->centre && g->lambda && g->delta && g->whiten) return g;
    n2_gauss_free(g);
    return NULL;
}

typedef struct basis_job {
    n2_gauss **g;
    const n2_moments *num, *den;
    double *work;
    size_t each;       /* numbers of work */
    atomic_bool *lost; /* one of them has no basis */
} basis_job;

static void find_one_basis(void *arg, size_t item, int worker) {
    (void)worker;
    const basis_job *job = arg;
    double *work = job->work + item * job->each;
    if (!find_basis(job->g[item], &job->num[item], &job->den[item], work))
        atomic_store_explicit(job->lost, true, memory_order_relaxed);
}

static n2ce_status find_bases(n2ce_ctx *ctx, size_t n, basis_job *job) {
    atomic_bool lost;
    atomic_init(&lost, false);
    job->lost = &lost;
    N2_TRY(n2_parallel_for(ctx, n, find_one_basis, job));
    if (!atomic_load_explicit(&lost, memory_order_relaxed)) return N2CE_OK;
    return n2_fail(ctx, N2CE_ERANGE,
                   "The covariances of the samples cannot be "
                   "brought into one basis; are values huge?");
}

n2ce_status n2_gauss_new_all(n2ce_ctx *ctx, size_t d, size_t n, const n2_moments *num,
                             const n2_moments *den, n2_gauss **out) {
    basis_job job = {.g = out, .num = num, .den = den, .each = 4 * d * d + d + N2_TILE};
    job.work = n2_alloc(ctx, n * job.each, sizeof(double));
    n2ce_status status = job.work ? N2CE_OK : N2CE_ENOMEM;
    for (size_t k = 0; k < n; k++) {
        out[k] = status == N2CE_OK ? gauss_alloc(ctx, d) : NULL;
        if (!out[k]) status = N2CE_ENOMEM;
    }
    if (status == N2CE_OK) status = find_bases(ctx, n, &job);
    n2_free(ctx, job.work);
    for (size_t k = 0; k < n && status != N2CE_OK; k++) {
        n2_gauss_free(out[k]);
        out[k] = NULL;
    }
    return status;
}

n2ce_status n2_gauss_new(n2ce_ctx *ctx, size_t d, const n2_moments *num, const n2_moments *den,
                         n2_gauss **out) {
    return n2_gauss_new_all(ctx, d, 1, num, den, out);
}

void n2_gauss_free(n2_gauss *g) {
    if (!g) return;
    n2_free(g->ctx, g->basis);
    n2_free(g->ctx, g->centre);
    n2_free(g->ctx, g->lambda);
    n2_free(g->ctx, g->delta);
    n2_free(g->ctx, g->whiten);
    n2_free(g->ctx, g);
}

/* ---- waymarks ------------------------------------------------------------ */

typedef struct normal {
    double mean, var;
} normal;

/* How a waymark is mixed: s^2 of the numerator's variance, a^2 of the denominator's, which is 1. */
typedef struct mixture {
    double s, ss, aa;
} mixture;

static mixture mixture_at(double a) {
    const double s = sqrt((1 - a) * (1 + a));
    return (mixture){s, s * s, a * a};
}

/* The waymark along direction i. */
static normal waymark(const n2_gauss *g, size_t i, mixture m) {
    return (normal){m.s * g->delta[i], m.ss * g->lambda[i] + m.aa};
}

/* Logarithms by themselves: the rest is vectorised then. */
double n2_gauss_waymark_kl(const n2_gauss *g, double from, double to) {
    enum { SOME = 64 };
    const mixture mp = mixture_at(from), mq = mixture_at(to);
    double ratio[SOME], shift[SOME], kl = 0;
    for (size_t first = 0; first < g->d; first += SOME) {
        const size_t n = g->d - first < SOME ? g->d - first : SOME;
        for (size_t i = 0; i < n; i++) {
            const normal p = waymark(g, first + i, mp), q = waymark(g, first + i, mq);
            const double gap = p.mean - q.mean;
            ratio[i] = p.var / q.var;
            shift[i] = gap * gap / q.var;
        }
        for (size_t i = 0; i < n; i++) kl += 0.5 * (ratio[i] - 1 - log(ratio[i]) + shift[i]);
    }
    return kl;
}

void n2_gauss_waymark_ratio(const n2_gauss *g, double from, double to, double *a, double *b,
                            double *c) {
    const mixture mp = mixture_at(from), mq = mixture_at(to);
    *c = 0;
    for (size_t i = 0; i < g->d; i++) {
        const normal p = waymark(g, i, mp), q = waymark(g, i, mq);
        a[i] = 0.5 * (1 / q.var - 1 / p.var);
        b[i] = p.mean / p.var - q.mean / q.var;
        *c += 0.5 * (q.mean * q.mean / q.var - p.mean * p.mean / p.var + log(q.var / p.var));
    }
}

/* By how much the waymark e^x is further than `step` from a. */
static double beyond(const n2_gauss *g, double a, double step, double x) {
    return n2_gauss_waymark_kl(g, a, exp(x)) - step;
}

/* Where a rising function is surely below 0 and where surely not. */
typedef struct crossing {
    double below, above;
} crossing;

/* Narrows down where `beyond` crosses 0 by Ridders' method, whose guess is exact for exponentials;
 * what is left is wide enough for rounding not to matter at its ends. */
static crossing find_crossing(const n2_gauss *g, double a, double step, crossing c) {
    enum { GUESSES = 12 };
    static const double WIDTH = 1e-12;
    double below = beyond(g, a, step, c.below), above = beyond(g, a, step, c.above);
    double lo = c.below, hi = c.above, guess = hi;
    for (int i = 0; i < GUESSES && below < 0 && above > 0; i++) {
        const double middle = 0.5 * (lo + hi), at = beyond(g, a, step, middle), last = guess;
        guess = middle - (middle - lo) * at / sqrt(at * at - below * above);
        if (fabs(guess - last) < WIDTH) break;
        const double there = beyond(g, a, step, guess);
        const double x[] = {middle, guess}, y[] = {at, there};
        for (size_t k = 0; k < 2; k++) {
            if (y[k] < 0 && x[k] > lo) lo = x[k], below = y[k];
            if (!(y[k] < 0) && x[k] < hi) hi = x[k], above = y[k];
        }
    }
    if (guess - WIDTH > c.below && beyond(g, a, step, guess - WIDTH) < 0) c.below = guess - WIDTH;
    if (guess + WIDTH < c.above && beyond(g, a, step, guess + WIDTH) >= 0) c.above = guess + WIDTH;
    return c;
}

/* The waymark at Gaussian divergence `step` beyond a, or 1 if it is nearer. Waymarks near the data
 * may be many powers of ten apart, so the search is over ln a. It halves; most of its questions
 * are answered by what was narrowed down before. */
static double next_waymark(const n2_gauss *g, double a, double step) {
    if (n2_gauss_waymark_kl(g, a, 1) <= step) return 1;
    double lo = a > 1e-12 ? log(a) : log(1e-12), hi = 0;
    const crossing known = find_crossing(g, a, step, (crossing){lo, hi});
    for (int i = 0; i < 60; i++) {
        const double middle = 0.5 * (lo + hi);
        if (middle <= lo || middle >= hi) break; /* there is no number between them */
        const bool between = middle > known.below && middle < known.above;
        if (between ? beyond(g, a, step, middle) < 0 : middle <= known.below)
            lo = middle;
        else
            hi = middle;
    }
    return exp(hi);
}

/* Walks from the data with equal steps; the number of steps that reach the noise. */
static size_t walk(const n2_gauss *g, double step, size_t limit, double *alpha) {
    double a = 0;
    for (size_t k = 1; k <= limit; k++) {
        a = next_waymark(g, a, step);
        if (alpha) alpha[limit - k] = a;
        if (a >= 1) return k;
    }
    return limit + 1;
}

/* The next halvings of a step's range, as a tree: below node j, the middle of whose range was
 * tried, are its lower half, node 2 j, and its upper half, node 2 j + 1. Threads try all nodes at
 * once, of which one by one only those on a path would be. */
enum { MOST_LEVELS = 4 };

typedef struct halvings {
    const n2_gauss *g;
    size_t stages;
    double lo[1 << MOST_LEVELS], hi[1 << MOST_LEVELS]; /* of nodes 1 .. */
    bool reaches[1 << MOST_LEVELS];                    /* the middle is enough of a step */
} halvings;

static double middle_of(const halvings *h, size_t node) {
    return 0.5 * (h->lo[node] + h->hi[node]);
}

static void try_node(void *arg, size_t item, int worker) {
    (void)worker;
    halvings *h = arg;
    h->reaches[item + 1] = walk(h->g, middle_of(h, item + 1), h->stages, NULL) <= h->stages;
}

/* Halves the range of node 1 so many times. */
static n2ce_status halve(halvings *h, int levels) {
    const size_t nodes = ((size_t)1 << levels) - 1;
    size_t node = 1;
    for (size_t j = 2; j <= nodes; j++) {
        h->lo[j] = j % 2 ? middle_of(h, j / 2) : h->lo[j / 2];
        h->hi[j] = j % 2 ? h->hi[j / 2] : middle_of(h, j / 2);
    }
    N2_TRY(n2_parallel_for(h->g->ctx, nodes, try_node, h));
    double lo = h->lo[1], hi = h->hi[1];
    for (int k = 0; k < levels; k++) {
        const double middle = 0.5 * (lo + hi);
        if (h->reaches[node])
            hi = middle;
        else
            lo = middle;
        node = 2 * node + !h->reaches[node];
    }
    h->lo[1] = lo;
    h->hi[1] = hi;
    return N2CE_OK;
}

/* As many levels as there are threads for all their nodes, if there is something to do. */
static int levels_at_once(const n2_gauss *g, size_t stages) {
    enum { LITTLE = 256 };
    int levels = 1;
    if (g->d * stages < LITTLE) return 1;
    while (levels < MOST_LEVELS && (2 << levels) - 1 <= n2_ctx_threads(g->ctx)) levels++;
    return levels;
}

n2ce_status n2_gauss_waymarks(const n2_gauss *g, size_t stages, double *alpha) {
    enum { HALVINGS = 50 };
    const int most = levels_at_once(g, stages);
    halvings h = {.g = g, .stages = stages};
    h.hi[1] = n2_gauss_waymark_kl(g, 0, 1) + 1e-12;
    for (int i = 0; i < HALVINGS && stages > 1; i += most)
        N2_TRY(halve(&h, HALVINGS - i < most ? HALVINGS - i : most));
    alpha[stages] = 0;
    for (size_t k = 0; k < stages; k++) alpha[k] = 1 - (double)k / (double)stages;
    if (stages > 1) walk(g, h.hi[1], stages, alpha);
    alpha[0] = 1;
    return N2CE_OK;
}

/* ---- scores -------------------------------------------------------------- */

/* The basis, transposed: one row for each coordinate of x, padded to whole tiles. */
typedef struct directions {
    const n2_gauss *g;
    size_t pitch;
    double *t, *work; /* work: BLOCK_ROWS centred rows for each worker, and their u */
    size_t each;      /* numbers of work for a worker */
} directions;

enum { BLOCK_ROWS = 64 };

static size_t padded(size_t n) { return (n + N2_TILE - 1) / N2_TILE * N2_TILE; }

static n2ce_status directions_new(const n2_gauss *g, size_t rows, directions *out) {
    const size_t d = g->d, pitch = padded(d);
    *out = (directions){.g = g, .pitch = pitch, .each = rows * (d + pitch)};
    out->t = n2_alloc(g->ctx, d * pitch, sizeof(double));
    out->work = n2_alloc(g->ctx, (size_t)n2_ctx_threads(g->ctx) * out->each, sizeof(double));
    if (!out->t || !out->work) return N2CE_ENOMEM;
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++) out->t[j * pitch + i] = g->basis[i * d + j];
    return N2CE_OK;
}

static void directions_free(directions *v) {
    n2_free(v->g->ctx, v->t);
    n2_free(v->g->ctx, v->work);
}

/* u [rows x pitch] = basis (x - centre) of coordinates [first, end) of x, which has `rows` rows,
 * a multiple of N2_TILE, of centred coordinates. */
static void along(const directions *v, const double *x, size_t rows, size_t first, size_t end,
                  double *u) {
    double tile[N2_TILE * N2_TILE];
    for (size_t r = 0; r < rows; r += N2_TILE)
        for (size_t i = 0; i < v->pitch; i += N2_TILE) {
            n2_tile_product(x + r * (end - first), end - first, 1, v->t + first * v->pitch + i,
                            v->pitch, end - first, tile);
            for (size_t k = 0; k < N2_TILE; k++)
                memcpy(u + (r + k) * v->pitch + i, tile + k * N2_TILE, N2_TILE * sizeof *u);
        }
}

/* Coordinates [first, end) of a row, as seen from the centre. */
static void centred(const n2_gauss *g, const double *x, size_t first, size_t end, double *out) {
    for (size_t j = first; j < end; j++) *out++ = x[j] - g->centre[j];
}

typedef struct score_job {
    directions v;
    const double *x, *a, *b;
    double c;
    size_t n;
    double *f;
} score_job;

/* sum_i a_i u_i^2 + b_i u_i + c */
static double quadratic(const score_job *job, const double *u) {
    double f = job->c;
    for (size_t i = 0; i < job->v.g->d; i++) f += (job->a[i] * u[i] + job->b[i]) * u[i];
    return f;
}

static void score_block(void *arg, size_t item, int worker) {
    const score_job *job = arg;
    const n2_gauss *g = job->v.g;
    const size_t first = item * BLOCK_ROWS, left = job->n - first, d = g->d;
    const size_t rows = left < BLOCK_ROWS ? left : BLOCK_ROWS, all = padded(rows);
    double *x = job->v.work + (size_t)worker * job->v.each, *u = x + BLOCK_ROWS * d;
    for (size_t r = 0; r < rows; r++) centred(g, job->x + (first + r) * d, 0, d, x + r * d);
    memset(x + rows * d, 0, (all - rows) * d * sizeof *x);
    along(&job->v, x, all, 0, d, u);
    for (size_t r = 0; r < rows; r++) job->f[first + r] = quadratic(job, u + r * job->v.pitch);
}

/* A quadratic along the directions, at n rows. */
n2ce_status n2_gauss_quadratic(const n2_gauss *g, const double *ab, double c, const double *x,
                               size_t n, double *f) {
    score_job job = {.x = x, .a = ab, .b = ab + g->d, .c = c, .n = n, .f = f};
    n2ce_status status = directions_new(g, BLOCK_ROWS, &job.v);
    if (status == N2CE_OK)
        status = n2_parallel_for(g->ctx, (n + BLOCK_ROWS - 1) / BLOCK_ROWS, score_block, &job);
    directions_free(&job.v);
    return status;
}

n2ce_status n2_gauss_score(const n2_gauss *g, const double *x, size_t n, double *f) {
    double *ab = n2_alloc(g->ctx, 2 * g->d, sizeof *ab), c;
    if (!ab) return N2CE_ENOMEM;
    n2_gauss_waymark_ratio(g, 0, 1, ab, ab + g->d, &c);
    const n2ce_status status = n2_gauss_quadratic(g, ab, c, x, n, f);
    n2_free(g->ctx, ab);
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

/* How many of n rows are in the block that begins with `first`. */
static size_t rows_in_block(size_t n, size_t first) {
    const size_t left = n > first ? n - first : 0;
    return left < BLOCK_ROWS ? left : BLOCK_ROWS;
}

/* u of the first n rows of a block; that of the others is 0. */
static void project_block(const directions *v, double *x, size_t n, double *u) {
    const n2_gauss *g = v->g;
    for (size_t r = 0; r < n; r++) centred(g, x + r * g->d, 0, g->d, x + r * g->d);
    memset(x + n * g->d, 0, (padded(n) - n) * g->d * sizeof *x);
    along(v, x, padded(n), 0, g->d, u);
    memset(u + n * v->pitch, 0, (BLOCK_ROWS - n) * v->pitch * sizeof *u);
}

/* A stage of the block's pairs on one side; u is their denominators' and then their
 * numerators', and a row of scratch. */
static void score_waymark(const stages_job *job, size_t stage, size_t side, size_t first,
                          double *u) {
    const directions *v = &job->v;
    const size_t d = v->g->d, n = job->n[side], rows = rows_in_block(n, first);
    const mixture m = mixture_at(job->alpha[stage + side]);
    const double mix = job->alpha[stage + side], *ab = job->ab + stage * 2 * d;
    const score_job one = {.v = *v, .a = ab, .b = ab + d, .c = job->c[stage]};
    const double *den = u, *num = u + BLOCK_ROWS * v->pitch;
    double *mixed = u + 2 * BLOCK_ROWS * v->pitch;
    for (size_t r = 0; r < rows; r++, den += v->pitch, num += v->pitch) {
        for (size_t i = 0; i < d; i++) mixed[i] = m.s * num[i] + mix * den[i];
        job->f[side][stage * n + first + r] = quadratic(&one, mixed);
    }
}

static void score_stage_block(void *arg, size_t item, int worker) {
    const stages_job *job = arg;
    const directions *v = &job->v;
    const size_t first = item * BLOCK_ROWS, d = v->g->d;
    const size_t pairs = job->n[0] > job->n[1] ? job->n[0] : job->n[1];
    double *den = v->work + (size_t)worker * v->each, *num = den + BLOCK_ROWS * d;
    double *u = num + BLOCK_ROWS * d;
    for (size_t r = 0; r < rows_in_block(pairs, first); r++)
        job->pair(job->arg, first + r, num + r * d, den + r * d);
    project_block(v, den, rows_in_block(job->rows[0], first), u);
    project_block(v, num, rows_in_block(job->rows[1], first), u + BLOCK_ROWS * v->pitch);
    for (size_t k = 0; k < job->stages; k++)
        for (size_t side = 0; side < 2; side++) score_waymark(job, k, side, first, u);
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
    n2ce_status status = directions_new(g, 2 * BLOCK_ROWS + 1, &job.v);
    if (status == N2CE_OK) status = score_stages(&job, ab, c);
    directions_free(&job.v);
    n2_free(g->ctx, ab);
    return status;
}

/* ---- pairs ---- */

/* u of (x, y) is that of x plus that of y, so pairs cost no product of their own. */
typedef struct pair_job {
    score_job rows;
    size_t dx, shifts, begin, end, stride, most; /* most: rows of work */
    double *pairs;
} pair_job;

/* Centred coordinates [begin, end) of rows first .. first + n - 1, round and round. */
static void gather_part(const pair_job *job, size_t first, size_t n, size_t begin, size_t end,
                        double *x) {
    const n2_gauss *g = job->rows.v.g;
    const size_t all = padded(n);
    for (size_t r = 0; r < n; r++, x += end - begin)
        centred(g, job->rows.x + (first + r) % job->rows.n * g->d, begin, end, x);
    memset(x, 0, (all - n) * (end - begin) * sizeof *x);
}

static void score_pair_block(void *arg, size_t item, int worker) {
    const pair_job *job = arg;
    const directions *v = &job->rows.v;
    const size_t first = job->begin + item * BLOCK_ROWS, d = v->g->d;
    const size_t rows = rows_in_block(job->end, first), more = rows + job->shifts;
    double *x = v->work + (size_t)worker * v->each, *ux = x + job->most * d;
    double *uy = ux + BLOCK_ROWS * v->pitch, *u = uy + job->most * v->pitch;
    gather_part(job, first, rows, 0, job->dx, x);
    along(v, x, padded(rows), 0, job->dx, ux);
    gather_part(job, first, more, job->dx, d, x);
    along(v, x, padded(more), job->dx, d, uy);
    for (size_t s = 0; s <= job->shifts; s++) /* s = 0: the rows themselves */
        for (size_t r = 0; r < rows; r++) {
            const double *a = ux + r * v->pitch, *b = uy + (r + s) * v->pitch;
            for (size_t i = 0; i < d; i++) u[i] = a[i] + b[i];
            double *f = s ? job->pairs + (s - 1) * job->stride : job->rows.f;
            f[first + r] = quadratic(&job->rows, u);
        }
}

n2ce_status n2_gauss_score_pairs(const n2_gauss *g, size_t dx, const double *x, size_t n,
                                 size_t shifts, size_t first, size_t count, double *f,
                                 double *pairs, size_t stride) {
    const size_t most = padded(BLOCK_ROWS + shifts);
    double *ab = n2_alloc(g->ctx, 2 * g->d, sizeof *ab), c;
    if (!ab) return N2CE_ENOMEM;
    n2_gauss_waymark_ratio(g, 0, 1, ab, ab + g->d, &c);
    pair_job job = {{.x = x, .a = ab, .b = ab + g->d, .c = c, .n = n, .f = f},
                    dx,
                    shifts,
                    first,
                    first + count,
                    stride,
                    most,
                    pairs};
    n2ce_status status = directions_new(g, 2 * most + BLOCK_ROWS, &job.rows.v);
    if (status == N2CE_OK)
        status =
            n2_parallel_for(g->ctx, (count + BLOCK_ROWS - 1) / BLOCK_ROWS, score_pair_block, &job);
    directions_free(&job.rows.v);
    n2_free(g->ctx, ab);
    return status;
}

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

/* ---- unbiased divergences ------------------------------------------------ */

/* E ln det S - ln det Sigma for a sample covariance with v degrees of freedom. */
static double log_det_bias(size_t d, double v) {
    double bias = (double)d * (log(2) - log(v));
    for (size_t i = 0; i < d; i++) bias += n2_digamma(0.5 * (v - (double)i));
    return bias;
}

/* Unbiased ln det of the block of cov that starts at `first` and has k rows, with the
 * ridge; NaN if it is not positive definite then. work is 2 k^2 + k numbers. */
static double log_det(const double *cov, size_t d, size_t first, size_t k, double v, double ridge,
                      double *work) {
    double *block = work + k * k, *size = work + 2 * k * k;
    for (size_t i = 0; i < k; i++)
        memcpy(block + i * k, cov + (first + i) * d + first, k * sizeof *work);
    sizes(block, block, k, size);
    if (!factor(block, k, size, ridge, work)) return N2_NAN;
    size_t rank = 0; /* what has hardly more than the ridge is not estimated */
    for (size_t i = 0; i < k; i++)
        rank += work[i * k + i] * work[i * k + i] > 100 * ridge * size[i];
    return n2_cholesky_log_det(work, k) - log_det_bias(rank, v);
}

n2ce_status n2_gauss_mi(n2ce_ctx *ctx, size_t d, size_t dx, const n2_moments *m, double *out) {
    *out = N2_NAN;
    if (m->n < (double)d + 3) return N2CE_OK;
    double *work = n2_alloc(ctx, 2 * d * d + d, sizeof *work);
    if (!work) return N2CE_ENOMEM;
    const double v = m->n - 1;
    for (int k = 0; k < MOST_RIDGES && isnan(*out); k++) { /* the same for all three */
        const double ridge = ridge_at(k), x = log_det(m->cov, d, 0, dx, v, ridge, work);
        const double y = log_det(m->cov, d, dx, d - dx, v, ridge, work);
        *out = 0.5 * (x + y - log_det(m->cov, d, 0, d, v, ridge, work));
    }
    n2_free(ctx, work);
    return N2CE_OK;
}

/* Directions that were not dropped. */
static size_t rank_of(const n2_gauss *g) {
    size_t rank = 0;
    for (size_t i = 0; i < g->d; i++) rank += g->lambda[i] != 1 || g->delta[i] != 0;
    return rank;
}

n2ce_status n2_gauss_kl(n2ce_ctx *ctx, size_t d, const n2_moments *num, const n2_moments *den,
                        double *out) {
    const double n = num->n, m = den->n, v = m - 1;
    *out = N2_NAN;
    if (n < (double)d + 3 || m < (double)d + 3) return N2CE_OK;
    n2_gauss *g;
    const n2ce_status status = n2_gauss_new(ctx, d, num, den, &g);
    if (status != N2CE_OK) return status == N2CE_ERANGE ? N2CE_OK : status;
    const size_t rank = rank_of(g);
    double trace = 0, shift = 0, log_ratio = 0;
    for (size_t i = 0; i < d; i++) {
        trace += g->lambda[i];
        shift += g->delta[i] * g->delta[i];
        log_ratio -= log(g->lambda[i]);
    }
    trace -= (double)(d - rank);
    n2_gauss_free(g);
    const double dim = (double)rank, shrink = (v - dim - 1) / v; /* E S^-1 = Sigma^-1 / shrink */
    log_ratio += log_det_bias(rank, n - 1) - log_det_bias(rank, m - 1);
    *out = 0.5 * (shrink * (trace * (1 - 1 / n) + shift) - dim / m - dim + log_ratio);
    return N2CE_OK;
}
