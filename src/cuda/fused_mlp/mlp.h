/* A fused MLP: layers that a block takes its rows through without giving them back in between.
 *
 * A chain of products over the same rows (n2_noted_chain), none wider than 128, is a network.
 * Here a block has 128 of its rows, in registers: what a layer makes is what the next one
 * multiplies. Weights come through shared memory, packed as tensor cores read them. What
 * others read is stored on the way: for a later backward pass the LeakyReLU of each layer, on
 * the way back the gradient of each layer's output. Weights' gradients are products of the two
 * (gradient.h).
 *
 * Factors have the 11 significant bits of tf32, but in 16 bits, as fp16: tensor cores are twice
 * as fast with them, and memory has half as much to carry. What fp16 lacks is range, so numbers
 * come with a power of two, chosen for 16 rows at a time or for a matrix of weights.
 *
 * In strict float32 a factor is two fp16 numbers, the second what the first leaves over: 22 bits,
 * and three products for one.
 *
 * For GPUs that have the instructions (compute capability 9.0); others run the same jobs one by one
 * (jobs_matmul.h). */
#ifndef N2_CUDA_MLP_H
#define N2_CUDA_MLP_H

#include "fused_mlp.h"

#include "cuda/runtime/gpu.h"

enum {
    MLP_ROWS = 128,    /* of a block: 64 for each four of its warps */
    SMALL_ROWS = 64,   /* of a block of a small fused MLP: half the work, twice the blocks */
    SMALL_MOST = 8192, /* rows of a small fused MLP */
    FEW_ROWS = 16,     /* of a block of a fused MLP of few rows (mlp_few_rows.cu) */
    MLP_WIDTH = 128,
    MLP_THREADS = 2 * MLP_ROWS, /* that have rows; a warp more fetches weights */
    MLP_NARROW = 4,             /* columns, or inner numbers, that need no tensor cores */
    ROW_FLOATS = MLP_WIDTH + 8, /* of rows in shared memory that are read by pairs */
    MOST_LAYERS = 28,
    MOST_SUMMED = 8 /* rows that LAYER_ROWS adds up */
};

/* Matrices as tensor cores read them: 64 columns to a panel, 128 bytes a row and panel, whose units
 * of 16 bytes are exchanged so that eight rows lie in all banks. The fp16 number (row, column) of a
 * matrix with `rows` rows: */
__host__ __device__ inline unsigned packed_at(unsigned rows, unsigned row, unsigned column) {
    return column / 64 * (rows * 64) + row * 64 + (column % 64 / 8 ^ row % 8) * 8 + column % 8;
}

/* The power of two that brings a number as large as `bits` says into [1, 4096): its exponent is a
 * multiple of 12, so that most agree. If strict into [4096, 16384), where what is left over has all
 * its digits. What is 0 or not finite stays as it is. */
__host__ __device__ inline uint32_t power_bits(uint32_t bits, bool strict) {
    const int exponent = (int)(bits >> 23 & 255) - 127, step = strict ? 2 : 12;
    const bool stays = (bits & 0x7fffffffu) == 0 || exponent == 128 || exponent < -108;
    const int brings = (strict ? 12 : 0) + 120 - (exponent + 120) / step * step;
    return (uint32_t)(127 + (stays ? 0 : brings > 120 ? 120 : brings)) << 23;
}
/* The same for weights that updates change while they keep the power, for a few runs: there is room
 * for them to grow to 16 times what they are at least, and for small ones to 4 at least. */
__host__ __device__ inline uint32_t growing_bits(uint32_t bits, bool strict) {
    const uint32_t least = strict ? 0x3c800000u : 0x39800000u; /* 2^-6, 2^-12 */
    return power_bits(bits > least ? bits : least, strict) - (strict ? 6u << 23 : 0);
}
/* A power of that kind times another; the first alone where that would leave the range. */
__device__ inline float times_power(float power, float other) {
    const float product = power * other;
    return product >= 0x1p-100f && product <= 0x1p100f ? product : power;
}
/* 1 / power. */
__device__ inline float inverse_power(float power) {
    return __uint_as_float(0x7f000000u - __float_as_uint(power));
}

/* Packed weights [n x k], 128 x 128 with zeros around them; if strict, followed by what is left
 * over; behind them the layer's bias and 1 / the power of two by which products with them are too
 * large. */
enum {
    PACKED_BYTES = MLP_WIDTH * MLP_WIDTH * 2,
    PACKED_FLOATS = PACKED_BYTES / 4,
    PACKED_BEHIND = MLP_WIDTH + 4
};
__host__ __device__ constexpr int packed_floats(bool strict) {
    return (strict ? 2 : 1) * PACKED_FLOATS + PACKED_BEHIND;
}

/* The stash: activations and gradients that only fused MLPs and gradients read, in tiles of 64
 * rows; if there is room it takes the memory of the matrix that it saves. If strict, each tile is
 * followed by what is left over. A tile is laid out as packed weights are, but for the order of its
 * columns. Behind all tiles come their gates, which numbers are negative, two words a thread of
 * those that made them; behind these their powers of two, one for 16 rows. */
enum {
    STASH_TILE_ROWS = 64,
    STASH_TILE_BYTES = STASH_TILE_ROWS * MLP_WIDTH * 2,
    GATE_WORDS = 256,
    STASH_POWERS = 4
};
/* Where a column is in a stash tile, and which one is there. What a thread has after a product, two
 * columns of each eight, lies side by side for 32 columns. */
__host__ __device__ constexpr unsigned stash_column(unsigned c) {
    return c / 32 * 32 + c % 8 / 2 * 8 + c % 32 / 8 * 2 + c % 2;
}
__host__ __device__ constexpr int stash_tile_bytes(bool strict) {
    return strict ? 2 * STASH_TILE_BYTES : STASH_TILE_BYTES;
}
__host__ __device__ inline int64_t stash_tiles(int64_t rows) {
    return (rows + STASH_TILE_ROWS - 1) / STASH_TILE_ROWS;
}
__host__ __device__ inline uint32_t *gates_of(const void *stash, int64_t rows, bool strict) {
    return (uint32_t *)((char *)stash + stash_tiles(rows) * stash_tile_bytes(strict));
}
__host__ __device__ inline float *powers_of(const void *stash, int64_t rows, bool strict) {
    return (float *)(gates_of(stash, rows, strict) + stash_tiles(rows) * GATE_WORDS);
}
/* Of all of them, with gates and powers. */
inline int64_t stash_floats(int64_t rows, bool strict) {
    return stash_tiles(rows) * (stash_tile_bytes(strict) / 4 + GATE_WORDS + STASH_POWERS);
}

typedef enum layer_source {
    FROM_MEMORY,
    FROM_OUT,
    FROM_MORE,
    FROM_SAME /* what the layer before multiplied */
} layer_source;
typedef enum layer_kind {
    LAYER_PRODUCT, /* tensor cores */
    LAYER_OUTER,   /* k <= MLP_NARROW */
    LAYER_NARROW,  /* n <= MLP_NARROW; the rows that the block has stay as they are */
    LAYER_ROWS     /* no product: the first of a fused MLP of few rows, which it makes of memory */
} layer_kind;

/* What a layer of a fused MLP of few rows does, as bits. */
enum {
    MULTIPLIES = 1 << 0,   /* LAYER_PRODUCT */
    IS_NARROW = 1 << 1,    /* LAYER_NARROW */
    TAKES_MEMORY = 1 << 2, /* multiplies rows of memory, asked for ahead, */
    TAKES_SAME = 1 << 3,   /* what is there already, */
    TAKES_LEAKY = 1 << 4,  /* the LeakyReLU of the layer before; none of these: the layer before */
    ADDS_LAST = 1 << 5,    /* adds the layer before, */
    ADDS_BIAS = 1 << 6,
    ADDS_ROWS = 1 << 7,     /* rows of memory or of a table */
    HAS_GATES = 1 << 8,     /* multiplies with a slope, where bits say so, */
    HAS_GATE_ROWS = 1 << 9, /* or where rows of memory are not positive */
    STORES = 1 << 10,       /* as it is, */
    STORES_LEAKY = 1 << 11, /* or its LeakyReLU */
    RIDES = 1 << 12,        /* stashes what the next layer multiplies, */
    RIDES_LEAKY = 1 << 13,  /* its LeakyReLU, */
    STRAYS = 1 << 14,       /* or something else */
    STRAYS_LEAKY = 1 << 15,
    READS_OWN = 1 << 16,  /* reads memory that this fused MLP writes */
    MAKES_ROWS = 1 << 17, /* LAYER_ROWS */
    /* a residual network's layers: */
    GOES_FORWARD = MULTIPLIES | TAKES_LEAKY | ADDS_LAST | ADDS_BIAS | RIDES_LEAKY,
    GOES_BACK = MULTIPLIES | ADDS_LAST | HAS_GATES | RIDES
};

typedef struct mlp_layer {
    const float *a; /* FROM_MEMORY; else what the layer before made, or its LeakyReLU */
    const float *b; /* packed weights (LAYER_PRODUCT), or as it is; of LAYER_ROWS: row i is row b[i]
                     * of a table a with k rows, plus that of the addend; NULL: `sums` rows of it */
    const float *bias, *gate, *addend;
    const float *index;           /* NULL, or row i of the addend is row index[i] of a table */
    float *out, *more;            /* NULL: nobody reads it */
    void *out_stash, *more_stash; /* the same for the stash */
    void *in_stash;               /* FROM_MEMORY: so are the rows that it reads */
    uint32_t *more_gates;         /* which numbers of `more` are negative */
    const uint32_t *gates;        /* instead of `gate` */
    int32_t k, n, table_rows;
    float slope, slope_a, slope_more;
    uint8_t kind, source;
    uint8_t adds_last; /* the layer before is the addend */
    uint8_t plain; /* multiplies the rows of the layer before, and makes factors of its output */
    uint8_t plain_more; /* or of its LeakyReLU */
    uint8_t wide;       /* n is 128, and pairs of numbers lie at multiples of 8 bytes */
    uint8_t run;        /* so many layers from this one on are plain and of one form */
    uint8_t sums; /* of LAYER_ROWS: row i is the sum of so many of a, from row i * sums on; or 0 */
    /* of a fused MLP of few rows: */
    uint32_t does;
    /* the next layer that takes rows of memory; a gate or addend; MOST_LAYERS: none */
    int16_t next_rows, next_extra;
} mlp_layer;

typedef struct alignas(16) fused_mlp {
    int32_t first_block, n_blocks, n_layers;
    int32_t first_rows, first_extra; /* as next_rows, next_extra */
    int32_t block_rows;              /* MLP_ROWS, SMALL_ROWS or FEW_ROWS */
    int64_t rows, n_packed;
    const float *packed[MOST_LAYERS]; /* of those layers that have one, in their order */
    mlp_layer layer[MOST_LAYERS];
} fused_mlp;

/* Which of them this block is of; first_of(i) where `first` ends. */
template <typename F> __device__ inline int which_of(const block_starts &starts, F first_of) {
    int which = 0;
    for (int next = 1; next < starts.n; which = next++)
        if ((int)blockIdx.x < (next < MOST_STARTS ? starts.first[next] : first_of(next))) break;
    return which;
}

/* Lets blocks have the memory they need. Not there: the build has no code for this GPU that knows
 * the instructions (an architecture 90 instead of 90a). */
cudaError_t n2_fused_mlps_prepare(bool *there);
/* Fused MLPs of one launch have blocks of the same size. early: gpu.h. */
void n2_fused_mlps_launch(const fused_mlp *fused_mlps, const block_starts *starts, uint32_t blocks,
                          int block_rows, bool strict, cudaStream_t stream, bool early);

/* Of a fused MLP of few rows, whose layers are there: what they do. */
void n2_few_rows_make(fused_mlp *t);

#endif
