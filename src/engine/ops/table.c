#include "ops.h"

const n2_op *const n2_ops[N2_OP_COUNT] = {
#define ROW(name) &n2_op_##name,
    N2_OP_LIST(ROW)
#undef ROW
};
