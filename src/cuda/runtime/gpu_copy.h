/* Numbers on their way to a GPU. What is much goes through memory that the GPU reads by itself,
 * which all threads fill: the driver, left alone with ordinary memory, copies it there on one. */
#ifndef N2_CUDA_GPU_COPY_H
#define N2_CUDA_GPU_COPY_H

#include "gpu.h"

extern "C" {
#include "engine/device.h"
}

#include <pthread.h>
#include <stddef.h>

typedef struct gpu_staging {
    pthread_mutex_t lock;
    char *half[2]; /* one is filled while the other is read; NULL: there is no such memory */
    cudaEvent_t read[2];
} gpu_staging;

void n2_gpu_staging_open(gpu_staging *s);
void n2_gpu_staging_close(gpu_staging *s);

/* n2_device's upload and fill, to `stream`. */
n2ce_status n2_gpu_fill(gpu_staging *s, n2ce_ctx *ctx, cudaStream_t stream, void *to, size_t rows,
                        size_t row_bytes, n2_rows_fn *write, void *arg);
n2ce_status n2_gpu_upload(gpu_staging *s, n2ce_ctx *ctx, cudaStream_t stream, void *to,
                          const void *from, size_t bytes);

#endif
