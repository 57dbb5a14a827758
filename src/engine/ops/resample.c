/* Pictures [n, h, w, c] of half and of double size. Each op is the other's gradient, with the same
 * factor:
 *
 *   pool2      y[n, i, j, c] = a (x[n, 2i, 2j, c] + x[n, 2i, 2j + 1, c] + ... of 2 x 2)
 *   upsample2  y[n, i, j, c] = a x[n, i / 2, j / 2, c] */
#include "ops.h"

static n2_node pool2(n2_graph *g, n2_node x, double a) {
    n2_shape s = n2_shape_at(g, x);
    s.dim[1] /= 2;
    s.dim[2] /= 2;
    return n2_emit(g, N2_OP_pool2, &x, 1, s, &(n2_attr){.a = a});
}

static n2_node upsample2(n2_graph *g, n2_node x, double a) {
    n2_shape s = n2_shape_at(g, x);
    s.dim[1] *= 2;
    s.dim[2] *= 2;
    return n2_emit(g, N2_OP_upsample2, &x, 1, s, &(n2_attr){.a = a});
}

n2_node n2_build_avg_pool2(n2_graph *g, n2_node x) {
    if (!x.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, x);
    char text[64];
    if (s.rank != 4)
        return n2_graph_fail(g, "avg_pool2: %s is not [n, h, w, c]", n2_shape_text(s, text));
    if (s.dim[1] % 2 || s.dim[2] % 2)
        return n2_graph_fail(g, "avg_pool2: height or width of %s is odd. Pad or crop it first.",
                             n2_shape_text(s, text));
    return pool2(g, x, 0.25);
}

n2_node n2_build_upsample2(n2_graph *g, n2_node x) {
    if (!x.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, x);
    char text[64];
    if (s.rank != 4)
        return n2_graph_fail(g, "upsample2: %s is not [n, h, w, c]", n2_shape_text(s, text));
    return upsample2(g, x, 1);
}

static void pool2_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = upsample2(g, dy, n2_at(g, y)->attr->a);
}

static void upsample2_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = pool2(g, dy, n2_at(g, y)->attr->a);
}

static n2_rows pictures(const n2_graph *g, const n2_node_data *node, bool *row_input) {
    (void)g, (void)node;
    row_input[0] = true;
    return N2_ROWS_MAP;
}

#define ROW(NAME)                \
    const n2_op n2_op_##NAME = { \
        .name = #NAME, .id = N2_OP_##NAME, .grad = NAME##_grad, .rows = pictures, .cheap = true}
ROW(pool2);
ROW(upsample2);
