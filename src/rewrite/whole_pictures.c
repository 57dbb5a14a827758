/* A convolution whose kernel covers the picture is a matrix product, for which kernels lie as they
 * should: a picture's numbers are a row, the kernel's places and channels in are the inner axis.
 *
 *     conv2d(x, k)             -> x k
 *     conv2d_input(dy, k)      -> dy k'
 *     conv2d_weight(x, dy)     -> x' dy */
#define N2_INSIDE
#include "rewrites.h"

typedef struct operands {
    n2_shape x, k; /* pictures and kernel */
} operands;

static operands operands_of(const n2_graph *g, const n2_node_data *node) {
    const n2_op_id op = node->op->id;
    return (operands){op == N2_OP_conv2d_input ? node->shape : n2_shape_at(g, node->in[0]),
                      op == N2_OP_conv2d_weight ? node->shape : n2_shape_at(g, node->in[1])};
}

static bool covers(const operands *o, n2_window v) {
    return v.top == 0 && v.bottom == 0 && v.left == 0 && v.right == 0 && o->x.rank == 4 &&
           o->k.rank == 4 && o->x.dim[1] == o->k.dim[0] && o->x.dim[2] == o->k.dim[1];
}

/* As a matrix: a row for each picture, or a column for each channel out. */
static n2_node as_rows(n2_graph *g, n2_node x) {
    const n2_shape s = n2_shape_at(g, x);
    return n2_build_reshape(g, x, n2_dims(s.dim[0], s.dim[1] * s.dim[2] * s.dim[3]));
}
static n2_node as_columns(n2_graph *g, n2_node k) {
    const n2_shape s = n2_shape_at(g, k);
    return n2_build_reshape(g, k, n2_dims(s.dim[0] * s.dim[1] * s.dim[2], s.dim[3]));
}

n2_node n2_multiply_whole_pictures(n2_graph *g, const n2_node_data *node) {
    const n2_op_id op = node->op->id;
    if (op != N2_OP_conv2d && op != N2_OP_conv2d_input && op != N2_OP_conv2d_weight) return N2_NONE;
    const operands o = operands_of(g, node);
    if (!covers(&o, node->attr->window)) return N2_NONE;
    const bool by_weight = op == N2_OP_conv2d_weight;
    const n2_node a = as_rows(g, node->in[0]);
    const n2_node b = by_weight ? as_rows(g, node->in[1]) : as_columns(g, node->in[1]);
    return n2_build_reshape(g, n2_build_matmul(g, a, b, by_weight, op == N2_OP_conv2d_input),
                            node->shape);
}
