/* Which kernels read and write values of 16 bits. Arithmetic is in float32 all the same. */
#include "cuda/runtime/queue.h"

#include <string.h>

enum { ALL = 255 };

static const n2_op_id elementwise[] = {
#define NAME(name) N2_OP_##name,
    N2_UNARY_LIST(NAME) N2_BINARY_LIST(NAME) N2_OP_broadcast, N2_OP_pool2, N2_OP_upsample2,
    N2_OP_slice, N2_OP_concat
#undef NAME
};

void n2_cuda_storage(n2_storage table[N2_OP_COUNT]) {
    memset(table, 0, N2_OP_COUNT * sizeof *table);
    for (const n2_op_id op : elementwise) table[op] = n2_storage{ALL, 0, true, true};
    /* pictures, not kernels */
    table[N2_OP_conv2d] = table[N2_OP_conv2d_input] = n2_storage{1, 1, true, false};
    table[N2_OP_attention] = n2_storage{1, 1, true, false};
    table[N2_OP_attention_grad] = n2_storage{3, 3, true, false};
    table[N2_OP_conv2d_weight] = n2_storage{3, 3, false, false};
    /* x and dy, not parameters */
    table[N2_OP_norm] = n2_storage{1, 1, true, false};
    table[N2_OP_norm_input] = n2_storage{1 | 1 << 4, 1 | 1 << 4, true, false};
    table[N2_OP_norm_sums] = n2_storage{1 | 1 << 4, 1 | 1 << 4, false, false};
    table[N2_OP_sum] = n2_storage{1, 0, false, false};
    /* in double precision, of single numbers */
    table[N2_OP_n2ce_term] = table[N2_OP_n2ce_weight] = n2_storage{0, 0, false, false};
}
