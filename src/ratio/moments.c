/* Means and covariances, of all rows and of all but a fold. Sums over a fold are taken once; any
 * union of folds has its moments from theirs. */
#include "gauss.h"

#include "base/linalg.h"
#include "base/pool.h"

#include <stdlib.h>
#include <string.h>

void n2_moments_free(n2ce_ctx *ctx, n2_moments *m) {
    n2_free(ctx, m->mean);
    n2_free(ctx, m->cov);
    *m = (n2_moments){0};
}

static n2ce_status moments_alloc(n2ce_ctx *ctx, size_t d, double n, n2_moments *m) {
    *m = (n2_moments){n, n2_alloc(ctx, d, sizeof(double)), n2_alloc(ctx, d * d, sizeof(double))};
    if (m->mean && m->cov) return N2CE_OK;
    n2_moments_free(ctx, m);
    return N2CE_ENOMEM;
}

/* ---- sums over folds ----------------------------------------------------- */

struct n2_fold_sums {
    n2ce_ctx *ctx;
    n2_rows_view rows;
    size_t folds, chunks; /* chunks: of a fold, for more threads than folds */
    const size_t *bounds; /* the caller's, while the sums are taken */
    double *centre;       /* near the mean: squares of what is far from 0 lose digits */
    double *n;            /* folds: rows */
    double *sum,
        *product; /* folds x chunks x d and x d x d, lower; later the first chunk's are all */
    double *work; /* PANEL centred rows for each worker */
};

enum {
    PANEL = 128, /* rows that are centred and multiplied together */
    BAND = 64,   /* rows of the product that are one item */
    CHUNKS = 4,
    LARGE = 512 /* columns: so many bands that a fold need not be cut */
};

static size_t padded(size_t n) { return (n + N2_TILE - 1) / N2_TILE * N2_TILE; }

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of some of the rows, all over the sample: one that is far off does not move it. */
static void find_centre(n2_fold_sums *s) {
    enum { SOME = 64 };
    const size_t d = s->rows.d, step = s->rows.n / SOME + 1;
    for (size_t j = 0; j < d; j++) {
        double x[SOME];
        size_t n = 0;
        for (size_t i = 0; i < s->rows.n; i += step) x[n++] = s->rows.x[i * d + j];
        qsort(x, n, sizeof *x, ascending);
        s->centre[j] = n > 0 ? x[n / 2] : 0;
    }
}

/* Columns below `cols` of rows first .. first + n - 1, centred; the rest of the pitch is 0. */
static void centre_panel(const n2_fold_sums *s, size_t first, size_t n, size_t cols, double *out) {
    const size_t d = s->rows.d, pitch = padded(cols);
    for (size_t i = 0; i < n; i++, out += pitch) {
        const double *x = s->rows.x + (first + i) * d;
        for (size_t j = 0; j < cols; j++) out[j] = x[j] - s->centre[j];
        for (size_t j = cols; j < pitch; j++) out[j] = 0;
    }
}

/* The rows j0 .. j1-1 of the product, left of the diagonal and on it, get a panel's share. */
static void add_products(const double *panel, size_t n, size_t d, size_t j0, size_t j1,
                         double *product) {
    const size_t pitch = padded(j1);
    double tile[N2_TILE * N2_TILE];
    for (size_t j = j0; j < j1; j += N2_TILE)
        for (size_t k = 0; k < j + N2_TILE && k < j1; k += N2_TILE) {
            n2_tile_product(panel + j, 1, pitch, panel + k, pitch, n, tile);
            for (size_t r = 0; r < N2_TILE && j + r < j1; r++)
                for (size_t c = 0; c < N2_TILE && k + c <= j + r; c++)
                    product[(j + r) * d + k + c] += tile[r * N2_TILE + c];
        }
}

/* One item is a band of the product of a chunk's rows: whoever runs it adds in the same order. The
 * last bands are the longest and come first, so that threads end together. */
static void sum_band(void *arg, size_t item, int worker) {
    const n2_fold_sums *s = arg;
    const size_t d = s->rows.d, bands = (d + BAND - 1) / BAND, parts = s->folds * s->chunks;
    const size_t part = item % parts;
    const size_t j0 = (bands - 1 - item / parts) * BAND, j1 = j0 + BAND < d ? j0 + BAND : d,
                 pitch = padded(j1);
    const size_t fold = part / s->chunks, chunk = part % s->chunks;
    const size_t begin = s->bounds[fold], rows = s->bounds[fold + 1] - begin;
    const size_t end = begin + rows * (chunk + 1) / s->chunks;
    double *panel = s->work + (size_t)worker * PANEL * padded(d), *sum = s->sum + part * d;
    for (size_t i = begin + rows * chunk / s->chunks; i < end; i += PANEL) {
        const size_t n = end - i < PANEL ? end - i : PANEL;
        centre_panel(s, i, n, j1, panel);
        add_products(panel, n, d, j0, j1, s->product + part * d * d);
        for (size_t r = 0; r < n; r++)
            for (size_t j = j0; j < j1; j++) sum[j] += panel[r * pitch + j];
    }
}

/* The chunks of a fold go into its first one, in their order. */
static void join_chunks(n2_fold_sums *s) {
    const size_t d = s->rows.d, dd = d * d;
    for (size_t part = 0; part < s->folds * s->chunks; part++) {
        const size_t to = part / s->chunks * s->chunks;
        for (size_t i = 0; i < d && to != part; i++) s->sum[to * d + i] += s->sum[part * d + i];
        for (size_t i = 0; i < dd && to != part; i++)
            s->product[to * dd + i] += s->product[part * dd + i];
    }
}

n2ce_status n2_fold_sums_new(n2ce_ctx *ctx, n2_rows_view rows, const size_t *bounds, size_t folds,
                             n2_fold_sums **out) {
    const size_t d = rows.d, chunks = d < LARGE ? CHUNKS : 1, parts = folds * chunks;
    *out = NULL;
    n2_fold_sums *s = n2_alloc(ctx, 1, sizeof *s);
    if (!s) return N2CE_ENOMEM;
    *s = (n2_fold_sums){ctx, rows, folds, chunks, bounds, NULL, NULL, NULL, NULL, NULL};
    s->centre = n2_alloc(ctx, d, sizeof(double));
    s->n = n2_alloc(ctx, folds, sizeof(double));
    s->sum = n2_alloc(ctx, parts * d, sizeof(double));
    s->product = n2_alloc(ctx, parts * d * d, sizeof(double));
    s->work = n2_alloc(ctx, (size_t)n2_ctx_threads(ctx) * PANEL * padded(d), sizeof(double));
    n2ce_status status =
        s->centre && s->n && s->sum && s->product && s->work ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) {
        for (size_t k = 0; k < folds; k++) s->n[k] = (double)(bounds[k + 1] - bounds[k]);
        find_centre(s);
        status = n2_parallel_for(ctx, parts * ((d + BAND - 1) / BAND), sum_band, s);
    }
    if (status == N2CE_OK) {
        join_chunks(s);
        *out = s;
    } else {
        n2_fold_sums_free(s);
    }
    return status;
}

void n2_fold_sums_free(n2_fold_sums *s) {
    if (!s) return;
    n2_free(s->ctx, s->centre);
    n2_free(s->ctx, s->n);
    n2_free(s->ctx, s->sum);
    n2_free(s->ctx, s->product);
    n2_free(s->ctx, s->work);
    n2_free(s->ctx, s);
}

/* ---- moments ------------------------------------------------------------- */

/* From sums about the centre, whose mean and products are m's, to moments. */
static void finish(const n2_fold_sums *s, n2_moments *m) {
    const size_t d = s->rows.d;
    const double scale = 1 / (m->n > 1 ? m->n - 1 : 1);
    for (size_t j = 0; j < d; j++)
        for (size_t k = 0; k <= j; k++) {
            double *at = &m->cov[j * d + k];
            *at = m->cov[k * d + j] = (*at - m->mean[j] * m->mean[k] / m->n) * scale;
        }
    for (size_t j = 0; j < d; j++) {
        if (m->cov[j * d + j] < 0) m->cov[j * d + j] = 0; /* of equal values, by rounding */
        m->mean[j] = s->centre[j] + m->mean[j] / m->n;
    }
}

n2ce_status n2_moments_without(const n2_fold_sums *s, size_t skip, n2_moments *m) {
    const size_t d = s->rows.d;
    double n = 0;
    for (size_t k = 0; k < s->folds; k++) n += k == skip ? 0 : s->n[k];
    N2_TRY(moments_alloc(s->ctx, d, n, m));
    for (size_t k = 0; k < s->folds; k++) {
        const double *sum = s->sum + k * s->chunks * d;
        const double *product = s->product + k * s->chunks * d * d;
        for (size_t i = 0; i < d && k != skip; i++) m->mean[i] += sum[i];
        for (size_t i = 0; i < d * d && k != skip; i++) m->cov[i] += product[i];
    }
    finish(s, m);
    return N2CE_OK;
}
