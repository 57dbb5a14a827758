/* What is usual: upper tail probabilities by a sample, beyond its largest value too. */
#ifndef N2_TAIL_H
#define N2_TAIL_H

#include "base/arena.h"

typedef struct n2_tail {
    double *x; /* the sample, rising */
    size_t n;
    double from, scale; /* above `from`, the 90th percentile, the tail is exponential */
} n2_tail;

/* From n >= 20 finite numbers, stride apart; memory of the arena. Fails with N2CE_EDATA if one is
 * not finite, N2CE_ENOMEM. */
n2ce_status n2_tail_of(n2_arena *arena, const double *x, size_t n, size_t stride, n2_tail *out);

/* -ln P(X >= x) in nats, which rises with x: nearly 0 below the sample, ln 10 where a tenth of it
 * is above, and from there by 1 for every mean excess. NaN for NaN. */
double n2_tail_nats(const n2_tail *tail, double x);

#endif
