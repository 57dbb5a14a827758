/* Norms in device code: a block per picture and group, a warp per channel of it. Sums are taken in
 * an order that depends on the shapes only. */
#ifndef N2_CUDA_JOBS_NORM_H
#define N2_CUDA_JOBS_NORM_H

#include "jobs_reduce.h"

/* A block's group: pictures, parameters and gradients from its first channel on. */
struct norm_group {
    const job &j;
    const job_norm &v;
    double *shared;
    int64_t picture, first; /* numbers before its picture; its first channel */
    double centre, factor;  /* the mean, and 1 / sqrt(variance + eps) */

    __device__ norm_group(const job &of, float *memory, uint32_t block)
        : j(of), v(of.norm), shared((double *)memory) {
        const uint32_t n = block / v.groups;
        picture = (int64_t)n * v.positions * v.c;
        first = (int64_t)(block - n * v.groups) * v.each;
        row = n;
        const double size = (double)v.positions * (double)v.each;
        centre = sum([&](uint32_t k, int64_t at) { return shifted(k, at); }) / size;
        const double variance = sum([&](uint32_t k, int64_t at) {
                                    const double x = shifted(k, at) - centre;
                                    return x * x;
                                }) /
                                size;
        factor = 1 / sqrt(variance + j.f[0]);
    }

    __device__ static float load(int32_t type, const float *from, int64_t at) {
        return type == N2_NUMBER ? from[at]
                                 : n2_widen((n2_dtype)type, ((const uint16_t *)from)[at]);
    }
    __device__ void put(int64_t at, float x) const {
        if (v.type_out == N2_NUMBER)
            j.out[at] = x;
        else
            ((uint16_t *)j.out)[at] = n2_narrow((n2_dtype)v.type_out, x);
    }

    /* Shift, gamma or beta of channel k of the group. */
    __device__ float parameter(int which, uint32_t k) const {
        if (!j.in[which]) return which == 2 ? 1.0f : 0.0f;
        return j.in[which][(int64_t)row * v.step[which - 1] + first + k];
    }

    __device__ double shifted(uint32_t k, int64_t at) const {
        return (double)load(v.type_x, j.in[0], at) + (double)parameter(1, k);
    }

    /* Of mean 0 and variance 1. */
    __device__ float unit(uint32_t k, int64_t at) const {
        return (float)((shifted(k, at) - centre) * factor);
    }

    __device__ float before_act(uint32_t k, float u) const {
        return parameter(2, k) * u + parameter(3, k);
    }

    /* dy before the activation. */
    __device__ float slope_of(uint32_t k, int64_t at, float u) const {
        const float x = before_act(k, u), dy = load(v.type_dy, j.gate, at);
        if (v.act == N2_ACT_SILU) return dy * silu_slope(x);
        return v.act == N2_ACT_LRELU && x <= 0.0f ? (float)j.f[1] * dy : dy;
    }

    /* f(channel of the group, where it is) for every number of channel k, by a warp. */
    template <typename F> __device__ void each_position(uint32_t k, F f) const {
        for (uint32_t p = threadIdx.x % 32; p < v.positions; p += 32)
            f(k, picture + (int64_t)p * v.c + first + k);
    }
    template <typename F> __device__ void each(F f) const {
        for (uint32_t k = threadIdx.x / 32; k < v.each; k += JOB_THREADS / 32) each_position(k, f);
    }

    /* Over the group, for all threads. */
    template <typename F> __device__ double sum(F f) {
        double mine = 0;
        each([&](uint32_t k, int64_t at) { mine += (double)f(k, at); });
        const double total = block_sum(mine, shared);
        if (threadIdx.x == 0) shared[JOB_THREADS / 32] = total;
        __syncthreads();
        const double all = shared[JOB_THREADS / 32];
        __syncthreads();
        return all;
    }

    uint32_t row;
};

__device__ inline void norm_output(const norm_group &g) {
    g.each([&](uint32_t k, int64_t at) {
        const float x = g.before_act(k, g.unit(k, at));
        g.put(at, g.v.act == N2_ACT_SILU                 ? x * sigmoid(x)
                  : g.v.act == N2_ACT_LRELU && x <= 0.0f ? (float)g.j.f[1] * x
                                                         : x);
    });
}

/* Both gradients: with du = gamma times dy before the activation, dx = factor (du - mean of du - u
 * mean of u du). */
__device__ inline void norm_gradients(norm_group &g) {
    const double size = (double)g.v.positions * (double)g.v.each;
    const double mean = g.sum([&](uint32_t k, int64_t at) {
        return g.parameter(2, k) * g.slope_of(k, at, g.unit(k, at));
    }) / size;
    const double along = g.sum([&](uint32_t k, int64_t at) {
        const float u = g.unit(k, at);
        return (double)(g.parameter(2, k) * g.slope_of(k, at, u)) * (double)u;
    }) / size;
    for (uint32_t k = threadIdx.x / 32; k < g.v.each; k += JOB_THREADS / 32) {
        double sums[3] = {0, 0, 0};
        g.each_position(k, [&](uint32_t, int64_t at) {
            const float u = g.unit(k, at), d = g.slope_of(k, at, u);
            const double du = (double)(g.parameter(2, k) * d);
            const double dx = g.factor * (du - mean - (double)u * along);
            if (g.j.op == N2_OP_norm_input) g.put(at, (float)dx);
            sums[0] += (double)d, sums[1] += (double)d * (double)u, sums[2] += dx;
        });
        float *out = g.j.out + ((int64_t)g.row * g.v.c + g.first + k) * 3;
        for (int i = 0; i < 3; i++) {
            const double total = warp_sum(sums[i]);
            if (g.j.op == N2_OP_norm_sums && threadIdx.x % 32 == 0) out[i] = (float)total;
        }
    }
}

GPU_JOB void run_norm(const job &j, float *shared, uint32_t block) {
    norm_group g(j, shared, block);
    if (j.op == N2_OP_norm)
        norm_output(g);
    else
        norm_gradients(g);
}

#endif
