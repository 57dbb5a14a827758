/* The context: what every room needs and nothing else. Memory, the last error,
 * log, progress, cancellation. Threads are in pool.h.
 *
 * Every allocation of the library goes through n2_alloc and friends, so a test
 * can make the n-th one fail and see that nothing leaks. */
#ifndef N2_CTX_H
#define N2_CTX_H

#include "n2ce.h"

#include <stdarg.h>

struct n2_pool;
struct n2_comm;

#if defined(__GNUC__)
#define N2_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define N2_PRINTF(at, first)
#endif

/* Leaves the function with the status of a failed call. */
#define N2_TRY(call)                                    \
    do {                                                \
        const n2ce_status try_status_ = (call);         \
        if (try_status_ != N2CE_OK) return try_status_; \
    } while (0)

/* Memory for n items of a size, zeroed; NULL (and the error set) if there is
 * none or if n * size overflows. n = 0 gives a valid pointer. */
void *n2_alloc(n2ce_ctx *ctx, size_t n, size_t size);

/* Where such zeros come from, if not by clearing what the context's allocator gives: n2_alloc of
 * another context, say, whose fresh pages are zeros already. `user` is the allocator's, which must
 * be able to resize and free them. */
typedef void *n2_zeroed_fn(void *user, size_t bytes);
void n2_ctx_set_zeroed(n2ce_ctx *ctx, n2_zeroed_fn *zeroed);

/* As realloc for n items; the old block stays valid on failure. */
void *n2_realloc(n2ce_ctx *ctx, void *ptr, size_t n, size_t size);

void n2_free(n2ce_ctx *ctx, void *ptr); /* NULL is fine */

/* Stores the message and returns the status, so that a failure reads
 *     return n2_fail(ctx, N2CE_EINVAL, "M is %g; ...", M);
 * ctx may be NULL: then only the status travels. */
n2ce_status n2_fail(n2ce_ctx *ctx, n2ce_status status, const char *format, ...) N2_PRINTF(3, 4);

/* What public functions say of NULL where it may not be. */
#define N2_NULL_ARGUMENT "An argument is NULL."

void n2_log(n2ce_ctx *ctx, n2ce_log_level level, const char *format, ...) N2_PRINTF(3, 4);

/* Reports progress; throttling is the caller's business. */
void n2_progress(n2ce_ctx *ctx, double done, double total);

bool n2_cancelled(const n2ce_ctx *ctx);
void n2_cancel_reset(n2ce_ctx *ctx);

/* Zeroed memory that lives as long as the context, one block for each key (an address of the
 * caller's): GPUs that a context has opened, say. The first who asks makes it, whichever thread
 * that is, and `begin` may prepare it; `end` is called when the context is freed. Either may be
 * NULL. Returns NULL if memory is short. */
typedef void n2_attached_fn(n2ce_ctx *ctx, void *block);
void *n2_ctx_attached(n2ce_ctx *ctx, const void *key, size_t bytes, n2_attached_fn *begin,
                      n2_attached_fn *end);

/* The worker pool of this context, made on first use (pool.c). */
struct n2_pool **n2_ctx_pool(n2ce_ctx *ctx);
int n2_ctx_threads(const n2ce_ctx *ctx); /* resolved, at least 1 */

/* What it knows of other processes (src/comm); NULL: there are none. */
struct n2_comm *n2_ctx_comm(const n2ce_ctx *ctx);
void n2_ctx_set_comm(n2ce_ctx *ctx, struct n2_comm *comm);

#endif
