#define N2_INSIDE
#include "image_net.h"

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

static n2_conv_layer new_conv(n2_parameters *p, const char *list, int number, int64_t in,
                              int64_t out, n2_square window, bool transposed) {
    char name[32];
    snprintf(name, sizeof name, "%s.%d", list, number);
    const n2_conv_shape shape = {.in = in,
                                 .out = out,
                                 .kernel = window.kernel,
                                 .stride = window.stride,
                                 .padding = window.padding};
    return transposed ? n2_deconv_layer_new(p, name, shape, N2_INIT_DEFAULT)
                      : n2_conv_layer_new(p, name, shape, N2_INIT_DEFAULT);
}

/* Instance norm. */
static n2_norm_layer new_norm(n2_parameters *p, const char *list, int number, int64_t channels) {
    char name[32];
    snprintf(name, sizeof name, "%s.%d", list, number);
    return n2_norm_layer_new(p, name, channels, channels, NORM_EPS);
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
    if (nz == 0) return net;
    net.mean = n2_layer_new(p, "mean", in, nz);
    net.logvar = n2_layer_new(p, "logvar", in, nz);
    return net;
}

n2_node n2_build_image_embed(n2_graph *g, const n2_image_encoder *net, n2_node x) {
    /* Instance norm takes a channel's mean away, and a bias with it: those before a norm are
     * parameters of the model whose gradients are zero. */
    for (int i = 0; i + 1 < net->n; i++) {
        const n2_node h = n2_conv_layer_bare(g, &net->conv[i], x);
        x = n2_norm_layer_apply(g, &net->norm[i], h, N2_NONE, N2_ACT_LRELU);
    }
    x = n2_conv_layer_apply(g, &net->conv[net->n - 1], x);
    if (!x.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, x);
    return n2g_reshape(g, x, n2_dims(s.dim[0], s.dim[1] * s.dim[2] * s.dim[3]));
}

void n2_build_image_encode(n2_graph *g, const n2_image_encoder *net, n2_node x, n2_node *mean,
                           n2_node *logvar) {
    *mean = *logvar = N2_NONE;
    const n2_node embedding = n2_image_embed(g, net, x);
    if (!embedding.id) return;
    const n2_node h = n2g_lrelu(g, embedding, HEAD_SLOPE);
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

n2_node n2_build_image_decode_bare(n2_graph *g, const n2_image_decoder *net, n2_node z) {
    if (!z.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, z);
    n2_node x = n2g_reshape(g, z, n2_dims(s.dim[0], 1, 1, s.dim[1]));
    for (int i = 0; i < net->n; i++) {
        if (i > 0) x = n2g_lrelu(g, x, SLOPE);
        x = n2_deconv_layer_apply(g, &net->conv[i], x);
    }
    return x;
}

n2_node n2_build_image_decode(n2_graph *g, const n2_image_decoder *net, n2_node z) {
    return n2g_tanh(g, n2_image_decode_bare(g, net, z));
}
