/* Wide jobs: kernels with a launch of their own, for values of many megabytes, in 16 bits or as
 * numbers: what one of them does fills the GPU by itself, so nothing is gained by sharing a launch.
 *
 * A wide job is a job like any other (JOB_WIDE): its addresses are in the job's usual fields (out,
 * more, in, gate, addend), where passes over the queue find them, the memory that it touches is
 * noted, and it has a level. What else its kernel wants to know lies in the host's memory
 * (job.wide.about, the queue's). Wide jobs of a level follow one another in a stream, beside the
 * level's other launches, and are captured with them.
 *
 * To add a kernel: a name in wide_id, its row at the same place of the table in wide.cu, and a
 * function note_NAME for record.cu, which fills in a job_of(c, JOB_WIDE), gives it to n2_wide_add
 * and notes what it reads and writes. Device code begins with grid_wait(); grid_next(); and is
 * launched with GPU_LAUNCH, whose `early` is the one that launch() is given; of several kernels of
 * one job all but the first are early if n2_wide_waits(q). */
#ifndef N2_CUDA_WIDE_H
#define N2_CUDA_WIDE_H

#include "cuda/runtime/gpu.h"
#include "cuda/runtime/queue.h"

typedef enum wide_id {
    WIDE_PASS,      /* element-wise: pass.h */
    WIDE_FEW,       /* convolutions with few channels on one side: few.h */
    WIDE_NORM,      /* norm.h */
    WIDE_SUMS,      /* over rows: sums.h */
    WIDE_ATTENTION, /* attention.h */
    N_WIDE_KERNELS
} wide_id;

typedef struct wide_kernel {
    const char *name;
    /* Asks for the job in a stream, which is being captured. early: the kernel before it may still
     * be at work when it begins. */
    void (*launch)(const n2_queue *q, const job *j, cudaStream_t stream, bool early);
    /* Once for each GPU, for shared memory beyond 48 KiB, of which a block may have `most` bytes
     * there; NULL: nothing is to be done. */
    cudaError_t (*prepare)(int most);
} wide_kernel;

/* Appends a wide job; `about` is copied. NULL after a failure. What it touches is to be noted
 * next. */
noted *n2_wide_add(n2_queue *q, const job *j, wide_id kernel, const void *about, size_t bytes);
void n2_wide_reads(noted *n, const n2_view *v);
void n2_wide_writes(noted *n, const n2_view *v);

/* Bytes of an operand's elements. */
static inline size_t n2_view_bytes(const n2_view *v) {
    return (size_t)n2_elements(v->shape) * n2_dtype_bytes(v->dtype, sizeof(float));
}

/* Whether a value of so many elements is worth a launch of its own; the environment variable
 * N2CE_CUDA_WIDE=always, for tests, says that every one is. */
bool n2_wide_pays(const n2_queue *q, int64_t elements);

/* Whether kernels of this GPU may be launched early. */
bool n2_wide_waits(const n2_queue *q);

/* Bytes of shared memory that a block may have on this GPU. */
size_t n2_wide_shared(const n2_queue *q);

/* ---- for the runtime ---- */

cudaError_t n2_wide_prepare(int most_shared);
/* Fewer and longer ones, before levels are looked for. */
void n2_wide_simplify(n2_queue *q);
/* How many wide jobs a level has. */
size_t n2_wide_at(const n2_queue *q, int level);
/* Asks for them, one after the other. */
void n2_wide_launch(const n2_queue *q, int level, cudaStream_t stream, bool early);
/* One of them, which begins when all before it has ended. */
void n2_wide_launch_one(const n2_queue *q, const job *j, cudaStream_t stream);
const char *n2_wide_name(const job *j);

#endif
