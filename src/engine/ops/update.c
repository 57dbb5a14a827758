/* Ops that write a tensor. Their value is the new content, read in place. */
#include "ops.h"

n2_node n2_build_assign(n2_graph *g, n2_tensor *t, n2_node x) {
    if (!t) return n2_graph_fail(g, "assign: the tensor is NULL (was there memory for it?)");
    if (!x.id) return N2_NONE;
    char a[64], b[64];
    if (!n2_same_shape(t->shape, n2_shape_at(g, x)))
        return n2_graph_fail(g, "assign: %s to the tensor \"%s\" %s",
                             n2_shape_text(n2_shape_at(g, x), a), t->name,
                             n2_shape_text(t->shape, b));
    if (t->dtype != n2_at(g, x)->dtype)
        return n2_graph_fail(g, "assign: a value stored as %s to the tensor \"%s\" of %s; cast it",
                             n2_dtype_name(n2_at(g, x)->dtype), t->name, n2_dtype_name(t->dtype));
    n2_build_read(g, t); /* so that the old value has a node, and a place in the order */
    return n2_emit_update(g, N2_OP_assign, &x, 1, &(n2_attr){.tensor = {t}});
}

n2_node n2_build_adam_update(n2_graph *g, const n2_adam *adam, n2_tensor *const tensors[3],
                             n2_node grad, n2_node rate, n2_node factor, n2_node step) {
    if (!grad.id || !rate.id || !factor.id || !step.id) return N2_NONE;
    char a[64], b[64];
    for (int i = 0; i < 3; i++)
        if (!tensors[i] || !n2_same_shape(tensors[i]->shape, n2_shape_at(g, grad)))
            return n2_graph_fail(g, "adam: a gradient %s for tensor %s",
                                 n2_shape_text(n2_shape_at(g, grad), a),
                                 tensors[i] ? n2_shape_text(tensors[i]->shape, b) : "NULL");
    for (int i = 0; i < 3; i++)
        if (tensors[i]->dtype != N2_NUMBER)
            return n2_graph_fail(g, "adam: the tensor \"%s\" is stored as %s; update its master",
                                 tensors[i]->name, n2_dtype_name(tensors[i]->dtype));
    n2_build_read(g, tensors[0]);
    const n2_attr attr = {.adam = *adam, .tensor = {tensors[0], tensors[1], tensors[2]}};
    const n2_node in[] = {grad, rate, factor, step};
    return n2_emit_update(g, N2_OP_adam, in, 4, &attr);
}

const n2_op n2_op_assign = {
    .name = "assign", .id = N2_OP_assign, .update = true, .any_dtype = true};
const n2_op n2_op_adam = {.name = "adam", .id = N2_OP_adam, .update = true};
