/* Attention in device code, for any shape: a warp per query, or per key for the gradients of keys
 * and values. The order of sums depends on the shapes only. */
#ifndef N2_CUDA_JOBS_ATTENTION_H
#define N2_CUDA_JOBS_ATTENTION_H

#include "jobs_conv.h"

/* Where a warp's row, a query or a key of a head of a picture, is. */
struct attention_row {
    int64_t head; /* of q of the first position; k and v are c and 2 c further */
    int64_t y;    /* of the first position in y */
    uint32_t i;   /* the position */
    __device__ attention_row(const job_attention &a, uint32_t row) {
        const uint32_t all = row / a.t, n = all / a.heads, h = all - n * a.heads;
        i = row - all * a.t;
        head = (int64_t)n * a.t * a.step + h * a.d;
        y = (int64_t)n * a.t * a.c + h * a.d;
    }
};

__device__ inline float attention_dot(numbers x, numbers y, uint32_t d) {
    double sum = 0;
    for (uint32_t e = 0; e < d; e++) sum += (double)(x[e] * y[e]);
    return (float)sum;
}

/* The operands of a row, with its head's channels first. */
struct attention_numbers {
    numbers q, k, v, dy; /* of the head's first position */
    float *out;
    n2_dtype type_out;
    __device__ attention_numbers(const job &j, const attention_row &at)
        : q(numbers{j.in[0], (n2_dtype)j.attention.type_x} + at.head), k(q + j.attention.c),
          v(k + j.attention.c), dy(numbers{j.in[1], (n2_dtype)j.attention.type_dy}), out(j.out),
          type_out((n2_dtype)j.attention.type_out) {
        if (dy.at) dy = dy + at.y;
    }
};

/* What is known of a query when all keys have been seen. */
struct attention_query {
    float top, factor, mean; /* largest score; 1 / sum of exponentials; sum of weights times dp */
};

/* Lanes have keys. dy.at is NULL if no gradient is asked for. */
__device__ inline attention_query attention_look(const job_attention &a, const attention_numbers &x,
                                                 numbers q, numbers dy) {
    float top = -INFINITY;
    for (uint32_t j = threadIdx.x % 32; j < a.t; j += 32)
        top = larger(top, a.scale * attention_dot(q, x.k + (int64_t)j * a.step, a.d));
    top = warp_max(top);
    double sum = 0, mean = 0;
    for (uint32_t j = threadIdx.x % 32; j < a.t; j += 32) {
        const int64_t at = (int64_t)j * a.step;
        const double e = (double)expf(a.scale * attention_dot(q, x.k + at, a.d) - top);
        sum += e;
        if (dy.at) mean += e * (double)attention_dot(dy, x.v + at, a.d);
    }
    sum = warp_sum(sum);
    return attention_query{top, (float)(1 / sum), (float)(warp_sum(mean) / sum)};
}

/* Sum over positions of a weight times a row of x, at `to` of the output: lanes work out the
 * weights of 32 positions, and then have a channel each. Channels beyond 32 have the weights made
 * again. */
template <typename W>
__device__ inline void attention_sum(const job_attention &a, const attention_numbers &all,
                                     int64_t to, numbers x, uint32_t step, W weight) {
    for (uint32_t first = 0; first < a.d; first += 32) {
        const uint32_t e = first + threadIdx.x % 32;
        double sum = 0;
        for (uint32_t i0 = 0; i0 < a.t; i0 += 32) {
            const uint32_t mine = i0 + threadIdx.x % 32;
            const float w = weight(mine < a.t ? mine : 0);
            for (uint32_t k = 0; k < 32; k++) {
                const float by = __shfl_sync(0xffffffffu, w, (int)k);
                if (i0 + k < a.t && e < a.d) sum += (double)(by * x[(int64_t)(i0 + k) * step + e]);
            }
        }
        if (e < a.d) put_number(all.out, all.type_out, (uint32_t)to + e, sum);
    }
}

/* y of a query, or, if there is a dy, the gradient of the query. */
__device__ inline void attention_of_query(const job &j, const attention_row &at, uint32_t row) {
    const job_attention &a = j.attention;
    const attention_numbers x(j, at);
    const numbers q = x.q + (int64_t)at.i * a.step;
    const numbers dy = x.dy.at ? x.dy + (int64_t)at.i * a.c : x.dy;
    const attention_query known = attention_look(a, x, q, dy);
    const auto weight = [&](uint32_t i) {
        const int64_t key = (int64_t)i * a.step;
        const float p = expf(a.scale * attention_dot(q, x.k + key, a.d) - known.top) * known.factor;
        return dy.at ? p * a.scale * (attention_dot(dy, x.v + key, a.d) - known.mean) : p;
    };
    if (!dy.at) return attention_sum(a, x, at.y + (int64_t)at.i * a.c, x.v, a.step, weight);
    if (threadIdx.x % 32 == 0) {
        float *note = j.more[0] + (int64_t)row * 3;
        note[0] = known.top, note[1] = known.factor, note[2] = known.mean;
    }
    attention_sum(a, x, at.head + (int64_t)at.i * a.step, x.k, a.step, weight);
}

/* Gradients of a key and a value, when all queries are known. */
__device__ inline void attention_of_key(const job &j, const attention_row &at, uint32_t row) {
    const job_attention &a = j.attention;
    const attention_numbers x(j, at);
    const int64_t mine = (int64_t)at.i * a.step, to = at.head + a.c + mine;
    const numbers k = x.k + mine, v = x.v + mine;
    const float *notes = j.more[0] + (int64_t)(row - at.i) * 3;
    const auto weight = [&](uint32_t i) {
        const float s = a.scale * attention_dot(x.q + (int64_t)i * a.step, k, a.d);
        return expf(s - notes[(int64_t)i * 3]) * notes[(int64_t)i * 3 + 1];
    };
    const auto slope = [&](uint32_t i) {
        const float dp = attention_dot(x.dy + (int64_t)i * a.c, v, a.d);
        return weight(i) * a.scale * (dp - notes[(int64_t)i * 3 + 2]);
    };
    attention_sum(a, x, to, x.q, a.step, slope);
    attention_sum(a, x, to + a.c, x.dy, a.c, weight);
}

/* n rows, JOB_ROWS a block: a warp each. */
GPU_JOB void run_attention(const job &j, uint32_t block) {
    const uint32_t row = block * JOB_ROWS + threadIdx.x / 32;
    if (row >= (uint32_t)j.n) return;
    const attention_row at(j.attention, row);
    if (j.attention.of_keys)
        attention_of_key(j, at, row);
    else
        attention_of_query(j, at, row);
}

#endif
