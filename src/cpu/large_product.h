/* Products of long rows, and the scratch memory they want. */
#ifndef N2_CPU_LARGE_PRODUCT_H
#define N2_CPU_LARGE_PRODUCT_H

#include "engine/kernel.h"

/* A product whose rows are long: slices of them, of so many rows at a time, and panels of the other
 * factor are laid together in scratch memory, lest they compete for the cache. */
enum { N2_BLOCK_ROWS = 192, N2_BLOCK_DEPTH = 256, N2_BLOCK_COLUMNS = 32, N2_LONG_ROW = 512 };

static inline bool n2_is_large(const n2_product *p) {
    const bool is_long = p->k > N2_LONG_ROW || p->n > N2_LONG_ROW;
    return p->batches == 1 && p->m >= 32 && p->n >= 32 &&
           (is_long || (p->ta && p->m > N2_LONG_ROW));
}

static inline int64_t n2_matmul_scratch(const n2_call *c) {
    const n2_product p = n2_product_of(c);
    return n2_is_large(&p) ? N2_BLOCK_DEPTH * (N2_BLOCK_ROWS + N2_BLOCK_COLUMNS) : 0;
}

#endif
