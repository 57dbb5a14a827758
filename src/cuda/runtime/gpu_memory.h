/* Memory of a GPU. What is given back is cached for the next who wants as much: asking the driver
 * takes longer than most of what is then done with it, and whoever trains several networks asks for
 * the same again and again. All work is in one stream, in order, so what is given back may be taken
 * at once. */
#ifndef N2_CUDA_GPU_MEMORY_H
#define N2_CUDA_GPU_MEMORY_H

#include "gpu.h"

#include <pthread.h>
#include <stddef.h>

typedef struct gpu_block {
    void *memory;
    size_t bytes;
    bool cached; /* nobody has it */
} gpu_block;

typedef struct gpu_memory {
    pthread_mutex_t lock;
    cudaStream_t stream;
    gpu_block *blocks; /* the longer they are cached, the further in front */
    size_t n, room;
    size_t taken, most_taken, cached; /* bytes */
} gpu_memory;

void n2_gpu_memory_open(gpu_memory *m, cudaStream_t stream);
void n2_gpu_memory_close(gpu_memory *m); /* all goes back to the driver */

/* So many bytes, all 0, at a multiple of 256. */
cudaError_t n2_gpu_memory_take(gpu_memory *m, size_t bytes, void **out);
void n2_gpu_memory_give(gpu_memory *m, void *memory); /* NULL is fine */

/* Bytes that somebody has; what is cached is added to *left, for it can be taken too. */
void n2_gpu_memory_count(gpu_memory *m, size_t *taken, size_t *left);

#endif
