/* Directions in which rows are least like a normal distribution: independent components by
 * FastICA (Hyvarinen 1999; symmetric, with the logarithm of cosh). Where columns are mixtures of
 * others that are independent, as steps of a walk are hidden in where it is, these are found. */
#ifndef N2_DIRECTIONS_H
#define N2_DIRECTIONS_H

#include "base/ctx.h"

enum { N2_MOST_DIRECTIONS = 24 };

/* w: d x d, each row the weights of a direction in which n rows of x have variance 1, about a mean
 * that is theirs. *found is false, and w garbage, where there are none: a column that is a function
 * of others, too few rows, d above N2_MOST_DIRECTIONS. Fails with N2CE_ENOMEM alone. */
n2ce_status n2_find_directions(n2ce_ctx *ctx, const double *x, size_t n, size_t d, double *w,
                               bool *found);

#endif
