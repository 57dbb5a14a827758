/* Convolutions between pictures of few channels and pictures of many: the first layer of a network,
 * which sees colours, and the last, which makes them. Memory for the many channels is read or
 * written once; tensor cores do the sums, in tf32, which holds numbers of 16 bits exactly.
 *
 * Pixel w of the many and pixel f of the few meet at place p of the kernel where
 *
 *     f = w stride - top + p,
 *
 * whichever of them is the op's picture x and which its y: if y is the one of few, the stride is 1
 * and the kernel's places are counted from the end. A place and a channel of the few together are a
 * *term*: m = p channels + channel. */
#ifndef N2_CUDA_FEW_H
#define N2_CUDA_FEW_H

#include "wide.h"

/* Whether a convolution is one, and large enough. */
bool n2_few_takes(const n2_call *c, const n2_conv *v);
/* Notes it. */
void n2_few_note(const n2_call *c, const n2_conv *v);

void n2_few_launch(const n2_queue *q, const job *j, cudaStream_t stream, bool early);
cudaError_t n2_few_prepare(int most_shared);

#endif
