/* "study bbo": designs that are drawn for values, and what they are worth. */
#include "base/numerics.h"
#include "bbo_study.h"
#include "design/design_space.h"

#include <math.h>
#include <string.h>

n2ce_status n2_bbo_aims_open(const n2_bbo_study *s, size_t task, const n2_design_bench *b,
                             n2_arena *arena, n2_aims *aims) {
    const n2_designs *d = &b->offline;
    double low = d->y[0], high = d->y[0];
    *aims = (n2_aims){0};
    if (s->n_targets == 0) return N2CE_OK;
    for (size_t i = 1; i < d->rows; i++) {
        low = fmin(low, d->y[i]);
        high = fmax(high, d->y[i]);
    }
    double *target = n2_arena_alloc(arena, s->n_targets, sizeof *target);
    *aims = (n2_aims){.n = s->n_targets, .rows = s->queries[task], .target = target};
    aims->x = n2_arena_alloc(arena, aims->n * aims->rows * d->space.n, sizeof *aims->x);
    if (!target || !aims->x) return N2CE_ENOMEM;
    for (size_t i = 0; i < aims->n; i++) target[i] = low + s->targets[i] * (high - low);
    return N2CE_OK;
}

n2ce_status n2_bbo_points_keep(const n2_bbo_study *s, const n2_design_bench *b, const double *x,
                               size_t rows, uint64_t seed, n2_bbo_points *out) {
    const n2_space *space = &b->offline.space;
    const bool plane = space->n == 2 && space->factor[0].kind == N2_CONTINUOUS &&
                       space->factor[1].kind == N2_CONTINUOUS;
    if (!plane || seed != s->first_seed) return N2CE_OK;
    double *copy = n2_arena_alloc(s->arena, 2 * rows, sizeof *copy);
    if (!copy) return N2CE_ENOMEM;
    memcpy(copy, x, 2 * rows * sizeof *copy);
    *out = (n2_bbo_points){copy, rows};
    return N2CE_OK;
}

size_t n2_bbo_pictured(const n2_bbo_study *s, size_t task, size_t method) {
    for (size_t k = 0; k < s->n_seeds; k++)
        if (n2_bbo_run_at(s, task, method, k)->proposed.x) return k;
    return 0;
}

/* y is room for the values of an aim. */
static n2ce_status judge_one(const n2_design_bench *b, const n2_aims *aims, size_t i, double *y,
                             n2_bbo_aim *aim) {
    n2_tally t = {0};
    N2_TRY(n2_design_bench_score(b, aims->x + i * aims->rows * b->offline.space.n, aims->rows, y));
    for (size_t k = 0; k < aims->rows; k++) {
        y[k] = n2_design_normalise(b->task, y[k]);
        n2_tally_add(&t, y[k]);
    }
    aim->target = n2_design_normalise(b->task, aims->target[i]);
    aim->mean = n2_tally_mean(&t);
    aim->sd = n2_tally_spread(&t);
    aim->low = n2_percentile(y, aims->rows, 10);
    aim->high = n2_percentile(y, aims->rows, 90);
    return N2CE_OK;
}

n2ce_status n2_bbo_aims_judge(const n2_bbo_study *s, const n2_design_bench *b, const n2_aims *aims,
                              n2_bbo_run *run) {
    size_t best = 0;
    double *y = n2_arena_alloc(s->arena, aims->rows, sizeof *y);
    run->aims = n2_arena_alloc(s->arena, aims->n, sizeof *run->aims);
    if (!y || !run->aims) return N2CE_ENOMEM;
    for (size_t i = 0; i < aims->n; i++) {
        run->aims[i].scaled = s->targets[i];
        N2_TRY(judge_one(b, aims, i, y, &run->aims[i]));
        if (fabs(s->targets[i] - 1) < fabs(s->targets[best] - 1)) best = i;
    }
    run->n_aims = aims->n;
    return n2_bbo_points_keep(s, b, aims->x + best * aims->rows * b->offline.space.n, aims->rows,
                              run->seed, &run->drawn);
}

/* Keeps a list of distinct numbers sorted. */
static size_t insert(double *list, size_t n, double x) {
    size_t at = 0;
    while (at < n && list[at] < x) at++;
    if (at < n && list[at] == x) return n;
    memmove(list + at + 1, list + at, (n - at) * sizeof *list);
    list[at] = x;
    return n + 1;
}

n2ce_status n2_bbo_aim_values(const n2_bbo_study *s, size_t task, n2_arena *arena, double **scaled,
                              size_t *n) {
    const n2_bbo_run *runs = n2_bbo_run_at(s, task, 0, 0);
    size_t most = 0;
    *n = 0;
    for (size_t i = 0; i < s->n_methods * s->n_seeds; i++) most += runs[i].n_aims;
    *scaled = n2_arena_alloc(arena, most + 1, sizeof **scaled);
    if (!*scaled) return N2CE_ENOMEM;
    for (size_t i = 0; i < s->n_methods * s->n_seeds; i++)
        for (size_t k = 0; runs[i].done && !runs[i].failed && k < runs[i].n_aims; k++)
            *n = insert(*scaled, *n, runs[i].aims[k].scaled);
    return N2CE_OK;
}

static const n2_bbo_aim *find_aim(const n2_bbo_run *r, double scaled) {
    for (size_t k = 0; r->done && !r->failed && k < r->n_aims; k++)
        if (r->aims[k].scaled == scaled) return &r->aims[k];
    return NULL;
}

bool n2_bbo_aim_mean(const n2_bbo_study *s, size_t task, size_t method, double scaled,
                     n2_bbo_aim *mean) {
    n2_tally target = {0}, achieved = {0}, sd = {0}, low = {0}, high = {0};
    for (size_t k = 0; k < s->n_seeds; k++) {
        const n2_bbo_aim *aim = find_aim(n2_bbo_run_at(s, task, method, k), scaled);
        if (!aim) continue;
        n2_tally_add(&target, aim->target);
        n2_tally_add(&achieved, aim->mean);
        n2_tally_add(&sd, aim->sd);
        n2_tally_add(&low, aim->low);
        n2_tally_add(&high, aim->high);
    }
    *mean = (n2_bbo_aim){scaled,
                         n2_tally_mean(&target),
                         n2_tally_mean(&achieved),
                         n2_tally_mean(&sd),
                         n2_tally_mean(&low),
                         n2_tally_mean(&high)};
    return target.n > 0;
}
