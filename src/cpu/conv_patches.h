/* How much of a convolution is a product at a time. */
#ifndef N2_CPU_CONV_PATCHES_H
#define N2_CPU_CONV_PATCHES_H

#include "winograd.h"

/* Numbers of x that a number of y is made of, and of the kernel. */
static inline int64_t n2_patch_size(const n2_conv *v) { return v->rows * v->columns * v->c_in; }

/* Pixels of y, in any picture, whose patches of x lie in scratch memory at a time: 128 KiB of them,
 * if a dozen is not more. */
static inline int64_t n2_patches_at_once(const n2_conv *v) {
    enum { NUMBERS = 32768, LEAST = 12, MOST = 240 };
    const int64_t size = n2_patch_size(v), all = size > 0 ? NUMBERS / size : MOST;
    return all < LEAST ? LEAST : all > MOST ? MOST : all / LEAST * LEAST;
}

/* Patches; for pictures' gradients a transposed kernel before them. */
static inline int64_t n2_conv_scratch(const n2_call *c) {
    const n2_conv v = n2_conv_of(c);
    const n2_winograd g = n2_winograd_of(c->node->op->id, &v);
    if (g.r) return n2_winograd_scratch(c->node->op->id, &g);
    const bool turned = c->node->op->id == N2_OP_conv2d_input;
    return n2_patch_size(&v) * (n2_patches_at_once(&v) + (turned ? v.c_out : 0));
}

#endif
