/* The allocator of a context that brings none: the C library's, except that large blocks are pages
 * of their own. Those are asked to be huge pages (Linux), since touching a table of a few hundred
 * megabytes for the first time costs more than filling it if it goes by 4 KiB; and they come from
 * the system as zeros, which need not be written once more: so it is the threads that fill a block
 * that touch it first. */
#ifndef N2_MEMORY_H
#define N2_MEMORY_H

#include <stddef.h>

/* An n2ce_alloc_fn; `user` is not used. */
void *n2_memory(void *user, void *ptr, size_t size);

/* A block of n2_memory, at least 1 byte, of zeros; NULL if there is none. */
void *n2_memory_zeroed(size_t size);

#endif
