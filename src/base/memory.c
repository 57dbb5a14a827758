#define _GNU_SOURCE /* mremap, madvise */
#include "memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The address sanitizer sees what the C library hands out, so it gets all of it. */
#if defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#endif

#if defined(__linux__) && !defined(WATCHED)

#include <sys/mman.h>

enum {
    PAGE = 1 << 16, /* or less, on any machine */
    HUGE = 1 << 21,
    LARGE = 4 << 20, /* bytes from which a block has pages of its own */
    GAP = 64         /* before what is handed out: the header, and vectors stay aligned */
};

/* Stands before every block. */
typedef struct header {
    _Alignas(16) size_t size; /* as asked for */
    size_t mapped;            /* bytes of pages of its own, from GAP before the block; or 0 */
} header;

static header *header_of(void *ptr) { return (header *)ptr - 1; }

static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

/* Whole huge pages, unless that would be much more than is wanted. */
static size_t mapped_bytes(size_t size) {
    const size_t bytes = round_up(size + GAP, PAGE), whole = round_up(bytes, HUGE);
    return whole - bytes <= bytes / 16 ? whole : bytes;
}

/* Fresh pages that begin where a huge page may. */
static char *map_pages(size_t bytes) {
    char *p = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    const size_t before = (HUGE - (uintptr_t)p % HUGE) % HUGE;
    if (before > 0) munmap(p, before);
    munmap(p + before + bytes, HUGE - before);
    madvise(p + before, bytes, MADV_HUGEPAGE); /* a wish */
    return p + before;
}

static void *block_in(char *pages, size_t size, size_t mapped) {
    void *block = pages + GAP;
    *header_of(block) = (header){size, mapped};
    return block;
}

static void *new_large(size_t size) {
    if (size > SIZE_MAX / 2) return NULL;
    const size_t bytes = mapped_bytes(size);
    char *pages = map_pages(bytes);
    return pages ? block_in(pages, size, bytes) : NULL;
}

static void *new_block(size_t size, bool zeroed) {
    if (size >= LARGE) return new_large(size);
    header *h = zeroed ? calloc(1, sizeof *h + size) : malloc(sizeof *h + size);
    if (!h) return NULL;
    *h = (header){size, 0};
    return h + 1;
}

static void free_block(void *ptr) {
    header *h = header_of(ptr);
    if (h->mapped > 0)
        munmap((char *)ptr - GAP, h->mapped);
    else
        free(h);
}

/* Pages are moved, not copied. */
static void *resize_pages(void *ptr, size_t size) {
    char *pages = (char *)ptr - GAP;
    const size_t before = header_of(ptr)->mapped, bytes = mapped_bytes(size);
    if (bytes < before) munmap(pages + bytes, before - bytes);
    if (bytes > before) {
        char *larger = map_pages(bytes);
        if (!larger) return NULL;
        if (mremap(pages, before, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, larger) == MAP_FAILED) {
            munmap(larger, bytes);
            return NULL;
        }
        pages = larger;
    }
    return block_in(pages, size, bytes);
}

static void *resize(void *ptr, size_t size) {
    header *h = header_of(ptr);
    if (h->mapped > 0) return size > SIZE_MAX / 2 ? NULL : resize_pages(ptr, size);
    if (size < LARGE) {
        h = realloc(h, sizeof *h + size);
        if (h) h->size = size;
        return h ? h + 1 : NULL;
    }
    void *larger = new_large(size);
    if (!larger) return NULL;
    memcpy(larger, ptr, h->size);
    free(h);
    return larger;
}

void *n2_memory(void *user, void *ptr, size_t size) {
    (void)user;
    if (size > 0) return ptr ? resize(ptr, size) : new_block(size, false);
    if (ptr) free_block(ptr);
    return NULL;
}

void *n2_memory_zeroed(size_t size) { return new_block(size, true); }

#else

void *n2_memory(void *user, void *ptr, size_t size) {
    (void)user;
    if (size > 0) return realloc(ptr, size);
    free(ptr);
    return NULL;
}

void *n2_memory_zeroed(size_t size) { return calloc(1, size); }

#endif
