/* The energy (or value) network of pictures: one number of each.
 *
 *   conv 3 x 3, LReLU
 *   six residual blocks of widths nh, nh, 2 nh, 2 nh, 2 nh, 2 nh; the first, third and fifth halve
 *   ReLU, sum over pixels, Linear(2 nh -> 1), Linear(1 -> 1)
 *
 * A block is conv, LReLU, conv; + skip; a mean of 2 x 2 pixels if it halves; LReLU. skip is a 1 x 1
 * convolution without bias where channels or size change. LeakyReLU(0.2); no norms, no dropout;
 * PyTorch's initial values. 5,134,595 parameters for nh = 128, 1,285,251 for nh = 64. */
#ifndef N2_ENERGY_NET_H
#define N2_ENERGY_NET_H

#include "nn/picture_layers.h"

enum { N2_ENERGY_BLOCKS = 6 };

typedef struct n2_energy_block {
    n2_conv_layer conv0, conv1, skip;
    bool skips, halves;
} n2_energy_block;

typedef struct n2_energy_net {
    n2_conv_layer in;
    n2_energy_block blocks[N2_ENERGY_BLOCKS];
    n2_layer out, scale;
} n2_energy_net;

/* nh: the width; pictures of `channels`. */
n2_energy_net n2_energy_net_new(n2_parameters *p, const char *prefix, int64_t channels, int64_t nh);

/* x [n, h, w, channels], h and w divisible by 8: [n x 1]. */
#define n2_energy_net_apply(g, ...) N2_BUILT(g, n2_build_energy_net(g, __VA_ARGS__))
n2_node n2_build_energy_net(n2_graph *g, const n2_energy_net *net, n2_node x);

#endif
