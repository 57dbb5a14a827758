/* Convolutions in device code: a thread per number. The order of sums depends on the shapes only.
 */
#ifndef N2_CUDA_JOBS_CONV_H
#define N2_CUDA_JOBS_CONV_H

#include "jobs_reduce.h"

/* Numbers of a type. */
struct numbers {
    const float *at;
    n2_dtype type;
    __device__ float operator[](int64_t i) const {
        return type == N2_NUMBER ? at[i] : n2_widen(type, ((const uint16_t *)at)[i]);
    }
    __device__ numbers operator+(int64_t i) const {
        return {(const float *)((const char *)at + i * (type == N2_NUMBER ? 4 : 2)), type};
    }
};

/* A kernel's numbers: from place to place, from one channel in to the next, and out. */
struct kernel_steps {
    int64_t place, in, out;
    __device__ explicit kernel_steps(const job_conv &v) {
        place = v.turned ? (int64_t)v.c_in : (int64_t)v.c_in * v.c_out;
        in = v.turned ? 1 : v.c_out;
        out = v.turned ? (int64_t)v.rows * v.columns * v.c_in : 1;
    }
};

/* Number i of y. */
template <typename X, typename K>
__device__ inline double conv_output(const job &j, X x, K kernel, uint32_t i) {
    const job_conv &v = j.conv;
    const kernel_steps step(v);
    const uint32_t pixel = i / (uint32_t)v.c_out, line = pixel / (uint32_t)v.ow;
    const uint32_t n = line / (uint32_t)v.oh;
    const int32_t top = (int32_t)(line - n * (uint32_t)v.oh) * v.stride_y - v.top;
    const int32_t left = (int32_t)(pixel - line * (uint32_t)v.ow) * v.stride_x - v.left;
    const K weights = kernel + (i - pixel * (uint32_t)v.c_out) * step.out;
    double total = 0;
    for (int32_t r = 0; r < v.rows; r++) {
        if (top + r < 0 || top + r >= v.h) continue;
        for (int32_t s = 0; s < v.columns; s++) {
            if (left + s < 0 || left + s >= v.w) continue;
            const X from = x + (((int64_t)n * v.h + top + r) * v.w + left + s) * v.c_in;
            const K by = weights + (r * v.columns + s) * step.place;
            float sum = 0;
            for (int32_t k = 0; k < v.c_in; k++) sum += from[k] * by[k * step.in];
            total += (double)sum;
        }
    }
    return total;
}

/* Where the kernel begins, in steps of `stride`, if it begins `at` pixels into the frame; -1: it
 * never does. */
__device__ inline int32_t conv_step(int32_t at, int32_t stride, int32_t steps) {
    const int32_t step = at / stride;
    return at < 0 || step * stride != at || step >= steps ? -1 : step;
}

/* Number i of pictures' gradient. */
template <typename Y, typename K>
__device__ inline double conv_picture(const job &j, Y dy, K kernel, uint32_t i) {
    const job_conv &v = j.conv;
    const kernel_steps step(v);
    const uint32_t pixel = i / (uint32_t)v.c_in, line = pixel / (uint32_t)v.w;
    const uint32_t n = line / (uint32_t)v.h, channel = i - pixel * (uint32_t)v.c_in;
    const int32_t y = (int32_t)(line - n * (uint32_t)v.h) + v.top;
    const int32_t x = (int32_t)(pixel - line * (uint32_t)v.w) + v.left;
    double total = 0;
    for (int32_t r = 0; r < v.rows; r++) {
        const int32_t row = conv_step(y - r, v.stride_y, v.oh);
        for (int32_t s = 0; s < v.columns && row >= 0; s++) {
            const int32_t column = conv_step(x - s, v.stride_x, v.ow);
            if (column < 0) continue;
            const Y from = dy + (((int64_t)n * v.oh + row) * v.ow + column) * v.c_out;
            const K by = kernel + ((r * v.columns + s) * step.place + channel * step.in);
            float sum = 0;
            for (int32_t k = 0; k < v.c_out; k++) sum += from[k] * by[k * step.out];
            total += (double)sum;
        }
    }
    return total;
}

/* A number of the kernel's gradient: where in the kernel, and of which slice. */
struct kernel_place {
    int32_t row, column;
    uint32_t in, out, slice;
    __device__ kernel_place(const job_conv &v, uint32_t i) {
        const uint32_t c_in = (uint32_t)v.c_in, c_out = (uint32_t)v.c_out;
        const uint32_t places = (uint32_t)(v.rows * v.columns);
        const uint32_t inner = v.turned ? c_in : c_out, above = i / inner;
        uint32_t place = v.turned ? above : above / c_in;
        in = v.turned ? i - above * inner : above - place * c_in;
        slice = place / places / (v.turned ? c_out : 1);
        out = v.turned ? place / places - slice * c_out : i - above * inner;
        place %= places;
        row = (int32_t)(place / (uint32_t)v.columns);
        column = (int32_t)place - row * v.columns;
    }
};

/* Number i of the kernel's gradient, over a slice of the lines of y. */
template <typename X, typename Y>
__device__ inline double conv_weight(const job &j, X pictures, Y dy, uint32_t i) {
    const job_conv &v = j.conv;
    const kernel_place at(v, i);
    const int32_t r = at.row - v.top, s = at.column - v.left;
    const uint32_t first = at.slice * v.slice_lines;
    const uint32_t end = v.lines - first < v.slice_lines ? v.lines : first + v.slice_lines;
    double total = 0;
    for (uint32_t line = first; line < end; line++) {
        const uint32_t n = line / (uint32_t)v.oh;
        const int32_t y = (int32_t)(line - n * (uint32_t)v.oh) * v.stride_y + r;
        if (y < 0 || y >= v.h) continue;
        const X from = pictures + (((int64_t)n * v.h + y) * v.w * v.c_in + at.in);
        const Y by = dy + ((int64_t)line * v.ow * v.c_out + at.out);
        float sum = 0;
        for (int32_t k = 0; k < v.ow; k++) {
            const int32_t x = k * v.stride_x + s;
            if (x >= 0 && x < v.w) sum += from[(int64_t)x * v.c_in] * by[(int64_t)k * v.c_out];
        }
        total += (double)sum;
    }
    return total;
}

template <typename A, typename B>
__device__ inline double conv_number(const job &j, A a, B b, uint32_t i) {
    return j.op == N2_OP_conv2d         ? conv_output(j, a, b, i)
           : j.op == N2_OP_conv2d_input ? conv_picture(j, a, b, i)
                                        : conv_weight(j, a, b, i);
}

__device__ inline void put_number(float *out, n2_dtype type, uint32_t i, double x) {
    if (type == N2_NUMBER)
        out[i] = (float)x;
    else
        ((uint16_t *)out)[i] = n2_narrow(type, (float)x);
}

GPU_JOB void run_conv(const job &j, uint32_t block) {
    const job_conv &v = j.conv;
    const share mine(j, block);
    const n2_dtype x = (n2_dtype)v.type_x, k = (n2_dtype)v.type_k, y = (n2_dtype)v.type_y;
    const n2_dtype a = j.op == N2_OP_conv2d_input ? y : x;
    const n2_dtype b = j.op == N2_OP_conv2d_weight ? y : k;
    const n2_dtype out = j.op == N2_OP_conv2d ? y : j.op == N2_OP_conv2d_input ? x : k;
    const bool narrow = a != N2_NUMBER || b != N2_NUMBER;
    for (uint32_t i = mine.begin + threadIdx.x; i < mine.end; i += JOB_THREADS) {
        const double sum = narrow ? conv_number(j, numbers{j.in[0], a}, numbers{j.in[1], b}, i)
                                  : conv_number(j, j.in[0], j.in[1], i);
        put_number(j.out, out, i, j.add ? sum + (double)j.out[i] : sum);
    }
}

/* A tile of the matrix by way of shared memory, so that both sides go along their rows. */
GPU_JOB void run_turn(const job &j, float *shared, uint32_t block) {
    enum { STEP = JOB_THREADS / TURN_TILE, PITCH = TURN_TILE + 1 };
    const job_turn &t = j.turn;
    const numbers in = {j.in[0], (n2_dtype)t.from};
    const uint32_t below = job_quotient(t.tiles, block), beside = block - below * t.tiles.by;
    const uint32_t row = below * TURN_TILE, column = beside * TURN_TILE;
    const uint32_t x = threadIdx.x % TURN_TILE, y = threadIdx.x / TURN_TILE;
#pragma unroll 8
    for (uint32_t k = y; k < TURN_TILE; k += STEP)
        if (row + k < t.rows && column + x < t.columns)
            shared[k * PITCH + x] = in[(int64_t)(row + k) * t.columns + column + x];
    __syncthreads();
#pragma unroll 4
    for (uint32_t k = y; k < TURN_TILE; k += STEP) {
        if (column + k >= t.columns || row + x >= t.rows) continue;
        const uint32_t i = (column + k) * t.rows + row + x;
        const double number = (double)shared[x * PITCH + k];
        put_number(j.out, (n2_dtype)t.into, i, j.add ? number + (double)j.out[i] : number);
    }
}

static_assert(TURN_TILE * (TURN_TILE + 1) * sizeof(float) <= JOB_SHARED_SMALL, "room for a tile");

#endif
