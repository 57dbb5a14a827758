/* Worker threads of a context, and the one way to use them.
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

/* Calls fn for items 0 .. *workers - 1, each on a thread of its own and all at the
 * same time, so that they may wait for one another. *workers comes in as what memory was
 * prepared for and goes out as how many there are (fewer if threads could not be
 * started). Fails with N2CE_ENOMEM only. */
n2ce_status n2_parallel_together(n2ce_ctx *ctx, int *workers, n2_item_fn *fn, void *arg);

void n2_pool_free(n2ce_ctx *ctx, n2_pool *pool); /* NULL is fine */

#endif
