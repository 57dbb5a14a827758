/* What is built from other ops: no kernels of their own, gradients for free. */
#include "ops.h"

n2_node n2_build_log_sigmoid(n2_graph *g, n2_node x) {
    return n2g_neg(g, n2g_softplus(g, n2g_neg(g, x)));
}

n2_node n2_build_softmax(n2_graph *g, n2_node x, int axis) {
    if (axis < 0 || axis >= N2_MAX_RANK) return n2_graph_fail(g, "softmax: along axis %d", axis);
    const n2_node top = n2g_detach(g, n2g_amax(g, x, n2_axis(axis)));
    const n2_node e = n2g_exp(g, n2g_sub(g, x, top));
    return n2g_div(g, e, n2g_sum(g, e, n2_axis(axis)));
}

/* p is rounded, so that backends of other numbers drop the same elements. */
n2_node n2_build_dropout(n2_graph *g, n2_node x, double p) {
    if (!x.id) return N2_NONE;
    if (!(p >= 0 && p < 1))
        return n2_graph_fail(g, "dropout: a probability of %g, not from 0 to below 1", p);
    if (p == 0) return x;
    const n2_node limit = n2g_constant(g, (double)(float)p);
    const n2_node kept = n2g_greater(g, n2g_randu(g, n2_shape_at(g, x)), limit);
    return n2g_mul(g, x, n2g_scale(g, kept, 1 / (1 - p)));
}

/* mean over rows of logsumexp(row) - row[index]. The chosen logit is picked by comparing
 * column numbers with the index. */
n2_node n2_build_cross_entropy(n2_graph *g, n2_node logits, n2_node index) {
    if (!logits.id || !index.id) return N2_NONE;
    const n2_shape s = n2_shape_at(g, logits), si = n2_shape_at(g, index);
    char a[64], b[64];
    if (s.rank != 2 || si.rank != 1 || si.dim[0] != s.dim[0])
        return n2_graph_fail(g, "cross_entropy: logits %s and index %s", n2_shape_text(s, a),
                             n2_shape_text(si, b));
    const n2_node column =
        n2g_reshape(g, n2g_row_index(g, s.dim[1], 1, s.dim[1]), n2_dims(1, s.dim[1]));
    const n2_node chosen = n2g_equal(g, n2g_reshape(g, index, n2_dims(s.dim[0], 1)), column);
    const n2_node picked = n2g_sum(g, n2g_mul(g, chosen, logits), n2_axis(1));
    const n2_node loss = n2g_sub(g, n2g_logsumexp(g, logits, n2_axis(1)), picked);
    return n2g_scale(g, n2g_total(g, loss), 1 / (double)s.dim[0]);
}

/* 1/2 sum_d (m^2 + e^v - 1 - v), v the log variance; mean over rows, nats. */
n2_node n2_build_gaussian_kl(n2_graph *g, n2_node mean, n2_node logvar) {
    if (!mean.id || !logvar.id) return N2_NONE;
    const n2_node square = n2g_mul(g, mean, mean);
    const n2_node rest = n2g_affine(g, n2g_sub(g, n2g_exp(g, logvar), logvar), 1, -1);
    const double rows = (double)n2_shape_at(g, mean).dim[0];
    return n2g_scale(g, n2g_total(g, n2g_add(g, square, rest)), 0.5 / rows);
}

n2_node n2_build_reparameterise(n2_graph *g, n2_node mean, n2_node logvar, n2_node eps) {
    return n2g_add(g, mean, n2g_mul(g, eps, n2g_exp(g, n2g_scale(g, logvar, 0.5))));
}

/* |x|^2 + |y|^2 - 2 x.y, not below zero. */
n2_node n2_build_squared_distances(n2_graph *g, n2_node a, n2_node b) {
    if (!a.id || !b.id) return N2_NONE;
    const n2_node aa = n2g_sum(g, n2g_mul(g, a, a), n2_axis(1));
    const n2_node bb = n2g_sum(g, n2g_mul(g, b, b), n2_axis(1));
    const n2_node cross = n2g_scale(g, n2g_matmul(g, a, b, false, true), -2);
    const n2_node row = n2g_reshape(g, bb, n2_dims(1, n2_shape_at(g, b).dim[0]));
    return n2g_maximum(g, n2g_add(g, n2g_add(g, aa, row), cross), n2g_constant(g, 0));
}
