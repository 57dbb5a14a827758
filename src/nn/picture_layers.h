/* Layers of networks of pictures: convolutions, norms, attention, the residual block of score
 * networks, embeddings of noise levels.
 *
 * Pictures are [n, height, width, channels]. Parameters have the names and numbers of PyTorch's
 * state dict ("conv0.weight", "conv0.bias"; a norm's scale is its weight). Kernels lie in memory as
 * [rows, columns, in, out]; in files they have PyTorch's order, [out, in, rows, columns]. */
#ifndef N2_PICTURE_LAYERS_H
#define N2_PICTURE_LAYERS_H

#include "nn.h"

/* ---- convolutions ---- */

typedef struct n2_conv_layer {
    n2_tensor *weight; /* [rows, columns, in, out]; transposed: [rows, columns, out, in] */
    n2_tensor *bias;   /* [out]; NULL: none */
    n2_window window;
} n2_conv_layer;

/* Square kernels, the same stride both ways, as many zeros on all sides. */
typedef struct n2_conv_shape {
    int64_t in, out;
    int32_t kernel, stride, padding;
    bool no_bias;
} n2_conv_shape;

/* The window may be changed in the result, for other zeros on each side. */
n2_conv_layer n2_conv_layer_new(n2_parameters *p, const char *name, n2_conv_shape shape,
                                n2_init init);
#define n2_conv_layer_apply(g, ...) N2_BUILT(g, n2_build_conv_layer(g, __VA_ARGS__))
n2_node n2_build_conv_layer(n2_graph *g, const n2_conv_layer *layer, n2_node x);

/* Without the bias: for who gives it to what follows, where it costs no pass over the pictures. */
#define n2_conv_layer_bare(g, ...) N2_BUILT(g, n2_build_conv_bare(g, __VA_ARGS__))
n2_node n2_build_conv_bare(n2_graph *g, const n2_conv_layer *layer, n2_node x);

/* The transposed convolution, PyTorch's ConvTranspose2d: pictures of (h - 1) stride + kernel -
 * 2 padding rows. Its fan_in is out k k, as PyTorch has it. */
n2_conv_layer n2_deconv_layer_new(n2_parameters *p, const char *name, n2_conv_shape shape,
                                  n2_init init);
#define n2_deconv_layer_apply(g, ...) N2_BUILT(g, n2_build_deconv_layer(g, __VA_ARGS__))
n2_node n2_build_deconv_layer(n2_graph *g, const n2_conv_layer *layer, n2_node x);

/* ---- norms ---- */

/* Group norm with a scale and a shift of each channel, 1 and 0 at first. Instance norm: as many
 * groups as channels. */
typedef struct n2_norm_layer {
    n2_tensor *scale, *shift; /* [c]: NAME.weight, NAME.bias */
    int64_t groups;
    double eps;
} n2_norm_layer;
n2_norm_layer n2_norm_layer_new(n2_parameters *p, const char *name, int64_t channels,
                                int64_t groups, double eps);

/* act(norm(x + shift)). shift, or N2_NONE: [c] or [n, c], the bias of the convolution before it for
 * instance. Slope of LeakyReLU: 0.2. */
#define n2_norm_layer_apply(g, ...) N2_BUILT(g, n2_build_norm_layer(g, __VA_ARGS__))
n2_node n2_build_norm_layer(n2_graph *g, const n2_norm_layer *layer, n2_node x, n2_node shift,
                            n2_act act);

/* ---- the residual block of a score network ----
 *
 *     h = conv0(resample(silu(norm0(x))))
 *     h = silu(norm1(h + affine(e)))                   or, adaptive,
 *         silu(norm1(h) (1 + s) + t), [s t] = affine(e)
 *     h = conv1(dropout(h))
 *     y = (h + skip(resample(x))) scale                skip: a 1 x 1 convolution, or nothing
 *     y = (y + proj(attention(qkv(norm2(y))))) scale   if it has heads
 *
 * with convolutions 3 x 3 but for skip, qkv and proj; min(32, c / 4) groups of channels. */

typedef enum n2_resampling { N2_SAME_SIZE, N2_HALF_SIZE, N2_DOUBLE_SIZE } n2_resampling;

/* What the blocks of a network have in common. */
typedef struct n2_block_style {
    int64_t embedding; /* numbers of e */
    bool adaptive;
    bool always_skips; /* a 1 x 1 convolution where the size changes, too; else channels alone */
    double scale;      /* of sums: sqrt(1/2), or 1 */
    double eps;        /* of norms */
    double dropout;    /* in training; 0: none */
    n2_init init, init_last, init_qkv; /* init_last: of conv1 and proj */
} n2_block_style;

typedef struct n2_block_shape {
    int64_t in, out;
    n2_resampling resampling;
    int64_t heads; /* of the attention at the end; 0: none */
} n2_block_shape;

typedef struct n2_attention_layer {
    n2_norm_layer norm;
    n2_conv_layer qkv, proj; /* channels of qkv: queries, keys, values */
    int64_t heads;           /* 0: there is none */
    double scale;
} n2_attention_layer;

typedef struct n2_block {
    n2_norm_layer norm0, norm1;
    n2_conv_layer conv0, conv1, skip; /* skip: not there if `skips` is false */
    n2_layer affine;
    n2_attention_layer attention;
    n2_resampling resampling;
    bool skips, adaptive;
    double scale, dropout;
} n2_block;

/* Norms of score networks: min(32, c / 4) groups. */
n2_norm_layer n2_block_norm_new(n2_parameters *p, const char *name, int64_t channels, double eps);

n2_block n2_block_new(n2_parameters *p, const char *name, n2_block_shape shape,
                      const n2_block_style *style);
/* e: [n, embedding], after its activation. */
#define n2_block_apply(g, ...) N2_BUILT(g, n2_build_block(g, __VA_ARGS__))
n2_node n2_build_block(n2_graph *g, const n2_block *block, n2_node x, n2_node e, bool training);

/* ---- mirror images ---- */

/* Pictures whose coin [n] is 1 with left and right exchanged, those whose coin is 0 as they are. */
#define n2_mirror_pictures(g, ...) N2_BUILT(g, n2_build_mirror(g, __VA_ARGS__))
n2_node n2_build_mirror(n2_graph *g, n2_node x, n2_node coin);

/* ---- embeddings of a number ---- */

typedef enum n2_wave_form {
    N2_WAVES_SINE_FIRST,  /* [sin, cos], frequencies 10000^(-i / (width/2 - 1)): DDPM, DDPM++ */
    N2_WAVES_COSINE_FIRST /* [cos, sin], frequencies 10000^(-i / (width/2)): ADM */
} n2_wave_form;

/* Waves of fixed frequencies, for a number of each picture. */
typedef struct n2_waves {
    n2_tensor *frequencies; /* [width / 2]: a tensor of the store, but no parameter */
    double factor;
    bool cosine_first;
} n2_waves;
n2_waves n2_waves_new(n2_parameters *p, const char *name, int64_t width, n2_wave_form form);

/* Frequencies from N(0, scale^2), in turns: [cos, sin] of 2 pi f t. */
n2_waves n2_fourier_new(n2_parameters *p, const char *name, int64_t width, double scale);

/* t [n] becomes [n, width]. */
#define n2_waves_apply(g, ...) N2_BUILT(g, n2_build_waves(g, __VA_ARGS__))
n2_node n2_build_waves(n2_graph *g, const n2_waves *waves, n2_node t);

#endif
