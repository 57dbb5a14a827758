/* The learned part: ln p(x)/q(x), where q is the normal rows smoothed and widened.
 *
 * A reference row is a normal row plus Gaussian noise along all features, of a size that is drawn
 * for each between a tenth of and three standard deviations: from nearly the data to nearly
 * nothing of it. What is rare among normal rows and common nearby has a low ratio: rows off a
 * curve, between two clusters, against a correlation. The ratio is N2CE's: Gaussians in closed
 * form, and a network on what they miss, telescoped where they are far apart (ratio/critic.h).
 * Features are first bent, x to asinh x, so that a row a thousand standard deviations out is where
 * reference rows are; more than 64 of them are projected at random on 64. */
#ifndef N2_LEARNED_H
#define N2_LEARNED_H

#include "ratio/critic.h"

enum { N2_LEARNED_WIDTH = 64 };

typedef struct n2_learned_options {
    uint64_t seed;
    bool network;                       /* false: the Gaussian part alone */
    n2_device_choice *choice;           /* NULL: the processor */
    const n2_critic_listener *listener; /* or NULL */
} n2_learned_options;

typedef struct n2_learned {
    n2ce_ctx *ctx;
    size_t d, width;    /* features in, and what is left of them */
    double *projection; /* d x width, or NULL */
    n2_gauss *base;
    n2_critic *critic; /* NULL: nothing to learn from so few rows */
    n2_critic_options shape;
    n2_critic_record record;
} n2_learned;

/* Learns from the n x d rows of x without rows held[0] .. held[1] - 1. Fails as n2_critic_train
 * does. */
n2ce_status n2_learned_new(n2ce_ctx *ctx, const double *x, size_t n, size_t d, const size_t held[2],
                           const n2_learned_options *o, n2_learned **out);
void n2_learned_free(n2_learned *l); /* NULL is fine */

/* ln q/p of n rows: larger is odder. */
n2ce_status n2_learned_score(n2_learned *l, const double *x, size_t n, double *score);

#endif
