/* What the files of the two-sample test share. */
#ifndef N2_TWO_SAMPLE_ROWS_H
#define N2_TWO_SAMPLE_ROWS_H

#include "two_sample.h"

/* Both samples as columns of comparable numbers, in an order that has nothing to do with labels. */
typedef struct n2_ts_rows {
    size_t n, d;
    double *z; /* n x d */
    bool *num; /* which rows are of the numerator's sample */
} n2_ts_rows;

/* Memory of the context, to be freed by the caller. */
n2ce_status n2_ts_rows_new(n2ce_ctx *ctx, const n2_two_sample_data *data, uint64_t seed,
                           n2_ts_rows *out, size_t used[2]);

#endif
