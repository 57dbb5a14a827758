#include "reliability.h"

#include "base/numerics.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Where tenths of each sample's log ratios end, the mean of both; ends that are equal are one. */
static size_t find_ends(const n2_scores *s, double *const sorted[2], double *end) {
    size_t n = 0;
    for (size_t k = 1; k < N2_RELIABILITY_BINS; k++) {
        double at = 0;
        for (size_t side = 0; side < 2; side++)
            at += 0.5 * sorted[side][s->n[side] * k / N2_RELIABILITY_BINS];
        if (n == 0 || at > end[n - 1]) end[n++] = at;
    }
    end[n++] = N2_INFINITY;
    return n;
}

static size_t bin_of(const double *end, double f) {
    size_t k = 0;
    while (!(f < end[k])) k++;
    return k;
}

static void fill(const n2_scores *s, const double *end, n2_reliability *out) {
    double weight[N2_RELIABILITY_BINS] = {0}, share[N2_RELIABILITY_BINS] = {0};
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < s->n[side]; i++) {
            const double f = s->f[side][i];
            const size_t k = isfinite(f) ? bin_of(end, f) : 0;
            *(side ? &out->bin[k].num : &out->bin[k].den) += 1;
            weight[k] += 1 / (double)s->n[side];
            share[k] += n2_sigmoid(f) / (double)s->n[side];
        }
    for (size_t k = 0; k < out->bins; k++) {
        n2_reliability_bin *b = &out->bin[k];
        const double p = weight[k] > 0 ? share[k] / weight[k] : 0.5,
                     rows = (double)s->n[1] / (double)s->n[0];
        b->predicted = log(p / (1 - p));
        b->observed = log((b->num + 0.5) / (b->den + 0.5) / rows);
        b->error = sqrt(1 / (b->num + 0.5) + 1 / (b->den + 0.5));
    }
}

n2ce_status n2_reliability_of(const n2_scores *s, n2_reliability *out) {
    double *sorted[2] = {NULL, NULL}, end[N2_RELIABILITY_BINS], unused;
    *out = (n2_reliability){0};
    out->mean_weight = n2_estimate_mean_ratio(s, 0, &out->share);
    out->mean_inverse = n2_estimate_mean_ratio(s, 1, &unused);
    bool room = true;
    for (size_t side = 0; side < 2 && room; side++) {
        sorted[side] = n2_alloc(s->ctx, s->n[side], sizeof *sorted[side]);
        room = sorted[side];
        for (size_t i = 0; i < s->n[side] && room; i++) sorted[side][i] = s->f[side][i];
        if (room) qsort(sorted[side], s->n[side], sizeof *sorted[side], ascending);
    }
    if (room) {
        out->bins = find_ends(s, sorted, end);
        fill(s, end, out);
    }
    for (size_t side = 0; side < 2; side++) n2_free(s->ctx, sorted[side]);
    return room ? N2CE_OK : N2CE_ENOMEM;
}

double n2_reliability_gap(const n2_reliability *r) {
    double sum = 0;
    for (size_t k = 0; k < r->bins; k++) {
        const n2_reliability_bin *b = &r->bin[k];
        const double off = b->observed - b->predicted;
        sum += fmax(off * off - b->error * b->error, 0);
    }
    return r->bins > 0 ? sqrt(sum / (double)r->bins) : 0;
}
