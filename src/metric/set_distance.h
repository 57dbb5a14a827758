/* All distances of two sets, and what they are for two sets of one distribution. */
#ifndef N2_SET_DISTANCE_H
#define N2_SET_DISTANCE_H

#include "metric.h"

/* Fewer pictures than this cannot be compared. */
enum { N2_SET_LEAST = 10 };

typedef struct n2_set_distance {
    n2_frechet frechet;
    n2_kid kid;
    n2_precision_recall neighbours;
} n2_set_distance;

/* k: neighbours of precision and recall. Fails as the parts do. */
n2ce_status n2_set_distance_of(n2ce_ctx *ctx, const n2_feature_rows *real,
                               const n2_feature_rows *made, size_t k, uint64_t seed,
                               n2_set_distance *out);

/* The floor: one half of n rows of d numbers against the other, of an odd number without the last.
 * Rows are dealt by the seed, and stand in the order of the deal afterwards. */
n2ce_status n2_set_floor(n2ce_ctx *ctx, float *x, size_t n, size_t d, size_t k, uint64_t seed,
                         n2_set_distance *out);

#endif
