/* Stein variational gradient descent: particles move along
 *
 *     phi_i = 1/n sum_j [ k(x_j, x_i) score(x_j) + grad_{x_j} k(x_j, x_i) ]
 *
 * with k = exp(-|x - y|^2 / (2 h^2)) and the median heuristic h^2 = med^2 / (2 ln(n+1)),
 * med the median distance of two particles (Liu and Wang, 2016), and h at least 1/1000, so that
 * particles may coincide. One particle moves along its own
 * score. */
#ifndef N2_SVGD_H
#define N2_SVGD_H

#include "langevin.h"

/* phi for particles x [n x d] and scores [n x d]. */
#define n2_svgd_direction(g, ...) N2_BUILT(g, n2_build_svgd_direction(g, __VA_ARGS__))
n2_node n2_build_svgd_direction(n2_graph *g, n2_node x, n2_node score);

/* One step of all particles of a tensor along phi, by Adam with this rate, for a log density
 * as in langevin.h. Moments and counter become tensors NAME.m, NAME.v and NAME.step of the
 * store; zero them to start anew. The result is the mean log density before the step, which
 * is watched. */
#define n2_svgd_step(g, ...) N2_BUILT(g, n2_build_svgd_step(g, __VA_ARGS__))
n2_node n2_build_svgd_step(n2_graph *g, const char *name, n2_tensor *particles,
                           n2_log_density *density, const void *model, double rate);

#endif
