/* Scales of the columns and the penalty of a smooth part, by how well halves of the rows predict
 * one another. */
#include "smooth.h"

#include "base/arena.h"
#include "base/numerics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CENTRES = 128, NEWTON = 3, SWEEPS = 3, MOST_TRIALS = 6, SOME = 200 };

static const double ENOUGH = 0.05;   /* a Newton step as short as this ends a search's fit */
static const double BETTER = 0.0005; /* a column's scale moves for no less */

/* Scales that are tried, with penalties first .. first + n - 1. */
typedef struct trial {
    double *scale;
    n2_smooth_singles singles;
    n2_smooth_shapes shapes;
    size_t first, n;
    double loss; /* of the best penalty */
    size_t penalty;
} trial;

typedef struct searcher {
    n2ce_ctx *ctx;
    n2_arena arena;
    size_t d, dx;
    const n2_smooth_rows *train, *held; /* of both halves */
    const bool *says;                   /* as n2_smooth_choice has it */
    bool *active;                       /* columns that are looked at one by one */
    size_t actives;                     /* how many */
    trial trial[MOST_TRIALS];
    trial best;
} searcher;

/* Judges some trials on both halves, all at once. */
static n2ce_status judge(searcher *s, size_t n) {
    n2_smooth_path path[2 * MOST_TRIALS];
    for (size_t k = 0; k < 2 * n; k++) {
        const trial *t = &s->trial[k / 2];
        path[k] = (n2_smooth_path){.d = s->d,
                                   .scale = t->scale,
                                   .singles = t->singles,
                                   .shapes = t->shapes,
                                   .centres = CENTRES,
                                   .first = t->first,
                                   .n = t->n,
                                   .newton = NEWTON,
                                   .enough = ENOUGH,
                                   .train = s->train[k % 2],
                                   .held = s->held[k % 2]};
    }
    N2_TRY(n2_smooth_paths(s->ctx, path, 2 * n, false));
    for (size_t k = 0; k < n; k++) {
        trial *t = &s->trial[k];
        t->loss = N2_INFINITY;
        for (size_t i = 0; i < t->n; i++) {
            const double loss = 0.5 * (path[2 * k].loss[i] + path[2 * k + 1].loss[i]);
            if (!(loss < t->loss)) continue;
            t->loss = loss;
            t->penalty = t->first + i;
        }
    }
    return N2CE_OK;
}

/* Takes the best of n trials if it is better by more than a margin. */
static bool take_best(searcher *s, size_t n, double margin) {
    size_t best = 0;
    for (size_t k = 1; k < n; k++)
        if (s->trial[k].loss < s->trial[best].loss) best = k;
    const trial *t = &s->trial[best];
    if (!(t->loss < s->best.loss - margin)) return false;
    memcpy(s->best.scale, t->scale, s->d * sizeof *t->scale);
    s->best.singles = t->singles;
    s->best.shapes = t->shapes;
    s->best.loss = t->loss;
    s->best.penalty = t->penalty;
    return true;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median distance between some numerator rows and as many of the denominator. */
static n2ce_status typical_distance(searcher *s, double *out) {
    const n2_smooth_rows *r = &s->train[0];
    const size_t n = r->n[0] < r->n[1] ? r->n[0] : r->n[1], some = n < SOME ? n : SOME;
    double *far = n2_arena_alloc(&s->arena, some, sizeof *far);
    if (!far) return N2CE_ENOMEM;
    for (size_t i = 0; i < some; i++)
        for (size_t j = 0; j < s->d; j++) {
            const double step = r->x[0][i * s->d + j] - r->x[1][i * s->d + j];
            far[i] += step * step;
        }
    qsort(far, some, sizeof *far, ascending);
    *out = sqrt(far[some / 2]);
    return N2CE_OK;
}

/* One scale for all columns: kernels from a tenth of the typical distance to more than all of it,
 * each with every third penalty. */
static n2ce_status find_width(searcher *s) {
    static const double widths[] = {0.1, 0.2, 0.4, 0.8, 1.6};
    enum { WIDTHS = sizeof widths / sizeof widths[0] };
    double distance;
    N2_TRY(typical_distance(s, &distance));
    if (!(distance > 0)) distance = 1;
    for (size_t first = 1; first + 3 < N2_SMOOTH_PENALTIES; first += 4) {
        for (size_t k = 0; k < WIDTHS; k++) {
            trial *t = &s->trial[k];
            t->first = first;
            t->n = 4;
            t->singles = (n2_smooth_singles){0, 1, s->dx};
            t->shapes = s->best.shapes;
            for (size_t j = 0; j < s->d; j++) t->scale[j] = 1 / (widths[k] * distance);
        }
        N2_TRY(judge(s, WIDTHS));
        take_best(s, WIDTHS, 0);
    }
    return N2CE_OK;
}

/* One column at a time, the others hardly counting: what a single column says is easily lost among
 * many. */
static n2ce_status find_column(searcher *s) {
    static const double widths[] = {0.4, 1.2}; /* of columns with variance 1 */
    for (size_t j = 0; j < s->d; j++) {
        if (!s->active[j]) continue;
        for (size_t k = 0; k < 2; k++) {
            trial *t = &s->trial[k];
            t->first = 2;
            t->n = 4;
            t->singles.share = 0;
            t->shapes = s->best.shapes;
            for (size_t i = 0; i < s->d; i++) t->scale[i] = i == j ? 1 / widths[k] : 0.02;
        }
        N2_TRY(judge(s, 2));
        take_best(s, 2, BETTER);
    }
    return N2CE_OK;
}

/* Single columns, alone or beside all together. */
static n2ce_status find_singles(searcher *s) {
    static const double widths[] = {0.4, 0.8, 1.6}; /* of columns with variance 1 */
    const double product = s->best.singles.share;
    for (size_t first = 2; first + 3 < N2_SMOOTH_PENALTIES; first += 4) {
        for (size_t k = 0; k < 6; k++) {
            trial *t = &s->trial[k];
            memcpy(t->scale, s->best.scale, s->d * sizeof *t->scale);
            t->singles = (n2_smooth_singles){k < 3 ? 1 : 0.5, 1 / widths[k % 3], s->dx};
            t->shapes = s->best.shapes;
            t->first = first;
            t->n = 4;
        }
        N2_TRY(judge(s, 6));
        take_best(s, 6, s->best.singles.share > product ? 0 : BETTER);
    }
    return N2CE_OK;
}

/* Half of the mean of those that count: a column that did not may begin with it. */
static double beginning(const searcher *s) {
    double sum = 0;
    size_t n = 0;
    for (size_t j = 0; j < s->d; j++) {
        sum += s->best.scale[j];
        n += s->best.scale[j] > 0;
    }
    return n > 0 ? 0.5 * sum / (double)n : 0;
}

/* The best scales with some columns' multiplied, and the penalties next to the best. */
static void vary(searcher *s, size_t k, size_t begin, size_t end, double factor) {
    trial *t = &s->trial[k];
    memcpy(t->scale, s->best.scale, s->d * sizeof *t->scale);
    for (size_t j = begin; j < end; j++) {
        t->scale[j] *= factor;
        if (s->best.scale[j] == 0 && factor > 1) t->scale[j] = beginning(s);
    }
    t->singles = s->best.singles;
    t->shapes = s->best.shapes;
    if (end - begin == s->d) t->singles.scale *= factor;
    t->first = s->best.penalty > 0 ? s->best.penalty - 1 : 0;
    t->n = t->first + 3 > N2_SMOOTH_PENALTIES ? N2_SMOOTH_PENALTIES - t->first : 3;
}

static n2ce_status move_group(searcher *s, size_t begin, size_t end, bool *moved) {
    vary(s, 0, begin, end, 2);
    vary(s, 1, begin, end, 0.5);
    N2_TRY(judge(s, 2));
    *moved = take_best(s, 2, BETTER) || *moved;
    return N2CE_OK;
}

static n2ce_status sweep(searcher *s, bool *moved) {
    *moved = false;
    if (s->d > N2_SMOOTH_COLUMNS && s->dx > 0) {
        N2_TRY(move_group(s, 0, s->dx, moved));
        N2_TRY(move_group(s, s->dx, s->d, moved));
    }
    for (size_t j = 0; j < s->d; j++)
        if (s->active[j]) N2_TRY(move_group(s, j, j + 1, moved));
    return N2CE_OK;
}

/* Kernels of the columns that have a say, and of no other. */
static n2ce_status find_few(searcher *s) {
    static const double widths[] = {0.3, 0.6, 1.2, 2.4}; /* of columns with variance 1 */
    if (s->actives == 0 || s->actives == s->d) return N2CE_OK;
    const double root = sqrt((double)s->actives);
    for (size_t first = 1; first + 3 < N2_SMOOTH_PENALTIES; first += 4) {
        for (size_t k = 0; k < 4; k++) {
            trial *t = &s->trial[k];
            t->first = first;
            t->n = 4;
            t->singles = (n2_smooth_singles){0, 1, s->dx};
            t->shapes = s->best.shapes;
            for (size_t j = 0; j < s->d; j++)
                t->scale[j] = s->active[j] ? 1 / (widths[k] * root) : 0;
        }
        N2_TRY(judge(s, 4));
        take_best(s, 4, BETTER);
    }
    return N2CE_OK;
}

/* All columns, of many those that have a say. */
static n2ce_status choose_active(searcher *s) {
    s->active = n2_arena_alloc(&s->arena, s->d, sizeof *s->active);
    if (!s->active) return N2CE_ENOMEM;
    for (size_t j = 0; j < s->d && s->says; j++) {
        s->active[j] = s->says[j];
        s->actives += s->says[j];
    }
    return N2CE_OK;
}

/* Without such columns all are looked at, if they are not many. */
static void look_at_all(searcher *s) {
    if (s->actives > 0 && s->d > N2_SMOOTH_COLUMNS) return;
    for (size_t j = 0; j < s->d; j++) s->active[j] = s->d <= N2_SMOOTH_COLUMNS;
}

static n2ce_status room_for_trials(searcher *s) {
    for (size_t k = 0; k < MOST_TRIALS; k++) {
        s->trial[k].scale = n2_arena_alloc(&s->arena, s->d, sizeof(double));
        if (!s->trial[k].scale) return N2CE_ENOMEM;
    }
    return N2CE_OK;
}

static n2ce_status search(searcher *s) {
    bool moved = true;
    N2_TRY(choose_active(s));
    N2_TRY(find_width(s));
    N2_TRY(find_few(s));
    look_at_all(s);
    if (s->d > 2) N2_TRY(find_column(s));
    for (size_t k = 0; k < SWEEPS && moved && s->d > 1; k++) N2_TRY(sweep(s, &moved));
    if (s->d > (s->dx ? 2 : 1)) N2_TRY(find_singles(s));
    vary(s, 0, 0, s->d, 0.7);
    vary(s, 1, 0, s->d, 1.4);
    N2_TRY(judge(s, 2));
    take_best(s, 2, 0);
    return N2CE_OK;
}

/* With more or less of a ridge, beside kernels of all penalties. */
static n2ce_status search_shapes(searcher *s) {
    static const double ridges[] = {0.03, 0.3, 3, 30};
    const n2_shapes *shapes = s->best.shapes.of;
    for (size_t first = 0; first + 3 < N2_SMOOTH_PENALTIES; first += 4) {
        for (size_t k = 0; k < 4; k++) {
            vary(s, k, 0, 0, 1);
            s->trial[k].shapes = (n2_smooth_shapes){shapes, ridges[k]};
            s->trial[k].first = first;
            s->trial[k].n = 4;
        }
        N2_TRY(judge(s, 4));
        take_best(s, 4, 0);
    }
    return N2CE_OK;
}

static n2ce_status search_by(n2ce_status (*fn)(searcher *s), searcher *s, n2_smooth_choice *out) {
    s->arena = n2_arena_new(s->ctx);
    s->best = (trial){.scale = out->scale,
                      .singles = out->singles,
                      .shapes = out->shapes,
                      .loss = N2_INFINITY,
                      .penalty = out->penalty};
    n2ce_status status = room_for_trials(s);
    if (status == N2CE_OK) status = fn(s);
    n2_arena_free(&s->arena);
    *out = (n2_smooth_choice){out->scale,     out->says,       s->best.singles,
                              s->best.shapes, s->best.penalty, s->best.loss};
    return status;
}

n2ce_status n2_smooth_search(n2ce_ctx *ctx, size_t d, size_t dx, const n2_smooth_rows train[2],
                             const n2_smooth_rows held[2], n2_smooth_choice *out) {
    searcher s = {.ctx = ctx, .d = d, .dx = dx, .train = train, .held = held, .says = out->says};
    for (size_t j = 0; j < d; j++) out->scale[j] = 1;
    out->singles = (n2_smooth_singles){0, 1, dx};
    out->shapes.of = NULL;
    return search_by(search, &s, out);
}

n2ce_status n2_smooth_search_shapes(n2ce_ctx *ctx, size_t d, size_t dx,
                                    const n2_smooth_rows train[2], const n2_smooth_rows held[2],
                                    n2_smooth_choice *shaped) {
    searcher s = {.ctx = ctx, .d = d, .dx = dx, .train = train, .held = held};
    return search_by(search_shapes, &s, shaped);
}
