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

#endif
