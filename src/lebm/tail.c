#include "tail.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

n2ce_status n2_tail_of(n2_arena *arena, const double *x, size_t n, size_t stride, n2_tail *out) {
    *out = (n2_tail){.x = n2_arena_alloc(arena, n, sizeof *out->x), .n = n};
    if (!out->x) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        out->x[i] = x[i * stride];
        if (!isfinite(out->x[i]))
            return n2_fail(arena->ctx, N2CE_EDATA, "Number %zu of a sample is not finite.", i);
    }
    qsort(out->x, n, sizeof *out->x, by_value);
    const size_t above = n / 10;
    double excess = 0;
    out->from = out->x[n - 1 - above];
    for (size_t i = n - above; i < n; i++) excess += out->x[i] - out->from;
    out->scale = above && excess > 0 ? excess / (double)above : 0;
    return N2CE_OK;
}

/* Of the sample, how many are below x, and between two of them the share of the way. */
static double place_in(const n2_tail *t, double x) {
    size_t low = 0, high = t->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (t->x[middle] < x)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || low == t->n) return (double)low;
    const double gap = t->x[low] - t->x[low - 1];
    return (double)low - 1 + (x - t->x[low - 1]) / gap;
}

double n2_tail_nats(const n2_tail *t, double x) {
    const double n = (double)t->n, above = (double)(t->n / 10);
    if (isnan(x)) return x;
    if (x > t->from && t->scale > 0) return -log((above + 1) / (n + 1)) + (x - t->from) / t->scale;
    return -log((n - fmin(place_in(t, fmin(x, t->from)), n - above - 1)) / (n + 1));
}
