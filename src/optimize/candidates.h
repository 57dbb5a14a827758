/* What an engineer ranks: designs by chance, and the best ones changed a little.
 *
 * A change leaves a number as it is with probability 0.6, and else adds a normal of `size` times
 * the range of the data; a category is drawn anew with probability `size`. Designs stay in the
 * range of the data. */
#ifndef N2_CANDIDATES_H
#define N2_CANDIDATES_H

#include "base/arena.h"
#include "design/design.h"

enum { N2_CANDIDATES = 40000 };

/* Scores rows of designs; the more the better. */
typedef n2ce_status n2_rank_fn(void *user, const double *x, size_t rows, double *score);

typedef struct n2_candidates {
    const n2_designs *offline;
    n2_arena *arena;
    uint64_t seed;
    uint32_t draws; /* streams that were used */
    n2_space space; /* within the range of the data */
    double *x, *score;
    size_t rows, room;
    size_t *order;
} n2_candidates;

/* 20,000 designs by chance in the range of the data, and 20,000 changes, of size 0.15, of the best
 * 256 offline. All memory is the arena's. */
n2ce_status n2_candidates_first(n2_arena *arena, const n2_designs *offline, uint64_t seed,
                                n2_candidates *out);

/* Scores all, and puts the best first. */
n2ce_status n2_candidates_rank(n2_candidates *c, n2_rank_fn *rank, void *user);

/* Of ranked ones the best `kept` stay, and `more` changes of them come. */
n2ce_status n2_candidates_renew(n2_candidates *c, size_t kept, size_t more, double size);

/* Of ranked ones the best that differ, and where they are too few, the best again. */
n2ce_status n2_candidates_propose(n2_candidates *c, n2_proposals *out);

#endif
