/* Which jobs a tower consists of, and the tower made of them: tower.h. */
#include "tower.h"

#include "queue.h"

#include <string.h>

static bool is_layer(const noted *n) {
    return (n->j.kind == JOB_MATMUL || n->j.kind == JOB_NARROW) && n->j.product.tower;
}

static bool overlaps(const span *s, const float *x, int64_t floats) {
    return s->begin < (uintptr_t)(x + floats) && s->end > (uintptr_t)x;
}

static bool covers(const span *s, const float *x, int64_t floats) {
    return s->begin <= (uintptr_t)x && s->end >= (uintptr_t)(x + floats);
}

/* ---- what need not be stored --------------------------------------------- */

/* The product before job i in its tower; SIZE_MAX: none. */
static size_t layer_before(const n2_queue *q, size_t i) {
    const size_t chain = q->list[i].chain;
    while (i-- > chain)
        if (q->list[i].chain == chain && q->list[i].j.kind == JOB_MATMUL && !q->list[i].taken)
            return i;
    return SIZE_MAX;
}

static bool is_made_by(const noted *layer, const float *x) {
    return x && (x == layer->j.out || x == layer->j.more[0]);
}

/* A way to read what layer i made: does job k? */
typedef bool reading(const n2_queue *q, size_t k, size_t i);

static bool in_no_way(const n2_queue *, size_t, size_t) { return false; }

/* From registers: it is the next layer of the same tower, or taken along there. */
static bool in_registers(const n2_queue *q, size_t k, size_t i) {
    const noted *n = &q->list[k], *layer = &q->list[i];
    if (n->chain != layer->chain) return false;
    if (n->taken) return true; /* only from the layer that made it: n2_tower_admits */
    const bool adds_more = n->j.addend && n->j.addend == layer->j.more[0];
    return layer_before(q, k) == i && !is_made_by(layer, n->j.gate) && !adds_more;
}

/* Whether all that read the numbers at x, which job i wrote, before they are written anew, do so in
 * the given way. */
static bool all_read(const n2_queue *q, size_t i, const float *x, int64_t floats, reading *way) {
    for (size_t k = i + 1; k < q->n; k++) {
        const noted *n = &q->list[k];
        bool ends = false;
        for (int s = 0; s < n->n_spans; s++) {
            const span *at = &n->spans[s];
            if (!overlaps(at, x, floats)) continue;
            if (at->written && !n->j.add && covers(at, x, floats))
                ends = true;
            else if (at->written || !way(q, k, i))
                return false;
        }
        if (ends) return true;
    }
    return !q->list[i].kept;
}

bool n2_is_read_later(const n2_queue *q, size_t i, const float *x, int64_t floats) {
    return !all_read(q, i, x, floats, in_no_way);
}

static bool is_read_from_memory(const n2_queue *q, size_t i, const float *x) {
    return x && !all_read(q, i, x, q->list[i].j.n, in_registers);
}

static void forget_write(noted *n, const float *x) {
    for (int s = 0; s < n->n_spans; s++)
        if (n->spans[s].written && n->spans[s].begin == (uintptr_t)x)
            n->spans[s--] = n->spans[--n->n_spans];
}

void n2_towers_trim(n2_queue *q) {
    for (size_t i = 0; i < q->n; i++) {
        noted *n = &q->list[i];
        if (!is_layer(n) || !n->j.more[0] || n2_is_read_later(q, i, n->j.out, n->j.n))
            continue;
        forget_write(n, n->j.out);
        n->j.out = NULL;
    }
}

/* ---- what belongs together ----------------------------------------------- */

/* A weight's gradient: a slice is what a block of a tower has. */
static bool is_gradient(const job *j) {
    const job_product *p = &j->product;
    return j->kind == JOB_MATMUL && p->ta && !p->tb && p->batches == 1 && p->m == TOWER_WIDTH &&
           p->n == TOWER_WIDTH && p->slice_k <= TOWER_ROWS && !j->in[3] && !j->gate && !j->addend;
}

static bool is_column_sum(const job *j) {
    return j->kind == JOB_SUM_COLUMNS && j->m == TOWER_WIDTH &&
           j->n_blocks == j->k * (TOWER_WIDTH / 32);
}

bool n2_tower_takes(const noted *n) { return is_gradient(&n->j) || is_column_sum(&n->j); }

static int64_t rows_of(const job *j) {
    return is_column_sum(j) ? j->n : is_gradient(j) ? j->product.k : j->product.m;
}

/* The layer of the chain whose output, in registers at that point, is x. */
static size_t layer_with(const n2_queue *q, size_t chain, size_t end, const float *x) {
    for (size_t k = end; k-- > chain;) {
        const noted *n = &q->list[k];
        if (n->chain == chain && !n->taken && n->j.kind == JOB_MATMUL && n->j.out == x) return k;
    }
    return SIZE_MAX;
}

static bool may_be_taken(const n2_queue *q, size_t chain, size_t i) {
    const noted *n = &q->list[i];
    const size_t k = layer_with(q, chain, i, n->j.in[0]);
    if (k == SIZE_MAX || q->list[k].j.product.n != TOWER_WIDTH) return false;
    if (rows_of(&n->j) != q->list[k].j.product.m) return false;
    if (!is_gradient(&n->j)) return (q->list[k].has & (HAS_GRADIENT | HAS_SUMS)) == HAS_GRADIENT;
    for (size_t x = chain; x < i; x++) /* its input must be there before the tower begins */
        if (q->list[x].chain == chain && is_made_by(&q->list[x], n->j.in[1])) return false;
    return !(q->list[k].has & HAS_GRADIENT);
}

/* Threads read what they wrote themselves, but for a narrow layer's output. */
static bool is_spread(const n2_queue *q, size_t chain, size_t i) {
    for (size_t k = chain; k < i; k++)
        if (q->list[k].chain == chain && q->list[k].j.kind == JOB_NARROW &&
            q->list[k].j.out == q->list[i].j.in[0])
            return true;
    return false;
}

bool n2_tower_admits(const n2_queue *q, size_t chain, size_t i) {
    const noted *first = &q->list[chain], *n = &q->list[i];
    if (!is_layer(first) || first->j.kind != JOB_MATMUL) return false;
    if (n2_tower_takes(n)) return may_be_taken(q, chain, i);
    if (!is_layer(n) || first->j.chained >= MOST_LAYERS - 1) return false;
    if (n->j.kind == JOB_NARROW) return is_made_by(&q->list[first->last], n->j.in[0]);
    return n->j.in[2] && !is_spread(q, chain, i);
}

/* Slices are written as threads have them; who adds them up puts them in order. */
static void keep_own_order(n2_queue *q, size_t i) {
    const job *j = &q->list[i].j;
    if (!is_gradient(j) || j->product.slices == 1) return;
    for (size_t k = i + 1; k < q->n; k++)
        if (q->list[k].j.kind == JOB_SUM_SLICES && q->list[k].j.in[0] == j->out) {
            q->list[k].j.k = 1;
            return;
        }
}

void n2_tower_add(n2_queue *q, size_t chain, size_t i) {
    noted *n = &q->list[i];
    n->taken = n2_tower_takes(n);
    if (n->taken) keep_own_order(q, i);
    if (n->taken)
        q->list[layer_with(q, chain, i, n->j.in[0])].has |=
            is_gradient(&n->j) ? HAS_GRADIENT : HAS_SUMS;
    else if (n->j.kind == JOB_MATMUL)
        q->list[chain].last = i;
}

/* ---- what only towers read ----------------------------------------------- */

/* The gradient that is taken along after layer i; SIZE_MAX: none. */
static size_t gradient_after(const n2_queue *q, size_t i) {
    const size_t chain = q->list[i].chain;
    for (size_t k = i + 1; k < q->n; k++) {
        const noted *n = &q->list[k];
        if (n->chain == chain && n->taken && is_gradient(&n->j) &&
            layer_with(q, chain, k, n->j.in[0]) == i)
            return k;
    }
    return SIZE_MAX;
}

/* Whether the gate of layer k is the input of the gradient before it, which the block has. */
static bool gates_input(const n2_queue *q, size_t k) {
    const noted *n = &q->list[k];
    if (!is_layer(n) || !n->j.gate || n->j.product.n != TOWER_WIDTH) return false;
    const size_t before = layer_before(q, k);
    const size_t gradient = before == SIZE_MAX ? SIZE_MAX : gradient_after(q, before);
    return gradient != SIZE_MAX && q->list[gradient].j.in[1] == n->j.gate;
}

/* As the input of a gradient, or as the gate that goes with it, of a tower with the same rows. */
static bool in_blocks(const n2_queue *q, size_t k, size_t i) {
    const noted *n = &q->list[k];
    const float *x = q->list[i].j.more[0];
    if (in_registers(q, k, i)) return true;
    if (n->taken) return n->j.in[1] == x && rows_of(&n->j) == q->list[i].j.product.m;
    return n->j.gate == x && n->j.in[0] != x && n->j.addend != x && gates_input(q, k);
}

/* Whether a gradient is made with the LeakyReLU of layer i. */
static bool has_gradient(const n2_queue *q, size_t i) {
    for (size_t k = i + 1; k < q->n; k++)
        if (q->list[k].taken && q->list[k].j.in[1] == q->list[i].j.more[0]) return true;
    return false;
}

/* Whether only towers with the same blocks read the LeakyReLU of layer i, some of them for a
 * gradient: then it can lie as their threads want it. */
static bool is_private(const n2_queue *q, size_t i) {
    const job *j = &q->list[i].j;
    const float *x = j->more[0];
    if (!x || j->product.n != TOWER_WIDTH || j->product.m % TOWER_ROWS != 0) return false;
    return (uintptr_t)x % 16 == 0 && has_gradient(q, i) && all_read(q, i, x, j->n, in_blocks);
}

/* Rows that a block of the tower has: those whose numbers lie in a block's own order, or that
 * take gradients along, are large. */
int n2_tower_rows(const n2_queue *q, size_t chain) {
    if (q->list[chain].j.product.m > SMALL_MOST) return TOWER_ROWS;
    for (size_t i = chain; i < q->n; i++) {
        const noted *n = &q->list[i];
        if (n->chain == chain && (n->taken || (is_layer(n) && is_private(q, i)))) return TOWER_ROWS;
    }
    return SMALL_ROWS;
}

/* As a gate of a tower with the same blocks. */
static bool as_gate(const n2_queue *q, size_t k, size_t i) {
    const noted *n = &q->list[k], *layer = &q->list[i];
    const float *x = layer->j.more[0];
    if (in_registers(q, k, i)) return true;
    return is_layer(n) && n->j.gate == x && n->j.in[0] != x && n->j.addend != x &&
           n->j.product.m == layer->j.product.m && n->j.product.n == TOWER_WIDTH &&
           n2_tower_rows(q, n->chain) == n2_tower_rows(q, layer->chain);
}

/* Whether nobody wants to know more of the LeakyReLU of layer i than its sign. */
static bool is_only_gate(const n2_queue *q, size_t i) {
    const job *j = &q->list[i].j;
    if (!j->more[0] || j->product.n != TOWER_WIDTH || is_private(q, i)) return false;
    return all_read(q, i, j->more[0], j->n, as_gate);
}

/* The layer before job i whose LeakyReLU is x; SIZE_MAX: none. */
static size_t maker_of(const n2_queue *q, size_t i, const float *x) {
    while (i-- > 0)
        if (is_layer(&q->list[i]) && q->list[i].j.more[0] == x) return i;
    return SIZE_MAX;
}

/* ---- the tower ----------------------------------------------------------- */

static bool is_even(const void *x) { return (uintptr_t)x % 8 == 0; }

static void connect(const noted *before, const job *j, tower_layer *l) {
    l->source = FROM_MEMORY;
    if (!before) return;
    const int64_t n = before->j.product.n;
    if (j->product.k == n && j->in[0] == before->j.out && j->in[0]) l->source = FROM_OUT;
    if (j->product.k == n && j->in[0] == before->j.more[0] && j->in[0]) l->source = FROM_MORE;
    l->slope_a = before->j.slope_more;
    l->adds_last = j->addend && j->addend == before->j.out && j->product.n == n;
}

static void make_layer(const n2_queue *q, size_t i, tower_layer *l) {
    const noted *n = &q->list[i];
    const job *j = &n->j;
    const size_t at = layer_before(q, i);
    const noted *before = at == SIZE_MAX ? NULL : &q->list[at];
    memset(l, 0, sizeof *l);
    l->kind = j->kind == JOB_NARROW ? LAYER_NARROW : j->in[2] ? LAYER_PRODUCT : LAYER_OUTER;
    l->a = j->in[0];
    l->b = l->kind == LAYER_PRODUCT ? j->in[2] : j->in[1];
    l->bias = j->in[3];
    l->gate = j->gate;
    l->addend = j->addend;
    l->slope = j->slope;
    l->slope_more = j->slope_more;
    l->k = (int32_t)j->product.k;
    l->n = (int32_t)j->product.n;
    connect(before, j, l);
    const bool narrow = l->kind == LAYER_NARROW;
    if (narrow || is_read_from_memory(q, i, j->out)) l->out = j->out;
    if (is_read_from_memory(q, i, j->more[0])) l->more = j->more[0];
    l->own_more = l->more && is_private(q, i);
    l->more_bits = l->more && is_only_gate(q, i);
    const size_t gate_maker = j->gate ? maker_of(q, i, j->gate) : SIZE_MAX;
    l->gate_bits = gate_maker != SIZE_MAX && is_only_gate(q, gate_maker);
    l->gates_input = gates_input(q, i);
    l->wide = l->n == TOWER_WIDTH && is_even(l->gate) && is_even(l->out) && is_even(l->more);
}

static void take_along(const n2_queue *q, size_t i, tower_layer *l) {
    const job *j = &q->list[i].j;
    if (is_gradient(j)) {
        l->input = j->in[1];
        l->gradient = j->out;
        l->gradient_adds = j->add;
        l->own_gradient = j->product.slices > 1;
        const size_t maker = maker_of(q, q->list[i].chain, j->in[1]);
        l->own_input = maker != SIZE_MAX && is_private(q, maker);
    } else {
        l->sums = j->out;
        l->sums_add = j->add;
    }
}

void n2_tower_make(const n2_queue *q, size_t chain, uint32_t first_block, tower *t) {
    size_t place[MOST_LAYERS];
    t->first_block = (int32_t)first_block;
    t->rows = q->list[chain].j.product.m;
    t->block_rows = n2_tower_rows(q, chain);
    t->n_blocks = (int32_t)((t->rows + t->block_rows - 1) / t->block_rows);
    t->n_layers = 0;
    t->gradients = 0;
    for (size_t i = chain; i < q->n; i++) {
        const noted *n = &q->list[i];
        if (n->chain != chain) continue;
        if (!n->taken) {
            place[t->n_layers] = i;
            make_layer(q, i, &t->layer[t->n_layers++]);
            continue;
        }
        int k = t->n_layers - 1;
        while (k > 0 && q->list[place[k]].j.out != n->j.in[0]) k--;
        take_along(q, i, &t->layer[k]);
        t->gradients = 1;
    }
}
