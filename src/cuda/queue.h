/* A queue: the jobs of a program in the order in which they were asked for, with the memory
 * each of them reads and writes. What does not overlap may run at the same time. */
#ifndef N2_CUDA_QUEUE_H
#define N2_CUDA_QUEUE_H

#include "job.h"

enum { MOST_SPANS = 20 };

typedef struct span {
    uintptr_t begin, end;
    bool written;
} span;

typedef struct noted {
    job j;
    span spans[MOST_SPANS];
    int n_spans;
    int level;    /* its launch, from 0 */
    size_t chain; /* the first job of its chain: itself, if it has no other */
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
    void *const *watched; /* as many as the calls' guards say */
    bool strict;
    noted *list;
    size_t n, capacity;
    scratch *scratches;
    size_t n_scratches, scratch_capacity;
    n2ce_status status; /* of the first failure; nothing is noted after it */
};

/* Appends a job with `blocks` blocks; NULL if it has none, or after a failure. Its spans are
 * to be added next. */
noted *n2_queue_add(n2_queue *q, const job *j, int64_t blocks);
void n2_note_read(noted *n, const void *at, int64_t floats); /* NULL, 0: nothing */
void n2_note_write(noted *n, const void *at, int64_t floats);

/* Memory for so many numbers, for `owner`; NULL after a failure. */
float *n2_queue_scratch(n2_queue *q, const void *owner, int64_t floats);

/* True if the two cannot run at the same time. */
bool n2_noted_conflict(const noted *a, const noted *b);

/* True if b may follow a in the same blocks without waiting for others: both are element-wise
 * over as many elements, and element i of b touches no more than element i of what a touches;
 * or both are products of as many rows whose blocks have whole rows, and a block of b touches
 * no more than its rows of what a touches. So a network runs in one launch. */
bool n2_noted_chain(const noted *a, const noted *b);

void n2_queue_free(n2_queue *q);

/* record.cu: by op id. */
extern n2_kernel *const n2_cuda_kernels[N2_OP_COUNT];

/* program.cu */
n2ce_status n2_cuda_queue_new(n2_device *d, n2ce_ctx *ctx, n2_device_state *state,
                              void *const *watched, n2_queue **out);
n2ce_status n2_cuda_program_new(n2_queue *queue, bool ends, n2_program **out);
void n2_cuda_program_free(n2_program *program);
n2ce_status n2_cuda_program_run(n2_program *program, n2ce_ctx *ctx, uint64_t n);
size_t n2_cuda_program_launches(const n2_program *program);

#endif
