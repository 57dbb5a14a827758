/* Convolution of pictures, and its gradients by picture and by kernel. */
#include "ops.h"

static bool is_window(n2_graph *g, const char *op, n2_window v) {
    if (v.stride_y < 1 || v.stride_x < 1)
        n2_graph_fail(g, "%s: a stride of %d x %d; it is 1 or more", op, v.stride_y, v.stride_x);
    else if (v.top < 0 || v.bottom < 0 || v.left < 0 || v.right < 0)
        n2_graph_fail(g,
                      "%s: a padding of %d, %d, %d, %d (top, bottom, left, right); none is below 0",
                      op, v.top, v.bottom, v.left, v.right);
    else
        return true;
    return false;
}

/* The shape of y; or else the graph fails. */
static bool output_shape(n2_graph *g, const char *op, n2_shape x, n2_shape kernel, n2_window v,
                         n2_shape *y) {
    char text_x[64], text_k[64];
    if (!is_window(g, op, v)) return false;
    n2_shape_text(x, text_x);
    n2_shape_text(kernel, text_k);
    const bool possible = n2_is_possible(x) && n2_is_possible(kernel);
    if (!possible || x.rank != 4 || kernel.rank != 4 || n2_elements(kernel) == 0 ||
        x.dim[3] != kernel.dim[2]) {
        n2_graph_fail(g,
                      "%s: pictures %s and a kernel %s do not fit; they are [n x height x width x "
                      "channels] and [rows x columns x channels in x out]",
                      op, text_x, text_k);
        return false;
    }
    const int64_t rows = x.dim[1] + v.top + v.bottom - kernel.dim[0];
    const int64_t columns = x.dim[2] + v.left + v.right - kernel.dim[1];
    if (rows < 0 || columns < 0) {
        n2_graph_fail(g,
                      "%s: pictures %s, padded by %d, %d, %d, %d, are smaller than the kernel %s",
                      op, text_x, v.top, v.bottom, v.left, v.right, text_k);
        return false;
    }
    *y = n2_dims(x.dim[0], rows / v.stride_y + 1, columns / v.stride_x + 1, kernel.dim[3]);
    return true;
}

/* Whether y is what x and the kernel make; or else the graph fails. */
static bool has_output(n2_graph *g, const char *op, n2_shape x, n2_shape kernel, n2_window v,
                       n2_shape y) {
    n2_shape made;
    char text_x[64], text_k[64], text_made[64], text_y[64];
    if (!output_shape(g, op, x, kernel, v, &made)) return false;
    if (n2_same_shape(made, y)) return true;
    n2_graph_fail(g, "%s: pictures %s and a kernel %s make %s, not %s", op,
                  n2_shape_text(x, text_x), n2_shape_text(kernel, text_k),
                  n2_shape_text(made, text_made), n2_shape_text(y, text_y));
    return false;
}

static n2_node fail_rank(n2_graph *g, const char *op, n2_shape a, n2_shape b) {
    char text_a[64], text_b[64];
    return n2_graph_fail(g, "%s: %s and %s; both have four axes", op, n2_shape_text(a, text_a),
                         n2_shape_text(b, text_b));
}

n2_node n2_build_conv2d(n2_graph *g, n2_node x, n2_node kernel, n2_window window) {
    n2_shape y;
    if (!x.id || !kernel.id) return N2_NONE;
    if (!output_shape(g, "conv2d", n2_shape_at(g, x), n2_shape_at(g, kernel), window, &y))
        return N2_NONE;
    const n2_node in[] = {x, kernel};
    return n2_emit(g, N2_OP_conv2d, in, 2, y, &(n2_attr){.window = window});
}

n2_node n2_build_conv2d_input(n2_graph *g, n2_node dy, n2_node kernel, int64_t height,
                              int64_t width, n2_window window) {
    if (!dy.id || !kernel.id) return N2_NONE;
    const n2_shape sy = n2_shape_at(g, dy), sk = n2_shape_at(g, kernel);
    if (sy.rank != 4 || sk.rank != 4) return fail_rank(g, "conv2d_input", sy, sk);
    const n2_shape x = n2_dims(sy.dim[0], height, width, sk.dim[2]);
    if (!has_output(g, "conv2d_input", x, sk, window, sy)) return N2_NONE;
    const n2_node in[] = {dy, kernel};
    return n2_emit(g, N2_OP_conv2d_input, in, 2, x, &(n2_attr){.window = window});
}

n2_node n2_build_conv2d_weight(n2_graph *g, n2_node x, n2_node dy, int64_t rows, int64_t columns,
                               n2_window window) {
    if (!x.id || !dy.id) return N2_NONE;
    const n2_shape sx = n2_shape_at(g, x), sy = n2_shape_at(g, dy);
    if (sx.rank != 4 || sy.rank != 4) return fail_rank(g, "conv2d_weight", sx, sy);
    const n2_shape kernel = n2_dims(rows, columns, sx.dim[3], sy.dim[3]);
    if (!has_output(g, "conv2d_weight", sx, kernel, window, sy)) return N2_NONE;
    const n2_node in[] = {x, dy};
    return n2_emit(g, N2_OP_conv2d_weight, in, 2, kernel, &(n2_attr){.window = window});
}

/* ---- gradients: the three by one another --------------------------------- */

static n2_node by_input(n2_graph *g, n2_node dy, n2_node kernel, n2_node x, n2_window v) {
    const n2_shape s = n2_shape_at(g, x);
    return n2g_conv2d_input(g, dy, kernel, s.dim[1], s.dim[2], v);
}

static n2_node by_weight(n2_graph *g, n2_node x, n2_node dy, n2_node kernel, n2_window v) {
    const n2_shape s = n2_shape_at(g, kernel);
    return n2g_conv2d_weight(g, x, dy, s.dim[0], s.dim[1], v);
}

static void conv2d_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    const n2_node x = n2_input(g, y, 0), kernel = n2_input(g, y, 1);
    const n2_window v = n2_at(g, y)->attr->window;
    dx[0] = by_input(g, dy, kernel, x, v);
    dx[1] = by_weight(g, x, dy, kernel, v);
}

/* du has the shape of pictures. */
static void conv2d_input_grad(n2_graph *g, n2_node u, n2_node du, n2_node *dx) {
    const n2_node dy = n2_input(g, u, 0), kernel = n2_input(g, u, 1);
    const n2_window v = n2_at(g, u)->attr->window;
    dx[0] = n2g_conv2d(g, du, kernel, v);
    dx[1] = by_weight(g, du, dy, kernel, v);
}

/* du has the shape of the kernel. */
static void conv2d_weight_grad(n2_graph *g, n2_node u, n2_node du, n2_node *dx) {
    const n2_node x = n2_input(g, u, 0), dy = n2_input(g, u, 1);
    const n2_window v = n2_at(g, u)->attr->window;
    dx[0] = by_input(g, dy, du, x, v);
    dx[1] = n2g_conv2d(g, x, du, v);
}

/* ---- rows are pictures --------------------------------------------------- */

static n2_rows map_pictures(const n2_graph *g, const n2_node_data *node, bool *row_input) {
    (void)g, (void)node;
    row_input[0] = true;
    return N2_ROWS_MAP;
}

static n2_rows fold_pictures(const n2_graph *g, const n2_node_data *node, bool *row_input) {
    (void)g, (void)node;
    row_input[0] = row_input[1] = true;
    return N2_ROWS_FOLD;
}

/* A product with the kernel at every pixel of y, whichever of the three is asked for. */
static double work(n2_shape y, n2_shape kernel) {
    return 2 * (double)(y.dim[0] * y.dim[1] * y.dim[2]) * (double)n2_elements(kernel);
}

static double conv2d_flops(const n2_graph *g, const n2_node_data *node) {
    return work(node->shape, n2_shape_at(g, node->in[1]));
}

static double conv2d_input_flops(const n2_graph *g, const n2_node_data *node) {
    return work(n2_shape_at(g, node->in[0]), n2_shape_at(g, node->in[1]));
}

static double conv2d_weight_flops(const n2_graph *g, const n2_node_data *node) {
    return work(n2_shape_at(g, node->in[1]), node->shape);
}

#define ROW(NAME, ROWS)                              \
    const n2_op n2_op_##NAME = {.name = #NAME,       \
                                .id = N2_OP_##NAME,  \
                                .grad = NAME##_grad, \
                                .rows = ROWS,        \
                                .flops = NAME##_flops}
ROW(conv2d, map_pictures);
ROW(conv2d_input, map_pictures);
ROW(conv2d_weight, fold_pictures);
