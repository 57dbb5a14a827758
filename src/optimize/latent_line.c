/* What needs no steps: the linear part of the value networks. */
#include "base/linalg.h"
#include "latent_model.h"

#include <string.h>

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
