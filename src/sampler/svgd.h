/* Stein variational gradient descent: particles move along
 *
 *     phi_i = 1/n sum_j [ k(x_j, x_i) score(x_j) + grad_{x_j} k(x_j, x_i) ]
 *
 * with k = exp(-|x - y|^2 / (2 h^2)) and the median heuristic h^2 = med^2 / (2 ln(n+1)),
 * med the median distance of two particles (Liu and Wang, 2016). */
#ifndef N2_SVGD_H
#define N2_SVGD_H

#include "engine/graph.h"

/* phi for particles x [n x d] and scores [n x d]. */
#define n2_svgd_direction(g, ...) N2_BUILT(g, n2_build_svgd_direction(g, __VA_ARGS__))
n2_node n2_build_svgd_direction(n2_graph *g, n2_node x, n2_node score);

#endif
