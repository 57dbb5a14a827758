/* Threads sleep on a condition variable while there is nothing to do. A job is published under the
 * lock and open as long as it has items that nobody took; who finds it open enters, takes items by
 * an atomic counter and leaves. Its caller takes items too, until it is closed, and then waits for
 * those who are still inside, not for others: they find it closed. Of the two jobs there can be,
 * one in front and one in the background, workers prefer the one in front, and look for it after
 * each item of the other. */
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

typedef struct job {
    n2_item_fn *fn;
    void *arg;
    size_t n;
    atomic_size_t next; /* item that nobody took yet; from n on the job is closed */
    int inside;         /* workers */
} job;

struct n2_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    bool closing;
    job front, back;
    int n_workers; /* besides the caller's thread */
    worker workers[];
};

/* False if all items are taken. */
static bool run_item(job *j, int index) {
    const size_t item = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
    if (item >= j->n) return false;
    j->fn(j->arg, item, index);
    return true;
}

static void drain(job *j, int index) {
    while (run_item(j, index)) continue;
}

static bool is_open(const job *j) {
    return atomic_load_explicit(&j->next, memory_order_relaxed) < j->n;
}

/* Enters a job, and leaves it with the lock held again. */
static void help(n2_pool *pool, job *j, int index) {
    j->inside++;
    pthread_mutex_unlock(&pool->lock);
    if (j == &pool->front)
        drain(j, index);
    else
        run_item(j, index);
    pthread_mutex_lock(&pool->lock);
    if (--j->inside == 0) pthread_cond_signal(&pool->done);
}

static void *work(void *arg) {
    worker *self = arg;
    n2_pool *pool = self->pool;
    pthread_mutex_lock(&pool->lock);
    while (!pool->closing) {
        if (is_open(&pool->front))
            help(pool, &pool->front, self->index);
        else if (is_open(&pool->back))
            help(pool, &pool->back, self->index);
        else
            pthread_cond_wait(&pool->wake, &pool->lock);
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

static void publish(n2_pool *pool, job *j, size_t n, n2_item_fn *fn, void *arg) {
    pthread_mutex_lock(&pool->lock);
    j->fn = fn;
    j->arg = arg;
    j->n = n;
    atomic_store_explicit(&j->next, 0, memory_order_relaxed);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

/* Takes part until the job is closed and everybody has left it. */
static void finish(n2_pool *pool, job *j) {
    drain(j, 0);
    pthread_mutex_lock(&pool->lock);
    while (j->inside > 0) pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static void run_job(n2_pool *pool, size_t n, n2_item_fn *fn, void *arg) {
    publish(pool, &pool->front, n, fn, arg);
    finish(pool, &pool->front);
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

n2ce_status n2_background_begin(n2ce_ctx *ctx, size_t n, n2_item_fn *fn, void *arg) {
    n2_pool *pool = pool_of(ctx);
    if (!pool) return N2CE_ENOMEM;
    finish(pool, &pool->back);
    publish(pool, &pool->back, n, fn, arg);
    return N2CE_OK;
}

void n2_background_end(n2ce_ctx *ctx) {
    n2_pool *pool = *n2_ctx_pool(ctx);
    if (pool) finish(pool, &pool->back);
}

void n2_background_drop(n2ce_ctx *ctx) {
    n2_pool *pool = *n2_ctx_pool(ctx);
    if (!pool) return;
    pthread_mutex_lock(&pool->lock); /* nobody enters meanwhile */
    atomic_store_explicit(&pool->back.next, pool->back.n, memory_order_relaxed);
    pthread_mutex_unlock(&pool->lock);
    finish(pool, &pool->back);
}
