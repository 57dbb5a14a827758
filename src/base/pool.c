/* Threads sleep on a condition variable between calls. A call publishes a job,
 * bumps the generation and wakes them; items are handed out by an atomic
 * counter; the caller waits until the last worker has left the job. */
#include "pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

typedef struct worker {
    n2_pool *pool;
    int index;
    pthread_t thread;
} worker;

struct n2_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    uint64_t generation; /* of the current job */
    int busy;            /* workers inside the current job */
    bool closing;
    n2_item_fn *fn;
    void *arg;
    size_t n;
    atomic_size_t next;
    int n_workers; /* besides the caller's thread */
    worker workers[];
};

static void drain(n2_pool *pool, int index) {
    for (;;) {
        const size_t item = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (item >= pool->n) return;
        pool->fn(pool->arg, item, index);
    }
}

static void *work(void *arg) {
    worker *self = arg;
    n2_pool *pool = self->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->generation == seen && !pool->closing)
            pthread_cond_wait(&pool->wake, &pool->lock);
        if (pool->closing) break;
        seen = pool->generation;
        pthread_mutex_unlock(&pool->lock);
        drain(pool, self->index);
        pthread_mutex_lock(&pool->lock);
        if (--pool->busy == 0) pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Signals belong to the host program's threads, not to ours. */
static void start_workers(n2ce_ctx *ctx, n2_pool *pool, int wanted) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool->n_workers < wanted) {
        worker *w = &pool->workers[pool->n_workers];
        *w = (worker){.pool = pool, .index = pool->n_workers + 1};
        if (pthread_create(&w->thread, NULL, work, w) != 0) {
            n2_log(ctx, N2CE_LOG_WARNING, "Only %d of %d threads could be started; going on.",
                   pool->n_workers + 1, wanted + 1);
            break;
        }
        pool->n_workers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static n2_pool *pool_new(n2ce_ctx *ctx, int wanted) {
    n2_pool *pool = n2_alloc(ctx, 1, sizeof *pool + (size_t)wanted * sizeof(worker));
    if (!pool) return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    start_workers(ctx, pool, wanted);
    return pool;
}

void n2_pool_free(n2ce_ctx *ctx, n2_pool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->n_workers; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    n2_free(ctx, pool);
}

/* One item after another is claimed by whoever is free, until all are done. */
static void run_job(n2_pool *pool, size_t n, n2_item_fn *fn, void *arg) {
    pthread_mutex_lock(&pool->lock);
    pool->fn = fn;
    pool->arg = arg;
    pool->n = n;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    pool->busy = pool->n_workers;
    pool->generation++;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    drain(pool, 0);
    pthread_mutex_lock(&pool->lock);
    while (pool->busy > 0) pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

/* The context's pool, made when it is first needed; NULL without memory. */
static n2_pool *pool_of(n2ce_ctx *ctx) {
    n2_pool **slot = n2_ctx_pool(ctx);
    if (!*slot) *slot = pool_new(ctx, n2_ctx_threads(ctx) - 1);
    return *slot;
}

n2ce_status n2_parallel_for(n2ce_ctx *ctx, size_t n, n2_item_fn *fn, void *arg) {
    if (n <= 1 || n2_ctx_threads(ctx) == 1) {
        for (size_t i = 0; i < n; i++) fn(arg, i, 0);
        return N2CE_OK;
    }
    n2_pool *pool = pool_of(ctx);
    if (!pool) return N2CE_ENOMEM;
    run_job(pool, n, fn, arg);
    return N2CE_OK;
}

/* An item is not finished before the others have begun, so no thread can take two. */
n2ce_status n2_parallel_together(n2ce_ctx *ctx, int *workers, n2_item_fn *fn, void *arg) {
    n2_pool *pool = *workers > 1 ? pool_of(ctx) : NULL;
    if (*workers > 1 && !pool) return N2CE_ENOMEM;
    if (pool && *workers > pool->n_workers + 1) *workers = pool->n_workers + 1;
    if (*workers == 1)
        fn(arg, 0, 0);
    else
        run_job(pool, (size_t)*workers, fn, arg);
    return N2CE_OK;
}
