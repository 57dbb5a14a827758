/* Leaves: tensors, constants, random numbers, row numbers. None has a gradient. */
#include "ops.h"

static n2_rows rows_of_leaf(const n2_graph *g, const n2_node_data *node, bool *row_input) {
    (void)g, (void)row_input;
    return node->shape.rank > 0 ? N2_ROWS_MAP : N2_ROWS_WHOLE;
}

n2_node n2_build_constant(n2_graph *g, double value) {
    return n2_emit(g, N2_OP_constant, NULL, 0, n2_scalar_shape(), &(n2_attr){.value = value});
}

n2_node n2_build_random(n2_graph *g, int op, n2_shape shape, int64_t n) {
    if (op == N2_OP_integer && (n < 1 || n > 1 << 24))
        return n2_graph_fail(g, "randint: %lld numbers to choose from; 1 to 2^24 are possible",
                             (long long)n);
    const int64_t stream = (int64_t)n2_graph_size(g) + 1; /* the number of the node */
    return n2_emit(g, (n2_op_id)op, NULL, 0, shape, &(n2_attr){.random = {n, stream}});
}

n2_node n2_build_row_index(n2_graph *g, int64_t n, int64_t divide, int64_t modulo) {
    if (divide < 1 || modulo < 1) return n2_graph_fail(g, "row_index: divide and modulo are >= 1");
    return n2_emit(g, N2_OP_row_index, NULL, 0, n2_dims(n),
                   &(n2_attr){.row_index = {divide, modulo}});
}

const n2_op n2_op_tensor = {.name = "tensor", .id = N2_OP_tensor};
const n2_op n2_op_constant = {.name = "constant", .id = N2_OP_constant};
const n2_op n2_op_normal = {
    .name = "normal", .id = N2_OP_normal, .rows = rows_of_leaf, .random = true};
const n2_op n2_op_uniform = {
    .name = "uniform", .id = N2_OP_uniform, .rows = rows_of_leaf, .cheap = true, .random = true};
const n2_op n2_op_integer = {
    .name = "integer", .id = N2_OP_integer, .rows = rows_of_leaf, .random = true};
const n2_op n2_op_permutation = {.name = "permutation", .id = N2_OP_permutation, .random = true};
const n2_op n2_op_row_index = {.name = "row_index", .id = N2_OP_row_index, .rows = rows_of_leaf};
