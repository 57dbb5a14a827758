/* Exchanges between GPUs by NCCL, loaded at run time. */
#ifndef N2_CUDA_NCCL_H
#define N2_CUDA_NCCL_H

#include "cuda/runtime/gpu_device.h"
#include "ranks.h"

/* The communicator of the ranks that there are now, which the GPU keeps. NULL, for all of them: one
 * has no NCCL, two share a GPU, or the environment variable N2CE_NCCL says off. All ranks call it.
 */
n2ce_status n2_nccl_join(n2ce_ctx *ctx, gpu_device *g, void **out);
void n2_nccl_leave(gpu_device *g);

/* Asks for an exchange of what each rank has where its sums go, in a stream, which may be captured.
 */
n2ce_status n2_nccl_exchange(n2ce_ctx *ctx, const rank_exchange *x, cudaStream_t stream);

/* Waits until the GPU's stream is through where others' sums may be waited for in it; fails if a
 * rank is gone that would have sent them. Otherwise it does nothing. */
n2ce_status n2_nccl_wait(n2ce_ctx *ctx, gpu_device *g);

#endif
