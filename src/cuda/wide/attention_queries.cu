/* Gradients of queries: warps have queries and dy of them, and walk over keys and values twice. At
 * first what is known of a query when all keys have been seen, which is noted for the gradients of
 * keys; then its gradient. */
#include "attention_tiles.h"

/* With p the weights and dp = dy v', the mean is the sum of p dp. */
template <int ROWS> struct query_notes {
    float level[ROWS][2], mean[ROWS][2]; /* level: base-2 logarithm of the sum of exponentials */
};

/* Exponentials e and dp of a tile: sums of e dp follow those of e. */
template <int ROWS, int N>
__device__ inline void add_mean(float (&mean)[ROWS][2], const float (&factor)[ROWS][2],
                                const float (&e)[ROWS][N][4], const float (&dp)[ROWS][N][4]) {
#pragma unroll
    for (int i = 0; i < 2 * ROWS; i++) {
        const int m = i / 2, h = i % 2;
        float added = 0;
#pragma unroll
        for (int n = 0; n < N; n++)
            added += e[m][n][2 * h] * dp[m][n][2 * h] + e[m][n][2 * h + 1] * dp[m][n][2 * h + 1];
        mean[m][h] = mean[m][h] * factor[m][h] + added;
    }
}

template <int ROWS>
__device__ inline void settle(const attention_task &a, const attention_rows<ROWS> &known,
                              query_notes<ROWS> &notes, float2 *to, uint32_t first) {
#pragma unroll
    for (int i = 0; i < 2 * ROWS; i++) {
        const int m = i / 2, h = i % 2;
        const float sum = row_sum(known.sum[m][h]);
        const uint32_t row = first + m * 16 + h * 8 + threadIdx.x % 32 / 4;
        notes.level[m][h] = known.top[m][h] * a.base + log2f(sum);
        notes.mean[m][h] = row_sum(notes.mean[m][h]) / sum;
        if (threadIdx.x % 4 == 0 && row < a.t)
            to[row] = float2{notes.level[m][h], notes.mean[m][h]};
    }
}

/* Scores become gradients of the products of queries and keys. */
template <int ROWS, int N>
__device__ inline void make_ds(const attention_task &a, const query_notes<ROWS> &notes,
                               float (&s)[ROWS][N][4], const float (&dp)[ROWS][N][4]) {
#pragma unroll
    for (int m = 0; m < ROWS; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const float p = quick_exp2(s[m][n][k] * a.base - notes.level[m][k / 2]);
                s[m][n][k] = p * a.scale * (dp[m][n][k] - notes.mean[m][k / 2]);
            }
}

template <typename U, int WIDTH, int ROWS, int KEYS, int WARPS>
__global__ void __launch_bounds__(32 * WARPS)
    run_queries(const __grid_constant__ attention_task a) {
    typedef typename U::number number;
    enum { PITCH = pitch_of<WIDTH>(), TILE = KEYS * PITCH };
    grid_wait();
    grid_next();
    GPU_SHARED(shared);
    const attention_place at(a, blockIdx.x);
    const uint32_t rows = blockDim.x / 32 * 16 * ROWS, first = at.block * rows;
    const uint32_t mine = threadIdx.x / 32 * 16 * ROWS, tiles = (a.t + KEYS - 1) / KEYS;
    number *q = (number *)shared, *dy = q + rows * PITCH, *keys = dy + rows * PITCH;
    load_tile<U, WIDTH>(a, q, a.qkv, at.qkv, a.step, first, rows);
    load_tile<U, WIDTH>(a, dy, a.dy, at.y, a.c, first, rows);
    load_tile<U, WIDTH>(a, keys, a.qkv, at.qkv + a.c, a.step, 0, KEYS);
    load_tile<U, WIDTH>(a, keys + TILE, a.qkv, at.qkv + 2 * a.c, a.step, 0, KEYS);
    copies_commit();
    float dq[ROWS][WIDTH / 8][4];
    attention_rows<ROWS> known;
    query_notes<ROWS> notes = {};
    clear(dq);
    for (uint32_t i = 0, j = 0; i < 2 * tiles; i++) {
        number *k = keys + i % 2 * 2 * TILE, *next = keys + (i + 1) % 2 * 2 * TILE;
        const uint32_t then = i + 1 == tiles ? 0 : j + KEYS;
        copies_wait<0>();
        __syncthreads(); /* this tile is there, and all are done with the one before */
        if (i + 1 < 2 * tiles) {
            load_tile<U, WIDTH>(a, next, a.qkv, at.qkv + a.c, a.step, then, KEYS);
            load_tile<U, WIDTH>(a, next + TILE, a.qkv, at.qkv + 2 * a.c, a.step, then, KEYS);
            copies_commit();
        }
        float s[ROWS][KEYS / 8][4], dp[ROWS][KEYS / 8][4];
        rows_by_rows<U, WIDTH>(s, q + mine * PITCH, k);
        rows_by_rows<U, WIDTH>(dp, dy + mine * PITCH, k + TILE);
        mask_keys(s, j, a.t);
        if (i < tiles) {
            float factor[ROWS][2];
            known.soften(s, a.base, factor);
            add_mean(notes.mean, factor, s, dp);
            if (i + 1 == tiles) settle(a, known, notes, a.notes + at.notes, first + mine);
        } else {
            make_ds(a, notes, s, dp);
            add_weighted<U, PITCH>(dq, s, k);
        }
        j = then;
    }
    store_rows<U, PITCH>(a, dq, q + mine * PITCH, at.qkv, a.step, first + mine, 0);
}

#define VARIANT_OF(UNITS, WIDTH, ROWS, KEYS, WARPS)                                          \
    {                                                                                        \
        run_queries<UNITS, WIDTH, ROWS, KEYS, WARPS>, WIDTH, 16 * (ROWS), WARPS, 1, KEYS, 2, \
            32 * (ROWS)*pitch_of<WIDTH>() * sizeof(UNITS::number),                           \
            2 * (KEYS)*pitch_of<WIDTH>() * sizeof(UNITS::number)                             \
    }
/* By measurement, and what fits shared memory: floats, 256 wide, have smaller tiles. */
#define VARIANT(UNITS, WIDTH)                                                       \
    VARIANT_OF(UNITS, WIDTH, (sizeof(UNITS::number) == 2 && (WIDTH) < 256 ? 2 : 1), \
               (sizeof(UNITS::number) * (WIDTH) == 1024 ? 16 : 32),                 \
               ((WIDTH) < 256                ? 4                                    \
                : sizeof(UNITS::number) == 2 ? 8                                    \
                                             : 2))
const attention_table n2_attention_queries = ATTENTION_TABLE(VARIANT);
