/* Images of weights, in device code: tower.h says what they are. */
#ifndef N2_CUDA_JOBS_IMAGE_H
#define N2_CUDA_JOBS_IMAGE_H

#include "cuda/kernels/jobs_elementwise.h"
#include "tower.h"

__device__ inline uint32_t larger_bits(uint32_t top, float x) {
    const uint32_t bits = __float_as_uint(x) & 0x7fffffffu;
    return bits > top ? bits : top;
}

/* The largest magnitude of a matrix, as bits, from all its numbers: in rows of 128, if they lie
 * side by side. inner: width, stride, and how many there are from the first to the last; instead of
 * one beyond them the first is read again. */
__device__ inline uint32_t top_of_all(const job &j) {
    enum { AT_ONCE = 8 };
    const uint32_t each = j.fours ? 4 : 1, lanes = TOWER_WIDTH / each, step = JOB_THREADS / lanes;
    const uint32_t width = j.inner.length[0].by, end = j.inner.length[1].by;
    const uint32_t stride = j.inner.step[0][0], column = threadIdx.x % lanes * each;
    const uint32_t last = column < width ? end : 0;
    uint32_t top = 0, i = threadIdx.x / lanes * stride + column;
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

/* A block has IMAGE_SHARE rows of a matrix, a thread eight numbers of one of them. */
enum { IMAGE_EACH = 8, IMAGE_LANES = TOWER_WIDTH / IMAGE_EACH };
static_assert(IMAGE_SHARE * IMAGE_LANES == JOB_THREADS, "a thread has eight numbers");
enum { HALVES_PITCH = TOWER_WIDTH + 2 }; /* of rows in shared memory, read down */

struct alignas(16) eight_halves {
    uint32_t word[4];
};

/* As halves; what they leave over stays. */
__device__ inline eight_halves take_halves(float v[IMAGE_EACH]) {
    eight_halves x;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        x.word[k] = pack_halves(v[2 * k], v[2 * k + 1]);
        const float2 taken = unpack_halves(x.word[k]);
        v[2 * k] -= taken.x, v[2 * k + 1] -= taken.y;
    }
    return x;
}

/* Eight that lie side by side in the image of the transpose. */
__device__ inline void put_transposed(const uint16_t *halves, uint32_t block, float *image) {
    eight_halves x;
    const uint32_t row = threadIdx.x % 2 * 8, column = threadIdx.x / 2;
    const uint32_t to = image_at(TOWER_WIDTH, column, block * IMAGE_SHARE + row);
    halves += row * HALVES_PITCH + column;
#pragma unroll
    for (int k = 0; k < 4; k++)
        x.word[k] = halves[2 * k * HALVES_PITCH] | (uint32_t)halves[(2 * k + 1) * HALVES_PITCH]
                                                       << 16;
    *(eight_halves *)(image + to / 2) = x;
}

/* Its share of the images, each if it is wanted: as the matrix lies, and transposed. */
__device__ inline void put_images(float v[IMAGE_EACH], bool strict, uint32_t block, float *shared,
                                  float *image, float *transposed) {
    const uint32_t row = threadIdx.x / IMAGE_LANES, column = threadIdx.x % IMAGE_LANES * IMAGE_EACH;
    const uint32_t to = image_at(TOWER_WIDTH, block * IMAGE_SHARE + row, column);
    uint32_t *across = (uint32_t *)shared + (row * HALVES_PITCH + column) / 2;
#pragma unroll 1
    for (int part = 0; part < 1 + strict; part++) {
        const eight_halves x = take_halves(v);
        if (image) *(eight_halves *)(image + part * IMAGE_FLOATS + to / 2) = x;
        if (!transposed) continue;
        __syncthreads(); /* shared memory has been read */
#pragma unroll
        for (int k = 0; k < 4; k++) across[k] = x.word[k];
        __syncthreads();
        put_transposed((const uint16_t *)shared, block, transposed + part * IMAGE_FLOATS);
    }
}

/* What is behind the images: half of the threads do this for each. */
__device__ inline void put_behind(const job &j, float power) {
    const uint32_t which = threadIdx.x / TOWER_WIDTH, i = threadIdx.x % TOWER_WIDTH;
    const float *bias = j.in[1 + which];
    float *image = which ? j.more[0] : j.out;
    if (!image) return;
    image += (j.strict ? 2 : 1) * IMAGE_FLOATS;
    image[i] = bias && i < (uint32_t)(which ? j.k : j.m) ? bias[i] : 0.0f;
    if (i == 0) image[TOWER_WIDTH] = inverse_power(power);
}

/* The images of a matrix of m rows of k numbers, zeros around them, as they lie (out) and
 * transposed (more[0]), with biases (in[1], in[2]). Every block looks for the largest number
 * itself, and makes its share of the rows. */
GPU_JOB void run_image(const job &j, float *shared, uint32_t block) {
    const uint32_t column = threadIdx.x % IMAGE_LANES * IMAGE_EACH;
    const uint32_t row = block * IMAGE_SHARE + threadIdx.x / IMAGE_LANES;
    const uint32_t columns = row < (uint32_t)j.m ? (uint32_t)j.k : 0;
    const float *in = j.in[0] + (row * j.loops.step[0][0] + column);
    float v[IMAGE_EACH];
#pragma unroll
    for (uint32_t i = 0; i < IMAGE_EACH; i++) v[i] = column + i < columns ? in[i] : 0.0f;
    const uint32_t top = block_top(top_of_all(j), (uint32_t *)shared);
    const float power =
        __uint_as_float(j.grows ? growing_bits(top, j.strict) : power_bits(top, j.strict));
    for (uint32_t i = 0; i < IMAGE_EACH; i++) v[i] *= power;
    put_images(v, j.strict, block, shared, j.out, j.more[0]);
    if (block == 0) put_behind(j, power);
}

#endif
