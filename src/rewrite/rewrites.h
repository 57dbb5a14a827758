/* Rewrites of graphs: the same numbers with less work, for every backend.
 *
 * A rewrite of one node sees a node that is about to be built and may build something else
 * instead, with the builders of graph.h. So it happens before differentiation, and the backward
 * pass is short too. A fusion sees a node of a plan and says that the kernel which makes one of
 * its inputs can do it on the way out; the plan knows whether memory allows it.
 *
 * rewrites.c lists them in order. Each is a file named by what it does, with a test of its own in
 * tests/unit/test_rewrite.c. */
#ifndef N2_REWRITES_H
#define N2_REWRITES_H

#include "engine/graph.h"

/* A graph that is rewritten while it is built; NULL: out of memory. */
n2_graph *n2_graph_new(n2_store *store);

n2_rewrite n2_fold_constants;          /* 2 + 3 -> 5 */
n2_rewrite n2_drop_no_ops;             /* x + 0 -> x; a reshape of a reshape is one */
n2_rewrite n2_hoist_off_rows;          /* f(gather(table)) -> gather(f(table)) */
n2_rewrite n2_split_concats;           /* [a b] [c; d] -> a c + b d, if a or b is gathered */
n2_rewrite n2_multiply_whole_pictures; /* a kernel that covers the picture */
n2_rewrite n2_pack_transposed;         /* x W': W transposed once, beside W */
n2_fuse n2_fuse_epilogue;              /* a sum, or a LeakyReLU's gate, of a product */

/* Rows are picked from a table with at most half as many. */
bool n2_is_short_gather(const n2_graph *g, n2_node x);

#endif
