/* EDM: a network that removes noise of any level sigma (Karras et al. 2022).
 *
 *     D(x; s) = c_skip x + c_out F(c_in x; c_noise)
 *     c_skip = sd^2 / (s^2 + sd^2), c_out = s sd / sqrt(s^2 + sd^2),
 *     c_in = 1 / sqrt(s^2 + sd^2), c_noise = ln(s) / 4
 *
 * for F a U-Net and data of standard deviation sd. The loss weighs |D(y + s n; s) - y|^2, summed
 * over a picture, by 1 / c_out^2: it is |F - c_in (s y / sd - sd n)|^2, which is how it is
 * computed.
 *
 * A training step:
 *
 *     const n2_node sigma = n2_edm_sigmas(g, &edm, n), eps = n2g_randn(g, shape of y);
 *     const n2_unet_input in = {.x = y, .level = sigma, .augment = zeros, .training = true};
 *     const n2_node loss = n2_edm_loss(g, &edm, &net, &in, eps);
 *     n2_minimise(g, &adam, "adam", &p, loss, NULL);
 *     for each parameter: n2_average(g, average of it, it, 0.9999); */
#ifndef N2_EDM_H
#define N2_EDM_H

#include "unet.h"

typedef struct n2_edm {
    double sd;        /* of the data */
    double mean, std; /* of ln(sigma) in training */
} n2_edm;
#define N2_EDM_DEFAULTS \
    { 0.5, -1.2, 1.2 }

/* n levels of noise for a training step: [n]. */
#define n2_edm_sigmas(g, ...) N2_BUILT(g, n2_build_edm_sigmas(g, __VA_ARGS__))
n2_node n2_build_edm_sigmas(n2_graph *g, const n2_edm *edm, int64_t n);

/* D(x; sigma): in->x pictures with noise, in->level their sigma. */
#define n2_edm_denoise(g, ...) N2_BUILT(g, n2_build_edm_denoise(g, __VA_ARGS__))
n2_node n2_build_edm_denoise(n2_graph *g, const n2_edm *edm, const n2_unet *net,
                             const n2_unet_input *in);

/* What the network's way down makes of pictures with noise: n2_unet_encode. */
#define n2_edm_encode(g, ...) N2_BUILT(g, n2_build_edm_encode(g, __VA_ARGS__))
n2_node n2_build_edm_encode(n2_graph *g, const n2_edm *edm, const n2_unet *net,
                            const n2_unet_input *in);

/* 1 / c_out^2 of each sigma [n], by which the loss weighs squared errors. */
#define n2_edm_weights(g, ...) N2_BUILT(g, n2_build_edm_weights(g, __VA_ARGS__))
n2_node n2_build_edm_weights(n2_graph *g, const n2_edm *edm, n2_node sigma);

/* in->x clean pictures, in->level sigma, noise: standard normal like x. Mean over pictures. */
#define n2_edm_loss(g, ...) N2_BUILT(g, n2_build_edm_loss(g, __VA_ARGS__))
n2_node n2_build_edm_loss(n2_graph *g, const n2_edm *edm, const n2_unet *net,
                          const n2_unet_input *in, n2_node noise);

#endif
