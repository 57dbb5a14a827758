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

void n2_moments_shrink(n2_moments *m, size_t d) {
    if (m->n >= 2 * ((double)d + 3)) return;
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++)
            if (i != j) m->cov[i * d + j] *= m->n / (m->n + 2 * (double)d);
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
    PANEL = 128,                       /* rows that are centred and multiplied together */
    BLOCK = PANEL * N2_TILE + N2_TILE, /* numbers of a tile's columns of a panel, which lie side by
                                          side; one row more: so blocks share no lines of a cache */
    BAND = 64,                         /* rows of the product that are one item */
    FETCHED = PANEL * N2_TILE / BAND,  /* rows that are asked for while a tile is multiplied */
    CHUNKS = 4,
    LARGE = 512 /* columns: so many bands that a fold need not be cut */
};

static size_t tiles(size_t cols) { return (cols + N2_TILE - 1) / N2_TILE; }

static size_t bands(size_t cols) { return (cols + BAND - 1) / BAND; }

static size_t lesser(size_t a, size_t b) { return a < b ? a : b; }

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of some of the rows, all over the sample: one that is far off does not move it. An
 * item has columns that share lines of the cache. */
static void find_centre(void *arg, size_t item, int worker) {
    enum { SOME = 64 };
    (void)worker;
    const n2_fold_sums *s = arg;
    const size_t d = s->rows.d, step = s->rows.n / SOME + 1;
    for (size_t j = item * N2_TILE; j < (item + 1) * N2_TILE && j < d; j++) {
        double x[SOME];
        size_t n = 0;
        for (size_t i = 0; i < s->rows.n; i += step) x[n++] = s->rows.x[i * d + j];
        qsort(x, n, sizeof *x, ascending);
        s->centre[j] = n > 0 ? x[n / 2] : 0;
    }
}

/* Rows j0 .. j1 - 1 of the product, of the rows begin .. end - 1 of a chunk. */
typedef struct band {
    size_t j0, j1, begin, end;
    double *sum, *product; /* the chunk's */
} band;

/* The last bands are the longest and come first, so that threads end together. */
static band band_of(const n2_fold_sums *s, size_t item) {
    const size_t d = s->rows.d, parts = s->folds * s->chunks, part = item % parts;
    const size_t fold = part / s->chunks, chunk = part % s->chunks;
    const size_t begin = s->bounds[fold], rows = s->bounds[fold + 1] - begin;
    const size_t j0 = (bands(d) - 1 - item / parts) * BAND;
    return (band){j0,
                  lesser(j0 + BAND, d),
                  begin + rows * chunk / s->chunks,
                  begin + rows * (chunk + 1) / s->chunks,
                  s->sum + part * d,
                  s->product + part * d * d};
}

/* Columns below `cols` of rows first .. first + n - 1, centred, in blocks; what the last block has
 * beyond them is 0. */
static void centre_panel(const n2_fold_sums *s, size_t first, size_t n, size_t cols, double *out) {
    const size_t d = s->rows.d, whole = cols / N2_TILE;
    for (size_t i = 0; i < n; i++) {
        const double *x = s->rows.x + (first + i) * d, *centre = s->centre;
        double *to = out + i * N2_TILE;
        for (size_t b = 0; b < whole; b++, to += BLOCK, x += N2_TILE, centre += N2_TILE)
            for (size_t c = 0; c < N2_TILE; c++) to[c] = x[c] - centre[c];
        for (size_t c = 0; c < N2_TILE && whole * N2_TILE < cols; c++)
            to[c] = whole * N2_TILE + c < cols ? x[c] - centre[c] : 0;
    }
}

/* Asks for what some rows have in a tile's columns, to come from memory while tiles are multiplied:
 * centring them, which does little else, would wait for it. */
static void fetch_rows(const n2_fold_sums *s, size_t first, size_t end, size_t column) {
    for (size_t i = first; i < first + FETCHED && i < end; i++)
        __builtin_prefetch(s->rows.x + i * s->rows.d + column);
}

/* The band gets the share of the panel of rows `first` on, left of the diagonal; tiles on it are
 * whole, but nobody reads what they have to its right. */
static void add_products(const n2_fold_sums *s, const band *b, size_t first, const double *panel) {
    const size_t d = s->rows.d, n = lesser(b->end - first, PANEL);
    double tile[N2_TILE * N2_TILE];
    for (size_t j = b->j0; j < b->j1; j += N2_TILE)
        for (size_t k = 0; k <= j; k += N2_TILE) {
            const size_t rows = lesser(d - j, N2_TILE), cols = lesser(d - k, N2_TILE);
            fetch_rows(s, first + PANEL + (j - b->j0) / N2_TILE * FETCHED, b->end, k);
            n2_tile_product(panel + j / N2_TILE * BLOCK, 1, N2_TILE, panel + k / N2_TILE * BLOCK,
                            N2_TILE, n, tile);
            for (size_t r = 0; r < rows; r++)
                for (size_t c = 0; c < cols; c++)
                    b->product[(j + r) * d + k + c] += tile[r * N2_TILE + c];
        }
}

/* So do the sums of the band's columns. */
static void add_sums(const band *b, size_t first, const double *panel) {
    const size_t n = lesser(b->end - first, PANEL);
    for (size_t j = b->j0; j < b->j1; j += N2_TILE) {
        const double *x = panel + j / N2_TILE * BLOCK;
        const size_t cols = lesser(b->j1 - j, N2_TILE);
        double part[N2_TILE] = {0};
        memcpy(part, b->sum + j, cols * sizeof *part);
        for (size_t i = 0; i < n; i++)
            for (size_t c = 0; c < N2_TILE; c++) part[c] += x[i * N2_TILE + c];
        memcpy(b->sum + j, part, cols * sizeof *part);
    }
}

/* One item is a band of the product of a chunk's rows: whoever runs it adds in the same order. */
static void sum_band(void *arg, size_t item, int worker) {
    const n2_fold_sums *s = arg;
    const band b = band_of(s, item);
    double *panel = s->work + (size_t)worker * tiles(s->rows.d) * BLOCK;
    for (size_t i = b.begin; i < b.end; i += PANEL) {
        centre_panel(s, i, lesser(b.end - i, PANEL), b.j1, panel);
        add_products(s, &b, i, panel);
        add_sums(&b, i, panel);
    }
}

/* The chunks of a fold go into its first one, in their order; an item is a band of one fold. */
static void join_chunks(void *arg, size_t item, int worker) {
    (void)worker;
    const n2_fold_sums *s = arg;
    const size_t d = s->rows.d, fold = item % s->folds;
    const size_t j0 = item / s->folds * BAND, j1 = lesser(j0 + BAND, d);
    double *sum = s->sum + fold * s->chunks * d, *product = s->product + fold * s->chunks * d * d;
    for (size_t chunk = 1; chunk < s->chunks; chunk++) {
        const double *more = product + chunk * d * d;
        for (size_t j = j0; j < j1; j++) sum[j] += sum[chunk * d + j];
        for (size_t j = j0; j < j1; j++)
            for (size_t k = 0; k <= j; k++) product[j * d + k] += more[j * d + k];
    }
}

static n2ce_status take_sums(n2_fold_sums *s) {
    const size_t d = s->rows.d, parts = s->folds * s->chunks;
    N2_TRY(n2_parallel_for(s->ctx, tiles(d), find_centre, s));
    N2_TRY(n2_parallel_for(s->ctx, parts * bands(d), sum_band, s));
    return n2_parallel_for(s->ctx, s->folds * bands(d), join_chunks, s);
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
    s->work = n2_alloc(ctx, (size_t)n2_ctx_threads(ctx) * tiles(d) * BLOCK, sizeof(double));
    n2ce_status status =
        s->centre && s->n && s->sum && s->product && s->work ? N2CE_OK : N2CE_ENOMEM;
    for (size_t k = 0; k < folds && s->n; k++) s->n[k] = (double)(bounds[k + 1] - bounds[k]);
    if (status == N2CE_OK) status = take_sums(s);
    if (status == N2CE_OK)
        *out = s;
    else
        n2_fold_sums_free(s);
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
        for (size_t j = 0; j < d && k != skip; j++)
            for (size_t i = 0; i <= j; i++) m->cov[j * d + i] += product[j * d + i];
    }
    finish(s, m);
    return N2CE_OK;
}
