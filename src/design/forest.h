/* A random forest for regression: the oracle of Superconductor, and small enough to fit in a
 * second.
 *
 * As scikit-learn's RandomForestRegressor with all features at every split: every tree is grown on
 * a bootstrap sample until its leaves have one value, a split is the one that lowers the squared
 * error most (of equal ones the first in a random order of the features), halfway between
 * two neighbouring values. A prediction is the mean over the trees. Beyond the rows it was fitted
 * to it is constant along every axis. */
#ifndef N2_FOREST_H
#define N2_FOREST_H

#include "base/ctx.h"

typedef struct n2_forest n2_forest;

typedef struct n2_forest_options {
    size_t trees, depth; /* depth of the deepest leaf */
    uint64_t seed;
} n2_forest_options;

/* x is rows x cols, row-major; at most 65,535 rows. Fails with N2CE_EINVAL or N2CE_ENOMEM; *out is
 * then NULL. The same bytes for any number of threads. */
n2ce_status n2_forest_fit(n2ce_ctx *ctx, const double *x, const double *y, size_t rows, size_t cols,
                          const n2_forest_options *o, n2_forest **out);
void n2_forest_free(n2_forest *forest); /* NULL is fine */

/* Predictions of rows. Fails with N2CE_ENOMEM only. */
n2ce_status n2_forest_predict(const n2_forest *forest, const double *x, size_t rows, double *y);

size_t n2_forest_nodes(const n2_forest *forest); /* of all trees */

#endif
