#include "rewrites.h"

/* A node goes to the first that wants it. */
static n2_rewrite *const of_nodes[] = {
    n2_fold_constants, /* before others look at what is not there in the end */
    n2_drop_no_ops,    /* likewise */
    n2_hoist_off_rows, /* the stage half of a ratio network costs 7 rows, not 12,800 */
    n2_split_concats,  /* makes products that can be hoisted */
    n2_multiply_whole_pictures,
    n2_pack_transposed, /* last: of products that stay */
    NULL};

n2_graph *n2_graph_new(n2_store *store) {
    static const n2_rewrites all = {.of_nodes = of_nodes, .fuse = n2_fuse_epilogue};
    return n2_graph_with(store, &all);
}
