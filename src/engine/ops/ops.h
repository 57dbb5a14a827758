/* What the files of this folder share. Each defines the rows of its ops: builder, shape
 * rule, gradient rule. Kernels live with the backends and are found by the op's id. */
#ifndef N2_OPS_H
#define N2_OPS_H

#define N2_INSIDE
#include "engine/graph.h"

#define N2_OP_DECLARE(name) extern const n2_op n2_op_##name;
N2_OP_LIST(N2_OP_DECLARE)
#undef N2_OP_DECLARE

/* The shape two operands broadcast to; false if they do not fit. */
bool n2_broadcast_shape(n2_shape a, n2_shape b, n2_shape *out);

#endif
