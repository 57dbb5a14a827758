/* How much of a convolution is a product at a time. */
#ifndef N2_CPU_CONV_PATCHES_H
#define N2_CPU_CONV_PATCHES_H

#include "winograd.h"

enum {
    N2_PATCHES = 192,     /* pixels of y, in any picture, whose patches of x are taken together, */
    N2_PATCH_SLICE = 256, /* so many of their numbers at a time */
    N2_PATCH_PANEL = 32   /* columns of the other factor that lie together */
};

/* Numbers of x that a number of y is made of, and of the kernel. */
static inline int64_t n2_patch_size(const n2_conv *v) { return v->rows * v->columns * v->c_in; }

/* A slice of patches, or of turned ones; panels; for pictures' gradients a transposed kernel. */
static inline int64_t n2_patches_scratch(n2_op_id op, const n2_conv *v) {
    const int64_t size = n2_patch_size(v), slice = N2_PATCHES * N2_PATCH_SLICE;
    if (op == N2_OP_conv2d) return slice + N2_PATCH_SLICE * N2_PATCH_PANEL;
    if (op == N2_OP_conv2d_weight) return slice + N2_PATCHES * v->c_out;
    return size * (v->c_out + N2_PATCHES) + N2_PATCH_SLICE * N2_PATCH_PANEL;
}

/* Enough for fewer pictures too, which the last tile has: they may be done in another way, which
 * wants more. Each way by itself wants no less for more pictures. */
static inline int64_t n2_conv_scratch(const n2_call *c) {
    const n2_conv v = n2_conv_of(c);
    const n2_op_id op = c->node->op->id;
    int64_t most = 0;
    for (int m = 2; m <= 4; m += 2) {
        const n2_winograd g = n2_winograd_with(op, &v, m);
        const int64_t wanted = g.r ? n2_winograd_scratch(op, &g) : n2_patches_scratch(op, &v);
        if (wanted > most && !(g.r == 3 && m == 2)) most = wanted;
    }
    return most;
}

#endif
