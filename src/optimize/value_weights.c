#include "value_weights.h"

#include "design/design_space.h"

#include <math.h>
#include <string.h>

enum { BINS = 20 };
static const double MOST = 5, LEAST_TAU = 1e-3, RARE = 1e-3;

static size_t bin_of(double y, double low, double high) {
    const double at = (y - low) / (high - low) * BINS;
    return at < BINS ? (size_t)at : BINS - 1;
}

n2ce_status n2_value_weights(n2_arena *arena, const n2_code *code, double tau, double *weight) {
    const size_t n = code->rows;
    double *y = n2_arena_alloc(arena, n, sizeof *y), share[BINS] = {0}, w[BINS], sum = 0;
    if (!y) return N2CE_ENOMEM;
    memcpy(y, code->y, n * sizeof *y);
    const double edge = n2_percentile(y, n, 90), low = y[0], high = y[n - 1];
    if (!(tau > 0)) tau = fmax(fabs(edge - high), LEAST_TAU);
    for (size_t i = 0; i < n && high > low; i++)
        share[bin_of(code->y[i], low, high)] += 1 / (double)n;
    for (size_t b = 0; b < BINS; b++) {
        const double upper = low + (high - low) * (double)(b + 1) / BINS;
        sum += w[b] = exp((upper - high) / tau) * share[b] / (share[b] + RARE);
    }
    for (size_t i = 0; i < n; i++) {
        const size_t b = high > low ? bin_of(code->y[i], low, high) : 0;
        weight[i] = high > low ? fmin(MOST, w[b] / sum / share[b]) : 1;
    }
    return N2CE_OK;
}
