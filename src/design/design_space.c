#include "design_space.h"

#include "base/numerics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double uniform_in(const n2_factor *f, double u) {
    const double span = f->high - f->low;
    switch (f->kind) {
    case N2_CONTINUOUS:
        return f->low + u * span;
    case N2_WHOLE:
        return fmin(f->low + floor(u * (span + 1)), f->high);
    case N2_CATEGORY:
        break;
    }
    return fmin(floor(u * (double)f->levels), (double)f->levels - 1);
}

void n2_space_uniform(const n2_space *space, n2_stream stream, size_t rows, double *x) {
    for (size_t i = 0; i < rows * space->n; i++) {
        float u;
        n2_fill_uniform(stream, i, 1, &u);
        x[i] = uniform_in(&space->factor[i % space->n], (double)u);
    }
}

bool n2_space_move_inside(const n2_space *space, double *design) {
    bool inside = true;
    for (size_t c = 0; c < space->n; c++) {
        const n2_factor *f = &space->factor[c];
        const bool category = f->kind == N2_CATEGORY;
        const double low = category ? 0 : f->low, high = category ? (double)f->levels - 1 : f->high;
        inside &= design[c] >= low && design[c] <= high;
        design[c] = fmax(low, fmin(high, design[c])); /* NaN becomes high */
        if (f->kind != N2_CONTINUOUS) design[c] = round(design[c]);
    }
    return inside;
}

void n2_proposals_settle(const n2_space *space, n2_proposals *out) {
    size_t inside = 0;
    if (out->unmoved) memcpy(out->unmoved, out->x, out->rows * space->n * sizeof *out->x);
    for (size_t i = 0; i < out->rows; i++)
        inside += n2_space_move_inside(space, out->x + i * space->n);
    out->inside = (double)inside / (double)out->rows;
}

/* ---- ranking --------------------------------------------------------------------------------- */

typedef struct ranked {
    double y;
    size_t row;
} ranked;

static int by_rank(const void *a, const void *b) {
    const ranked *p = a, *q = b;
    if (p->y != q->y) return p->y > q->y ? -1 : 1;
    return p->row < q->row ? -1 : p->row > q->row;
}

n2ce_status n2_designs_best(n2ce_ctx *ctx, const n2_designs *designs, size_t k, size_t *row) {
    ranked *order = n2_alloc(ctx, designs->rows, sizeof *order);
    if (!order) return N2CE_ENOMEM;
    for (size_t i = 0; i < designs->rows; i++) order[i] = (ranked){designs->y[i], i};
    qsort(order, designs->rows, sizeof *order, by_rank);
    for (size_t i = 0; i < k; i++) row[i] = order[i % designs->rows].row;
    n2_free(ctx, order);
    return N2CE_OK;
}

/* qsort has no argument for the length, so a key carries it. */
typedef struct key {
    const double *x;
    size_t columns;
} key;

static int by_design(const void *a, const void *b) {
    const key *p = a, *q = b;
    for (size_t c = 0; c < p->columns; c++)
        if (p->x[c] != q->x[c]) return p->x[c] < q->x[c] ? -1 : 1;
    return 0;
}

n2ce_status n2_designs_distinct(n2ce_ctx *ctx, const double *x, size_t rows, size_t columns,
                                size_t *distinct) {
    key *order = n2_alloc(ctx, rows, sizeof *order);
    if (!order) return N2CE_ENOMEM;
    for (size_t i = 0; i < rows; i++) order[i] = (key){x + i * columns, columns};
    qsort(order, rows, sizeof *order, by_design);
    *distinct = rows > 0;
    for (size_t i = 1; i < rows; i++) *distinct += by_design(&order[i - 1], &order[i]) != 0;
    n2_free(ctx, order);
    return N2CE_OK;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double n2_percentile(double *values, size_t n, double p) {
    qsort(values, n, sizeof *values, by_value);
    const double at = p / 100 * (double)(n - 1), below = floor(at);
    const size_t i = (size_t)below;
    return i + 1 < n ? values[i] + (values[i + 1] - values[i]) * (at - below) : values[i];
}

double n2_decimals(const double *x, size_t n) {
    for (double per = 1; per < 2e6; per *= 10) {
        bool all = true;
        for (size_t i = 0; i < n && all; i++) {
            const double scaled = x[i] * per;
            all = fabs(scaled - floor(scaled + 0.5)) <= 1e-6 && fabs(scaled) < 1e12;
        }
        if (all) return 1 / per;
    }
    return 0;
}

size_t n2_keep_up_to(double limit, size_t columns, double *x, double *y, size_t rows) {
    size_t kept = 0;
    for (size_t i = 0; i < rows; i++) {
        if (y[i] > limit) continue;
        memmove(x + kept * columns, x + i * columns, columns * sizeof *x);
        y[kept++] = y[i];
    }
    return kept;
}

/* ---- distances ------------------------------------------------------------------------------- */

double n2_space_distance(const n2_space *s, const double *a, const double *b, double most) {
    double sum = 0;
    for (size_t j = 0; j < s->n && sum < most; j++) {
        const n2_factor *f = &s->factor[j];
        const double range = f->high - f->low;
        const double by = f->kind == N2_CATEGORY ? (double)(a[j] != b[j])
                          : range > 0            ? (a[j] - b[j]) / range
                                                 : 0;
        sum += by * by;
    }
    return sum;
}

void n2_space_nearest(const n2_space *s, const double *from, size_t n, const double *to, size_t m,
                      bool self, double *distance, size_t *nearest) {
    for (size_t i = 0; i < n; i++) {
        double least = N2_INFINITY;
        for (size_t k = 0; k < m; k++) {
            if (self && k == i) continue;
            const double d = n2_space_distance(s, from + i * s->n, to + k * s->n, least);
            if (!(d < least)) continue;
            least = d;
            if (nearest) nearest[i] = k;
        }
        distance[i] = sqrt(least / (double)s->n);
    }
}
