#include "calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How many of n sorted numbers are below x; `or_equal`: or equal. */
static size_t count_below(const double *sorted, size_t n, double x, bool or_equal) {
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (sorted[middle] < x || (or_equal && sorted[middle] <= x))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- tails --------------------------------------------------------------- */

/* The exponential's mean by its median: one huge score does not move it. Where the upper tenth is
 * one value, by the spread of all. */
static double tail_mean(const n2_tail *t) {
    const size_t above = t->n - 1 - t->last;
    const double from = t->sorted[t->last];
    const double median = above > 0 ? t->sorted[t->last + (above + 1) / 2] - from : 0;
    if (median > 0) return median / log(2);
    const double spread = from - t->sorted[t->n / 4];
    return spread > 0 ? spread : 1;
}

n2ce_status n2_tail_new(n2ce_ctx *ctx, const double *scores, size_t n, n2_tail *out) {
    *out = (n2_tail){.sorted = n2_alloc(ctx, n, sizeof *scores), .n = n};
    if (!out->sorted) return N2CE_ENOMEM;
    memcpy(out->sorted, scores, n * sizeof *scores);
    qsort(out->sorted, n, sizeof *scores, ascending);
    out->last = n * 9 / 10 > 0 ? n * 9 / 10 - 1 : 0;
    out->mean = tail_mean(out);
    return N2CE_OK;
}

void n2_tail_free(n2ce_ctx *ctx, n2_tail *t) {
    n2_free(ctx, t->sorted);
    *t = (n2_tail){0};
}

static double minus_log_share(const n2_tail *t, size_t below) {
    return -log(((double)(t->n - below) + 0.5) / ((double)t->n + 1));
}

double n2_tail_at(const n2_tail *t, double score) {
    const double from = t->sorted[t->last];
    if (score <= from) return minus_log_share(t, count_below(t->sorted, t->n, score, false));
    return minus_log_share(t, t->last + 1) + (score - from) / t->mean;
}

/* ---- p-values ------------------------------------------------------------ */

size_t n2_conformal_rank(const double *sorted, size_t n, double score, double draw) {
    return n2_rank_of_copies(sorted, n, score, draw, 1);
}

size_t n2_rank_of_copies(const double *sorted, size_t n, double score, double draw, size_t copies) {
    const size_t below = count_below(sorted, n, score, false);
    const size_t not_above = count_below(sorted, n, score, true);
    const size_t alike = not_above - below;
    return n - not_above + (size_t)ceil(draw * (double)(alike + copies));
}

size_t n2_flagged_rank(const uint64_t *count, size_t ranks, double fdr) {
    uint64_t rows = 0, so_far = 0;
    size_t flagged = 0;
    for (size_t i = 1; i <= ranks; i++) rows += count[i];
    for (size_t i = 1; i <= ranks; i++) {
        so_far += count[i];
        if ((double)i * (double)rows <= fdr * (double)ranks * (double)so_far) flagged = i;
    }
    return flagged;
}
