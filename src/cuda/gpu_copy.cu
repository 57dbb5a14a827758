#include "gpu_copy.h"

#include "gpu_device.h"

extern "C" {
#include "base/pool.h"
}

#include <string.h>

static const size_t HALF = 8 << 20, MUCH = 4 << 20; /* bytes; those from which it pays */
static const size_t PIECE = 256 << 10;               /* that a thread writes at once */

void n2_gpu_staging_open(gpu_staging *s) {
    void *memory = NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->half[0] = s->half[1] = NULL;
    if (cudaEventCreateWithFlags(&s->read[0], cudaEventDisableTiming) == cudaSuccess &&
        cudaEventCreateWithFlags(&s->read[1], cudaEventDisableTiming) == cudaSuccess &&
        cudaMallocHost(&memory, 2 * HALF) == cudaSuccess) {
        s->half[0] = (char *)memory;
        s->half[1] = s->half[0] + HALF;
    } else {
        cudaGetLastError(); /* it goes without */
    }
}

/* Rows first .. first + rows - 1, by pieces. */
typedef struct fill_job {
    n2_rows_fn *write;
    void *arg;
    size_t first, rows, row_bytes, each;
    char *to;
} fill_job;

static void fill_piece(void *arg, size_t item, int worker) {
    (void)worker;
    const fill_job *job = (const fill_job *)arg;
    const size_t begin = item * job->each, left = job->rows - begin;
    job->write(job->arg, job->first + begin, left < job->each ? left : job->each,
               job->to + begin * job->row_bytes);
}

static n2ce_status fill_some(n2ce_ctx *ctx, fill_job *job) {
    job->each = job->row_bytes < PIECE ? PIECE / job->row_bytes : 1;
    return n2_parallel_for(ctx, (job->rows + job->each - 1) / job->each, fill_piece, job);
}

static n2ce_status fill_by_halves(gpu_staging *s, n2ce_ctx *ctx, cudaStream_t stream, char *to,
                                  const fill_job *all) {
    const size_t most = HALF / all->row_bytes;
    int k = 0;
    for (size_t at = 0; at < all->rows; at += most, k = !k) {
        fill_job some = *all;
        some.first = at;
        some.rows = all->rows - at < most ? all->rows - at : most;
        some.to = s->half[k];
        const size_t bytes = some.rows * all->row_bytes;
        GPU_TRY(ctx, cudaEventSynchronize(s->read[k]), "finish its work");
        N2_TRY(fill_some(ctx, &some));
        GPU_TRY(ctx,
                cudaMemcpyAsync(to + at * all->row_bytes, some.to, bytes, cudaMemcpyHostToDevice,
                                stream),
                "take numbers");
        GPU_TRY(ctx, cudaEventRecord(s->read[k], stream), "take numbers");
    }
    return N2CE_OK;
}

/* Where there is no memory that the GPU reads, or not even for a row. */
static n2ce_status fill_ordinary(n2ce_ctx *ctx, cudaStream_t stream, void *to, fill_job *all) {
    all->to = (char *)n2_realloc(ctx, NULL, all->rows, all->row_bytes);
    if (!all->to) return N2CE_ENOMEM;
    n2ce_status status = fill_some(ctx, all);
    if (status == N2CE_OK)
        status = n2_gpu_check(ctx,
                              cudaMemcpyAsync(to, all->to, all->rows * all->row_bytes,
                                              cudaMemcpyHostToDevice, stream),
                              "take numbers");
    if (status == N2CE_OK)
        status = n2_gpu_check(ctx, cudaStreamSynchronize(stream), "finish its work");
    n2_free(ctx, all->to);
    return status;
}

n2ce_status n2_gpu_fill(gpu_staging *s, n2ce_ctx *ctx, cudaStream_t stream, void *to, size_t rows,
                        size_t row_bytes, n2_rows_fn *write, void *arg) {
    fill_job all = {write, arg, 0, rows, row_bytes, 0, NULL};
    if (rows == 0 || row_bytes == 0) return N2CE_OK;
    if (!s->half[0] || row_bytes > HALF) return fill_ordinary(ctx, stream, to, &all);
    pthread_mutex_lock(&s->lock);
    const n2ce_status status = fill_by_halves(s, ctx, stream, (char *)to, &all);
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
