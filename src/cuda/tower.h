/* A tower: layers that a block takes its rows through without giving them back in between.
 *
 * A chain of products over the same rows (n2_noted_chain), none wider than 128, is a network.
 * Here a block has 128 of its rows, in registers: what a layer makes is what the next one
 * multiplies. Weights come through shared memory, as images that tensor cores read. What
 * others read is stored on the way: for a later backward pass the LeakyReLU of each layer.
 *
 * On the way back a block also has everything that its share of a weight's gradient needs:
 * the gradient of the layer's output, in registers, and the layer's input, which decides the
 * gate. So products a^T b over the same rows are taken along (n2_tower_takes), and sums of
 * columns, the gradients of biases: a block writes a slice each, and the gradients in
 * between are never stored.
 *
 * For GPUs that have the instructions (compute capability 9.0) and tf32 only; others run the
 * same jobs one by one (jobs_matmul.h). */
#ifndef N2_CUDA_TOWER_H
#define N2_CUDA_TOWER_H

#include "gpu.h"
#include "job.h"

enum {
    TOWER_ROWS = 128,  /* of a block, with gradients: 64 for each four of its warps */
    SMALL_ROWS = 64,   /* of a block of a small tower: half the work, twice the blocks */
    SMALL_MOST = 8192, /* rows of a small tower */
    TOWER_WIDTH = 128,
    TOWER_THREADS = 256,
    TOWER_NARROW = 4, /* columns, or inner numbers, that need no tensor cores */
    MOST_LAYERS = 28,
    IMAGE_FLOATS = TOWER_WIDTH * TOWER_WIDTH,
    ROW_FLOATS = TOWER_WIDTH + 8 /* of rows in shared memory that are read by pairs */
};

/* Where (row, k) of a matrix of 128 rows is in its image: 32 k to a piece, 128 bytes a row and
 * piece, whose units of 16 bytes are exchanged so that eight rows lie in all banks. */
__host__ __device__ inline unsigned image_at(unsigned row, unsigned k) {
    return k / 32 * (32 * TOWER_WIDTH) + row * 32 + (k % 32 / 4 ^ row % 8) * 4 + k % 4;
}

/* A thread has neighbours (2t, 2t+1) of its sums, but multiplies t and t+4 of eight: so inner
 * numbers are taken in the order 0 2 4 6 1 3 5 7. */
__host__ __device__ inline int inner_order(int k) {
    const int p = k % 8;
    return k - p + (p < 4 ? 2 * p : 2 * p - 7);
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
    float *out, *more;      /* NULL: nobody reads it */
    const float *input;     /* of the gradient; NULL: none */
    float *gradient, *sums; /* slices: a block writes its own */
    int32_t k, n;
    float slope, slope_a, slope_more;
    uint8_t kind, source;
    uint8_t adds_last;   /* the layer before is the addend */
    uint8_t gates_input; /* the gate is the `input` of the layer before */
    uint8_t wide;        /* n is 128, and pairs of numbers lie at multiples of 8 bytes */
    uint8_t gradient_adds, sums_add;
    /* In the order in which threads have their numbers (own_place), which nobody else knows: */
    uint8_t own_more, own_input, own_gradient;
    uint8_t more_bits, gate_bits; /* nobody wants more than to know which are positive */
} tower_layer;

/* Blocks that write for themselves, or for who knows the order, write what the threads of a group
 * have at the same place next to each other: whole lines, where rows would be pieces of 32
 * bytes. */
enum { GROUP_FLOATS = IMAGE_FLOATS / 2 };
__host__ __device__ inline int own_place(int thread, int i) {
    return thread / 128 * GROUP_FLOATS + i / 4 * 512 + thread % 128 * 4 + i % 4;
}

/* Row and column of a number in that order. */
__host__ __device__ inline int own_row(int place) {
    const int warp = place / GROUP_FLOATS * 4 + place % 512 / 128;
    return warp * 16 + place % 4 / 2 * 8 + place % 128 / 16;
}
__host__ __device__ inline int own_column(int place) {
    return place % GROUP_FLOATS / 512 * 8 + place / 4 % 4 * 2 + place % 2;
}

typedef struct tower {
    int32_t first_block, n_blocks, n_layers;
    int32_t gradients;  /* whether some layer has one */
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
