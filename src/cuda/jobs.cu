/* The kernel: every block finds its job and does its share of it. */
#include "jobs.h"

#include "jobs_elementwise.h"
#include "jobs_matmul.h"
#include "jobs_reduce.h"

__device__ static void run_block(const job &j, float *shared, uint32_t block) {
    switch (j.kind) {
    case JOB_MATMUL:
        return run_matmul(j, shared, block);
    case JOB_NARROW:
        return run_narrow(j, block);
    case JOB_UNARY:
        return run_unary(j, block);
    case JOB_BINARY:
        return run_binary(j, block);
    case JOB_COPY:
        return run_copy(j, block);
    case JOB_MOVE:
        return run_move(j, block);
    case JOB_PAD:
        return run_pad(j, block);
    case JOB_SUM_CHUNKS:
        return run_sum_chunks(j, shared, block);
    case JOB_SUM_COLUMNS:
        return run_sum_columns(j, shared, block);
    case JOB_REDUCE:
        return run_reduce(j, block);
    case JOB_MEDIAN:
        return run_median(j, shared);
    case JOB_RANDOM:
        return run_random(j, block);
    case JOB_PERMUTATION:
        return run_permutation(j, shared);
    case JOB_ROW_INDEX:
        return run_row_index(j, block);
    case JOB_GATHER:
        return run_gather(j, block);
    case JOB_SCATTER:
        return run_scatter(j, shared, block);
    case JOB_ASSIGN:
        return run_assign(j, block);
    case JOB_ADAM:
        return run_adam(j, shared, block);
    default:
        return run_end(j);
    }
}

/* Thread i looks whether the block is one of job i. */
__device__ static int find_job(const uint32_t *first, int n, int *found) {
    const uint32_t block = blockIdx.x;
    for (int i = (int)threadIdx.x; i < n; i += JOB_THREADS)
        if (first[i] <= block && block < first[i + 1]) *found = i;
    __syncthreads();
    return *found;
}

__global__ void __launch_bounds__(JOB_THREADS, 2)
    run_jobs(const job *jobs, const uint32_t *first, int n) {
    GPU_SHARED(shared);
    __shared__ union {
        job j;
        uint32_t words[sizeof(job) / 4];
    } mine;
    __shared__ int found;
    const int which = find_job(first, n, &found);
    const uint32_t *from = (const uint32_t *)(jobs + which);
    for (unsigned i = threadIdx.x; i < sizeof(job) / 4; i += JOB_THREADS) mine.words[i] = from[i];
    __syncthreads();
    run_block(mine.j, (float *)shared, blockIdx.x - mine.j.first_block);
}

cudaError_t n2_jobs_prepare(void) {
    return cudaFuncSetAttribute(run_jobs, cudaFuncAttributeMaxDynamicSharedMemorySize, JOB_SHARED);
}

void n2_jobs_launch(const job *jobs, const uint32_t *first, int n, uint32_t blocks, bool products,
                    cudaStream_t stream) {
    GPU_LAUNCH(run_jobs, blocks, JOB_THREADS, products ? JOB_SHARED : JOB_SHARED_SMALL, stream, jobs,
               first, n);
}
