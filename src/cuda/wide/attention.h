/* Attention on tensor cores (engine/graph.h): blocks of queries, or of keys for the gradients of
 * keys and values, that walk over all positions of their head. The t x t weights are made tile by
 * tile, in registers, and made again for the gradient.
 *
 * Heads have up to 256 channels, any number of positions, in 16 bits or as floats. Floats are
 * multiplied as tf32, or in float32's precision as three products (gpu_device.strict). Sums are
 * float32, in an order that depends on the shapes only. What qkv lies in memory as is multiplied;
 * dy and the result may lie otherwise. */
#ifndef N2_CUDA_ATTENTION_H
#define N2_CUDA_ATTENTION_H

#include "wide.h"

enum { ATTENTION_WIDTH = 256 }; /* channels of a head, at most */

/* What job.wide.about is; in[0]: qkv, in[1]: dy, out, more[0]: notes of queries. */
typedef struct wide_attention {
    uint32_t n, t, heads, d, c, step;  /* as n2_attention has them */
    uint8_t back, strict;              /* attention_grad; float32's precision */
    uint8_t type_x, type_dy, type_out; /* n2_dtype */
} wide_attention;

/* Whether a call of attention or attention_grad is to be a wide job; and notes it. */
bool n2_attention_takes(const n2_call *c);
void n2_note_wide_attention(const n2_call *c);

void n2_attention_launch(const n2_queue *q, const job *j, cudaStream_t stream, bool early);
cudaError_t n2_attention_prepare(int most_shared);

#endif
