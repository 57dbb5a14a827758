#include "gauss.h"

#include "base/linalg.h"
#include "base/numerics.h"
#include "base/pool.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* ---- the basis ----------------------------------------------------------- */

/* Variances of both d x d blocks, or 1 where there is none. */
static void sizes(const double *a, const double *b, size_t stride, size_t d, double *size) {
    for (size_t i = 0; i < d; i++) {
        size[i] = a[i * stride + i] + b[i * stride + i];
        if (!(size[i] > 0)) size[i] = 1;
    }
}

enum { MOST_RIDGES = 5 };

/* What is added to variances so that directions without spread have a little: nothing, if
 * it can be done without. */
static double ridge_at(int k) { return k ? 1e-12 * pow(100, k) : 0; }

/* Factor of cov + ridge diag(size), cov being a d x d block of a matrix with rows of `stride`.
 * False if a variable is a combination of those before it, as far as rounding lets us know. */
static bool factor(const double *cov, size_t stride, size_t d, const double *size, double ridge,
                   double *l) {
    for (size_t i = 0; i < d; i++) {
        memcpy(l + i * d, cov + i * stride, d * sizeof *l);
        l[i * d + i] += ridge * size[i];
    }
    if (!n2_cholesky(l, d)) return false;
    for (size_t i = 0; i < d; i++)
        if (l[i * d + i] * l[i * d + i] < 1e-12 * (cov[i * stride + i] + ridge * size[i]))
            return false;
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

/* No spread at all would be an infinite log ratio; what is small beside the largest one is
 * rounding. */
static void keep_above_rounding(n2_gauss *g) {
    double most = 0;
    for (size_t i = 0; i < g->d; i++) most = fmax(most, g->lambda[i]);
    const double least = fmax(1e-28, 1e-15 * most);
    for (size_t i = 0; i < g->d; i++)
        if (!(g->lambda[i] > least)) g->lambda[i] = least;
}

static void place(n2_gauss *g, const n2_moments *num, const n2_moments *den) {
    const size_t d = g->d;
    keep_above_rounding(g);
    memcpy(g->centre, den->mean, d * sizeof(double));
    for (size_t i = 0; i < d; i++) {
        g->delta[i] = 0;
        for (size_t j = 0; j < d; j++)
            g->delta[i] += g->basis[i * d + j] * (num->mean[j] - den->mean[j]);
    }
}

/* How much of the variance 1 along a direction was given to it by the ridge. */
static double share_of_ridge(const double *direction, const double *size, size_t n, double ridge) {
    double given = 0;
    for (size_t j = 0; j < n; j++) given += ridge * size[j] * direction[j] * direction[j];
    return given;
}

/* A direction in which neither sample has a spread but what the ridge gave it, as where a
 * column is there twice, says nothing. */
static void drop_empty(n2_gauss *g, const double *size, double ridge) {
    for (size_t i = 0; i < g->d; i++) {
        const double given = share_of_ridge(g->basis + i * g->d, size, g->d, ridge);
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
    sizes(num->cov, den->cov, d, d, size);
    bool found = false;
    for (int k = 0; k < MOST_RIDGES && !found; k++) {
        ridge = ridge_at(k);
        found = factor(den->cov, d, d, size, ridge, work);
    }
    if (!found) return false;
    memcpy(cov, num->cov, dd * sizeof *cov);
    for (size_t i = 0; i < d; i++) cov[i * d + i] += ridge * size[i];
    if (!diagonalise(g, cov, work, work + dd, work + 2 * dd)) return false;
    place(g, num, den);
    if (ridge > 0) drop_empty(g, size, ridge);
    return true;
}

/* ---- the basis of a joint sample -----------------------------------------
 *
 * Where the denominator is the product of the margins of x and y, the directions are those of
 * canonical correlation (Hotelling 1936): with whitened x and y, C their covariance, and C = U' S
 * V, p_i = (U x)_i and q_i = (V y)_i are correlated by s_i and with nothing else. So (p_i + q_i)
 * and (p_i - q_i), over sqrt 2, have variances 1 + s_i and 1 - s_i in the joint sample. U is found
 * from C C' for the side with fewer coordinates, which costs an eighth of what both sides at once
 * do. */

typedef struct side_view {
    size_t first, n;  /* coordinates */
    double *l, *turn; /* n x n: the factor of the covariance, then its inverse; U or V */
} side_view;

/* C = L_a^-1 cov_ab L_b^-T, a.n x b.n; other is scratch of as many. */
static void whiten_covariance(const double *cov, size_t d, const side_view *a, const side_view *b,
                              double *c, double *other) {
    for (size_t i = 0; i < a->n; i++)
        memcpy(c + i * b->n, cov + (a->first + i) * d + b->first, b->n * sizeof *c);
    n2_lower_solve(a->l, a->n, c, b->n);
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < b->n; j++) other[j * a->n + i] = c[i * b->n + j];
    n2_lower_solve(b->l, b->n, other, a->n);
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < b->n; j++) c[i * b->n + j] = other[j * a->n + i];
}

/* Columns of U: eigenvectors of C C', that of the largest eigenvalue first. */
static bool turn_fewer(const side_view *a, const double *c, size_t n, double *square,
                       double *values) {
    const size_t k = a->n;
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j <= i; j++) square[i * k + j] = n2_dot(c + i * n, c + j * n, n);
    if (!n2_symmetric_eigen(square, k, values, a->turn)) return false;
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < k / 2; j++) {
            const double kept = a->turn[i * k + j];
            a->turn[i * k + j] = a->turn[i * k + k - 1 - j];
            a->turn[i * k + k - 1 - j] = kept;
        }
    return true;
}

/* The directions of a side as rows, U L^-1, to `out`, which may be where l was; and L^-1 to its
 * place among what whitens. */
static void finish_side(n2_gauss *g, side_view *s, double *inverse, double *out) {
    n2_lower_inverse(s->l, s->n, inverse);
    for (size_t i = 0; i < s->n; i++)
        memcpy(g->whiten + (s->first + i) * g->d + s->first, inverse + i * s->n,
               s->n * sizeof *inverse);
    turn_rows(s->turn, inverse, s->n, out);
}

/* Where the spread along one of a pair is the ridge's, there is no correlation. */
static void drop_empty_pairs(const side_view *a, const side_view *b, const double *size,
                             double ridge, double *s) {
    for (size_t i = 0; i < a->n && ridge > 0; i++) {
        const double in_a = share_of_ridge(a->l + i * a->n, size + a->first, a->n, ridge);
        const double in_b = share_of_ridge(b->l + i * b->n, size + b->first, b->n, ridge);
        if (in_a > 0.5 || in_b > 0.5) s[i] = 0;
    }
}

/* A side's part of the basis, whose sums come first and whose differences, with the sign of y
 * changed, next; what more the longer side has is last. */
static void place_side(n2_gauss *g, const side_view *s, size_t pairs) {
    const double half = sqrt(0.5), sign = s->first > 0 ? -half : half;
    for (size_t i = 0; i < s->n; i++) {
        const size_t row = i < pairs ? i : i + pairs;
        double *sum = g->basis + row * g->d + s->first;
        for (size_t j = 0; j < s->n; j++) sum[j] = (i < pairs ? half : 1) * s->l[i * s->n + j];
        for (size_t j = 0; j < s->n && i < pairs; j++)
            sum[pairs * g->d + j] = sign * s->l[i * s->n + j];
    }
}

static void place_pairs(n2_gauss *g, const side_view *a, const side_view *b, const double *s,
                        const double *mean) {
    const size_t pairs = a->n;
    memset(g->basis, 0, g->d * g->d * sizeof *g->basis);
    place_side(g, a, pairs);
    place_side(g, b, pairs);
    for (size_t i = 0; i < g->d; i++) {
        g->lambda[i] = i < pairs ? 1 + s[i] : i < 2 * pairs ? 1 - s[i - pairs] : 1;
        g->delta[i] = 0;
    }
    keep_above_rounding(g);
    memcpy(g->centre, mean, g->d * sizeof *mean);
}

/* As find_basis, for the product of the margins of the first g->dx and the other coordinates. work
 * is 2 d + 3 (k^2 + m^2) + k m + 3 N2_TILE numbers. */
static bool find_joint_basis(n2_gauss *g, const n2_moments *joint, double *work) {
    const size_t d = g->d, x = g->dx, y = d - x, k = x < y ? x : y, m = d - k, gap = N2_TILE;
    double *size = work, *s = size + d, *at = s + d;
    side_view a = {x <= y ? 0 : x, k, at, at + k * k}, b = {x <= y ? x : 0, m, NULL, NULL};
    b.l = a.turn + k * k + gap;
    b.turn = b.l + m * m;
    double *c = b.turn + m * m + gap, *other = c + k * m, *square = other + m * m + gap, ridge = 0;
    bool found = false;
    sizes(joint->cov, joint->cov, d, d, size);
    for (int i = 0; i < MOST_RIDGES && !found; i++) {
        ridge = ridge_at(i);
        found = factor(joint->cov + a.first * (d + 1), d, k, size + a.first, ridge, a.l) &&
                factor(joint->cov + b.first * (d + 1), d, m, size + b.first, ridge, b.l);
    }
    if (!found) return false;
    whiten_covariance(joint->cov, d, &a, &b, c, other);
    if (!turn_fewer(&a, c, m, square, s)) return false;
    n2_turned_product(a.turn, c, k, k, m, other);
    n2_row_basis(other, k, m, s, b.turn);
    transpose(b.turn, m);
    memset(g->whiten, 0, d * d * sizeof *g->whiten);
    finish_side(g, &a, other, a.l);
    finish_side(g, &b, other, b.l);
    drop_empty_pairs(&a, &b, size, ridge, s);
    place_pairs(g, &a, &b, s, joint->mean);
    return true;
}

static bool is_pair(const n2_gauss *g, size_t dx, const double *sum, const double *difference) {
    bool same = true;
    for (size_t j = 0; j < g->d; j++) same &= difference[j] == (j < dx ? sum[j] : -sum[j]);
    return same;
}

void n2_gauss_find_pairs(n2_gauss *g, size_t dx) {
    const size_t d = g->d, pairs = dx < d - dx ? dx : d - dx;
    bool found = dx > 0;
    for (size_t i = 0; i < pairs && found; i++)
        found = is_pair(g, dx, g->basis + i * d, g->basis + (i + pairs) * d);
    for (size_t i = 0; i < d && found; i++)
        found = g->delta[i] == 0 && (i < 2 * pairs || g->lambda[i] == 1);
    g->dx = found ? dx : 0;
}

/* ---- making them --------------------------------------------------------- */

static n2_gauss *gauss_alloc(n2ce_ctx *ctx, size_t d, size_t dx) {
    n2_gauss *g = n2_alloc(ctx, 1, sizeof *g);
    if (!g) return NULL;
    *g = (n2_gauss){ctx,
                    d,
                    dx,
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
    n2_gauss *g = job->g[item];
    const bool found = g->dx ? find_joint_basis(g, &job->num[item], work)
                             : find_basis(g, &job->num[item], &job->den[item], work);
    if (!found) atomic_store_explicit(job->lost, true, memory_order_relaxed);
}

static n2ce_status find_bases(n2ce_ctx *ctx, size_t n, basis_job *job) {
    atomic_bool lost;
    atomic_init(&lost, false);
    job->lost = &lost;
    N2_TRY(n2_parallel_for(ctx, n, find_one_basis, job));
    if (!atomic_load_explicit(&lost, memory_order_relaxed)) return N2CE_OK;
    return n2_fail(ctx, N2CE_ERANGE,
                   "The covariances of the samples cannot be brought into one basis: are there "
                   "only a few rows, or are values huge?");
}

n2ce_status n2_gauss_new_all(n2ce_ctx *ctx, size_t d, size_t dx, size_t n, const n2_moments *num,
                             const n2_moments *den, n2_gauss **out) {
    basis_job job = {.g = out, .num = num, .den = den, .each = 4 * d * d + 2 * d + 4 * N2_TILE};
    job.work = n2_alloc(ctx, n * job.each, sizeof(double));
    n2ce_status status = job.work ? N2CE_OK : N2CE_ENOMEM;
    for (size_t k = 0; k < n; k++) {
        out[k] = status == N2CE_OK ? gauss_alloc(ctx, d, dx) : NULL;
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
    return n2_gauss_new_all(ctx, d, 0, 1, num, den, out);
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

bool n2_gauss_drop_degenerate(n2_gauss *g) {
    static const double LEAST = 1e-9;
    const size_t d = g->d, pairs = g->dx == 0 ? 0 : g->dx < d - g->dx ? g->dx : d - g->dx;
    bool dropped = false;
    for (size_t i = 0; i < d; i++) {
        if (g->lambda[i] > LEAST && g->lambda[i] < 1 / LEAST) continue;
        dropped = true;
        g->lambda[i] = 1;
        g->delta[i] = 0;
        if (i < 2 * pairs) g->lambda[i < pairs ? i + pairs : i - pairs] = 1;
    }
    return dropped;
}

/* ---- unbiased divergences ------------------------------------------------ */

/* E ln det S - ln det Sigma for a sample covariance with v degrees of freedom. */
static double log_det_bias(size_t d, double v) {
    double bias = (double)d * (log(2) - log(v));
    for (size_t i = 0; i < d; i++) bias += n2_digamma(0.5 * (v - (double)i));
    return bias;
}

/* Unbiased ln det of the block of cov that starts at `first` and has k rows, with the
 * ridge; NaN if it is not positive definite then. work is k^2 + k numbers. */
static double log_det(const double *cov, size_t d, size_t first, size_t k, double v, double ridge,
                      double *work) {
    const double *block = cov + first * d + first;
    double *size = work + k * k;
    sizes(block, block, d, k, size);
    if (!factor(block, d, k, size, ridge, work)) return N2_NAN;
    size_t rank = 0; /* what has hardly more than the ridge is not estimated */
    for (size_t i = 0; i < k; i++)
        rank += work[i * k + i] * work[i * k + i] > 100 * ridge * size[i];
    return n2_cholesky_log_det(work, k) - log_det_bias(rank, v);
}

n2ce_status n2_gauss_mi(n2ce_ctx *ctx, size_t d, size_t dx, const n2_moments *m, double *out) {
    *out = N2_NAN;
    if (m->n < (double)d + 3) return N2CE_OK;
    double *work = n2_alloc(ctx, d * d + d, sizeof *work);
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
