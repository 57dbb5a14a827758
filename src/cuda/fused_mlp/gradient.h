/* Gradients of weights, from what fused MLPs stored: g^T x for the gradient g of a layer's output
 * and its input x, both from the stash (mlp.h), and the sums of g's columns, the bias's gradient.
 *
 * A block has a slice of the rows and all numbers, 128 x 128 at most, in registers. Its tiles come
 * by bulk copies, several on their way at once: the memory's speed is the limit. */
#ifndef N2_CUDA_GRADIENT_H
#define N2_CUDA_GRADIENT_H

#include "mlp.h"

enum { GRADIENT_STEP = 128 /* rows that are multiplied at once, and whose columns are one sum */ };

typedef struct gradient {
    const void *g, *x; /* in the stash */
    float *out;        /* [slices x m x n] */
    float *sums;       /* [slices x m]; NULL: none */
    float *squares;    /* the sum of all squares, if there is one slice; NULL: not wanted */
    int64_t rows;
    const void *pair_g, *pair_x; /* likewise, whose product goes into the last slice; NULL: none */
    int64_t pair_rows;
    int32_t m, n;
    int32_t first_block, n_blocks; /* a block has a slice */
    int32_t slice_rows;            /* a multiple of GRADIENT_STEP */
    uint8_t adds, sums_add;        /* to what is there */
} gradient;

cudaError_t n2_gradients_prepare(void);
void n2_gradients_launch(const gradient *list, const block_starts *starts, uint32_t blocks,
                         bool strict, cudaStream_t stream, bool early);

#endif
