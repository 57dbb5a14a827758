/* An element-wise op of constants is a constant. */
#define N2_INSIDE
#include "rewrites.h"

#include <math.h>

static bool is_constant(const n2_graph *g, n2_node x) { return n2_op_of(g, x) == N2_OP_constant; }

/* False for ops that are not worth it. */
static bool fold(const n2_node_data *node, double x, double y, double *value) {
    switch (node->op->id) {
    case N2_OP_neg:
        *value = -x;
        break;
    case N2_OP_exp:
        *value = exp(x);
        break;
    case N2_OP_log:
        *value = log(x);
        break;
    case N2_OP_sqrt:
        *value = sqrt(x);
        break;
    case N2_OP_reciprocal:
        *value = 1 / x;
        break;
    case N2_OP_affine:
        *value = node->attr->a * x + node->attr->b;
        break;
    case N2_OP_add:
        *value = x + y;
        break;
    case N2_OP_sub:
        *value = x - y;
        break;
    case N2_OP_mul:
        *value = x * y;
        break;
    case N2_OP_div:
        *value = x / y;
        break;
    default:
        return false;
    }
    return true;
}

n2_node n2_fold_constants(n2_graph *g, const n2_node_data *node) {
    double x[2] = {0}, value;
    if (node->n_in < 1 || node->n_in > 2) return N2_NONE;
    for (int k = 0; k < node->n_in; k++) {
        if (!is_constant(g, node->in[k])) return N2_NONE;
        x[k] = n2_at(g, node->in[k])->attr->value;
    }
    return fold(node, x[0], x[1], &value) ? n2_build_constant(g, value) : N2_NONE;
}
