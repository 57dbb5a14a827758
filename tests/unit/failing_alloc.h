/* An allocator that counts, that fills new memory with rubbish, and that can be told to fail. */
#ifndef TEST_FAILING_ALLOC_H
#define TEST_FAILING_ALLOC_H

#include "n2ce.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NEVER SIZE_MAX

typedef struct failing_alloc {
    size_t calls;     /* requests for memory so far, frees not counted */
    size_t fail_at;   /* this request fails (the first is 0), or NEVER */
    bool and_after;   /* and every later one too */
    long live;        /* blocks not freed */
    size_t strangers; /* calls from another thread than `owner` */
    pthread_t owner;
} failing_alloc;

static inline failing_alloc failing_alloc_new(size_t fail_at, bool and_after) {
    return (failing_alloc){.fail_at = fail_at, .and_after = and_after, .owner = pthread_self()};
}

static inline void *failing_alloc_hook(void *user, void *ptr, size_t size) {
    failing_alloc *a = user;
    a->strangers += !pthread_equal(a->owner, pthread_self());
    if (size == 0) {
        a->live -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    const size_t call = a->calls++;
    if (call == a->fail_at || (a->and_after && call > a->fail_at)) return NULL;
    void *p = realloc(ptr, size);
    if (!p || ptr) return p;
    a->live++;
    return memset(p, 0xa5, size); /* new memory is never zero by luck */
}

/* Context options that allocate here. */
static inline n2ce_ctx_options failing_alloc_options(failing_alloc *a, int threads) {
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = threads;
    options.alloc = failing_alloc_hook;
    options.alloc_user = a;
    return options;
}

/* A life from a context's beginning to its end, with this memory. */
typedef n2ce_status whole_life_fn(failing_alloc *memory);

/* After the n-th request the next one that fails, n + 1 and a `part`-th of n (0: none). Under
 * ThreadSanitizer, to which lives of one thread have nothing to tell, there are fewer. */
static inline size_t next_failure(size_t n, size_t part) {
#ifdef __SANITIZE_THREAD__
    part = part && part < 16 ? part : 16;
#endif
    return n + 1 + (part ? n / part : 0);
}

/* Lives it again and again, the n-th request failing, for n from 0 on in steps that grow by a
 * `part`-th (0: every n): each is N2CE_ENOMEM without a leak, until there is memory enough. Returns
 * how many failed; -1: something else became of one. */
static inline int live_without_memory(whole_life_fn *life, size_t part) {
    int failures = 0;
    for (size_t n = 0;; n = next_failure(n, part)) {
        failing_alloc memory = failing_alloc_new(n, false);
        const n2ce_status status = life(&memory);
        const bool had_enough = memory.calls <= n;
        if (memory.live != 0 || (status != N2CE_OK && status != N2CE_ENOMEM)) return -1;
        if (had_enough) return status == N2CE_OK ? failures : -1;
        failures += status == N2CE_ENOMEM;
    }
}

#endif
