#include "base/pool.h"
#include "table.h"

enum { RANGE_PARTS = 64 }; /* of the rows */

typedef struct range_job {
    const n2_table *t;
    n2_extent *r; /* of all columns, for every part */
} range_job;

static void widen(n2_extent *r, double min, double max) {
    r->min = min < r->min ? min : r->min;
    r->max = max > r->max ? max : r->max;
}

/* Row by row: a column by itself is scattered over all of memory. A part without rows has the
 * range of the first row. */
static void range_of_part(void *arg, size_t item, int worker) {
    (void)worker;
    const range_job *job = arg;
    const n2_table *t = job->t;
    const size_t first = t->rows * item / RANGE_PARTS, end = t->rows * (item + 1) / RANGE_PARTS;
    n2_extent *r = job->r + item * t->cols;
    const double *start = t->x + (first < end ? first : 0) * t->cols;
    for (size_t c = 0; c < t->cols; c++) r[c] = (n2_extent){start[c], start[c]};
    for (size_t i = first; i < end; i++)
        for (size_t c = 0; c < t->cols; c++)
            widen(&r[c], t->x[i * t->cols + c], t->x[i * t->cols + c]);
}

n2ce_status n2_table_ranges(const n2_table *t, n2_extent **out) {
    n2_extent *r = *out = n2_alloc(t->ctx, RANGE_PARTS * t->cols, sizeof *r);
    if (!r) return N2CE_ENOMEM;
    range_job job = {t, r};
    N2_TRY(n2_parallel_for(t->ctx, RANGE_PARTS, range_of_part, &job));
    for (size_t part = 1; part < RANGE_PARTS; part++)
        for (size_t c = 0; c < t->cols; c++)
            widen(&r[c], r[part * t->cols + c].min, r[part * t->cols + c].max);
    return N2CE_OK;
}
