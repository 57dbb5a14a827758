#define N2_INSIDE
#include "energy_net.h"

#include <stdio.h>

static const double SLOPE = 0.2;
enum { NAME = 64 };

static n2_conv_layer new_conv(n2_parameters *p, const char *block, const char *name, int64_t in,
                              int64_t out, int k) {
    char full[NAME + 16];
    snprintf(full, sizeof full, "%s%s", block, name);
    const n2_conv_shape shape = {
        .in = in, .out = out, .kernel = k, .stride = 1, .padding = k / 2, .no_bias = k == 1};
    return n2_conv_layer_new(p, full, shape, N2_INIT_DEFAULT);
}

static n2_energy_block new_block(n2_parameters *p, const char *name, int64_t in, int64_t out,
                                 bool halves) {
    n2_energy_block b = {.skips = in != out || halves, .halves = halves};
    b.conv0 = new_conv(p, name, "conv0", in, out, 3);
    b.conv1 = new_conv(p, name, "conv1", out, out, 3);
    if (b.skips) b.skip = new_conv(p, name, "skip", in, out, 1);
    return b;
}

n2_energy_net n2_energy_net_new(n2_parameters *p, const char *prefix, int64_t channels,
                                int64_t nh) {
    n2_energy_net net = {.in = new_conv(p, prefix, "conv_in", channels, nh, 3)};
    char name[NAME];
    for (int i = 0; i < N2_ENERGY_BLOCKS; i++) {
        snprintf(name, sizeof name, "%sblocks.%d.", prefix, i);
        const int64_t in = i < 3 ? nh : 2 * nh, out = i < 2 ? nh : 2 * nh;
        net.blocks[i] = new_block(p, name, in, out, i % 2 == 0);
    }
    snprintf(name, sizeof name, "%sout", prefix);
    net.out = n2_layer_new(p, name, 2 * nh, 1);
    snprintf(name, sizeof name, "%sscale", prefix);
    net.scale = n2_layer_new(p, name, 1, 1);
    return net;
}

static n2_node apply_block(n2_graph *g, const n2_energy_block *b, n2_node x) {
    const n2_node h = n2g_lrelu(g, n2_conv_layer_apply(g, &b->conv0, x), SLOPE);
    const n2_node skip = b->skips ? n2_conv_layer_apply(g, &b->skip, x) : x;
    n2_node y = n2g_add(g, n2_conv_layer_bare(g, &b->conv1, h), skip);
    y = n2g_add(g, y, n2g_read(g, b->conv1.bias));
    return n2g_lrelu(g, b->halves ? n2g_avg_pool2(g, y) : y, SLOPE);
}

n2_node n2_build_energy_net(n2_graph *g, const n2_energy_net *net, n2_node x) {
    n2_node h = n2g_lrelu(g, n2_conv_layer_apply(g, &net->in, x), SLOPE);
    for (int i = 0; i < N2_ENERGY_BLOCKS; i++) h = apply_block(g, &net->blocks[i], h);
    if (!h.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, h);
    h = n2g_sum(g, n2g_lrelu(g, h, 0), n2_axis(1) | n2_axis(2));
    h = n2_layer_apply(g, &net->out, n2g_reshape(g, h, n2_dims(s.dim[0], s.dim[3])));
    return n2_layer_apply(g, &net->scale, h);
}
