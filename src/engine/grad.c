/* Reverse mode as a graph-to-graph transform: walk the nodes backwards and let every op
 * build the nodes of its gradient. What it builds is ordinary graph, so it can be
 * differentiated again. A gradient's nodes have the line of the node they are of. */
#include "ops/ops.h"

typedef struct sweep {
    n2_graph *g;
    const n2_node *leaves; /* what these are made from is not looked at */
    size_t n_leaves;
    bool *depends;    /* on one of the x */
    n2_node *adjoint; /* d y / d node */
} sweep;

static void mark_dependents(sweep *s, const n2_node *x, size_t n, uint32_t last) {
    for (size_t i = 0; i < n; i++) /* x may have been built after y, which has nothing of it then */
        if (x[i].id && x[i].id <= last) s->depends[x[i].id] = true;
    for (uint32_t id = 1; id <= last; id++) {
        const n2_node_data *d = n2_at(s->g, (n2_node){id});
        if (!d->op->grad) continue; /* nothing flows through it */
        for (int k = 0; k < d->n_in; k++) s->depends[id] |= s->depends[d->in[k].id];
    }
}

static void add_adjoint(sweep *s, n2_node to, n2_node dx) {
    n2_node *slot = &s->adjoint[to.id];
    *slot = slot->id ? n2g_add(s->g, *slot, dx) : dx;
}

static bool is_leaf(const sweep *s, uint32_t id) {
    for (size_t i = 0; i < s->n_leaves; i++)
        if (s->leaves[i].id == id) return true;
    return false;
}

static void visit(sweep *s, uint32_t id) {
    const n2_node y = {id}, dy = s->adjoint[id];
    const n2_node_data d = *n2_at(s->g, y); /* a copy: building moves the nodes */
    if (!dy.id || !s->depends[id] || !d.op->grad || is_leaf(s, id)) return;
    n2_node dx[N2_MAX_INPUTS] = {{0}};
    d.op->grad(s->g, y, dy, dx);
    for (int k = 0; k < d.n_in; k++)
        if (dx[k].id && s->depends[d.in[k].id]) add_adjoint(s, d.in[k], dx[k]);
    if (d.line) n2_built_here(s->g, N2_NONE, d.file, d.line);
}

static n2_node zeros_like(n2_graph *g, n2_node x) {
    return n2g_broadcast(g, n2g_constant(g, 0), n2_shape_at(g, x));
}

/* Of sum(y dy). dx[i]: N2_NONE where y does not depend on x[i]. */
static void sweep_back(n2_graph *g, n2_node y, n2_node dy, const n2_node *x, size_t n, bool partial,
                       n2_node *dx) {
    n2_arena scratch = n2_arena_new(n2_store_ctx(n2_graph_store(g)));
    const uint32_t last = y.id;
    sweep s = {.g = g,
               .leaves = x,
               .n_leaves = partial ? n : 0,
               .depends = n2_arena_alloc(&scratch, (size_t)last + 1, sizeof *s.depends),
               .adjoint = n2_arena_alloc(&scratch, (size_t)last + 1, sizeof *s.adjoint)};
    if (s.depends && s.adjoint) {
        mark_dependents(&s, x, n, last);
        s.adjoint[y.id] = dy;
        for (uint32_t id = last; id > 0 && n2_graph_status(g) == N2CE_OK; id--) visit(&s, id);
        for (size_t i = 0; i < n; i++) {
            const n2_node d = x[i].id <= last ? s.adjoint[x[i].id] : N2_NONE;
            dx[i] = d.id ? n2g_broadcast(g, d, n2_shape_at(g, x[i])) : N2_NONE;
        }
    } else {
        n2_graph_out_of_memory(g);
    }
    n2_arena_free(&scratch);
}

void n2_build_grad(n2_graph *g, n2_node y, const n2_node *x, size_t n, n2_node *dx) {
    for (size_t i = 0; i < n; i++) dx[i] = N2_NONE;
    if (!y.id) return;
    char text[64];
    if (n2_shape_at(g, y).rank != 0) {
        n2_graph_fail(g, "grad: of a scalar only, not of %s",
                      n2_shape_text(n2_shape_at(g, y), text));
        return;
    }
    n2_graph_begin_sweep(g);
    sweep_back(g, y, n2g_constant(g, 1), x, n, false, dx);
    for (size_t i = 0; i < n && n2_graph_status(g) == N2CE_OK; i++)
        if (!dx[i].id) dx[i] = zeros_like(g, x[i]);
    n2_graph_end_sweep(g);
}

void n2_partials(n2_graph *g, n2_node y, n2_node dy, const n2_node *x, size_t n, n2_node *dx) {
    for (size_t i = 0; i < n; i++) dx[i] = N2_NONE;
    if (y.id && dy.id) sweep_back(g, y, dy, x, n, true, dx);
}

/* Rewrites would reach through the inputs: a reshape of an input that is a reshape itself becomes
 * one of what that is made from, for instance. */
void n2_grad_by_composition(n2_graph *g, n2_node y, n2_node dy, n2_compose *compose, n2_node *dx) {
    const n2_node_data d = *n2_at(g, y);
    const n2_rewrites *rewrites = n2_graph_set_rewrites(g, NULL);
    n2_partials(g, compose(g, &d), dy, d.in, (size_t)d.n_in, dx);
    n2_graph_set_rewrites(g, rewrites);
    for (int k = 1; k < d.n_in; k++) /* an input that is there twice has its gradient once */
        for (int i = 0; i < k; i++)
            if (d.in[i].id == d.in[k].id) dx[k] = N2_NONE;
}
