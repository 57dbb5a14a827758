#define N2_INSIDE
#include "edm.h"

n2_node n2_build_edm_sigmas(n2_graph *g, const n2_edm *edm, int64_t n) {
    return n2g_exp(g, n2g_affine(g, n2g_randn(g, n2_dims(n)), edm->std, edm->mean));
}

/* Numbers of pictures, [n], for all pixels of them. */
static n2_node for_pixels(n2_graph *g, n2_node v) {
    return n2g_reshape(g, v, n2_dims(n2_shape_at(g, v).dim[0], 1, 1, 1));
}

/* sqrt(s^2 + sd^2) */
static n2_node spread(n2_graph *g, const n2_edm *edm, n2_node sigma) {
    return n2g_sqrt(g, n2g_affine(g, n2g_mul(g, sigma, sigma), 1, edm->sd * edm->sd));
}

/* What the network is given: c_in x and c_noise. */
static n2_unet_input scaled(n2_graph *g, const n2_unet_input *in, n2_node x, n2_node c_in) {
    n2_unet_input inside = *in;
    inside.x = n2g_mul(g, x, c_in);
    inside.level = n2g_scale(g, n2g_log(g, in->level), 0.25);
    return inside;
}

/* F(c_in x; c_noise) */
static n2_node apply(n2_graph *g, const n2_unet *net, const n2_unet_input *in, n2_node x,
                     n2_node c_in) {
    const n2_unet_input inside = scaled(g, in, x, c_in);
    return n2_unet_apply(g, net, &inside);
}

n2_node n2_build_edm_encode(n2_graph *g, const n2_edm *edm, const n2_unet *net,
                            const n2_unet_input *in) {
    if (!in->x.id || !in->level.id) return N2_NONE;
    const n2_node c_in = n2g_reciprocal(g, spread(g, edm, for_pixels(g, in->level)));
    const n2_unet_input inside = scaled(g, in, in->x, c_in);
    return n2_unet_encode(g, net, &inside);
}

n2_node n2_build_edm_weights(n2_graph *g, const n2_edm *edm, n2_node sigma) {
    const n2_node c_out = n2g_scale(g, n2g_div(g, sigma, spread(g, edm, sigma)), edm->sd);
    return n2g_reciprocal(g, n2g_mul(g, c_out, c_out));
}

n2_node n2_build_edm_denoise(n2_graph *g, const n2_edm *edm, const n2_unet *net,
                             const n2_unet_input *in) {
    if (!in->x.id || !in->level.id) return N2_NONE;
    const n2_node sigma = for_pixels(g, in->level);
    const n2_node c_in = n2g_reciprocal(g, spread(g, edm, sigma));
    const n2_node c_skip = n2g_scale(g, n2g_mul(g, c_in, c_in), edm->sd * edm->sd);
    const n2_node c_out = n2g_scale(g, n2g_mul(g, sigma, c_in), edm->sd);
    const n2_node f = apply(g, net, in, in->x, c_in);
    return n2g_add(g, n2g_mul(g, c_skip, in->x), n2g_mul(g, c_out, f));
}

n2_node n2_build_edm_loss(n2_graph *g, const n2_edm *edm, const n2_unet *net,
                          const n2_unet_input *in, n2_node noise) {
    if (!in->x.id || !in->level.id) return N2_NONE;
    const n2_node y = in->x, sigma = for_pixels(g, in->level);
    const n2_node c_in = n2g_reciprocal(g, spread(g, edm, sigma));
    const n2_node f = apply(g, net, in, n2g_add(g, y, n2g_mul(g, sigma, noise)), c_in);
    const n2_node pictures = n2g_mul(g, n2g_scale(g, sigma, 1 / edm->sd), y);
    const n2_node target = n2g_mul(g, c_in, n2g_sub(g, pictures, n2g_scale(g, noise, edm->sd)));
    const n2_node error = n2g_sub(g, f, target);
    const double n = (double)n2_shape_at(g, y).dim[0];
    return n2g_scale(g, n2g_total(g, n2g_mul(g, error, error)), 1 / n);
}
