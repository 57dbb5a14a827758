/* Mean and covariance of rows that pass by, and the normal distribution they describe. */
#include "metric.h"

#include "base/linalg.h"
#include "base/pool.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 512 }; /* rows that are multiplied at once */

struct n2_running_moments {
    n2ce_ctx *ctx;
    size_t n, d, stride; /* stride: d, rounded up to whole tiles */
    double *centre;      /* the first row: sums are of differences from it */
    double *sum;         /* [stride] */
    double *products;    /* [stride x stride], tiles on and above the diagonal */
    double *block;       /* [BLOCK x stride] */
    size_t rows;         /* in the block */
};

n2ce_status n2_running_moments_new(n2ce_ctx *ctx, size_t d, n2_running_moments **out) {
    *out = NULL;
    n2_running_moments *m = n2_alloc(ctx, 1, sizeof *m);
    if (!m) return N2CE_ENOMEM;
    const size_t stride = (d + N2_TILE - 1) / N2_TILE * N2_TILE;
    *m = (n2_running_moments){.ctx = ctx, .d = d, .stride = stride};
    m->centre = n2_alloc(ctx, stride, sizeof(double));
    m->sum = n2_alloc(ctx, stride, sizeof(double));
    m->products = n2_alloc(ctx, stride * stride, sizeof(double));
    m->block = n2_alloc(ctx, BLOCK * stride, sizeof(double));
    if (m->centre && m->sum && m->products && m->block) {
        *out = m;
        return N2CE_OK;
    }
    n2_running_moments_free(m);
    return N2CE_ENOMEM;
}

void n2_running_moments_free(n2_running_moments *m) {
    if (!m) return;
    n2_free(m->ctx, m->centre);
    n2_free(m->ctx, m->sum);
    n2_free(m->ctx, m->products);
    n2_free(m->ctx, m->block);
    n2_free(m->ctx, m);
}

/* Products of eight columns with those that are not before them. */
static void add_tiles(void *arg, size_t item, int worker) {
    (void)worker;
    const n2_running_moments *m = arg;
    const size_t i = item * N2_TILE, s = m->stride;
    double tile[N2_TILE * N2_TILE];
    for (size_t j = i; j < s; j += N2_TILE) {
        n2_tile_product(m->block + i, 1, s, m->block + j, s, m->rows, tile);
        for (size_t r = 0; r < N2_TILE; r++)
            for (size_t c = 0; c < N2_TILE; c++)
                m->products[(i + r) * s + j + c] += tile[r * N2_TILE + c];
    }
}

static bool fill_block(n2_running_moments *m, const float *x, size_t rows) {
    m->rows = rows;
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < m->d; k++) {
            const double v = (double)x[i * m->d + k] - m->centre[k];
            if (!isfinite(v)) return false;
            m->block[i * m->stride + k] = v;
            m->sum[k] += v;
        }
    return true;
}

n2ce_status n2_running_moments_add(n2_running_moments *m, const float *x, size_t n) {
    for (size_t k = 0; m->n == 0 && n > 0 && k < m->d; k++)
        m->centre[k] = isfinite(x[k]) ? (double)x[k] : 0;
    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t rows = n - first < BLOCK ? n - first : BLOCK;
        if (!fill_block(m, x + first * m->d, rows))
            return n2_fail(m->ctx, N2CE_EDATA,
                           "A feature of picture %zu or one after it is not finite. The network's "
                           "weights are damaged: get its file again.",
                           m->n + 1);
        N2_TRY(n2_parallel_for(m->ctx, m->stride / N2_TILE, add_tiles, m));
        m->n += rows;
    }
    return N2CE_OK;
}

void n2_running_moments_get(const n2_running_moments *m, double *mean, double *covariance) {
    const double n = (double)m->n;
    for (size_t i = 0; i < m->d; i++) {
        mean[i] = m->centre[i] + m->sum[i] / n;
        for (size_t j = i; j < m->d; j++) {
            const double s = m->products[i * m->stride + j] - m->sum[i] / n * m->sum[j];
            covariance[i * m->d + j] = covariance[j * m->d + i] = s / (n - 1);
        }
    }
}

n2ce_status n2_gaussian_fit_rows(n2ce_ctx *ctx, const n2_feature_rows *rows, n2_gaussian_fit *out) {
    n2_running_moments *m;
    *out = (n2_gaussian_fit){.d = rows->d};
    N2_TRY(n2_running_moments_new(ctx, rows->d, &m));
    out->mean = n2_alloc(ctx, rows->d, sizeof(double));
    out->covariance = n2_alloc(ctx, rows->d * rows->d, sizeof(double));
    n2ce_status status = out->mean && out->covariance ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_running_moments_add(m, rows->x, rows->n);
    if (status == N2CE_OK) n2_running_moments_get(m, out->mean, out->covariance);
    n2_running_moments_free(m);
    if (status != N2CE_OK) n2_gaussian_fit_free(ctx, out);
    return status;
}

void n2_gaussian_fit_free(n2ce_ctx *ctx, n2_gaussian_fit *fit) {
    n2_free(ctx, fit->mean);
    n2_free(ctx, fit->covariance);
    *fit = (n2_gaussian_fit){0};
}
