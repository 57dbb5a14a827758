/* Superconductor: 86 amounts of elements and the critical temperature in kelvin of 21,263
 * materials; offline those up to the 80th percentile.
 *
 * The oracle is a random forest of 100 trees fitted to 1,000 rows of the full table, drawn anew
 * for every seed; it disagrees with the labels, so that offline designs score otherwise than they
 * did. The bounds are the full table's: as a forest is constant beyond its rows, moving a design
 * into them never changes its score. */
#include "design_space.h"
#include "design_task.h"
#include "forest.h"

#include <math.h>
#include <string.h>

enum { ROWS = 21263, ELEMENTS = 86, ORACLE_ROWS = 1000, TREES = 100, DEPTH = 100 };
enum { STREAM = 0x53430000 };

typedef struct materials {
    double *x, *y;
} materials;

static n2ce_status open_table(n2_design_bench *b, const char *folder) {
    materials *m = b->data = n2_arena_alloc(&b->always, 1, sizeof *m);
    if (!m) return N2CE_ENOMEM;
    N2_TRY(n2_design_read(b->ctx, folder, "x.npy", ROWS, ELEMENTS, &b->always, &m->x));
    return n2_design_read(b->ctx, folder, "y.npy", ROWS, 1, &b->always, &m->y);
}

static n2ce_status set_space(n2_design_bench *b, const materials *m) {
    b->offline.space = n2_space_of(&b->by_seed, ELEMENTS, (n2_factor){N2_CONTINUOUS, 0, 0, 0});
    n2_factor *factor = b->offline.space.factor;
    if (!factor) return N2CE_ENOMEM;
    for (size_t i = 0; i < (size_t)ROWS * ELEMENTS; i++) {
        n2_factor *f = &factor[i % ELEMENTS];
        f->low = i < ELEMENTS ? m->x[i] : fmin(f->low, m->x[i]);
        f->high = i < ELEMENTS ? m->x[i] : fmax(f->high, m->x[i]);
    }
    return N2CE_OK;
}

static n2ce_status take_offline(n2_design_bench *b, const materials *m) {
    n2_designs *d = &b->offline;
    N2_TRY(n2_design_make_room(b, ROWS, ELEMENTS));
    memcpy(d->y, m->y, ROWS * sizeof *m->y);
    const double limit = n2_percentile(d->y, ROWS, 80);
    memcpy(d->x, m->x, (size_t)ROWS * ELEMENTS * sizeof *m->x);
    memcpy(d->y, m->y, ROWS * sizeof *m->y);
    d->rows = n2_keep_up_to(limit, ELEMENTS, d->x, d->y, ROWS);
    return N2CE_OK;
}

/* The first 1,000 of a random order. */
static n2ce_status draw_rows(n2_design_bench *b, const materials *m, double *x, double *y) {
    const n2_stream stream = {b->seed, STREAM, 0};
    size_t *order = n2_alloc(b->ctx, ROWS, sizeof *order);
    if (!order) return N2CE_ENOMEM;
    for (size_t i = 0; i < ROWS; i++) order[i] = i;
    for (size_t i = 0; i < ORACLE_ROWS; i++) {
        const size_t k = i + n2_random_below(stream, i, ROWS - i), row = order[k];
        order[k] = order[i];
        memcpy(x + i * ELEMENTS, m->x + row * ELEMENTS, ELEMENTS * sizeof *x);
        y[i] = m->y[row];
    }
    n2_free(b->ctx, order);
    return N2CE_OK;
}

static n2ce_status fit_oracle(n2_design_bench *b, const materials *m) {
    const n2_forest_options o = {TREES, DEPTH, b->seed};
    double *x = n2_alloc(b->ctx, ORACLE_ROWS * (ELEMENTS + 1), sizeof *x);
    n2_forest *forest = NULL;
    if (!x) return N2CE_ENOMEM;
    double *y = x + ORACLE_ROWS * ELEMENTS;
    n2ce_status status = draw_rows(b, m, x, y);
    if (status == N2CE_OK) status = n2_forest_fit(b->ctx, x, y, ORACLE_ROWS, ELEMENTS, &o, &forest);
    b->oracle = forest;
    n2_free(b->ctx, x);
    return status;
}

static n2ce_status begin(n2_design_bench *b, uint64_t seed) {
    const materials *m = b->data;
    (void)seed;
    N2_TRY(set_space(b, m));
    N2_TRY(take_offline(b, m));
    return fit_oracle(b, m);
}

static n2ce_status score(const n2_design_bench *b, const double *x, size_t rows, double *y) {
    return n2_forest_predict(b->oracle, x, rows, y);
}

static void end(n2_design_bench *b) { n2_forest_free(b->oracle); }

const n2_design_task n2_superconductor_task = {
    .name = "superconductor",
    .summary = "86 amounts of elements for a high critical temperature",
    .folder = "superconductor",
    .low = 0.00021,
    .high = 185,
    .queries = 256,
    .open = open_table,
    .begin = begin,
    .score = score,
    .end = end,
};
