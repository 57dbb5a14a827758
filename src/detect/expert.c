#include "expert.h"

#include <string.h>

void n2_expert_free(n2_expert *e) {
    if (!e) return;
    n2_column_map_free(e->map);
    for (size_t v = 0; v < N2_VIEWS; v++) n2_near_rows_free(e->near[v]);
    n2_learned_free(e->learned);
    n2_free(e->ctx, e);
}

/* The rows that may be seen, side by side. */
static n2ce_status seen_rows(const n2_expert *e, const n2_normal_rows *rows, const size_t held[2],
                             double **out) {
    const size_t before = held[0] * rows->cols, after = (rows->n - held[1]) * rows->cols;
    double *x = *out = n2_alloc(e->ctx, before + after, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    memcpy(x, rows->x, before * sizeof *x);
    memcpy(x + before, rows->x + held[1] * rows->cols, after * sizeof *x);
    return N2CE_OK;
}

static n2ce_status learn_near(n2_expert *e, const double *seen, size_t n) {
    const size_t d = n2_column_map_width(e->map);
    double *x = n2_alloc(e->ctx, n * d, sizeof *x);
    n2ce_status status = x ? N2CE_OK : N2CE_ENOMEM;
    for (int v = 0; v < N2_VIEWS && status == N2CE_OK; v++) {
        status = n2_column_map_apply(e->map, (n2_column_view)v, seen, n, x);
        if (status == N2CE_OK) status = n2_near_rows_new(e->ctx, x, n, d, N2_NEAREST, &e->near[v]);
    }
    n2_free(e->ctx, x);
    return status;
}

static n2ce_status learn_ratio(n2_expert *e, const n2_normal_rows *rows, const size_t held[2],
                               const n2_learned_options *o) {
    const size_t d = n2_column_map_width(e->map);
    double *x = n2_alloc(e->ctx, rows->n * d, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    n2ce_status status = n2_column_map_apply(e->map, N2_VIEW_PLAIN, rows->x, rows->n, x);
    if (status == N2CE_OK) status = n2_learned_new(e->ctx, x, rows->n, d, held, o, &e->learned);
    n2_free(e->ctx, x);
    return status;
}

static n2ce_status learn(n2_expert *e, const n2_normal_rows *rows, const size_t held[2],
                         const n2_learned_options *ratio) {
    const size_t n = rows->n - (held[1] - held[0]);
    double *seen;
    N2_TRY(seen_rows(e, rows, held, &seen));
    n2ce_status status = n2_column_map_new(e->ctx, seen, n, rows->cols, rows->levels, &e->map);
    if (status == N2CE_OK) status = learn_near(e, seen, n);
    n2_free(e->ctx, seen);
    if (status == N2CE_OK && ratio) status = learn_ratio(e, rows, held, ratio);
    return status;
}

n2ce_status n2_expert_new(n2ce_ctx *ctx, const n2_normal_rows *rows, const size_t held[2],
                          const n2_learned_options *ratio, n2_expert **out) {
    n2_expert *e = *out = n2_alloc(ctx, 1, sizeof *e);
    if (!e) return N2CE_ENOMEM;
    e->ctx = ctx;
    const n2ce_status status = learn(e, rows, held, ratio);
    if (status == N2CE_OK) return N2CE_OK;
    n2_expert_free(e);
    *out = NULL;
    return status;
}

/* One part of all rows: x holds their features in its view. */
static n2ce_status score_part(n2_expert *e, n2_part part, const double *x, size_t n, double *score,
                              double *parts) {
    if (part == N2_PART_RATIO)
        N2_TRY(n2_learned_score(e->learned, x, n, score));
    else
        N2_TRY(n2_near_rows_score(e->near[part], x, n, score));
    for (size_t i = 0; i < n; i++) parts[i * N2_PARTS_COUNT + part] = score[i];
    return N2CE_OK;
}

n2ce_status n2_expert_score(n2_expert *e, const double *rows, size_t n, double *parts) {
    const size_t d = n2_column_map_width(e->map);
    double *x = n2_alloc(e->ctx, n * d, sizeof *x), *score = n2_alloc(e->ctx, n, sizeof *score);
    n2ce_status status = x && score ? N2CE_OK : N2CE_ENOMEM;
    memset(parts, 0, n * N2_PARTS_COUNT * sizeof *parts);
    if (status == N2CE_OK) status = n2_column_map_apply(e->map, N2_VIEW_NORMAL, rows, n, x);
    if (status == N2CE_OK) status = score_part(e, N2_PART_NORMAL, x, n, score, parts);
    if (status == N2CE_OK) status = n2_column_map_apply(e->map, N2_VIEW_PLAIN, rows, n, x);
    if (status == N2CE_OK) status = score_part(e, N2_PART_PLAIN, x, n, score, parts);
    if (status == N2CE_OK && e->learned) status = score_part(e, N2_PART_RATIO, x, n, score, parts);
    n2_free(e->ctx, x);
    n2_free(e->ctx, score);
    return status;
}
