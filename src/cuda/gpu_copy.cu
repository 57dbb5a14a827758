#include "gpu_copy.h"

#include "gpu_device.h"

extern "C" {
#include "base/pool.h"
}

#include <string.h>

static const size_t HALF = 8 << 20, MUCH = 4 << 20; /* bytes; those from which it pays */
static const size_t PIECE = 256 << 10;               /* that a thread copies at once */

void n2_gpu_staging_open(gpu_staging *s) {
    void *memory = NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->half[0] = s->half[1] = NULL;
    for (int k = 0; k < 2; k++)
        if (cudaEventCreateWithFlags(&s->read[k], cudaEventDisableTiming) != cudaSuccess) return;
    if (cudaMallocHost(&memory, 2 * HALF) != cudaSuccess) {
        cudaGetLastError(); /* it goes without */
        return;
    }
    s->half[0] = (char *)memory;
    s->half[1] = s->half[0] + HALF;
}

typedef struct copy_job {
    char *to;
    const char *from;
    size_t bytes;
} copy_job;

static void copy_piece(void *arg, size_t item, int worker) {
    (void)worker;
    const copy_job *job = (const copy_job *)arg;
    const size_t begin = item * PIECE, left = job->bytes - begin;
    memcpy(job->to + begin, job->from + begin, left < PIECE ? left : PIECE);
}

static n2ce_status upload_by_halves(gpu_staging *s, n2ce_ctx *ctx, cudaStream_t stream, char *to,
                                    const char *from, size_t bytes) {
    int k = 0;
    for (size_t at = 0; at < bytes; at += HALF, k = !k) {
        const size_t n = bytes - at < HALF ? bytes - at : HALF;
        copy_job job = {s->half[k], from + at, n};
        GPU_TRY(ctx, cudaEventSynchronize(s->read[k]), "finish its work");
        N2_TRY(n2_parallel_for(ctx, (n + PIECE - 1) / PIECE, copy_piece, &job));
        GPU_TRY(ctx, cudaMemcpyAsync(to + at, s->half[k], n, cudaMemcpyHostToDevice, stream),
                "take numbers");
        GPU_TRY(ctx, cudaEventRecord(s->read[k], stream), "take numbers");
    }
    return N2CE_OK;
}

n2ce_status n2_gpu_upload(gpu_staging *s, n2ce_ctx *ctx, cudaStream_t stream, void *to,
                          const void *from, size_t bytes) {
    if (bytes < MUCH || !s->half[0]) {
        GPU_TRY(ctx, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream),
                "take numbers");
    } else {
        pthread_mutex_lock(&s->lock);
        const n2ce_status status =
            upload_by_halves(s, ctx, stream, (char *)to, (const char *)from, bytes);
        pthread_mutex_unlock(&s->lock);
        N2_TRY(status);
    }
    GPU_TRY(ctx, cudaStreamSynchronize(stream), "finish its work");
    return N2CE_OK;
}
