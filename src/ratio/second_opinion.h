/* A second opinion of a log ratio, by other means: do the nearest rows tell more than it does?
 *
 * A row's neighbours, ten of the pooled samples, more where one of these is much larger, vote for
 * the sample that it is from; of rows as far away chance decides which. The votes are a log ratio
 * of their own. It is a coarse one, so that it predicts labels better than the fitted one says that
 * there is something which the fit has not found: a fine pattern, say. */
#ifndef N2_SECOND_OPINION_H
#define N2_SECOND_OPINION_H

#include "blend.h"
#include "gauss.h"

/* Rows of features and their fitted log ratios, of the denominator and the numerator. */
typedef struct n2_opinion_rows {
    n2_rows_view rows[2];
    const double *f[2];
} n2_opinion_rows;

typedef struct n2_opinion {
    n2_gain gain;    /* by how much the votes lower the NCE loss below that of f */
    double alone[2]; /* share of a side's rows whose neighbours are all of their own side */
} n2_opinion;

/* At most 1500 rows a side are asked, the first ones. Fails with N2CE_ENOMEM. */
n2ce_status n2_second_opinion(n2ce_ctx *ctx, const n2_opinion_rows *of, n2_opinion *out);

#endif
