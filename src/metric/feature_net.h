/* Feature networks: classifiers of which the numbers before the last layer are features of a
 * picture. The name of the file says which kind it is:
 *
 *   NET.f32    the residual networks of He et al. for CIFAR-10, 32 x 32 RGB, shortcuts without
 *              parameters: ResNet-20, 32, 44, 56, 110 and others of three groups of blocks, in
 *              which the number of channels doubles from one to the next. The file is that of
 *              weights_file.h with PyTorch's names (conv1, bn1, layer1.0.conv1 ... linear). Norms
 *              are folded into kernels and biases.
 *   NET.bin    classifiers of ImageNet in ncnn's format, with NET.param (of NET_fp16.bin too)
 *              beside it: convolutions with ReLU, maxima of 3 x 3 at a stride of 2, concatenations,
 *              an average at the end. SqueezeNet 1.1 is one. Features are the average over space
 *              of what the last convolution reads; pictures are BGR less ImageNet's means. */
#ifndef N2_FEATURE_NET_H
#define N2_FEATURE_NET_H

#include "image/image.h"
#include "train/device_choice.h"

typedef struct n2_feature_net n2_feature_net;

/* Fails with N2CE_EDATA for a file that is not such a network, N2CE_EIO, N2CE_ENOMEM. */
n2ce_status n2_feature_net_open(n2ce_ctx *ctx, const char *path, n2_feature_net **out);
void n2_feature_net_free(n2_feature_net *net); /* NULL is fine */

size_t n2_feature_net_width(const n2_feature_net *net);   /* features of a picture */
size_t n2_feature_net_classes(const n2_feature_net *net); /* classes it knows */

/* Features [n x width] and probabilities of the classes [n x classes] of all pictures, which are
 * brought to the size that the network wants first. `choice` is settled by measuring. Fails with
 * N2CE_ENOMEM, N2CE_EDEVICE, N2CE_ECANCELED. */
n2ce_status n2_feature_net_apply(n2_feature_net *net, const n2_images *pictures,
                                 n2_device_choice *choice, float *features, double *probabilities);

#endif
