/* Matrix product of op(a) [m x k] and op(b) [k x n], or of batches of them.
 *
 * A third input, if there is one, is the transposed b, for kernels that like it (rewrite/
 * pack_transposed.c). A fourth is added to every row. */
#include "ops.h"

static n2_node fail_shapes(n2_graph *g, n2_shape a, n2_shape b, bool ta, bool tb) {
    char text_a[64], text_b[64];
    return n2_graph_fail(g, "matmul: %s%s times %s%s does not fit", n2_shape_text(a, text_a),
                         ta ? " transposed" : "", n2_shape_text(b, text_b),
                         tb ? " transposed" : "");
}

/* Batched a with one b: the batches are so many rows. */
static n2_node flatten_batches(n2_graph *g, n2_node a, n2_node b, bool tb) {
    n2_shape s = n2_shape_at(g, a);
    int64_t rows = 1;
    for (int i = 0; i < s.rank - 1; i++) rows *= s.dim[i];
    const n2_node flat = n2_build_reshape(g, a, n2_dims(rows, s.dim[s.rank - 1]));
    const n2_node y = n2_build_matmul(g, flat, b, false, tb);
    if (!y.id) return N2_NONE;
    s.dim[s.rank - 1] = n2_shape_at(g, y).dim[1];
    return n2_build_reshape(g, y, s);
}

static bool same_batches(n2_shape a, n2_shape b) {
    bool same = a.rank == b.rank && a.rank >= 2;
    for (int i = 0; same && i < a.rank - 2; i++) same = a.dim[i] == b.dim[i];
    return same;
}

n2_node n2_build_matmul(n2_graph *g, n2_node a, n2_node b, bool ta, bool tb) {
    if (!a.id || !b.id) return N2_NONE;
    const n2_shape sa = n2_shape_at(g, a), sb = n2_shape_at(g, b);
    const int r = sa.rank;
    if (r > 2 && sb.rank == 2)
        return flatten_batches(g, ta ? n2_build_transpose(g, a, -2, -1) : a, b, tb);
    if (!same_batches(sa, sb)) return fail_shapes(g, sa, sb, ta, tb);
    const int64_t ka = sa.dim[r - 1 - ta], kb = sb.dim[r - 1 - !tb];
    if (ka != kb) return fail_shapes(g, sa, sb, ta, tb);
    n2_shape shape = sa;
    shape.dim[r - 2] = sa.dim[r - 1 - !ta];
    shape.dim[r - 1] = sb.dim[r - 1 - tb];
    const n2_node in[] = {a, b};
    return n2_emit(g, N2_OP_matmul, in, 2, shape, &(n2_attr){.matmul = {ta, tb}});
}

n2_node n2_build_linear(n2_graph *g, n2_node x, n2_node weight, n2_node bias) {
    if (!x.id || !weight.id || !bias.id) return N2_NONE;
    const n2_shape sx = n2_shape_at(g, x), sw = n2_shape_at(g, weight), sb = n2_shape_at(g, bias);
    if (sx.rank != 2 || sw.rank != 2 || sx.dim[1] != sw.dim[1])
        return fail_shapes(g, sx, sw, false, true);
    char text_w[64], text_b[64];
    if (sb.rank != 1 || sb.dim[0] != sw.dim[0])
        return n2_graph_fail(g, "linear: a bias %s for a weight %s", n2_shape_text(sb, text_b),
                             n2_shape_text(sw, text_w));
    const n2_node in[] = {x, weight, N2_NONE, bias};
    return n2_emit(g, N2_OP_matmul, in, 4, n2_dims(sx.dim[0], sw.dim[0]),
                   &(n2_attr){.matmul = {false, true}});
}

/* y = op(a) op(b) + bias. */
static void matmul_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    const n2_node a = n2_input(g, y, 0), b = n2_input(g, y, 1);
    const n2_attr *attr = n2_at(g, y)->attr;
    const bool ta = attr->matmul.transpose_a, tb = attr->matmul.transpose_b;
    dx[0] = ta ? n2g_matmul(g, b, dy, tb, true) : n2g_matmul(g, dy, b, false, !tb);
    dx[1] = tb ? n2g_matmul(g, dy, a, true, ta) : n2g_matmul(g, a, dy, !ta, false);
    if (n2_at(g, y)->n_in == 4) dx[3] = n2g_sum_to(g, dy, n2_shape_at(g, n2_input(g, y, 3)));
}

/* Rows of a are rows of y; with a transposed the rows are summed over: that is how a
 * weight's gradient reads, and tiles add to it. */
static n2_rows matmul_rows(const n2_graph *g, const n2_node_data *node, bool *row_input) {
    (void)g;
    const bool ta = node->attr->matmul.transpose_a, tb = node->attr->matmul.transpose_b;
    row_input[0] = true;
    row_input[1] = node->shape.rank > 2 || ta;
    if (node->shape.rank > 2) { /* rows are batches */
        row_input[2] = node->n_in >= 3;
        return N2_ROWS_MAP;
    }
    if (ta) return tb ? N2_ROWS_WHOLE : N2_ROWS_FOLD;
    return N2_ROWS_MAP;
}

static double matmul_flops(const n2_graph *g, const n2_node_data *node) {
    const n2_shape a = n2_shape_at(g, node->in[0]);
    const int64_t inner = a.dim[node->attr->matmul.transpose_a ? a.rank - 2 : a.rank - 1];
    return 2 * (double)n2_elements(node->shape) * (double)inner;
}

const n2_op n2_op_matmul = {.name = "matmul",
                            .id = N2_OP_matmul,
                            .grad = matmul_grad,
                            .rows = matmul_rows,
                            .packed = 2,
                            .flops = matmul_flops};
