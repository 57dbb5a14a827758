#define N2_INSIDE
#include "dxmi_loss.h"

#include "sid_loss.h"

n2_node n2_build_energy_loss(n2_graph *g, const n2_critic *c, n2_node real, n2_node made) {
    if (!c->published) return n2_critic_loss(g, c, n2g_neg(g, real), n2g_neg(g, made));
    const n2_node gap = n2g_sub(g, n2_mean_of(g, real), n2_mean_of(g, made));
    const n2_node squares =
        n2g_add(g, n2_mean_of(g, n2g_mul(g, real, real)), n2_mean_of(g, n2g_mul(g, made, made)));
    return n2g_add(g, gap, squares);
}

n2_node n2_build_temporal_loss(n2_graph *g, n2_node value, n2_node next, n2_node cost) {
    const n2_node target = n2g_add(g, n2g_detach(g, next), cost);
    const n2_node error = n2g_sub(g, value, target);
    return n2_mean_of(g, n2g_mul(g, error, error));
}

static n2_node squared_way(n2_graph *g, n2_node x, n2_node next) {
    const n2_node way = n2g_sub(g, next, x);
    return n2g_mul(g, way, way);
}

n2_node n2_build_adapt_velocity(n2_graph *g, n2_node s2, n2_node x, n2_node next) {
    static const double KEEP = 0.99;
    const n2_node now = n2_mean_of(g, squared_way(g, x, next));
    return n2g_add(g, n2g_scale(g, s2, KEEP), n2g_scale(g, now, 1 - KEEP));
}

n2_node n2_build_velocity(n2_graph *g, n2_node x, n2_node next, n2_node s2) {
    const n2_node square =
        n2g_mean(g, squared_way(g, x, next), n2_axis(1) | n2_axis(2) | n2_axis(3));
    return n2g_div(g, n2g_scale(g, square, 0.5), s2);
}
