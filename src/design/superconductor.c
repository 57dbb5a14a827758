/* Superconductor: 86 amounts of elements and the critical temperature in kelvin of 21,263
 * materials; offline those up to the 80th percentile.
 *
 * The oracle is a random forest of 100 trees fitted to 1,000 rows of the full table, drawn anew
 * for every seed; it disagrees with the labels, so that offline designs score otherwise than they
 * did. The bounds are the full table's: as a forest is constant beyond its rows, moving a design
 * into them never changes its score. */
#include "forest_oracle.h"

#include <math.h>

enum { ROWS = 21263, ELEMENTS = 86, ORACLE_ROWS = 1000 };
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

static n2ce_status begin(n2_design_bench *b, uint64_t seed) {
    const materials *m = b->data;
    (void)seed;
    N2_TRY(set_space(b, m));
    N2_TRY(n2_offline_up_to(b, m->x, m->y, ROWS, 80, 0, STREAM));
    return n2_forest_oracle_fit(b, &(n2_judged_rows){m->x, m->y, ROWS, ELEMENTS}, ORACLE_ROWS,
                                STREAM);
}

static n2ce_status score(const n2_design_bench *b, const double *x, size_t rows, double *y) {
    return n2_forest_predict(b->oracle, x, rows, y);
}

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
    .end = n2_forest_oracle_end,
};
