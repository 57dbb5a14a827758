/* Ops and layers of pictures of n2ce_engine.h. */
#include "engine_types.h"

#include "nn/picture_layers.h"
#include "train/train.h"

#define G      n2_graph_in(g)
#define IN(x)  n2_node_in(g, x)
#define OUT(x) (g ? n2_node_out(x) : N2CE_NONE)

/* ---- ops ----------------------------------------------------------------- */

static n2_window window_in(n2ce_window w) {
    return (n2_window){w.stride_y, w.stride_x, w.top, w.bottom, w.left, w.right};
}

n2ce_node n2ce_conv2d(n2ce_graph *g, n2ce_node x, n2ce_node kernel, n2ce_window window) {
    return OUT(n2g_conv2d(G, IN(x), IN(kernel), window_in(window)));
}

n2ce_node n2ce_conv2d_transposed(n2ce_graph *g, n2ce_node x, n2ce_node kernel, int64_t height,
                                 int64_t width, n2ce_window window) {
    return OUT(n2g_conv2d_input(G, IN(x), IN(kernel), height, width, window_in(window)));
}

n2ce_node n2ce_avg_pool2(n2ce_graph *g, n2ce_node x) { return OUT(n2g_avg_pool2(G, IN(x))); }
n2ce_node n2ce_upsample2(n2ce_graph *g, n2ce_node x) { return OUT(n2g_upsample2(G, IN(x))); }

n2ce_node n2ce_attention(n2ce_graph *g, n2ce_node qkv, int64_t heads) {
    return OUT(n2g_attention(G, IN(qkv), heads));
}

n2ce_node n2ce_dropout(n2ce_graph *g, n2ce_node x, double p) {
    return OUT(n2g_dropout(G, IN(x), p));
}

/* The engine's; any other number makes the graph fail. */
static n2_act act_in(n2_graph *g, n2ce_activation act) {
    if (act == N2CE_NO_ACTIVATION) return N2_ACT_NONE;
    if (act != N2CE_ACTIVATION_SILU && act != N2CE_ACTIVATION_LRELU)
        n2_graph_fail(g, "norm: %d is none of n2ce_activation", (int)act);
    return act == N2CE_ACTIVATION_SILU ? N2_ACT_SILU : N2_ACT_LRELU;
}

n2ce_node n2ce_norm(n2ce_graph *g, n2ce_node x, n2ce_node scale, n2ce_node shift, int64_t groups,
                    double eps, n2ce_activation act) {
    static const double SLOPE = 0.2;
    if (!g) return N2CE_NONE;
    if (groups < 1 || groups > INT32_MAX)
        return OUT(n2_graph_fail(G, "norm: %lld groups", (long long)groups));
    const n2_norm norm = {(int32_t)groups, (int32_t)act_in(G, act), eps,
                          act == N2CE_ACTIVATION_LRELU ? SLOPE : 0};
    const n2_node of = IN(x), gamma = scale.id ? IN(scale) : N2_NONE;
    return OUT(n2g_norm(G, of, N2_NONE, gamma, shift.id ? IN(shift) : N2_NONE, norm));
}

/* ---- layers -------------------------------------------------------------- */

struct n2ce_conv_layer {
    n2ce_store *store;
    n2_conv_layer layer;
    bool transposed;
};

struct n2ce_norm_layer {
    n2ce_store *store;
    n2_norm_layer layer;
};

static bool is_conv(const n2ce_parameters *p, const char *name, const n2_conv_shape *s) {
    if (s->in > 0 && s->out > 0 && s->kernel > 0 && s->stride > 0 && s->padding >= 0) return true;
    n2_fail(n2_store_ctx(p->store->tensors), N2CE_EINVAL,
            "The convolution \"%s\" has %lld channels in, %lld out, a kernel of %d, a stride of %d "
            "and a padding of %d; all but the padding are at least 1.",
            name, (long long)s->in, (long long)s->out, s->kernel, s->stride, s->padding);
    return false;
}

static n2ce_conv_layer *new_conv(n2ce_parameters *p, const char *name, n2_conv_shape shape,
                                 bool transposed) {
    if (!p || !n2_has_name(p, name) || !is_conv(p, name, &shape)) return NULL;
    n2ce_conv_layer *layer = n2_arena_alloc(&p->store->arena, 1, sizeof *layer);
    if (!layer) return NULL;
    layer->store = p->store;
    layer->transposed = transposed;
    layer->layer = transposed ? n2_deconv_layer_new(&p->list, name, shape, N2_INIT_DEFAULT)
                              : n2_conv_layer_new(&p->list, name, shape, N2_INIT_DEFAULT);
    return layer->layer.weight && layer->layer.bias ? layer : NULL;
}

n2ce_conv_layer *n2ce_conv_layer_new(n2ce_parameters *parameters, const char *name, int64_t in,
                                     int64_t out, int kernel, int stride, int padding) {
    const n2_conv_shape shape = {in, out, kernel, stride, padding, false};
    return new_conv(parameters, name, shape, false);
}

n2ce_conv_layer *n2ce_deconv_layer_new(n2ce_parameters *parameters, const char *name, int64_t in,
                                       int64_t out, int kernel, int stride, int padding) {
    const n2_conv_shape shape = {in, out, kernel, stride, padding, false};
    return new_conv(parameters, name, shape, true);
}

n2ce_node n2ce_conv_layer_apply(n2ce_graph *g, const n2ce_conv_layer *layer, n2ce_node x) {
    if (!g) return N2CE_NONE;
    if (!layer) return OUT(n2_fail_null(G, "layer"));
    if (!n2_tensor_fits(g, n2_tensor_out(layer->layer.weight))) return N2CE_NONE;
    const n2_node in = IN(x);
    return OUT(layer->transposed ? n2_deconv_layer_apply(G, &layer->layer, in)
                                 : n2_conv_layer_apply(G, &layer->layer, in));
}

n2ce_norm_layer *n2ce_norm_layer_new(n2ce_parameters *parameters, const char *name,
                                     int64_t channels, int64_t groups, double eps) {
    n2ce_parameters *p = parameters;
    if (!p || !n2_has_name(p, name)) return NULL;
    if (channels < 1 || groups < 1 || channels % groups != 0) {
        n2_fail(n2_store_ctx(p->store->tensors), N2CE_EINVAL,
                "The norm \"%s\" has %lld channels in %lld groups; groups have as many each.", name,
                (long long)channels, (long long)groups);
        return NULL;
    }
    n2ce_norm_layer *layer = n2_arena_alloc(&p->store->arena, 1, sizeof *layer);
    if (!layer) return NULL;
    layer->store = p->store;
    layer->layer = n2_norm_layer_new(&p->list, name, channels, groups, eps);
    return layer->layer.scale && layer->layer.shift ? layer : NULL;
}

n2ce_node n2ce_norm_layer_apply(n2ce_graph *g, const n2ce_norm_layer *layer, n2ce_node x,
                                n2ce_activation act) {
    if (!g) return N2CE_NONE;
    if (!layer) return OUT(n2_fail_null(G, "layer"));
    if (!n2_tensor_fits(g, n2_tensor_out(layer->layer.scale))) return N2CE_NONE;
    const n2_node in = IN(x);
    return OUT(n2_norm_layer_apply(G, &layer->layer, in, N2_NONE, act_in(G, act)));
}

/* ---- averages ------------------------------------------------------------ */

n2ce_conv_layer *n2ce_conv_layer_averaged(const n2ce_conv_layer *layer) {
    n2ce_conv_layer *twin = layer ? n2_arena_alloc(&layer->store->arena, 1, sizeof *twin) : NULL;
    if (!twin) return NULL;
    const n2_layer of = {layer->layer.weight, layer->layer.bias};
    const n2_layer averages = n2_averaged_layer(layer->store->tensors, of);
    *twin = *layer;
    twin->layer.weight = averages.weight;
    twin->layer.bias = averages.bias;
    return twin;
}

n2ce_norm_layer *n2ce_norm_layer_averaged(const n2ce_norm_layer *layer) {
    n2ce_norm_layer *twin = layer ? n2_arena_alloc(&layer->store->arena, 1, sizeof *twin) : NULL;
    if (!twin) return NULL;
    const n2_layer of = {layer->layer.scale, layer->layer.shift};
    const n2_layer averages = n2_averaged_layer(layer->store->tensors, of);
    *twin = *layer;
    twin->layer.scale = averages.weight;
    twin->layer.shift = averages.bias;
    return twin;
}
