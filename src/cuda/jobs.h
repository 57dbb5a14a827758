/* Running jobs: all kernels of the backend are here. */
#ifndef N2_CUDA_JOBS_H
#define N2_CUDA_JOBS_H

#include "gpu.h"
#include "job.h"

/* Lets blocks have as much shared memory as products want. */
cudaError_t n2_jobs_prepare(void);

/* One launch: jobs that do not depend on one another. first[i] is the first block of job i,
 * first[n] their number; all in the device's memory. */
void n2_jobs_launch(const job *jobs, const uint32_t *first, int n, uint32_t blocks, bool products,
                    cudaStream_t stream);

#endif
