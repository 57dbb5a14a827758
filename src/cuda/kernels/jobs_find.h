/* How a block finds its job and fetches it, in device code. */
#ifndef N2_CUDA_JOBS_FIND_H
#define N2_CUDA_JOBS_FIND_H

#include "jobs.h"

/* The job that this block belongs to. In a long list thread i looks at job i. */
__device__ inline int find_job(const job_list &list) {
    __shared__ int found;
    int which = 0;
    if (list.n <= INLINE_JOBS) {
        while (which + 1 < list.n && blockIdx.x >= list.inline_first[which + 1]) which++;
        return which;
    }
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < list.n; i += JOB_THREADS) {
        const uint32_t begin = list.first[i], end = list.first[i + 1]; /* on their way together */
        if (begin <= blockIdx.x && blockIdx.x < end) found = i;
    }
    __syncthreads();
    return found;
}

/* Jobs that are fetched at once: this thread's words of them. */
struct fetched {
    enum { EACH = (CHAIN_JOBS * JOB_WORDS + JOB_THREADS - 1) / JOB_THREADS };
    uint32_t n, word[EACH];

    __device__ fetched(const uint32_t *from, int jobs) : n((uint32_t)jobs * JOB_WORDS) {
#pragma unroll
        for (uint32_t k = 0; k < EACH; k++) {
            const uint32_t i = k * JOB_THREADS + threadIdx.x;
            if (i >= n) break;
            word[k] = from[i];
        }
    }
    __device__ void put(job *to) const {
#pragma unroll
        for (uint32_t k = 0; k < EACH; k++) {
            const uint32_t i = k * JOB_THREADS + threadIdx.x;
            if (i < n) ((uint32_t *)to)[i] = word[k];
        }
    }
};

/* A single one. */
__device__ inline fetched fetch_one(const job_list &list, int which) {
    const uint32_t *all = list.n <= INLINE_JOBS ? list.inline_words : (const uint32_t *)list.jobs;
    return fetched(all + (uint32_t)which * JOB_WORDS, 1);
}

#endif
