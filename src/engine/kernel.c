#include "kernel.h"

int64_t n2_kernel_work(const n2_node_data *node, n2_shape input) {
    return node->op->id == N2_OP_median ? n2_elements(input) : 0;
}
