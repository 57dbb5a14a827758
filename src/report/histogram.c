#include "histogram.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- bins ------------------------------------------------------------------ */

enum { LOOKED_AT = 4096 };

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Widens [range[0], range[1]] to the middle 99 % of a sample. */
static void include_middle(const double *x, size_t n, double range[2]) {
    double some[LOOKED_AT];
    const size_t step = (n + LOOKED_AT - 1) / LOOKED_AT;
    size_t m = 0;
    for (size_t i = 0; i < n; i += step)
        if (isfinite(x[i])) some[m++] = x[i];
    if (m == 0) return;
    qsort(some, m, sizeof *some, by_size);
    range[0] = fmin(range[0], some[m / 200]);
    range[1] = fmax(range[1], some[m - 1 - m / 200]);
}

/* 1, 2 or 5 times a power of ten, near x: at least 0.62 and at most 1.6 times as large. */
static double rounded(double x) {
    const double power = pow(10, floor(log10(x))), digits = x / power;
    return power * (digits < 1.5 ? 1 : digits < 3.2 ? 2 : digits < 7.1 ? 5 : 10);
}

n2_bins n2_bins_between(double low, double high, size_t target) {
    static const double LEAST = 1e-6; /* of the values' size: narrower is one value */
    if (!isfinite(low) || !isfinite(high)) low = high = 0;
    const double least = LEAST * fmax(1, fmax(fabs(low), fabs(high)));
    if (!(high - low > least)) {
        const double middle = 0.5 * (low + high);
        low = middle - 0.5 * fmax(1, least);
        high = middle + 0.5 * fmax(1, least);
    }
    n2_bins b = {.width = rounded((high - low) / (double)target)};
    b.low = b.width * floor(low / b.width + 1e-9);
    b.n = (size_t)fmax(1, ceil((high - b.low) / b.width - 1e-9));
    if (b.low + b.width * (double)b.n <= high) b.n++; /* the last value belongs to it, too */
    if (b.n > N2_MOST_BINS) b.n = N2_MOST_BINS;
    return b;
}

n2_bins n2_bins_for(const double *const x[], const size_t n[], size_t samples) {
    double range[2] = {HUGE_VAL, -HUGE_VAL};
    size_t least = SIZE_MAX;
    for (size_t k = 0; k < samples; k++) {
        include_middle(x[k], n[k], range);
        least = n[k] < least ? n[k] : least;
    }
    const double target = 2 * cbrt((double)least);
    return n2_bins_between(range[0], range[1],
                           (size_t)(target < 10   ? 10
                                    : target > 50 ? 50
                                                  : target));
}

/* ---- counts ---------------------------------------------------------------- */

void n2_histogram_add(n2_histogram *h, const n2_bins *bins, double x) {
    const double at = floor((x - bins->low) / bins->width);
    h->rows++;
    if (at < 0) {
        h->below++;
    } else if (at < (double)bins->n) {
        h->count[(size_t)at]++;
        h->sum[(size_t)at] += x;
    } else {
        h->above++; /* NaN too */
    }
}

n2_histogram n2_histogram_of(const n2_bins *bins, const double *x, size_t n) {
    n2_histogram h = {0};
    for (size_t i = 0; i < n; i++) n2_histogram_add(&h, bins, x[i]);
    return h;
}

size_t n2_histogram_steps(const n2_histogram *h, const n2_bins *bins, double *x, double *y) {
    const double per_row = h->rows ? 1 / ((double)h->rows * bins->width) : 0;
    size_t n = 0;
    x[n] = bins->low;
    y[n++] = 0;
    for (size_t i = 0; i < bins->n; i++)
        for (size_t end = 0; end < 2; end++) {
            x[n] = bins->low + bins->width * (double)(i + end);
            y[n++] = (double)h->count[i] * per_row;
        }
    x[n] = bins->low + bins->width * (double)bins->n;
    y[n++] = 0;
    return n;
}
