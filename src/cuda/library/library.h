/* The library lane: ops that a vendor's library may do better than our kernels. Libraries are
 * loaded at run time, by name, when the first op wants one: the program runs without them, and
 * whatever a library does not do, for want of it or of this shape, our kernels do.
 *
 * A lane's op is a job like any other (JOB_LIBRARY): it has the fields that our kernel would have,
 * the memory that it reads and writes, and a level. Once levels are known it becomes a call, which
 * is captured into the same graph as our launches. Calls of a level follow one another in one
 * stream, and levels follow one another, so all calls of a program share their workspace. */
#ifndef N2_CUDA_LIBRARY_H
#define N2_CUDA_LIBRARY_H

#include "cuda/cuda.h"
#include "cuda/runtime/gpu.h"
#include "cuda/runtime/queue.h"

#include <pthread.h>

/* Ops that a library may do. Memory that calls hold is the lane's own: no context is asked. */
typedef struct library_lane {
    int n_ops, ops[3]; /* n2_op_id */
    job_kind ours;     /* what such a job is if the library has nothing for it */
    /* Loads the library for a device: its handle, or NULL. about: its name and version, or a
     * sentence that says why there is none. Called once for each device. */
    void *(*open)(int device, char *about, size_t bytes);
    /* Whether the library can do the job at all, and whether it is faster than our kernel. */
    bool (*admits)(const job *j);
    bool (*pays)(const job *j);
    /* The call for a job, whose addresses are final now, and the bytes of memory that it wants for
     * itself. NULL, with N2CE_OK: the library has nothing for this shape, and our kernel does it.
     */
    n2ce_status (*make)(n2ce_ctx *ctx, void *handle, const job *j, void **call, size_t *workspace);
    /* Asks for the call in a stream, which may be captured. */
    n2ce_status (*launch)(n2ce_ctx *ctx, void *handle, const void *call, void *workspace,
                          cudaStream_t stream);
    void (*release)(void *handle, void *call);
    void (*close)(void *handle);
} library_lane;

/* cublas.cu, convolution.cu; of an emulated GPU, tests/cuda/emulated_library.cc. */
extern const library_lane n2_matmul_lane, n2_convolution_lane;
/* and sums over ranks, ranks.cu */
enum { N_LIBRARY_LANES = 3 };

/* What a device knows about its libraries. */
typedef struct library {
    pthread_mutex_t lock;
    n2_library_use use;
    struct {
        bool tried;
        void *handle; /* NULL: none, or not tried yet */
        char about[256];
    } lane[N_LIBRARY_LANES];
    size_t calls; /* made so far */
} library;

typedef struct library_call {
    const library_lane *lane;
    void *handle, *call;
    int level;
} library_call;

/* What the environment says: N2CE_CUDA_LIBRARY. */
void n2_library_open(library *l);
void n2_library_close(library *l);

/* Whether the library is to do this job of our kernels; loads it if that depends on it. */
bool n2_library_takes(n2_queue *q, const job *j);

/* Once levels are known: calls for jobs of the lanes, in the order of their levels, and memory for
 * the one that wants most; jobs without a call become what our kernels do. */
void n2_library_settle(n2_queue *q);

/* The calls of a level are n, from `first` on. */
size_t n2_library_calls_at(const n2_queue *q, int level, size_t *first);

/* Asks for n calls, one after the other. A failure shows in the queue's status. */
void n2_library_launch(n2_queue *q, size_t first, size_t n, cudaStream_t stream);

void n2_library_release(n2_queue *q);

#endif
