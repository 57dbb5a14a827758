/* A concatenation of columns one part of which is gathered is not made where its parts can be
 * worked on by themselves:
 *
 *     [a c] [b; d]     -> a b + c d
 *     lrelu([a c])     -> [lrelu(a) lrelu(c)], so that a product behind it sees the parts */
#define N2_INSIDE
#include "rewrites.h"

static bool is_pair(const n2_graph *g, n2_node x) {
    return n2_op_of(g, x) == N2_OP_concat && n2_at(g, x)->n_in == 2;
}

/* The bias goes with a gathered part, where there are fewer rows to add it to. */
static n2_node part(n2_graph *g, n2_node x, n2_node b, bool tb, n2_node bias) {
    return bias.id ? n2_build_linear(g, x, b, bias) : n2_build_matmul(g, x, b, false, tb);
}

static n2_node split_product(n2_graph *g, const n2_node_data *node) {
    const n2_node x = node->in[0], b = node->in[1];
    const n2_node left = n2_input(g, x, 0), right = n2_input(g, x, 1);
    const bool tb = node->attr->matmul.transpose_b, on_right = n2_is_short_gather(g, right);
    if (n2_at(g, x)->attr->along.axis != 1 || !(on_right || n2_is_short_gather(g, left)))
        return N2_NONE;
    const int64_t kl = n2_shape_at(g, left).dim[1], kr = n2_shape_at(g, right).dim[1];
    const n2_node bias = node->n_in == 4 ? node->in[3] : N2_NONE;
    const n2_node bl = n2_build_slice(g, b, tb, 0, kl), br = n2_build_slice(g, b, tb, kl, kr);
    const n2_node l = part(g, left, bl, tb, on_right ? N2_NONE : bias);
    return n2_build_binary(g, N2_OP_add, l, part(g, right, br, tb, on_right ? bias : N2_NONE), 0);
}

static n2_node split_lrelu(n2_graph *g, const n2_node_data *node) {
    const n2_node x = node->in[0];
    const double slope = node->attr->a;
    const n2_node left = n2_build_unary(g, N2_OP_lrelu, n2_input(g, x, 0), slope, 0);
    const n2_node right = n2_build_unary(g, N2_OP_lrelu, n2_input(g, x, 1), slope, 0);
    return n2_build_concat(g, left, right, (int)n2_at(g, x)->attr->along.axis);
}

n2_node n2_split_concats(n2_graph *g, const n2_node_data *node) {
    if (node->n_in < 1 || !is_pair(g, node->in[0])) return N2_NONE;
    const bool product = node->op->id == N2_OP_matmul && node->shape.rank == 2 &&
                         !node->attr->matmul.transpose_a && !node->in[2].id;
    if (product) return split_product(g, node);
    return node->op->id == N2_OP_lrelu ? split_lrelu(g, node) : N2_NONE;
}
