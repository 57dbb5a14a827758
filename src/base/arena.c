#include "arena.h"

#include <ctype.h>
#include <string.h>

/* A block is a header followed by its bytes, which are zeros until they are handed out; blocks form
 * a list, newest first. */
struct n2_arena_block {
    struct n2_arena_block *older;
    unsigned char *next, *end;
};

enum { BLOCK_BYTES = 1 << 14 };

n2_arena n2_arena_new(n2ce_ctx *ctx) { return (n2_arena){.ctx = ctx, .newest = NULL}; }

static unsigned char *align_up(unsigned char *p) {
    const size_t misfit = (uintptr_t)p % N2_ALIGN;
    return misfit ? p + (N2_ALIGN - misfit) : p;
}

static bool has_room(const struct n2_arena_block *b, size_t bytes) {
    return b && b->next <= b->end && (size_t)(b->end - b->next) >= bytes;
}

static bool add_block(n2_arena *arena, size_t bytes) {
    const size_t room = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    struct n2_arena_block *b = n2_alloc(arena->ctx, 1, sizeof *b + N2_ALIGN + room);
    if (!b) return false;
    b->older = arena->newest;
    b->next = align_up((unsigned char *)(b + 1));
    b->end = (unsigned char *)(b + 1) + N2_ALIGN + room;
    arena->newest = b;
    return true;
}

void *n2_arena_alloc(n2_arena *arena, size_t n, size_t size) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2) {
        n2_fail(arena->ctx, N2CE_ENOMEM, "Out of memory: %zu items of %zu bytes are too many.", n,
                size);
        return NULL;
    }
    if (!has_room(arena->newest, bytes) && !add_block(arena, bytes)) return NULL;
    struct n2_arena_block *b = arena->newest;
    void *p = b->next;
    b->next = align_up(b->next + bytes);
    return p;
}

char *n2_arena_strdup(n2_arena *arena, const char *text) {
    const size_t n = strlen(text) + 1;
    char *copy = n2_arena_alloc(arena, n, 1);
    if (copy) memcpy(copy, text, n);
    return copy;
}

char *n2_arena_trimmed(n2_arena *arena, const char *from, const char *to) {
    while (from < to && isspace((unsigned char)*from)) from++;
    while (to > from && isspace((unsigned char)to[-1])) to--;
    const size_t n = (size_t)(to - from);
    char *copy = n2_arena_alloc(arena, n + 1, 1);
    if (copy) memcpy(copy, from, n);
    return copy;
}

void n2_arena_free(n2_arena *arena) {
    while (arena->newest) {
        struct n2_arena_block *older = arena->newest->older;
        n2_free(arena->ctx, arena->newest);
        arena->newest = older;
    }
}
