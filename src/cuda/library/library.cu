#include "library.h"

#include "cuda/runtime/gpu_device.h"
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

static const library_lane *const lanes[N_LIBRARY_LANES] = {&n2_matmul_lane, &n2_convolution_lane,
                                                           &n2_ranks_lane};

/* N_LIBRARY_LANES: no library does it. */
static int lane_of_op(int op) {
    for (int l = 0; l < N_LIBRARY_LANES; l++)
        for (int k = 0; k < lanes[l]->n_ops; k++)
            if (lanes[l]->ops[k] == op) return l;
    return N_LIBRARY_LANES;
}

void n2_library_open(library *l) {
    const char *word = getenv("N2CE_CUDA_LIBRARY");
    memset(l, 0, sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    l->use = !word                         ? N2_LIBRARY_AUTO
             : strcmp(word, "off") == 0    ? N2_LIBRARY_OFF
             : strcmp(word, "always") == 0 ? N2_LIBRARY_ALWAYS
                                           : N2_LIBRARY_AUTO;
}

void n2_library_close(library *l) {
    for (int k = 0; k < N_LIBRARY_LANES; k++)
        if (l->lane[k].handle) lanes[k]->close(l->lane[k].handle);
    pthread_mutex_destroy(&l->lock);
}

/* Loads it the first time. */
static bool has_library(gpu_device *g, int lane) {
    library *l = &g->lib;
    auto *at = &l->lane[lane];
    pthread_mutex_lock(&l->lock);
    if (!at->tried) at->handle = lanes[lane]->open(g->index, at->about, sizeof at->about);
    at->tried = true;
    pthread_mutex_unlock(&l->lock);
    return at->handle != NULL;
}

bool n2_library_takes(n2_queue *q, const job *j) {
    gpu_device *g = (gpu_device *)q->device;
    const int lane = lane_of_op(j->op);
    const n2_library_use use = g->lib.use;
    if (lane == N_LIBRARY_LANES || use == N2_LIBRARY_OFF || !lanes[lane]->admits(j)) return false;
    return (use == N2_LIBRARY_ALWAYS || lanes[lane]->pays(j)) && has_library(g, lane);
}

/* ---- calls --------------------------------------------------------------- */

/* A job that the library has no algorithm for is our kernel's. */
static n2ce_status settle_one(n2_queue *q, noted *n, size_t *workspace) {
    gpu_device *g = (gpu_device *)q->device;
    library_call *c = &q->calls[q->n_calls];
    const int lane = lane_of_op(n->j.op);
    size_t bytes = 0;
    *c = library_call{lanes[lane], g->lib.lane[lane].handle, NULL, n->level};
    N2_TRY(c->lane->make(q->ctx, c->handle, &n->j, &c->call, &bytes));
    if (!c->call) {
        n->j.kind = c->lane->ours;
        return N2CE_OK;
    }
    if (bytes > *workspace) *workspace = bytes;
    q->n_calls++;
    pthread_mutex_lock(&g->lib.lock);
    g->lib.calls++;
    pthread_mutex_unlock(&g->lib.lock);
    return N2CE_OK;
}

/* By level; those of one level stay in the order in which they were noted. */
static void sort_calls(n2_queue *q) {
    for (size_t i = 1; i < q->n_calls; i++) {
        const library_call c = q->calls[i];
        size_t k = i;
        for (; k > 0 && q->calls[k - 1].level > c.level; k--) q->calls[k] = q->calls[k - 1];
        q->calls[k] = c;
    }
}

void n2_library_settle(n2_queue *q) {
    size_t n = 0, workspace = 0;
    for (size_t i = 0; i < q->n; i++) n += q->list[i].j.kind == JOB_LIBRARY;
    if (n == 0 || q->status != N2CE_OK) return;
    q->calls = (library_call *)n2_alloc(q->ctx, n, sizeof *q->calls);
    if (!q->calls) q->status = N2CE_ENOMEM;
    for (size_t i = 0; i < q->n && q->status == N2CE_OK; i++)
        if (q->list[i].j.kind == JOB_LIBRARY && q->list[i].j.n_blocks > 0)
            q->status = settle_one(q, &q->list[i], &workspace);
    const int64_t floats = (int64_t)((workspace + sizeof(float) - 1) / sizeof(float));
    if (floats > 0) q->workspace = n2_queue_scratch(q, lanes, floats);
    sort_calls(q);
}

size_t n2_library_calls_at(const n2_queue *q, int level, size_t *first) {
    size_t begin = 0, end = q->n_calls; /* the first that is not before the level lies here */
    while (begin < end) {
        const size_t middle = begin + (end - begin) / 2;
        if (q->calls[middle].level < level)
            begin = middle + 1;
        else
            end = middle;
    }
    *first = begin;
    while (end < q->n_calls && q->calls[end].level == level) end++;
    return end - begin;
}

void n2_library_launch(n2_queue *q, size_t first, size_t n, cudaStream_t stream) {
    for (size_t i = first; i < first + n && q->status == N2CE_OK; i++) {
        const library_call *c = &q->calls[i];
        q->status = c->lane->launch(q->ctx, c->handle, c->call, q->workspace, stream);
    }
}

void n2_library_release(n2_queue *q) {
    for (size_t i = 0; i < q->n_calls; i++)
        q->calls[i].lane->release(q->calls[i].handle, q->calls[i].call);
    n2_free(q->ctx, q->calls);
    q->calls = NULL;
    q->n_calls = 0;
}

/* ---- what others may know ------------------------------------------------ */

n2_library_use n2_cuda_use_library(const n2_backend *backend, n2_library_use use) {
    library *l = &((gpu_device *)backend->device)->lib;
    const n2_library_use before = l->use;
    l->use = use;
    return before;
}

bool n2_cuda_has_library(const n2_backend *backend, int op, const char **about) {
    gpu_device *g = (gpu_device *)backend->device;
    const int lane = lane_of_op(op);
    *about = "No library does this.";
    if (lane == N_LIBRARY_LANES) return false;
    const bool has = has_library(g, lane);
    *about = g->lib.lane[lane].about;
    return has;
}

size_t n2_cuda_library_calls(const n2_backend *backend) {
    return ((const gpu_device *)backend->device)->lib.calls;
}
