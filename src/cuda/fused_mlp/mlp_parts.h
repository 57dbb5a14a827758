/* What both kernels of fused MLPs do: mlp_kernel.cu, mlp_few_rows.cu. */
#ifndef N2_CUDA_MLP_PARTS_H
#define N2_CUDA_MLP_PARTS_H

#include "mlp.h"

#include "gpu_tensor.h"

#if GPU_HAS_WGMMA

/* Right for slopes up to 1, and others are not let in. */
__device__ inline float leaky(float x, float slope) { return fmaxf(x, slope * x); }

/* Whether the largest number is where power_bits would bring it, or not far from there. */
__device__ inline bool fits(float most, bool strict) {
    return most >= (strict ? 256.0f : 0.125f) && most < (strict ? 32768.0f : 16384.0f);
}

/* The row of a table that an index means; inside the table, whatever it is. */
__device__ inline int table_row(float index, int rows) {
    return (int)fminf(fmaxf(index, 0.0f), (float)(rows - 1)); /* NaN: 0 */
}

/* The fused MLP that this block is of. */
__device__ inline const fused_mlp *mlp_of_block(const fused_mlp *fused_mlps,
                                                const block_starts &starts) {
    const int which = which_of(starts, [&](int i) { return fused_mlps[i].first_block; });
    return &fused_mlps[which];
}

__device__ inline void copy_mlp(fused_mlp *to, const fused_mlp *from) {
    static_assert(sizeof *to % 16 == 0, "copied by 16 bytes");
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < (int)(sizeof *to / 16); i += (int)blockDim.x)
        ((float4 *)to)[i] = ((const float4 *)from)[i];
}

#endif

/* mlp_few_rows.cu; asked for by n2_fused_mlps_prepare and n2_fused_mlps_launch. */
cudaError_t n2_few_rows_prepare();
void n2_few_rows_launch(const fused_mlp *fused_mlps, const block_starts *starts, uint32_t blocks,
                        bool strict, cudaStream_t stream, bool early);

#endif
