/* What needs no steps: the scale of values, and the linear part of the value networks. */
#include "base/linalg.h"
#include "base/numerics.h"
#include "latent_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- values -------------------------------------------------------------- */

static const double TAIL = 3; /* scales above the median where values count as far out */

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double n2_latent_bent(const n2_latent *m, double y) {
    const double s = m->bend_scale, top = m->bend_top ? m->bend + TAIL * s : N2_INFINITY;
    if (!(s > 0) || (y >= m->bend && y <= top)) return y;
    return y > top ? top + s * log1p((y - top) / s) : m->bend - s * log1p((m->bend - y) / s);
}

double n2_latent_unbent(const n2_latent *m, double y) {
    const double s = m->bend_scale, top = m->bend_top ? m->bend + TAIL * s : N2_INFINITY;
    if (!(s > 0) || (y >= m->bend && y <= top)) return y;
    return y > top ? top + s * expm1((y - top) / s) : m->bend - s * expm1((m->bend - y) / s);
}

n2ce_status n2_latent_bend(n2_latent *m) {
    const n2_designs *d = m->designs;
    double *y = n2_alloc(m->ctx, d->rows, sizeof *y);
    n2_sum sum = {0, 0}, squares = {0, 0};
    if (!y) return N2CE_ENOMEM;
    memcpy(y, d->y, d->rows * sizeof *y);
    qsort(y, d->rows, sizeof *y, by_size);
    m->bend = y[d->rows / 2];
    m->bend_scale = y[d->rows * 9 / 10] - m->bend;
    m->bend_top = y[d->rows - 1 - d->rows / 500] > m->bend + TAIL * m->bend_scale;
    for (size_t i = 0; i < d->rows; i++) {
        y[i] = n2_latent_bent(m, d->y[i]);
        n2_sum_add(&sum, y[i]);
    }
    m->record.y_mean = n2_sum_value(&sum) / (double)d->rows;
    for (size_t i = 0; i < d->rows; i++)
        n2_sum_add(&squares, (y[i] - m->record.y_mean) * (y[i] - m->record.y_mean));
    m->record.y_sd = sqrt(n2_sum_value(&squares) / (double)d->rows);
    n2_free(m->ctx, y);
    return N2CE_OK;
}

/* ---- lines --------------------------------------------------------------- */

enum { WIDEST = 512 };
static const double RIDGE = 1;

/* Sums over rows first .. first + n - 1 of products of (x, 1) with itself and with y: the
 * lower triangle of a (d+1)^2 matrix, and d+1 numbers. */
static void add_products(const n2_latent *m, int64_t first, int64_t n, double *a, double *b) {
    const size_t d = m->code->width, w = d + 1;
    for (int64_t i = first; i < first + n; i++) {
        const float *x = (const float *)m->x->data + (size_t)i * d;
        const double y = (double)((const float *)m->y->data)[i];
        for (size_t j = 0; j < w; j++) {
            const double xj = j < d ? (double)x[j] : 1;
            if (xj == 0) continue;
            for (size_t k = 0; k <= j; k++) a[j * w + k] += xj * (k < d ? (double)x[k] : 1);
            b[j] += xj * y;
        }
    }
}

static void set_line(n2_latent *m, size_t e, const double *b) {
    const size_t d = m->code->width;
    float *weight = m->line[e].weight->data, *bias = m->line[e].bias->data;
    for (size_t j = 0; j < d; j++) weight[j] = (float)b[j];
    bias[0] = (float)b[d];
}

n2ce_status n2_latent_fit_lines(n2_latent *m) {
    const size_t w = m->code->width + 1, members = m->o.members;
    if (w > WIDEST) return N2CE_OK;
    double *a = n2_alloc(m->ctx, (members + 1) * (w * w + w), sizeof *a);
    if (!a) return N2CE_ENOMEM;
    double *all = a + members * (w * w + w); /* then those of a member */
    for (size_t e = 0; e < members; e++) {
        int64_t first, n;
        double *part = a + e * (w * w + w);
        n2_latent_fold(m, e, &first, &n);
        add_products(m, first, n, part, part + w * w);
    }
    for (size_t e = 0; e < members; e++) {
        memset(all, 0, (w * w + w) * sizeof *all);
        for (size_t k = 0; k < members; k++)
            for (size_t i = 0; i < w * w + w && k != e; i++) all[i] += a[k * (w * w + w) + i];
        for (size_t j = 0; j < w; j++) all[j * w + j] += j + 1 < w ? RIDGE : 1e-9;
        if (!n2_cholesky(all, w)) continue; /* no line, then: the network has it all */
        n2_cholesky_solve(all, w, all + w * w, 1);
        set_line(m, e, all + w * w);
    }
    n2_free(m->ctx, a);
    return N2CE_OK;
}
