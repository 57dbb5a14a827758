/* How much of attention is a product at a time. */
#ifndef N2_CPU_ATTENTION_BLOCKS_H
#define N2_CPU_ATTENTION_BLOCKS_H

#include "engine/kernel.h"

/* Weights of so many queries lie in scratch memory at a time, by blocks of so many keys. */
enum { N2_QUERIES = 96, N2_KEYS = 64 };

/* Of a strip: the queries' weights for all keys. */
static inline int64_t n2_strip_size(const n2_attention *a) {
    const int64_t rows = a->t < N2_QUERIES ? a->t : N2_QUERIES;
    return rows * ((a->t + N2_KEYS - 1) / N2_KEYS * N2_KEYS);
}

/* Of some queries, with all their channels of one head. */
static inline int64_t n2_queries_size(const n2_attention *a) {
    return (a->t < N2_QUERIES ? a->t : N2_QUERIES) * a->d;
}

/* Keys, turned, and values; a strip; the queries' results. */
static inline int64_t n2_attention_scratch(const n2_call *c) {
    const n2_attention a = n2_attention_of(c);
    return 2 * a.t * a.d + n2_strip_size(&a) + n2_queries_size(&a);
}

/* Keys, also turned, values turned, gradients of both; weights and their gradients; queries, dy and
 * gradients of queries. */
static inline int64_t n2_attention_grad_scratch(const n2_call *c) {
    const n2_attention a = n2_attention_of(c);
    return 5 * a.t * a.d + 2 * n2_strip_size(&a) + 3 * n2_queries_size(&a);
}

#endif
