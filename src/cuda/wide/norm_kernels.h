/* Norms in device code: norm.h. Threads have eight neighbouring channels, always the same, of every
 * so many pixels. Sums are taken in an order that depends on the shapes only. */
#ifndef N2_CUDA_NORM_KERNELS_H
#define N2_CUDA_NORM_KERNELS_H

#include "eight.h"
#include "norm.h"

enum {
    NORM_THREADS = 256, /* of a block, at most */
    NORM_BLOCKS = 3,    /* of a multiprocessor, at least, if shared memory allows it */
    NORM_UNROLL = 4
};

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
    NORM_PIVOT,  /* a number of x, from which others are not far */
    NORM_MEAN,   /* of x - pivot */
    NORM_CENTRE, /* mean - shift of its group: what x is centred by */
    NORM_FACTOR, /* 1 / sqrt(variance + eps) of its group */
    NORM_PLUS,   /* dx = factor gamma d - x times + plus */
    NORM_TIMES,
    NORM_TOTAL, /* sums of the block, which others of its cluster read: of moments, of slopes, */
    NORM_TOTAL_SLOPES = NORM_TOTAL + 2,
    NORM_ALL = NORM_TOTAL_SLOPES + 2, /* and of the cluster */
    NORM_CHANNELS = NORM_ALL + 2
} norm_channel;

__host__ __device__ inline size_t norm_bytes_of(n2_dtype type) { return type == N2_NUMBER ? 4 : 2; }
__host__ __device__ inline size_t norm_tile_bytes(const wide_norm &v, n2_dtype type) {
    return (size_t)v.share * v.width * norm_bytes_of(type);
}
/* Bytes of shared memory. */
__host__ __device__ inline size_t norm_shared(const wide_norm &v) {
    size_t bytes = ((size_t)NORM_CHANNELS + 2 * v.rows) * v.width * sizeof(float);
    if (v.held) bytes += norm_tile_bytes(v, (n2_dtype)v.type_x);
    if (v.held && !v.has_y) bytes += norm_tile_bytes(v, (n2_dtype)v.type_dy);
    return bytes;
}

/* Activations of eight numbers at once, so that they need not wait for one another. */
__device__ inline void norm_act(const wide_norm &v, float x[8]) {
    if (v.act == N2_ACT_SILU) {
#pragma unroll
        for (int e = 0; e < 8; e++) x[e] *= quick_sigmoid(x[e]);
    } else if (v.act == N2_ACT_LRELU) {
#pragma unroll
        for (int e = 0; e < 8; e++) x[e] = x[e] <= 0.0f ? v.slope * x[e] : x[e];
    }
}

/* d becomes the gradient before the activation of x. */
__device__ inline void norm_act_slope(const wide_norm &v, const float x[8], float d[8]) {
    if (v.act == N2_ACT_SILU) {
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const float gate = quick_sigmoid(x[e]);
            d[e] *= gate * (1.0f + x[e] * (1.0f - gate));
        }
    } else if (v.act == N2_ACT_LRELU) {
#pragma unroll
        for (int e = 0; e < 8; e++) d[e] = x[e] <= 0.0f ? v.slope * d[e] : d[e];
    }
}

/* Where a thread's eight channels of a pixel are: in memory, and in the tile. */
typedef struct norm_place {
    size_t pixel;
    uint32_t tile;
} norm_place;

/* TYPE: n2_dtype of x, dy, and the output; -1: of each as it says. */
template <bool HELD, int TYPE> struct norm_block {
    const norm_task &t;
    const wide_norm &v;
    char *tile[2];            /* x, and dy or d */
    float *part[2], *of;      /* sums of parts; numbers of channels, [NORM_CHANNELS x width] */
    uint32_t picture, first;  /* and the first channel */
    uint32_t pixels;          /* of the block */
    uint32_t columns, column; /* of eight channels */
    uint32_t rows, row;       /* of threads; an idle thread has none */
    size_t begin;             /* of this thread's channels, in memory, */
    size_t origin;            /* and of the picture's first pixel */

    __device__ norm_block(const norm_task &task, char *shared) : t(task), v(task.v) {
        const uint32_t cluster = blockIdx.x / v.cluster, rank = blockIdx.x - cluster * v.cluster;
        picture = cluster / v.slices;
        first = (cluster - picture * v.slices) * v.width;
        const uint32_t before = rank * v.share;
        pixels = before < v.positions ? v.positions - before : 0;
        if (pixels > v.share) pixels = v.share;
        columns = v.width / 8;
        rows = blockDim.x / columns;
        row = threadIdx.x / columns;
        column = threadIdx.x - row * columns;
        origin = (size_t)picture * v.positions * v.c + first + column * 8;
        begin = origin + (size_t)before * v.c;
        of = (float *)shared;
        part[0] = of + NORM_CHANNELS * v.width;
        part[1] = part[0] + v.rows * v.width;
        tile[0] = (char *)(part[1] + v.rows * v.width);
        tile[1] = tile[0] + norm_tile_bytes(v, type_x());
    }

    __device__ n2_dtype type_x() const { return (n2_dtype)(TYPE >= 0 ? TYPE : v.type_x); }
    __device__ n2_dtype type_dy() const { return (n2_dtype)(TYPE >= 0 ? TYPE : v.type_dy); }
    __device__ n2_dtype type_out() const { return (n2_dtype)(TYPE >= 0 ? TYPE : v.type_out); }

    __device__ bool is_idle() const { return row >= rows; }

    template <typename F> __device__ void each_pixel(F f) const {
        size_t at = begin + (size_t)row * v.c;
        uint32_t i = threadIdx.x * 8;
        if (is_idle()) return;
#pragma unroll NORM_UNROLL
        for (uint32_t p = row; p < pixels; p += rows) {
            f(norm_place{at, i});
            at += (size_t)rows * v.c;
            i += rows * columns * 8;
        }
    }

    /* ---- x and dy ---- */

    __device__ void ask_for(n2_dtype type, const void *from, char *to) const {
        const uint32_t bytes = (uint32_t)norm_bytes_of(type);
        each_pixel([&](norm_place p) {
            for (uint32_t k = 0; k < 8 * bytes; k += 16)
                copy_16((float *)(to + p.tile * bytes + k),
                        (const float *)((const char *)from + p.pixel * bytes + k), 16);
        });
        copies_commit();
    }

    /* A thread reads what it asked for itself. */
    __device__ void fetch() const {
        if (HELD) ask_for(type_x(), t.x, tile[0]);
        if (HELD && !v.has_y) ask_for(type_dy(), t.dy, tile[1]);
    }

    __device__ void x_at(norm_place p, float x[8]) const {
        if (HELD)
            load_eight(type_x(), tile[0], p.tile, x);
        else
            load_eight(type_x(), t.x, p.pixel, x);
    }
    __device__ void dy_at(norm_place p, float x[8]) const {
        if (HELD)
            load_eight(type_dy(), tile[1], p.tile, x);
        else
            load_eight(type_dy(), t.dy, p.pixel, x);
    }

    /* A number of each of the thread's channels. */
    __device__ void take(norm_channel which, float x[8]) const {
        load_eight(N2_NUMBER, of, which * v.width + column * 8, x);
    }

    __device__ float &number(int which, uint32_t k) const { return of[which * v.width + k]; }

    /* f(k, first channel of its group) for every channel k of the block, a thread each. */
    template <typename F> __device__ void each_channel(F f) const {
        for (uint32_t k = threadIdx.x; k < v.width; k += blockDim.x) f(k, k - k % v.each);
        __syncthreads();
    }

    /* ---- sums ---- */

    /* Two kinds of sums of the thread's channels become those of the block: parts first, of warps
     * or of rows of threads, then numbers `total` and the next. */
    __device__ void reduce(float mine[2][8], int total) const {
        const uint32_t to = v.by_warps ? threadIdx.x / 32 : row;
        const bool counts = v.by_warps ? threadIdx.x % 32 < columns : !is_idle();
#pragma unroll
        for (int q = 0; q < 2; q++) {
            for (uint32_t d = columns; v.by_warps && d < 32; d *= 2)
#pragma unroll
                for (int e = 0; e < 8; e++)
                    mine[q][e] += __shfl_xor_sync(0xffffffffu, mine[q][e], (int)d);
            if (counts) store_eight(N2_NUMBER, part[q], to * v.width + column * 8, mine[q]);
        }
        __syncthreads();
        const uint32_t parts = v.rows > 16 ? fold() : v.rows;
        each_channel([&](uint32_t k, uint32_t) {
            for (int q = 0; q < 2; q++) {
                float sum = 0;
                for (uint32_t r = 0; r < parts; r++) sum += part[q][r * v.width + k];
                number(total + q, k) = sum;
                number(NORM_ALL + q, k) = sum;
            }
        });
        if (v.cluster > 1) add_blocks(total);
    }

    /* Many parts become few: all threads add some up, each for one channel. */
    __device__ uint32_t fold() const {
        const uint32_t segments = blockDim.x / v.width, mine = threadIdx.x / v.width;
        const uint32_t k = threadIdx.x - mine * v.width;
        float sum[2] = {0, 0};
        for (uint32_t r = mine; mine < segments && r < v.rows; r += segments)
            for (int q = 0; q < 2; q++) sum[q] += part[q][r * v.width + k];
        __syncthreads();
        for (int q = 0; q < 2 && mine < segments; q++) part[q][mine * v.width + k] = sum[q];
        __syncthreads();
        return segments;
    }

    /* Of all blocks of the cluster, in their order. */
    __device__ void add_blocks(int total) const {
        cluster_barrier();
        each_channel([&](uint32_t k, uint32_t) {
            for (int q = 0; q < 2; q++) {
                float sum = 0;
                for (uint32_t r = 0; r < v.cluster; r++)
                    sum += cluster_load(&number(total + q, k), r);
                number(NORM_ALL + q, k) = sum;
            }
        });
    }

    /* ---- mean and variance ---- */

    __device__ void take_parameters(const float pivot[8]) const {
        for (uint32_t k = threadIdx.x; k < v.width; k += blockDim.x)
            for (int i = 0; i < 3; i++)
                number(NORM_SHIFT + i, k) =
                    t.parameter[i] ? t.parameter[i][(size_t)picture * v.step[i] + first + k]
                                   : (i == 1 ? 1.0f : 0.0f);
        if (row == 0) store_eight(N2_NUMBER, of, NORM_PIVOT * v.width + column * 8, pivot);
    }

    /* Of a channel: mean and squares of x less a pivot, which is the picture's first pixel; of a
     * group, from these. */
    __device__ void find_moments() const {
        float sum[2][8] = {}, pivot[8];
        fetch();
        load_eight(type_x(), t.x, origin, pivot);
        take_parameters(pivot);
        if (v.has_y)
            copies_wait<0>();
        else
            copies_wait<1>(); /* x is there */
        each_pixel([&](norm_place p) {
            float x[8];
            x_at(p, x);
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const float d = x[e] - pivot[e];
                sum[0][e] += d;
                sum[1][e] += d * d;
            }
        });
        reduce(sum, NORM_TOTAL);
        const float one = 1.0f / (float)v.positions;
        each_channel([&](uint32_t k, uint32_t group) {
            float mean = 0, squares = 0, above = number(NORM_PIVOT, k) + number(NORM_SHIFT, k);
            for (uint32_t i = group; i < group + v.each; i++)
                mean += number(NORM_PIVOT, i) + number(NORM_SHIFT, i) - above +
                        number(NORM_ALL, i) * one;
            mean /= (float)v.each;
            for (uint32_t i = group; i < group + v.each; i++) {
                const float own = number(NORM_ALL, i) * one;
                const float apart =
                    number(NORM_PIVOT, i) + number(NORM_SHIFT, i) - above + own - mean;
                squares += number(NORM_ALL + 1, i) * one - own * own + apart * apart;
            }
            const float variance = squares > 0.0f ? squares / (float)v.each : 0.0f * squares;
            number(NORM_MEAN, k) = number(NORM_ALL, k) * one;
            number(NORM_CENTRE, k) = number(NORM_PIVOT, k) + mean;
            number(NORM_FACTOR, k) = 1.0f / sqrtf(variance + v.eps);
        });
    }

    /* ---- forward ---- */

    __device__ void write_y() const {
        float plus[8], by[8], other[8];
        take(NORM_FACTOR, by);
        take(NORM_GAMMA, other);
#pragma unroll
        for (int e = 0; e < 8; e++) by[e] *= other[e];
        take(NORM_CENTRE, other);
        take(NORM_BETA, plus);
#pragma unroll
        for (int e = 0; e < 8; e++) plus[e] -= other[e] * by[e];
        each_pixel([&](norm_place p) {
            float x[8];
            x_at(p, x);
#pragma unroll
            for (int e = 0; e < 8; e++) x[e] = x[e] * by[e] + plus[e];
            norm_act(v, x);
            store_eight(type_out(), t.out, p.pixel, x);
        });
    }

    /* ---- gradients ---- */

    /* Of the thread's channels: x becomes x - centre, d the gradient before the activation. */
    struct slopes {
        const norm_block &b;
        float centre[8], by[8], beta[8];
        __device__ slopes(const norm_block &of) : b(of) {
            float gamma[8];
            b.take(NORM_CENTRE, centre);
            b.take(NORM_FACTOR, by);
            b.take(NORM_GAMMA, gamma);
            b.take(NORM_BETA, beta);
#pragma unroll
            for (int e = 0; e < 8; e++) by[e] *= gamma[e];
        }
        __device__ void at(norm_place p, float x[8], float d[8]) const {
            float before[8];
            b.x_at(p, x);
            b.dy_at(p, d);
#pragma unroll
            for (int e = 0; e < 8; e++) {
                x[e] -= centre[e];
                before[e] = x[e] * by[e] + beta[e];
            }
            norm_act_slope(b.v, before, d);
        }
    };

    /* Sums of d and d (x - centre); d takes the place of dy. */
    __device__ void find_slopes() const {
        float sum[2][8] = {};
        const slopes s(*this);
        each_pixel([&](norm_place p) {
            float x[8], d[8];
            s.at(p, x, d);
            if (HELD) store_eight(type_dy(), tile[1], p.tile, d);
#pragma unroll
            for (int e = 0; e < 8; e++) {
                sum[0][e] += d[e];
                sum[1][e] += d[e] * x[e];
            }
        });
        reduce(sum, NORM_TOTAL_SLOPES);
    }

    /* With u = factor (x - centre) and du = gamma d, dx = factor (du - mean of du - u mean of u
     * du).
     */
    __device__ void find_means() const {
        const float positions = (float)v.positions, size = positions * (float)v.each;
        each_channel([&](uint32_t k, uint32_t group) {
            float du = 0, along = 0;
            for (uint32_t i = group; i < group + v.each; i++) {
                du += number(NORM_GAMMA, i) * number(NORM_ALL, i);
                along += number(NORM_GAMMA, i) * number(NORM_ALL + 1, i);
            }
            const float factor = number(NORM_FACTOR, k), centre = number(NORM_CENTRE, k);
            const float less = factor * du / size, times = factor * factor * factor * along / size;
            number(NORM_PLUS, k) = centre * times - less;
            number(NORM_TIMES, k) = times;
            if (!v.has_sums || blockIdx.x % v.cluster) return;
            const float d = number(NORM_ALL, k);
            const float centred = number(NORM_PIVOT, k) - centre + number(NORM_MEAN, k);
            float *sums = t.sums + ((size_t)picture * v.c + first + k) * 3;
            sums[0] = d;
            sums[1] = factor * number(NORM_ALL + 1, k);
            sums[2] = factor * number(NORM_GAMMA, k) * d - positions * (less + times * centred);
        });
    }

    __device__ void write_dx() const {
        const slopes s(*this);
        float plus[8], times[8];
        take(NORM_PLUS, plus);
        take(NORM_TIMES, times);
        each_pixel([&](norm_place p) {
            float x[8], d[8];
            if (!HELD) s.at(p, x, d);
            if (HELD) dy_at(p, d);
            x_at(p, x);
#pragma unroll
            for (int e = 0; e < 8; e++) x[e] = d[e] * s.by[e] - (x[e] * times[e] - plus[e]);
            if (t.addend) {
                load_eight((n2_dtype)v.type_addend, t.addend, p.pixel, d);
#pragma unroll
                for (int e = 0; e < 8; e++) x[e] += v.addend_scale * d[e];
            }
            store_eight(type_out(), t.out, p.pixel, x);
        });
    }
};

template <bool HELD, int TYPE>
__global__ void __launch_bounds__(NORM_THREADS, NORM_BLOCKS)
    run_norm_output(const __grid_constant__ norm_task t) {
    GPU_SHARED(shared);
    grid_wait();
    grid_next();
    const norm_block<HELD, TYPE> b(t, (char *)shared);
    b.find_moments();
    b.write_y();
    if (t.v.cluster > 1) cluster_barrier(); /* others may still read this block's memory */
}

template <bool HELD, int TYPE>
__global__ void __launch_bounds__(NORM_THREADS, NORM_BLOCKS)
    run_norm_gradient(const __grid_constant__ norm_task t) {
    GPU_SHARED(shared);
    grid_wait();
    grid_next();
    const norm_block<HELD, TYPE> b(t, (char *)shared);
    b.find_moments();
    copies_wait<0>();
    b.find_slopes();
    b.find_means();
    if (t.v.has_dx) b.write_dx();
    if (t.v.cluster > 1) cluster_barrier(); /* others may still read this block's memory */
}

#endif
