#define N2_INSIDE
#include "sid_loss.h"

#include <math.h>

n2_node n2_build_mean_of(n2_graph *g, n2_node x) {
    if (!x.id) return N2_NONE;
    return n2g_scale(g, n2g_total(g, x), 1 / (double)n2_elements(n2_shape_at(g, x)));
}

n2_node n2_build_sid_sigmas(n2_graph *g, int64_t n) {
    const double most = pow(N2_SIGMA_MOST, 1 / N2_SIGMA_POWER);
    const double least = pow(N2_SIGMA_LEAST, 1 / N2_SIGMA_POWER);
    const n2_node u = n2g_randu(g, n2_dims(n));
    const n2_node root = n2g_affine(g, u, N2_SID_SHARE * (most - least), least);
    return n2g_exp(g, n2g_scale(g, n2g_log(g, root), N2_SIGMA_POWER));
}

n2_node n2_build_generate(n2_graph *g, const n2_edm *edm, const n2_unet *net, n2_node z,
                          n2_node labels, double sigma, bool training) {
    if (!z.id) return N2_NONE;
    const n2_node level =
        n2g_broadcast(g, n2g_constant(g, sigma), n2_dims(n2_shape_at(g, z).dim[0]));
    const n2_unet_input in = {
        .x = n2g_scale(g, z, sigma), .level = level, .labels = labels, .training = training};
    return n2_edm_denoise(g, edm, net, &in);
}

n2_node n2_build_sid_scale(n2_graph *g, n2_node y, n2_node a) {
    static const double LEAST = 1e-5;
    const n2_node d = n2g_sub(g, y, a), size = n2g_maximum(g, d, n2g_neg(g, d));
    const n2_node mean = n2g_mean(g, size, n2_axis(1) | n2_axis(2) | n2_axis(3));
    return n2g_detach(g, n2g_reciprocal(g, n2g_maximum(g, mean, n2g_constant(g, LEAST))));
}

n2_node n2_build_sid_loss(n2_graph *g, n2_node a, n2_node b, n2_node y, n2_node scale,
                          double alpha) {
    if (!y.id) return N2_NONE;
    const n2_node d = n2g_sub(g, a, b);
    const n2_node rest = n2g_sub(g, n2g_sub(g, a, y), n2g_scale(g, d, alpha));
    const n2_node sum = n2g_total(g, n2g_mul(g, scale, n2g_mul(g, d, rest)));
    return n2g_scale(g, sum, 1 / (double)n2_shape_at(g, y).dim[0]);
}

n2_node n2_build_logit_map(n2_graph *g, n2_node bottom) { return n2g_mean(g, bottom, n2_axis(3)); }

static n2_node mean_square(n2_graph *g, n2_node x) { return n2_mean_of(g, n2g_mul(g, x, x)); }

n2_node n2_build_critic_loss(n2_graph *g, const n2_critic *c, n2_node real, n2_node made) {
    if (c->published) {
        const n2_node of_real = n2_mean_of(g, n2g_softplus(g, n2g_neg(g, real)));
        return n2g_scale(g, n2g_add(g, of_real, n2_mean_of(g, n2g_softplus(g, made))), 0.5);
    }
    const n2_node loss = n2g_n2ce_loss(g, real, made, c->magnitude);
    const n2_node squares = n2g_add(g, mean_square(g, real), mean_square(g, made));
    return n2g_add(g, loss, n2g_scale(g, squares, c->lambda));
}

n2_node n2_build_adversarial_loss(n2_graph *g, n2_node logits, n2_node scale, double numbers) {
    static const double MOST = 10, WEIGHT = 0.01;
    const n2_node low = n2g_maximum(g, logits, n2g_constant(g, -MOST));
    const n2_node cut = n2g_minimum(g, low, n2g_constant(g, MOST));
    const n2_node loss = n2_mean_of(g, n2g_softplus(g, n2g_neg(g, cut)));
    return n2g_scale(g, n2g_mul(g, loss, n2_mean_of(g, scale)), WEIGHT * numbers);
}
