/* Norms of pictures' channels in groups, and their gradients. */
#include "ops.h"

enum { X, SHIFT, GAMMA, BETA, DY }; /* inputs */

/* ---- shapes -------------------------------------------------------------- */

static int64_t channels(n2_shape x) { return x.dim[x.rank - 1]; }

static int64_t positions(n2_shape x) {
    int64_t n = 1;
    for (int i = 1; i < x.rank - 1; i++) n *= x.dim[i];
    return n;
}

static bool is_norm(n2_graph *g, const char *op, n2_shape x, n2_norm v) {
    char text[64];
    n2_shape_text(x, text);
    if (x.rank < 2)
        n2_graph_fail(g, "%s: %s is not [n, ..., c]", op, text);
    else if (positions(x) == 0 || channels(x) == 0 || v.groups < 1 || channels(x) % v.groups)
        n2_graph_fail(g, "%s: the channels of %s do not make %d groups of as many", op, text,
                      v.groups);
    else if (v.act < N2_ACT_NONE || v.act > N2_ACT_LRELU)
        n2_graph_fail(g, "%s: there is no activation %d; see n2_act", op, v.act);
    else if (!(v.eps > 0))
        n2_graph_fail(g, "%s: eps is %g; it is above 0, for groups without variance", op, v.eps);
    else
        return true;
    return false;
}

/* [c], [n x c] or nothing. */
static bool is_parameter(n2_graph *g, const char *op, const char *name, n2_shape x, n2_node p) {
    if (!p.id) return true;
    const n2_shape s = n2_shape_at(g, p);
    char text_x[64], text_p[64];
    if (n2_same_shape(s, n2_dims(channels(x))) || n2_same_shape(s, n2_dims(x.dim[0], channels(x))))
        return true;
    n2_graph_fail(g, "%s: %s %s for the channels of %s; it is [c] or [n, c]", op, name,
                  n2_shape_text(s, text_p), n2_shape_text(x, text_x));
    return false;
}

static bool fits(n2_graph *g, const char *op, const n2_node *in, n2_norm v) {
    const n2_shape x = n2_shape_at(g, in[X]);
    return is_norm(g, op, x, v) && is_parameter(g, op, "shift", x, in[SHIFT]) &&
           is_parameter(g, op, "gamma", x, in[GAMMA]) && is_parameter(g, op, "beta", x, in[BETA]);
}

/* Nodes are compared as bytes: what is not used is 0. */
static n2_attr attr_of(n2_norm v) {
    if (v.act != N2_ACT_LRELU) v.slope = 0;
    return (n2_attr){.norm = v};
}

n2_node n2_build_norm(n2_graph *g, n2_node x, n2_node shift, n2_node gamma, n2_node beta,
                      n2_norm norm) {
    const n2_node in[] = {x, shift, gamma, beta};
    if (!x.id || !fits(g, "norm", in, norm)) return N2_NONE;
    const n2_attr attr = attr_of(norm);
    return n2_emit(g, N2_OP_norm, in, 4, n2_shape_at(g, x), &attr);
}

static n2_node build_gradient(n2_graph *g, n2_op_id op, const n2_node *in, n2_norm norm) {
    if (!in[X].id || !in[DY].id || !fits(g, n2_ops[op]->name, in, norm)) return N2_NONE;
    const n2_shape x = n2_shape_at(g, in[X]), dy = n2_shape_at(g, in[DY]);
    char text_x[64], text_dy[64];
    if (!n2_same_shape(x, dy))
        return n2_graph_fail(g, "%s: dy %s for x %s", n2_ops[op]->name, n2_shape_text(dy, text_dy),
                             n2_shape_text(x, text_x));
    const n2_attr attr = attr_of(norm);
    const n2_shape sums = n2_dims(x.dim[0], channels(x), 3);
    return n2_emit(g, op, in, 5, op == N2_OP_norm_sums ? sums : x, &attr);
}

n2_node n2_build_norm_input(n2_graph *g, n2_node x, n2_node shift, n2_node gamma, n2_node beta,
                            n2_node dy, n2_norm norm) {
    return build_gradient(g, N2_OP_norm_input, (n2_node[]){x, shift, gamma, beta, dy}, norm);
}

n2_node n2_build_norm_sums(n2_graph *g, n2_node x, n2_node shift, n2_node gamma, n2_node beta,
                           n2_node dy, n2_norm norm) {
    return build_gradient(g, N2_OP_norm_sums, (n2_node[]){x, shift, gamma, beta, dy}, norm);
}

/* ---- the gradient of a norm: two ops ------------------------------------- */

/* The gradient by a parameter, which is column k of the sums. */
static n2_node column(n2_graph *g, n2_node sums, int k, n2_node parameter) {
    if (!parameter.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, parameter);
    const n2_node all = s.rank == 1 ? n2g_sum(g, sums, n2_axis(0)) : sums;
    return n2g_reshape(g, n2g_slice(g, all, 2, k, 1), s);
}

static void norm_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    const n2_node_data d = *n2_at(g, y);
    const n2_node in[] = {d.in[X], d.in[SHIFT], d.in[GAMMA], d.in[BETA], dy};
    dx[X] = build_gradient(g, N2_OP_norm_input, in, d.attr->norm);
    if (!in[SHIFT].id && !in[GAMMA].id && !in[BETA].id) return;
    const n2_node sums = build_gradient(g, N2_OP_norm_sums, in, d.attr->norm);
    dx[BETA] = column(g, sums, 0, in[BETA]);
    dx[GAMMA] = column(g, sums, 1, in[GAMMA]);
    dx[SHIFT] = column(g, sums, 2, in[SHIFT]);
}

/* ---- what the ops mean, of other ops: for gradients of the gradients ------ */

/* Means of [n, positions, c] over positions and the channels of a group, for every channel:
 * [n, 1, c]. Positions first: sums of whole rows. */
static n2_node group_means(n2_graph *g, n2_node x, int64_t groups) {
    const n2_shape s = n2_shape_at(g, x);
    const int64_t n = s.dim[0], c = s.dim[2];
    const n2_shape grouped = n2_dims(n, groups, c / groups);
    const n2_node sums = n2g_reshape(g, n2g_sum(g, x, n2_axis(1)), grouped);
    const double count = (double)s.dim[1] * (double)(c / groups);
    const n2_node means = n2g_scale(g, n2g_sum(g, sums, n2_axis(2)), 1 / count);
    return n2g_reshape(g, n2g_broadcast(g, means, grouped), n2_dims(n, 1, c));
}

/* A parameter as [1, 1, c] or [n, 1, c]. */
static n2_node along_channels(n2_graph *g, n2_node p) {
    const n2_shape s = n2_shape_at(g, p);
    return n2g_reshape(g, p, n2_dims(s.rank == 1 ? 1 : s.dim[0], 1, s.dim[s.rank - 1]));
}

/* [n, positions, c], from x + shift to y. */
typedef struct composed {
    n2_node v, unit, before, y; /* unit: mean 0, variance 1; before the activation */
} composed;

/* The variance is that of centred numbers: no difference of large squares. */
static composed compose(n2_graph *g, const n2_node *in, const n2_norm *a) {
    const n2_shape s = n2_shape_at(g, in[X]);
    composed z = {.v = n2g_reshape(g, in[X], n2_dims(s.dim[0], positions(s), channels(s)))};
    if (in[SHIFT].id) z.v = n2g_add(g, z.v, along_channels(g, in[SHIFT]));
    const n2_node centred = n2g_sub(g, z.v, group_means(g, z.v, a->groups));
    const n2_node variance = group_means(g, n2g_mul(g, centred, centred), a->groups);
    z.unit = n2g_div(g, centred, n2g_sqrt(g, n2g_affine(g, variance, 1, a->eps)));
    z.before = z.unit;
    if (in[GAMMA].id) z.before = n2g_mul(g, z.before, along_channels(g, in[GAMMA]));
    if (in[BETA].id) z.before = n2g_add(g, z.before, along_channels(g, in[BETA]));
    z.y = a->act == N2_ACT_SILU    ? n2g_silu(g, z.before)
          : a->act == N2_ACT_LRELU ? n2g_lrelu(g, z.before, a->slope)
                                   : z.before;
    return z;
}

/* The gradient by one of the nodes in between. */
static n2_node gradient_by(n2_graph *g, const composed *z, n2_node dy, n2_node x) {
    n2_node dx;
    n2_partials(g, z->y, n2g_reshape(g, dy, n2_shape_at(g, z->y)), &x, 1, &dx);
    return dx;
}

static n2_node compose_input(n2_graph *g, const n2_node_data *d) {
    const composed z = compose(g, d->in, &d->attr->norm);
    return n2g_reshape(g, gradient_by(g, &z, d->in[DY], z.v), d->shape);
}

static n2_node compose_sums(n2_graph *g, const n2_node_data *d) {
    const composed z = compose(g, d->in, &d->attr->norm);
    const n2_node before = gradient_by(g, &z, d->in[DY], z.before);
    const n2_node columns[] = {before, n2g_mul(g, before, z.unit),
                               gradient_by(g, &z, d->in[DY], z.v)};
    const n2_shape one = n2_dims(d->shape.dim[0], d->shape.dim[1], 1);
    n2_node sums[3];
    for (int k = 0; k < 3; k++) sums[k] = n2g_reshape(g, n2g_sum(g, columns[k], n2_axis(1)), one);
    return n2g_concat_all(g, sums, 3, 2);
}

static void norm_input_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    n2_grad_by_composition(g, y, dy, compose_input, dx);
}

static void norm_sums_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    n2_grad_by_composition(g, y, dy, compose_sums, dx);
}

/* ---- rows are pictures --------------------------------------------------- */

static n2_rows map_pictures(const n2_graph *g, const n2_node_data *node, bool *row_input) {
    row_input[X] = true;
    for (int k = SHIFT; k <= BETA; k++)
        row_input[k] = node->in[k].id && n2_shape_at(g, node->in[k]).rank == 2;
    row_input[DY] = node->n_in > DY;
    return N2_ROWS_MAP;
}

#define ROW(NAME, CHEAP)                              \
    const n2_op n2_op_##NAME = {.name = #NAME,        \
                                .id = N2_OP_##NAME,   \
                                .grad = NAME##_grad,  \
                                .rows = map_pictures, \
                                .cheap = CHEAP}
ROW(norm, true);
ROW(norm_input, false);
ROW(norm_sums, false);
