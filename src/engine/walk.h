/* Running the instructions of a plan: all of them on all threads (n2_walk), or one at a time,
 * which is how watch.c looks at values. */
#ifndef N2_WALK_H
#define N2_WALK_H

#include "plan_data.h"

/* Rows [row0, row0 + rows) of a chunk of a row program. */
typedef struct n2_tile {
    int chunk;
    int64_t row0, rows;
    bool first; /* of its chunk */
} n2_tile;

/* The tile that follows in its chunk; false after the last. Start with rows = 0. */
bool n2_next_tile(const n2_step *s, n2_tile *tile);

void n2_run_on_tile(const n2_plan *p, const n2_step *s, const n2_instruction *i, n2_tile tile,
                    int worker);

/* What an instruction made of a tile. */
n2_view n2_value_on_tile(const n2_plan *p, const n2_step *s, const n2_instruction *i, n2_tile tile,
                         int worker);

/* Where a chunk sums up: the first in the result itself, the others so many bytes apart. */
void *n2_partial_sum(const n2_plan *p, const n2_instruction *i, int chunk);
size_t n2_partial_bytes(const n2_plan *p, const n2_instruction *i);

/* A part of a node that is not computed by rows. Updates may be held back (watch.h). */
void n2_run_whole(const n2_plan *p, const n2_instruction *i, int part, int parts, int worker);

/* Adds the partial sums of an instruction in the order of the chunks: a part of the elements. */
void n2_add_partials(const n2_plan *p, const n2_step *s, const n2_instruction *i, int part,
                     int parts);

/* Everything, on all threads. Fails with N2CE_ENOMEM only. */
n2ce_status n2_walk(n2_plan *p);

/* The same on this thread: how a device's kernels are recorded. */
void n2_walk_alone(n2_plan *p);

#endif
