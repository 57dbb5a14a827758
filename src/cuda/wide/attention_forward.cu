/* Attention: warps have queries, and walk over keys and values tile by tile. */
#include "attention_tiles.h"

/* A warp has 16 ROWS queries, a tile KEYS keys. */
template <typename U, int WIDTH, int ROWS, int KEYS, int WARPS>
__global__ void __launch_bounds__(32 * WARPS)
    run_forward(const __grid_constant__ attention_task a) {
    typedef typename U::number number;
    enum { PITCH = pitch_of<WIDTH>(), TILE = KEYS * PITCH };
    grid_wait();
    grid_next();
    GPU_SHARED(shared);
    const attention_place at(a, blockIdx.x);
    const uint32_t rows = blockDim.x / 32 * 16 * ROWS, first = at.block * rows;
    const uint32_t mine = threadIdx.x / 32 * 16 * ROWS;
    number *q = (number *)shared, *keys = q + rows * PITCH; /* two stages of keys and values */
    load_tile<U, WIDTH>(a, q, a.qkv, at.qkv, a.step, first, rows);
    load_tile<U, WIDTH>(a, keys, a.qkv, at.qkv + a.c, a.step, 0, KEYS);
    load_tile<U, WIDTH>(a, keys + TILE, a.qkv, at.qkv + 2 * a.c, a.step, 0, KEYS);
    copies_commit();
    float y[ROWS][WIDTH / 8][4];
    attention_rows<ROWS> known;
    clear(y);
    for (uint32_t j = 0, stage = 0; j < a.t; j += KEYS, stage ^= 1) {
        number *k = keys + stage * 2 * TILE, *next = keys + (stage ^ 1) * 2 * TILE;
        copies_wait<0>();
        __syncthreads(); /* this tile is there, and all are done with the one before */
        if (j + KEYS < a.t) {
            load_tile<U, WIDTH>(a, next, a.qkv, at.qkv + a.c, a.step, j + KEYS, KEYS);
            load_tile<U, WIDTH>(a, next + TILE, a.qkv, at.qkv + 2 * a.c, a.step, j + KEYS, KEYS);
            copies_commit();
        }
        float s[ROWS][KEYS / 8][4], factor[ROWS][2];
        rows_by_rows<U, WIDTH>(s, q + mine * PITCH, k);
        mask_keys(s, j, a.t);
        known.soften(s, a.base, factor);
        scale_rows(y, factor);
        add_weighted<U, PITCH>(y, s, k + TILE);
    }
    float factor[ROWS][2];
#pragma unroll
    for (int i = 0; i < 2 * ROWS; i++) factor[i / 2][i % 2] = 1 / row_sum(known.sum[i / 2][i % 2]);
    scale_rows(y, factor);
    store_rows<U, PITCH>(a, y, q + mine * PITCH, at.y, a.c, first + mine, 0);
}

#define VARIANT_OF(UNITS, WIDTH, ROWS, KEYS, WARPS)                                          \
    {                                                                                        \
        run_forward<UNITS, WIDTH, ROWS, KEYS, WARPS>, WIDTH, 16 * (ROWS), WARPS, 1, KEYS, 1, \
            16 * (ROWS)*pitch_of<WIDTH>() * sizeof(UNITS::number),                           \
            2 * (KEYS)*pitch_of<WIDTH>() * sizeof(UNITS::number)                             \
    }
/* By measurement, and what fits shared memory: floats, 256 wide, have smaller tiles. */
#define VARIANT(UNITS, WIDTH)                                                       \
    VARIANT_OF(UNITS, WIDTH, (sizeof(UNITS::number) == 2 && (WIDTH) < 256 ? 2 : 1), \
               (sizeof(UNITS::number) == 2 ? 64 : 32),                              \
               (sizeof(UNITS::number) == 2 && (WIDTH) == 256 ? 8 : 4))
const attention_table n2_attention_forward = ATTENTION_TABLE(VARIANT);
