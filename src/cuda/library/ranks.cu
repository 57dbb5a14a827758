#include "ranks.h"

#include "cuda/runtime/program.h"
#include "nccl.h"

extern "C" {
#include "comm/comm.h"
}

#include <string.h>

/* ---- shards ---------------------------------------------------------------- */

enum { THREADS = 256, DEPTH = 16 };

/* Neighbours first, then pairs of them: as n2_comm_sum has it, and the engine's chunks. Of as many
 * as are no power of two the last have no neighbour. */
__global__ static void run_tree(const __grid_constant__ n2_rank_sum s) {
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    float branch[DEPTH];
    int depth = 0;
    grid_wait();
    if (i >= s.n) return;
    for (size_t k = 0; k < s.shards; k++) {
        const float *part = k ? (const float *)s.rest + (k - 1) * s.stride : (const float *)s.first;
        float sum = part[i];
        for (size_t level = k; level & 1; level >>= 1) sum = branch[--depth] + sum;
        branch[depth++] = sum;
    }
    float sum = branch[--depth];
    while (depth > 0) sum = branch[--depth] + sum;
    ((float *)s.to)[i] = sum;
}

void n2_add_by_tree(const n2_rank_sum *sum, cudaStream_t stream) {
    const unsigned blocks = (unsigned)((sum->n + THREADS - 1) / THREADS);
    GPU_LAUNCH(run_tree, blocks, THREADS, 0, stream, false, *sum);
}

/* Of a rank's shards, where the sum goes, unless it is there. */
static void add_shards(const rank_exchange *x, cudaStream_t stream) {
    for (size_t k = 0; k < x->n; k++)
        if (x->sums[k].shards > 1 || (x->sums[k].shards == 1 && x->sums[k].first != x->sums[k].to))
            n2_add_by_tree(&x->sums[k], stream);
}

/* ---- by way of the host --------------------------------------------------- */

/* Nothing to add is -0, which changes no number. */
static void fill_missing(const rank_exchange *x) {
    float *at = x->host;
    for (size_t k = 0; k < x->n; at += x->sums[k++].n)
        for (size_t i = 0; x->sums[k].shards == 0 && i < x->sums[k].n; i++) at[i] = -0.0f;
}

/* In a thread of CUDA's, while the host waits for the program. */
static void CUDART_CB add_up(void *arg) {
    rank_exchange *x = (rank_exchange *)arg;
    if (x->status != N2CE_OK) return;
    fill_missing(x);
    x->status = n2_comm_sum(x->ctx, x->host, x->total, sizeof(float), x->contributors);
}

static cudaError_t exchange_by_host(rank_exchange *x, cudaStream_t stream) {
    cudaError_t error = cudaSuccess;
    float *at = x->host;
    for (size_t k = 0; k < x->n && error == cudaSuccess; at += x->sums[k++].n)
        if (x->sums[k].shards > 0)
            error = cudaMemcpyAsync(at, x->sums[k].to, x->sums[k].n * sizeof *at,
                                    cudaMemcpyDeviceToHost, stream);
    if (error == cudaSuccess) error = cudaLaunchHostFunc(stream, add_up, x);
    at = x->host;
    for (size_t k = 0; k < x->n && error == cudaSuccess; at += x->sums[k++].n)
        error = cudaMemcpyAsync(x->sums[k].to, at, x->sums[k].n * sizeof *at,
                                cudaMemcpyHostToDevice, stream);
    return error;
}

/* ---- the lane -------------------------------------------------------------- */

static n2ce_status make(n2ce_ctx *, void *, const job *j, void **call, size_t *workspace) {
    *call = (void *)(uintptr_t)j->wide.about;
    *workspace = 0;
    return N2CE_OK;
}

static n2ce_status ask_for(n2ce_ctx *ctx, void *, const void *call, void *, cudaStream_t stream) {
    rank_exchange *x = (rank_exchange *)(uintptr_t)call;
    add_shards(x, stream);
    if (x->contributors == 0) return n2_gpu_check(ctx, cudaGetLastError(), "add up numbers");
    if (x->nccl) return n2_nccl_exchange(ctx, x, stream);
    return n2_gpu_check(ctx, exchange_by_host(x, stream), "exchange numbers with other ranks");
}

static void release(void *, void *) {}
static void *open(int, char *, size_t) { return NULL; }
static bool never(const job *) { return false; }
static void close(void *) {}

const library_lane n2_ranks_lane = {1,     {RANKS_OP}, JOB_LIBRARY, open,    never,
                                    never, make,       ask_for,     release, close};

/* ---- noting it ------------------------------------------------------------- */

static rank_exchange *exchange_new(n2_queue *q, const n2_rank_sum *sums, size_t n,
                                   int contributors) {
    rank_exchange *x = (rank_exchange *)n2_alloc(q->ctx, 1, sizeof *x);
    if (!x) return NULL;
    x->next = q->exchanges; /* whatever happens, it is freed with the queue */
    q->exchanges = x;
    x->ctx = q->ctx;
    x->contributors = contributors;
    x->ranks = n2_ranks(q->ctx);
    x->sums = (n2_rank_sum *)n2_alloc(q->ctx, n, sizeof *sums);
    if (!x->sums) return NULL;
    memcpy(x->sums, sums, n * sizeof *sums);
    x->n = n;
    for (size_t k = 0; k < n; k++) x->total += sums[k].n;
    return x;
}

static n2ce_status choose_way(n2_queue *q, rank_exchange *x) {
    gpu_device *g = (gpu_device *)q->device;
    if (x->contributors == 0) return N2CE_OK;
    N2_TRY(n2_nccl_join(q->ctx, g, &x->nccl));
    if (!x->nccl) {
        void *host = NULL;
        GPU_TRY(q->ctx, cudaMallocHost(&host, x->total * sizeof(float)), "exchange numbers");
        x->host = (float *)host;
    } else if (g->api.shards > 0) {
        x->gathered = n2_queue_scratch(q, x, (int64_t)x->total * x->ranks);
    }
    return q->status;
}

/* Exchanges follow one another in the order in which they were noted, on every rank: all of them
 * change a number that nobody reads. */
static void note_spans(n2_queue *q, noted *at, const rank_exchange *x) {
    static const char turns = 0;
    for (size_t k = 0; k < x->n; k++) {
        const n2_rank_sum *s = &x->sums[k];
        if (s->shards > 0) n2_note_read(at, s->first, (int64_t)s->n);
        if (s->shards > 1) n2_note_read(at, s->rest, (int64_t)((s->shards - 2) * s->stride + s->n));
        n2_note_write(at, s->to, (int64_t)s->n);
    }
    float *turn = n2_queue_scratch(q, &turns, 1);
    n2_note_read(at, turn, 1);
    n2_note_write(at, turn, 1);
    if (x->gathered) n2_note_write(at, x->gathered, (int64_t)x->total * x->ranks);
}

static void note_some(n2_queue *q, const n2_rank_sum *sums, size_t n, int contributors) {
    rank_exchange *x = exchange_new(q, sums, n, contributors);
    if (!x) q->status = N2CE_ENOMEM;
    if (q->status == N2CE_OK) q->status = choose_way(q, x);
    if (q->status != N2CE_OK) return;
    job j;
    memset(&j, 0, sizeof j);
    j.kind = JOB_LIBRARY;
    j.op = RANKS_OP;
    j.n = (int64_t)x->total;
    j.kept = true;
    j.wide.about = x;
    q->node = NULL; /* it is no node's */
    noted *at = n2_queue_add(q, &j, 1);
    if (at) note_spans(q, at, x);
}

void n2_cuda_note_sums(n2_queue *q, const n2_rank_sum *sums, size_t n, int contributors) {
    const size_t at_once = MOST_SPANS / 3 - 2;
    for (size_t k = 0; k < n && q->status == N2CE_OK; k += at_once)
        note_some(q, sums + k, n - k < at_once ? n - k : at_once, contributors);
}

n2ce_status n2_cuda_program_exchanged(const n2_device_program *p, n2ce_ctx *ctx) {
    (void)ctx; /* which has the sentence */
    for (const rank_exchange *x = p->queue->exchanges; x; x = x->next) N2_TRY(x->status);
    return N2CE_OK;
}

void n2_exchanges_free(n2_queue *q) {
    while (q->exchanges) {
        rank_exchange *x = q->exchanges;
        q->exchanges = x->next;
        if (x->host) cudaFreeHost(x->host);
        n2_free(q->ctx, x->sums);
        n2_free(q->ctx, x);
    }
}
