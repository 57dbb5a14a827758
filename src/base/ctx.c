#include "ctx.h"

#include "memory.h"
#include "pool.h"
#include "processors.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* What lives as long as the context; the block follows. */
typedef struct attached {
    const void *key;
    n2_attached_fn *end;
    struct attached *next;
    max_align_t block[];
} attached;

struct n2ce_ctx {
    n2ce_ctx_options options;
    n2_zeroed_fn *zeroed; /* NULL: blocks of `alloc` are cleared */
    int threads;
    struct n2_pool *pool;
    struct n2_comm *comm;
    pthread_mutex_t lock; /* of the list */
    attached *attached;   /* the last made first */
    atomic_bool cancelled;
    char message[1024];
};

static void *zeroed_memory(void *user, size_t bytes) {
    (void)user;
    return n2_memory_zeroed(bytes);
}

void n2_ctx_set_zeroed(n2ce_ctx *ctx, n2_zeroed_fn *zeroed) { ctx->zeroed = zeroed; }

/* More threads than processors take turns, and each turn costs: results are the same without them.
 * A few are started anyway, for who wants to see threads meet; nothing is asked of the system then,
 * which takes longer than all else that a context needs. */
static int useful_threads(int wanted) {
    enum { A_FEW = 8 };
    if (wanted > 0 && wanted <= A_FEW) return wanted;
    const int processors = n2_processors(), most = processors > A_FEW ? processors : A_FEW;
    return wanted == 0 ? processors : wanted < most ? wanted : most;
}

n2ce_status n2ce_ctx_new(n2ce_ctx **out, const n2ce_ctx_options *options) {
    if (!out) return N2CE_EINVAL;
    *out = NULL;
    n2ce_ctx_options o = N2CE_CTX_OPTIONS_INIT;
    if (options) {
        if (options->struct_size != sizeof o) return N2CE_EINVAL;
        o = *options;
    }
    if (o.threads < 0 || o.threads > 1024) return N2CE_EINVAL;
    if (!o.alloc) o.alloc = n2_memory;
    n2ce_ctx *ctx = o.alloc(o.alloc_user, NULL, sizeof *ctx);
    if (!ctx) return N2CE_ENOMEM;
    memset(ctx, 0, sizeof *ctx);
    ctx->options = o;
    ctx->zeroed = o.alloc == n2_memory ? zeroed_memory : NULL;
    ctx->threads = useful_threads(o.threads);
    atomic_init(&ctx->cancelled, false);
    pthread_mutex_init(&ctx->lock, NULL);
    *out = ctx;
    return N2CE_OK;
}

static void free_attached(n2ce_ctx *ctx) {
    while (ctx->attached) {
        attached *a = ctx->attached;
        ctx->attached = a->next;
        if (a->end) a->end(ctx, a->block);
        n2_free(ctx, a);
    }
}

static void *find_attached(n2ce_ctx *ctx, const void *key) {
    for (attached *a = ctx->attached; a; a = a->next)
        if (a->key == key) return a->block;
    return NULL;
}

static void *attach(n2ce_ctx *ctx, const void *key, size_t bytes, n2_attached_fn *begin,
                    n2_attached_fn *end) {
    attached *a = n2_alloc(ctx, 1, sizeof *a + bytes);
    if (!a) return NULL;
    a->key = key;
    a->end = end;
    a->next = ctx->attached;
    ctx->attached = a;
    if (begin) begin(ctx, a->block);
    return a->block;
}

void *n2_ctx_attached(n2ce_ctx *ctx, const void *key, size_t bytes, n2_attached_fn *begin,
                      n2_attached_fn *end) {
    pthread_mutex_lock(&ctx->lock);
    void *block = find_attached(ctx, key);
    if (!block) block = attach(ctx, key, bytes, begin, end);
    pthread_mutex_unlock(&ctx->lock);
    return block;
}

void n2ce_ctx_free(n2ce_ctx *ctx) {
    if (!ctx) return;
    free_attached(ctx);
    pthread_mutex_destroy(&ctx->lock);
    n2_pool_free(ctx, ctx->pool);
    ctx->options.alloc(ctx->options.alloc_user, ctx, 0);
}

const char *n2ce_errmsg(const n2ce_ctx *ctx) { return ctx ? ctx->message : ""; }

void n2ce_ctx_cancel(n2ce_ctx *ctx) {
    if (!ctx) return;
    atomic_store_explicit(&ctx->cancelled, true, memory_order_relaxed);
}

bool n2_cancelled(const n2ce_ctx *ctx) {
    return atomic_load_explicit(&ctx->cancelled, memory_order_relaxed);
}

void n2_cancel_reset(n2ce_ctx *ctx) {
    atomic_store_explicit(&ctx->cancelled, false, memory_order_relaxed);
}

struct n2_pool **n2_ctx_pool(n2ce_ctx *ctx) {
    return &ctx->pool;
}

struct n2_comm *n2_ctx_comm(const n2ce_ctx *ctx) {
    return ctx->comm;
}
void n2_ctx_set_comm(n2ce_ctx *ctx, struct n2_comm *comm) { ctx->comm = comm; }

int n2_ctx_threads(const n2ce_ctx *ctx) { return ctx->threads; }

static void *no_memory(n2ce_ctx *ctx, size_t n, size_t size) {
    n2_fail(ctx, N2CE_ENOMEM,
            "Out of memory: %zu items of %zu bytes could not be allocated. Use a smaller "
            "problem or a machine with more memory.",
            n, size);
    return NULL;
}

/* Bytes of n items, at least 1; false if they are more than can be counted. */
static bool count_bytes(size_t n, size_t size, size_t *bytes) {
    const bool overflow = __builtin_mul_overflow(n, size, bytes);
    if (*bytes == 0) *bytes = 1;
    return !overflow;
}

void *n2_realloc(n2ce_ctx *ctx, void *ptr, size_t n, size_t size) {
    size_t bytes;
    void *p = NULL;
    if (count_bytes(n, size, &bytes)) p = ctx->options.alloc(ctx->options.alloc_user, ptr, bytes);
    return p ? p : no_memory(ctx, n, size);
}

void *n2_alloc(n2ce_ctx *ctx, size_t n, size_t size) {
    size_t bytes;
    void *p = NULL;
    if (!count_bytes(n, size, &bytes)) return no_memory(ctx, n, size);
    if (ctx->zeroed) {
        p = ctx->zeroed(ctx->options.alloc_user, bytes);
    } else {
        p = ctx->options.alloc(ctx->options.alloc_user, NULL, bytes);
        if (p) memset(p, 0, bytes);
    }
    return p ? p : no_memory(ctx, n, size);
}

void n2_free(n2ce_ctx *ctx, void *ptr) {
    if (ptr) ctx->options.alloc(ctx->options.alloc_user, ptr, 0);
}

n2ce_status n2_fail(n2ce_ctx *ctx, n2ce_status status, const char *format, ...) {
    if (!ctx) return status;
    va_list args;
    va_start(args, format);
    vsnprintf(ctx->message, sizeof ctx->message, format, args);
    va_end(args);
    return status;
}

void n2_log(n2ce_ctx *ctx, n2ce_log_level level, const char *format, ...) {
    if (!ctx || !ctx->options.log) return;
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ctx->options.log(ctx->options.log_user, level, text);
}

void n2_progress(n2ce_ctx *ctx, double done, double total) {
    if (ctx->options.progress) ctx->options.progress(ctx->options.progress_user, done, total);
}
