/* Score networks of pictures: U-Nets that are told the level of noise.
 *
 *   DDPM++   the network of EDM for CIFAR-10 ("SongUNet"): residual blocks halve and double the
 *            size, sums are scaled by sqrt(1/2), attention on the way up is behind a level's last
 *            block alone
 *   DDPM     the network of DDPM: convolutions halve and double, plain sums, attention behind every
 *            block of its levels
 *   ADM      the network of EDM for ImageNet-64 ("DhariwalUNet"): adaptive norms, plain sums,
 *            attention everywhere on its levels with 64 channels a head
 *
 * All have norms of min(32, c / 4) groups, an embedding of 4 base numbers, one attention at the
 * bottom, and predict as many channels as they are given. Layers are named as they are in PyTorch:
 * map_layer0, conv_in, enc.N, mid.N, dec.N, norm_out, conv_out; see nn/picture_layers.h for those
 * of a block. */
#ifndef N2_UNET_H
#define N2_UNET_H

#include "nn/picture_layers.h"

typedef enum n2_unet_kind { N2_UNET_DDPMPP, N2_UNET_DDPM, N2_UNET_ADM } n2_unet_kind;

enum { N2_UNET_LEVELS = 8, N2_UNET_KEPT = 64 };

typedef struct n2_unet_spec {
    n2_unet_kind kind;
    int64_t channels; /* of pictures */
    int64_t base;     /* channels of the network are multiples of it, on each level: */
    int64_t multiples[N2_UNET_LEVELS];
    int levels;         /* level l has pictures of size / 2^l */
    int blocks;         /* of a level on the way down; there is one more on the way up */
    unsigned attention; /* bit l: level l has it */
    int64_t labels;     /* classes; 0: not told */
    int64_t augment;    /* numbers that describe how a picture was changed; 0: not told */
    double dropout;     /* in training */
} n2_unet_spec;

/* U-Nets of the literature: of EDM on CIFAR-10 without labels (55,733,891 parameters), of DDPM on
 * CIFAR-10 (35,746,307), of EDM on ImageNet-64 (295,899,267); and S, the first with base 64,
 * multiples 1, 2, 2 and two blocks a level, without dropout (6,990,467). */
extern const n2_unet_spec n2_unet_ddpmpp_cifar10, n2_unet_ddpm_cifar10, n2_unet_adm_imagenet64,
    n2_unet_s;

/* A step between sizes by a convolution alone, or a block. */
typedef struct n2_unet_part {
    n2_resampling convolves; /* N2_SAME_SIZE: it is a block */
    n2_conv_layer conv;
    n2_block block;
    bool joins; /* reads what the way down kept, too */
    bool kept;  /* is on the way down */
} n2_unet_part;

typedef struct n2_unet {
    n2_unet_spec spec;
    n2_waves waves;
    n2_layer label, augment, map0, map1; /* label, augment: weight NULL where not told */
    n2_conv_layer in, out;
    n2_norm_layer norm;
    n2_unet_part *parts; /* memory of the store */
    int n_parts;
} n2_unet;

/* `prefix` begins the names of all parameters: "" or "score." for instance. A spec that cannot be
 * built (N2CE_EINVAL in the context's message) or a lack of memory leaves p->failed. */
n2_unet n2_unet_new(n2_parameters *p, const char *prefix, const n2_unet_spec *spec);

typedef struct n2_unet_input {
    n2_node x;       /* [n, h, w, channels]; h and w divisible by 2^(levels - 1) */
    n2_node level;   /* [n]: what it is told of the noise */
    n2_node labels;  /* [n, labels], one in each row; N2_NONE: nothing is said */
    n2_node augment; /* [n, augment]; N2_NONE: zeros */
    bool training;   /* with dropout */
    n2_node *bottom; /* is told what the way down ends with: see n2_unet_encode; or NULL */
} n2_unet_input;

/* [n, h, w, channels] */
#define n2_unet_apply(g, ...) N2_BUILT(g, n2_build_unet(g, __VA_ARGS__))
n2_node n2_build_unet(n2_graph *g, const n2_unet *net, const n2_unet_input *in);

/* The way down alone: [n, h / 2^(levels - 1), w / 2^(levels - 1), channels of the last level]. */
#define n2_unet_encode(g, ...) N2_BUILT(g, n2_build_unet_encode(g, __VA_ARGS__))
n2_node n2_build_unet_encode(n2_graph *g, const n2_unet *net, const n2_unet_input *in);

#endif
