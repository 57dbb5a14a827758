/* Arena: many allocations, one free. Blocks grow as needed; what was handed out
 * never moves. Memory is zeroed and aligned for vector loads (64 bytes). */
#ifndef N2_ARENA_H
#define N2_ARENA_H

#include "ctx.h"

#define N2_ALIGN 64

typedef struct n2_arena {
    n2ce_ctx *ctx;
    struct n2_arena_block *newest;
} n2_arena;

n2_arena n2_arena_new(n2ce_ctx *ctx); /* allocates nothing yet */

/* n items of a size, zeroed; NULL (and the error set) if there is no memory. */
void *n2_arena_alloc(n2_arena *arena, size_t n, size_t size);

/* A copy of a string. */
char *n2_arena_strdup(n2_arena *arena, const char *text);

/* A copy of the characters from `from` up to `to`, without blanks at the ends. */
char *n2_arena_trimmed(n2_arena *arena, const char *from, const char *to);

void n2_arena_free(n2_arena *arena); /* the arena is empty and usable again */

#endif
