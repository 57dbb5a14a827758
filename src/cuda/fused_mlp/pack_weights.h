/* Packing weights for tensor cores, in device code: mlp.h says how they lie. */
#ifndef N2_CUDA_PACK_WEIGHTS_H
#define N2_CUDA_PACK_WEIGHTS_H

#include "cuda/kernels/jobs_elementwise.h"
#include "mlp.h"

__device__ inline uint32_t larger_bits(uint32_t top, float x) {
    const uint32_t bits = __float_as_uint(x) & 0x7fffffffu;
    return bits > top ? bits : top;
}

/* The largest magnitude of a matrix, as bits, from all its numbers: in rows of 128, if they lie
 * side by side. inner: width, stride, and how many there are from the first to the last; instead of
 * one beyond them the first is read again. */
__device__ inline uint32_t top_of_all(const job &j) {
    enum { AT_ONCE = 8 };
    const uint32_t each = j.vec4 ? 4 : 1, threads = MLP_WIDTH / each, step = JOB_THREADS / threads;
    const uint32_t width = j.inner.length[0].by, end = j.inner.length[1].by;
    const uint32_t stride = j.inner.step[0][0], column = threadIdx.x % threads * each;
    const uint32_t last = column < width ? end : 0;
    uint32_t top = 0, i = threadIdx.x / threads * stride + column;
    const float *in = j.in[0];
    if (each == 1) {
#pragma unroll 4
        for (; i < last; i += step * stride) top = larger_bits(top, in[i]);
        return top;
    }
#pragma unroll 1
    for (; i < last; i += AT_ONCE * step * stride) {
        float4 v[AT_ONCE];
#pragma unroll
        for (uint32_t k = 0; k < AT_ONCE; k++) {
            const uint32_t at = i + k * step * stride;
            v[k] = *(const float4 *)(in + (at < last ? at : 0));
        }
#pragma unroll
        for (uint32_t k = 0; k < AT_ONCE; k++)
            top = larger_bits(larger_bits(larger_bits(larger_bits(top, v[k].x), v[k].y), v[k].z),
                              v[k].w);
    }
    return top;
}

__device__ inline uint32_t block_top(uint32_t top, uint32_t *shared) {
    top = warp_most(top);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = top;
    __syncthreads();
    for (int w = 0; w < JOB_THREADS / 32; w++) top = shared[w] > top ? shared[w] : top;
    return top;
}

/* A block has PACK_ROWS rows of a matrix, a thread eight numbers of one of them. */
enum { PACK_EACH = 8, PACK_ROW_THREADS = MLP_WIDTH / PACK_EACH };
static_assert(PACK_ROWS * PACK_ROW_THREADS == JOB_THREADS, "a thread has eight numbers");
enum { FP16_PITCH = MLP_WIDTH + 2 }; /* of rows in shared memory, read down */

struct alignas(16) eight_fp16 {
    uint32_t word[4];
};

/* As fp16; what that leaves over stays. */
__device__ inline eight_fp16 take_fp16(float v[PACK_EACH]) {
    eight_fp16 x;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        x.word[k] = pack_fp16(v[2 * k], v[2 * k + 1]);
        const float2 taken = unpack_fp16(x.word[k]);
        v[2 * k] -= taken.x, v[2 * k + 1] -= taken.y;
    }
    return x;
}

/* Eight that lie side by side in the packed transpose. */
__device__ inline void put_transposed(const uint16_t *fp16, uint32_t block, float *packed) {
    eight_fp16 x;
    const uint32_t row = threadIdx.x % 2 * 8, column = threadIdx.x / 2;
    const uint32_t to = packed_at(MLP_WIDTH, column, block * PACK_ROWS + row);
    fp16 += row * FP16_PITCH + column;
#pragma unroll
    for (int k = 0; k < 4; k++)
        x.word[k] = fp16[2 * k * FP16_PITCH] | (uint32_t)fp16[(2 * k + 1) * FP16_PITCH] << 16;
    *(eight_fp16 *)(packed + to / 2) = x;
}

/* Its share of the packed weights, each form if it is wanted: as the matrix lies, and transposed.
 */
__device__ inline void put_packed(float v[PACK_EACH], bool strict, uint32_t block, float *shared,
                                  float *packed, float *transposed) {
    const uint32_t row = threadIdx.x / PACK_ROW_THREADS,
                   column = threadIdx.x % PACK_ROW_THREADS * PACK_EACH;
    const uint32_t to = packed_at(MLP_WIDTH, block * PACK_ROWS + row, column);
    uint32_t *across = (uint32_t *)shared + (row * FP16_PITCH + column) / 2;
#pragma unroll 1
    for (int part = 0; part < 1 + strict; part++) {
        const eight_fp16 x = take_fp16(v);
        if (packed) *(eight_fp16 *)(packed + part * PACKED_FLOATS + to / 2) = x;
        if (!transposed) continue;
        __syncthreads(); /* shared memory has been read */
#pragma unroll
        for (int k = 0; k < 4; k++) across[k] = x.word[k];
        __syncthreads();
        put_transposed((const uint16_t *)shared, block, transposed + part * PACKED_FLOATS);
    }
}

/* What is behind the packed weights: half of the threads do this for each form. */
__device__ inline void put_behind(const job &j, float power) {
    const uint32_t which = threadIdx.x / MLP_WIDTH, i = threadIdx.x % MLP_WIDTH;
    const float *bias = j.in[1 + which];
    float *packed = which ? j.more[0] : j.out;
    if (!packed) return;
    packed += (j.strict ? 2 : 1) * PACKED_FLOATS;
    packed[i] = bias && i < (uint32_t)(which ? j.k : j.m) ? bias[i] : 0.0f;
    if (i == 0) packed[MLP_WIDTH] = inverse_power(power);
}

/* Packs a matrix of m rows of k numbers, zeros around them, as they lie (out) and
 * transposed (more[0]), with biases (in[1], in[2]). Every block looks for the largest number
 * itself, and makes its share of the rows. */
GPU_JOB void run_pack_weights(const job &j, float *shared, uint32_t block) {
    const uint32_t column = threadIdx.x % PACK_ROW_THREADS * PACK_EACH;
    const uint32_t row = block * PACK_ROWS + threadIdx.x / PACK_ROW_THREADS;
    const uint32_t columns = row < (uint32_t)j.m ? (uint32_t)j.k : 0;
    const float *in = j.in[0] + (row * j.loops.step[0][0] + column);
    float v[PACK_EACH];
#pragma unroll
    for (uint32_t i = 0; i < PACK_EACH; i++) v[i] = column + i < columns ? in[i] : 0.0f;
    const uint32_t top = block_top(top_of_all(j), (uint32_t *)shared);
    const float power =
        __uint_as_float(j.grows ? growing_bits(top, j.strict) : power_bits(top, j.strict));
    for (uint32_t i = 0; i < PACK_EACH; i++) v[i] *= power;
    put_packed(v, j.strict, block, shared, j.out, j.more[0]);
    if (block == 0) put_behind(j, power);
}

#endif
