/* What both kernels of towers do: tower.cu, tower_few.cu. */
#ifndef N2_CUDA_TOWER_PARTS_H
#define N2_CUDA_TOWER_PARTS_H

#include "tower.h"

#include "gpu_tensor.h"

#if GPU_HAS_TOWERS

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

/* The tower that this block is of. */
__device__ inline const tower *tower_of_block(const tower *towers, const tower_starts &starts) {
    const int which = which_of(starts, [&](int i) { return towers[i].first_block; });
    return &towers[which];
}

__device__ inline void copy_tower(tower *to, const tower *from) {
    static_assert(sizeof *to % 16 == 0, "copied by 16 bytes");
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < (int)(sizeof *to / 16); i += (int)blockDim.x)
        ((float4 *)to)[i] = ((const float4 *)from)[i];
}

#endif

/* tower_few.cu; asked for by n2_towers_prepare and n2_towers_launch. */
cudaError_t n2_few_rows_prepare();
void n2_few_rows_launch(const tower *towers, const tower_starts *starts, uint32_t blocks,
                        bool strict, cudaStream_t stream, bool early);

#endif
