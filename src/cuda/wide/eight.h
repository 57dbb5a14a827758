/* Eight consecutive numbers, as floats in registers and in 16 bits or as floats in memory: 16 bytes
 * of a thread, or twice as many. */
#ifndef N2_CUDA_EIGHT_H
#define N2_CUDA_EIGHT_H

#include "base/narrow.h"
#include "cuda/runtime/gpu.h"

/* Two numbers of 16 bits, the first in the lower half of a word. */
__device__ inline float2 unpack_narrow(n2_dtype type, uint32_t both) {
    if (type == N2_F16) return unpack_fp16(both);
    return float2{__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000u)};
}
__device__ inline uint32_t pack_narrow(n2_dtype type, float x, float y) {
    return type == N2_F16 ? pack_fp16(x, y) : pack_bf16(x, y);
}

/* Element i of memory that need not be aligned. */
__device__ inline float load_one(n2_dtype type, const void *at, size_t i) {
    return type == N2_NUMBER ? ((const float *)at)[i] : n2_widen(type, ((const uint16_t *)at)[i]);
}
__device__ inline void store_one(n2_dtype type, void *at, size_t i, float x) {
    if (type == N2_NUMBER)
        ((float *)at)[i] = x;
    else
        ((uint16_t *)at)[i] = n2_narrow(type, x);
}

/* Elements i to i + 7; their address is a multiple of 16 bytes. */
__device__ inline void load_eight(n2_dtype type, const void *at, size_t i, float x[8]) {
    if (type == N2_NUMBER) {
        const float4 *from = (const float4 *)((const float *)at + i);
        const float4 a = from[0], b = from[1];
        x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
        x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
        return;
    }
    const uint4 words = *(const uint4 *)((const uint16_t *)at + i);
    const uint32_t word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float2 two = unpack_narrow(type, word[k]);
        x[2 * k] = two.x, x[2 * k + 1] = two.y;
    }
}

__device__ inline void store_eight(n2_dtype type, void *at, size_t i, const float x[8]) {
    if (type == N2_NUMBER) {
        float4 *to = (float4 *)((float *)at + i);
        to[0] = float4{x[0], x[1], x[2], x[3]};
        to[1] = float4{x[4], x[5], x[6], x[7]};
        return;
    }
    *(uint4 *)((uint16_t *)at + i) =
        uint4{pack_narrow(type, x[0], x[1]), pack_narrow(type, x[2], x[3]),
              pack_narrow(type, x[4], x[5]), pack_narrow(type, x[6], x[7])};
}

#endif
