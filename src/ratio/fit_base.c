/* The Gaussian part of a fit: moments of folds, divergences, scores. */
#include "fit_parts.h"

#include "base/numerics.h"
#include "base/pool.h"

#include <math.h>
#include <string.h>

void n2_fold_rows(size_t n, size_t folds, size_t k, size_t range[2]) {
    range[0] = n * k / folds;
    range[1] = n * (k + 1) / folds;
}

static n2ce_status sum_folds(n2_fitter *f, size_t side) {
    const n2_rows_view rows = side ? f->num : f->den;
    size_t bounds[N2_MOST_FOLDS + 1], range[2];
    for (size_t k = 0; k < f->o.folds; k++) {
        n2_fold_rows(rows.n, f->o.folds, k, range);
        bounds[k] = range[0];
        bounds[k + 1] = range[1];
    }
    return n2_fold_sums_new(f->ctx, rows, bounds, f->o.folds, &f->sums[side]);
}

/* Gives both samples the covariance of both. */
static void pool_moments(n2_moments m[2], size_t d) {
    const double a = (m[0].n - 1) / (m[0].n + m[1].n - 2);
    for (size_t i = 0; i < d * d; i++)
        m[0].cov[i] = m[1].cov[i] = a * m[0].cov[i] + (1 - a) * m[1].cov[i];
}

/* Of all rows but those of a fold, or of all; with dx of the joint sample alone. */
static n2ce_status both_moments(const n2_fitter *f, size_t fold, n2_moments m[2]) {
    m[0] = (n2_moments){0};
    N2_TRY(n2_moments_without(f->sums[1], fold, &m[1]));
    n2_moments_shrink(&m[1], f->num.d);
    if (f->dx) return N2CE_OK;
    const n2ce_status status = n2_moments_without(f->sums[0], fold, &m[0]);
    if (status == N2CE_OK)
        n2_moments_shrink(&m[0], f->num.d);
    else
        n2_moments_free(f->ctx, &m[1]);
    if (status == N2CE_OK && f->pooled) pool_moments(m, f->num.d);
    return status;
}

static void free_moments(const n2_fitter *f, n2_moments *num, n2_moments *den, size_t n) {
    for (size_t k = 0; k < n; k++) {
        n2_moments_free(f->ctx, &num[k]);
        n2_moments_free(f->ctx, &den[k]);
    }
}

/* Directions of levels that one sample never has are left to parts that learn, if there are any. */
static bool leaves_levels(const n2_fitter *f) {
    for (size_t c = 0; c < f->ratio->features->cols && f->o.smooth; c++)
        if (f->ratio->features->column[c].kind == N2_FEATURE_LEVELS) return true;
    return false;
}

/* Gaussian parts learned from all rows but those of a fold, for each of n. */
static n2ce_status make_bases(const n2_fitter *f, const size_t *without, size_t n, n2_gauss **out) {
    n2_moments num[N2_MOST_FOLDS + 1] = {{0}}, den[N2_MOST_FOLDS + 1] = {{0}};
    n2ce_status status = N2CE_OK;
    for (size_t k = 0; k < n && status == N2CE_OK; k++) {
        n2_moments m[2] = {{0}};
        status = both_moments(f, without[k], m);
        den[k] = m[0];
        num[k] = m[1];
    }
    if (status == N2CE_OK) status = n2_gauss_new_all(f->ctx, f->num.d, f->dx, n, num, den, out);
    for (size_t k = 0; k < n && status == N2CE_OK && leaves_levels(f); k++)
        if (n2_gauss_drop_degenerate(out[k])) /* what is left is no divergence of normals */
            f->record->gaussian = f->record->gaussian_reverse = N2_NAN;
    free_moments(f, num, den, n);
    return status;
}

void n2_fit_free_sums(n2_fitter *f) {
    for (size_t side = 0; side < 2; side++) {
        n2_fold_sums_free(f->sums[side]);
        f->sums[side] = NULL;
    }
}

/* The Gaussian part of all rows, and at the same time those of the folds, on as many threads, if
 * that takes no more memory than the rows do. */
static n2ce_status make_first_bases(n2_fitter *f) {
    size_t without[N2_MOST_FOLDS + 1] = {N2_ALL_FOLDS}, n = 1;
    n2_gauss *made[N2_MOST_FOLDS + 1];
    if (n2_gauss_numbers(f->num.d) * (f->o.folds + 1) <= f->num.n * f->num.d)
        for (; n <= f->o.folds; n++) without[n] = n - 1;
    N2_TRY(make_bases(f, without, n, made));
    f->ratio->base = made[0];
    for (size_t k = 1; k < n; k++) f->base[k - 1] = made[k];
    if (n > 1) n2_fit_free_sums(f);
    return N2CE_OK;
}

/* The Gaussian part for the fold. */
n2ce_status n2_fit_base(n2_fitter *f) {
    return f->base[f->fold] ? N2CE_OK : make_bases(f, &f->fold, 1, &f->base[f->fold]);
}

/* The rows' scores by the Gaussian part that has seen them. */
static n2ce_status score_by_all(n2_fitter *f) {
    const n2_rows_view rows[] = {f->den, f->num};
    for (size_t side = 0; side < 2; side++) {
        f->scores->base[side] = n2_alloc(f->ctx, rows[side].n, sizeof(double));
        if (!f->scores->base[side]) return N2CE_ENOMEM;
        N2_TRY(n2_gauss_score(f->ratio->base, rows[side].x, rows[side].n, f->scores->base[side]));
    }
    return N2CE_OK;
}

static n2ce_status gaussian_divergences(const n2_fitter *f, const n2_moments m[2]) {
    n2_fit_record *r = f->record;
    const size_t d = f->num.d;
    r->gaussian_reverse = N2_NAN;
    if (f->dx) return n2_gauss_mi(f->ctx, d, f->dx, &m[1], &r->gaussian);
    N2_TRY(n2_gauss_kl(f->ctx, d, &m[1], &m[0], &r->gaussian));
    return n2_gauss_kl(f->ctx, d, &m[0], &m[1], &r->gaussian_reverse);
}

/* ---- covariances that cannot be told apart -------------------------------- */

/* Where rows are few for the columns: what two covariances then tell is mostly noise, and the log
 * ratios of rows with it. */
enum { ROWS_A_COLUMN = 100, LEAST_COLUMNS = 8 };

static bool may_be_pooled(const n2_fitter *f) {
    const size_t d = f->num.d, n = f->num.n < f->den.n ? f->num.n : f->den.n;
    return !f->dx && d >= LEAST_COLUMNS && n > d + 3 && n < ROWS_A_COLUMN * d;
}

/* Half of Mahalanobis' distance of the means, squared and unbiased, for which m gets pooled. */
static n2ce_status pooled_divergence(const n2_fitter *f, n2_moments m[2], double *kl) {
    const double d = (double)f->num.d, rest = m[0].n + m[1].n - 2;
    n2_gauss *g;
    pool_moments(m, f->num.d);
    N2_TRY(n2_gauss_new(f->ctx, f->num.d, &m[1], &m[0], &g));
    const double square = 2 * n2_gauss_waymark_kl(g, 0, 1);
    n2_gauss_free(g);
    *kl = 0.5 * (square * (rest - d - 1) / rest - d * (1 / m[0].n + 1 / m[1].n));
    return N2CE_OK;
}

/* The standard deviation of what equal covariances seem to add, by chi squares with as many degrees
 * of freedom as a covariance has numbers; more so if rows are hardly more than columns. */
static double noise_of_covariances(const n2_moments m[2], double d) {
    const double fewest = m[0].n < m[1].n ? m[0].n : m[1].n;
    return 0.5 * (1 / m[0].n + 1 / m[1].n) * sqrt(d * (d + 1)) / (1 - d / fewest);
}

/* What heavy tails make of equal covariances beyond what those of normals seem to add: a quarter of
 * the columns' excess kurtosis for each row of a sample. */
static double tails_of_covariances(const n2_fitter *f, const n2_moments m[2]) {
    const n2_rows_view rows[] = {f->den, f->num};
    const size_t d = f->num.d;
    double sum = 0;
    f->record->excess = 0;
    for (size_t side = 0; side < 2; side++) {
        double fourth = 0;
        for (size_t i = 0; i < rows[side].n; i++)
            for (size_t j = 0; j < d; j++) {
                const double x = rows[side].x[i * d + j] - m[side].mean[j];
                const double square = x * x / m[side].cov[j * d + j];
                fourth += square * square;
            }
        const double excess = fourth / m[side].n - 3 * (double)d;
        f->record->excess += 0.5 * excess / (double)d;
        sum += fmax(excess, 0) / m[side].n;
    }
    return 0.25 * sum;
}

/* Takes the covariances for the same if their part of the divergences is within its noise. m is of
 * all rows, and pooled then. */
static n2ce_status pool_if_alike(n2_fitter *f, n2_moments m[2]) {
    enum { DEVIATIONS = 3 };
    n2_fit_record *r = f->record;
    double kl;
    if (!may_be_pooled(f) || !isfinite(r->gaussian + r->gaussian_reverse)) return N2CE_OK;
    const double noise = noise_of_covariances(m, (double)f->num.d);
    const double tails = tails_of_covariances(f, m);
    N2_TRY(pooled_divergence(f, m, &kl));
    const double off = 0.5 * (r->gaussian + r->gaussian_reverse) - kl - tails;
    f->pooled = fabs(off) < DEVIATIONS * noise;
    if (f->pooled) {
        r->gaussian = r->gaussian_reverse = kl;
        r->pooled_off = fmax(fabs(off), noise);
        return N2CE_OK;
    }
    for (size_t side = 0; side < 2; side++) n2_moments_free(f->ctx, &m[side]);
    return both_moments(f, N2_ALL_FOLDS, m);
}

/* Each row moves the divergences by little, which is of first order; that many moments are off
 * together is of second order, and no less where columns are many. */
static double second_order(const n2_fitter *f, const n2_moments m[2]) {
    const double d = (double)f->num.d, dx = (double)f->dx;
    if (f->pooled) return 0;
    return f->dx ? sqrt(0.5 * dx * (d - dx)) / m[1].n : noise_of_covariances(m, d);
}

/* Gaussian divergences of the whole samples, and how each row moves them. */
n2ce_status n2_fit_gaussian(n2_fitter *f) {
    n2_moments m[2];
    N2_TRY(sum_folds(f, 1));
    if (!f->dx) N2_TRY(sum_folds(f, 0));
    N2_TRY(both_moments(f, N2_ALL_FOLDS, m));
    const size_t d = f->num.d;
    n2ce_status status = gaussian_divergences(f, m);
    if (status == N2CE_OK) status = pool_if_alike(f, m);
    if (status == N2CE_OK) f->record->second_order = second_order(f, m);
    if (status == N2CE_OK) status = make_first_bases(f);
    n2_gauss *reverse = NULL;
    if (status == N2CE_OK && !f->dx) status = score_by_all(f);
    if (status == N2CE_OK && !f->dx) {
        f->scores->influence = n2_alloc(f->ctx, f->den.n, sizeof(double));
        f->scores->reverse = n2_alloc(f->ctx, f->num.n, sizeof(double));
        status = f->scores->influence && f->scores->reverse ? N2CE_OK : N2CE_ENOMEM;
        if (status == N2CE_OK) status = n2_gauss_new(f->ctx, d, &m[0], &m[1], &reverse);
        if (status == N2CE_OK && leaves_levels(f)) n2_gauss_drop_degenerate(reverse);
        if (status == N2CE_OK)
            status =
                n2_gauss_influence_den(f->ratio->base, f->den.x, f->den.n, f->scores->influence);
        if (status == N2CE_OK)
            status = n2_gauss_influence_den(reverse, f->num.x, f->num.n, f->scores->reverse);
    }
    n2_gauss_free(reverse);
    n2_moments_free(f->ctx, &m[0]);
    n2_moments_free(f->ctx, &m[1]);
    return status;
}

enum { PAIR_BLOCK = 256 };

static void pair_block(void *arg, size_t item, int worker) {
    (void)worker;
    const n2_pairing *p = arg;
    const size_t d = p->f->num.d, dx = p->f->dx, begin = item * PAIR_BLOCK;
    const size_t end = p->n - begin < PAIR_BLOCK ? p->n : begin + PAIR_BLOCK;
    const double *rows = p->f->num.x + p->begin * d;
    for (size_t i = begin; i < end; i++) {
        const double *x = rows + (p->first + i) * d;
        const double *y = rows + (p->first + i + p->shift) % p->rows * d;
        memcpy(p->x + i * d, x, dx * sizeof *x);
        memcpy(p->x + i * d + dx, y + dx, (d - dx) * sizeof *x);
    }
}

n2ce_status n2_pair_rows(n2_pairing *p) {
    return n2_parallel_for(p->f->ctx, (p->n + PAIR_BLOCK - 1) / PAIR_BLOCK, pair_block, p);
}

/* ---- by the Gaussian part ---- */

void n2_find_fold(const n2_fitter *f, size_t fold, size_t held[2][2]) {
    n2_fold_rows(f->num.n, f->o.folds, fold, held[0]);
    n2_fold_rows(f->den.n, f->o.folds, fold, held[1]);
}

/* All share what workers need; the two sides of a fold have more in common. */
static n2ce_status add_scoring(n2_fitter *f, size_t fold, const n2_score_rows *rows) {
    const size_t n = f->n_scoring;
    const n2_gauss_scoring *lender = n == 0 ? NULL : f->scoring[n % 2 && !f->dx ? n - 1 : 0];
    N2_TRY(n2_gauss_scoring_new(f->base[fold], rows, lender, &f->scoring[n]));
    f->n_scoring++;
    return N2CE_OK;
}

/* The rows of a fold, by a Gaussian part that has not seen them. */
static n2ce_status add_fold_scoring(n2_fitter *f, size_t fold) {
    const size_t d = f->num.d, shifts = f->scores->n[0] / f->num.n;
    double *const *to = f->scores->f;
    size_t held[2][2];
    n2_find_fold(f, fold, held);
    const size_t i = held[0][0], j = held[1][0];
    const n2_score_rows num = {f->num.x + i * d, held[0][1] - i, to[1] + i, 0, 0, NULL};
    const n2_score_rows den = {f->den.x + j * d, held[1][1] - j, to[0] + j, 0, 0, NULL};
    const n2_score_rows joint = {num.x, num.n, num.f, shifts, f->num.n, to[0] + i};
    if (f->dx) return add_scoring(f, fold, &joint);
    N2_TRY(add_scoring(f, fold, &num));
    return add_scoring(f, fold, &den);
}

static void score_item(void *arg, size_t item, int worker) {
    const n2_fitter *f = arg;
    size_t k = 0;
    if (n2_cancelled(f->ctx)) return; /* nobody will look */
    for (size_t n; item >= (n = n2_gauss_scoring_items(f->scoring[k])); k++) item -= n;
    n2_gauss_scoring_item(f->scoring[k], item, worker);
}

/* Threads that have nothing else to do score the rows of this fold, and of those to come that have
 * their Gaussian part already. */
n2ce_status n2_fit_begin_scoring(n2_fitter *f) {
    size_t items = 0;
    if (f->scored > f->fold) return N2CE_OK;
    while (f->scored < f->o.folds && f->base[f->scored]) N2_TRY(add_fold_scoring(f, f->scored++));
    for (size_t k = 0; k < f->n_scoring; k++) items += n2_gauss_scoring_items(f->scoring[k]);
    return n2_background_begin(f->ctx, items, score_item, f);
}

/* Trees, half of the rows and who explains need the Gaussian parts once more. */
void n2_fit_forget_scoring(n2_fitter *f) {
    const bool once_more = f->o.explain || n2_fit_is_blended(f);
    while (f->n_scoring > 0) n2_gauss_scoring_free(f->scoring[--f->n_scoring]);
    for (size_t k = 0; k < f->scored && !once_more; k++) {
        n2_gauss_free(f->base[k]);
        f->base[k] = NULL;
    }
}

n2ce_status n2_fit_end_scoring(n2_fitter *f) {
    n2_background_end(f->ctx);
    n2_fit_forget_scoring(f);
    return n2_cancelled(f->ctx) ? N2CE_ECANCELED : N2CE_OK;
}
