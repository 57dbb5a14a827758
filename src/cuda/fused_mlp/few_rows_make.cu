/* What the layers of a fused MLP of few rows do, as bits that its kernel asks. */
#include "mlp.h"

static bool is_own(const fused_mlp *t, int k, const void *x) {
    for (int i = 0; x && i < k; i++) {
        const mlp_layer *l = &t->layer[i];
        if (x == l->out || x == l->more || x == l->more_gates) return true;
    }
    return false;
}

static bool reads_own(const fused_mlp *t, int k) {
    const mlp_layer *l = &t->layer[k];
    return is_own(t, k, l->gate) || is_own(t, k, l->gates) || is_own(t, k, l->addend) ||
           (l->source == FROM_MEMORY && is_own(t, k, l->a)) || (uintptr_t)l->gates % 16;
}

static uint32_t stores_of(const mlp_layer *l, const mlp_layer *next) {
    const bool multiplied = next && next->kind == LAYER_PRODUCT;
    const bool leaky = l->more_stash || l->more_gates;
    uint32_t does = (l->out ? STORES : 0) | (l->more ? STORES_LEAKY : 0);
    if (l->out_stash) does |= multiplied && next->source == FROM_OUT ? RIDES : STRAYS;
    if (leaky) does |= multiplied && next->source == FROM_MORE ? RIDES_LEAKY : STRAYS_LEAKY;
    return does;
}

static uint32_t takes_of(const mlp_layer *l, bool own) {
    static const uint32_t takes[] = {TAKES_MEMORY, 0, TAKES_LEAKY, TAKES_SAME}; /* layer_source */
    if (l->kind == LAYER_OUTER) return own ? 0 : TAKES_MEMORY;
    return l->kind == LAYER_PRODUCT ? MULTIPLIES | takes[l->source] : 0;
}

static uint32_t what_it_does(const fused_mlp *t, int k) {
    const mlp_layer *l = &t->layer[k];
    const uint32_t stores = stores_of(l, k + 1 < t->n_layers ? l + 1 : NULL);
    if (l->kind == LAYER_NARROW) return IS_NARROW;
    if (l->kind == LAYER_ROWS) return MAKES_ROWS | ADDS_LAST | stores;
    return takes_of(l, reads_own(t, k)) | stores | (l->adds_last ? ADDS_LAST : 0) |
           (l->bias ? ADDS_BIAS : 0) | (l->addend && !l->adds_last ? ADDS_ROWS : 0) |
           (l->gates ? HAS_GATES : 0) | (l->gate && !l->gates ? HAS_GATE_ROWS : 0) |
           (reads_own(t, k) ? READS_OWN : 0);
}

/* Layers that stash nothing may be of a form that does: there is none to store. */
static uint32_t form_of(uint32_t does) {
    if ((does | RIDES) == GOES_BACK) return GOES_BACK;
    return (does | RIDES_LEAKY) == GOES_FORWARD ? (uint32_t)GOES_FORWARD : does;
}

static bool has_form(uint32_t does) { return does == GOES_FORWARD || does == GOES_BACK; }

void n2_few_rows_make(fused_mlp *t) {
    int rows = MOST_LAYERS, extra = MOST_LAYERS; /* none */
    for (int k = t->n_layers; k-- > 0;) {
        mlp_layer *l = &t->layer[k];
        l->does = form_of(what_it_does(t, k));
        l->run = 1;
        if (k + 1 < t->n_layers && has_form(l->does) && l->does == l[1].does)
            l->run = (uint8_t)(1 + l[1].run);
        l->next_rows = (int16_t)rows;
        l->next_extra = (int16_t)extra;
        if (l->does & READS_OWN) continue;
        if (l->does & TAKES_MEMORY) rows = k;
        if (l->does & (HAS_GATE_ROWS | ADDS_ROWS | IS_NARROW)) extra = k;
    }
    t->first_rows = rows;
    t->first_extra = extra;
}
