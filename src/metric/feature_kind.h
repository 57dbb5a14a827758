/* What a kind of feature network provides: how its file is read, and its graph. Of this room only;
 * feature_net.h is the door. A new kind is a file, and a line in feature_net.c. */
#ifndef N2_FEATURE_KIND_H
#define N2_FEATURE_KIND_H

#include "nn/picture_layers.h"

/* A network that was read. `net` is the kind's own. */
typedef struct n2_feature_body {
    n2ce_ctx *ctx;
    n2_store *store;       /* where its tensors are */
    size_t side;           /* of the square RGB pictures it looks at */
    size_t width, classes; /* features of a picture; classes it knows */
    void *net;
} n2_feature_body;

typedef struct n2_feature_kind {
    const char *ending; /* of the file's name */
    /* Fills side, width, classes, net, and adds tensors. Fails with N2CE_EDATA for a file that is
     * no such network, N2CE_EIO, N2CE_ENOMEM; `free` is due in any case. */
    n2ce_status (*read)(n2_feature_body *body, const char *path);
    /* `numbers` of a picture, RGB from 0 to 1, into what the network was trained on. */
    void (*prepare)(float *picture, size_t numbers);
    /* Pictures [n x side x side x 3] into features [n x width] and probabilities [n x classes]. */
    void (*build)(const n2_feature_body *body, n2_graph *g, n2_node pictures, n2_node *features,
                  n2_node *probabilities);
    void (*free)(n2_feature_body *body);
} n2_feature_kind;

extern const n2_feature_kind n2_residual_kind; /* residual networks for CIFAR-10, NET.f32 */
extern const n2_feature_kind n2_ncnn_kind;     /* classifiers of ImageNet, NET.bin of ncnn */

#endif
