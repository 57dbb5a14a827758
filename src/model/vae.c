#define N2_INSIDE
#include "vae.h"

static const double SLOPE = 0.2;

n2_vae n2_vae_new(n2_parameters *p, int64_t dim, int64_t nz, int64_t width) {
    const int64_t h = 4 * width;
    n2_vae vae;
    vae.encoder = n2_mlp_new(p, "enc", (int64_t[]){dim, h, h}, 3, SLOPE);
    vae.mean = n2_layer_new(p, "mean", h, nz);
    vae.logvar = n2_layer_new(p, "logvar", h, nz);
    vae.decoder = n2_mlp_new(p, "dec", (int64_t[]){nz, h, 2 * width, width, width, dim}, 6, SLOPE);
    return vae;
}

void n2_build_vae_encode(n2_graph *g, const n2_vae *vae, n2_node x, n2_node *mean,
                         n2_node *logvar) {
    const n2_node h = n2g_lrelu(g, n2_mlp_apply(g, &vae->encoder, x), SLOPE);
    *mean = n2_layer_apply(g, &vae->mean, h);
    *logvar = n2_layer_apply(g, &vae->logvar, h);
}

n2_node n2_build_vae_decode(n2_graph *g, const n2_vae *vae, n2_node z) {
    return n2_mlp_apply(g, &vae->decoder, z);
}
