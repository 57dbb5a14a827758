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

/* ---- gradients: ../grad.c ---- */

/* The derivatives of sum(y dy) by the nodes x, for a given dy of y's shape, as if all x were
 * leaves: what they are made from, other x for instance, is not looked at. N2_NONE: y does not
 * depend on it. */
void n2_partials(n2_graph *g, n2_node y, n2_node dy, const n2_node *x, size_t n, n2_node *dx);

/* The value of a node, built from other ops, of the node's inputs. */
typedef n2_node n2_compose(n2_graph *g, const n2_node_data *node);

/* The gradient rule of an op that a composition can stand for: the composition's. For ops that are
 * gradients themselves, so that there are gradients of any order. */
void n2_grad_by_composition(n2_graph *g, n2_node y, n2_node dy, n2_compose *compose, n2_node *dx);

#endif
