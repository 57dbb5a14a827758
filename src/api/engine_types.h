/* What the files behind n2ce_engine.h share: how its types map to the engine's. A graph and a
 * tensor are the engine's own under another name; nodes and shapes are copied; the other handles
 * are structs of this room, in the memory of their store. */
#ifndef N2_ENGINE_TYPES_H
#define N2_ENGINE_TYPES_H

#define N2CE_INSIDE /* the lines are the caller's */
#define N2_INSIDE
#include "n2ce_engine.h"
#include "nn/nn.h"
#include "train/device_choice.h"

struct n2ce_store {
    n2_store *tensors;
    n2_arena arena; /* parameters and layers */
};

struct n2ce_parameters {
    n2ce_store *store;
    n2_parameters list;
};

static inline n2_graph *n2_graph_in(n2ce_graph *g) { return (n2_graph *)g; }
static inline n2ce_graph *n2_graph_out(n2_graph *g) { return (n2ce_graph *)g; }
static inline n2_tensor *n2_tensor_in(n2ce_tensor *t) { return (n2_tensor *)t; }
static inline n2ce_tensor *n2_tensor_out(n2_tensor *t) { return (n2ce_tensor *)t; }
static inline n2ce_node n2_node_out(n2_node x) { return (n2ce_node){x.id}; }

n2_shape n2_shape_in(n2ce_shape shape);
n2ce_shape n2_shape_out(n2_shape shape);

/* Whether parameters and layers may have this name; else the context says why not. */
bool n2_has_name(const n2ce_parameters *parameters, const char *name);

/* The graph fails: what is NULL should have been made, and the context said why it was not. */
n2_node n2_fail_null(n2_graph *g, const char *what);

/* In what follows the graph may be NULL: nothing is done, and nodes are none.
 *
 * A node of this graph; with any other the graph fails, and it is none. */
n2_node n2_node_in(n2ce_graph *g, n2ce_node x);

/* Whether a tensor is one of the graph's store; with any other the graph fails. */
bool n2_tensor_fits(n2ce_graph *g, const n2ce_tensor *t);

/* The device of a name of the public header; NULL is the processor. N2CE_EINVAL with a sentence for
 * any other. */
n2ce_status n2_device_named(n2ce_ctx *ctx, const char *name, n2_device_choice *out);

#endif
