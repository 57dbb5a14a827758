#define N2_INSIDE
#include "langevin.h"

n2_node n2_build_langevin_move(n2_graph *g, n2_node x, n2_node score, double step) {
    if (!x.id || !score.id) return N2_NONE;
    const n2_node noise = n2g_randn(g, n2_shape_at(g, x));
    const n2_node drift = n2g_scale(g, score, step * step / 2);
    return n2g_add(g, n2g_add(g, x, drift), n2g_scale(g, noise, step));
}

n2_node n2_build_score(n2_graph *g, n2_node x, n2_log_density *density, const void *model,
                       n2_node *value) {
    const n2_node each = density(g, x, model);
    n2_node score = N2_NONE;
    n2g_grad(g, n2g_total(g, each), &x, 1, &score);
    if (value) *value = each;
    return score;
}

/* -|to - from - (s^2/2) score|^2 / (2 s^2): how likely the proposal is, for each row. */
static n2_node log_proposal(n2_graph *g, n2_node to, n2_node from, n2_node score, double step) {
    const n2_node drift = n2g_scale(g, score, step * step / 2);
    const n2_node miss = n2g_sub(g, n2g_sub(g, to, from), drift);
    return n2g_scale(g, n2g_sum(g, n2g_mul(g, miss, miss), n2_axis(1)), -0.5 / (step * step));
}

n2_node n2_build_langevin_step(n2_graph *g, n2_tensor *rows, n2_log_density *density,
                               const void *model, double step, bool metropolis) {
    const n2_node x = n2g_read(g, rows);
    n2_node at, there;
    const n2_node score = n2_score(g, x, density, model, &at);
    const n2_node to = n2_langevin_move(g, x, score, step);
    const n2_node mean = n2g_total(g, n2g_mean(g, at, N2_ALL_AXES));
    n2g_watch(g, mean);
    if (!metropolis) {
        n2g_assign(g, rows, to);
        return mean;
    }
    const n2_node back = n2_score(g, to, density, model, &there);
    const n2_node gain = n2g_add(
        g, n2g_sub(g, there, at),
        n2g_sub(g, log_proposal(g, x, to, back, step), log_proposal(g, to, x, score, step)));
    const n2_node threshold = n2g_log(g, n2g_randu(g, n2_shape_at(g, gain)));
    const n2_node accepted = n2g_greater(g, gain, threshold);
    n2g_assign(g, rows, n2g_add(g, x, n2g_mul(g, accepted, n2g_sub(g, to, x))));
    return mean;
}
