/* What a practitioner would do instead: nearest neighbours, and classifiers. They give a
 * number and no interval. */
#ifndef N2_RATIO_PEERS_H
#define N2_RATIO_PEERS_H

#include "base/ctx.h"

/* Rows of two samples; with dx > 0 of a joint sample alone (no den), whose first dx columns are x.
 */
typedef struct n2_peer_rows {
    const double *num, *den;
    size_t n_num, n_den, d, dx;
} n2_peer_rows;

/* The KL divergence or the mutual information, nats. Fails with N2CE_ENOMEM, N2CE_ECANCELED. */
typedef n2ce_status n2_peer_fn(n2ce_ctx *ctx, const n2_peer_rows *rows, double *out);

/* KL of Wang, Kulkarni and Verdu (2009), 5 neighbours; MI of Kraskov, Stoegbauer and Grassberger's
 * first estimator (2004), 3 neighbours. Columns are standardised; at most 10,000 rows a side. */
n2_peer_fn n2_peer_neighbours;

/* Mean log odds of the numerator's rows by boosted trees (ratio/boosting.h) that learn labels
 * by the logistic loss from the other four fifths of the rows; the denominator of a joint sample is
 * one shuffle of y. */
n2_peer_fn n2_peer_boosting;

/* The same by a small network (small_net.h). */
n2_peer_fn n2_peer_mlp;

#endif
