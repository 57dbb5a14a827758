/* A small network as a classifier, as people fit it without thinking: scikit-learn's MLPClassifier
 * on standardised columns, two layers of 64 rectified units, the logistic loss with a little weight
 * decay, Adam with batches of 200 rows. A tenth of the rows is held out, and training ends when
 * their loss has not fallen for ten epochs, or after 200; the best weights are kept. */
#ifndef N2_SMALL_NET_H
#define N2_SMALL_NET_H

#include "base/ctx.h"

/* Log odds of the label 1 against 0 at n_at rows, learned from `rows` rows of x, row-major, in an
 * order of their own. Fails with N2CE_ENOMEM, N2CE_ECANCELED. */
n2ce_status n2_small_net_odds(n2ce_ctx *ctx, const double *x, const double *label, size_t rows,
                              size_t cols, const double *at, size_t n_at, double *odds);

#endif
