/* Element-wise ops, with NumPy's broadcasting for the binary ones. */
#include "ops.h"

bool n2_broadcast_shape(n2_shape a, n2_shape b, n2_shape *out) {
    out->rank = a.rank > b.rank ? a.rank : b.rank;
    for (int i = 0; i < out->rank; i++) {
        const int ia = i - (out->rank - a.rank), ib = i - (out->rank - b.rank);
        const int64_t da = ia < 0 ? 1 : a.dim[ia], db = ib < 0 ? 1 : b.dim[ib];
        if (da != db && da != 1 && db != 1) return false;
        out->dim[i] = da == 1 ? db : da;
    }
    return true;
}

/* An input goes along row by row if it has all axes and as many rows as the output. */
n2_rows n2_rows_elementwise(const n2_graph *g, const n2_node_data *node, bool *row_input) {
    if (node->shape.rank == 0) return N2_ROWS_WHOLE;
    for (int i = 0; i < node->n_in; i++) {
        const n2_shape s = n2_shape_at(g, node->in[i]);
        row_input[i] = s.rank == node->shape.rank && s.dim[0] == node->shape.dim[0];
    }
    return N2_ROWS_MAP;
}

n2_node n2_build_unary(n2_graph *g, int op, n2_node x, double a, double b) {
    if (!x.id) return N2_NONE;
    return n2_emit(g, (n2_op_id)op, &x, 1, n2_shape_at(g, x), &(n2_attr){.a = a, .b = b});
}

n2_node n2_build_binary(n2_graph *g, int op, n2_node a, n2_node b, double attr) {
    if (!a.id || !b.id) return N2_NONE;
    n2_shape shape;
    const n2_shape sa = n2_shape_at(g, a), sb = n2_shape_at(g, b);
    if (!n2_broadcast_shape(sa, sb, &shape)) {
        char ta[64], tb[64];
        return n2_graph_fail(g, "%s: shapes %s and %s do not fit together", n2_ops[op]->name,
                             n2_shape_text(sa, ta), n2_shape_text(sb, tb));
    }
    const n2_node in[] = {a, b};
    return n2_emit(g, (n2_op_id)op, in, 2, shape, &(n2_attr){.a = attr});
}

/* ---- gradients ----------------------------------------------------------- */

static n2_node x_of(n2_graph *g, n2_node y) { return n2_input(g, y, 0); }
static double attr_of(n2_graph *g, n2_node y) { return n2_at(g, y)->attr->a; }

static void neg_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    (void)y;
    dx[0] = n2g_neg(g, dy);
}
static void exp_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) { dx[0] = n2g_mul(g, dy, y); }
static void log_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2g_div(g, dy, x_of(g, y));
}
static void sqrt_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2g_div(g, n2g_scale(g, dy, 0.5), y);
}
static void reciprocal_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2g_neg(g, n2g_mul(g, dy, n2g_mul(g, y, y)));
}
static void tanh_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2g_mul(g, dy, n2g_affine(g, n2g_mul(g, y, y), -1, 1));
}
static void sigmoid_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2g_mul(g, dy, n2g_mul(g, y, n2g_affine(g, y, -1, 1)));
}
static void softplus_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2g_mul(g, dy, n2g_sigmoid(g, x_of(g, y)));
}
static void sin_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2g_mul(g, dy, n2g_cos(g, x_of(g, y)));
}
static void cos_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2g_neg(g, n2g_mul(g, dy, n2g_sin(g, x_of(g, y))));
}
static void affine_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2g_scale(g, dy, attr_of(g, y));
}
/* y > 0 where x > 0, unless the slope is negative; so a row program need not keep x. */
static void lrelu_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    const n2_node sign = attr_of(g, y) >= 0 ? y : x_of(g, y);
    dx[0] = n2_build_binary(g, N2_OP_lrelu_grad, sign, dy, attr_of(g, y));
}
/* y = dy where x > 0, slope dy elsewhere: linear in dy, flat in x. */
static void lrelu_grad_grad(n2_graph *g, n2_node y, n2_node d, n2_node *dx) {
    dx[1] = n2_build_binary(g, N2_OP_lrelu_grad, x_of(g, y), d, attr_of(g, y));
}

/* silu(x) = x s with s = sigmoid(x); silu' = s (1 + x (1 - s)). */
static void silu_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2_build_binary(g, N2_OP_silu_grad, x_of(g, y), dy, 0);
}
/* y = dy silu'(x); silu'' = s (1 - s) (2 + x (1 - 2 s)). */
static void silu_grad_grad(n2_graph *g, n2_node y, n2_node d, n2_node *dx) {
    const n2_node x = x_of(g, y), dy = n2_input(g, y, 1), s = n2g_sigmoid(g, x);
    const n2_node bend = n2g_mul(g, s, n2g_affine(g, s, -1, 1));
    const n2_node rest = n2g_affine(g, n2g_mul(g, x, n2g_affine(g, s, -2, 1)), 1, 2);
    dx[0] = n2g_mul(g, n2g_mul(g, d, dy), n2g_mul(g, bend, rest));
    dx[1] = n2_build_binary(g, N2_OP_silu_grad, x, d, 0);
}

/* gelu(x) = x Phi(x); gelu' = Phi(x) + x phi(x). */
static void gelu_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2_build_binary(g, N2_OP_gelu_grad, x_of(g, y), dy, 0);
}
/* y = dy gelu'(x); gelu'' = phi(x) (2 - x^2), phi(x) = exp(-x^2 / 2) / sqrt(2 pi). */
static void gelu_grad_grad(n2_graph *g, n2_node y, n2_node d, n2_node *dx) {
    const double peak = 0.39894228040143268;
    const n2_node x = x_of(g, y), dy = n2_input(g, y, 1), square = n2g_mul(g, x, x);
    const n2_node bell = n2g_exp(g, n2g_scale(g, square, -0.5));
    const n2_node bend = n2g_mul(g, bell, n2g_affine(g, square, -peak, 2 * peak));
    dx[0] = n2g_mul(g, n2g_mul(g, d, dy), bend);
    dx[1] = n2_build_binary(g, N2_OP_gelu_grad, x, d, 0);
}

static n2_node to_input(n2_graph *g, n2_node d, n2_node y, int k) {
    return n2g_sum_to(g, d, n2_shape_at(g, n2_input(g, y, k)));
}
static void add_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = to_input(g, dy, y, 0);
    dx[1] = to_input(g, dy, y, 1);
}
static void sub_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = to_input(g, dy, y, 0);
    dx[1] = to_input(g, n2g_neg(g, dy), y, 1);
}
static void mul_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = to_input(g, n2g_mul(g, dy, n2_input(g, y, 1)), y, 0);
    dx[1] = to_input(g, n2g_mul(g, dy, n2_input(g, y, 0)), y, 1);
}
static void div_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    const n2_node d = n2g_div(g, dy, n2_input(g, y, 1));
    dx[0] = to_input(g, d, y, 0);
    dx[1] = to_input(g, n2g_neg(g, n2g_mul(g, d, y)), y, 1);
}
/* Where the two are equal the second one is meant to have won. */
static void maximum_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    const n2_node first = n2g_greater(g, n2_input(g, y, 0), n2_input(g, y, 1));
    dx[0] = to_input(g, n2g_mul(g, dy, first), y, 0);
    dx[1] = to_input(g, n2g_mul(g, dy, n2g_affine(g, first, -1, 1)), y, 1);
}
static void minimum_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    const n2_node first = n2g_greater(g, n2_input(g, y, 1), n2_input(g, y, 0));
    dx[0] = to_input(g, n2g_mul(g, dy, first), y, 0);
    dx[1] = to_input(g, n2g_mul(g, dy, n2g_affine(g, first, -1, 1)), y, 1);
}

n2_node n2_build_cast(n2_graph *g, n2_node x, n2_dtype dtype) {
    if (!x.id) return N2_NONE;
    const n2_dtype from = n2_at(g, x)->dtype;
    if (from == dtype) return x;
    return n2_emit(g, N2_OP_cast, &x, 1, n2_shape_at(g, x),
                   &(n2_attr){.cast = {(int32_t)from, (int32_t)dtype}});
}

static void cast_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    (void)g, (void)y;
    dx[0] = dy;
}

const n2_op n2_op_cast = {.name = "cast",
                          .id = N2_OP_cast,
                          .grad = cast_grad,
                          .rows = n2_rows_elementwise,
                          .any_dtype = true};

#define ELEMENTWISE(NAME, GRAD)                              \
    const n2_op n2_op_##NAME = {.name = #NAME,               \
                                .id = N2_OP_##NAME,          \
                                .grad = GRAD,                \
                                .rows = n2_rows_elementwise, \
                                .cheap = true}
ELEMENTWISE(neg, neg_grad);
ELEMENTWISE(exp, exp_grad);
ELEMENTWISE(log, log_grad);
ELEMENTWISE(sqrt, sqrt_grad);
ELEMENTWISE(reciprocal, reciprocal_grad);
ELEMENTWISE(tanh, tanh_grad);
ELEMENTWISE(sigmoid, sigmoid_grad);
ELEMENTWISE(softplus, softplus_grad);
ELEMENTWISE(sin, sin_grad);
ELEMENTWISE(cos, cos_grad);
ELEMENTWISE(positive, NULL);
const n2_op n2_op_detach = {
    .name = "detach", .id = N2_OP_detach, .rows = n2_rows_elementwise, .any_dtype = true};
ELEMENTWISE(affine, affine_grad);
ELEMENTWISE(lrelu, lrelu_grad);
ELEMENTWISE(lrelu_grad, lrelu_grad_grad);
ELEMENTWISE(silu, silu_grad);
ELEMENTWISE(silu_grad, silu_grad_grad);
ELEMENTWISE(gelu, gelu_grad);
ELEMENTWISE(gelu_grad, gelu_grad_grad);
ELEMENTWISE(add, add_grad);
ELEMENTWISE(sub, sub_grad);
ELEMENTWISE(mul, mul_grad);
ELEMENTWISE(div, div_grad);
ELEMENTWISE(maximum, maximum_grad);
ELEMENTWISE(minimum, minimum_grad);
ELEMENTWISE(equal, NULL);
ELEMENTWISE(greater, NULL);
