#define N2_INSIDE
#include "image_net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double SLOPE = 0.2, HEAD_SLOPE = 0.01, NORM_EPS = 1e-5;

/* clang-format off */
#define SAME   {3, 1, 1}
#define HALVE  {4, 2, 1} /* of a transposed convolution: doubles */
#define ALL(K) {K, 1, 0} /* a picture of K x K to 1 x 1, or back */

static const n2_image_spec specs[] = {
    {"mnist", 28, 1,
     {{SAME, 1}, {HALVE, 2}, {HALVE, 4}, {HALVE, 8}, {ALL(3), 0}},
     {{ALL(7), 8}, {HALVE, 4}, {HALVE, 2}, {SAME, 0}}},
    {"svhn", 32, 3,
     {{SAME, 1}, {HALVE, 2}, {HALVE, 4}, {HALVE, 8}, {ALL(4), 0}},
     {{ALL(4), 8}, {HALVE, 4}, {HALVE, 2}, {HALVE, 0}}},
    {"cifar", 32, 3,
     {{SAME, 1}, {HALVE, 2}, {HALVE, 4}, {HALVE, 8}, {ALL(4), 0}},
     {{ALL(8), 8}, {HALVE, 4}, {HALVE, 2}, {SAME, 0}}},
    {"celeba", 64, 3,
     {{SAME, 1}, {HALVE, 2}, {HALVE, 4}, {HALVE, 8}, {HALVE, 8}, {ALL(4), 0}},
     {{ALL(4), 8}, {HALVE, 4}, {HALVE, 2}, {HALVE, 1}, {HALVE, 0}}},
    {"celeba-hq", 256, 3,
     {{SAME, 1}, {HALVE, 2}, {HALVE, 4}, {HALVE, 4}, {HALVE, 8}, {HALVE, 8}, {HALVE, 8},
      {ALL(4), 0}},
     {{ALL(4), 16}, {HALVE, 8}, {HALVE, 4}, {HALVE, 4}, {HALVE, 2}, {HALVE, 1}, {HALVE, 0}}},
};
/* clang-format on */

const n2_image_spec *n2_image_spec_named(const char *name) {
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        if (strcmp(specs[i].name, name) == 0) return &specs[i];
    return NULL;
}

/* ---- layers ---- */

static n2_tensor *add(n2_parameters *p, const char *name, int number, const char *kind,
                      n2_shape shape, double bound) {
    char full[48];
    snprintf(full, sizeof full, "%s.%d.%s", name, number, kind);
    return n2_parameter(p, full, shape, bound);
}

/* fan_in is that of PyTorch: channels out count for a transposed convolution. */
static n2_image_conv new_conv(n2_parameters *p, const char *name, int number, int64_t in,
                              int64_t out, n2_square window, bool transposed) {
    const int64_t side = window.kernel, a = transposed ? out : in, b = transposed ? in : out;
    const double bound = 1 / sqrt((double)(side * side * a));
    n2_image_conv layer = {.window = window};
    layer.kernel = add(p, name, number, "weight", n2_dims(side, side, a, b), bound);
    layer.bias = add(p, name, number, "bias", n2_dims(out), bound);
    return layer;
}

static n2_window window_of(const n2_image_conv *layer) {
    const n2_square s = layer->window;
    return (n2_window){s.stride, s.stride, s.padding, s.padding, s.padding, s.padding};
}

static n2_node convolve(n2_graph *g, const n2_image_conv *layer, n2_node x) {
    return n2g_conv2d(g, x, n2g_read(g, layer->kernel), window_of(layer));
}

static n2_node convolve_transposed(n2_graph *g, const n2_image_conv *layer, n2_node x) {
    if (!x.id) return N2_NONE;
    const n2_shape from = n2_shape_at(g, x);
    const int64_t stride = layer->window.stride;
    const int64_t grown = layer->window.kernel - 2 * layer->window.padding;
    return n2g_conv2d_input(g, x, n2g_read(g, layer->kernel), (from.dim[1] - 1) * stride + grown,
                            (from.dim[2] - 1) * stride + grown, window_of(layer));
}

static n2_image_norm new_norm(n2_parameters *p, const char *name, int number, int64_t channels) {
    n2_image_norm layer;
    layer.scale = add(p, name, number, "weight", n2_dims(channels), 0);
    layer.shift = add(p, name, number, "bias", n2_dims(channels), 0);
    for (int64_t i = 0; i < channels && layer.scale; i++)
        if (n2_store_bytes(p->store) == sizeof(float))
            ((float *)layer.scale->data)[i] = 1;
        else
            ((double *)layer.scale->data)[i] = 1;
    return layer;
}

/* Instance norm, and LeakyReLU. */
static n2_node normalise(n2_graph *g, const n2_image_norm *layer, n2_node x) {
    const n2_norm norm = {(int32_t)layer->scale->shape.dim[0], N2_ACT_LRELU, NORM_EPS, SLOPE};
    return n2g_norm(g, x, N2_NONE, n2g_read(g, layer->scale), n2g_read(g, layer->shift), norm);
}

/* ---- networks ---- */

static int count_rows(const n2_image_row *rows) {
    int n = 0;
    while (n < N2_IMAGE_LAYERS && rows[n].window.kernel) n++;
    return n;
}

n2_image_encoder n2_image_encoder_new(n2_parameters *p, const n2_image_spec *spec, int64_t width,
                                      int64_t embedding, int64_t nz) {
    n2_image_encoder net = {.n = count_rows(spec->encoder)};
    int64_t in = spec->channels;
    for (int i = 0; i < net.n; i++) {
        const n2_image_row row = spec->encoder[i];
        const int64_t out = row.multiple ? row.multiple * width : embedding;
        net.conv[i] = new_conv(p, "enc", 3 * i, in, out, row.window, false);
        if (i + 1 < net.n) net.norm[i] = new_norm(p, "enc", 3 * i + 1, out);
        in = out;
    }
    net.mean = n2_layer_new(p, "mean", in, nz);
    net.logvar = n2_layer_new(p, "logvar", in, nz);
    return net;
}

void n2_build_image_encode(n2_graph *g, const n2_image_encoder *net, n2_node x, n2_node *mean,
                           n2_node *logvar) {
    /* Instance norm takes a channel's mean away, and a bias with it: those before a norm are
     * parameters of the model whose gradients are zero. */
    for (int i = 0; i + 1 < net->n; i++) {
        const n2_node h = convolve(g, &net->conv[i], x);
        x = normalise(g, &net->norm[i], h);
    }
    *mean = *logvar = N2_NONE;
    const n2_image_conv *last = &net->conv[net->n - 1];
    x = n2g_add(g, convolve(g, last, x), n2g_read(g, last->bias));
    if (!x.id) return;
    const n2_shape s = n2_shape_at(g, x);
    const n2_node flat = n2g_reshape(g, x, n2_dims(s.dim[0], s.dim[1] * s.dim[2] * s.dim[3]));
    const n2_node h = n2g_lrelu(g, flat, HEAD_SLOPE);
    *mean = n2_layer_apply(g, &net->mean, h);
    *logvar = n2_layer_apply(g, &net->logvar, h);
}

n2_image_decoder n2_image_decoder_new(n2_parameters *p, const n2_image_spec *spec, int64_t width,
                                      int64_t nz) {
    n2_image_decoder net = {.n = count_rows(spec->decoder)};
    for (int i = 0; i < net.n; i++) {
        const n2_image_row row = spec->decoder[i];
        const int64_t out = row.multiple ? row.multiple * width : spec->channels;
        net.conv[i] = new_conv(p, "dec", 2 * i, nz, out, row.window, true);
        nz = out;
    }
    return net;
}

n2_node n2_build_image_decode(n2_graph *g, const n2_image_decoder *net, n2_node z) {
    if (!z.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, z);
    n2_node x = n2g_reshape(g, z, n2_dims(s.dim[0], 1, 1, s.dim[1]));
    for (int i = 0; i < net->n; i++) {
        if (i > 0) x = n2g_lrelu(g, x, SLOPE);
        x = n2g_add(g, convolve_transposed(g, &net->conv[i], x), n2g_read(g, net->conv[i].bias));
    }
    return n2g_tanh(g, x);
}
