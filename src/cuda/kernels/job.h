/* A job: one op on one tile, as the GPU reads it. Kernels of the backend (record.cu) turn
 * calls of the engine into jobs; jobs that do not touch each other's memory go into one
 * launch (program.cu), where every job has its own range of blocks (jobs.cu).
 *
 * Everything about a job that blocks need is in here, so one kernel runs them all, but for
 * products (jobs.cu). */
#ifndef N2_CUDA_JOB_H
#define N2_CUDA_JOB_H

#ifdef __cplusplus
extern "C" {
#endif
#include "engine/kernel.h"
#ifdef __cplusplus
}
#endif

enum {
    JOB_THREADS = 256,
    JOB_ELEMENTS = 1024, /* of an element-wise job: what a block does in one go */
    JOB_CHUNK = 2048,    /* numbers that a block sums up */
    JOB_PIECE = 128,     /* of a list's numbers: what a warp sums up */
    JOB_SLICE = 128,     /* rows whose columns a block sums up */
    JOB_ROWS = 8,        /* rows of a narrow product, or sums, that a block does: a warp each */
    JOB_DROPS = 1024,    /* rows that a block scatters at most, */
    SCATTER_COLUMNS = 8, /* and columns of them */
    PACK_ROWS = 16,      /* rows of a matrix that a block packs, or updates */
    SMALL_M = 4,         /* rows and columns that a block of JOB_SMALL makes */
    SMALL_N = 32,
    SMALL_K = 1024 /* and the longest slice of the inner axis */
};

typedef enum job_kind {
    JOB_MATMUL,       /* tensor cores; tiles of the output, slices of the inner axis */
    JOB_NARROW,       /* few columns: a warp per row */
    JOB_UNARY,        /* one operand, laid out as the output */
    JOB_BINARY,       /* two, each with steps of its own */
    JOB_COPY,         /* one, with steps of its own: broadcast, transpose */
    JOB_MOVE,         /* a rectangle: concat, slice */
    JOB_PAD,          /* a rectangle, with zeros around it, or a second one beside it */
    JOB_SUM_CHUNKS,   /* consecutive numbers: a block per chunk */
    JOB_SUM_LIST,     /* numbers in k places: one block */
    JOB_SUM_COLUMNS,  /* rows of a matrix: a block per slice of rows and strip of columns */
    JOB_SUM_SLICES,   /* few long rows: a thread per four columns */
    JOB_PACK_WEIGHTS, /* a matrix as tensor cores read it: mlp.h */
    JOB_REDUCE,       /* sum or amax over any axes: a warp per number */
    JOB_REDUCE_FEW,   /* the same of a few numbers each: a thread per number */
    JOB_MEDIAN,       /* one block */
    JOB_RANDOM,       /* normal, uniform, integer */
    JOB_PERMUTATION,  /* one block */
    JOB_ROW_INDEX,
    JOB_GATHER,
    JOB_SCATTER, /* slices of rows, of one or two sources, into partial tables: a warp per row */
    JOB_CAST,    /* between float and 16 bits; m, k: n2_dtype of input and output */
    JOB_ASSIGN,
    JOB_ADAM,      /* update.h */
    JOB_SMALL,     /* a product of few numbers, a transposed: no tensor cores */
    JOB_LIBRARY,   /* a product or a convolution, by a library: library/library.h */
    JOB_WIDE,      /* a kernel with a launch of its own: wide/wide.h */
    JOB_CONV,      /* a convolution, or a gradient of one: a thread per number */
    JOB_ATTENTION, /* attention, or its gradient: a warp per query or key */
    JOB_TURN,      /* a matrix turned over, between float and 16 bits: tiles */
    JOB_NORM,      /* a norm, or a gradient of one: a block per picture and group */
    JOB_END,       /* of a run: looks at watched numbers, counts */
    JOB_FIRST_ROWS /* a layer that makes rows without a product, not a job: mlp.h */
} job_kind;

/* What a block has of the n elements of an element-wise job: the same for all jobs of as many
 * elements, which may form a chain. A few go to many multiprocessors, one element a thread; but
 * what fits one block stays there, for it can follow other jobs of one block. */
__host__ __device__ inline uint32_t job_share(int64_t n) {
    if (n > JOB_ELEMENTS && n < 16 * JOB_ELEMENTS) return JOB_THREADS;
    return n < 512 * JOB_ELEMENTS ? JOB_ELEMENTS : 4 * JOB_ELEMENTS;
}

/* A number to divide by, and the division as a product: job_quotient. */
typedef struct job_divisor {
    uint32_t by, scale, shift;
} job_divisor;

__host__ __device__ inline job_divisor job_divide_by(uint32_t by) {
    uint32_t shift = 0;
    if (by == 0) by = 1; /* of no elements */
    while (((uint64_t)1 << shift) < by) shift++;
    const uint64_t rest = ((uint64_t)1 << shift) - by;
    return job_divisor{by, (uint32_t)((rest << 32) / by + 1), shift};
}

/* i / d.by, exactly, for any i. */
__host__ __device__ inline uint32_t job_quotient(const job_divisor &d, uint32_t i) {
    return (uint32_t)((((uint64_t)i * d.scale >> 32) + i) >> d.shift);
}

/* Axes that are left when neighbours that can be one are: record.cu. */
enum { JOB_AXES = 4 };

/* Nested loops, innermost first; several operands walk along, each with its own steps. */
typedef struct job_loops {
    int rank;
    job_divisor length[JOB_AXES];
    uint32_t step[2][JOB_AXES];
} job_loops;

/* An operand that a thread of a fused segment asks for: element i is at row * step + column *
 * along, with rows of `by` elements. If it is a table's, the row is the one that the table's index
 * says, which is asked for first. */
typedef struct job_ask {
    const float *at;
    uint32_t by, scale, step;
    uint8_t shift, along, slot;
    uint8_t
        gather; /* job number gather - 1 of the fused segment knows index and table; 0: no table */
} job_ask;

/* A fused segment: jobs of a chain, functions of one or two numbers, copies, or rows of a table, of
 * as many elements, that threads do without waiting for one another: each needs only what it made
 * itself, or what was there before. It has one element, or four that lie side by side. Operands are
 * asked for at once, before the first job; they, and what is needed again later, lie in the
 * thread's own slots of shared memory. What a thread needs of a job lies side by side. */
enum { SLOT_LAST = 255 }; /* no slot: what the job before made */
/* Most functions are a product and a sum, so that threads need not choose between them: a * x + b,
 * for the operands x and y, with y instead of a, or of b. */
enum { IS_SUM = 1, TIMES_Y = 2, PLUS_Y = 4 };
typedef struct alignas(16) job_brief {
    float *out; /* NULL: nobody else reads it */
    float a, b; /* of a sum, or f[0] and f[1] */
    int32_t op; /* n2_op_id */
    uint32_t n;
    uint8_t two, vec4; /* operands are two; elements are four */
    uint8_t from[2];   /* slots of the operands, or SLOT_LAST */
    uint8_t keep;      /* slot that the result goes to; SLOT_LAST: none */
    uint8_t asking;    /* of the first: so many jobs of the fused segment have asks, */
    uint8_t looking;   /* and so many of these, before the others, asks for rows of tables */
    uint8_t form;      /* IS_SUM, with how it is one; 0: it is none */
} job_brief;

typedef struct job_product {
    int64_t m, n, k;
    int64_t stride_a, stride_b, stride_out; /* from batch to batch */
    int32_t batches;
    job_divisor tiles_m, tiles_n;
    uint8_t small;           /* tiles have half as many rows and columns */
    int32_t slices, slice_k; /* of k; more than one, of one batch: into partial products */
    uint8_t ta, tb, strict;
    uint8_t rows;      /* blocks have whole rows, which fit shared memory: row_block */
    uint8_t mlp_layer; /* a layer of a fused MLP, not a job: mlp.h */
    int32_t addend_rows;
    uint8_t finds, keeps; /* a is there already; out is (1), or more[0] (2), for the next */
    uint8_t begun;        /* the first pieces of b are on their way already */
    int32_t next_n, next_k;
    const float *next_b; /* the next b, whose first pieces this product asks for; NULL: none */
} job_product;

/* Of JOB_CONV: as n2_conv has them. Kernels' gradients are sums over the lines of all pictures of
 * y, so many at a time, into a table for each slice. */
typedef struct job_conv {
    int32_t h, w, c_in, rows, columns, oh, ow, c_out;
    int32_t stride_y, stride_x, top, left;
    uint32_t lines, slice_lines;
    uint8_t turned; /* the kernel, or its gradient, is [c_out][rows][columns][c_in] */
    uint8_t strict; /* of a library: float32, not tf32 */
    uint8_t type_x, type_k, type_y; /* n2_dtype */
} job_conv;

/* Of JOB_ATTENTION: as n2_attention has them. Gradients of keys and values are a job of their own,
 * after that of queries, which notes what it knows of them in more[0]. */
typedef struct job_attention {
    uint32_t t, heads, d, c, step;
    float scale;
    uint8_t of_keys;
    uint8_t type_x, type_dy, type_out; /* n2_dtype */
} job_attention;

/* Of JOB_WIDE: which kernel, and what it wants to know, in the host's memory: wide/wide.h. */
typedef struct job_wide {
    int32_t kernel; /* wide_id */
    const void *about;
} job_wide;

/* Of JOB_NORM: in has x, shift, gamma and beta, NULL where there is none; gate is dy; f has eps and
 * slope. */
typedef struct job_norm {
    uint32_t positions, c, each, groups; /* each: channels of a group */
    uint32_t act;                        /* n2_act */
    int32_t type_x, type_dy, type_out;   /* n2_dtype */
    uint32_t step[3];                    /* from a picture's shift, gamma, beta to the next one's */
} job_norm;

/* Of JOB_TURN: a matrix [rows x columns], which becomes [columns x rows]. */
enum { TURN_TILE = 64 }; /* rows and columns of a block */
typedef struct job_turn {
    uint32_t rows, columns;
    job_divisor tiles;  /* along a row */
    int32_t from, into; /* n2_dtype */
} job_turn;

/* Of JOB_ADAM: how blocks divide the tensor up, PACK_ROWS rows each. It is a matrix of one part
 * or two side by side, each no wider than 128, with gradients of their own and packed weights that
 * are kept up to date; or, whatever it is else, a matrix 128 wide. */
enum { UPDATE_PARTS = 2 };
typedef struct job_update {
    int32_t n_parts; /* 0: as a matrix 128 wide */
    uint32_t stride; /* of the tensor's rows */
    uint32_t blocks; /* of a part */
    struct update_part {
        uint32_t column, width;     /* its first column, and how many */
        const float *gradient;      /* of the first */
        uint32_t step;              /* from row to row of the gradient */
        uint32_t vec4;              /* four consecutive numbers lie so everywhere */
        float *packed, *transposed; /* NULL: none */
    } part[UPDATE_PARTS];
} job_update;

typedef struct job {
    int32_t kind, op; /* op: n2_op_id, where a kind serves several */
    uint32_t first_block, n_blocks;
    float *out, *more[3]; /* more: moments of Adam, and a second copy of the tensor; out with
                           * LeakyReLU, of a product; squares; packed transpose */
    const float *in[4];   /* a, b, packed b, bias of a product; as the op has them otherwise */
    const float *gate, *addend;
    const float *index; /* of a layer: row i of the addend is row index[i] of it, of addend_rows;
                         * JOB_FIRST_ROWS finds rows in[1] of in[0], of product.k, likewise, or
                         * adds up m of them that follow one another; JOB_MOVE finds rows of in[0],
                         * of k, likewise; of JOB_BINARY: `looks_up` */
    n2_device_state *state;
    int64_t n, m, k; /* what they are depends on the kind */
    double f[4];
    uint32_t guards, stream;
    float slope, slope_more;
    uint8_t add;
    uint8_t squares; /* of JOB_SUM_CHUNKS: sums up the squares; of gradients and JOB_SUM_SLICES: of
                      * what a block makes too, into more[0] */
    uint8_t
        strict; /* of JOB_PACK_WEIGHTS, and JOB_ADAM with packed weights: what is left over, too */
    uint8_t
        lasts; /* of JOB_PACK_WEIGHTS: a run that follows another finds it as it would be made */
    uint8_t
        grows; /* of JOB_PACK_WEIGHTS: and that is because updates change it, but not its power */
    uint8_t kept;     /* what it makes is read after the run */
    uint8_t vec4;     /* of an element-wise job: four consecutive elements lie so everywhere, or
                          are one and the same number; of JOB_PACK_WEIGHTS: of the matrix */
    uint8_t found;    /* of an element-wise job: bit i: in[i] is what the job before it in its chain
                         made, which threads still have */
    uint8_t looks_up; /* of JOB_BINARY: bit i: in[i] is a table of k numbers, of which index says
                         one for each row of length[0] elements */
    uint8_t unread;   /* nobody else reads what it makes */
    uint16_t chained; /* so many jobs behind this one are done by the same blocks, in turn */
    uint8_t
        segment; /* of the first of a fused segment, or of jobs of one number: how many it has */
    union {
        struct {
            job_loops loops;
            union {
                job_loops inner; /* over what a number is reduced from */
                job_update update;
                struct {
                    job_brief brief; /* of a job of a fused segment */
                    job_ask ask[2]; /* a fused segment's asks lie two by two, from its first job on;
                                     * of two with the same slot the second is none */
                };
            };
        };
        job_product product;
        job_conv conv;
        job_attention attention;
        job_wide wide;
        job_turn turn;
        job_norm norm;
    };
} job;

/* What JOB_SUM_LIST adds up. */
typedef struct job_part {
    const float *at;
    uint32_t n, squares;
} job_part;

/* Where JOB_MATMUL's blocks keep their factors. */
enum {
    TILE_M = 64,
    TILE_N = 128,
    TILE_K = 32,
    STAGES = 4,
    A_FLOATS = TILE_M * (TILE_K + 4), /* also enough for TILE_K x (TILE_M + 8) */
    B_FLOATS = TILE_N * (TILE_K + 4),
    ROW_PITCH = 128 + 4,                              /* of rows that a row_block keeps */
    JOB_SHARED = STAGES * (A_FLOATS + B_FLOATS) * 4,  /* bytes of a launch with products */
    JOB_SHARED_SMALL = (1 + JOB_ROWS) * JOB_DROPS * 2 /* of one without */
};

/* Slots that a thread has, in a fused segment of one element and of four. */
enum {
    SLOTS_OF_FOUR = JOB_SHARED_SMALL / (JOB_THREADS * 16),
    SLOTS_OF_ONE = JOB_SHARED_SMALL / (JOB_THREADS * 4)
};

#endif
