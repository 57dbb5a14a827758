#include "library.h"

#include "cuda/runtime/gpu_device.h"

#include <stdlib.h>
#include <string.h>

/* Every op that a library may do. A convolution will be the next line. */
static const library_lane *const lanes[] = {&n2_matmul_lane};

static const library_lane *lane_of_op(int op) {
    for (const library_lane *lane : lanes)
        if (lane->op == op) return lane;
    return NULL;
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
    if (l->handle) n2_matmul_lane.close(l->handle);
    pthread_mutex_destroy(&l->lock);
}

/* Loads it the first time. */
static bool has_library(gpu_device *g) {
    library *l = &g->lib;
    pthread_mutex_lock(&l->lock);
    if (!l->tried) l->handle = n2_matmul_lane.open(g->index, l->about, sizeof l->about);
    l->tried = true;
    pthread_mutex_unlock(&l->lock);
    return l->handle != NULL;
}

bool n2_library_takes(n2_queue *q, const job *j) {
    gpu_device *g = (gpu_device *)q->device;
    const library_lane *lane = lane_of_op(j->op);
    const n2_library_use use = g->lib.use;
    if (!lane || use == N2_LIBRARY_OFF || !lane->admits(j)) return false;
    return (use == N2_LIBRARY_ALWAYS || lane->pays(j)) && has_library(g);
}

/* ---- calls --------------------------------------------------------------- */

/* A job that the library has no algorithm for is our kernel's. */
static n2ce_status settle_one(n2_queue *q, noted *n) {
    gpu_device *g = (gpu_device *)q->device;
    library_call *c = &q->calls[q->n_calls];
    c->lane = lane_of_op(n->j.op);
    c->level = n->level;
    N2_TRY(c->lane->make(q, g->lib.handle, &n->j, &c->call));
    if (!c->call) {
        n->j.kind = JOB_MATMUL;
        return N2CE_OK;
    }
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
    size_t n = 0;
    for (size_t i = 0; i < q->n; i++) n += q->list[i].j.kind == JOB_LIBRARY;
    if (n == 0 || q->status != N2CE_OK) return;
    q->calls = (library_call *)n2_alloc(q->ctx, n, sizeof *q->calls);
    if (!q->calls) q->status = N2CE_ENOMEM;
    for (size_t i = 0; i < q->n && q->status == N2CE_OK; i++)
        if (q->list[i].j.kind == JOB_LIBRARY && q->list[i].j.n_blocks > 0)
            q->status = settle_one(q, &q->list[i]);
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
    gpu_device *g = (gpu_device *)q->device;
    for (size_t i = first; i < first + n && q->status == N2CE_OK; i++) {
        const library_call *c = &q->calls[i];
        q->status = c->lane->launch(q->ctx, g->lib.handle, c->call, stream);
    }
}

void n2_library_release(n2_queue *q) {
    gpu_device *g = (gpu_device *)q->device;
    for (size_t i = 0; i < q->n_calls; i++)
        q->calls[i].lane->release(g->lib.handle, q->calls[i].call);
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

bool n2_cuda_has_library(const n2_backend *backend, const char **about) {
    gpu_device *g = (gpu_device *)backend->device;
    const bool has = has_library(g);
    *about = g->lib.about;
    return has;
}

size_t n2_cuda_library_calls(const n2_backend *backend) {
    return ((const gpu_device *)backend->device)->lib.calls;
}
