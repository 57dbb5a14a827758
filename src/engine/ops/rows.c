/* Picking rows by number, and adding rows where they came from. */
#include "ops.h"

n2_node n2_build_gather(n2_graph *g, n2_node table, n2_node index) {
    if (!table.id || !index.id) return N2_NONE;
    n2_shape s = n2_shape_at(g, table);
    const n2_shape si = n2_shape_at(g, index);
    char a[64], b[64];
    if (s.rank < 1 || si.rank != 1)
        return n2_graph_fail(g, "gather: rows of %s by index %s", n2_shape_text(s, a),
                             n2_shape_text(si, b));
    s.dim[0] = si.dim[0];
    const n2_node in[] = {table, index};
    return n2_emit(g, N2_OP_gather, in, 2, s, NULL);
}

n2_node n2_build_scatter_add(n2_graph *g, n2_node x, n2_node index, int64_t rows) {
    if (!x.id || !index.id) return N2_NONE;
    n2_shape s = n2_shape_at(g, x);
    const n2_shape si = n2_shape_at(g, index);
    char a[64], b[64];
    if (s.rank < 1 || si.rank != 1 || si.dim[0] != s.dim[0])
        return n2_graph_fail(g, "scatter_add: rows of %s by index %s", n2_shape_text(s, a),
                             n2_shape_text(si, b));
    s.dim[0] = rows;
    const n2_node in[] = {x, index};
    return n2_emit(g, N2_OP_scatter_add, in, 2, s, NULL);
}

/* More rows than can be counted are none that are possible. */
static int64_t times_rows(int64_t n, int64_t times) {
    int64_t rows;
    return __builtin_mul_overflow(n, times, &rows) ? -1 : rows;
}

n2_node n2_build_tile_rows(n2_graph *g, n2_node x, int64_t times) {
    if (!x.id) return N2_NONE;
    const int64_t n = n2_shape_at(g, x).dim[0];
    return n2g_gather(g, x, n2g_row_index(g, times_rows(n, times), 1, n));
}

n2_node n2_build_repeat_rows(n2_graph *g, n2_node x, int64_t times) {
    if (!x.id) return N2_NONE;
    const int64_t n = n2_shape_at(g, x).dim[0];
    return n2g_gather(g, x, n2g_row_index(g, times_rows(n, times), times, n));
}

static void gather_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2g_scatter_add(g, dy, n2_input(g, y, 1), n2_shape_at(g, n2_input(g, y, 0)).dim[0]);
}

static void scatter_add_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2g_gather(g, dy, n2_input(g, y, 1));
}

static n2_rows gather_rows(const n2_graph *g, const n2_node_data *node, bool *row_input) {
    (void)g, (void)node;
    row_input[1] = true;
    return N2_ROWS_MAP;
}

static n2_rows scatter_rows(const n2_graph *g, const n2_node_data *node, bool *row_input) {
    (void)g, (void)node;
    row_input[0] = row_input[1] = true;
    return N2_ROWS_FOLD;
}

const n2_op n2_op_gather = {
    .name = "gather", .id = N2_OP_gather, .grad = gather_grad, .rows = gather_rows};
const n2_op n2_op_scatter_add = {
    .name = "scatter_add", .id = N2_OP_scatter_add, .grad = scatter_add_grad, .rows = scatter_rows};
