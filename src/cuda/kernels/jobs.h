/* Running jobs: all kernels of the backend are here. */
#ifndef N2_CUDA_JOBS_H
#define N2_CUDA_JOBS_H

#include "cuda/runtime/gpu.h"
#include "job.h"

/* Lets blocks have as much shared memory as products want. */
/* waits: whether kernels may be launched early (gpu.h). */
cudaError_t n2_jobs_prepare(bool *waits);

/* A launch: jobs that do not depend on one another. A few of them travel with the launch
 * itself, which saves every block two trips to the device's memory. */
enum { INLINE_JOBS = 10, JOB_WORDS = sizeof(job) / 4, CHAIN_JOBS = 12 };
typedef struct job_list {
    int n;
    int at_once;           /* jobs of a chain that are fetched together, CHAIN_JOBS at most */
    const job *jobs;       /* in the device's memory */
    const uint32_t *first; /* first[i]: the first block of job i; first[n]: how many in all */
    const job *prelude; /* n_prelude jobs of one block, which every block does for itself first: */
    int n_prelude;      /* all put the same numbers in the same places */
    uint32_t inline_first[INLINE_JOBS];
    uint32_t inline_words[INLINE_JOBS * JOB_WORDS];
} job_list;

void n2_jobs_launch(const job_list *list, uint32_t blocks, bool products, cudaStream_t stream,
                    bool early);

#endif
