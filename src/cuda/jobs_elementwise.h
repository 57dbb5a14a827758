/* Element-wise ops, in device code. The meaning is that of ref/plain.h. */
#ifndef N2_CUDA_JOBS_ELEMENTWISE_H
#define N2_CUDA_JOBS_ELEMENTWISE_H

#include "gpu.h"
#include "job.h"
#include "tower.h"

#include <math.h>

/* ---- the terms of the loss, objective/terms.h ---- */

__device__ inline double scaled_softplus(double x, double a) {
    const double log_a = log(a);
    if (x > log_a) return a * ((x - log_a) + log1p(a * exp(-x)));
    const double r = exp(x);
    return r < 1e-17 * a ? r : a * log1p(r / a);
}

__device__ inline double shifted_softplus(double x, double a) {
    const double log_a = log(a);
    return x > log_a ? log1p(a * exp(-x)) : (log_a - x) + log1p(exp(x) / a);
}

__device__ inline double loss_term(double f, double m, bool is_den) {
    if (isinf(m)) return is_den ? exp(f) : -f;
    return is_den ? scaled_softplus(f, m) : shifted_softplus(f, m);
}

__device__ inline double loss_weight(double f, double m, bool is_den) {
    if (isinf(m)) return is_den ? exp(f) : -1;
    if (is_den) return 1 / (1 / m + exp(-f));
    if (f < 700) return -1 / (1 + exp(f) / m);
    const double x = log(m) - f, e = exp(x); /* x < 0: exp(f) overflows */
    return -(e / (1 + e));
}

/* ---- functions of one number ---- */

__device__ inline float sigmoid(float x) {
    if (x >= 0) return 1.0f / (1.0f + expf(-x));
    const float e = expf(x);
    return e / (1.0f + e);
}

__device__ inline float softplus(float x) { return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x)); }

__device__ inline float unary(const job &j, float x) {
    const float a = (float)j.f[0], b = (float)j.f[1];
    switch (j.op) {
    case N2_OP_neg:
        return -x;
    case N2_OP_exp:
        return expf(x);
    case N2_OP_log:
        return logf(x);
    case N2_OP_sqrt:
        return sqrtf(x);
    case N2_OP_reciprocal:
        return 1.0f / x;
    case N2_OP_tanh:
        return tanhf(x);
    case N2_OP_sigmoid:
        return sigmoid(x);
    case N2_OP_softplus:
        return softplus(x);
    case N2_OP_sin:
        return sinf(x);
    case N2_OP_cos:
        return cosf(x);
    case N2_OP_positive:
        return x > 0.0f ? 1.0f : 0.0f;
    case N2_OP_affine:
        return a * x + b;
    case N2_OP_lrelu:
        return x > 0.0f ? x : a * x;
    case N2_OP_n2ce_term:
        return (float)loss_term((double)x, j.f[0], j.k != 0);
    default: /* n2ce_weight */
        return (float)loss_weight((double)x, j.f[0], j.k != 0);
    }
}

/* ---- functions of two ---- */

__device__ inline float binary(const job &j, float x, float y) {
    switch (j.op) {
    case N2_OP_add:
        return x + y;
    case N2_OP_sub:
        return x - y;
    case N2_OP_mul:
        return x * y;
    case N2_OP_div:
        return x / y;
    case N2_OP_maximum:
        return x > y || x != x ? x : y;
    case N2_OP_minimum:
        return x < y || x != x ? x : y;
    case N2_OP_equal:
        return x == y ? 1.0f : 0.0f;
    case N2_OP_greater:
        return x > y ? 1.0f : 0.0f;
    default: /* lrelu_grad */
        return x > 0.0f ? y : (float)j.f[0] * y;
    }
}

/* ---- walking ---- */

/* Where operand `which` has the element that goes to element i. */
__device__ inline int64_t place(const job_loops &l, int which, uint32_t i) {
    if (l.rank == 1) return i * l.step[which][0];
    int64_t at = 0;
    for (int k = 0; k < l.rank; k++) {
        const uint32_t rest = i / l.length[k];
        at += (int64_t)(i - rest * l.length[k]) * l.step[which][k];
        i = rest;
    }
    return at;
}

/* For this thread's elements of the block: put(i, get(i)), but all get what they need before the
 * first one is put, so that all loads are under way at once. What is put at i may be what only the
 * same i gets. */
template <typename V, typename GET, typename PUT>
__device__ inline void each_element(const job &j, uint32_t block, GET get, PUT put) {
    enum { EACH = JOB_ELEMENTS / JOB_THREADS };
    const uint32_t first = block * JOB_ELEMENTS + threadIdx.x, n = (uint32_t)j.n;
    V x[EACH];
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++)
        x[k] = get(first + k * JOB_THREADS < n ? first + k * JOB_THREADS : n - 1);
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++)
        if (first + k * JOB_THREADS < n) put(first + k * JOB_THREADS, x[k]);
}

GPU_JOB void run_unary(const job &j, uint32_t block) {
    const float *in = j.in[0];
    float *out = j.out;
    each_element<float>(
        j, block, [&](uint32_t i) { return in[i]; },
        [&](uint32_t i, float x) { out[i] = unary(j, x); });
}

GPU_JOB void run_binary(const job &j, uint32_t block) {
    const float *a = j.in[0], *b = j.in[1];
    float *out = j.out;
    each_element<float2>(
        j, block,
        [&](uint32_t i) {
            return float2{a[place(j.loops, 0, i)], b[place(j.loops, 1, i)]};
        },
        [&](uint32_t i, float2 x) { out[i] = binary(j, x.x, x.y); });
}

/* Of jobs that only move numbers. */
template <typename GET> __device__ inline void put_numbers(const job &j, uint32_t block, GET get) {
    float *out = j.out;
    each_element<float>(j, block, get, [&](uint32_t i, float x) { out[i] = x; });
}

GPU_JOB void run_copy(const job &j, uint32_t block) {
    const float *in = j.in[0];
    put_numbers(j, block, [&](uint32_t i) { return in[place(j.loops, 0, i)]; });
}

/* Rows of m numbers, from rows of loops.step[0][0] to rows of loops.step[1][0]. */
GPU_JOB void run_move(const job &j, uint32_t block) {
    const uint32_t width = (uint32_t)j.m;
    const int64_t from = j.loops.step[0][0], to = j.loops.step[1][0];
    const float *in = j.in[0];
    float *out = j.out;
    each_element<float>(
        j, block, [&](uint32_t i) { return in[i / width * from + i % width]; },
        [&](uint32_t i, float x) { out[i / width * to + i % width] = x; });
}

/* Rows of m numbers become rows of loops.step[1][0] with the m from k on; beside them zeros, or, if
 * k is 0, other rows. */
GPU_JOB void run_pad(const job &j, uint32_t block) {
    const uint32_t width = (uint32_t)j.loops.step[1][0];
    const int64_t begin = j.k, m = j.m;
    const float *in = j.in[0], *others = j.in[1];
    put_numbers(j, block, [&](uint32_t i) {
        const int64_t row = i / width, column = (int64_t)(i % width) - begin;
        if (column >= 0 && column < m) return in[row * m + column];
        return others ? others[row * (width - m) + column - m] : 0.0f;
    });
}

GPU_JOB void run_row_index(const job &j, uint32_t block) {
    put_numbers(j, block,
                [&](uint32_t i) { return (float)((j.loops.step[0][0] + i) / j.k % j.m); });
}

/* A row number, kept inside the table. */
__device__ inline int64_t row_number(float index, int64_t rows) {
    const double x = (double)index;
    return !(x >= 0) ? 0 : x < (double)rows ? (int64_t)x : rows - 1;
}

/* m: width of a row; k: rows of the table. */
GPU_JOB void run_gather(const job &j, uint32_t block) {
    const uint32_t width = (uint32_t)j.m;
    const int64_t rows = j.k;
    const float *table = j.in[0], *indices = j.in[1];
    if (width % 4 == 0 && ((uintptr_t)table | (uintptr_t)j.out) % 16 == 0) { /* by fours */
        const uint32_t i = block * JOB_ELEMENTS + threadIdx.x * 4, row = i / width;
        if (i >= (uint32_t)j.n) return;
        const int64_t from = row_number(indices[row], rows) * width + (i - row * width);
        *(float4 *)(j.out + i) = *(const float4 *)(table + from);
        return;
    }
    put_numbers(j, block, [&](uint32_t i) {
        const uint32_t row = i / width, column = i - row * width;
        return table[row_number(indices[row], rows) * width + column];
    });
}

/* The largest magnitude of a matrix, as bits. */
__device__ inline uint32_t block_top(const float *x, unsigned height, unsigned width,
                                     unsigned stride, uint32_t *shared) {
    enum { AT_ONCE = 32 };
    const unsigned n = height * width;
    uint32_t top = 0;
    for (unsigned first = threadIdx.x; first < n; first += AT_ONCE * JOB_THREADS) {
        float v[AT_ONCE];
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; k++) {
            const unsigned i = first + k * JOB_THREADS, at = i < n ? i : n - 1;
            v[k] = x[stride == width ? at : at / width * stride + at % width];
        }
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; k++) {
            const uint32_t bits = __float_as_uint(v[k]) & 0x7fffffffu;
            top = bits > top ? bits : top;
        }
    }
    top = warp_most(top);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = top;
    __syncthreads();
    for (int w = 0; w < JOB_THREADS / 32; w++) top = shared[w] > top ? shared[w] : top;
    return top;
}

/* The image of m rows of k numbers (op: as they lie, else transposed), zeros around them, and the
 * bias, in[1]. Every block looks for the largest number itself, and makes its share of the image;
 * neighbours read what lies side by side. */
GPU_JOB void run_image(const job &j, float *shared, uint32_t block) {
    enum { PAIRS = IMAGE_FLOATS / IMAGE_BLOCKS / JOB_THREADS };
    const unsigned rows = (unsigned)j.m, columns = (unsigned)j.k;
    const unsigned stride = (unsigned)j.loops.step[0][0];
    const bool lies = j.op;
    const float *in = j.in[0];
    const uint32_t top = block_top(in, lies ? rows : columns, lies ? columns : rows, stride,
                                   (uint32_t *)shared);
    const float power = __uint_as_float(power_bits(top, j.strict));
    uint32_t *out = (uint32_t *)j.out;
    float2 v[PAIRS];
#pragma unroll
    for (unsigned i = 0; i < PAIRS; i++) {
        const unsigned p = (block * PAIRS + i) * JOB_THREADS + threadIdx.x;
        const unsigned row = lies ? p / 64 : p % TOWER_WIDTH;
        const unsigned k = 2 * (lies ? p % 64 : p / TOWER_WIDTH);
        const unsigned from = lies ? row * stride + k : k * stride + row;
        v[i].x = row < rows && k < columns ? in[from] : 0.0f;
        v[i].y = row < rows && k + 1 < columns ? in[from + (lies ? 1 : stride)] : 0.0f;
    }
#pragma unroll
    for (unsigned i = 0; i < PAIRS; i++) {
        const unsigned p = (block * PAIRS + i) * JOB_THREADS + threadIdx.x;
        const unsigned row = lies ? p / 64 : p % TOWER_WIDTH;
        const unsigned k = 2 * (lies ? p % 64 : p / TOWER_WIDTH);
        const float x = v[i].x * power, y = v[i].y * power;
        const uint32_t both = pack_halves(x, y);
        out[image_at(TOWER_WIDTH, row, k) / 2] = both;
        if (!j.strict) continue;
        const float2 packed = unpack_halves(both);
        out[IMAGE_FLOATS + image_at(TOWER_WIDTH, row, k) / 2] =
            pack_halves(x - packed.x, y - packed.y);
    }
    if (block > 0) return;
    float *behind = j.out + (j.strict ? 2 : 1) * IMAGE_FLOATS;
    if (threadIdx.x == 0) behind[TOWER_WIDTH] = inverse_power(power);
    if (threadIdx.x < TOWER_WIDTH)
        behind[threadIdx.x] = j.in[1] && threadIdx.x < rows ? j.in[1][threadIdx.x] : 0.0f;
}

/* ---- updates ---- */

__device__ inline const float *const *watched_of(const n2_device_state *s) {
    return (const float *const *)(s + 1);
}

/* Not made once something was not finite. */
__device__ inline bool is_held_back(const job &j) {
    if (j.state->frozen || j.state->bad) return true;
    for (uint32_t k = 0; k < j.guards; k++)
        if (!isfinite(*watched_of(j.state)[k])) return true;
    return false;
}

GPU_JOB void run_assign(const job &j, uint32_t block) {
    if (is_held_back(j)) return;
    const float *in = j.in[0];
    put_numbers(j, block, [&](uint32_t i) { return in[i]; });
}

/* in: gradient, rate, factor on the gradient, number of the step. f: betas, eps, decay. */
/* Numbers are asked for before it is known whether they are needed: all loads are on their way at
 * once. */
GPU_JOB void run_adam(const job &j, float *shared, uint32_t block) {
    enum { EACH = JOB_ELEMENTS / JOB_THREADS };
    float g[EACH], p[EACH], m[EACH], v[EACH];
    const uint32_t first = block * JOB_ELEMENTS + threadIdx.x, n = (uint32_t)j.n;
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++) {
        const uint32_t i = first + k * JOB_THREADS < n ? first + k * JOB_THREADS : n - 1;
        g[k] = j.in[0][i], p[k] = j.out[i], m[k] = j.more[0][i], v[k] = j.more[1][i];
    }
    const float rate = *j.in[1], factor = *j.in[2];
    if (threadIdx.x < 2)
        shared[threadIdx.x] = (float)(1 / (1 - pow(j.f[threadIdx.x], (double)*j.in[3])));
    if (is_held_back(j)) return;
    __syncthreads();
    const float b1 = (float)j.f[0], b2 = (float)j.f[1], eps = (float)j.f[2], decay = (float)j.f[3];
    const float c1 = (float)(1 - j.f[0]), c2 = (float)(1 - j.f[1]);
    const float fix1 = shared[0], fix2 = shared[1];
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++) {
        const uint32_t i = first + k * JOB_THREADS;
        if (i >= n) return;
        const float x = g[k] * factor;
        const float mk = b1 * m[k] + c1 * x, vk = b2 * v[k] + c2 * x * x;
        j.more[0][i] = mk;
        j.more[1][i] = vk;
        j.out[i] = p[k] - rate * (mk * fix1 / (sqrtf(vk * fix2) + eps) + decay * p[k]);
    }
}

/* A good run counts; after a bad one nothing changes any more. */
GPU_JOB void run_end(const job &j) {
    n2_device_state *s = j.state;
    if (threadIdx.x > 0) return;
    for (uint32_t k = 0; k < s->n_watched && !s->bad; k++)
        if (!isfinite(*watched_of(s)[k])) s->bad = k + 1;
    if (!s->bad) s->step++;
}

#endif
