/* The kernels: every block finds its job and does its share of it. */
#include "jobs.h"

#include "cuda/fused_mlp/pack_weights.h"
#include "jobs_attention.h"
#include "jobs_conv.h"
#include "jobs_elementwise.h"
#include "jobs_find.h"
#include "jobs_matmul.h"
#include "jobs_norm.h"
#include "jobs_reduce.h"

__device__ static void run_other(const job &j, float *shared, uint32_t block) {
    switch (j.kind) {
    case JOB_SMALL:
        return run_small(j, shared, block);
    case JOB_NARROW:
        return run_narrow(j, block);
    case JOB_MOVE:
        return run_move(j, block);
    case JOB_SUM_CHUNKS:
        return run_sum_chunks(j, shared, block);
    case JOB_SUM_LIST:
        return run_sum_list(j, shared);
    case JOB_SUM_COLUMNS:
        return run_sum_columns(j, shared, block);
    case JOB_SUM_SLICES:
        return run_sum_slices(j, shared, block);
    case JOB_PACK_WEIGHTS:
        return run_pack_weights(j, shared, block);
    case JOB_REDUCE:
        return run_reduce(j, block);
    case JOB_REDUCE_FEW:
        return run_reduce_few(j, block);
    case JOB_MEDIAN:
        return run_median(j, shared);
    case JOB_RANDOM:
        return run_random(j, block);
    case JOB_PERMUTATION:
        return run_permutation(j, shared);
    case JOB_ROW_INDEX:
        return run_row_index(j, block);
    case JOB_SCATTER:
        return run_scatter(j, shared, block);
    case JOB_CAST:
        return run_cast(j, block);
    case JOB_CONV:
        return run_conv(j, block);
    case JOB_ATTENTION:
        return run_attention(j, block);
    case JOB_TURN:
        return run_turn(j, shared, block);
    case JOB_NORM:
        return run_norm(j, shared, block);
    case JOB_ASSIGN:
        return run_assign(j, block);
    default:
        return run_end(j);
    }
}

/* last: what the job before made; returns what this one did, if it is element-wise. */
__device__ static float4 run_block(const job &j, float *shared, uint32_t block, float4 last) {
    switch (j.kind) {
    case JOB_UNARY:
        return run_unary(j, block, last);
    case JOB_BINARY:
        return run_binary(j, block, last);
    case JOB_COPY:
        return run_copy(j, block);
    case JOB_PAD:
        return run_pad(j, block);
    case JOB_GATHER:
        return run_gather(j, block);
    default:
        run_other(j, shared, block);
        return float4{};
    }
}

/* Those of a chain, from `which` on. */
__device__ inline fetched fetch_chain(const job_list &list, int which) {
    const int left = list.n - which;
    const uint32_t *all = list.n <= INLINE_JOBS ? list.inline_words : (const uint32_t *)list.jobs;
    return fetched(all + (uint32_t)which * JOB_WORDS, list.at_once < left ? list.at_once : left);
}

/* n jobs of a chain, in shared memory, one after the other; last: what the one before made. */
template <bool PRODUCTS>
__device__ inline void run_chain(const job *jobs, int n, float *shared, uint32_t block,
                                 float4 &last) {
    for (int i = 0; i < n;) {
        __syncthreads(); /* all are done with the job before */
        const int segment = PRODUCTS ? 0 : jobs[i].segment;
        if constexpr (PRODUCTS)
            run_matmul(jobs[i], shared, block);
        else if (segment == 0)
            last = run_block(jobs[i], shared, block, last);
        else if (jobs[i].n == 1)
            run_scalars(jobs + i, shared);
        else
            last = run_segment(jobs + i, shared, block, last);
        i += segment > 0 ? segment : 1;
    }
}

/* Jobs, or products, one after the other. */
template <bool PRODUCTS> __device__ inline void run_list(const job_list &list, float *shared) {
    __shared__ job mine[CHAIN_JOBS];
    float4 last = {0, 0, 0, 0};
    const int first = find_job(list);
    fetched words = fetch_chain(list, first); /* jobs themselves were there before */
    if (list.n_prelude > 0) {
        fetched((const uint32_t *)list.prelude, list.n_prelude).put(mine);
        grid_wait();
        grid_next();
        run_chain<PRODUCTS>(mine, list.n_prelude, shared, 0, last);
        __syncthreads();
    } else {
        grid_wait();
        grid_next();
    }
    for (int begin = first, end = first + 1; begin < end; begin += list.at_once) {
        if (begin > first) {
            words = fetch_chain(list, begin);
            __syncthreads(); /* all are done with the jobs before */
        }
        words.put(mine);
        __syncthreads();
        if (begin == first) end += mine[0].chained;
        const int n = end - begin < list.at_once ? end - begin : list.at_once;
        run_chain<PRODUCTS>(mine, n, shared, blockIdx.x - mine[0].first_block, last);
    }
}

/* Two kernels, because products need so many registers that few blocks would fit. */
__global__ void __launch_bounds__(JOB_THREADS, 4) run_jobs(const __grid_constant__ job_list list) {
    GPU_SHARED(shared);
    run_list<false>(list, (float *)shared);
}
__global__ void __launch_bounds__(JOB_THREADS, 2)
    run_products(const __grid_constant__ job_list list) {
    GPU_SHARED(shared);
    run_list<true>(list, (float *)shared);
}

/* Every architecture that the file is compiled for has its own. */
__device__ int code_waits = GPU_WAITS;

cudaError_t n2_jobs_prepare(bool *waits) {
    int answer = 0;
    const cudaError_t error = cudaMemcpyFromSymbol(&answer, code_waits, sizeof answer);
    *waits = answer != 0;
    if (error != cudaSuccess) return error;
    return cudaFuncSetAttribute(run_products, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                JOB_SHARED);
}

void n2_jobs_launch(const job_list *list, uint32_t blocks, bool products, cudaStream_t stream,
                    bool early) {
    const job_list copy = *list;
    if (products)
        GPU_LAUNCH(run_products, blocks, JOB_THREADS, JOB_SHARED, stream, early, copy);
    else
        GPU_LAUNCH(run_jobs, blocks, JOB_THREADS, JOB_SHARED_SMALL, stream, early, copy);
}
