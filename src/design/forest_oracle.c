#include "forest_oracle.h"

#include "design_space.h"

#include <string.h>

enum { TREES = 100, DEPTH = 100 };

void n2_draw_rows(uint64_t seed, uint32_t stream, size_t n, size_t k, size_t *order) {
    const n2_stream s = {seed, stream, 0};
    for (size_t i = 0; i < n; i++) order[i] = i;
    for (size_t i = 0; i < k; i++) {
        const size_t at = i + n2_random_below(s, i, n - i), row = order[at];
        order[at] = order[i];
        order[i] = row;
    }
}

static n2ce_status copy_drawn(n2_design_bench *b, const n2_judged_rows *all, size_t n,
                              uint32_t stream, double *x, double *y) {
    size_t *order = n2_alloc(b->ctx, all->rows, sizeof *order);
    if (!order) return N2CE_ENOMEM;
    n2_draw_rows(b->seed, stream, all->rows, n, order);
    for (size_t i = 0; i < n; i++) {
        memcpy(x + i * all->cols, all->x + order[i] * all->cols, all->cols * sizeof *x);
        y[i] = all->y[order[i]];
    }
    n2_free(b->ctx, order);
    return N2CE_OK;
}

n2ce_status n2_forest_oracle_fit(n2_design_bench *b, const n2_judged_rows *all, size_t fit_to,
                                 uint32_t stream) {
    const n2_forest_options o = {TREES, DEPTH, b->seed};
    const size_t n = fit_to < all->rows ? fit_to : all->rows;
    double *x = n2_alloc(b->ctx, n * (all->cols + 1), sizeof *x);
    n2_forest *forest = NULL;
    if (!x) return N2CE_ENOMEM;
    double *y = x + n * all->cols;
    n2ce_status status = copy_drawn(b, all, n, stream, x, y);
    if (status == N2CE_OK) status = n2_forest_fit(b->ctx, x, y, n, all->cols, &o, &forest);
    b->oracle = forest;
    n2_free(b->ctx, x);
    return status;
}

void n2_forest_oracle_end(n2_design_bench *b) { n2_forest_free(b->oracle); }

/* Keeps `most` of the rows, in their order. */
static n2ce_status thin_out(n2_design_bench *b, size_t cols, size_t most, uint32_t stream) {
    n2_designs *d = &b->offline;
    size_t *order = n2_arena_alloc(&b->by_seed, d->rows, sizeof *order), kept = 0;
    unsigned char *keep = n2_arena_alloc(&b->by_seed, d->rows, 1);
    if (!order || !keep) return N2CE_ENOMEM;
    n2_draw_rows(b->seed, stream, d->rows, most, order);
    for (size_t i = 0; i < most; i++) keep[order[i]] = 1;
    for (size_t i = 0; i < d->rows; i++) {
        if (!keep[i]) continue;
        memmove(d->x + kept * cols, d->x + i * cols, cols * sizeof *d->x);
        d->y[kept++] = d->y[i];
    }
    d->rows = kept;
    return N2CE_OK;
}

n2ce_status n2_offline_up_to(n2_design_bench *b, const double *x, const double *y, size_t rows,
                             double percentile, size_t most, uint32_t stream) {
    n2_designs *d = &b->offline;
    const size_t cols = d->space.n;
    N2_TRY(n2_design_make_room(b, rows, cols));
    memcpy(d->y, y, rows * sizeof *y);
    const double limit = n2_percentile(d->y, rows, percentile);
    memcpy(d->x, x, rows * cols * sizeof *x);
    memcpy(d->y, y, rows * sizeof *y);
    d->rows = n2_keep_up_to(limit, cols, d->x, d->y, rows);
    return most && most < d->rows ? thin_out(b, cols, most, stream) : N2CE_OK;
}
