/* A queue: the jobs of a program in the order in which they were asked for, with the memory
 * each of them reads and writes. What does not overlap may run at the same time. */
#ifndef N2_CUDA_QUEUE_H
#define N2_CUDA_QUEUE_H

#include "cuda/kernels/job.h"

enum { MOST_SPANS = 64 };

/* Memory that a job touches: all from begin to end, or, if there is a pitch, of the matrix that
 * lies there, in rows of so many numbers, `width` columns from `column` on. Who does not ask for
 * columns sees whole rows. */
typedef struct span {
    uintptr_t begin, end;
    bool written;
    uint32_t pitch, column, width;
} span;

/* Columns of a matrix: `width` from `column` on, of rows of `pitch` numbers. */
typedef struct rectangle {
    const float *matrix;
    int64_t rows, pitch, column, width;
} rectangle;

/* As memory: what lies on end needs no columns. */
span n2_span_of(const rectangle *r, bool written);
/* Whether they are of one matrix, but of other columns of it. */
bool n2_are_beside(const span *a, const span *b);
/* Whether they have a number in common. */
bool n2_spans_meet(const span *a, const span *b);

typedef struct noted {
    job j;
    const n2_node_data *node; /* that it was recorded for; NULL: none */
    span spans[MOST_SPANS];
    int n_spans;
    int level;           /* its launch, from 0 */
    size_t chain;        /* the first job of its chain: itself, if it has no other */
    size_t last;         /* of the first of a chain: the last product that joined it */
    bool kept;           /* what it writes is read after the run */
    bool fused_gradient; /* a weight's gradient that the fused MLP makes, not a job */
    bool taken;          /* sums of columns: along with such a gradient */
    size_t pair;         /* of such a gradient: another that goes into the same sums; 0: none */
    int until;       /* of such a gradient: launched on the side stream, which is joined before this
                        level; 0: not */
    job_part *parts; /* of JOB_SUM_LIST, the host's copy */
} noted;

/* Memory for partial results, by whom it is for: the next tile uses it again. */
typedef struct scratch {
    const void *owner;
    size_t bytes;
    void *memory;
} scratch;

struct n2_queue {
    n2_device *device;
    n2ce_ctx *ctx;
    n2_device_state *state;
    void *const *watched;    /* behind them NULL */
    bool strict, fuses_mlps; /* fuses_mlps: the GPU has the instructions */
    int multiprocessors;
    noted *list;
    size_t n, capacity;
    scratch *scratches;
    size_t n_scratches, scratch_capacity;
    /* While levels are looked for (schedule.cu): the jobs before job i that it conflicts with are
     * conflicts[conflicts_end[i - 1]] and so on, last first; NULL: not noted. */
    uint32_t *conflicts, *conflicts_end;
    /* Once levels are final (n2_queue_sort_levels): n2_jobs_at. */
    uint32_t *by_level, *level_begin;
    struct library_call *calls; /* of a library, by level: library/library.h */
    size_t n_calls;
    void *workspace;                 /* of all calls in turn */
    struct rank_exchange *exchanges; /* between ranks: library/ranks.h */
    const n2_node_data *node;        /* that is being recorded */
    n2ce_status status;              /* of the first failure; nothing is noted after it */
};

/* Appends a job with `blocks` blocks; NULL if it has none, or after a failure. Its spans are
 * to be added next. */
noted *n2_queue_add(n2_queue *q, const job *j, int64_t blocks);
void n2_note_read(noted *n, const void *at, int64_t floats); /* NULL, 0: nothing */
void n2_note_write(noted *n, const void *at, int64_t floats);
void n2_note_columns(noted *n, rectangle r, bool written); /* no rows: nothing */
void n2_note_span(noted *n, span s);                       /* an empty one: nothing */

/* Floats that hold n numbers of a type. */
static inline int64_t n2_floats_of(n2_dtype type, int64_t n) {
    return type == N2_NUMBER ? n : (n + 1) / 2;
}

/* Whether a job writes any of these numbers, or, if `reads`, reads them. */
bool n2_noted_touches(const noted *n, const float *x, int64_t floats, bool reads);

bool n2_writes_watched(const n2_queue *q, const noted *n);

/* Memory for so many numbers, for `owner`; NULL after a failure. */
float *n2_queue_scratch(n2_queue *q, const void *owner, int64_t floats);

/* Whether a job after i, or the caller after the run, reads what job i wrote to x before it is
 * written anew. */
bool n2_is_read_later(const n2_queue *q, size_t i, const float *x, int64_t floats);

/* True if the two cannot run at the same time. */
bool n2_noted_conflict(const noted *a, const noted *b);

/* True if b may follow a in the same blocks without waiting for others: both are element-wise
 * over as many elements, and element i of b touches no more than element i of what a touches;
 * or both are products of as many rows whose blocks have whole rows, and a block of b touches
 * no more than its rows of what a touches. So a network runs in one launch. */
bool n2_noted_chain(const noted *a, const noted *b);

/* b follows a in a chain: what a thread made it need not fetch, nor store, if nobody else reads
 * it. */
void n2_noted_hand_over(n2_queue *q, size_t a, size_t b);

/* True if both are element-wise over as many elements, and neither touches, of what the other
 * writes, more than element i for its element i. */
bool n2_noted_alike(const noted *a, const noted *b);
/* Whether element i of the job reads element i of an operand. */
bool n2_goes_along(const job *j, int operand);

/* segment.cu: finds the fused segments of a chain, once its jobs have been handed over. */
void n2_chain_segments(n2_queue *q, size_t chain);

/* simplify.cu: fewer jobs for the same numbers. */
void n2_queue_simplify(n2_queue *q);
/* Lists of sums go to the device. */
void n2_queue_upload_lists(n2_queue *q);

/* schedule.cu: finds the chains, and the level of every job; returns how many there are. */
size_t n2_queue_schedule(n2_queue *q);
/* Once levels are final, so many of them: n2_jobs_at knows. */
void n2_queue_sort_levels(n2_queue *q, size_t levels);

/* The numbers of a level's jobs, in the order in which they were noted: for (i : n2_jobs_at(...))
 */
typedef struct level_jobs {
    const uint32_t *first, *last;
    const uint32_t *begin() const { return first; }
    const uint32_t *end() const { return last; }
} level_jobs;
static inline level_jobs n2_jobs_at(const n2_queue *q, int level) {
    return level_jobs{q->by_level + q->level_begin[level], q->by_level + q->level_begin[level + 1]};
}

/* Once all is known: which gradients of the fused MLP's are launched on the side stream. */
void n2_queue_choose_side_stream(n2_queue *q, size_t levels);

/* A weight's gradient of so many rows is at work for several levels, and so are the sums of columns
 * that go along: what touches the same comes LONG_LEVELS later at the earliest, and what does not
 * is done beside it. */
enum { LONG_ROWS = 8192, LONG_LEVELS = 4 };
static inline bool n2_is_long(const noted *n) {
    if (n->j.kind == JOB_SUM_COLUMNS) return n->j.n >= LONG_ROWS;
    return n->j.kind == JOB_MATMUL && n->j.product.ta && n->j.product.k >= LONG_ROWS;
}

void n2_queue_free(n2_queue *q);

/* True if it is a layer, and so its chain a fused MLP (fused_mlp/fused_mlp.h). */
static inline bool n2_is_mlp_layer(const noted *n) {
    return (n->j.kind == JOB_MATMUL || n->j.kind == JOB_FIRST_ROWS) && n->j.product.mlp_layer;
}

/* record_matmul.cu: once it is known which gradients the fused MLP makes, the small ones among the
 * others become jobs that need no tensor cores, and those of levels with few have small tiles. */
void n2_products_settle(n2_queue *q);
/* Whether it will be one: not a layer, not the fused MLP's, in no chain, and so small that tensor
 * cores would not pay; and how many blocks it will have. */
bool n2_is_small(const noted *n);
int64_t n2_small_blocks(const job_product *p);

/* record.cu: by op id. */
extern n2_kernel *const n2_cuda_kernels[N2_OP_COUNT];
/* storage.cu: which of them read and write 16 bits. */
void n2_cuda_storage(n2_storage table[N2_OP_COUNT]);

/* program.cu */
n2ce_status n2_cuda_queue_new(n2_device *d, n2ce_ctx *ctx, n2_device_state *state,
                              void *const *watched, n2_queue **out);
n2ce_status n2_cuda_program_new(n2_queue *queue, bool ends, n2_device_program **out);
void n2_cuda_program_free(n2_device_program *program);
n2ce_status n2_cuda_program_run(n2_device_program *program, n2ce_ctx *ctx, uint64_t n);
size_t n2_cuda_program_launches(const n2_device_program *program);
/* profile.cu */
n2ce_status n2_cuda_program_profile(n2_device_program *program, n2ce_ctx *ctx, n2_text *out);

#endif
