/* The trees of a fit: what is sharp in few columns, which kernels and networks round off. */
#include "fit_parts.h"

#include "base/arena.h"
#include "base/numerics.h"

#include <string.h>

/* Trees are counted in steps, and so many of them are taken as predict held-out rows best. A leaf
 * has at least one row in LEAST_SHARE. */
enum { STEP = 8, STEPS = 15, LEAVES = 8, LEAST_ROWS = 20, LEAST_SHARE = 80, FEW_COLUMNS = 8 };

static size_t count_says(const n2_fitter *f) {
    size_t n = 0;
    for (size_t j = 0; j < f->num.d && f->says; j++) n += f->says[j];
    return n;
}

/* All of few columns are looked at, of many those that have a say. */
bool n2_fit_has_trees(const n2_fitter *f) {
    return f->says && f->o.folds > 1 && (f->num.d <= FEW_COLUMNS || count_says(f) > 0);
}

/* Of many columns the base tells noise besides. */
bool n2_fit_trees_are_bare(const n2_fitter *f) {
    return f->record->shaped || (count_says(f) > 0 && count_says(f) < f->num.d);
}

/* Rows of both samples as trees take them: one after the other, both samples counting one half. */
typedef struct labelled {
    double *x, *label, *weight, *base;
    size_t n;
} labelled;

static n2ce_status label_rows(n2_arena *arena, const n2_smooth_rows *rows, size_t d,
                              labelled *out) {
    const size_t n = out->n = rows->n[0] + rows->n[1];
    out->x = n2_arena_alloc(arena, n * d, sizeof(double));
    out->label = n2_arena_alloc(arena, n, sizeof(double));
    out->weight = n2_arena_alloc(arena, n, sizeof(double));
    out->base = n2_arena_alloc(arena, n, sizeof(double));
    if (!out->x || !out->label || !out->weight || !out->base) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const size_t side = i >= rows->n[0], k = i - (side ? rows->n[0] : 0);
        memcpy(out->x + i * d, rows->x[side] + k * d, d * sizeof(double));
        out->label[i] = (double)side;
        out->weight[i] = 0.5 * (double)n / (double)rows->n[side];
        out->base[i] = rows->base[side][k];
    }
    return N2CE_OK;
}

static n2ce_status grow(const n2_fitter *f, n2_arena *arena, const n2_smooth_rows *train, bool bare,
                        size_t trees, n2_boosting **out) {
    labelled rows;
    N2_TRY(label_rows(arena, train, f->num.d, &rows));
    const size_t least = rows.n / LEAST_SHARE;
    const n2_boosting_options o = {.loss = N2_BOOSTING_LOGISTIC,
                                   .trees = trees,
                                   .leaves = LEAVES,
                                   .least_rows = least > LEAST_ROWS ? least : LEAST_ROWS,
                                   .looked_at = count_says(f) > 0 ? f->says : NULL,
                                   .weight = rows.weight,
                                   .offset = bare ? NULL : rows.base};
    return n2_boosting_fit(f->ctx, &o, rows.x, rows.label, rows.n, f->num.d, out);
}

/* Adds the loss of held-out rows after each step. */
static n2ce_status judge(n2_arena *arena, const n2_boosting *trees, const n2_smooth_rows *held,
                         bool bare, double loss[STEPS]) {
    double *f[2];
    for (size_t side = 0; side < 2; side++) {
        f[side] = n2_arena_alloc(arena, held->n[side], sizeof(double));
        if (!f[side]) return N2CE_ENOMEM;
        for (size_t i = 0; i < held->n[side]; i++) f[side][i] = bare ? 0 : held->base[side][i];
    }
    for (size_t k = 0; k < STEPS; k++) {
        for (size_t side = 0; side < 2; side++)
            n2_boosting_add(trees, k * STEP, (k + 1) * STEP, held->x[side], held->n[side], f[side]);
        loss[k] += n2_smooth_loss((const double *const[]){f[0], f[1]}, held->n);
    }
    return N2CE_OK;
}

static n2ce_status grow_fold(n2_fitter *f, size_t fold, bool bare, double loss[STEPS]) {
    n2_arena arena = n2_arena_new(f->ctx);
    n2_smooth_rows train, held;
    n2ce_status status = n2_fit_gather_outside(f, &arena, fold, false, &train);
    if (status == N2CE_OK) status = n2_fit_gather_inside(f, &arena, fold, &held);
    if (status == N2CE_OK)
        status = grow(f, &arena, &train, bare, STEP * STEPS, &f->ratio->trees[fold]);
    if (status == N2CE_OK) status = judge(&arena, f->ratio->trees[fold], &held, bare, loss);
    n2_arena_free(&arena);
    return status;
}

static size_t least_of(const double loss[STEPS]) {
    size_t best = 0;
    for (size_t k = 1; k < STEPS; k++)
        if (loss[k] < loss[best]) best = k;
    return best;
}

n2ce_status n2_fit_trees(n2_fitter *f) {
    double loss[STEPS] = {0};
    for (size_t k = 0; k < f->o.folds; k++) {
        const n2ce_status status = grow_fold(f, k, n2_fit_trees_are_bare(f), loss);
        f->ratio->forests += f->ratio->trees[k] != NULL;
        N2_TRY(status);
    }
    for (size_t k = 0; k < f->o.folds; k++) f->ratio->trees[k]->trees = STEP * (least_of(loss) + 1);
    return N2CE_OK;
}

void n2_fit_drop_trees(n2_fitter *f) {
    for (size_t k = 0; k < f->ratio->forests; k++) {
        n2_boosting_free(f->ratio->trees[k]);
        f->ratio->trees[k] = NULL;
    }
    f->ratio->forests = 0;
}

n2ce_status n2_fit_half_trees(n2_fitter *f, size_t folds) {
    n2ce_status status = N2CE_OK;
    for (size_t k = 0; k < folds && status == N2CE_OK; k++) {
        n2_arena arena = n2_arena_new(f->ctx);
        n2_smooth_rows train;
        status = n2_fit_gather_outside(f, &arena, k, true, &train);
        if (status == N2CE_OK)
            status = grow(f, &arena, &train, n2_fit_trees_are_bare(f), f->ratio->trees[k]->trees,
                          &f->half_trees[k]);
        n2_arena_free(&arena);
    }
    return status;
}
