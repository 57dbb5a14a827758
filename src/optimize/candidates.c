#include "candidates.h"

#include "design/design_space.h"
#include "design_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM = 0x43440000, PARENTS = 256 };
static const double CHANGED = 0.4, FIRST_SIZE = 0.15;

static n2ce_status find_range(n2_candidates *c) {
    const n2_designs *d = c->offline;
    const size_t n = d->space.n;
    c->space = (n2_space){n2_arena_alloc(c->arena, n, sizeof *c->space.factor), n};
    if (!c->space.factor) return N2CE_ENOMEM;
    memcpy(c->space.factor, d->space.factor, n * sizeof *c->space.factor);
    for (size_t i = 0; i < d->rows * n; i++) {
        n2_factor *f = &c->space.factor[i % n];
        if (f->kind == N2_CATEGORY) continue;
        f->low = i < n ? d->x[i] : fmin(f->low, d->x[i]);
        f->high = i < n ? d->x[i] : fmax(f->high, d->x[i]);
    }
    return N2CE_OK;
}

static n2_stream next_stream(n2_candidates *c) { return (n2_stream){c->seed, STREAM, c->draws++}; }

/* Changes of designs into `rows` rows; levels are drawn into them beforehand. */
static void change(n2_candidates *c, const double *parents, size_t n, double size, size_t rows,
                   double *x) {
    const size_t cols = c->space.n;
    const n2_stream pick = next_stream(c), whether = next_stream(c), far = next_stream(c);
    n2_space_uniform(&c->space, next_stream(c), rows, x);
    for (size_t i = 0; i < rows * cols; i++) {
        const n2_factor *f = &c->space.factor[i % cols];
        const double *parent = parents + n2_random_below(pick, i / cols, n) * cols;
        float u, z;
        n2_fill_uniform(whether, i, 1, &u);
        n2_fill_normal(far, i, 1, &z);
        if (f->kind == N2_CATEGORY)
            x[i] = (double)u <= size ? x[i] : parent[i % cols];
        else
            x[i] = parent[i % cols] +
                   ((double)u <= CHANGED ? (double)z * size * (f->high - f->low) : 0);
    }
    for (size_t i = 0; i < rows; i++) n2_space_move_inside(&c->space, x + i * cols);
}

n2ce_status n2_candidates_first(n2_arena *arena, const n2_designs *offline, uint64_t seed,
                                n2_candidates *c) {
    const size_t cols = offline->space.n, half = N2_CANDIDATES / 2;
    size_t row[PARENTS];
    *c = (n2_candidates){
        .offline = offline, .arena = arena, .seed = seed, .room = N2_CANDIDATES, .rows = 2 * half};
    N2_TRY(find_range(c));
    c->x = n2_arena_alloc(arena, c->room * cols, sizeof *c->x);
    c->score = n2_arena_alloc(arena, c->room, sizeof *c->score);
    c->order = n2_arena_alloc(arena, c->room, sizeof *c->order);
    double *parents = n2_arena_alloc(arena, PARENTS * cols, sizeof *parents);
    if (!c->x || !c->score || !c->order || !parents) return N2CE_ENOMEM;
    N2_TRY(n2_designs_best(arena->ctx, offline, PARENTS, row));
    for (size_t i = 0; i < PARENTS; i++)
        memcpy(parents + i * cols, offline->x + row[i] * cols, cols * sizeof *parents);
    n2_space_uniform(&c->space, next_stream(c), half, c->x);
    change(c, parents, PARENTS, FIRST_SIZE, half, c->x + half * cols);
    return N2CE_OK;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

typedef struct place {
    double score;
    size_t row;
} place;

/* Earlier rows before later ones where scores are equal. */
static int best_first(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

n2ce_status n2_candidates_rank(n2_candidates *c, n2_rank_fn *rank, void *user) {
    place *places = n2_alloc(c->arena->ctx, c->rows, sizeof *places);
    if (!places) return N2CE_ENOMEM;
    const n2ce_status status = rank(user, c->x, c->rows, c->score);
    for (size_t i = 0; i < c->rows && status == N2CE_OK; i++) places[i] = (place){c->score[i], i};
    if (status == N2CE_OK) qsort(places, c->rows, sizeof *places, best_first);
    for (size_t i = 0; i < c->rows && status == N2CE_OK; i++) c->order[i] = places[i].row;
    n2_free(c->arena->ctx, places);
    return status;
}

n2ce_status n2_candidates_renew(n2_candidates *c, size_t kept, size_t more, double size) {
    const size_t cols = c->space.n;
    double *best = n2_alloc(c->arena->ctx, kept * cols, sizeof *best);
    if (!best) return N2CE_ENOMEM;
    for (size_t i = 0; i < kept; i++)
        memcpy(best + i * cols, c->x + c->order[i] * cols, cols * sizeof *best);
    memcpy(c->x, best, kept * cols * sizeof *best);
    change(c, best, kept, size, more, c->x + kept * cols);
    c->rows = kept + more;
    n2_free(c->arena->ctx, best);
    return N2CE_OK;
}

n2ce_status n2_candidates_propose(n2_candidates *c, n2_proposals *out) {
    const size_t cols = c->space.n;
    n2_design_set chosen;
    size_t n = 0;
    n2ce_status status = n2_design_set_open(c->arena->ctx, cols, out->rows, &chosen);
    for (size_t i = 0; i < c->rows && n < out->rows && status == N2CE_OK; i++) {
        const double *x = c->x + c->order[i] * cols;
        if (n2_design_set_has(&chosen, x)) continue;
        n2_design_set_add(&chosen, x);
        memcpy(out->x + n++ * cols, x, cols * sizeof *x);
    }
    n2_design_set_close(&chosen);
    for (size_t i = n; i < out->rows && n; i++)
        memcpy(out->x + i * cols, out->x + i % n * cols, cols * sizeof *out->x);
    if (status == N2CE_OK) n2_proposals_settle(&c->offline->space, out);
    return status;
}
