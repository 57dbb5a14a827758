/* Ops that change nothing: x + 0, x - 0, x 1, x / 1, 1 x + 0, and a reshape before a reshape. */
#define N2_INSIDE
#include "rewrites.h"

static bool is(const n2_graph *g, n2_node x, double value) {
    return n2_op_of(g, x) == N2_OP_constant && n2_at(g, x)->attr->value == value;
}

/* A constant is one number, so it never widens the other operand. */
n2_node n2_drop_no_ops(n2_graph *g, const n2_node_data *node) {
    const n2_op_id op = node->op->id;
    const n2_node a = node->in[0], b = node->in[1];
    if (op == N2_OP_affine && node->attr->a == 1 && node->attr->b == 0) return a;
    if ((op == N2_OP_add || op == N2_OP_sub) && is(g, b, 0)) return a;
    if ((op == N2_OP_mul || op == N2_OP_div) && is(g, b, 1)) return a;
    if (op == N2_OP_add && is(g, a, 0)) return b;
    if (op == N2_OP_mul && is(g, a, 1)) return b;
    if (op == N2_OP_reshape && n2_op_of(g, a) == N2_OP_reshape)
        return n2_build_reshape(g, n2_input(g, a, 0), node->shape);
    return N2_NONE;
}
