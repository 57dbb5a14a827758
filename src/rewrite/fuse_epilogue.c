/* What follows a matrix product is done by the product's kernel, on its way out:
 *
 *     lrelu_grad(gate, a b)         multiply by the slope where the gate is not positive
 *     x + a b                       add; after the gate, if there is one
 *
 * So a residual block is two instructions forward and three backward: product with gate and sum,
 * weight gradient, bias gradient. */
#include "rewrites.h"

/* `done`: what the kernel of input k does already. */
n2_epilogue n2_fuse_epilogue(const n2_graph *g, const n2_node_data *node, int k, n2_epilogue done) {
    const bool gate = node->op->id == N2_OP_lrelu_grad, sum = node->op->id == N2_OP_add;
    if (!gate && !sum) return N2_NO_EPILOGUE;
    for (int i = 0; i < 2; i++)
        if (!n2_same_shape(n2_shape_at(g, node->in[i]), node->shape)) return N2_NO_EPILOGUE;
    const bool product = n2_op_of(g, node->in[k]) == N2_OP_matmul && node->shape.rank == 2;
    if (gate) return k == 1 && product ? N2_GATE_PRODUCT : N2_NO_EPILOGUE;
    return product || done == N2_GATE_PRODUCT ? N2_ADD_TO_PRODUCT : N2_NO_EPILOGUE;
}
