#include "trim.h"

#include "calibration.h"
#include "column_map.h"
#include "near_rows.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_ROWS = 50 };

/* Adds to odd, for each row, how rare its distance from its neighbours is in one view. */
static n2ce_status add_view(n2ce_ctx *ctx, const n2_column_map *m, n2_column_view view,
                            const n2_table *t, double *odd) {
    const size_t d = n2_column_map_width(m);
    n2_near_rows *near = NULL;
    n2_tail tail = {0};
    double *x = n2_alloc(ctx, t->rows * d, sizeof *x);
    n2ce_status status = x ? n2_column_map_apply(m, view, t->x, t->rows, x) : N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_near_rows_new(ctx, x, t->rows, d, N2_NEAREST_MOST, &near);
    if (status == N2CE_OK) status = n2_tail_new(ctx, n2_near_rows_reach(near), t->rows, &tail);
    for (size_t i = 0; i < t->rows && status == N2CE_OK; i++)
        odd[i] += n2_tail_at(&tail, n2_near_rows_reach(near)[i]);
    n2_free(ctx, x);
    n2_near_rows_free(near);
    n2_tail_free(ctx, &tail);
    return status;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Rows that are at most as odd as the one at four fifths of them. */
static n2ce_status keep_usual(n2ce_ctx *ctx, n2_table *t, const double *odd) {
    double *sorted = n2_alloc(ctx, t->rows, sizeof *sorted);
    if (!t->origin) {
        t->origin = n2_alloc(ctx, t->rows, sizeof *t->origin);
        for (size_t i = 0; t->origin && i < t->rows; i++) t->origin[i] = i;
    }
    if (!sorted || !t->origin) {
        n2_free(ctx, sorted);
        return N2CE_ENOMEM;
    }
    memcpy(sorted, odd, t->rows * sizeof *sorted);
    qsort(sorted, t->rows, sizeof *sorted, ascending);
    const double most = sorted[t->rows * 4 / 5];
    size_t kept = 0;
    for (size_t i = 0; i < t->rows; i++) {
        if (odd[i] > most) continue;
        memmove(t->x + kept * t->cols, t->x + i * t->cols, t->cols * sizeof *t->x);
        t->origin[kept++] = t->origin[i];
    }
    t->rows = kept;
    n2_free(ctx, sorted);
    return N2CE_OK;
}

n2ce_status n2_trim(n2ce_ctx *ctx, n2_table *t, const n2_levels *levels) {
    n2_column_map *m = NULL;
    if (t->rows < LEAST_ROWS) return N2CE_OK;
    size_t *n_levels = n2_alloc(ctx, t->cols, sizeof *n_levels);
    double *odd = n2_alloc(ctx, t->rows, sizeof *odd);
    n2ce_status status = n_levels && odd ? N2CE_OK : N2CE_ENOMEM;
    for (size_t c = 0; c < t->cols && status == N2CE_OK; c++)
        if (t->categorical[c]) n_levels[c] = n2_levels_count(levels, t->names[c]);
    if (status == N2CE_OK) status = n2_column_map_new(ctx, t->x, t->rows, t->cols, n_levels, &m);
    for (int v = 0; v < N2_VIEWS && status == N2CE_OK; v++)
        status = add_view(ctx, m, (n2_column_view)v, t, odd);
    if (status == N2CE_OK) status = keep_usual(ctx, t, odd);
    n2_column_map_free(m);
    n2_free(ctx, n_levels);
    n2_free(ctx, odd);
    return status;
}
