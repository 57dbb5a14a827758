/* Opening a GPU, its memory, copies to and from it. */
#include "gpu_device.h"

#include "cuda/cuda.h"
#include "cuda/fused_mlp/fused_mlp.h"
#include "cuda/kernels/jobs.h"
#include "cuda/library/nccl.h"
#include "cuda/wide/wide.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TILE_ROWS = 32768 };
static const size_t least_tile_limit = (size_t)1536 << 20, most_tile_limit = (size_t)6 << 30;

/* ---- errors -------------------------------------------------------------- */

n2ce_status n2_gpu_check(n2ce_ctx *ctx, cudaError_t error, const char *what) {
    if (error == cudaSuccess) return N2CE_OK;
    cudaGetLastError(); /* forget it, if it can be forgotten */
    return n2_fail(ctx, N2CE_EDEVICE, "The GPU could not %s: %s (%s).", what,
                   cudaGetErrorString(error), cudaGetErrorName(error));
}

static n2ce_status fail_memory(n2ce_ctx *ctx, size_t wanted) {
    size_t left = 0, all = 0;
    cudaGetLastError();
    cudaMemGetInfo(&left, &all);
    return n2_fail(ctx, N2CE_EDEVICE,
                   "The GPU is out of memory: %.1f MiB are wanted, %.1f of %.1f MiB are free. "
                   "Use a smaller batch (fewer rows, a smaller M), or --device cpu.",
                   (double)wanted / 1048576, (double)left / 1048576, (double)all / 1048576);
}

/* ---- memory -------------------------------------------------------------- */

static n2ce_status gpu_alloc(n2_device *d, n2ce_ctx *ctx, size_t bytes, void **out) {
    gpu_device *g = (gpu_device *)d;
    *out = NULL;
    GPU_TRY(ctx, cudaSetDevice(g->index), "choose the GPU");
    const cudaError_t error = n2_gpu_memory_take(&g->memory, bytes, out);
    if (error == cudaErrorMemoryAllocation) return fail_memory(ctx, bytes);
    GPU_TRY(ctx, error, "give memory");
    return N2CE_OK;
}

static void gpu_free(n2_device *d, void *memory) {
    gpu_device *g = (gpu_device *)d;
    cudaSetDevice(g->index);
    n2_gpu_memory_give(&g->memory, memory);
}

static void gpu_memory_now(n2_device *d, size_t *taken, size_t *left) {
    gpu_device *g = (gpu_device *)d;
    size_t all = 0;
    cudaSetDevice(g->index);
    if (cudaMemGetInfo(left, &all) != cudaSuccess) *left = SIZE_MAX / 2; /* who asks will see */
    cudaGetLastError();
    n2_gpu_memory_count(&g->memory, taken, left);
}

static n2ce_status gpu_upload(n2_device *d, n2ce_ctx *ctx, void *to, const void *from,
                              size_t bytes) {
    gpu_device *g = (gpu_device *)d;
    if (bytes == 0) return N2CE_OK;
    GPU_TRY(ctx, cudaSetDevice(g->index), "choose the GPU");
    N2_TRY(n2_nccl_wait(ctx, g));
    return n2_gpu_upload(&g->staging, ctx, g->stream, to, from, bytes);
}

static n2ce_status gpu_fill(n2_device *d, n2ce_ctx *ctx, void *to, size_t rows, size_t row_bytes,
                            n2_rows_fn *write, void *arg) {
    gpu_device *g = (gpu_device *)d;
    GPU_TRY(ctx, cudaSetDevice(g->index), "choose the GPU");
    return n2_gpu_fill(&g->staging, ctx, g->stream, to, rows, row_bytes, write, arg);
}

static n2ce_status gpu_download(n2_device *d, n2ce_ctx *ctx, void *to, const void *from,
                                size_t bytes) {
    gpu_device *g = (gpu_device *)d;
    if (bytes == 0) return N2CE_OK;
    GPU_TRY(ctx, cudaSetDevice(g->index), "choose the GPU");
    N2_TRY(n2_nccl_wait(ctx, g));
    GPU_TRY(ctx, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, g->stream),
            "give its numbers");
    GPU_TRY(ctx, cudaStreamSynchronize(g->stream), "finish its work");
    return N2CE_OK;
}

/* ---- opening ------------------------------------------------------------- */

static n2ce_status check_driver(n2ce_ctx *ctx, int index) {
    int driver = 0, runtime = 0, n = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    const cudaError_t error = cudaGetDeviceCount(&n);
    if (driver == 0)
        return n2_fail(ctx, N2CE_EDEVICE,
                       "There is no NVIDIA driver on this machine. Use --device cpu.");
    if (error == cudaErrorInsufficientDriver)
        return n2_fail(ctx, N2CE_EDEVICE,
                       "The NVIDIA driver knows CUDA %d.%d; this n2ce needs %d.%d. Use a newer "
                       "driver, or --device cpu.",
                       driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (error == cudaErrorNoDevice || (error == cudaSuccess && n == 0))
        return n2_fail(ctx, N2CE_EDEVICE, "There is no GPU on this machine. Use --device cpu.");
    GPU_TRY(ctx, error, "be found");
    if (index >= n)
        return n2_fail(ctx, N2CE_EDEVICE, "There is no GPU %d: this machine has %d, from 0 to %d.",
                       index, n, n - 1);
    return N2CE_OK;
}

static n2ce_status describe(n2ce_ctx *ctx, gpu_device *g) {
    struct cudaDeviceProp properties;
    GPU_TRY(ctx, cudaGetDeviceProperties(&properties, g->index), "say what it is");
    if (properties.major < 8)
        return n2_fail(ctx, N2CE_EDEVICE,
                       "GPU %d, %s, has compute capability %d.%d; n2ce needs 8.0. Use --device "
                       "cpu.",
                       g->index, properties.name, properties.major, properties.minor);
    g->fuses_mlps = properties.major == 9;
    g->multiprocessors = properties.multiProcessorCount;
    g->most_shared = (int)properties.sharedMemPerBlockOptin;
    g->total_memory = properties.totalGlobalMem;
    snprintf(g->name, sizeof g->name, "%.64s, %d multiprocessors, %.0f GiB", properties.name,
             properties.multiProcessorCount, (double)properties.totalGlobalMem / 1073741824);
    snprintf(g->backend_name, sizeof g->backend_name, "cuda:%d, %s", g->index,
             n2_precision_name(n2_precision{g->strict, g->narrow}));
    return N2CE_OK;
}

/* Bytes of a tile: pictures that are done together fill the GPU better; but a GPU with little
 * memory has room for other things, too. The environment variable N2CE_CUDA_TILE says how many MiB,
 * for trials. */
static size_t tile_limit(const gpu_device *g) {
    const char *word = getenv("N2CE_CUDA_TILE");
    const long mib = word ? strtol(word, NULL, 10) : 0;
    if (mib > 0) return (size_t)mib << 20;
    const size_t share = g->total_memory / 16;
    if (share < least_tile_limit) return least_tile_limit;
    return share < most_tile_limit ? share : most_tile_limit;
}

/* Below, a GPU is through with the rows before others have told their sums: an H200 with 2e10
 * operations in 0.12 ms, and an exchange takes 17 us even with nobody. The environment says
 * otherwise, for trials: N2CE_CUDA_SHARE, flops; N2CE_NCCL=always, one rank exchanges its sums too;
 * N2CE_REPRODUCIBLE, numbers are not to depend on the ranks. */
static void choose_sharing(gpu_device *g) {
    enum { SHARDS = 8 };
    const char *flops = getenv("N2CE_CUDA_SHARE"), *use = getenv("N2CE_NCCL");
    const char *same = getenv("N2CE_REPRODUCIBLE");
    g->api.worth_sharing = flops ? strtod(flops, NULL) : 5e10;
    g->api.lonely = use && strcmp(use, "always") == 0;
    g->api.shards = same && *same && strcmp(same, "0") != 0 ? SHARDS : 0;
}

static void fill_tables(gpu_device *g) {
    static const bool split[N2_OP_COUNT] = {false};
    g->api.alloc = gpu_alloc;
    g->api.free = gpu_free;
    g->api.memory = gpu_memory_now;
    g->api.upload = gpu_upload;
    g->api.download = gpu_download;
    g->api.fill = gpu_fill;
    g->api.queue_new = n2_cuda_queue_new;
    g->api.program_new = n2_cuda_program_new;
    g->api.program_free = n2_cuda_program_free;
    g->api.program_run = n2_cuda_program_run;
    g->api.program_launches = n2_cuda_program_launches;
    g->api.program_profile = n2_cuda_program_profile;
    g->api.note_sums = n2_cuda_note_sums;
    g->api.program_exchanged = n2_cuda_program_exchanged;
    choose_sharing(g);
    g->backend.name = g->backend_name;
    g->backend.bytes = sizeof(float);
    g->backend.row_programs = true;
    g->backend.unpacked = true;
    g->backend.kernel = n2_cuda_kernels;
    g->backend.split = split;
    g->backend.most_tile = TILE_ROWS;
    g->backend.tile_bytes = tile_limit(g);
    g->backend.device = &g->api;
    g->backend.narrow = g->narrow;
    g->backend.storage = g->storage;
    n2_cuda_storage(g->storage);
}

static n2ce_status load_kernels(n2ce_ctx *ctx, gpu_device *g) {
    GPU_TRY(ctx, cudaSetDevice(g->index), "be opened");
    GPU_TRY(ctx, n2_jobs_prepare(&g->waits), "load the kernels");
    GPU_TRY(ctx, n2_fused_mlp_prepare(&g->fuses_mlps), "load the kernels");
    GPU_TRY(ctx, n2_wide_prepare(g->most_shared), "load the kernels");
    return N2CE_OK;
}

static n2ce_status find_gpu(n2ce_ctx *ctx, const n2_cuda_options *o, gpu_device *g) {
    N2_TRY(check_driver(ctx, o->device));
    g->index = o->device;
    const char *wide = getenv("N2CE_CUDA_WIDE");
    g->strict = o->strict;
    g->narrow = o->narrow;
    g->always_wide = wide && strcmp(wide, "always") == 0;
    N2_TRY(describe(ctx, g));
    return load_kernels(ctx, g);
}

static n2ce_status open_gpu(n2ce_ctx *ctx, const n2_cuda_options *o, gpu_device *g) {
    N2_TRY(find_gpu(ctx, o, g));
    GPU_TRY(ctx, cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking), "be opened");
    n2_gpu_memory_open(&g->memory, g->stream);
    n2_gpu_staging_open(&g->staging);
    n2_library_open(&g->lib);
    fill_tables(g);
    return N2CE_OK;
}

static void close_gpu(gpu_device *g) {
    cudaSetDevice(g->index);
    cudaStreamSynchronize(g->stream);
    n2_nccl_leave(g);
    n2_library_close(&g->lib);
    n2_gpu_staging_close(&g->staging);
    n2_gpu_memory_close(&g->memory);
    cudaStreamDestroy(g->stream);
}

/* ---- the GPUs of a context ------------------------------------------------ */

typedef struct gpu_registry {
    pthread_mutex_t lock;
    gpu_device *first; /* that the context has opened, by number and precision */
} gpu_registry;

static void begin_registry(n2ce_ctx *, void *block) {
    pthread_mutex_init(&((gpu_registry *)block)->lock, NULL);
}

static void end_registry(n2ce_ctx *ctx, void *block) {
    gpu_registry *r = (gpu_registry *)block;
    while (r->first) {
        gpu_device *g = r->first;
        r->first = g->next;
        close_gpu(g);
        n2_free(ctx, g);
    }
    pthread_mutex_destroy(&r->lock);
}

static gpu_registry *registry_of(n2ce_ctx *ctx) {
    static const char key = 0;
    return (gpu_registry *)n2_ctx_attached(ctx, &key, sizeof(gpu_registry), begin_registry,
                                           end_registry);
}

static n2ce_status find_or_open(n2ce_ctx *ctx, gpu_registry *r, const n2_cuda_options *o,
                                const n2_backend **out) {
    gpu_device *g = r->first;
    while (g && (g->index != o->device || g->strict != o->strict || g->narrow != o->narrow))
        g = g->next;
    if (!g) {
        g = (gpu_device *)n2_alloc(ctx, 1, sizeof *g);
        if (!g) return N2CE_ENOMEM;
        const n2ce_status status = open_gpu(ctx, o, g);
        if (status != N2CE_OK) {
            n2_free(ctx, g);
            return status;
        }
        g->next = r->first;
        r->first = g;
    }
    *out = &g->backend;
    return N2CE_OK;
}

n2ce_status n2_cuda_backend(n2ce_ctx *ctx, const n2_cuda_options *options, const n2_backend **out) {
    *out = NULL;
    if (options->device < 0)
        return n2_fail(ctx, N2CE_EDEVICE, "There is no GPU %d.", options->device);
    gpu_registry *r = registry_of(ctx);
    if (!r) return N2CE_ENOMEM;
    pthread_mutex_lock(&r->lock);
    const n2ce_status status = find_or_open(ctx, r, options, out);
    pthread_mutex_unlock(&r->lock);
    return status;
}

void n2_cuda_warm_up(const n2_cuda_options *options) {
    gpu_device g = {};
    if (options->device >= 0) find_gpu(NULL, options, &g);
}

const char *n2_cuda_name(const n2_backend *backend) {
    return ((const gpu_device *)backend->device)->name;
}

void n2_cuda_memory(const n2_backend *backend, size_t *now, size_t *most) {
    const gpu_device *g = (const gpu_device *)backend->device;
    *now = g->memory.taken;
    *most = g->memory.most_taken;
}
