/* How values lie in memory: as numbers of the backend, or in 16 bits.
 *
 * A graph is written in numbers. If the backend has a narrow type, a value lies in memory so if its
 * kernel can write it, it has three axes at least, all who read it can read it, and one of them
 * wants it: a convolution or a norm; or element-wise ops, if the results of all that read it lie
 * so. The inside of a network is narrow then; leaves, outputs, watched numbers, sums (which read 16
 * bits without wanting them), losses, and with them the last layer's output, are not. Kernels
 * compute in the backend's numbers in any case. */
#include "plan_data.h"

/* What readers say of a value. */
typedef struct opinion {
    bool wanted, refused;
    bool followed, left; /* by element-wise ops whose results are narrow, or are not */
} opinion;

/* Vectors and matrices, biases for instance, are small beside pictures: nothing is gained. */
static bool can_be_narrow(const n2_plan *p, uint32_t id) {
    const n2_node_data *d = n2_node_at(p, id);
    return p->nodes[id].root == id && d->shape.rank > 2 && d->dtype == N2_NUMBER &&
           n2_needs_kernel(d->op->id) && !d->op->update && p->backend->storage[d->op->id].writes;
}

/* Whether input and output are of the same kind: pictures of half the size, or some of their
 * channels, are; what is broadcast, biases for instance, is not. */
static bool is_of_size(const n2_plan *p, uint32_t input, uint32_t output) {
    enum { FEWER = 16 };
    return n2_elements(n2_node_at(p, input)->shape) >=
           n2_elements(n2_node_at(p, output)->shape) / FEWER;
}

/* What node `id`, whose own type is known, says of its inputs. */
static void ask(const n2_plan *p, uint32_t id, opinion *of) {
    const n2_node_data *d = n2_node_at(p, id);
    const n2_storage *s = &p->backend->storage[d->op->id];
    const bool narrow = p->nodes[id].dtype != N2_NUMBER;
    for (int k = 0; k < d->n_in; k++) {
        if (!d->in[k].id) continue;
        opinion *in = &of[p->nodes[d->in[k].id].root];
        const bool reads = s->reads >> k & 1;
        in->refused |= !reads;
        in->wanted |= s->wants >> k & 1;
        in->followed |= s->passes_on && narrow && is_of_size(p, d->in[k].id, id);
        in->left |= s->passes_on && !narrow;
    }
}

static bool is_welcome(const opinion *o) {
    return !o->refused && (o->wanted || (o->followed && !o->left));
}

/* Readers come after what they read: from the last node to the first. */
static void choose(n2_plan *p, opinion *of) {
    for (uint32_t id = p->n_nodes; id > 0; id--) {
        n2_planned *n = &p->nodes[id];
        if (!n->live) continue;
        if (n->output) of[n->root].refused = true;
        if (can_be_narrow(p, id) && is_welcome(&of[id])) n->dtype = p->backend->narrow;
        if (n->root == id) ask(p, id, of);
    }
    for (uint32_t id = 1; id <= p->n_nodes; id++)
        if (p->nodes[id].live) p->nodes[id].dtype = p->nodes[p->nodes[id].root].dtype;
}

n2ce_status n2_plan_storage(n2_plan *p) {
    for (uint32_t id = 1; id <= p->n_nodes; id++) p->nodes[id].dtype = n2_node_at(p, id)->dtype;
    if (p->backend->narrow == N2_NUMBER) return N2CE_OK;
    opinion *of = n2_alloc(p->ctx, (size_t)p->n_nodes + 1, sizeof *of);
    if (!of) return N2CE_ENOMEM;
    choose(p, of);
    n2_free(p->ctx, of);
    return N2CE_OK;
}
