/* A tower: layers that a block takes its rows through without giving them back in between.
 *
 * A chain of products over the same rows (n2_noted_chain), none wider than 128, is a network.
 * Here a block has 128 of its rows, in registers: what a layer makes is what the next one
 * multiplies. Weights come through shared memory, as images that tensor cores read. What
 * others read is stored on the way: for a later backward pass the LeakyReLU of each layer, on
 * the way back the gradient of each layer's output. Weights' gradients are products of the two
 * (gradient.h).
 *
 * Factors have the 11 significant bits of tf32, but in 16 bits, as halves: tensor cores are twice
 * as fast with them, and memory has half as much to carry. What halves lack is range, so numbers
 * come with a power of two, chosen for 16 rows at a time or for a matrix of weights.
 *
 * For GPUs that have the instructions (compute capability 9.0) and tf32 only; others run the
 * same jobs one by one (jobs_matmul.h). */
#ifndef N2_CUDA_TOWER_H
#define N2_CUDA_TOWER_H

#include "gpu.h"
#include "job.h"

enum {
    TOWER_ROWS = 128,  /* of a block: 64 for each four of its warps */
    SMALL_ROWS = 64,   /* of a block of a small tower: half the work, twice the blocks */
    SMALL_MOST = 8192, /* rows of a small tower */
    TOWER_WIDTH = 128,
    TOWER_THREADS = 256,
    TOWER_NARROW = 4, /* columns, or inner numbers, that need no tensor cores */
    ROW_FLOATS = TOWER_WIDTH + 8, /* of rows in shared memory that are read by pairs */
    MOST_LAYERS = 28
};

/* Matrices as tensor cores read them: 64 columns to a panel, 128 bytes a row and panel, whose units
 * of 16 bytes are exchanged so that eight rows lie in all banks. The half (row, column) of a
 * matrix with `rows` rows: */
__host__ __device__ inline unsigned image_at(unsigned rows, unsigned row, unsigned column) {
    return column / 64 * (rows * 64) + row * 64 + (column % 64 / 8 ^ row % 8) * 8 + column % 8;
}

/* The power of two that brings a number as large as `bits` says into [1, 256): its exponent is a
 * multiple of 8, so that most agree. What is 0 or not finite stays as it is. */
__host__ __device__ inline uint32_t power_bits(uint32_t bits) {
    const int exponent = (int)(bits >> 23 & 255) - 127;
    const bool stays = (bits & 0x7fffffffu) == 0 || exponent == 128 || exponent < -110;
    return (uint32_t)(stays ? 127 : 127 - (exponent >> 3) * 8) << 23;
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

/* An image of weights [n x k], 128 x 128 with zeros around them; behind them the layer's bias and 1 /
 * the power of two by which products with the image are too large. */
enum {
    IMAGE_BYTES = TOWER_WIDTH * TOWER_WIDTH * 2,
    IMAGE_FLOATS = IMAGE_BYTES / 4,
    IMAGE_ALL_FLOATS = IMAGE_FLOATS + TOWER_WIDTH + 4
};

/* Sheets: rows that only towers and gradients read, 64 to a sheet, in the place of the matrix that
 * they are. Behind all sheets come their gates, which numbers are not negative, two words a thread
 * of those that made them; behind these their powers of two, one for 16 rows. */
enum {
    SHEET_ROWS = 64,
    SHEET_HALVES = SHEET_ROWS * TOWER_WIDTH,
    SHEET_BYTES = SHEET_HALVES * 2,
    GATE_WORDS = 256,
    SHEET_POWERS = 4,
    SHEET_ALL_FLOATS = SHEET_BYTES / 4 + GATE_WORDS + SHEET_POWERS
};
__host__ __device__ inline int64_t sheets_of(int64_t rows) {
    return (rows + SHEET_ROWS - 1) / SHEET_ROWS;
}
__host__ __device__ inline uint32_t *gates_of(const void *sheets, int64_t rows) {
    return (uint32_t *)((char *)sheets + sheets_of(rows) * SHEET_BYTES);
}
__host__ __device__ inline float *powers_of(const void *sheets, int64_t rows) {
    return (float *)(gates_of(sheets, rows) + sheets_of(rows) * GATE_WORDS);
}
/* Whether there is room for them where the rows themselves would be. */
inline bool sheets_fit(int64_t rows) {
    return sheets_of(rows) * SHEET_ALL_FLOATS <= rows * TOWER_WIDTH;
}

typedef enum tower_source { FROM_MEMORY, FROM_OUT, FROM_MORE } tower_source;
typedef enum layer_kind {
    LAYER_PRODUCT, /* tensor cores */
    LAYER_OUTER,   /* k <= TOWER_NARROW */
    LAYER_NARROW   /* n <= TOWER_NARROW; the rows that the block has stay as they are */
} layer_kind;

typedef struct tower_layer {
    const float *a; /* FROM_MEMORY; else what the layer before made, or its LeakyReLU */
    const float *b; /* an image (LAYER_PRODUCT), or as it is */
    const float *bias, *gate, *addend;
    float *out, *more;              /* NULL: nobody reads it */
    void *out_sheets, *more_sheets; /* the same as sheets */
    uint32_t *more_gates;           /* which numbers of `more` are not negative */
    const uint32_t *gates;          /* instead of `gate` */
    int32_t k, n;
    float slope, slope_a, slope_more;
    uint8_t kind, source;
    uint8_t adds_last; /* the layer before is the addend */
    uint8_t plain;      /* adds to the rows of the layer before, and makes factors of its output */
    uint8_t plain_more; /* or of its LeakyReLU */
    uint8_t wide;      /* n is 128, and pairs of numbers lie at multiples of 8 bytes */
} tower_layer;

typedef struct tower {
    int32_t first_block, n_blocks, n_layers;
    int32_t block_rows; /* TOWER_ROWS or SMALL_ROWS */
    int64_t rows;
    tower_layer layer[MOST_LAYERS];
} tower;

/* Lets blocks have the memory they need. Not there: the build has no code for this GPU that knows
 * the instructions (an architecture 90 instead of 90a). */
cudaError_t n2_towers_prepare(bool *there);
/* Towers of one launch have blocks of the same size. */
void n2_towers_launch(const tower *towers, int n, uint32_t blocks, int block_rows,
                      cudaStream_t stream);

#endif
