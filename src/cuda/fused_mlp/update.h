/* Updates: a step of Adam on every tensor of a level, by a kernel of their own.
 *
 * What comes last in a step is waited for by everything in the next, so this is made to be short.
 * The gradients' norm and what clipping makes of it every block works out for itself. Numbers that
 * nobody has changed for a while are asked for before the kernel before has ended. And packed
 * weights (mlp.h) are kept up to date here: the numbers are in registers already. */
#ifndef N2_CUDA_UPDATE_H
#define N2_CUDA_UPDATE_H

#include "cuda/kernels/jobs.h"

/* The square root of a sum, `norm`, and, if there is one, the factor that clips to `limit`:
 * min(most, limit / (a norm + b)). Every block puts the same numbers in the same places. */
typedef struct update_norm {
    const job_part *parts; /* NULL: none */
    int32_t n;
    float a, b;
    float *sum, *norm;
    float *shifted, *ratio, *factor; /* factor: NULL: not wanted */
    const float *limit, *most;
} update_norm;

/* apart: blocks may be launched apart, for the GPU has the memory for it. */
cudaError_t n2_updates_prepare(bool apart);

/* A list of JOB_ADAM, JOB_ASSIGN and JOB_END. ahead: what updates change, their rates and the
 * number of their step may be read before the kernel before has ended. apart: there are
 * multiprocessors for all blocks, so that none has to share one. */
void n2_updates_launch(const job_list *list, const update_norm *norm, uint32_t blocks, bool ahead,
                       bool apart, cudaStream_t stream, bool early);

#endif
