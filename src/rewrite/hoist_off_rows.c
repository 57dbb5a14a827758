/* Work that does not depend on the row is done on the table, and its rows are gathered after:
 *
 *     f(gather(table, index)) -> gather(f(table), index)
 *
 * for element-wise f of one input and for products with rows of a table. */
#define N2_INSIDE
#include "rewrites.h"

bool n2_is_short_gather(const n2_graph *g, n2_node x) {
    return n2_op_of(g, x) == N2_OP_gather &&
           2 * n2_shape_at(g, n2_input(g, x, 0)).dim[0] <= n2_shape_at(g, x).dim[0];
}

static bool is_unary(n2_op_id op) {
    switch (op) {
#define CASE(name) case N2_OP_##name:
        N2_UNARY_LIST(CASE)
#undef CASE
        return true;
    case N2_OP_detach:
        return true;
    default:
        return false;
    }
}

static n2_node product_with_table(n2_graph *g, const n2_node_data *node, n2_node table) {
    if (node->n_in == 4) return n2_build_linear(g, table, node->in[1], node->in[3]);
    return n2_build_matmul(g, table, node->in[1], false, node->attr->matmul.transpose_b);
}

n2_node n2_hoist_off_rows(n2_graph *g, const n2_node_data *node) {
    const bool unary = is_unary(node->op->id);
    const bool product = node->op->id == N2_OP_matmul && node->shape.rank == 2 &&
                         !node->attr->matmul.transpose_a && !node->in[2].id;
    if ((!unary && !product) || !n2_is_short_gather(g, node->in[0])) return N2_NONE;
    const n2_node table = n2_input(g, node->in[0], 0), index = n2_input(g, node->in[0], 1);
    n2_shape shape = node->shape;
    shape.dim[0] = n2_shape_at(g, table).dim[0];
    const n2_node y = unary ? n2_emit(g, node->op->id, &table, 1, shape, node->attr)
                            : product_with_table(g, node, table);
    return n2_build_gather(g, y, index);
}
