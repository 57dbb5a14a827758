/* How the parts of a log ratio are put together:
 *
 *     f = base + smooth u + network v + trees w + constant
 *
 * with weights that minimise the NCE loss (M = 1, bounded for bounded parts) of rows that the parts
 * have not seen, all folds together. A part that finds nothing gets the weight 0, one that is too
 * bold a weight below 1. */
#ifndef N2_BLEND_H
#define N2_BLEND_H

#include "base/ctx.h"

enum { N2_BLEND_PARTS = 4 }; /* base, smooth part, network, trees */

typedef struct n2_blend {
    double weight[N2_BLEND_PARTS];
    double constant;
} n2_blend;

/* Log ratios of rows by each part, of the denominator (0) and the numerator (1). NULL: there is
 * no such part. */
typedef struct n2_blend_rows {
    const double *part[2][N2_BLEND_PARTS];
    size_t n[2];
    size_t independent[2]; /* rows that they are made of: of pairs there are fewer */
} n2_blend_rows;

/* The base's weight stays 1 unless `all`. Weights are never below 0. */
n2_blend n2_blend_fit(const n2_blend_rows *rows, bool all);

/* By how much the loss of b is below that of a, and the standard error of that. */
typedef struct n2_gain {
    double value, error;
} n2_gain;
n2_gain n2_blend_gain(const n2_blend_rows *rows, const n2_blend *a, const n2_blend *b);

/* The log ratio of row i of a side. */
double n2_blend_at(const n2_blend_rows *rows, const n2_blend *b, size_t side, size_t i);

#endif
