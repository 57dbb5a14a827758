/* Attention in device code, for any shape: a warp per query, or per key for the gradients of keys
 * and values. The order of sums depends on the shapes only. */
#ifndef N2_CUDA_JOBS_ATTENTION_H
#define N2_CUDA_JOBS_ATTENTION_H

#include "jobs_reduce.h"

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

__device__ inline float attention_dot(const float *x, const float *y, uint32_t d) {
    double sum = 0;
    for (uint32_t e = 0; e < d; e++) sum += (double)(x[e] * y[e]);
    return (float)sum;
}

/* What is known of a query when all keys have been seen. */
struct attention_query {
    float top, factor, mean; /* largest score; 1 / sum of exponentials; sum of weights times dp */
};

/* Lanes have keys; dy: NULL if no gradient is asked for. */
__device__ inline attention_query attention_look(const job_attention &a, const float *q,
                                                 const float *k, const float *dy) {
    float top = -INFINITY;
    for (uint32_t j = threadIdx.x % 32; j < a.t; j += 32)
        top = larger(top, a.scale * attention_dot(q, k + (int64_t)j * a.step, a.d));
    top = warp_max(top);
    double sum = 0, mean = 0;
    for (uint32_t j = threadIdx.x % 32; j < a.t; j += 32) {
        const float *key = k + (int64_t)j * a.step;
        const double e = (double)expf(a.scale * attention_dot(q, key, a.d) - top);
        sum += e;
        if (dy) mean += e * (double)attention_dot(dy, key + a.c, a.d);
    }
    sum = warp_sum(sum);
    return attention_query{top, (float)(1 / sum), (float)(warp_sum(mean) / sum)};
}

/* to [d] += sum over lanes of their weights times rows of x, of which lane 0 has the first. */
__device__ inline void attention_add(float *to, float weight, const float *x, uint32_t step,
                                     uint32_t rows, uint32_t d) {
    for (uint32_t e0 = 0; e0 < d; e0 += 32) {
        const uint32_t e = e0 + threadIdx.x % 32;
        double sum = 0;
        for (uint32_t j = 0; j < 32; j++) {
            const float w = __shfl_sync(0xffffffffu, weight, (int)j);
            if (j < rows && e < d) sum += (double)(w * x[(int64_t)j * step + e]);
        }
        if (e < d) to[e] += (float)sum;
    }
}

__device__ inline void attention_clear(float *to, uint32_t d) {
    for (uint32_t e = threadIdx.x % 32; e < d; e += 32) to[e] = 0;
}

/* y of a query, or, if there is a dy, the gradient of the query. */
__device__ inline void attention_of_query(const job &j, const attention_row &at, uint32_t row) {
    const job_attention &a = j.attention;
    const float *q = j.in[0] + at.head + (int64_t)at.i * a.step, *k = j.in[0] + at.head + a.c;
    const float *dy = j.in[1] ? j.in[1] + at.y + (int64_t)at.i * a.c : NULL;
    float *to = j.out + (dy ? at.head + (int64_t)at.i * a.step : at.y + (int64_t)at.i * a.c);
    const attention_query known = attention_look(a, q, k, dy);
    if (dy && threadIdx.x % 32 == 0) {
        float *note = j.more[0] + (int64_t)row * 3;
        note[0] = known.top, note[1] = known.factor, note[2] = known.mean;
    }
    attention_clear(to, a.d);
    for (uint32_t first = 0; first < a.t; first += 32) {
        const uint32_t rows = a.t - first < 32 ? a.t - first : 32;
        const float *keys = k + (int64_t)first * a.step, *mine = keys;
        if (threadIdx.x % 32 < rows) mine += (int64_t)(threadIdx.x % 32) * a.step;
        float w = expf(a.scale * attention_dot(q, mine, a.d) - known.top) * known.factor;
        if (dy) w *= a.scale * (attention_dot(dy, mine + a.c, a.d) - known.mean);
        attention_add(to, w, dy ? keys : keys + a.c, a.step, rows, a.d);
    }
}

/* Gradients of a key and a value, when all queries are known. */
__device__ inline void attention_of_key(const job &j, const attention_row &at, uint32_t row) {
    const job_attention &a = j.attention;
    const float *q = j.in[0] + at.head, *k = q + a.c + (int64_t)at.i * a.step;
    const float *dy = j.in[1] + at.y, *notes = j.more[0] + (int64_t)(row - at.i) * 3;
    float *to = j.out + at.head + a.c + (int64_t)at.i * a.step;
    attention_clear(to, a.d);
    attention_clear(to + a.c, a.d);
    for (uint32_t first = 0; first < a.t; first += 32) {
        const uint32_t rows = a.t - first < 32 ? a.t - first : 32;
        const uint32_t mine = first + (threadIdx.x % 32 < rows ? threadIdx.x % 32 : 0);
        const float *note = notes + (int64_t)mine * 3;
        const float s = a.scale * attention_dot(q + (int64_t)mine * a.step, k, a.d);
        const float p = expf(s - note[0]) * note[1];
        const float dp = attention_dot(dy + (int64_t)mine * a.c, k + a.c, a.d);
        attention_add(to, p * a.scale * (dp - note[2]), q + (int64_t)first * a.step, a.step, rows,
                      a.d);
        attention_add(to + a.c, p, dy + (int64_t)first * a.c, a.c, rows, a.d);
    }
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
