#define N2_INSIDE
#include "svgd.h"

#include <math.h>
#include <stdio.h>

/* Particles whose median distance is 0, since most coincide, have no width of their own; below this
 * one, rounding of their places is all that would repel them. */
static const double LEAST_H2 = 1e-6;

static n2_node squared_width(n2_graph *g, n2_node d2, double n) {
    const n2_node median = n2g_median(g, n2g_sqrt(g, d2), true);
    const n2_node h2 = n2g_scale(g, n2g_mul(g, median, median), 1 / (2 * log(n + 1)));
    return n2g_maximum(g, h2, n2g_constant(g, LEAST_H2));
}

/* The second sum is (x_i sum_j k_ij - sum_j k_ij x_j) / h^2. One particle has no distances, and its
 * kernel is 1. */
n2_node n2_build_svgd_direction(n2_graph *g, n2_node x, n2_node score) {
    if (!x.id || !score.id) return N2_NONE;
    const double n = (double)n2_shape_at(g, x).dim[0];
    if (n < 2) return score;
    const n2_node d2 = n2g_squared_distances(g, x, x);
    const n2_node h2 = squared_width(g, d2, n);
    const n2_node k = n2g_exp(g, n2g_div(g, n2g_scale(g, d2, -0.5), h2));
    const n2_node attract = n2g_matmul(g, k, score, false, false);
    const n2_node mass = n2g_mul(g, x, n2g_sum(g, k, n2_axis(1)));
    const n2_node repel = n2g_div(g, n2g_sub(g, mass, n2g_matmul(g, k, x, false, false)), h2);
    return n2g_scale(g, n2g_add(g, attract, repel), 1 / n);
}

static n2_tensor *state(n2_graph *g, const char *name, const char *kind, n2_shape shape) {
    char full[96];
    snprintf(full, sizeof full, "%s.%s", name, kind);
    n2_tensor *t = n2_store_add(n2_graph_store(g), full, shape);
    if (!t) n2_graph_fail(g, "svgd: there is no room for \"%s\"", full);
    return t;
}

n2_node n2_build_svgd_step(n2_graph *g, const char *name, n2_tensor *particles,
                           n2_log_density *density, const void *model, double rate) {
    n2_tensor *const tensors[] = {particles, state(g, name, "m", particles->shape),
                                  state(g, name, "v", particles->shape)};
    n2_tensor *count = state(g, name, "step", n2_scalar_shape());
    if (!tensors[1] || !tensors[2] || !count) return N2_NONE;
    const n2_node x = n2g_read(g, particles);
    n2_node each;
    const n2_node score = n2_score(g, x, density, model, &each);
    const n2_node mean = n2g_total(g, n2g_mean(g, each, N2_ALL_AXES));
    n2g_watch(g, mean);
    const n2_node downhill = n2g_neg(g, n2_svgd_direction(g, x, score));
    const n2_node step = n2g_assign(g, count, n2g_affine(g, n2g_read(g, count), 1, 1));
    const n2_adam adam = {0.9, 0.999, 1e-8, 0};
    n2g_adam_update(g, &adam, tensors, downhill, n2g_constant(g, rate), n2g_constant(g, 1), step);
    return mean;
}
