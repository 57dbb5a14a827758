/* A program: the launches of a run, in the order of their levels, and the graphs made of them. */
#ifndef N2_CUDA_PROGRAM_H
#define N2_CUDA_PROGRAM_H

#include "cuda/fused_mlp/fused_mlp.h"
#include "cuda/kernels/jobs.h"
#include "gpu_device.h"

/* Jobs of a level that go together: products want so much shared memory that others would have
 * a multiprocessor to themselves. */
typedef enum launch_kind {
    LAUNCH_SIDE, /* the fused MLP's, that may be at work for several levels */
    LAUNCH_JOBS,
    LAUNCH_PRODUCTS,
    LAUNCH_LIBRARY, /* calls of a library, one after the other */
    LAUNCH_WIDE,    /* kernels that have a launch each, one after the other */
    LAUNCH_UPDATES, /* Adam, and what else is changed at its level */
    LAUNCH_FUSED,   /* the fused MLP's, of its kinds */
    N_LAUNCH_KINDS = LAUNCH_FUSED + N_FUSED_KINDS
} launch_kind;

typedef struct launch {
    int level;
    int until; /* of LAUNCH_SIDE: the level before which it must be through */
    launch_kind way;
    job_list list;
    uint32_t blocks;
    fused_launch fused;
    size_t first_call; /* of a library; there are as many as blocks, and as many wide jobs */
    update_norm norm;  /* of updates, */
    bool apart;        /* and whether each block has a multiprocessor */
} launch;

struct n2_device_program {
    gpu_device *device;
    n2_queue *queue; /* owns the scratch memory */
    launch *launches;
    launch *again; /* the same for a run that follows another: may do less */
    size_t n_launches;
    job *jobs; /* on the device, with the starts behind them */
    uint32_t *starts;
    cudaGraphExec_t one, some, more; /* one run; SOME_RUNS, MORE_RUNS; NULL: not made yet */
};

/* Whether a level has updates; which way a job goes there. */
bool n2_has_adam(const n2_queue *q, int level);
launch_kind n2_launch_kind_of(const job *j, bool adam);

static inline bool n2_is_fused(launch_kind way) {
    return way >= LAUNCH_FUSED || way == LAUNCH_SIDE;
}
/* Whether its blocks are launches of their own. */
static inline bool n2_has_several(launch_kind way) {
    return way == LAUNCH_LIBRARY || way == LAUNCH_WIDE;
}

/* early: it may begin before the kernel before it ends; ahead: and read what it changes. */
void n2_launch_one(const n2_device_program *p, const launch *l, cudaStream_t stream, bool early,
                   bool ahead);

#endif
