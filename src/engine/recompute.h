/* Cheap values are made again where a gradient needs them, instead of being kept: a norm with its
 * activation, an element-wise op, pictures of another size, a dropout's mask, if what they are made
 * from is kept anyway. The numbers are the same to the bit; memory falls, by up to a half in
 * networks of convolutions and norms, and a run does a little more. */
#ifndef N2_RECOMPUTE_H
#define N2_RECOMPUTE_H

#include "graph.h"

/* A copy of a graph in which gradients read cheap values that were made again, by nodes with
 * `again` set; *n becomes their number. renamed[id], for ids 1 .. size, is a node's id in the copy.
 * The original must outlive it. NULL: out of memory. */
n2_graph *n2_graph_recomputed(const n2_graph *g, uint32_t *renamed, size_t *n);

#endif
