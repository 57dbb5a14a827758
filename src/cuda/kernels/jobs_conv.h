/* Convolutions in device code: a thread per number. The order of sums depends on the shapes only.
 */
#ifndef N2_CUDA_JOBS_CONV_H
#define N2_CUDA_JOBS_CONV_H

#include "jobs_reduce.h"

/* Number i of y. */
__device__ inline double conv_output(const job &j, uint32_t i) {
    const job_conv &v = j.conv;
    const uint32_t pixel = i / (uint32_t)v.c_out, line = pixel / (uint32_t)v.ow;
    const uint32_t n = line / (uint32_t)v.oh;
    const int32_t y = (int32_t)(line - n * (uint32_t)v.oh) * v.stride_y - v.top;
    const int32_t x = (int32_t)(pixel - line * (uint32_t)v.ow) * v.stride_x - v.left;
    const float *weights = j.in[1] + (i - pixel * (uint32_t)v.c_out);
    double total = 0;
    for (int32_t r = 0; r < v.rows; r++) {
        if (y + r < 0 || y + r >= v.h) continue;
        for (int32_t s = 0; s < v.columns; s++) {
            if (x + s < 0 || x + s >= v.w) continue;
            const float *from = j.in[0] + (((int64_t)n * v.h + y + r) * v.w + x + s) * v.c_in;
            const float *by = weights + (int64_t)(r * v.columns + s) * v.c_in * v.c_out;
            float sum = 0;
            for (int32_t k = 0; k < v.c_in; k++) sum += from[k] * by[(int64_t)k * v.c_out];
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
__device__ inline double conv_picture(const job &j, uint32_t i) {
    const job_conv &v = j.conv;
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
            const float *from = j.in[0] + (((int64_t)n * v.oh + row) * v.ow + column) * v.c_out;
            const float *by = j.in[1] + ((int64_t)(r * v.columns + s) * v.c_in + channel) * v.c_out;
            float sum = 0;
            for (int32_t k = 0; k < v.c_out; k++) sum += from[k] * by[k];
            total += (double)sum;
        }
    }
    return total;
}

/* Number i of the kernel's gradient, over a slice of the lines of y. */
__device__ inline double conv_weight(const job &j, uint32_t i) {
    const job_conv &v = j.conv;
    const uint32_t above = i / (uint32_t)v.c_out, at = above / (uint32_t)v.c_in;
    const uint32_t out = i - above * (uint32_t)v.c_out, in = above - at * (uint32_t)v.c_in;
    const uint32_t down = at / (uint32_t)v.columns, slice = down / (uint32_t)v.rows;
    const int32_t r = (int32_t)(down - slice * (uint32_t)v.rows) - v.top;
    const int32_t s = (int32_t)(at - down * (uint32_t)v.columns) - v.left;
    const uint32_t first = slice * v.slice_lines;
    const uint32_t end = v.lines - first < v.slice_lines ? v.lines : first + v.slice_lines;
    double total = 0;
    for (uint32_t line = first; line < end; line++) {
        const uint32_t n = line / (uint32_t)v.oh;
        const int32_t y = (int32_t)(line - n * (uint32_t)v.oh) * v.stride_y + r;
        if (y < 0 || y >= v.h) continue;
        const float *from = j.in[0] + ((int64_t)n * v.h + y) * v.w * v.c_in + in;
        const float *by = j.in[1] + (int64_t)line * v.ow * v.c_out + out;
        float sum = 0;
        for (int32_t k = 0; k < v.ow; k++) {
            const int32_t x = k * v.stride_x + s;
            if (x >= 0 && x < v.w) sum += from[(int64_t)x * v.c_in] * by[(int64_t)k * v.c_out];
        }
        total += (double)sum;
    }
    return total;
}

GPU_JOB void run_conv(const job &j, uint32_t block) {
    const share mine(j, block);
    for (uint32_t i = mine.begin + threadIdx.x; i < mine.end; i += JOB_THREADS) {
        const double sum = j.op == N2_OP_conv2d         ? conv_output(j, i)
                           : j.op == N2_OP_conv2d_input ? conv_picture(j, i)
                                                        : conv_weight(j, i);
        put_sum(j, j.out + i, sum);
    }
}

#endif
