/* What the kernels of attention are made of, in device code: tiles of rows in shared memory, and
 * products of tiles on tensor cores, 16 x 16 numbers at a time.
 *
 * A *left* factor and a *right* one are 16 x 16 numbers as lanes of a warp hold them. Sums [16 x 8]
 * are spread as mma_tf32 says (gpu.h): with g = lane / 4 and t = lane % 4, numbers 0 and 1 are row
 * g, 2 and 3 row g + 8, of columns 2t and 2t + 1. */
#ifndef N2_CUDA_ATTENTION_TILES_H
#define N2_CUDA_ATTENTION_TILES_H

#include "attention.h"
#include "eight.h"

/* whole: rows of a head are runs of 16 bytes. */
typedef struct attention_operand {
    char *at;
    uint8_t type, whole; /* n2_dtype */
} attention_operand;

/* What a launch gives its threads. */
typedef struct attention_task {
    attention_operand qkv, dy, out;
    float2 *notes; /* of every query: logarithm of its sum, in base 2, and mean of dp */
    uint32_t t, heads, d, c, step;
    uint32_t blocks;   /* of a head */
    float scale, base; /* 1 / sqrt(d), and that times log2(e) */
} attention_task;

/* ---- numbers and instructions -------------------------------------------- */

/* In 16 bits. */
template <n2_dtype TYPE> struct narrow_units {
    typedef uint16_t number;
    enum { STORED = TYPE };
    struct factor {
        uint32_t r[4];
    };
    /* Rows of the tile are rows of the left factor; */
    __device__ static factor left(const number *tile, int pitch) {
        factor f;
        const int lane = threadIdx.x % 32;
        load_matrices(f.r, tile + lane % 16 * pitch + lane / 16 * 8);
        return f;
    }
    /* columns of the right one; */
    __device__ static factor right(const number *tile, int pitch) {
        factor f;
        const int lane = threadIdx.x % 32;
        load_matrices(f.r, tile + (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 8);
        return f;
    }
    /* or rows of it. */
    __device__ static factor right_by_rows(const number *tile, int pitch) {
        factor f;
        const int lane = threadIdx.x % 32;
        load_matrices_turned(f.r, tile + lane % 16 * pitch + lane / 16 * 8);
        return f;
    }
    /* Sums as a left factor. */
    __device__ static factor left_of(const float s[2][4]) {
        return factor{{pack_narrow(TYPE, s[0][0], s[0][1]), pack_narrow(TYPE, s[0][2], s[0][3]),
                       pack_narrow(TYPE, s[1][0], s[1][1]), pack_narrow(TYPE, s[1][2], s[1][3])}};
    }
    __device__ static void multiply(float s[2][4], const factor &a, const factor &b) {
        if (TYPE == N2_F16) {
            mma_fp16(s[0], a.r, b.r);
            mma_fp16(s[1], a.r, b.r + 2);
        } else {
            mma_bf16(s[0], a.r, b.r);
            mma_bf16(s[1], a.r, b.r + 2);
        }
    }
    __device__ static void put(number *to, float x, float y) {
        *(uint32_t *)to = pack_narrow(TYPE, x, y);
    }
};

/* Floats: two steps of eight along the inner axis. Number 2t and 2t + 1 of eight take the places of
 * t and t + 4, in both factors: so sums are a left factor as they are, and loads come in pairs. */
template <bool S> struct float_units {
    typedef float number;
    enum { STORED = N2_NUMBER };
    struct factor {
        float r[8];
    };
    __device__ static factor left(const number *tile, int pitch) {
        const int lane = threadIdx.x % 32;
        const number *at = tile + lane / 4 * pitch + lane % 4 * 2;
        factor f;
#pragma unroll
        for (int s = 0; s < 2; s++) {
            const float2 x = *(const float2 *)(at + 8 * s);
            const float2 y = *(const float2 *)(at + 8 * pitch + 8 * s);
            f.r[4 * s] = x.x, f.r[4 * s + 2] = x.y;
            f.r[4 * s + 1] = y.x, f.r[4 * s + 3] = y.y;
        }
        return f;
    }
    /* r[4 i + 2 s]: of columns 8 i and so on, step s. */
    __device__ static factor right(const number *tile, int pitch) {
        const int lane = threadIdx.x % 32;
        const number *at = tile + lane / 4 * pitch + lane % 4 * 2;
        factor f;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float2 x = *(const float2 *)(at + i / 2 * 8 * pitch + i % 2 * 8);
            f.r[2 * i] = x.x, f.r[2 * i + 1] = x.y;
        }
        return f;
    }
    __device__ static factor right_by_rows(const number *tile, int pitch) {
        const int lane = threadIdx.x % 32;
        const number *at = tile + lane % 4 * 2 * pitch + lane / 4;
        factor f;
#pragma unroll
        for (int i = 0; i < 8; i++) f.r[i] = at[(i / 2 % 2 * 8 + i % 2) * pitch + i / 4 * 8];
        return f;
    }
    __device__ static factor left_of(const float s[2][4]) {
        return factor{{s[0][0], s[0][2], s[0][1], s[0][3], s[1][0], s[1][2], s[1][1], s[1][3]}};
    }
    __device__ static void round(const float *x, int n, uint32_t *high, uint32_t *low) {
#pragma unroll
        for (int k = 0; k < n; k++) {
            high[k] = to_tf32(x[k]);
            if (S) low[k] = to_tf32(x[k] - __uint_as_float(high[k]));
        }
    }
    __device__ static void multiply(float s[2][4], const factor &a, const factor &b) {
        uint32_t a_high[8], a_low[8], b_high[8], b_low[8];
        round(a.r, 8, a_high, a_low);
        round(b.r, 8, b_high, b_low);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t *high = a_high + i % 2 * 4, *low = a_low + i % 2 * 4;
            if (S) {
                mma_tf32(s[i / 2], low, b_high + 2 * i);
                mma_tf32(s[i / 2], high, b_low + 2 * i);
            }
            mma_tf32(s[i / 2], high, b_high + 2 * i);
        }
    }
    __device__ static void put(number *to, float x, float y) { *(float2 *)to = float2{x, y}; }
};

/* ---- tiles ---------------------------------------------------------------- */

/* A tile's rows have WIDTH numbers, zeros beyond the d of a head; eight more keep rows off one
 * another's banks. */
template <int WIDTH> __host__ __device__ constexpr int pitch_of() { return WIDTH + 8; }

/* Rows from `first` on, of `step` numbers in memory, of which number 0 is number `head` of the
 * operand; what is beyond t or d becomes zero. */
template <typename U, int WIDTH>
__device__ inline void load_tile(const attention_task &a, typename U::number *to,
                                 const attention_operand &from, size_t head, uint32_t step,
                                 uint32_t first, uint32_t rows) {
    typedef typename U::number number;
    enum { EACH = 16 / sizeof(number), RUNS = WIDTH / EACH };
    const bool whole = from.whole && from.type == U::STORED;
    for (uint32_t i = threadIdx.x; i < rows * RUNS; i += blockDim.x) {
        const uint32_t r = i / RUNS, e = i % RUNS * EACH, row = first + r;
        const bool inside = row < a.t && e < a.d;
        const size_t at = inside ? head + (size_t)row * step + e : head;
        number *mine = to + r * pitch_of<WIDTH>() + e;
        if (whole) {
            copy_16((float *)mine, (const float *)((const number *)from.at + at), inside ? 16 : 0);
            continue;
        }
        for (uint32_t k = 0; k < EACH; k++) {
            const bool there = inside && e + k < a.d;
            const float x = there ? load_one((n2_dtype)from.type, from.at, at + k) : 0.0f;
            store_one((n2_dtype)U::STORED, mine, k, x);
        }
    }
}

/* A warp's rows of sums, W of which lie on end in the tile that they go by way of, go to memory,
 * from channel `channel` of the head on. */
template <typename U, int PITCH, int ROWS, int W>
__device__ inline void store_rows(const attention_task &a, const float (&sums)[ROWS][W][4],
                                  typename U::number *tile, size_t head, uint32_t step,
                                  uint32_t first, uint32_t channel) {
    typedef typename U::number number;
    enum { EACH = 16 / sizeof(number), RUNS = 8 * W / EACH };
    const uint32_t lane = threadIdx.x % 32;
    const bool whole = a.out.whole && a.out.type == U::STORED;
    __syncwarp(); /* all have read what was in the tile */
#pragma unroll
    for (int m = 0; m < ROWS; m++)
#pragma unroll
        for (int n = 0; n < W; n++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                U::put(tile + (m * 16 + h * 8 + lane / 4) * PITCH + n * 8 + lane % 4 * 2,
                       sums[m][n][2 * h], sums[m][n][2 * h + 1]);
    __syncwarp();
    for (uint32_t i = lane; i < ROWS * 16 * RUNS; i += 32) {
        const uint32_t r = i / RUNS, e = i % RUNS * EACH, row = first + r;
        const number *mine = tile + r * PITCH + e;
        const size_t at = head + (size_t)row * step + channel + e;
        if (row >= a.t || channel + e >= a.d) continue;
        if (whole) {
            *(uint4 *)((number *)a.out.at + at) = *(const uint4 *)mine;
            continue;
        }
        for (uint32_t k = 0; k < EACH && channel + e + k < a.d; k++)
            store_one((n2_dtype)a.out.type, a.out.at, at + k,
                      load_one((n2_dtype)U::STORED, mine, k));
    }
}

/* ---- products ------------------------------------------------------------- */

template <int M, int N> __device__ inline void clear(float (&s)[M][N][4]) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int k = 0; k < 4; k++) s[m][n][k] = 0;
}

/* s = the warp's 16 M rows of the left tile times 8 N rows of the right one: products of rows. */
template <typename U, int WIDTH, int M, int N>
__device__ inline void rows_by_rows(float (&s)[M][N][4], const typename U::number *left,
                                    const typename U::number *right) {
    enum { PITCH = pitch_of<WIDTH>() };
    clear(s);
#pragma unroll
    for (int k = 0; k < WIDTH; k += 16) {
        typename U::factor a[M];
#pragma unroll
        for (int m = 0; m < M; m++) a[m] = U::left(left + m * 16 * PITCH + k, PITCH);
#pragma unroll
        for (int n = 0; n < N / 2; n++) {
            const typename U::factor b = U::right(right + n * 16 * PITCH + k, PITCH);
#pragma unroll
            for (int m = 0; m < M; m++) U::multiply(&s[m][2 * n], a[m], b);
        }
    }
}

/* sums += p [16 M x 8 N] times 8 N rows of the tile, of which W columns from `tile` on. */
template <typename U, int PITCH, int M, int N, int W>
__device__ inline void add_weighted(float (&sums)[M][W][4], const float (&p)[M][N][4],
                                    const typename U::number *tile) {
#pragma unroll
    for (int n = 0; n < N / 2; n++) {
        typename U::factor a[M];
#pragma unroll
        for (int m = 0; m < M; m++) a[m] = U::left_of(&p[m][2 * n]);
#pragma unroll
        for (int w = 0; w < W / 2; w++) {
            const typename U::factor b = U::right_by_rows(tile + n * 16 * PITCH + w * 16, PITCH);
#pragma unroll
            for (int m = 0; m < M; m++) U::multiply(&sums[m][2 * w], a[m], b);
        }
    }
}

/* ---- a head ---------------------------------------------------------------- */

/* Where the head of a block is, in numbers; and the block's place in it. */
struct attention_place {
    size_t qkv, y, notes;
    uint32_t block;
    __device__ attention_place(const attention_task &a, uint32_t block_of_all) {
        const uint32_t all = block_of_all / a.blocks, n = all / a.heads, h = all - n * a.heads;
        block = block_of_all - all * a.blocks;
        qkv = (size_t)n * a.t * a.step + h * a.d;
        y = (size_t)n * a.t * a.c + h * a.d;
        notes = (size_t)all * a.t;
    }
};

/* Over the four lanes that have a row. */
__device__ inline float row_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float row_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* Scores of keys that there are not. */
template <int M, int N>
__device__ inline void mask_keys(float (&s)[M][N][4], uint32_t first, uint32_t t) {
    if (first + 8 * N <= t) return;
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (first + n * 8 + threadIdx.x % 4 * 2 + k % 2 >= t)
#pragma unroll
                for (int m = 0; m < M; m++) s[m][n][k] = -INFINITY;
}

/* The largest score so far of two rows of each sixteen, and sums of exponentials, each lane's. */
template <int M> struct attention_rows {
    float top[M][2], sum[M][2];
    __device__ attention_rows() {
#pragma unroll
        for (int i = 0; i < 2 * M; i++) top[i / 2][i % 2] = -INFINITY, sum[i / 2][i % 2] = 0;
    }
    /* Scores become exponentials; returns by what earlier ones are to be multiplied. */
    template <int N>
    __device__ inline void soften(float (&s)[M][N][4], float base, float (&factor)[M][2]) {
#pragma unroll
        for (int i = 0; i < 2 * M; i++) {
            const int m = i / 2, h = i % 2;
            float most = top[m][h];
#pragma unroll
            for (int n = 0; n < N; n++)
                most = fmaxf(most, fmaxf(s[m][n][2 * h], s[m][n][2 * h + 1]));
            most = row_max(most);
            factor[m][h] = quick_exp2((top[m][h] - most) * base);
            top[m][h] = most;
            float added = 0;
#pragma unroll
            for (int n = 0; n < N; n++)
#pragma unroll
                for (int k = 2 * h; k < 2 * h + 2; k++) {
                    s[m][n][k] = quick_exp2(s[m][n][k] * base - most * base);
                    added += s[m][n][k];
                }
            sum[m][h] = sum[m][h] * factor[m][h] + added;
        }
    }
};

/* Rows of sums times a number each. */
template <int M, int W>
__device__ inline void scale_rows(float (&sums)[M][W][4], const float (&factor)[M][2]) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int w = 0; w < W; w++)
#pragma unroll
            for (int k = 0; k < 4; k++) sums[m][w][k] *= factor[m][k / 2];
}

/* ---- launches -------------------------------------------------------------- */

typedef void attention_kernel(attention_task);

/* A kernel for heads of up to so many channels, and what a launch of it is: a warp has `rows` rows,
 * a block up to `warps`, with so many bytes of shared memory for each, and beside for two tiles in
 * turn, of `tile` rows. Who walks but once needs the second only if there are more rows. */
typedef struct attention_variant {
    attention_kernel *run;
    uint32_t width, rows, warps, parts; /* parts: blocks that share rows, of other channels */
    uint32_t tile, walks;
    size_t warp_bytes, tile_bytes;
} attention_variant;

enum { ATTENTION_WIDTHS = 3, ATTENTION_UNITS = 4 };
typedef const attention_variant attention_table[ATTENTION_UNITS][ATTENTION_WIDTHS];

/* By units, and by width. */
extern const attention_table n2_attention_forward, n2_attention_queries, n2_attention_keys;

#define ATTENTION_TABLE(VARIANT)                                                    \
    {                                                                               \
        {VARIANT(narrow_units<N2_BF16>, 64), VARIANT(narrow_units<N2_BF16>, 128),   \
         VARIANT(narrow_units<N2_BF16>, 256)},                                      \
            {VARIANT(narrow_units<N2_F16>, 64), VARIANT(narrow_units<N2_F16>, 128), \
             VARIANT(narrow_units<N2_F16>, 256)},                                   \
            {VARIANT(float_units<false>, 64), VARIANT(float_units<false>, 128),     \
             VARIANT(float_units<false>, 256)},                                     \
        {                                                                           \
            VARIANT(float_units<true>, 64), VARIANT(float_units<true>, 128),        \
                VARIANT(float_units<true>, 256)                                     \
        }                                                                           \
    }

#endif
