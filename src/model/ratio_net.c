#define N2_INSIDE
#include "ratio_net.h"

#include <stdio.h>

static const double SLOPE = 0.2;

n2_ratio_net n2_ratio_net_new(n2_parameters *p, int64_t nz, int64_t width, int n_blocks,
                              int64_t n_stages) {
    n2_ratio_net net = {.n_stages = n_stages, .blocks = n2_layers_new(p->store, NULL, n_blocks)};
    net.table = n2_sinusoid_table(p->store, "stage.table", n_stages, width);
    if (!net.table || !net.blocks) p->failed = true;
    net.stage = n2_mlp_new(p, "stage", (int64_t[]){width, width, width}, 3, SLOPE);
    net.input = n2_mlp_new(p, "input", (int64_t[]){nz, width, width}, 3, SLOPE);
    net.join = n2_layer_new(p, "join", 2 * width, width);
    for (int i = 0; i < n_blocks && net.blocks; i++) {
        char name[32];
        snprintf(name, sizeof name, "blocks.%d", i);
        net.blocks[net.n_blocks++] = n2_layer_new(p, name, width, width);
    }
    net.out = n2_layer_new(p, "out", width, 1);
    return net;
}

n2_node n2_build_ratio_net(n2_graph *g, const n2_ratio_net *net, n2_node z, n2_node k) {
    const n2_node stages = n2_mlp_apply(g, &net->stage, n2g_read(g, net->table));
    n2_node h = n2g_concat(g, n2_mlp_apply(g, &net->input, z), n2g_gather(g, stages, k), 1);
    h = n2_layer_apply(g, &net->join, n2g_lrelu(g, h, SLOPE));
    for (int i = 0; i < net->n_blocks; i++)
        h = n2g_add(g, h, n2_layer_apply(g, &net->blocks[i], n2g_lrelu(g, h, SLOPE)));
    return n2_layer_apply(g, &net->out, n2g_lrelu(g, h, SLOPE));
}

n2_node n2_build_ratio_net_sum(n2_graph *g, const n2_ratio_net *net, n2_node z) {
    if (!z.id) return N2_NONE;
    const int64_t n = n2_shape_at(g, z).dim[0];
    n2_node sum = N2_NONE;
    for (int64_t k = 0; k < net->n_stages; k++) {
        const n2_node stage = n2g_broadcast(g, n2g_constant(g, (double)k), n2_dims(n));
        const n2_node f = n2_ratio_net_apply(g, net, z, stage);
        sum = k ? n2g_add(g, sum, f) : f;
    }
    return sum;
}
