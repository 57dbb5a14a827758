/* The smooth part of a fit: its scales from halves of the rows, its weights fold by fold. */
#include "fit_parts.h"

#include "base/arena.h"
#include "base/numerics.h"
#include "screen.h"

#include <math.h>
#include <string.h>

enum {
    ROWS = 60,          /* a side: with fewer there is nothing to choose scales by */
    WIDEST = 128,       /* columns beyond which distances tell nothing */
    MOST_ROWS = 4000,   /* a side, of one fit */
    MOST_JOINT = 15000, /* rows and pairs together */
    SEARCH_ROWS = 2000, /* a side, of the search's halves together */
    SCREEN_ROWS = 3000, /* a side */
    SEARCH_PAIRS = 4,   /* of a row, in the search and of its halves */
    CENTRES = 300,
    NEWTON = 6,
};

static const double ENOUGH = 0.02;

bool n2_fit_has_smooth(const n2_fitter *f) {
    const size_t n = f->dx || f->num.n < f->den.n ? f->num.n : f->den.n;
    return f->o.smooth && f->ratio->base && f->o.critic.stages == 1 && n >= ROWS &&
           f->num.d <= WIDEST;
}

/* ---- rows of a fit ------------------------------------------------------- */

/* Some rows of a sample: all outside of [begin, end), or inside. */
typedef struct pick {
    size_t begin, end;
    bool outside;
    size_t most;
} pick;

static size_t picked(const pick *p, size_t n) {
    const size_t within = p->end - p->begin, count = p->outside ? n - within : within;
    return count < p->most ? count : p->most;
}

static const double *picked_row(const pick *p, n2_rows_view rows, size_t i) {
    if (!p->outside) return rows.x + (p->begin + i) * rows.d;
    return rows.x + (i < p->begin ? i : i + p->end - p->begin) * rows.d;
}

static const double *copy_rows(n2_arena *arena, const pick *p, n2_rows_view rows) {
    const size_t n = picked(p, rows.n), d = rows.d;
    double *x = n2_arena_alloc(arena, n * d, sizeof *x);
    for (size_t i = 0; i < n && x; i++) memcpy(x + i * d, picked_row(p, rows, i), d * sizeof *x);
    return x;
}

/* x of each row with y of those 1 .. shifts rows on. */
static const double *copy_pairs(n2_arena *arena, const pick *p, n2_rows_view rows, size_t dx,
                                size_t shifts) {
    const size_t n = picked(p, rows.n), d = rows.d;
    double *x = n2_arena_alloc(arena, n * shifts * d, sizeof *x), *at = x;
    for (size_t s = 1; s <= shifts && x; s++)
        for (size_t i = 0; i < n; i++, at += d) {
            memcpy(at, picked_row(p, rows, i), dx * sizeof *x);
            memcpy(at + dx, picked_row(p, rows, (i + s) % n) + dx, (d - dx) * sizeof *x);
        }
    return x;
}

static n2ce_status score_base(n2_arena *arena, const n2_gauss *base, n2_smooth_rows *rows) {
    for (size_t side = 0; side < 2; side++) {
        double *f = n2_arena_alloc(arena, rows->n[side], sizeof *f);
        if (!f || !rows->x[side]) return N2CE_ENOMEM;
        N2_TRY(n2_gauss_score(base, rows->x[side], rows->n[side], f));
        rows->base[side] = f;
    }
    return N2CE_OK;
}

/* Rows of both sides, picks of the denominator and the numerator, and the base's scores. */
static n2ce_status gather(const n2_fitter *f, n2_arena *arena, const pick from[2], size_t shifts,
                          const n2_gauss *base, n2_smooth_rows *out) {
    *out = (n2_smooth_rows){0};
    out->n[1] = picked(&from[1], f->num.n);
    out->n[0] = f->dx ? out->n[1] * shifts : picked(&from[0], f->den.n);
    out->x[1] = copy_rows(arena, &from[1], f->num);
    out->x[0] = f->dx ? copy_pairs(arena, &from[1], f->num, f->dx, shifts)
                      : copy_rows(arena, &from[0], f->den);
    return score_base(arena, base, out);
}

/* ---- scales -------------------------------------------------------------- */

/* Half 0 or 1 of the first rows. */
static void pick_half(const n2_fitter *f, size_t half, pick out[2]) {
    const size_t n[2] = {f->dx ? f->num.n : f->den.n, f->num.n};
    for (size_t side = 0; side < 2; side++) {
        const size_t all = n[side] < SEARCH_ROWS ? n[side] : SEARCH_ROWS, mid = all / 2;
        out[side] = (pick){half ? mid : 0, half ? all : mid, false, SEARCH_ROWS};
    }
}

/* Of many columns those that have a say, by more rows than the search has. */
static n2ce_status screen(n2_fitter *f) {
    enum { FEW = 4, MOST = 8 };
    const pick first[2] = {{0, f->den.n, false, SCREEN_ROWS}, {0, f->num.n, false, SCREEN_ROWS}};
    n2_arena arena = n2_arena_new(f->ctx);
    n2_smooth_rows rows;
    size_t count;
    if (f->num.d <= FEW) return N2CE_OK;
    n2ce_status status = gather(f, &arena, first, 1, f->ratio->base, &rows);
    if (status == N2CE_OK)
        status = n2_screen_columns(f->ctx, &rows, f->num.d, f->dx, MOST, f->says, &count);
    n2_arena_free(&arena);
    return status;
}

/* What may be in the base's place: nothing, functions of columns, those of directions too. */
enum { PLACES = 3 };

/* For each that there is. */
static n2ce_status find_scales(const n2_fitter *f, n2_arena *arena, n2_smooth_choice out[PLACES]) {
    n2_smooth_rows half[2];
    for (size_t k = 0; k < 2; k++) {
        pick from[2];
        pick_half(f, k, from);
        N2_TRY(gather(f, arena, from, SEARCH_PAIRS, f->ratio->base, &half[k]));
    }
    const n2_smooth_rows other[2] = {half[1], half[0]};
    N2_TRY(n2_smooth_search(f->ctx, f->num.d, f->dx, half, other, &out[0]));
    for (size_t k = 1; k < PLACES && isfinite(out[0].loss); k++) {
        const n2_shapes *shapes = out[k].shapes.of;
        if (!shapes) continue;
        out[k] = out[0];
        out[k].shapes.of = shapes;
        N2_TRY(n2_smooth_search_shapes(f->ctx, f->num.d, f->dx, half, other, &out[k]));
    }
    return N2CE_OK;
}

/* ---- folds --------------------------------------------------------------- */

enum { SHIFTS = 4 }; /* pairs of a row */

n2ce_status n2_fit_gather_outside(const n2_fitter *f, n2_arena *arena, size_t fold, bool half,
                                  n2_smooth_rows *out) {
    size_t held[2][2];
    n2_find_fold(f, fold, held);
    const size_t most = f->dx ? MOST_JOINT / (SHIFTS + 1) : MOST_ROWS;
    pick from[2];
    for (size_t side = 0; side < 2; side++) {
        const size_t *range = held[1 - side], n = side || f->dx ? f->num.n : f->den.n;
        from[side] = (pick){range[0], range[1], true, most};
        if (half) from[side].most = picked(&from[side], n) / 2;
    }
    return gather(f, arena, from, SHIFTS, f->base[fold], out);
}

n2ce_status n2_fit_gather_inside(const n2_fitter *f, n2_arena *arena, size_t fold,
                                 n2_smooth_rows *out) {
    size_t held[2][2];
    n2_find_fold(f, fold, held);
    const size_t most = f->dx ? MOST_JOINT / (SHIFTS + 1) : MOST_ROWS;
    const pick inside[2] = {{held[1][0], held[1][1], false, most},
                            {held[0][0], held[0][1], false, most}};
    return gather(f, arena, inside, SHIFTS, f->base[fold], out);
}

static n2ce_status gather_fold(const n2_fitter *f, n2_arena *arena, size_t fold,
                               n2_smooth_path *path) {
    N2_TRY(n2_fit_gather_outside(f, arena, fold, false, &path->train));
    return n2_fit_gather_inside(f, arena, fold, &path->held);
}

/* Of penalties whose loss cannot be told from the least one the smallest is taken: too much of a
 * penalty makes large ratios small, and divergences with them. */
static const double SAME_LOSS = 0.003, SAME_LOSS_SHAPED = 0.0003;

/* By the loss of all folds together, which is given back: infinite if there is none. */
static double best_penalty(const n2_smooth_path *path, size_t folds, size_t *best) {
    const double same = path[0].shapes.of ? SAME_LOSS_SHAPED : SAME_LOSS;
    double least = N2_INFINITY;
    *best = 0;
    for (size_t i = 0; i < path[0].n; i++) {
        double loss = 0;
        for (size_t k = 0; k < folds; k++) loss += path[k].loss[i] / (double)folds;
        if (loss < least + same) *best = i;
        least = fmin(least, loss);
    }
    return least;
}

/* Mean of what a fit says of the rows of a side that its fold has held out. */
static n2ce_status held_mean(const n2_fitter *f, const n2_smooth_path *path, size_t i, size_t side,
                             double *mean) {
    const size_t n = path->held.n[side];
    double *g = n2_alloc(f->ctx, n, sizeof *g);
    if (!g) return N2CE_ENOMEM;
    const n2ce_status status = n2_smooth_add(path->fit[i], path->held.x[side], n, g);
    *mean = 0;
    for (size_t k = 0; k < n; k++) *mean += g[k] / (double)n;
    n2_free(f->ctx, g);
    return status;
}

/* How much further from 0 the mean log ratios of both sides are with the least penalty of the path.
 */
static n2ce_status loosen(n2_fitter *f, const n2_smooth_path *path, size_t best) {
    const size_t least = path[0].n - 1, folds = f->o.folds;
    for (size_t k = 0; k < folds; k++)
        for (size_t side = 0; side < 2; side++) {
            double loose, mean;
            if (!path[k].fit[least]) return N2CE_OK;
            N2_TRY(held_mean(f, &path[k], least, side, &loose));
            N2_TRY(held_mean(f, &path[k], best, side, &mean));
            f->record->looser[side] += (side ? loose - mean : mean - loose) / (double)folds;
        }
    return N2CE_OK;
}

static void keep_fits(n2_fitter *f, n2_smooth_path *path, size_t best) {
    for (size_t k = 0; k < f->o.folds; k++)
        for (size_t i = 0; i < path[k].n; i++) {
            if (i == best)
                f->ratio->smooth[k] = path[k].fit[i];
            else
                n2_smooth_free(path[k].fit[i]);
            path[k].fit[i] = NULL;
        }
    f->ratio->smooths = f->o.folds;
    f->record->penalty = n2_smooth_penalty(path[0].first + best);
}

/* The same with half of the kernels: what they lose says whether all are enough. */
static n2ce_status halve_kernels(n2_fitter *f, n2_smooth_path *path, size_t best) {
    double loss = 0;
    for (size_t k = 0; k < f->o.folds; k++) {
        loss -= path[k].loss[best] / (double)f->o.folds;
        path[k].centres = CENTRES / 2;
        path[k].first += best;
        path[k].n = 1;
    }
    N2_TRY(n2_smooth_paths(f->ctx, path, f->o.folds, false));
    for (size_t k = 0; k < f->o.folds; k++) loss += path[k].loss[0] / (double)f->o.folds;
    f->record->unresolved = loss;
    return N2CE_OK;
}

/* How much worse halves may predict one another with functions of columns: their weights are
 * learned from a half each, and the base has seen both. */
static bool is_hopeless(const n2_fitter *f, const n2_smooth_choice *c, const n2_shapes *shapes,
                        double loss) {
    const size_t n = f->num.n < SEARCH_ROWS ? f->num.n : SEARCH_ROWS;
    const double slack = 0.01 + 2 * (double)shapes->n / (double)n;
    return !(c->loss < loss + slack);
}

static void begin_paths(const n2_fitter *f, const n2_smooth_choice *c, n2_smooth_path *path) {
    const size_t first = c->penalty > 0 ? c->penalty - 1 : 0, left = N2_SMOOTH_PENALTIES - first;
    for (size_t k = 0; k < f->o.folds; k++) {
        const n2_smooth_rows train = path[k].train, held = path[k].held;
        path[k] = (n2_smooth_path){.d = f->num.d,
                                   .scale = c->scale,
                                   .singles = c->singles,
                                   .shapes = c->shapes,
                                   .centres = CENTRES,
                                   .first = first,
                                   .n = left < N2_SMOOTH_PATH ? left : N2_SMOOTH_PATH,
                                   .newton = NEWTON,
                                   .enough = ENOUGH,
                                   .train = train,
                                   .held = held};
    }
}

/* Fits of all folds by one choice; false, and there are none, if none was found. */
static n2ce_status try_choice(n2_fitter *f, const n2_smooth_choice *c, n2_smooth_path *path,
                              size_t *best, double *loss) {
    begin_paths(f, c, path);
    N2_TRY(n2_smooth_paths(f->ctx, path, f->o.folds, true));
    *loss = best_penalty(path, f->o.folds, best);
    if (!isfinite(*loss)) n2_smooth_drop(path, f->o.folds);
    return N2CE_OK;
}

/* The same of functions with a tenth of their ridge. */
static n2ce_status loosen_ridge(n2_fitter *f, const n2_smooth_path *path, size_t best) {
    const size_t folds = f->o.folds;
    n2_smooth_path loose[N2_MOST_FOLDS];
    n2ce_status status = N2CE_OK;
    for (size_t k = 0; k < folds; k++) {
        loose[k] = path[k];
        loose[k].first += best;
        loose[k].n = 1;
        loose[k].shapes.ridge *= 0.1;
    }
    N2_TRY(n2_smooth_paths(f->ctx, loose, folds, true));
    for (size_t k = 0; k < folds && status == N2CE_OK; k++)
        for (size_t side = 0; side < 2 && status == N2CE_OK && loose[k].fit[0]; side++) {
            double more = 0, mean = 0;
            status = held_mean(f, &loose[k], 0, side, &more);
            if (status == N2CE_OK) status = held_mean(f, &path[k], best, side, &mean);
            f->record->looser[side] += (side ? more - mean : mean - more) / (double)folds;
        }
    n2_smooth_drop(loose, folds);
    return status;
}

/* The same of half of the rows: what they find less says what all of them may miss. */
static n2ce_status halve_rows(n2_fitter *f, n2_arena *arena, const n2_smooth_path *path,
                              size_t best) {
    n2_smooth_path half[N2_MOST_FOLDS];
    for (size_t k = 0; k < f->o.folds; k++) {
        half[k] = path[k];
        half[k].first += best;
        half[k].n = 1;
        N2_TRY(n2_fit_gather_outside(f, arena, k, true, &half[k].train));
    }
    N2_TRY(n2_smooth_paths(f->ctx, half, f->o.folds, true));
    for (size_t k = 0; k < f->o.folds; k++) f->half_smooth[k] = half[k].fit[0];
    return N2CE_OK;
}

static n2ce_status keep_best(n2_fitter *f, n2_arena *arena, n2_smooth_path *path, size_t best) {
    n2ce_status status = loosen(f, path, best);
    if (status == N2CE_OK) status = halve_rows(f, arena, path, best);
    if (status == N2CE_OK && path[0].shapes.of) status = loosen_ridge(f, path, best);
    if (status != N2CE_OK) {
        n2_smooth_drop(path, f->o.folds);
        return status;
    }
    keep_fits(f, path, best);
    return halve_kernels(f, path, best);
}

/* Directions are taken for no less, in nats a row: there are many to choose from. */
static const double BETTER_DIRECTIONS = 0.003;

/* Functions of columns take the base's place if held-out rows are predicted better. */
static n2ce_status fit_folds(n2_fitter *f, n2_arena *arena, const n2_smooth_choice c[PLACES],
                             size_t *best) {
    n2_smooth_path path[PLACES][N2_MOST_FOLDS];
    double loss[PLACES];
    size_t at[PLACES] = {0};
    n2ce_status status = N2CE_OK;
    for (size_t k = 0; k < f->o.folds; k++) N2_TRY(gather_fold(f, arena, k, &path[0][k]));
    for (size_t p = 1; p < PLACES; p++) memcpy(path[p], path[0], sizeof path[0]);
    for (size_t p = 0; p < PLACES && status == N2CE_OK; p++) {
        const n2_shapes *shapes = c[p].shapes.of;
        loss[p] = N2_INFINITY;
        if (p > 0 && (!shapes || is_hopeless(f, &c[p], shapes, c[0].loss))) continue;
        status = try_choice(f, &c[p], path[p], &at[p], &loss[p]);
        const double margin = p > 1 ? BETTER_DIRECTIONS : 0;
        const bool better = status == N2CE_OK && p > 0 && loss[p] < loss[*best] - margin;
        const size_t other = better ? *best : p;
        if (p > 0 && isfinite(loss[other])) n2_smooth_drop(path[other], f->o.folds);
        if (better) *best = p;
    }
    if (status != N2CE_OK) n2_smooth_drop(path[*best], f->o.folds);
    f->record->shaped = *best > 0;
    if (status != N2CE_OK || !isfinite(loss[*best])) return status;
    return keep_best(f, arena, path[*best], at[*best]);
}

/* Functions of columns, learned from as many rows as a fit may have, and of directions. */
static n2ce_status make_shapes(n2_fitter *f, n2_smooth_choice c[PLACES], n2_shapes **directed) {
    const size_t n = f->num.n < MOST_ROWS ? f->num.n : MOST_ROWS;
    const size_t m = f->den.n < MOST_ROWS ? f->den.n : MOST_ROWS;
    n2_ratio *r = f->ratio;
    N2_TRY(n2_shapes_new(f->ctx, r->features, f->num.x, n, f->den.x, f->dx ? 0 : m, f->dx,
                         &r->shapes));
    if (r->shapes && !f->dx)
        N2_TRY(n2_shapes_direct(r->shapes, r->features, f->num.x, n, f->den.x, m, directed));
    c[1].shapes.of = r->shapes;
    c[2].shapes.of = *directed;
    return N2CE_OK;
}

n2ce_status n2_fit_smooth(n2_fitter *f) {
    n2_arena arena = n2_arena_new(f->ctx);
    n2_smooth_choice c[PLACES] = {{.loss = N2_INFINITY}};
    n2_shapes *directed = NULL;
    size_t best = 0;
    c[0].scale = n2_arena_alloc(&arena, f->num.d, sizeof(double));
    c[0].says = f->says = n2_alloc(f->ctx, f->num.d, sizeof *f->says);
    n2ce_status status = c[0].scale && f->says ? make_shapes(f, c, &directed) : N2CE_ENOMEM;
    if (status == N2CE_OK) status = screen(f);
    if (status == N2CE_OK) status = find_scales(f, &arena, c);
    if (status == N2CE_OK && isfinite(c[0].loss)) status = fit_folds(f, &arena, c, &best);
    if (status == N2CE_OK && best == 2) {
        n2_shapes *plain = f->ratio->shapes;
        f->ratio->shapes = directed;
        directed = plain;
    }
    n2_shapes_free(directed);
    n2_arena_free(&arena);
    return status;
}
