#include "appraisal.h"

#include "base/numerics.h"
#include "design/design_space.h"

#include <stdlib.h>
#include <string.h>

/* ---- what is hidden -------------------------------------------------------------------------- */

static bool copy_visible(n2_backtest *b) {
    const n2_designs *d = b->all;
    const size_t c = d->space.n;
    b->visible = (n2_designs){.space = d->space, .rows = d->rows - b->hidden};
    b->visible.x = n2_alloc(b->ctx, b->visible.rows * c, sizeof *b->visible.x);
    b->visible.y = n2_alloc(b->ctx, b->visible.rows, sizeof *b->visible.y);
    bool *hide = n2_alloc(b->ctx, d->rows, sizeof *hide);
    const bool there = b->visible.x && b->visible.y && hide;
    for (size_t i = 0; there && i < b->hidden; i++) hide[b->order[i]] = true;
    for (size_t i = 0, n = 0; there && i < d->rows; i++) {
        if (hide[i]) continue;
        memcpy(b->visible.x + n * c, d->x + i * c, c * sizeof *d->x);
        b->visible.y[n++] = d->y[i];
    }
    n2_free(b->ctx, hide);
    return there;
}

n2ce_status n2_backtest_begin(n2ce_ctx *ctx, const n2_designs *all, double percent,
                              n2_backtest *out) {
    *out = (n2_backtest){.ctx = ctx, .all = all, .percent = percent};
    out->hidden = (size_t)((double)all->rows * percent / 100);
    out->order = n2_alloc(ctx, all->rows, sizeof *out->order);
    if (!out->order) return N2CE_ENOMEM;
    N2_TRY(n2_designs_best(ctx, all, all->rows, out->order));
    return copy_visible(out) ? N2CE_OK : N2CE_ENOMEM;
}

void n2_backtest_end(n2_backtest *b) {
    n2_free(b->ctx, b->order);
    n2_free(b->ctx, b->visible.x);
    n2_free(b->ctx, b->visible.y);
}

/* ---- what was found -------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static n2_best_and_median best_and_median(double *values, size_t n) {
    qsort(values, n, sizeof *values, by_size);
    if (n == 0) return (n2_best_and_median){N2_NAN, N2_NAN};
    return (n2_best_and_median){values[n - 1], values[n / 2]};
}

/* The values of n designs from rank `from` on, into y. */
static n2_best_and_median of_ranks(const n2_backtest *b, size_t from, size_t n, double *y) {
    for (size_t i = 0; i < n; i++) y[i] = b->all->y[b->order[from + i]];
    return best_and_median(y, n);
}

/* What the nearest designs, hidden ones included, are worth; beside the best visible ones. */
static void look_behind(const n2_backtest *b, const n2_proposals *p, double *y, size_t *nearest,
                        n2_appraisal *a) {
    const n2_designs *d = b->all;
    const size_t n = p->rows, as_many = n < b->visible.rows ? n : b->visible.rows;
    const double edge = d->y[b->order[b->hidden ? b->hidden - 1 : 0]];
    size_t from_hidden = 0;
    n2_space_nearest(&d->space, p->x, n, d->x, d->rows, false, y, nearest);
    for (size_t i = 0; i < n; i++) {
        y[i] = d->y[nearest[i]];
        from_hidden += y[i] >= edge;
    }
    a->hidden_share = (double)from_hidden / (double)n;
    a->neighbours = best_and_median(y, n);
    a->visible = of_ranks(b, b->hidden, as_many, y);
    a->truth = of_ranks(b, 0, as_many, y);
}

/* Distances of proposals, and of some designs among themselves to compare with. */
static void measure(const n2_backtest *b, const n2_proposals *p, double best_seen,
                    n2_appraisal *a) {
    const n2_designs *d = &b->visible;
    const size_t n = p->rows, some = a->n_usual;
    n2_space_nearest(&d->space, p->x, n, d->x, d->rows, false, a->distance, NULL);
    n2_space_nearest(&d->space, d->x, some, d->x, d->rows, true, a->usual, NULL);
    qsort(a->usual, some, sizeof *a->usual, by_size);
    const double edge = a->usual[some * 95 / 100];
    for (size_t i = 0; i < n; i++) {
        a->far += (double)(a->distance[i] > edge) / (double)n;
        a->above += (double)(p->predicted[i] > best_seen) / (double)n;
    }
}

n2ce_status n2_appraise(const n2_backtest *b, const n2_proposals *p, double best_seen,
                        n2_appraisal *out) {
    enum { SOME = 500 };
    n2ce_ctx *ctx = b->ctx;
    *out = (n2_appraisal){.ctx = ctx, .n_usual = b->visible.rows < SOME ? b->visible.rows : SOME};
    out->distance = n2_alloc(ctx, p->rows, sizeof *out->distance);
    out->usual = n2_alloc(ctx, out->n_usual, sizeof *out->usual);
    double *y = n2_alloc(ctx, p->rows, sizeof *y);
    size_t *nearest = n2_alloc(ctx, p->rows, sizeof *nearest);
    const bool there = out->distance && out->usual && y && nearest;
    if (there) measure(b, p, best_seen, out);
    if (there && b->percent > 0) look_behind(b, p, y, nearest, out);
    n2_free(ctx, y);
    n2_free(ctx, nearest);
    return there ? N2CE_OK : N2CE_ENOMEM;
}

void n2_appraisal_free(n2_appraisal *a) {
    n2_free(a->ctx, a->distance);
    n2_free(a->ctx, a->usual);
}
