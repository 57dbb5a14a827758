/* The ratio network f(z, k) of the paper: log ratios of all stages in one network.
 *
 *   stage   sinusoid(k) -> Linear, LReLU, Linear           (width)
 *   input   z -> Linear, LReLU, Linear                     (width)
 *   join    [input stage] -> LReLU, Linear(2 width -> width)
 *   blocks  h <- h + Linear(LReLU(h)), so many times
 *   out     LReLU, Linear(width -> 1)
 *
 * with LeakyReLU(0.2). The stage half is computed once per stage, not once per row: the
 * graph is rewritten so (rewrite/hoist_off_rows.c). */
#ifndef N2_RATIO_NET_H
#define N2_RATIO_NET_H

#include "nn/nn.h"

typedef struct n2_ratio_net {
    n2_tensor *table; /* stages x width, fixed */
    n2_mlp stage, input;
    n2_layer join, *blocks, out;
    int n_blocks;
    int64_t n_stages;
} n2_ratio_net;

n2_ratio_net n2_ratio_net_new(n2_parameters *p, int64_t nz, int64_t width, int n_blocks,
                              int64_t n_stages);

/* f for rows z [n x nz] at stages k [n]: [n x 1]. */
#define n2_ratio_net_apply(g, ...) N2_BUILT(g, n2_build_ratio_net(g, __VA_ARGS__))
n2_node n2_build_ratio_net(n2_graph *g, const n2_ratio_net *net, n2_node z, n2_node k);

/* Sum over all stages of f(z, k), for each row: [n x 1]. */
#define n2_ratio_net_sum(g, ...) N2_BUILT(g, n2_build_ratio_net_sum(g, __VA_ARGS__))
n2_node n2_build_ratio_net_sum(n2_graph *g, const n2_ratio_net *net, n2_node z);

#endif
