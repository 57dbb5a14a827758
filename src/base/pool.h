/* Worker threads of a context: the one way to use them at once, and the one to use them meanwhile.
 *
 * Work is split into items by the caller, never by the number of threads; an
 * item writes only what belongs to it. So results do not depend on how many
 * threads there are or on who ran what. */
#ifndef N2_POOL_H
#define N2_POOL_H

#include "ctx.h"

typedef struct n2_pool n2_pool;

/* Runs one item. `worker` is in [0, n2_ctx_threads) and no two items with the
 * same worker run at once: use it to pick scratch memory, not to decide
 * anything. */
typedef void n2_item_fn(void *arg, size_t item, int worker);

/* Calls fn for items 0 .. n-1, in any order, on all threads of the context, and
 * returns when all are done. The caller's thread works too. Not to be called
 * from inside an item. If threads cannot be started it warns and goes on with
 * those it has. Fails with N2CE_ENOMEM only. */
n2ce_status n2_parallel_for(n2ce_ctx *ctx, size_t n, n2_item_fn *fn, void *arg);

/* Work whose parts follow one another: the items of a phase are begun when those of the phase
 * before are all done, and see what they wrote.
 *
 * `open` says how many items a phase has; it is called once for each phase, when the one before is
 * done, by one thread at a time, and may do what is to be done in between. */
typedef struct n2_phases {
    size_t n;
    size_t (*open)(void *arg, size_t phase);
    void (*run)(void *arg, size_t phase, size_t item, int worker);
    void *arg;
} n2_phases;

/* Runs phases 0 .. n-1, as n2_parallel_for does items. A phase of one item costs nothing to hand
 * out: who did the last item before it does it. */
n2ce_status n2_parallel_phases(n2ce_ctx *ctx, const n2_phases *phases);

/* Begins a job in the background and returns: workers do items 0 .. n-1 of it, in any order, while
 * there is nothing else for them to do, and the caller goes on. n2_parallel_for, called meanwhile,
 * comes first: a worker joins it after the item it is at, and nobody waits for that. Workers are
 * told apart within a job: what is in front shares no scratch memory with what is in the
 * background.
 *
 * There is one such job at a time; another one that is still there is ended first. Fails with
 * N2CE_ENOMEM only, and nothing is run then. */
n2ce_status n2_background_begin(n2ce_ctx *ctx, size_t n, n2_item_fn *fn, void *arg);

/* Does with the workers what is left of the job in the background, all of it if there are none,
 * and returns when nobody uses its arg any more; at once if there is no job. To be called before
 * arg goes and before the context is freed. */
void n2_background_end(n2ce_ctx *ctx);

/* The same without what nobody has begun: for work that is of no use any more. */
void n2_background_drop(n2ce_ctx *ctx);

void n2_pool_free(n2ce_ctx *ctx, n2_pool *pool); /* NULL is fine */

#endif
