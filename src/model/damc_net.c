#define N2_INSIDE
#include "damc_net.h"

#include <stdio.h>

static const double SLOPE = 0.01, PI = 3.14159265358979323846;

/* ---- layers ---- */

static n2_layer new_part(n2_parameters *p, const char *name, const char *part, int64_t in,
                         int64_t out, bool bias) {
    char full[64];
    snprintf(full, sizeof full, "sampler.%s.%s", name, part);
    return n2_layer_drawn(p, full, in, out, N2_INIT_DEFAULT, bias);
}

static n2_gated_layer new_gated(n2_parameters *p, const char *name, int64_t in, int64_t out,
                                int64_t context) {
    n2_gated_layer layer;
    layer.context = new_part(p, name, "context", context, out, true);
    layer.linear = new_part(p, name, "linear", in, out, true);
    layer.gate = new_part(p, name, "gate", out, out, true);
    layer.shift = new_part(p, name, "shift", out, out, false);
    layer.skip = new_part(p, name, "skip", in, out, true);
    return layer;
}

/* c: the context after its activation. */
static n2_node apply_gated(n2_graph *g, const n2_gated_layer *layer, n2_node x, n2_node c) {
    const n2_node own = n2g_silu(g, n2_layer_apply(g, &layer->context, c));
    const n2_node gate = n2g_sigmoid(g, n2_layer_apply(g, &layer->gate, own));
    const n2_node gated = n2g_mul(g, n2_layer_apply(g, &layer->linear, x), gate);
    const n2_node shifted = n2g_add(g, gated, n2_layer_apply(g, &layer->shift, own));
    return n2g_add(g, shifted, n2_layer_apply(g, &layer->skip, x));
}

/* ---- the network ---- */

static void new_levels(n2_parameters *p, n2_damc_net *net, int64_t width, int64_t context) {
    const int64_t down[] = {2 * net->nz, width, 2 * width, 2 * width};
    const int64_t up[] = {2 * width, 2 * width, width, net->nz};
    char name[16];
    for (int i = 0; i < N2_DAMC_LEVELS; i++) {
        snprintf(name, sizeof name, "down.%d", i);
        net->down[i] = new_gated(p, name, down[i], down[i + 1], context);
    }
    net->middle = new_gated(p, "middle", 2 * width, 2 * width, context);
    for (int i = 0; i < N2_DAMC_LEVELS; i++) {
        snprintf(name, sizeof name, "up.%d", i);
        net->up[i] = new_gated(p, name, up[i] + down[N2_DAMC_LEVELS - i], up[i + 1], context);
    }
}

n2_damc_net n2_damc_net_new(n2_parameters *p, int64_t nz, int64_t width, int64_t embedding) {
    n2_damc_net net = {.nz = nz};
    const n2_drawn normal = {N2_INIT_KAIMING_NORMAL, 1, 1, 1};
    net.projection = n2_parameter_drawn(p, "sampler.projection", n2_dims(nz, nz / 2), normal);
    net.waves = n2_waves_new(p, "sampler.frequencies", width, N2_WAVES_SINE_FIRST);
    net.time[0] = n2_layer_new(p, "sampler.time.0", width, width);
    net.time[1] = n2_layer_new(p, "sampler.time.2", width, width);
    new_levels(p, &net, width, width + embedding);
    return net;
}

/* [sin(2 pi z B), cos(2 pi z B), z] */
static n2_node features_of(n2_graph *g, const n2_damc_net *net, n2_node z) {
    const n2_node turns = n2g_matmul(g, z, n2g_read(g, net->projection), false, false);
    const n2_node angle = n2g_scale(g, turns, 2 * PI);
    const n2_node waves[] = {n2g_sin(g, angle), n2g_cos(g, angle), z};
    return n2g_concat_all(g, waves, 3, 1);
}

static n2_node time_of(n2_graph *g, const n2_damc_net *net, n2_node angle) {
    const n2_node waves = n2_waves_apply(g, &net->waves, n2g_scale(g, angle, 1000 / (PI / 2)));
    return n2_layer_apply(g, &net->time[1], n2g_silu(g, n2_layer_apply(g, &net->time[0], waves)));
}

n2_node n2_build_damc_net(n2_graph *g, const n2_damc_net *net, n2_node z, n2_node angle,
                          n2_node embedding) {
    n2_node saved[N2_DAMC_LEVELS];
    n2_node time = time_of(g, net, angle);
    if (!z.id || !time.id) return N2_NONE;
    const int64_t n = n2_shape_at(g, z).dim[0];
    if (n2_shape_at(g, time).dim[0] != n)
        time = n2g_broadcast(g, time, n2_dims(n, n2_shape_at(g, time).dim[1]));
    const n2_node c = n2g_silu(g, n2g_concat(g, time, embedding, 1));
    n2_node h = features_of(g, net, z);
    for (int i = 0; i < N2_DAMC_LEVELS; i++) {
        saved[i] = apply_gated(g, &net->down[i], h, c);
        h = n2g_lrelu(g, saved[i], SLOPE);
    }
    h = apply_gated(g, &net->middle, h, c);
    for (int i = 0; i < N2_DAMC_LEVELS; i++) {
        const n2_node both = n2g_concat(g, h, saved[N2_DAMC_LEVELS - 1 - i], 1);
        h = apply_gated(g, &net->up[i], n2g_lrelu(g, both, SLOPE), c);
    }
    return n2g_add(g, z, h);
}
