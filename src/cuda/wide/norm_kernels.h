/* Norms in device code: norm.h. Threads have eight neighbouring channels, always the same, of every
 * so many pixels. Sums are taken in an order that depends on the shapes only. */
#ifndef N2_CUDA_NORM_KERNELS_H
#define N2_CUDA_NORM_KERNELS_H

#include "eight.h"
#include "norm.h"

/* What a launch gives its threads. */
typedef struct norm_task {
    wide_norm v;
    const void *x, *dy, *addend;
    const float *parameter[3]; /* shift, gamma, beta */
    void *out;
    float *sums;
} norm_task;

/* Numbers of each channel that a block has in shared memory. */
typedef enum norm_channel {
    NORM_SHIFT,
    NORM_GAMMA,
    NORM_BETA,
    NORM_CENTRE, /* mean - shift: what x is centred by */
    NORM_FACTOR, /* 1 / sqrt(variance + eps) of its group */
    NORM_SUM,    /* of x */
    NORM_LESS,   /* dx = factor gamma d - less - (x - centre) times */
    NORM_TIMES,
    NORM_CHANNELS
} norm_channel;

/* Bytes of shared memory; rows of d are there for gradients only. */
__host__ __device__ inline size_t norm_bytes_of(n2_dtype type) { return type == N2_NUMBER ? 4 : 2; }
__host__ __device__ inline size_t norm_tile_bytes(const wide_norm &v, n2_dtype type) {
    return (size_t)v.positions * v.width * norm_bytes_of(type);
}
__host__ __device__ inline size_t norm_shared(const wide_norm &v) {
    size_t bytes = ((size_t)NORM_CHANNELS + (v.has_y ? 1 : 2) * v.rows) * v.width * sizeof(float);
    if (v.held) bytes += norm_tile_bytes(v, (n2_dtype)v.type_x);
    if (v.held && !v.has_y) bytes += norm_tile_bytes(v, (n2_dtype)v.type_dy);
    return bytes;
}

__device__ inline float norm_gate(float x) {
    return quick_quotient(1.0f, 1.0f + quick_exp(-x)); /* sigmoid(x) */
}

__device__ inline float norm_act(const wide_norm &v, float x) {
    if (v.act == N2_ACT_SILU) return x * norm_gate(x);
    return v.act == N2_ACT_LRELU && x <= 0.0f ? v.slope * x : x;
}

__device__ inline float norm_act_slope(const wide_norm &v, float x) {
    if (v.act == N2_ACT_SILU) {
        const float gate = norm_gate(x);
        return gate * (1.0f + x * (1.0f - gate));
    }
    return v.act == N2_ACT_LRELU && x <= 0.0f ? v.slope : 1.0f;
}

/* Where a thread's eight channels of a pixel are: in memory, from the block's picture on, and in
 * the tile. */
typedef struct norm_place {
    size_t pixel, tile;
} norm_place;

/* TYPE: n2_dtype of x, dy, and the output; -1: of each as it says. */
template <bool HELD, int TYPE> struct norm_block {
    const norm_task &t;
    const wide_norm &v;
    char *tile[2];            /* x, and dy or d */
    float *part[2], *of;      /* sums of parts; numbers of channels, [NORM_CHANNELS x width] */
    uint32_t picture, first;  /* and the first channel */
    uint32_t columns, column; /* of eight channels */
    uint32_t rows, row;       /* of threads; an idle thread has none */
    size_t begin;             /* of this thread's channels, in memory */

    __device__ norm_block(const norm_task &task, char *shared) : t(task), v(task.v) {
        picture = blockIdx.x / v.slices;
        first = (blockIdx.x - picture * v.slices) * v.width;
        columns = v.width / 8;
        rows = blockDim.x / columns;
        row = threadIdx.x / columns;
        column = threadIdx.x - row * columns;
        if (row >= rows) row = v.positions;
        begin = (size_t)picture * v.positions * v.c + first + column * 8;
        of = (float *)shared;
        part[0] = of + NORM_CHANNELS * v.width;
        part[1] = part[0] + (v.has_y ? 0 : v.rows * v.width);
        tile[0] = (char *)(part[1] + v.rows * v.width);
        tile[1] = tile[0] + norm_tile_bytes(v, type_x());
        for (uint32_t k = threadIdx.x; k < v.width; k += blockDim.x)
            for (int i = 0; i < 3; i++)
                of[i * v.width + k] = t.parameter[i]
                                          ? t.parameter[i][(size_t)picture * v.step[i] + first + k]
                                          : (i == NORM_GAMMA ? 1.0f : 0.0f);
    }

    __device__ n2_dtype type_x() const { return (n2_dtype)(TYPE >= 0 ? TYPE : v.type_x); }
    __device__ n2_dtype type_dy() const { return (n2_dtype)(TYPE >= 0 ? TYPE : v.type_dy); }
    __device__ n2_dtype type_out() const { return (n2_dtype)(TYPE >= 0 ? TYPE : v.type_out); }

    template <typename F> __device__ void each_pixel(F f) const {
        size_t at = begin + (size_t)row * v.c;
        uint32_t i = threadIdx.x * 8;
#pragma unroll 4
        for (uint32_t p = row; p < v.positions; p += rows) {
            f(norm_place{at, i});
            at += (size_t)rows * v.c;
            i += rows * columns * 8;
        }
    }

    /* ---- x and dy ---- */

    __device__ void ask_for(n2_dtype type, const void *from, char *to) const {
        const size_t bytes = norm_bytes_of(type);
        each_pixel([&](norm_place p) {
            for (size_t k = 0; k < 8 * bytes; k += 16)
                copy_16((float *)(to + p.tile * bytes + k),
                        (const float *)((const char *)from + p.pixel * bytes + k), 16);
        });
    }

    /* A thread reads what it asked for itself. */
    __device__ void fetch() const {
        if (!HELD) return;
        ask_for(type_x(), t.x, tile[0]);
        copies_commit();
        if (!v.has_y) ask_for(type_dy(), t.dy, tile[1]);
        copies_commit();
    }

    __device__ void x_at(norm_place p, float x[8]) const {
        load_eight(type_x(), HELD ? (const void *)tile[0] : t.x, HELD ? p.tile : p.pixel, x);
    }
    __device__ void dy_at(norm_place p, float x[8]) const {
        load_eight(type_dy(), HELD ? (const void *)tile[1] : t.dy, HELD ? p.tile : p.pixel, x);
    }

    /* A number of each of the thread's channels. */
    __device__ void take(norm_channel which, float x[8]) const {
        load_eight(N2_NUMBER, of, which * v.width + column * 8, x);
    }

    /* ---- sums ---- */

    /* Parts of the channels' sums over all pixels, of Q kinds; channel k's are part[q][r width + k]
     * for r < what is returned. */
    template <int Q> __device__ uint32_t reduce(float mine[Q][8]) const {
        const bool warps = v.by_warps != 0;
        const uint32_t to = warps ? threadIdx.x / 32 : row;
#pragma unroll
        for (int q = 0; q < Q; q++) {
            if (warps)
                for (uint32_t d = columns; d < 32; d *= 2)
#pragma unroll
                    for (int e = 0; e < 8; e++)
                        mine[q][e] += __shfl_xor_sync(0xffffffffu, mine[q][e], (int)d);
            const bool mine_counts = warps ? threadIdx.x % 32 < columns : row < rows;
            if (mine_counts) store_eight(N2_NUMBER, part[q], to * v.width + column * 8, mine[q]);
        }
        __syncthreads();
        return v.rows > 16 ? fold(Q) : v.rows;
    }

    /* Many parts become few: all threads add some up, each for one channel. */
    __device__ uint32_t fold(int kinds) const {
        const uint32_t segments = blockDim.x / v.width, mine = threadIdx.x / v.width;
        const uint32_t k = threadIdx.x - mine * v.width;
        for (int q = 0; q < kinds; q++) {
            float sum = 0;
            for (uint32_t r = mine; mine < segments && r < v.rows; r += segments)
                sum += part[q][r * v.width + k];
            __syncthreads();
            if (mine < segments) part[q][mine * v.width + k] = sum;
        }
        __syncthreads();
        return segments;
    }

    __device__ float channel_sum(int q, uint32_t parts, uint32_t k) const {
        float sum = 0;
        for (uint32_t r = 0; r < parts; r++) sum += part[q][r * v.width + k];
        return sum;
    }

    /* f(k, first channel of its group) for every channel k of the block, a thread each. */
    template <typename F> __device__ void each_channel(F f) const {
        for (uint32_t k = threadIdx.x; k < v.width; k += blockDim.x) f(k, k - k % v.each);
        __syncthreads();
    }

    __device__ float &number(norm_channel which, uint32_t k) const {
        return of[which * v.width + k];
    }

    /* ---- mean and variance ---- */

    __device__ void find_mean() const {
        float sum[1][8] = {};
        each_pixel([&](norm_place p) {
            float x[8];
            x_at(p, x);
#pragma unroll
            for (int e = 0; e < 8; e++) sum[0][e] += x[e];
        });
        const uint32_t parts = reduce<1>(sum);
        each_channel([&](uint32_t k, uint32_t group) {
            float mean = 0;
            for (uint32_t i = group; i < group + v.each; i++)
                mean += channel_sum(0, parts, i) / (float)v.positions + number(NORM_SHIFT, i);
            number(NORM_CENTRE, k) = mean / (float)v.each - number(NORM_SHIFT, k);
            number(NORM_SUM, k) = channel_sum(0, parts, k);
        });
    }

    __device__ void find_factor() const {
        float sum[1][8] = {}, centre[8];
        take(NORM_CENTRE, centre);
        each_pixel([&](norm_place p) {
            float x[8];
            x_at(p, x);
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const float d = x[e] - centre[e];
                sum[0][e] += d * d;
            }
        });
        const uint32_t parts = reduce<1>(sum);
        each_channel([&](uint32_t k, uint32_t group) {
            float variance = 0;
            for (uint32_t i = group; i < group + v.each; i++) variance += channel_sum(0, parts, i);
            variance /= (float)v.positions * (float)v.each;
            number(NORM_FACTOR, k) = 1.0f / sqrtf(variance + v.eps);
        });
    }

    __device__ void find_moments() const {
        fetch();
        copies_wait<1>(); /* x is there */
        find_mean();
        find_factor();
    }

    /* ---- forward ---- */

    __device__ void write_y() const {
        float centre[8], by[8], gamma[8], beta[8];
        take(NORM_CENTRE, centre);
        take(NORM_FACTOR, by);
        take(NORM_GAMMA, gamma);
        take(NORM_BETA, beta);
#pragma unroll
        for (int e = 0; e < 8; e++) by[e] *= gamma[e];
        each_pixel([&](norm_place p) {
            float x[8];
            x_at(p, x);
#pragma unroll
            for (int e = 0; e < 8; e++) x[e] = norm_act(v, (x[e] - centre[e]) * by[e] + beta[e]);
            store_eight(type_out(), t.out, p.pixel, x);
        });
    }

    /* ---- gradients ---- */

    /* u, of mean 0 and variance 1, and d, the gradient before the activation. */
    struct slopes {
        const norm_block &b;
        float centre[8], factor[8], gamma[8], beta[8];
        __device__ slopes(const norm_block &of) : b(of) {
            b.take(NORM_CENTRE, centre);
            b.take(NORM_FACTOR, factor);
            b.take(NORM_GAMMA, gamma);
            b.take(NORM_BETA, beta);
        }
        __device__ void at(norm_place p, float u[8], float d[8]) const {
            b.x_at(p, u);
            b.dy_at(p, d);
#pragma unroll
            for (int e = 0; e < 8; e++) {
                u[e] = (u[e] - centre[e]) * factor[e];
                d[e] *= norm_act_slope(b.v, u[e] * gamma[e] + beta[e]);
            }
        }
    };

    /* Sums of d and d u; d takes the place of dy. */
    __device__ uint32_t find_slopes() const {
        float sum[2][8] = {};
        const slopes s(*this);
        each_pixel([&](norm_place p) {
            float u[8], d[8];
            s.at(p, u, d);
            if (HELD) store_eight(type_dy(), tile[1], p.tile, d);
#pragma unroll
            for (int e = 0; e < 8; e++) {
                sum[0][e] += d[e];
                sum[1][e] += d[e] * u[e];
            }
        });
        return reduce<2>(sum);
    }

    /* With du = gamma d, dx = factor (du - mean of du - u mean of u du). */
    __device__ void find_means(uint32_t parts) const {
        const float positions = (float)v.positions, size = positions * (float)v.each;
        each_channel([&](uint32_t k, uint32_t group) {
            float du = 0, along = 0;
            for (uint32_t i = group; i < group + v.each; i++) {
                du += number(NORM_GAMMA, i) * channel_sum(0, parts, i);
                along += number(NORM_GAMMA, i) * channel_sum(1, parts, i);
            }
            const float factor = number(NORM_FACTOR, k);
            const float less = factor * du / size, times = factor * factor * along / size;
            number(NORM_LESS, k) = less;
            number(NORM_TIMES, k) = times;
            if (!v.has_sums) return;
            const float d = channel_sum(0, parts, k);
            const float centred = number(NORM_SUM, k) - positions * number(NORM_CENTRE, k);
            float *sums = t.sums + ((size_t)picture * v.c + first + k) * 3;
            sums[0] = d;
            sums[1] = channel_sum(1, parts, k);
            sums[2] = factor * number(NORM_GAMMA, k) * d - positions * less - times * centred;
        });
    }

    __device__ void write_dx() const {
        const slopes s(*this);
        float less[8], times[8];
        take(NORM_LESS, less);
        take(NORM_TIMES, times);
        each_pixel([&](norm_place p) {
            float x[8], d[8];
            if (!HELD) s.at(p, x, d);
            if (HELD) dy_at(p, d);
            x_at(p, x);
#pragma unroll
            for (int e = 0; e < 8; e++)
                x[e] =
                    d[e] * (s.factor[e] * s.gamma[e]) - less[e] - (x[e] - s.centre[e]) * times[e];
            if (t.addend) {
                load_eight((n2_dtype)v.type_addend, t.addend, p.pixel, d);
#pragma unroll
                for (int e = 0; e < 8; e++) x[e] += v.addend_scale * d[e];
            }
            store_eight(type_out(), t.out, p.pixel, x);
        });
    }
};

enum { NORM_THREADS = 256 }; /* at most */

template <bool HELD, int TYPE>
__global__ void __launch_bounds__(NORM_THREADS, 3)
    run_norm_output(const __grid_constant__ norm_task t) {
    GPU_SHARED(shared);
    grid_wait();
    grid_next();
    const norm_block<HELD, TYPE> b(t, (char *)shared);
    b.find_moments();
    b.write_y();
}

template <bool HELD, int TYPE>
__global__ void __launch_bounds__(NORM_THREADS, 3)
    run_norm_gradient(const __grid_constant__ norm_task t) {
    GPU_SHARED(shared);
    grid_wait();
    grid_next();
    const norm_block<HELD, TYPE> b(t, (char *)shared);
    b.find_moments();
    copies_wait<0>();
    b.find_means(b.find_slopes());
    if (t.v.has_dx) b.write_dx();
}

#endif
