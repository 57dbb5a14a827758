#define N2_INSIDE
#include "diffusion.h"

#include <math.h>
#include <stdio.h>

static const double LEAST_LOG_SNR = -5.1, LARGEST_LOG_SNR = 9.8;

static double first_angle(void) { return atan(exp(-LARGEST_LOG_SNR / 2)); }
static double range_of_angles(void) { return atan(exp(-LEAST_LOG_SNR / 2)) - first_angle(); }

double n2_diffusion_angle(double u) { return range_of_angles() * u + first_angle(); }

double n2_diffusion_log_snr(double u) { return -2 * log(tan(n2_diffusion_angle(u))); }

n2_node n2_build_diffusion_angles(n2_graph *g, n2_node u) {
    return n2g_affine(g, u, range_of_angles(), first_angle());
}

n2_node n2_build_diffusion_loss(n2_graph *g, const n2_damc_net *net, n2_node z, n2_node embedding,
                                n2_node u, n2_node eps) {
    if (!z.id) return N2_NONE;
    const n2_shape shape = n2_shape_at(g, z);
    const int64_t n = shape.dim[0];
    if (!u.id) u = n2g_randu(g, n2_dims(n));
    if (!eps.id) eps = n2g_randn(g, shape);
    const n2_node angle = n2_diffusion_angles(g, u), each = n2g_reshape(g, angle, n2_dims(n, 1));
    const n2_node signal = n2g_mul(g, n2g_cos(g, each), z);
    const n2_node noisy = n2g_add(g, signal, n2g_mul(g, n2g_sin(g, each), eps));
    const n2_node miss = n2g_sub(g, eps, n2_damc_net_apply(g, net, noisy, angle, embedding));
    return n2g_scale(g, n2g_total(g, n2g_mul(g, miss, miss)), 0.5 / (double)n);
}

/* ---- sampling ---- */

n2_diffusion_chain n2_diffusion_chain_new(n2_store *store, const char *name, int64_t n,
                                          int64_t nz) {
    char z[64], left[64];
    snprintf(z, sizeof z, "%s.z", name);
    snprintf(left, sizeof left, "%s.left", name);
    return (n2_diffusion_chain){n2_store_add(store, z, n2_dims(n, nz)),
                                n2_store_add(store, left, n2_dims(1))};
}

n2_node n2_build_diffusion_begin(n2_graph *g, const n2_diffusion_chain *chain) {
    const n2_node steps = n2g_constant(g, N2_DIFFUSION_STEPS);
    n2g_assign(g, chain->left, n2g_broadcast(g, steps, n2_dims(1)));
    return n2g_assign(g, chain->z, n2g_randn(g, chain->z->shape));
}

static n2_node tangent(n2_graph *g, n2_node angle) {
    return n2g_div(g, n2g_sin(g, angle), n2g_cos(g, angle));
}

n2_node n2_build_diffusion_step(n2_graph *g, const n2_diffusion_chain *chain,
                                const n2_damc_net *net, n2_node embedding) {
    const double last = N2_DIFFUSION_STEPS - 1;
    const n2_node z = n2g_read(g, chain->z), left = n2g_read(g, chain->left);
    const n2_node place = n2g_affine(g, left, 1, -1); /* N2_DIFFUSION_STEPS - 1 to 0 */
    const n2_node next = n2g_maximum(g, n2g_affine(g, place, 1, -1), n2g_constant(g, 0));
    const n2_node from = n2_diffusion_angles(g, n2g_scale(g, place, 1 / last));
    const n2_node to = n2_diffusion_angles(g, n2g_scale(g, next, 1 / last));
    const n2_node noise = n2_damc_net_apply(g, net, z, from, embedding);
    const n2_node clean =
        n2g_div(g, n2g_sub(g, z, n2g_mul(g, n2g_sin(g, from), noise)), n2g_cos(g, from));
    /* kept: exp(lambda - lambda'), the share of the noisy code in the mean */
    const n2_node ratio = n2g_div(g, tangent(g, to), tangent(g, from));
    const n2_node kept = n2g_mul(g, ratio, ratio), rest = n2g_affine(g, kept, -1, 1);
    const n2_node of_noisy = n2g_mul(g, kept, n2g_div(g, n2g_cos(g, to), n2g_cos(g, from)));
    const n2_node of_clean = n2g_mul(g, rest, n2g_cos(g, to));
    const n2_node mean = n2g_add(g, n2g_mul(g, of_noisy, z), n2g_mul(g, of_clean, clean));
    const n2_node sd =
        n2g_mul(g, n2g_sqrt(g, n2g_maximum(g, rest, n2g_constant(g, 0))), n2g_sin(g, from));
    const n2_node drawn = n2g_add(g, mean, n2g_mul(g, sd, n2g_randn(g, chain->z->shape)));
    const n2_node is_last = n2g_equal(g, place, n2g_constant(g, 0));
    n2g_assign(g, chain->left, place);
    return n2g_assign(g, chain->z,
                      n2g_add(g, drawn, n2g_mul(g, is_last, n2g_sub(g, clean, drawn))));
}
