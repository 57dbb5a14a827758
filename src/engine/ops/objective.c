/* The N2CE loss: term(f) and its derivative weight(f). The kernels call src/objective/terms.h. */
#include "ops.h"

n2_node n2_build_n2ce_term(n2_graph *g, int op, n2_node f, double magnitude, bool is_den) {
    if (!f.id) return N2_NONE;
    if (!(magnitude >= 1)) return n2_graph_fail(g, "n2ce_loss: M is %g, not at least 1", magnitude);
    return n2_emit(g, (n2_op_id)op, &f, 1, n2_shape_at(g, f),
                   &(n2_attr){.n2ce = {magnitude, is_den}});
}

n2_node n2_build_n2ce_loss(n2_graph *g, n2_node f_num, n2_node f_den, double magnitude) {
    const n2_node num = n2_build_n2ce_term(g, N2_OP_n2ce_term, f_num, magnitude, false);
    const n2_node den = n2_build_n2ce_term(g, N2_OP_n2ce_term, f_den, magnitude, true);
    if (!num.id || !den.id) return N2_NONE;
    const double n_num = (double)n2_elements(n2_shape_at(g, num));
    const double n_den = (double)n2_elements(n2_shape_at(g, den));
    return n2g_add(g, n2g_scale(g, n2g_total(g, num), 1 / n_num),
                   n2g_scale(g, n2g_total(g, den), 1 / n_den));
}

static void n2ce_term_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    const n2_attr *attr = n2_at(g, y)->attr;
    const n2_node w = n2_build_n2ce_term(g, N2_OP_n2ce_weight, n2_input(g, y, 0),
                                         attr->n2ce.magnitude, attr->n2ce.is_den != 0);
    dx[0] = n2g_mul(g, dy, w);
}

/* w = -M/(M+r): w' = -w (1 + w).   w = M r/(M+r): w' = w (1 - w/M). */
static void n2ce_weight_grad(n2_graph *g, n2_node y, n2_node dy, n2_node *dx) {
    const n2_attr *attr = n2_at(g, y)->attr;
    const n2_node factor = attr->n2ce.is_den ? n2g_affine(g, y, -1 / attr->n2ce.magnitude, 1)
                                             : n2g_affine(g, y, -1, -1);
    dx[0] = n2g_mul(g, dy, n2g_mul(g, y, factor));
}

const n2_op n2_op_n2ce_term = {.name = "n2ce_term",
                               .id = N2_OP_n2ce_term,
                               .grad = n2ce_term_grad,
                               .rows = n2_rows_elementwise};
const n2_op n2_op_n2ce_weight = {.name = "n2ce_weight",
                                 .id = N2_OP_n2ce_weight,
                                 .grad = n2ce_weight_grad,
                                 .rows = n2_rows_elementwise};
