/* Gradients of keys and values: warps have keys, and walk over queries and dy of them, of which the
 * notes are there (attention_queries.cu). Weights are made with keys as rows, so that they are left
 * factors as they are. Channels beyond 128 are other blocks': sums of both gradients are registers.
 */
#include "attention_tiles.h"

/* Scores, with keys as rows, become weights p; dp becomes the gradient of the products of queries
 * and keys. Queries that there are not have weight 0. */
template <int N>
__device__ inline void weigh(const attention_task &a, const float2 *notes, uint32_t first,
                             float (&s)[1][N][4], float (&dp)[1][N][4]) {
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int side = 0; side < 2; side++) {
            const uint32_t i = first + n * 8 + threadIdx.x % 4 * 2 + side;
            const float2 note = i < a.t ? notes[i] : float2{INFINITY, 0};
#pragma unroll
            for (int k = side; k < 4; k += 2) {
                const float p = quick_exp2(s[0][n][k] * a.base - note.x);
                s[0][n][k] = p;
                dp[0][n][k] = p * a.scale * (dp[0][n][k] - note.y);
            }
        }
}

template <typename U, int WIDTH, int QUERIES, int WARPS>
__global__ void __launch_bounds__(32 * WARPS) run_keys(const __grid_constant__ attention_task a) {
    typedef typename U::number number;
    enum { PITCH = pitch_of<WIDTH>(), TILE = QUERIES * PITCH, PART = WIDTH < 128 ? WIDTH : 128 };
    grid_wait();
    grid_next();
    GPU_SHARED(shared);
    const attention_place at(a, blockIdx.x / (WIDTH / PART));
    const uint32_t rows = blockDim.x / 32 * 16, first = at.block * rows;
    const uint32_t mine = threadIdx.x / 32 * 16, channel = blockIdx.x % (WIDTH / PART) * PART;
    number *k = (number *)shared, *v = k + rows * PITCH, *queries = v + rows * PITCH;
    load_tile<U, WIDTH>(a, k, a.qkv, at.qkv + a.c, a.step, first, rows);
    load_tile<U, WIDTH>(a, v, a.qkv, at.qkv + 2 * a.c, a.step, first, rows);
    load_tile<U, WIDTH>(a, queries, a.qkv, at.qkv, a.step, 0, QUERIES);
    load_tile<U, WIDTH>(a, queries + TILE, a.dy, at.y, a.c, 0, QUERIES);
    copies_commit();
    float dk[1][PART / 8][4], dv[1][PART / 8][4];
    clear(dk);
    clear(dv);
    for (uint32_t j = 0, stage = 0; j < a.t; j += QUERIES, stage ^= 1) {
        number *q = queries + stage * 2 * TILE, *next = queries + (stage ^ 1) * 2 * TILE;
        copies_wait<0>();
        __syncthreads(); /* this tile is there, and all are done with the one before */
        if (j + QUERIES < a.t) {
            load_tile<U, WIDTH>(a, next, a.qkv, at.qkv, a.step, j + QUERIES, QUERIES);
            load_tile<U, WIDTH>(a, next + TILE, a.dy, at.y, a.c, j + QUERIES, QUERIES);
            copies_commit();
        }
        float s[1][QUERIES / 8][4], dp[1][QUERIES / 8][4];
        rows_by_rows<U, WIDTH>(s, k + mine * PITCH, q);
        rows_by_rows<U, WIDTH>(dp, v + mine * PITCH, q + TILE);
        weigh(a, a.notes + at.notes, j, s, dp);
        add_weighted<U, PITCH>(dv, s, q + TILE + channel);
        add_weighted<U, PITCH>(dk, dp, q + channel);
    }
    const size_t to = at.qkv + a.c;
    store_rows<U, PITCH>(a, dk, k + mine * PITCH, to, a.step, first + mine, channel);
    store_rows<U, PITCH>(a, dv, v + mine * PITCH, to + a.c, a.step, first + mine, channel);
}

#define VARIANT_OF(UNITS, WIDTH, QUERIES, WARPS)                    \
    {                                                               \
        run_keys<UNITS, WIDTH, QUERIES, WARPS>, WIDTH, 16, WARPS,   \
            (WIDTH) < 128 ? 1 : (WIDTH) / 128, QUERIES, 1,          \
            32 * pitch_of<WIDTH>() * sizeof(UNITS::number),         \
            2 * (QUERIES)*pitch_of<WIDTH>() * sizeof(UNITS::number) \
    }
/* By measurement, and what fits shared memory: floats, 256 wide, have smaller tiles. */
#define VARIANT(UNITS, WIDTH)                                                     \
    VARIANT_OF(UNITS, WIDTH, (sizeof(UNITS::number) * (WIDTH) == 1024 ? 16 : 32), \
               ((WIDTH) < 256                ? 4                                  \
                : sizeof(UNITS::number) == 2 ? 8                                  \
                                             : 2))
const attention_table n2_attention_keys = ATTENTION_TABLE(VARIANT);
