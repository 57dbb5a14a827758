/* Ops that move numbers without computing. */
#include "ops.h"

static int normalise_axis(int axis, int rank) { return axis < 0 ? axis + rank : axis; }

n2_node n2_build_broadcast(n2_graph *g, n2_node x, n2_shape shape) {
    if (!x.id) return N2_NONE;
    n2_shape out;
    const n2_shape s = n2_shape_at(g, x);
    char a[64], b[64];
    if (n2_same_shape(s, shape)) return x;
    if (!n2_broadcast_shape(s, shape, &out) || !n2_same_shape(out, shape))
        return n2_graph_fail(g, "broadcast: %s cannot become %s", n2_shape_text(s, a),
                             n2_shape_text(shape, b));
    return n2_emit(g, N2_OP_broadcast, &x, 1, shape, NULL);
}

n2_node n2_build_reshape(n2_graph *g, n2_node x, n2_shape shape) {
    if (!x.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, x);
    char a[64], b[64];
    if (n2_same_shape(s, shape)) return x;
    if (!n2_is_possible(shape) || n2_elements(s) != n2_elements(shape))
        return n2_graph_fail(g, "reshape: %s has not as many elements as %s", n2_shape_text(s, a),
                             n2_shape_text(shape, b));
    return n2_emit(g, N2_OP_reshape, &x, 1, shape, NULL);
}

n2_node n2_build_transpose(n2_graph *g, n2_node x, int axis_a, int axis_b) {
    if (!x.id) return N2_NONE;
    n2_shape s = n2_shape_at(g, x);
    int a = normalise_axis(axis_a, s.rank), b = normalise_axis(axis_b, s.rank);
    if (a < 0 || b < 0 || a >= s.rank || b >= s.rank)
        return n2_graph_fail(g, "transpose: axes %d and %d of a tensor of rank %d", axis_a, axis_b,
                             s.rank);
    if (a == b) return x;
    if (a > b) {
        const int swap = a;
        a = b;
        b = swap;
    }
    const int64_t d = s.dim[a];
    s.dim[a] = s.dim[b];
    s.dim[b] = d;
    return n2_emit(g, N2_OP_transpose, &x, 1, s, &(n2_attr){.transpose = {a, b}});
}

static bool can_join(n2_shape a, n2_shape b, int axis) {
    bool fits = a.rank == b.rank && axis >= 0 && axis < a.rank;
    for (int i = 0; fits && i < a.rank; i++) fits = i == axis || a.dim[i] == b.dim[i];
    return fits;
}

n2_node n2_build_concat_all(n2_graph *g, const n2_node *x, int n, int axis) {
    if (n < 1) return n2_graph_fail(g, "concat: of nothing");
    for (int k = 0; k < n; k++)
        if (!x[k].id) return N2_NONE;
    n2_shape s = n2_shape_at(g, x[0]);
    const int here = n < N2_MAX_INPUTS ? n : N2_MAX_INPUTS;
    char a[64], b[64];
    for (int k = 1; k < here; k++) {
        const n2_shape other = n2_shape_at(g, x[k]);
        if (!can_join(s, other, axis))
            return n2_graph_fail(g, "concat: %s and %s along axis %d", n2_shape_text(s, a),
                                 n2_shape_text(other, b), axis);
        s.dim[axis] += other.dim[axis];
    }
    if (n == 1) return x[0];
    const n2_node y = n2_emit(g, N2_OP_concat, x, here, s, &(n2_attr){.along = {.axis = axis}});
    return here == n
               ? y
               : n2_build_concat(g, y, n2_build_concat_all(g, x + here, n - here, axis), axis);
}

n2_node n2_build_concat(n2_graph *g, n2_node a, n2_node b, int axis) {
    return n2_build_concat_all(g, (const n2_node[]){a, b}, 2, axis);
}

n2_node n2_build_slice(n2_graph *g, n2_node x, int axis, int64_t begin, int64_t length) {
    if (!x.id) return N2_NONE;
    n2_shape s = n2_shape_at(g, x);
    char text[64];
    if (axis < 0 || axis >= s.rank || begin < 0 || length < 0 || length > s.dim[axis] - begin)
        return n2_graph_fail(g, "slice: %lld from %lld along axis %d of %s", (long long)length,
                             (long long)begin, axis, n2_shape_text(s, text));
    if (length == s.dim[axis]) return x;
    s.dim[axis] = length;
    return n2_emit(g, N2_OP_slice, &x, 1, s, &(n2_attr){.along = {axis, begin}});
}

n2_node n2_build_pad(n2_graph *g, n2_node x, int axis, int64_t before, int64_t total) {
    if (!x.id) return N2_NONE;
    n2_shape s = n2_shape_at(g, x);
    s.dim[axis] = total;
    return n2_emit(g, N2_OP_pad, &x, 1, s, &(n2_attr){.along = {axis, before}});
}

/* ---- gradients ----------------------------------------------------------- */

static n2_shape input_shape(n2_graph *g, n2_node y, int k) {
    return n2_shape_at(g, n2_input(g, y, k));
}

static void broadcast_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2g_sum_to(g, dy, input_shape(g, y, 0));
}
static void reshape_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2g_reshape(g, dy, input_shape(g, y, 0));
}
static void transpose_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    const n2_attr *attr = n2_at(g, y)->attr;
    dx[0] = n2g_transpose(g, dy, attr->transpose.axis_a, attr->transpose.axis_b);
}
static void concat_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    const int axis = (int)n2_at(g, y)->attr->along.axis;
    const int n = n2_at(g, y)->n_in;
    int64_t at = 0;
    for (int k = 0; k < n; k++) {
        const int64_t length = input_shape(g, y, k).dim[axis];
        dx[k] = n2g_slice(g, dy, axis, at, length);
        at += length;
    }
}
static void slice_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    const n2_attr *attr = n2_at(g, y)->attr;
    const int axis = (int)attr->along.axis;
    dx[0] = n2_build_pad(g, dy, axis, attr->along.begin, input_shape(g, y, 0).dim[axis]);
}
static void pad_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    const n2_attr *attr = n2_at(g, y)->attr;
    const int axis = (int)attr->along.axis;
    dx[0] = n2g_slice(g, dy, axis, attr->along.begin, input_shape(g, y, 0).dim[axis]);
}

/* ---- rows ---------------------------------------------------------------- */

static n2_rows reshape_rows(const n2_graph *g, const n2_node_data *node, bool *row_input) {
    const n2_shape s = n2_shape_at(g, node->in[0]);
    row_input[0] = true;
    const bool keeps_rows = s.rank > 0 && node->shape.rank > 0 && s.dim[0] == node->shape.dim[0];
    return keeps_rows ? N2_ROWS_MAP : N2_ROWS_WHOLE;
}

static n2_rows transpose_rows(const n2_graph *g, const n2_node_data *node, bool *row_input) {
    (void)g;
    row_input[0] = true;
    return node->attr->transpose.axis_a == 0 ? N2_ROWS_WHOLE : N2_ROWS_MAP;
}

static n2_rows rows_unless_axis_0(const n2_graph *g, const n2_node_data *node, bool *row_input) {
    (void)g;
    for (int k = 0; k < node->n_in; k++) row_input[k] = true;
    return node->attr->along.axis == 0 ? N2_ROWS_WHOLE : N2_ROWS_MAP;
}

#define SHAPE_OP(NAME, ROWS)     \
    const n2_op n2_op_##NAME = { \
        .name = #NAME, .id = N2_OP_##NAME, .grad = NAME##_grad, .rows = ROWS}
const n2_op n2_op_broadcast = {.name = "broadcast",
                               .id = N2_OP_broadcast,
                               .grad = broadcast_grad,
                               .rows = n2_rows_elementwise,
                               .cheap = true};
const n2_op n2_op_reshape = {.name = "reshape",
                             .id = N2_OP_reshape,
                             .grad = reshape_grad,
                             .rows = reshape_rows,
                             .any_dtype = true};
SHAPE_OP(transpose, transpose_rows);
SHAPE_OP(concat, rows_unless_axis_0);
SHAPE_OP(slice, rows_unless_axis_0);
SHAPE_OP(pad, rows_unless_axis_0);
