/* Gradient-boosted trees as people fit them without thinking: scikit-learn's
 * HistGradientBoostingRegressor and HistGradientBoostingClassifier with their defaults. 100 trees
 * of at most 31 leaves with at least 20 rows each, grown leaf by leaf where the loss falls most, at
 * a rate of 0.1, over at most 255 bins a column. Unlike there, no rows are held out where there are
 * more than 10,000. */
#ifndef N2_BOOSTING_H
#define N2_BOOSTING_H

#include "base/ctx.h"

typedef struct n2_boosting n2_boosting;

/* What is predicted: the value, by squared errors; or the log odds of the value 1 against 0, by the
 * logistic loss, a Newton step a leaf. */
typedef enum n2_boosting_loss { N2_BOOSTING_SQUARES, N2_BOOSTING_LOGISTIC } n2_boosting_loss;

/* x is rows x cols, row-major. Fails with N2CE_ENOMEM or N2CE_ECANCELED; *out is then NULL. The
 * same bytes for any number of threads. */
n2ce_status n2_boosting_fit(n2ce_ctx *ctx, n2_boosting_loss loss, const double *x, const double *y,
                            size_t rows, size_t cols, n2_boosting **out);
void n2_boosting_free(n2_boosting *b); /* NULL is fine */

void n2_boosting_predict(const n2_boosting *b, const double *x, size_t rows, double *y);

#endif
