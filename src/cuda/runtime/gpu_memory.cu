#include "gpu_memory.h"

#include <stdlib.h>
#include <string.h>

static const size_t MOST_CACHED = (size_t)1 << 30;

void n2_gpu_memory_open(gpu_memory *m, cudaStream_t stream) {
    memset(m, 0, sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    m->stream = stream;
}

void n2_gpu_memory_close(gpu_memory *m) {
    for (size_t i = 0; i < m->n; i++) cudaFree(m->blocks[i].memory);
    free(m->blocks);
    pthread_mutex_destroy(&m->lock);
}

/* Out of the list; the others stay in their order. */
static gpu_block remove_block(gpu_memory *m, size_t i) {
    const gpu_block block = m->blocks[i];
    memmove(m->blocks + i, m->blocks + i + 1, (m->n - i - 1) * sizeof block);
    m->n--;
    if (block.cached) m->cached -= block.bytes;
    return block;
}

/* The blocks that are cached, the longest first, go back to the driver until no more than so many
 * bytes are left. */
static void release(gpu_memory *m, size_t most) {
    for (size_t i = 0; i < m->n && m->cached > most;) {
        if (m->blocks[i].cached)
            cudaFree(remove_block(m, i).memory);
        else
            i++;
    }
}

static bool has_room(gpu_memory *m) {
    if (m->n < m->room) return true;
    const size_t room = m->room ? 2 * m->room : 256;
    gpu_block *blocks = (gpu_block *)realloc(m->blocks, room * sizeof *blocks);
    if (!blocks) return false;
    m->blocks = blocks;
    m->room = room;
    return true;
}

static cudaError_t find_block(gpu_memory *m, size_t bytes, gpu_block *out) {
    *out = gpu_block{NULL, bytes, false};
    for (size_t i = m->n; i-- > 0;)
        if (m->blocks[i].cached && m->blocks[i].bytes == bytes) {
            out->memory = remove_block(m, i).memory;
            return cudaSuccess;
        }
    const cudaError_t error = cudaMalloc(&out->memory, bytes);
    if (error != cudaErrorMemoryAllocation || m->cached == 0) return error;
    cudaGetLastError();
    release(m, 0);
    return cudaMalloc(&out->memory, bytes);
}

static cudaError_t take(gpu_memory *m, size_t bytes, void **out) {
    gpu_block block;
    if (!has_room(m)) return cudaErrorMemoryAllocation;
    const cudaError_t error = find_block(m, bytes, &block);
    if (error != cudaSuccess) return error;
    m->blocks[m->n++] = block;
    m->taken += bytes;
    if (m->taken > m->most_taken) m->most_taken = m->taken;
    *out = block.memory;
    return cudaMemsetAsync(block.memory, 0, bytes, m->stream);
}

cudaError_t n2_gpu_memory_take(gpu_memory *m, size_t bytes, void **out) {
    enum { UNIT = 256 };
    *out = NULL;
    pthread_mutex_lock(&m->lock);
    const cudaError_t error = take(m, (bytes / UNIT + 1) * UNIT, out);
    pthread_mutex_unlock(&m->lock);
    return error;
}

void n2_gpu_memory_give(gpu_memory *m, void *memory) {
    if (!memory) return;
    pthread_mutex_lock(&m->lock);
    size_t i = 0;
    while (m->blocks[i].memory != memory) i++;
    gpu_block block = remove_block(m, i);
    m->taken -= block.bytes;
    m->cached += block.bytes;
    block.cached = true;
    m->blocks[m->n++] = block;
    release(m, MOST_CACHED);
    pthread_mutex_unlock(&m->lock);
}

void n2_gpu_memory_count(gpu_memory *m, size_t *taken, size_t *left) {
    pthread_mutex_lock(&m->lock);
    *taken = m->taken;
    *left += m->cached;
    pthread_mutex_unlock(&m->lock);
}
