/* The residual block of score networks, and its attention. */
#define N2_INSIDE
#include "picture_layers.h"

#include <stdio.h>

enum { NAME = 80 };

n2_norm_layer n2_block_norm_new(n2_parameters *p, const char *name, int64_t channels, double eps) {
    return n2_norm_layer_new(p, name, channels, channels / 4 < 32 ? channels / 4 : 32, eps);
}

static n2_norm_layer new_norm(n2_parameters *p, const char *block, const char *name, int64_t c,
                              double eps) {
    char full[NAME];
    snprintf(full, sizeof full, "%s.%s", block, name);
    return n2_block_norm_new(p, full, c, eps);
}

/* k x k, same size. */
static n2_conv_layer new_conv(n2_parameters *p, const char *block, const char *name, int64_t in,
                              int64_t out, int k, n2_init init) {
    char full[NAME];
    snprintf(full, sizeof full, "%s.%s", block, name);
    const n2_conv_shape shape = {.in = in, .out = out, .kernel = k, .stride = 1, .padding = k / 2};
    return n2_conv_layer_new(p, full, shape, init);
}

static n2_attention_layer new_attention(n2_parameters *p, const char *name, int64_t c,
                                        int64_t heads, const n2_block_style *style) {
    n2_attention_layer a = {.heads = heads, .scale = style->scale};
    if (!heads) return a;
    a.norm = new_norm(p, name, "norm2", c, style->eps);
    a.qkv = new_conv(p, name, "qkv", c, 3 * c, 1, style->init_qkv);
    a.proj = new_conv(p, name, "proj", c, c, 1, style->init_last);
    return a;
}

n2_block n2_block_new(n2_parameters *p, const char *name, n2_block_shape s,
                      const n2_block_style *style) {
    char affine[NAME];
    snprintf(affine, sizeof affine, "%s.affine", name);
    const int64_t in = s.in, out = s.out;
    const bool resamples = s.resampling != N2_SAME_SIZE;
    n2_block b = {.resampling = s.resampling,
                  .skips = in != out || (resamples && style->always_skips),
                  .adaptive = style->adaptive,
                  .scale = style->scale,
                  .dropout = style->dropout};
    b.norm0 = new_norm(p, name, "norm0", in, style->eps);
    b.conv0 = new_conv(p, name, "conv0", in, out, 3, style->init);
    b.affine = n2_layer_drawn(p, affine, style->embedding, style->adaptive ? 2 * out : out,
                              style->init, true);
    b.norm1 = new_norm(p, name, "norm1", out, style->eps);
    b.conv1 = new_conv(p, name, "conv1", out, out, 3, style->init_last);
    if (b.skips) b.skip = new_conv(p, name, "skip", in, out, 1, style->init);
    b.attention = new_attention(p, name, out, s.heads, style);
    return b;
}

static n2_node resample(n2_graph *g, n2_node x, n2_resampling how) {
    if (how == N2_HALF_SIZE) return n2g_avg_pool2(g, x);
    return how == N2_DOUBLE_SIZE ? n2g_upsample2(g, x) : x;
}

/* (a + b + bias) scale: one pass over pictures. */
static n2_node join(n2_graph *g, n2_node a, n2_node b, n2_node bias, double scale) {
    return n2g_scale(g, n2g_add(g, n2g_add(g, a, b), bias), scale);
}

/* ---- attention --------------------------------------------------------------- */

static n2_node apply_attention(n2_graph *g, const n2_attention_layer *a, n2_node x) {
    const n2_shape s = n2_shape_at(g, x);
    const int64_t n = s.dim[0], t = s.dim[1] * s.dim[2], c = s.dim[3];
    const n2_node normal = n2_norm_layer_apply(g, &a->norm, x, N2_NONE, N2_ACT_NONE);
    const n2_node qkv = n2_conv_layer_apply(g, &a->qkv, normal);
    const n2_node y = n2g_attention(g, n2g_reshape(g, qkv, n2_dims(n, t, 3 * c)), a->heads);
    const n2_node projected = n2_conv_layer_bare(g, &a->proj, n2g_reshape(g, y, s));
    return join(g, x, projected, n2g_read(g, a->proj.bias), a->scale);
}

/* ---- the block --------------------------------------------------------------- */

/* silu(norm1(h) (1 + s) + t): a norm with a scale and a shift for each picture. */
static n2_node adapt(n2_graph *g, const n2_block *b, n2_node h, n2_node e) {
    const n2_node both = n2_layer_apply(g, &b->affine, e);
    if (!both.id) return N2_NONE;
    const int64_t c = n2_shape_at(g, both).dim[1] / 2;
    const n2_node factor = n2g_affine(g, n2g_slice(g, both, 1, 0, c), 1, 1);
    const n2_node t = n2g_slice(g, both, 1, c, c);
    const n2_node gamma = n2g_mul(g, factor, n2g_read(g, b->norm1.scale));
    const n2_node beta = n2g_add(g, n2g_mul(g, factor, n2g_read(g, b->norm1.shift)), t);
    const n2_norm norm = {(int32_t)b->norm1.groups, N2_ACT_SILU, b->norm1.eps, 0};
    return n2g_norm(g, h, n2g_read(g, b->conv0.bias), gamma, beta, norm);
}

/* The biases of conv0 and of the embedding's layer are one, and go to the norm. */
static n2_node embed(n2_graph *g, const n2_block *b, n2_node h, n2_node e) {
    if (b->adaptive) return adapt(g, b, h, e);
    const n2_node bias = n2g_add(g, n2g_read(g, b->affine.bias), n2g_read(g, b->conv0.bias));
    const n2_node shift = n2g_linear(g, e, n2g_read(g, b->affine.weight), bias);
    return n2_norm_layer_apply(g, &b->norm1, h, shift, N2_ACT_SILU);
}

/* A 1 x 1 convolution does not care whether pixels are copied before it or after. */
static n2_node skip(n2_graph *g, const n2_block *b, n2_node x) {
    if (!b->skips) return resample(g, x, b->resampling);
    if (b->resampling == N2_DOUBLE_SIZE)
        return n2g_upsample2(g, n2_conv_layer_bare(g, &b->skip, x));
    return n2_conv_layer_bare(g, &b->skip, resample(g, x, b->resampling));
}

n2_node n2_build_block(n2_graph *g, const n2_block *b, n2_node x, n2_node e, bool training) {
    n2_node h = n2_norm_layer_apply(g, &b->norm0, x, N2_NONE, N2_ACT_SILU);
    h = n2_conv_layer_bare(g, &b->conv0, resample(g, h, b->resampling));
    h = embed(g, b, h, e);
    if (training) h = n2g_dropout(g, h, b->dropout);
    h = n2_conv_layer_bare(g, &b->conv1, h);
    n2_node bias = n2g_read(g, b->conv1.bias);
    if (b->skips) bias = n2g_add(g, bias, n2g_read(g, b->skip.bias));
    const n2_node y = join(g, h, skip(g, b, x), bias, b->scale);
    return b->attention.heads && y.id ? apply_attention(g, &b->attention, y) : y;
}
