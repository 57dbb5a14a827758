#include "gpu_copy.h"

#include "gpu_device.h"

#include <string.h>

static const size_t HALF = 8 << 20, MUCH = 4 << 20; /* bytes; those from which it pays */

void n2_gpu_staging_open(gpu_staging *s) {
    void *memory = NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->half[0] = s->half[1] = NULL;
    s->read[0] = s->read[1] = NULL;
    if (cudaEventCreateWithFlags(&s->read[0], cudaEventDisableTiming) == cudaSuccess &&
        cudaEventCreateWithFlags(&s->read[1], cudaEventDisableTiming) == cudaSuccess &&
        cudaMallocHost(&memory, 2 * HALF) == cudaSuccess) {
        s->half[0] = (char *)memory;
        s->half[1] = s->half[0] + HALF;
    } else {
        cudaGetLastError(); /* it goes without */
    }
}

void n2_gpu_staging_close(gpu_staging *s) {
    cudaFreeHost(s->half[0]);
    for (int k = 0; k < 2; k++)
        if (s->read[k]) cudaEventDestroy(s->read[k]);
    pthread_mutex_destroy(&s->lock);
}

/* What is to be written. */
typedef struct rows_to_come {
    n2_rows_fn *write;
    void *arg;
    size_t rows, row_bytes;
} rows_to_come;

static n2ce_status fill_by_turns(gpu_staging *s, n2ce_ctx *ctx, cudaStream_t stream, char *to,
                                 const rows_to_come *r) {
    const size_t most = HALF / r->row_bytes;
    int k = 0;
    for (size_t at = 0; at < r->rows; at += most, k = !k) {
        const size_t n = r->rows - at < most ? r->rows - at : most;
        GPU_TRY(ctx, cudaEventSynchronize(s->read[k]), "finish its work");
        N2_TRY(n2_write_rows(ctx, r->write, r->arg, at, n, r->row_bytes, s->half[k]));
        GPU_TRY(ctx,
                cudaMemcpyAsync(to + at * r->row_bytes, s->half[k], n * r->row_bytes,
                                cudaMemcpyHostToDevice, stream),
                "take numbers");
        GPU_TRY(ctx, cudaEventRecord(s->read[k], stream), "take numbers");
    }
    return N2CE_OK;
}

/* Where there is no memory that the GPU reads, or not even for a row. */
static n2ce_status fill_ordinary(n2ce_ctx *ctx, cudaStream_t stream, void *to,
                                 const rows_to_come *r) {
    void *all = n2_realloc(ctx, NULL, r->rows, r->row_bytes);
    if (!all) return N2CE_ENOMEM;
    n2ce_status status = n2_write_rows(ctx, r->write, r->arg, 0, r->rows, r->row_bytes, all);
    if (status == N2CE_OK)
        status = n2_gpu_check(
            ctx, cudaMemcpyAsync(to, all, r->rows * r->row_bytes, cudaMemcpyHostToDevice, stream),
            "take numbers");
    if (status == N2CE_OK)
        status = n2_gpu_check(ctx, cudaStreamSynchronize(stream), "finish its work");
    n2_free(ctx, all);
    return status;
}

n2ce_status n2_gpu_fill(gpu_staging *s, n2ce_ctx *ctx, cudaStream_t stream, void *to, size_t rows,
                        size_t row_bytes, n2_rows_fn *write, void *arg) {
    const rows_to_come r = {write, arg, rows, row_bytes};
    if (rows == 0 || row_bytes == 0) return N2CE_OK;
    if (!s->half[0] || row_bytes > HALF) return fill_ordinary(ctx, stream, to, &r);
    pthread_mutex_lock(&s->lock);
    const n2ce_status status = fill_by_turns(s, ctx, stream, (char *)to, &r);
    pthread_mutex_unlock(&s->lock);
    N2_TRY(status);
    GPU_TRY(ctx, cudaStreamSynchronize(stream), "finish its work");
    return N2CE_OK;
}

static void copy_bytes(void *arg, size_t first, size_t n, void *out) {
    memcpy(out, (const char *)arg + first, n);
}

n2ce_status n2_gpu_upload(gpu_staging *s, n2ce_ctx *ctx, cudaStream_t stream, void *to,
                          const void *from, size_t bytes) {
    if (bytes >= MUCH && s->half[0])
        return n2_gpu_fill(s, ctx, stream, to, bytes, 1, copy_bytes, (void *)(uintptr_t)from);
    GPU_TRY(ctx, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "take numbers");
    GPU_TRY(ctx, cudaStreamSynchronize(stream), "finish its work");
    return N2CE_OK;
}
