/* Convolutional encoder and decoder of pictures, as latent energy-based models use them.
 *
 *   encoder   convolutions with instance norm (scale, shift, eps 1e-5) and LeakyReLU(0.2), the last
 *             one bare and down to 1 x 1: an embedding. Heads: LeakyReLU(0.01), then a linear layer
 *             each for mean and log variance of the code
 *   decoder   the code as 1 x 1 picture of nz channels, transposed convolutions with LeakyReLU(0.2)
 *             between them, tanh
 *
 * What differs between data sets is a row of a table. Pictures are [n x side x side x channels] in
 * [-1, 1]. Parameters are named as PyTorch names those of nn.Sequential: "enc.0.weight", norms at
 * "enc.1", "dec.0", "dec.2", ...; "mean", "logvar". */
#ifndef N2_IMAGE_NET_H
#define N2_IMAGE_NET_H

#include "nn/picture_layers.h"

enum { N2_IMAGE_LAYERS = 8 };

/* A square window: side of the kernel, stride, zeros on every side. */
typedef struct n2_square {
    int kernel, stride, padding;
} n2_square;

/* One convolution: its window, and the channels it makes in multiples of the width. 0: what comes
 * out of the network. */
typedef struct n2_image_row {
    n2_square window;
    int multiple;
} n2_image_row;

typedef struct n2_image_spec {
    const char *name;
    int64_t side, channels;
    n2_image_row encoder[N2_IMAGE_LAYERS]; /* those with a kernel of 0 are not there */
    n2_image_row decoder[N2_IMAGE_LAYERS];
} n2_image_spec;

/* "mnist" (28 x 28 x 1), "svhn", "cifar" (32 x 32 x 3), "celeba" (64 x 64 x 3), "celeba-hq"
 * (256 x 256 x 3). NULL: no such name. */
const n2_image_spec *n2_image_spec_named(const char *name);

typedef struct n2_image_encoder {
    n2_conv_layer conv[N2_IMAGE_LAYERS];
    n2_norm_layer norm[N2_IMAGE_LAYERS]; /* the last convolution has none */
    int n;
    n2_layer mean, logvar;
} n2_image_encoder;

/* width: channels of the first convolution; embedding: numbers that the heads see. nz = 0: no
 * heads, what embeds and does not encode. */
n2_image_encoder n2_image_encoder_new(n2_parameters *p, const n2_image_spec *spec, int64_t width,
                                      int64_t embedding, int64_t nz);

/* The embedding, [n x embedding]. */
#define n2_image_embed(g, ...) N2_BUILT(g, n2_build_image_embed(g, __VA_ARGS__))
n2_node n2_build_image_embed(n2_graph *g, const n2_image_encoder *net, n2_node x);

/* [n x nz] each. */
#define n2_image_encode(g, ...) N2_BUILT_ALL(g, n2_build_image_encode(g, __VA_ARGS__))
void n2_build_image_encode(n2_graph *g, const n2_image_encoder *net, n2_node x, n2_node *mean,
                           n2_node *logvar);

typedef struct n2_image_decoder {
    n2_conv_layer conv[N2_IMAGE_LAYERS];
    int n;
} n2_image_decoder;

n2_image_decoder n2_image_decoder_new(n2_parameters *p, const n2_image_spec *spec, int64_t width,
                                      int64_t nz);

/* Pictures of codes [n x nz]; and without the tanh. */
#define n2_image_decode_bare(g, ...) N2_BUILT(g, n2_build_image_decode_bare(g, __VA_ARGS__))
n2_node n2_build_image_decode_bare(n2_graph *g, const n2_image_decoder *net, n2_node z);
#define n2_image_decode(g, ...) N2_BUILT(g, n2_build_image_decode(g, __VA_ARGS__))
n2_node n2_build_image_decode(n2_graph *g, const n2_image_decoder *net, n2_node z);

#endif
