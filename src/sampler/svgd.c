#define N2_INSIDE
#include "svgd.h"

#include <math.h>

/* The second sum is (x_i sum_j k_ij - sum_j k_ij x_j) / h^2. */
n2_node n2_build_svgd_direction(n2_graph *g, n2_node x, n2_node score) {
    if (!x.id || !score.id) return N2_NONE;
    const double n = (double)n2_shape_at(g, x).dim[0];
    const n2_node d2 = n2g_squared_distances(g, x, x);
    const n2_node median = n2g_median(g, n2g_sqrt(g, d2), true);
    const n2_node h2 = n2g_scale(g, n2g_mul(g, median, median), 1 / (2 * log(n + 1)));
    const n2_node k = n2g_exp(g, n2g_div(g, n2g_scale(g, d2, -0.5), h2));
    const n2_node attract = n2g_matmul(g, k, score, false, false);
    const n2_node mass = n2g_mul(g, x, n2g_sum(g, k, n2_axis(1)));
    const n2_node repel = n2g_div(g, n2g_sub(g, mass, n2g_matmul(g, k, x, false, false)), h2);
    return n2g_scale(g, n2g_add(g, attract, repel), 1 / n);
}
