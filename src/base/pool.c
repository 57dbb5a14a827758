/* A job has phases, a phase has items. Threads take items by counting down how many are left, and
 * who finishes the last item of a phase opens the next one: a job goes on as long as one thread
 * does, and nobody waits for a thread that has no item, be it asleep, at other work, or not
 * scheduled by the system.
 *
 * A thread looks at a job only while it has an item of it, for the job cannot end before. So the
 * memory of a job is its caller's again when the call returns, and a thread that comes late finds
 * nothing left, or an item of the next job, which is as good.
 *
 * Who finds no item looks again for a few microseconds, since the next phase is often that near,
 * and then sleeps. Of the two jobs there can be, one in front and one in the background, workers
 * prefer the one in front, and look for it after each item of the other. */
#include "pool.h"

#include "clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#define PATIENCE 20e-6 /* seconds before a thread without an item sleeps */

enum { LINE = 128 }; /* bytes that go from processor to processor together */

typedef struct worker {
    n2_pool *pool;
    int index;
    pthread_t thread;
} worker;

/* What is not atomic is written while nobody has an item. */
typedef struct job {
    n2_phases phases;
    size_t phase, n; /* the phase that is open, and its items */
    char gap1[LINE];
    atomic_size_t left; /* items that nobody took */
    char gap2[LINE];
    atomic_size_t unfinished; /* items */
    atomic_bool over;
    char gap3[LINE];
} job;

/* A job of one phase. */
typedef struct loop {
    size_t n;
    n2_item_fn *fn;
    void *arg;
} loop;

struct n2_pool {
    job front, back;
    loop back_loop;
    atomic_int asleep; /* workers */
    atomic_bool caller_asleep, closing;
    pthread_mutex_t lock; /* of falling asleep and waking */
    pthread_cond_t wake, wake_caller;
    unsigned forks; /* when it was made: a child has the memory of a pool and not its threads */
    int n_workers;  /* besides the caller's thread */
    worker workers[];
};

/* ---- forks --------------------------------------------------------------- */

/* How often a process of our line was forked. */
static atomic_uint forks;

static void count_fork(void) { atomic_fetch_add(&forks, 1); }

static void count_forks(void) { pthread_atfork(NULL, NULL, count_fork); }

static bool is_of_parent(const n2_pool *pool) { return pool->forks != atomic_load(&forks); }

/* ---- falling asleep and waking ------------------------------------------- */

/* Who falls asleep says so and then looks for items; who offers items does so and then looks for
 * sleepers. One of them sees the other. */

static bool has_items(job *j) { return atomic_load(&j->left) > 0; }

static void wake_for(n2_pool *pool, size_t items) {
    const int asleep = atomic_load(&pool->asleep);
    const bool caller_asleep = atomic_load(&pool->caller_asleep);
    if (asleep == 0 && !caller_asleep) return;
    pthread_mutex_lock(&pool->lock);
    if (caller_asleep) pthread_cond_signal(&pool->wake_caller);
    for (size_t k = 0; k < items && k < (size_t)asleep; k++) pthread_cond_signal(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

static void sleep_until_needed(n2_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->asleep, 1);
    while (!has_items(&pool->front) && !has_items(&pool->back) && !atomic_load(&pool->closing))
        pthread_cond_wait(&pool->wake, &pool->lock);
    atomic_fetch_sub(&pool->asleep, 1);
    pthread_mutex_unlock(&pool->lock);
}

static bool caller_is_needed(job *j) { return has_items(j) || atomic_load(&j->over); }

static void sleep_as_caller(n2_pool *pool, job *j) {
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->caller_asleep, true);
    while (!caller_is_needed(j)) pthread_cond_wait(&pool->wake_caller, &pool->lock);
    atomic_store(&pool->caller_asleep, false);
    pthread_mutex_unlock(&pool->lock);
}

/* Whether the job wants somebody within a few microseconds. */
static bool look_for(job *j, bool (*is_wanted)(job *j)) {
    const double start = n2_seconds();
    do {
        for (int i = 0; i < 8; i++, n2_relax())
            if (is_wanted(j)) return true;
    } while (n2_seconds() - start < PATIENCE);
    return false;
}

/* ---- items and phases ---------------------------------------------------- */

static void offer(job *j, size_t phase, size_t n) {
    j->phase = phase;
    j->n = n;
    atomic_store_explicit(&j->unfinished, n, memory_order_relaxed);
    atomic_store(&j->left, n);
}

/* Opens the first phase from `phase` on that is worth offering; what has a single item is done
 * on the way. */
static void open_from(n2_pool *pool, job *j, size_t phase, int index) {
    for (; phase < j->phases.n; phase++) {
        const size_t n = j->phases.open(j->phases.arg, phase);
        if (n > 1) {
            offer(j, phase, n);
            wake_for(pool, n - 1);
            return;
        }
        if (n == 1) j->phases.run(j->phases.arg, phase, 0, index);
    }
    atomic_store(&j->over, true);
    wake_for(pool, 0);
}

/* Counts n items as finished. */
static void finish_items(n2_pool *pool, job *j, size_t n, int index) {
    if (atomic_fetch_sub_explicit(&j->unfinished, n, memory_order_acq_rel) == n)
        open_from(pool, j, j->phase + 1, index);
}

/* False if no item is left. */
static bool run_item(n2_pool *pool, job *j, int index) {
    size_t left = atomic_load_explicit(&j->left, memory_order_relaxed);
    do {
        if (left == 0) return false;
    } while (!atomic_compare_exchange_weak_explicit(&j->left, &left, left - 1, memory_order_acquire,
                                                    memory_order_relaxed));
    j->phases.run(j->phases.arg, j->phase, j->n - left, index);
    finish_items(pool, j, 1, index);
    return true;
}

static void *work(void *arg) {
    const worker *self = arg;
    n2_pool *pool = self->pool;
    bool was_in_front = false;
    while (!atomic_load(&pool->closing)) {
        if (run_item(pool, &pool->front, self->index)) {
            was_in_front = true;
            continue;
        }
        if (was_in_front && look_for(&pool->front, has_items)) continue;
        was_in_front = false;
        if (!run_item(pool, &pool->back, self->index)) sleep_until_needed(pool);
    }
    return NULL;
}

/* Takes part until the job is over. */
static void see_through(n2_pool *pool, job *j) {
    while (!atomic_load(&j->over))
        if (!run_item(pool, j, 0) && !look_for(j, caller_is_needed)) sleep_as_caller(pool, j);
}

/* ---- the pool ------------------------------------------------------------ */

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
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, count_forks);
    n2_pool *pool = n2_alloc(ctx, 1, sizeof *pool + (size_t)wanted * sizeof(worker));
    if (!pool) return NULL;
    pool->forks = atomic_load(&forks);
    atomic_init(&pool->front.over, true);
    atomic_init(&pool->back.over, true);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->wake_caller, NULL);
    start_workers(ctx, pool, wanted);
    return pool;
}

static void end_workers(n2_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->closing, true);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->n_workers; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->wake_caller);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
}

/* A child has nobody to join, and a lock that a thread of its parent may have held for ever. */
void n2_pool_free(n2ce_ctx *ctx, n2_pool *pool) {
    if (pool && !is_of_parent(pool)) end_workers(pool);
    n2_free(ctx, pool);
}

/* What was running in the background when the process was forked is not finished in the child. */
static n2_pool *pool_if_any(n2ce_ctx *ctx) {
    n2_pool **slot = n2_ctx_pool(ctx);
    if (*slot && is_of_parent(*slot)) {
        n2_pool_free(ctx, *slot);
        *slot = NULL;
    }
    return *slot;
}

/* The context's pool, made when it is first needed; NULL without memory. */
static n2_pool *pool_of(n2ce_ctx *ctx) {
    n2_pool **slot = n2_ctx_pool(ctx);
    if (pool_if_any(ctx)) return *slot;
    *slot = pool_new(ctx, n2_ctx_threads(ctx) - 1);
    return *slot;
}

/* ---- jobs ---------------------------------------------------------------- */

static void run_alone(const n2_phases *phases) {
    for (size_t phase = 0; phase < phases->n; phase++) {
        const size_t n = phases->open(phases->arg, phase);
        for (size_t i = 0; i < n; i++) phases->run(phases->arg, phase, i, 0);
    }
}

n2ce_status n2_parallel_phases(n2ce_ctx *ctx, const n2_phases *phases) {
    n2_pool *pool = n2_ctx_threads(ctx) > 1 ? pool_of(ctx) : NULL;
    if (!pool && n2_ctx_threads(ctx) > 1) return N2CE_ENOMEM;
    if (!pool) {
        run_alone(phases);
        return N2CE_OK;
    }
    pool->front.phases = *phases;
    atomic_store(&pool->front.over, false);
    open_from(pool, &pool->front, 0, 0);
    see_through(pool, &pool->front);
    return N2CE_OK;
}

static size_t open_loop(void *arg, size_t phase) {
    (void)phase;
    return ((const loop *)arg)->n;
}

static void run_loop(void *arg, size_t phase, size_t item, int index) {
    const loop *l = arg;
    (void)phase;
    l->fn(l->arg, item, index);
}

n2ce_status n2_parallel_for(n2ce_ctx *ctx, size_t n, n2_item_fn *fn, void *arg) {
    loop l = {n, fn, arg};
    const n2_phases phases = {1, open_loop, run_loop, &l};
    if (n > 1) return n2_parallel_phases(ctx, &phases);
    run_alone(&phases);
    return N2CE_OK;
}

/* ---- the background ------------------------------------------------------ */

n2ce_status n2_background_begin(n2ce_ctx *ctx, size_t n, n2_item_fn *fn, void *arg) {
    n2_pool *pool = pool_of(ctx);
    if (!pool) return N2CE_ENOMEM;
    see_through(pool, &pool->back);
    pool->back_loop = (loop){n, fn, arg};
    pool->back.phases = (n2_phases){1, open_loop, run_loop, &pool->back_loop};
    atomic_store(&pool->back.over, n == 0);
    offer(&pool->back, 0, n);
    wake_for(pool, n);
    return N2CE_OK;
}

void n2_background_end(n2ce_ctx *ctx) {
    n2_pool *pool = pool_if_any(ctx);
    if (pool) see_through(pool, &pool->back);
}

void n2_background_drop(n2ce_ctx *ctx) {
    n2_pool *pool = pool_if_any(ctx);
    if (!pool) return;
    const size_t dropped = atomic_exchange(&pool->back.left, 0);
    if (dropped > 0) finish_items(pool, &pool->back, dropped, 0);
    see_through(pool, &pool->back);
}
