#include "recompute.h"

enum {
    LONGEST = 16, /* cheap nodes in a row that are made again */
    SMALL = 8     /* what is so many times smaller than a value may be kept in its stead */
};

typedef struct copying {
    const n2_graph *from;
    n2_graph *to;
    uint32_t *renamed; /* of what is copied, its id there */
    uint32_t *again;   /* and of its latest copy that is made again; 0: none */
    int *length;       /* of the row of cheap nodes that ends here; 0: it cannot be made again */
    bool *far;         /* a gradient reads it that it is no part of */
    bool *stale;       /* made from a tensor that has been updated since */
    size_t n;
} copying;

static const n2_node_data *node_at(const copying *c, uint32_t id) {
    return n2_at(c->from, (n2_node){id});
}

static bool is_view(const n2_node_data *d) {
    return d->op->id == N2_OP_reshape || d->op->id == N2_OP_detach;
}

static bool is_leaf(const n2_node_data *d) {
    return d->op->id == N2_OP_tensor || d->op->id == N2_OP_constant || d->op->update;
}

/* ---- what can be made again ---------------------------------------------- */

static bool reads_from_afar(const n2_node_data *reader, const n2_node_data *value) {
    return reader->sweep > value->sweep;
}

/* Who reads a view reads what it is a view of. */
static void find_far(copying *c) {
    for (uint32_t id = n2_graph_size(c->from); id > 0; id--) {
        const n2_node_data *d = node_at(c, id);
        for (int k = 0; k < d->n_in; k++) {
            const uint32_t in = d->in[k].id;
            if (in) c->far[in] |= reads_from_afar(d, node_at(c, in)) || (is_view(d) && c->far[id]);
        }
    }
}

/* Whether an input costs nothing to have at hand later: it is kept anyway, small, or made again. */
static bool is_at_hand(const copying *c, uint32_t in, const n2_node_data *reader) {
    const n2_node_data *d = node_at(c, in);
    if (is_leaf(d) || c->length[in] > 0 || c->far[in]) return true;
    return n2_elements(d->shape) <= n2_elements(reader->shape) / SMALL;
}

static void find_cheap(copying *c) {
    for (uint32_t id = 1; id <= n2_graph_size(c->from); id++) {
        const n2_node_data *d = node_at(c, id);
        bool can = (d->op->cheap || is_view(d)) && !d->watched;
        int length = 1;
        for (int k = 0; k < d->n_in && can; k++) {
            const uint32_t in = d->in[k].id;
            if (!in) continue;
            can = is_at_hand(c, in, d);
            if (c->length[in] >= length) length = c->length[in] + 1;
        }
        c->length[id] = can && length <= LONGEST ? length : 0;
    }
}

/* ---- the copy ------------------------------------------------------------ */

/* A node that is made again for a gradient, with those it is made from. */
static uint32_t make_again(copying *c, uint32_t id, uint32_t sweep) {
    const uint32_t made = c->again[id];
    if (made && n2_at(c->to, (n2_node){made})->sweep == sweep) return made;
    n2_node_data d = *node_at(c, id);
    for (int k = 0; k < d.n_in; k++) {
        const uint32_t in = d.in[k].id;
        if (in) d.in[k].id = c->length[in] ? make_again(c, in, sweep) : c->renamed[in];
    }
    d.again = true;
    d.sweep = sweep;
    c->n++;
    return c->again[id] = n2_graph_append(c->to, &d).id;
}

static void copy_node(copying *c, uint32_t id) {
    n2_node_data d = *node_at(c, id);
    for (int k = 0; k < d.n_in; k++) {
        const uint32_t in = d.in[k].id;
        if (!in) continue;
        const bool afar = reads_from_afar(&d, node_at(c, in));
        const bool again = afar && c->length[in] > 0 && !c->stale[in];
        d.in[k].id = again ? make_again(c, in, d.sweep) : c->renamed[in];
    }
    c->renamed[id] = n2_graph_append(c->to, &d).id;
}

/* What was made from the old value of a tensor cannot be made again after its update. */
static void note_update(copying *c, uint32_t update) {
    const n2_tensor *t = node_at(c, update)->attr->tensor[0];
    for (uint32_t id = 1; id < update; id++) {
        const n2_node_data *d = node_at(c, id);
        if (is_leaf(d) && d->attr->tensor[0] == t) c->stale[id] = true;
        for (int k = 0; k < d->n_in && c->length[id]; k++) c->stale[id] |= c->stale[d->in[k].id];
    }
}

static void copy_all(copying *c) {
    find_far(c);
    find_cheap(c);
    for (uint32_t id = 1; id <= n2_graph_size(c->from); id++) {
        copy_node(c, id);
        if (node_at(c, id)->op->update) note_update(c, id);
    }
}

n2_graph *n2_graph_recomputed(const n2_graph *g, uint32_t *renamed, size_t *n) {
    const size_t size = (size_t)n2_graph_size(g) + 1;
    n2_arena scratch = n2_arena_new(n2_store_ctx(n2_graph_store(g)));
    copying c = {.from = g,
                 .to = n2_graph_like(g),
                 .renamed = renamed,
                 .again = n2_arena_alloc(&scratch, size, sizeof *c.again),
                 .length = n2_arena_alloc(&scratch, size, sizeof *c.length),
                 .far = n2_arena_alloc(&scratch, size, sizeof *c.far),
                 .stale = n2_arena_alloc(&scratch, size, sizeof *c.stale)};
    const bool complete = c.to && c.again && c.length && c.far && c.stale;
    if (complete) copy_all(&c);
    n2_arena_free(&scratch);
    *n = c.n;
    if (complete && n2_graph_status(c.to) == N2CE_OK) return c.to;
    n2_graph_free(c.to);
    return NULL;
}
