/* The network of DAMC's sampler (Yu et al. 2023): the noise in a noisy code, given how noisy it is
 * and an embedding of what the code belongs to.
 *
 *   time      angle / (pi/2) of the noise, waves of it, Linear, SiLU, Linear          (width)
 *   context   c = [time, embedding]
 *   input     [sin(2 pi z B), cos(2 pi z B), z], B trained                            (2 nz)
 *   layers    gated ones, as a U: down to width, 2 width, 2 width; 2 width in the middle; up to
 *             2 width, width, nz, each fed with what the layer of the same size on the way down
 *             gave; LeakyReLU(0.01) between them, none at the end
 *   result    z + the last layer's: what is learnt is the rest
 *
 * A gated layer has its context through a bottleneck of its own width:
 *
 *     c' = SiLU(Linear(SiLU(c)))     y = Linear(x) sigmoid(Linear(c')) + Linear(c') + Linear(x)
 *
 * where the third has no bias. 2.84 million parameters for codes of 8 numbers, a width of 128 and
 * embeddings of 1024. */
#ifndef N2_DAMC_NET_H
#define N2_DAMC_NET_H

#include "nn/picture_layers.h"

enum { N2_DAMC_LEVELS = 3 };

typedef struct n2_gated_layer {
    n2_layer context, linear, gate, shift, skip;
} n2_gated_layer;

typedef struct n2_damc_net {
    int64_t nz;
    n2_tensor *projection; /* B, [nz x nz / 2] */
    n2_waves waves;
    n2_layer time[2];
    n2_gated_layer down[N2_DAMC_LEVELS], middle, up[N2_DAMC_LEVELS];
} n2_damc_net;

/* nz: even; width: even; embedding: numbers of the embeddings that it will be given. Parameters are
 * named "sampler.*". */
n2_damc_net n2_damc_net_new(n2_parameters *p, int64_t nz, int64_t width, int64_t embedding);

/* The noise in z [n x nz] as it estimates it. angle: [n] or [1], that of the noise
 * (lebm/diffusion.h); embedding: [n x embedding]. */
#define n2_damc_net_apply(g, ...) N2_BUILT(g, n2_build_damc_net(g, __VA_ARGS__))
n2_node n2_build_damc_net(n2_graph *g, const n2_damc_net *net, n2_node z, n2_node angle,
                          n2_node embedding);

#endif
