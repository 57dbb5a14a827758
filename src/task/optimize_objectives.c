#include "optimize_objectives.h"

#include "base/numerics.h"
#include "design/forest.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TREES = 100, DEPTH = 100, FOREST_ROWS = 4000 };

/* ---- reading --------------------------------------------------------------------------------- */

static n2ce_status add(n2ce_ctx *ctx, n2_objectives *w, n2_objective objective) {
    if (!objective.column) return N2CE_ENOMEM;
    if (!*objective.column)
        return n2_fail(ctx, N2CE_EINVAL,
                       "A comma of --maximize, --minimize or --target has no "
                       "column beside it.");
    if (w->n == N2_OBJECTIVES_MAX)
        return n2_fail(ctx, N2CE_EINVAL, "optimize takes at most %d objectives.",
                       (int)N2_OBJECTIVES_MAX);
    w->each[w->n++] = objective;
    return N2CE_OK;
}

/* "2*purity", or "purity". */
static n2ce_status read_weighted(n2ce_ctx *ctx, n2_objectives *w, const char *from, const char *to,
                                 double sign) {
    char *text = n2_arena_trimmed(&w->arena, from, to), *end = NULL;
    if (!text) return N2CE_ENOMEM;
    double weight = strtod(text, &end);
    while (end > text && isspace((unsigned char)*end)) end++;
    if (end == text || *end != '*')
        return add(ctx, w, (n2_objective){text, sign, 1, 0, NULL, 0, 1, 0});
    if (!(weight > 0) || !isfinite(weight))
        return n2_fail(ctx, N2CE_EINVAL, "\"%s\": a weight is a positive number.", text);
    w->combined = true;
    const char *column = n2_arena_trimmed(&w->arena, end + 1, text + strlen(text));
    return add(ctx, w, (n2_objective){column, sign, weight, 0, NULL, 0, 1, 0});
}

/* "temp=80". */
static n2ce_status read_aim(n2ce_ctx *ctx, n2_objectives *w, const char *from, const char *to) {
    char *text = n2_arena_trimmed(&w->arena, from, to), *end = NULL;
    if (!text) return N2CE_ENOMEM;
    const char *equals = strrchr(text, '=');
    const double aim = equals ? strtod(equals + 1, &end) : 0;
    if (!equals || end == equals + 1 || *end || !isfinite(aim))
        return n2_fail(ctx, N2CE_EINVAL, "--target takes COLUMN=NUMBER, not \"%s\".", text);
    w->combined = true;
    return add(ctx, w,
               (n2_objective){n2_arena_trimmed(&w->arena, text, equals), 0, 1, aim, NULL, 0, 1, 0});
}

/* Items separated by commas. */
static n2ce_status read_list(n2ce_ctx *ctx, n2_objectives *w, const char *text, double sign) {
    while (*text) {
        const char *end = n2_item_end(text, ',');
        N2_TRY(sign == 0 ? read_aim(ctx, w, text, end) : read_weighted(ctx, w, text, end, sign));
        text = *end ? end + 1 : end;
    }
    return N2CE_OK;
}

n2ce_status n2_objectives_read(n2ce_ctx *ctx, const n2ce_options *o, n2_objectives *w) {
    *w = (n2_objectives){.arena = n2_arena_new(ctx)};
    N2_TRY(read_list(ctx, w, n2ce_options_get(o, "maximize"), 1));
    N2_TRY(read_list(ctx, w, n2ce_options_get(o, "minimize"), -1));
    N2_TRY(read_list(ctx, w, n2ce_options_get(o, "target"), 0));
    w->combined = w->combined || w->n > 1;
    return N2CE_OK;
}

void n2_objectives_free(n2_objectives *w) { n2_arena_free(&w->arena); }

/* ---- values ---------------------------------------------------------------------------------- */

/* The more the better, in units of the column. */
static double merit(const n2_objective *o, double value) {
    return o->sign == 0 ? -fabs(value - o->aim) : o->sign * value;
}

static void measure(n2_objective *o, size_t rows) {
    double mean = 0, square = 0;
    o->best = -N2_INFINITY;
    for (size_t i = 0; i < rows; i++) {
        mean += merit(o, o->value[i]) / (double)rows;
        o->best = fmax(o->best, merit(o, o->value[i]));
    }
    for (size_t i = 0; i < rows; i++) {
        const double off = merit(o, o->value[i]) - mean;
        square += off * off / (double)rows;
    }
    o->mean = mean;
    o->sd = square > 0 ? sqrt(square) : 1;
}

/* Alone, the distance from an aim keeps its units and is made small. */
static void take_distance(const n2_objectives *w, n2_design_table *t) {
    t->sign = -1;
    for (size_t i = 0; i < t->designs.rows; i++)
        t->designs.y[i] = merit(&w->each[0], w->each[0].value[i]);
}

n2ce_status n2_objectives_take(n2_objectives *w, n2_design_table *t, size_t first) {
    const size_t rows = t->designs.rows;
    static const double as_asked[N2_OBJECTIVES_MAX] = {1, 1, 1, 1};
    if (!w->combined) return N2CE_OK;
    for (size_t k = 0; k < w->n; k++) {
        double *value = n2_arena_alloc(&w->arena, rows, sizeof *value);
        if (!value) return N2CE_ENOMEM;
        for (size_t i = 0; i < rows; i++)
            value[i] = k ? t->aside[(first + k - 1) * rows + i] : t->sign * t->designs.y[i];
        w->each[k].value = value;
        w->each[k].column = k ? t->aside_name[first + k - 1] : t->target;
        measure(&w->each[k], rows);
    }
    if (w->n == 1 && w->each[0].sign == 0) {
        snprintf(w->title, sizeof w->title, "|%.100s - %.6g|", w->each[0].column, w->each[0].aim);
        take_distance(w, t);
    } else {
        snprintf(w->title, sizeof w->title, "score");
        t->sign = 1;
        n2_objectives_weigh(w, as_asked, t);
    }
    t->target = w->title;
    return N2CE_OK;
}

void n2_objectives_weigh(const n2_objectives *w, const double *factor, n2_design_table *t) {
    for (size_t i = 0; i < t->designs.rows; i++) {
        t->designs.y[i] = 0;
        for (size_t k = 0; k < w->n; k++) {
            const n2_objective *o = &w->each[k];
            t->designs.y[i] += factor[k] * o->weight * (merit(o, o->value[i]) - o->mean) / o->sd;
        }
    }
}

double n2_objectives_reach(const n2_objectives *w) {
    if (w->n != 1 || w->each[0].sign != 0) return N2_NAN;
    return -w->each[0].best / w->each[0].sd;
}

void n2_objectives_weighting(const n2_objectives *w, size_t k, double *factor) {
    const double at = (double)k / (N2_WEIGHTINGS - 1) * (double)(w->n - 1);
    for (size_t i = 0; i < w->n; i++) factor[i] = fmax(0.05, 1 - fabs(at - (double)i));
}

/* ---- what becomes of each -------------------------------------------------------------------- */

static n2ce_status predict_one(n2_objectives *w, const n2_objective *o, const n2_designs *seen,
                               const double *x, size_t rows, double *out) {
    const n2_forest_options options = {TREES, DEPTH, 0};
    const size_t n = seen->rows < FOREST_ROWS ? seen->rows : FOREST_ROWS;
    n2_forest *forest;
    N2_TRY(n2_forest_fit(w->arena.ctx, seen->x, o->value, n, seen->space.n, &options, &forest));
    const n2ce_status status = n2_forest_predict(forest, x, rows, out);
    n2_forest_free(forest);
    return status;
}

/* Whether a is at least as good as b in all, and better in one. */
static bool is_better(const n2_objectives *w, const double *predicted, size_t rows, size_t a,
                      size_t b) {
    bool better = false;
    for (size_t k = 0; k < w->n; k++) {
        const double ma = merit(&w->each[k], predicted[k * rows + a]);
        const double mb = merit(&w->each[k], predicted[k * rows + b]);
        if (ma < mb) return false;
        better = better || ma > mb;
    }
    return better;
}

n2ce_status n2_objectives_predict(n2_objectives *w, const n2_designs *seen, const double *x,
                                  size_t rows, double **predicted, double **front) {
    double *p = n2_arena_alloc(&w->arena, w->n * rows, sizeof *p);
    double *f = n2_arena_alloc(&w->arena, rows, sizeof *f);
    if (!p || !f) return N2CE_ENOMEM;
    for (size_t k = 0; k < w->n; k++)
        N2_TRY(predict_one(w, &w->each[k], seen, x, rows, p + k * rows));
    for (size_t i = 0; i < rows; i++) {
        f[i] = 1;
        for (size_t j = 0; j < rows && f[i] > 0; j++)
            if (is_better(w, p, rows, j, i)) f[i] = 0;
    }
    *predicted = p;
    *front = f;
    return N2CE_OK;
}
