/* Langevin dynamics on any log density that is given as graph nodes.
 *
 *     x <- x + (s^2 / 2) score(x) + s N(0, I)
 *
 * Unadjusted, its stationary distribution is a little too wide: for N(0, I) the variance is
 * 1 / (1 - s^2/4), 1.0417 at s = 0.4. With Metropolis' test of every move (the adjusted
 * form) it is exact. */
#ifndef N2_LANGEVIN_H
#define N2_LANGEVIN_H

#include "engine/graph.h"

/* A log density for each row of x: [n x d] in, [n x 1] out, up to a constant. */
typedef n2_node n2_log_density(n2_graph *g, n2_node x, const void *model);

/* The next place of rows x [n x d] with scores [n x d]. */
#define n2_langevin_move(g, ...) N2_BUILT(g, n2_build_langevin_move(g, __VA_ARGS__))
n2_node n2_build_langevin_move(n2_graph *g, n2_node x, n2_node score, double step);

/* The score of a density at x, and what it is there: [n x d], [n x 1]. */
#define n2_score(g, ...) N2_BUILT(g, n2_build_score(g, __VA_ARGS__))
n2_node n2_build_score(n2_graph *g, n2_node x, n2_log_density *density, const void *model,
                       n2_node *value);

/* One step of all rows of a tensor, as an update of it. `metropolis`: refuse a move with the
 * probability that makes the chain exact. The result is the mean log density before the
 * step, which is watched. */
#define n2_langevin_step(g, ...) N2_BUILT(g, n2_build_langevin_step(g, __VA_ARGS__))
n2_node n2_build_langevin_step(n2_graph *g, n2_tensor *rows, n2_log_density *density,
                               const void *model, double step, bool metropolis);

#endif
