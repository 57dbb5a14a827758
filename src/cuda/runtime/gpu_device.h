/* A GPU as the backend knows it. */
#ifndef N2_CUDA_GPU_DEVICE_H
#define N2_CUDA_GPU_DEVICE_H

#include "cuda/library/library.h"
#include "gpu_copy.h"
#include "gpu_memory.h"
#include "queue.h"

enum { GPU_JOINED = 8 };

typedef struct gpu_device {
    n2_device api; /* first: an n2_device is one of these */
    n2_backend backend;
    int index;
    bool strict;
    n2_dtype narrow;
    n2_storage storage[N2_OP_COUNT];
    bool fuses_mlps; /* capability 9.0 */
    int multiprocessors;
    int most_shared;     /* bytes of shared memory that a block may have */
    size_t total_memory; /* bytes */
    bool always_wide;    /* N2CE_CUDA_WIDE: wide/wide.h */
    bool waits;          /* kernels may be launched early: gpu.h */
    cudaStream_t stream; /* all work, in order */
    gpu_memory memory;
    gpu_staging staging;
    library lib;
    struct {
        int ranks;
        void *comm;       /* NULL: none */
    } joined[GPU_JOINED]; /* communicators of NCCL: library/nccl.h */
    int n_joined;
    char name[128], backend_name[64];
    struct gpu_device *next; /* of the context's */
} gpu_device;

/* OK, or N2CE_EDEVICE with a sentence: what was asked of the GPU, and what CUDA says. */
n2ce_status n2_gpu_check(n2ce_ctx *ctx, cudaError_t error, const char *what);

#define GPU_TRY(ctx, call, what)                                                   \
    do {                                                                           \
        const cudaError_t gpu_error_ = (call);                                     \
        if (gpu_error_ != cudaSuccess) return n2_gpu_check(ctx, gpu_error_, what); \
    } while (0)

#endif
