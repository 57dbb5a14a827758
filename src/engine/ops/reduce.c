/* Reductions. */
#include "ops.h"

n2_node n2_build_reduce(n2_graph *g, int op, n2_node x, int axes) {
    if (!x.id) return N2_NONE;
    n2_shape s = n2_shape_at(g, x);
    const int all = (1 << s.rank) - 1;
    if (axes == N2_ALL_AXES) axes = all;
    if (axes & ~all)
        return n2_graph_fail(g, "%s: axes %#x of a tensor of rank %d", n2_ops[op]->name,
                             (unsigned)axes, s.rank);
    for (int i = 0; i < s.rank; i++)
        if (axes >> i & 1) s.dim[i] = 1;
    if (n2_same_shape(s, n2_shape_at(g, x))) return x;
    return n2_emit(g, (n2_op_id)op, &x, 1, s, &(n2_attr){.reduce = {.axes = axes}});
}

n2_node n2_build_mean(n2_graph *g, n2_node x, int axes) {
    const n2_node sum = n2g_sum(g, x, axes);
    const double n = (double)n2_elements(n2_shape_at(g, x));
    return n2g_scale(g, sum, (double)n2_elements(n2_shape_at(g, sum)) / n);
}

n2_node n2_build_total(n2_graph *g, n2_node x) {
    return n2g_reshape(g, n2g_sum(g, x, N2_ALL_AXES), n2_scalar_shape());
}

n2_node n2_build_logsumexp(n2_graph *g, n2_node x, int axes) {
    const n2_node top = n2g_detach(g, n2g_amax(g, x, axes));
    return n2g_add(g, n2g_log(g, n2g_sum(g, n2g_exp(g, n2g_sub(g, x, top)), axes)), top);
}

n2_node n2_build_sum_to(n2_graph *g, n2_node x, n2_shape shape) {
    if (!x.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, x);
    int axes = 0;
    for (int i = 0; i < s.rank; i++) {
        const int k = i - (s.rank - shape.rank);
        if ((k < 0 || shape.dim[k] == 1) && s.dim[i] != 1) axes |= n2_axis(i);
    }
    return n2g_reshape(g, axes ? n2g_sum(g, x, axes) : x, shape);
}

n2_node n2_build_median(n2_graph *g, n2_node x, bool above_diagonal) {
    if (!x.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, x);
    char text[64];
    if (above_diagonal && (s.rank != 2 || s.dim[0] != s.dim[1] || s.dim[0] < 2))
        return n2_graph_fail(g, "median: %s has nothing above a diagonal", n2_shape_text(s, text));
    return n2_emit(g, N2_OP_median, &x, 1, n2_scalar_shape(),
                   &(n2_attr){.reduce = {.above_diagonal = above_diagonal}});
}

static void sum_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2g_broadcast(g, dy, n2_shape_at(g, n2_input(g, y, 0)));
}

/* Where several elements are largest they share the gradient. */
static void amax_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    const n2_node largest = n2g_equal(g, n2_input(g, y, 0), y);
    const n2_node count = n2g_sum(g, largest, n2_at(g, y)->attr->reduce.axes);
    dx[0] = n2g_mul(g, largest, n2g_div(g, dy, count));
}

static n2_rows sum_rows(const n2_graph *g, const n2_node_data *node, bool *row_input) {
    (void)g;
    row_input[0] = true;
    return node->attr->reduce.axes & 1 ? N2_ROWS_FOLD : N2_ROWS_MAP;
}

static n2_rows amax_rows(const n2_graph *g, const n2_node_data *node, bool *row_input) {
    (void)g;
    row_input[0] = true;
    return node->attr->reduce.axes & 1 ? N2_ROWS_WHOLE : N2_ROWS_MAP;
}

const n2_op n2_op_sum = {.name = "sum", .id = N2_OP_sum, .grad = sum_grad, .rows = sum_rows};
const n2_op n2_op_amax = {.name = "amax", .id = N2_OP_amax, .grad = amax_grad, .rows = amax_rows};
const n2_op n2_op_median = {.name = "median", .id = N2_OP_median};
