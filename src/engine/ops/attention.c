/* Attention over positions, and its gradient. */
#include "ops.h"

#include <math.h>

/* Whether these are queries, keys and values of so many heads; or else the graph fails. */
static bool has_heads(n2_graph *g, const char *op, n2_shape qkv, int64_t heads) {
    char text[64];
    if (qkv.rank != 3 || qkv.dim[2] == 0 || qkv.dim[2] % 3) {
        n2_graph_fail(g,
                      "%s: %s is not [n x positions x 3 channels]: queries, keys and values, of as "
                      "many channels each",
                      op, n2_shape_text(qkv, text));
        return false;
    }
    if (heads >= 1 && qkv.dim[2] / 3 % heads == 0) return true;
    n2_graph_fail(g, "%s: the %lld channels of queries in %s do not make %lld heads of as many", op,
                  (long long)(qkv.dim[2] / 3), n2_shape_text(qkv, text), (long long)heads);
    return false;
}

n2_node n2_build_attention(n2_graph *g, n2_node qkv, int64_t heads) {
    if (!qkv.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, qkv);
    if (!has_heads(g, "attention", s, heads)) return N2_NONE;
    const n2_shape y = n2_dims(s.dim[0], s.dim[1], s.dim[2] / 3);
    return n2_emit(g, N2_OP_attention, &qkv, 1, y, &(n2_attr){.attention = {heads}});
}

n2_node n2_build_attention_grad(n2_graph *g, n2_node qkv, n2_node dy, int64_t heads) {
    if (!qkv.id || !dy.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, qkv), sy = n2_shape_at(g, dy);
    char text[64], text_y[64];
    if (!has_heads(g, "attention_grad", s, heads)) return N2_NONE;
    if (!n2_same_shape(sy, n2_dims(s.dim[0], s.dim[1], s.dim[2] / 3)))
        return n2_graph_fail(g, "attention_grad: %s is no gradient of the attention of %s",
                             n2_shape_text(sy, text_y), n2_shape_text(s, text));
    const n2_node in[] = {qkv, dy};
    return n2_emit(g, N2_OP_attention_grad, in, 2, s, &(n2_attr){.attention = {heads}});
}

static void attention_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    dx[0] = n2g_attention_grad(g, n2_input(g, y, 0), dy, n2_at(g, y)->attr->attention.heads);
}

/* ---- the gradient's gradient, of primitive ops ---------------------------- */

/* Part k of q, k, v, or of y, which has one: [n x heads x t x d]. */
static n2_node part(n2_graph *g, n2_node x, int k, int64_t parts, int64_t heads) {
    const n2_shape s = n2_shape_at(g, x);
    const int64_t c = s.dim[2] / parts;
    const n2_node some = n2g_slice(g, x, 2, k * c, c);
    const n2_node split = n2g_reshape(g, some, n2_dims(s.dim[0], s.dim[1], heads, c / heads));
    return n2g_transpose(g, split, 1, 2);
}

/* And back: [n x t x c]. */
static n2_node whole(n2_graph *g, n2_node x) {
    const n2_node y = n2g_transpose(g, x, 1, 2);
    const n2_shape s = n2_shape_at(g, y);
    return n2g_reshape(g, y, n2_dims(s.dim[0], s.dim[1], s.dim[2] * s.dim[3]));
}

/* p (x - sum over j of p x): what the softmax p makes of a change x of its exponents, or of a
 * gradient by p. */
static n2_node through_softmax(n2_graph *g, n2_node p, n2_node x) {
    return n2g_mul(g, p, n2g_sub(g, x, n2g_sum(g, n2g_mul(g, p, x), n2_axis(3))));
}

/* What attention_grad gives is linear in dy, and L = sum(du attention_grad(qkv, dy)) is the sum of
 * dy times the change of y when q, k, v change by du = (a, b, c). With s = q k' / sqrt(d), p its
 * softmax and e = dy v':
 *
 *     s1 = (a k' + q b') / sqrt(d)     p1 = p (s1 - sum(p s1))     y1 = p1 v + p c = dL / d dy
 *
 * by which L = sum(e p1) + sum(dy c' p) is differentiated again. Formulas, and not a graph of
 * attention that is differentiated: dy may well depend on qkv, and must not be followed. */
typedef struct second {
    n2_graph *g;
    double scale;
    n2_node q, k, v, a, b, c, dy; /* [n x heads x t x d] */
    n2_node p, s1, p1, e, ds;     /* [n x heads x t x t]; ds = dL / d s1 */
} second;

static n2_node times(n2_graph *g, n2_node x, n2_node y) {
    return n2g_matmul(g, x, y, false, false);
}
static n2_node times_turned(n2_graph *g, n2_node x, n2_node y) {
    return n2g_matmul(g, x, y, false, true);
}
static n2_node turned_times(n2_graph *g, n2_node x, n2_node y) {
    return n2g_matmul(g, x, y, true, false);
}

static second second_of(n2_graph *g, n2_node u, n2_node du) {
    const n2_node qkv = n2_input(g, u, 0), dy = n2_input(g, u, 1);
    const int64_t heads = n2_at(g, u)->attr->attention.heads;
    second f = {.g = g};
    n2_node *const parts[] = {&f.q, &f.k, &f.v, &f.a, &f.b, &f.c};
    for (int i = 0; i < 6; i++) *parts[i] = part(g, i < 3 ? qkv : du, i % 3, 3, heads);
    f.dy = part(g, dy, 0, 1, heads);
    f.scale = 1 / sqrt((double)(n2_shape_at(g, dy).dim[2] / heads));
    const n2_node change = n2g_add(g, times_turned(g, f.a, f.k), times_turned(g, f.q, f.b));
    f.p = n2g_softmax(g, n2g_scale(g, times_turned(g, f.q, f.k), f.scale), 3);
    f.s1 = n2g_scale(g, change, f.scale);
    f.p1 = through_softmax(g, f.p, f.s1);
    f.e = times_turned(g, f.dy, f.v);
    f.ds = through_softmax(g, f.p, f.e);
    return f;
}

/* dL / ds, through p and p1. */
static n2_node by_scores(const second *f) {
    n2_graph *g = f->g;
    const n2_node mean = n2g_sum(g, n2g_mul(g, f->p, f->s1), n2_axis(3));
    const n2_node level = n2g_sum(g, n2g_mul(g, f->p, f->e), n2_axis(3));
    const n2_node here = n2g_mul(g, f->e, n2g_sub(g, f->s1, mean));
    const n2_node there = n2g_sub(g, times_turned(g, f->dy, f->c), n2g_mul(g, level, f->s1));
    return through_softmax(g, f->p, n2g_add(g, here, there));
}

static void attention_grad_grad(n2_graph *g, n2_node u, n2_node du, n2_node *dx) {
    if (n2_graph_status(g) != N2CE_OK) return;
    const second f = second_of(g, u, du);
    const n2_node h = by_scores(&f);
    const n2_node dq = n2g_add(g, times(g, h, f.k), times(g, f.ds, f.b));
    const n2_node dk = n2g_add(g, turned_times(g, h, f.q), turned_times(g, f.ds, f.a));
    const n2_node dv = turned_times(g, f.p1, f.dy);
    const n2_node all[] = {whole(g, n2g_scale(g, dq, f.scale)), whole(g, n2g_scale(g, dk, f.scale)),
                           whole(g, dv)};
    dx[0] = n2g_concat_all(g, all, 3, 2);
    dx[1] = whole(g, n2g_add(g, times(g, f.p1, f.v), times(g, f.p, f.c)));
}

/* ---- rows are pictures --------------------------------------------------- */

static n2_rows map_pictures(const n2_graph *g, const n2_node_data *node, bool *row_input) {
    (void)g;
    for (int k = 0; k < node->n_in; k++) row_input[k] = true;
    return N2_ROWS_MAP;
}

/* Products of t x t times d numbers. */
static double work(const n2_graph *g, const n2_node_data *node, double products) {
    const n2_shape s = n2_shape_at(g, node->in[0]);
    return products * 2 * (double)n2_elements(s) / 3 * (double)s.dim[1];
}

static double attention_flops(const n2_graph *g, const n2_node_data *node) {
    return work(g, node, 2);
}

static double attention_grad_flops(const n2_graph *g, const n2_node_data *node) {
    return work(g, node, 5);
}

const n2_op n2_op_attention = {.name = "attention",
                               .id = N2_OP_attention,
                               .grad = attention_grad,
                               .rows = map_pictures,
                               .flops = attention_flops};
const n2_op n2_op_attention_grad = {.name = "attention_grad",
                                    .id = N2_OP_attention_grad,
                                    .grad = attention_grad_grad,
                                    .rows = map_pictures,
                                    .flops = attention_grad_flops};
