/* Convolutions and norms with their parameters. */
#define N2_INSIDE
#include "picture_layers.h"

#include <stdio.h>

enum { NAME = 96 };
static const double LEAK = 0.2;

static const char *part(char full[NAME], const char *name, const char *of) {
    snprintf(full, NAME, "%s.%s", name, of);
    return full;
}

/* in and out of the forward convolution, whose kernel it is. */
static n2_conv_layer new_layer(n2_parameters *p, const char *name, n2_conv_shape s, n2_shape kernel,
                               n2_init init, int64_t fan_in, int64_t fan_out) {
    char full[NAME];
    const n2_drawn weight = {init.mode, init.weight, fan_in, fan_out};
    const n2_drawn bias = {init.mode, init.bias, fan_in, fan_out};
    n2_conv_layer layer = {
        .window = {s.stride, s.stride, s.padding, s.padding, s.padding, s.padding}};
    layer.weight = n2_parameter_drawn(p, part(full, name, "weight"), kernel, weight);
    if (layer.weight) layer.weight->is_kernel = true;
    if (!s.no_bias)
        layer.bias = n2_parameter_drawn(p, part(full, name, "bias"), n2_dims(s.out), bias);
    return layer;
}

n2_conv_layer n2_conv_layer_new(n2_parameters *p, const char *name, n2_conv_shape s, n2_init init) {
    const int64_t area = (int64_t)s.kernel * s.kernel;
    const n2_shape kernel = n2_dims(s.kernel, s.kernel, s.in, s.out);
    return new_layer(p, name, s, kernel, init, s.in * area, s.out * area);
}

n2_conv_layer n2_deconv_layer_new(n2_parameters *p, const char *name, n2_conv_shape s,
                                  n2_init init) {
    const int64_t area = (int64_t)s.kernel * s.kernel;
    const n2_shape kernel = n2_dims(s.kernel, s.kernel, s.out, s.in);
    return new_layer(p, name, s, kernel, init, s.out * area, s.in * area);
}

n2_node n2_build_conv_bare(n2_graph *g, const n2_conv_layer *layer, n2_node x) {
    return n2g_conv2d(g, x, n2g_read(g, layer->weight), layer->window);
}

static n2_node add_bias(n2_graph *g, const n2_conv_layer *layer, n2_node y) {
    return layer->bias ? n2g_add(g, y, n2g_read(g, layer->bias)) : y;
}

n2_node n2_build_conv_layer(n2_graph *g, const n2_conv_layer *layer, n2_node x) {
    return add_bias(g, layer, n2_build_conv_bare(g, layer, x));
}

n2_node n2_build_deconv_layer(n2_graph *g, const n2_conv_layer *layer, n2_node x) {
    const n2_node kernel = n2g_read(g, layer->weight);
    if (!x.id || !kernel.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, x), k = n2_shape_at(g, kernel);
    const n2_window v = layer->window;
    const int64_t height = (s.dim[1] - 1) * v.stride_y + k.dim[0] - v.top - v.bottom;
    const int64_t width = (s.dim[2] - 1) * v.stride_x + k.dim[1] - v.left - v.right;
    return add_bias(g, layer, n2g_conv2d_input(g, x, kernel, height, width, v));
}

n2_norm_layer n2_norm_layer_new(n2_parameters *p, const char *name, int64_t channels,
                                int64_t groups, double eps) {
    char full[NAME];
    n2_norm_layer layer = {.groups = groups, .eps = eps};
    layer.scale = n2_parameter_of(p, part(full, name, "weight"), n2_dims(channels), 1);
    layer.shift = n2_parameter_of(p, part(full, name, "bias"), n2_dims(channels), 0);
    return layer;
}

n2_node n2_build_norm_layer(n2_graph *g, const n2_norm_layer *layer, n2_node x, n2_node shift,
                            n2_act act) {
    const n2_norm norm = {(int32_t)layer->groups, (int32_t)act, layer->eps, LEAK};
    return n2g_norm(g, x, shift, n2g_read(g, layer->scale), n2g_read(g, layer->shift), norm);
}
