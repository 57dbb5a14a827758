/* A product with a transposed b, of which a is not, gets the transposed b as a third input: it is
 * the same for all rows, so a plan makes it once, and kernels that like it read it instead of b. */
#define N2_INSIDE
#include "rewrites.h"

n2_node n2_pack_transposed(n2_graph *g, const n2_node_data *node) {
    const bool wants = node->op->id == N2_OP_matmul && node->attr->matmul.transpose_b &&
                       !node->attr->matmul.transpose_a && !node->in[2].id;
    if (!wants) return N2_NONE;
    const n2_node b = node->in[1], packed = n2_build_transpose(g, b, -2, -1);
    const n2_node in[] = {node->in[0], b, packed, node->in[3]};
    return n2_emit(g, N2_OP_matmul, in, node->n_in == 4 ? 4 : 3, node->shape, node->attr);
}
