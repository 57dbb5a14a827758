/* Which jobs a fused MLP consists of, and the fused MLP made of them: mlp.h. */
#include "gradient.h"
#include "make.h"

#include <string.h>

static bool is_layer(const noted *n) {
    return n2_is_mlp_layer(n) || (n->j.kind == JOB_NARROW && n->j.product.mlp_layer);
}

static bool overlaps(const span *s, const float *x, int64_t floats) {
    return s->begin < (uintptr_t)(x + floats) && s->end > (uintptr_t)x;
}

/* ---- what need not be stored --------------------------------------------- */

/* The layer before job i in its fused MLP that made what is in registers; SIZE_MAX: none. */
static size_t layer_before(const n2_queue *q, size_t i) {
    const size_t chain = q->list[i].chain;
    while (i-- > chain)
        if (q->list[i].chain == chain && n2_is_mlp_layer(&q->list[i])) return i;
    return SIZE_MAX;
}

static bool is_made_by(const noted *layer, const float *x) {
    return x && (x == layer->j.out || x == layer->j.more[0]);
}

/* From registers: it is the next layer of the same fused MLP. */
static bool in_registers(const n2_queue *q, size_t k, size_t i) {
    const noted *n = &q->list[k], *layer = &q->list[i];
    if (n->chain != layer->chain) return false;
    const bool adds_more = n->j.addend && n->j.addend == layer->j.more[0];
    return layer_before(q, k) == i && !is_made_by(layer, n->j.gate) && !adds_more;
}

/* As the gate of a layer with the same rows, two words a thread. */
static bool as_gate(const noted *n, const noted *layer) {
    const float *x = layer->j.more[0];
    return is_layer(n) && n->j.gate == x && n->j.in[0] != x && n->j.addend != x &&
           n->j.product.m == layer->j.product.m && n->j.product.n == layer->j.product.n &&
           layer->j.n >= stash_tiles(layer->j.product.m) * GATE_WORDS; /* room for them */
}

/* How what a layer made is read. */
enum { READ_FLOATS = 1, READ_STASH = 2, READ_GATES = 4 };
typedef int reading(const n2_queue *q, size_t k, size_t i); /* by job k what job i made */

static int as_numbers(const n2_queue *, size_t, size_t) { return READ_FLOATS; }

static int way_of_reading(const n2_queue *q, size_t k, size_t i) {
    const noted *n = &q->list[k];
    if (n->fused_gradient || n->taken) return READ_STASH;
    if (!is_layer(&q->list[i]) || !is_layer(n)) return READ_FLOATS;
    if (in_registers(q, k, i)) return 0;
    return as_gate(n, &q->list[i]) ? READ_GATES : READ_FLOATS;
}

/* Whether a span is beside what the job writes: other columns of the same matrix. */
static bool is_beside(const noted *n, const span *at) {
    for (int s = 0; s < n->n_spans; s++)
        if (n->spans[s].written && n2_are_beside(&n->spans[s], at)) return true;
    return false;
}

/* All ways in which the numbers at x, which job i wrote, are read before they are written anew. Of
 * a matrix that is made anew all is, with the first of its columns. */
static int ways_of(const n2_queue *q, size_t i, const float *x, int64_t floats, reading *way) {
    int ways = 0;
    for (size_t k = i + 1; k < q->n; k++) {
        const noted *n = &q->list[k];
        const float *from = x; /* what is before it is written anew: a last tile has fewer rows */
        for (int s = 0; s < n->n_spans; s++) {
            const span *at = &n->spans[s];
            if (!overlaps(at, x, floats) || is_beside(&q->list[i], at)) continue;
            if (at->written && !n->j.add && at->begin <= (uintptr_t)x)
                from = (const float *)at->end > from ? (const float *)at->end : from;
            else
                ways |= at->written ? READ_FLOATS : way(q, k, i);
        }
        if (from >= x + floats) return ways;
        floats -= from - x;
        x = from;
    }
    return q->list[i].kept ? ways | READ_FLOATS : ways;
}

static int readers_of(const n2_queue *q, size_t i, const float *x, int64_t floats) {
    return ways_of(q, i, x, floats, way_of_reading);
}

bool n2_is_read_later(const n2_queue *q, size_t i, const float *x, int64_t floats) {
    return ways_of(q, i, x, floats, as_numbers) != 0;
}

static void forget_write(noted *n, const float *x) {
    for (int s = 0; s < n->n_spans; s++)
        if (n->spans[s].written && n->spans[s].begin == (uintptr_t)x)
            n->spans[s--] = n->spans[--n->n_spans];
}

void n2_fused_mlps_trim(n2_queue *q) {
    for (size_t i = 0; i < q->n; i++) {
        noted *n = &q->list[i];
        if (!is_layer(n) || !n->j.more[0] || n2_is_read_later(q, i, n->j.out, n->j.n)) continue;
        forget_write(n, n->j.out);
        n->j.out = NULL;
    }
}

/* ---- what belongs together ----------------------------------------------- */

/* Threads read what they wrote themselves, but for a narrow layer's output. */
static bool is_spread(const n2_queue *q, size_t chain, size_t i) {
    for (size_t k = chain; k < i; k++)
        if (q->list[k].chain == chain && q->list[k].j.kind == JOB_NARROW &&
            q->list[k].j.out == q->list[i].j.in[0])
            return true;
    return false;
}

bool n2_fused_mlp_admits(const n2_queue *q, size_t chain, size_t i) {
    const noted *first = &q->list[chain], *n = &q->list[i];
    if (!n2_is_mlp_layer(first)) return false;
    if (!is_layer(n) || first->j.chained >= MOST_LAYERS - 1) return false;
    if (n->j.kind == JOB_NARROW) return is_made_by(&q->list[first->last], n->j.in[0]);
    return n->j.kind == JOB_MATMUL && n->j.in[2] && !is_spread(q, chain, i);
}

int n2_fused_mlp_rows(const n2_queue *q, size_t chain) {
    const int64_t rows = q->list[chain].j.product.m;
    return rows <= n2_few_rows_most(q) ? FEW_ROWS : rows <= SMALL_MOST ? SMALL_ROWS : MLP_ROWS;
}

int64_t n2_fused_mlp_time(const n2_queue *q, size_t chain) {
    const int rows = n2_fused_mlp_rows(q, chain);
    const int64_t layer = rows == MLP_ROWS ? 3 : rows == SMALL_ROWS ? 2 : 1;
    return (q->list[chain].j.chained + 1) * layer;
}

/* Stash tiles are stored whole, even if their last rows are nobody's. */
int64_t n2_fused_mlp_blocks(const n2_queue *q, size_t chain) {
    const int64_t rows = stash_tiles(q->list[chain].j.product.m) * STASH_TILE_ROWS;
    const int each = n2_fused_mlp_rows(q, chain);
    return (rows + each - 1) / each;
}

/* ---- gradients ------------------------------------------------------------ */

static bool is_gradient(const job *j) {
    const job_product *p = &j->product;
    return j->kind == JOB_MATMUL && p->ta && !p->tb && p->batches == 1 && p->m <= MLP_WIDTH &&
           p->n <= MLP_WIDTH && !j->in[3] && !j->gate && !j->addend &&
           (!j->more[0] || j->squares) && (p->slices == 1 || p->slice_k % GRADIENT_STEP == 0);
}

static bool is_column_sum(const job *j) {
    return j->kind == JOB_SUM_COLUMNS && j->m <= MLP_WIDTH &&
           j->n_blocks == j->k * ((j->m + 31) / 32);
}

/* The layer that made x, as job i finds it; SIZE_MAX: it was no layer. */
static size_t maker_of(const n2_queue *q, size_t i, const float *x, int64_t floats) {
    while (i-- > 0) {
        const noted *n = &q->list[i];
        if (n2_noted_touches(n, x, floats, false))
            return n2_is_mlp_layer(n) && is_made_by(n, x) ? i : SIZE_MAX;
    }
    return SIZE_MAX;
}

/* The layer that made x [rows x width] for job i and can stash it; SIZE_MAX: none. */
static size_t stash_maker(const n2_queue *q, size_t i, const float *x, int64_t rows,
                          int64_t width) {
    const size_t maker = maker_of(q, i, x, rows * width);
    if (maker == SIZE_MAX) return SIZE_MAX;
    const job_product *p = &q->list[maker].j.product;
    return p->m == rows && p->n == width ? maker : SIZE_MAX;
}

static bool reads_rows(const noted *n, const float *x, int64_t rows, int64_t width) {
    return n2_is_mlp_layer(n) && n->j.in[0] == x && n->j.in[2] && n->j.product.m == rows &&
           n->j.product.k == width;
}

/* The layer that reads x from memory, before job i, and can stash it; SIZE_MAX: none, or
 * they would not stay until then. */
static size_t stash_reader(const n2_queue *q, size_t i, const float *x, int64_t rows,
                           int64_t width) {
    size_t found = SIZE_MAX;
    for (size_t k = 0; k < q->n; k++) {
        const noted *n = &q->list[k];
        if (!reads_rows(n, x, rows, width)) continue;
        const bool before = k < i && n->level < q->list[i].level;
        if (before)
            found = k;
        else if (n->level <= q->list[i].level)
            return SIZE_MAX;
    }
    if (found == SIZE_MAX || layer_before(q, found) != SIZE_MAX) return SIZE_MAX;
    for (size_t k = found + 1; k < i; k++) /* it must still be what was read */
        if (n2_noted_touches(&q->list[k], x, rows * width, false)) return SIZE_MAX;
    return found;
}

static bool can_be_stash(const n2_queue *q, size_t i, const float *x, int64_t width) {
    const int64_t rows = q->list[i].j.product.k;
    return stash_maker(q, i, x, rows, width) != SIZE_MAX ||
           stash_reader(q, i, x, rows, width) != SIZE_MAX;
}

/* Where the stash of x is, which layer i made: where it would be itself, or elsewhere if it is
 * there too. */
static float *stash_at(n2_queue *q, size_t i, float *x) {
    const job *j = &q->list[i].j;
    const int64_t rows = j->product.m;
    const bool alone = !(readers_of(q, i, x, j->n) & READ_FLOATS);
    const int64_t floats = stash_floats(rows, q->strict);
    if (alone && floats <= j->n && (uintptr_t)x % 16 == 0) return x;
    return n2_queue_scratch(q, (char *)x + 3, floats);
}

/* And those of x, which layer i reads. */
static float *read_stash_at(n2_queue *q, size_t i, const float *x) {
    const int64_t rows = q->list[i].j.product.m;
    return n2_queue_scratch(q, (const char *)x + 2, stash_floats(rows, q->strict));
}

/* Whether sums of columns k are of the same rows as gradient i, and made at the same time. */
static bool are_alike(const n2_queue *q, size_t k, size_t i) {
    const job *sums = &q->list[k].j, *j = &q->list[i].j;
    return is_column_sum(sums) && sums->chained == 0 && q->list[k].chain == k && is_gradient(j) &&
           sums->in[0] == j->in[0] && sums->n == j->product.k && sums->m == j->product.m &&
           q->list[k].level == q->list[i].level;
}

/* Those of the first gradient that they could go along with. */
size_t n2_sums_of(const n2_queue *q, size_t i) {
    enum { NEAR = 64 }; /* they are asked for together */
    const size_t begin = i > NEAR ? i - NEAR : 0, end = i + NEAR < q->n ? i + NEAR : q->n;
    for (size_t k = begin; k < end; k++) {
        if (!are_alike(q, k, i)) continue;
        for (size_t other = begin; other < i; other++)
            if (are_alike(q, k, other)) return SIZE_MAX;
        return k;
    }
    return SIZE_MAX;
}

/* There are many layers, so a few slices each are enough for all multiprocessors, and who adds them
 * up has less to do. */
static void use_fewer_slices(n2_queue *q, size_t i) {
    enum { MOST = 6 };
    job *j = &q->list[i].j;
    if (j->product.slices <= MOST) return;
    const int64_t steps = (j->product.k + GRADIENT_STEP - 1) / GRADIENT_STEP;
    const int64_t length = (steps + MOST - 1) / MOST;
    for (size_t k = i + 1; k < q->n; k++) {
        job *sum = &q->list[k].j;
        if (sum->kind != JOB_SUM_SLICES || sum->in[0] != j->out) continue;
        j->product.slice_k = (int32_t)(length * GRADIENT_STEP);
        j->product.slices = (int32_t)((steps + length - 1) / length);
        sum->n = j->product.slices;
        return;
    }
}

/* Slices of column sums i are `rows` now, few enough for one block to add up: where several did,
 * and others added those up, one is left for these. */
static void add_up_fewer(n2_queue *q, size_t i, int64_t rows) {
    for (size_t k = i + 1; k < q->n && q->list[i].j.k > 1; k++) {
        job *all = &q->list[k].j;
        if (all->kind != JOB_SUM_COLUMNS || all->in[0] != q->list[i].j.out) continue;
        add_up_fewer(q, k, 1);
        all->n = rows;
        all->n_blocks /= (uint32_t)all->k;
        all->k = 1;
        return;
    }
}

/* Sums of columns that go along are as many as there are slices. */
static void take_sums(n2_queue *q, size_t i) {
    const size_t sums = n2_sums_of(q, i);
    if (sums == SIZE_MAX) return;
    q->list[sums].taken = true;
    add_up_fewer(q, sums, q->list[i].j.product.slices);
}

/* What was found before no longer counts. A gradient that goes along with another is made when that
 * one is. */
static void unsettle(n2_queue *q) {
    for (size_t i = 0; i < q->n; i++) {
        noted *n = &q->list[i];
        n->fused_gradient = false;
        if (n->j.n_blocks > 0) n->taken = false;
        if (n->pair) q->list[n->pair].level = n->level;
    }
}

/* Whether a level has so few gradients, of so few rows, that a launch for them would take longer
 * than as many small jobs. */
static bool has_little(const n2_queue *q, int level) {
    enum { MOST = 2, MOST_ROWS = 128 };
    int n = 0;
    for (size_t i = 0; i < q->n; i++) {
        if (!q->list[i].fused_gradient || q->list[i].level != level) continue;
        if (q->list[i].pair || q->list[i].j.product.k > MOST_ROWS) return false;
        n++;
    }
    return n <= MOST;
}

void n2_fused_mlps_settle(n2_queue *q) {
    unsettle(q);
    for (size_t i = 0; i < q->n; i++) {
        const job *j = &q->list[i].j;
        q->list[i].fused_gradient = is_gradient(j) && can_be_stash(q, i, j->in[0], j->product.m) &&
                                    can_be_stash(q, i, j->in[1], j->product.n);
    }
    for (size_t i = 0; i < q->n; i++)
        if (q->list[i].fused_gradient && has_little(q, q->list[i].level))
            q->list[i].fused_gradient = false;
    for (size_t i = 0; i < q->n; i++) {
        if (!q->list[i].fused_gradient) continue;
        use_fewer_slices(q, i);
        take_sums(q, i);
    }
}

bool n2_fused_mlps_hold(const n2_queue *q, const noted *before) {
    for (size_t i = 0; i < q->n; i++) {
        const noted *n = &q->list[i];
        if (n->pair && !q->list[n->pair].fused_gradient) return false;
        if (n->j.n_blocks == 0) continue;
        if (before[i].fused_gradient != n->fused_gradient || before[i].taken != n->taken)
            return false;
    }
    return true;
}

/* The stash of x, as job i finds it. */
static const void *stash_for(n2_queue *q, size_t i, const float *x, int64_t width) {
    const int64_t rows = q->list[i].j.product.k;
    const size_t maker = stash_maker(q, i, x, rows, width);
    if (maker != SIZE_MAX) return stash_at(q, maker, (float *)x);
    return read_stash_at(q, stash_reader(q, i, x, rows, width), x);
}

static void make_pair(n2_queue *q, size_t pair, gradient *t) {
    const job *j = &q->list[pair].j;
    t->pair_g = stash_for(q, pair, j->in[0], j->product.m);
    t->pair_x = stash_for(q, pair, j->in[1], j->product.n);
    t->pair_rows = j->product.k;
}

void n2_gradient_of_job(n2_queue *q, size_t i, uint32_t first_block, gradient *t) {
    const job *j = &q->list[i].j;
    const size_t sums = n2_sums_of(q, i);
    memset(t, 0, sizeof *t);
    t->g = stash_for(q, i, j->in[0], j->product.m);
    t->x = stash_for(q, i, j->in[1], j->product.n);
    t->m = (int32_t)j->product.m;
    t->n = (int32_t)j->product.n;
    t->out = j->out;
    t->rows = j->product.k;
    t->first_block = (int32_t)first_block;
    t->n_blocks = j->product.slices;
    t->slice_rows =
        t->n_blocks > 1 ? j->product.slice_k : (int32_t)(stash_tiles(t->rows) * STASH_TILE_ROWS);
    t->adds = j->add;
    t->squares = j->squares ? j->more[0] : NULL;
    if (q->list[i].pair) make_pair(q, q->list[i].pair, t);
    if (sums == SIZE_MAX) return;
    t->sums = q->list[sums].j.out;
    t->sums_add = q->list[sums].j.add;
}

/* ---- the fused MLP ----------------------------------------------------------- */

static bool is_even(const void *x) { return (uintptr_t)x % 8 == 0; }

static void connect(const noted *before, const job *j, mlp_layer *l) {
    l->source = FROM_MEMORY;
    if (!before) return;
    const int64_t n = before->j.product.n;
    if (j->product.k == n && j->in[0] == before->j.out && j->in[0]) l->source = FROM_OUT;
    if (j->product.k == n && j->in[0] == before->j.more[0] && j->in[0]) l->source = FROM_MORE;
    l->slope_a = before->j.slope_more;
    l->adds_last = j->addend && j->addend == before->j.out && j->product.n == n;
}

/* Whether a gradient wants the rows that layer i reads from memory. */
static bool wants_stash(const n2_queue *q, size_t i) {
    const job *layer = &q->list[i].j;
    const int64_t rows = layer->product.m, width = layer->product.k;
    for (size_t k = i + 1; k < q->n; k++) {
        const job *j = &q->list[k].j;
        if (reads_rows(&q->list[k], layer->in[0], rows, width)) return false; /* ask that one */
        if (!q->list[k].fused_gradient || j->product.k != rows) continue;
        for (int f = 0; f < 2; f++)
            if (j->in[f] == layer->in[0] && (f ? j->product.n : j->product.m) == width &&
                stash_maker(q, k, j->in[f], rows, width) == SIZE_MAX &&
                stash_reader(q, k, j->in[f], rows, width) == i)
                return true;
    }
    return false;
}

/* The gates of what layer i made; NULL: whoever wants them has the numbers themselves. */
static uint32_t *gates_at(n2_queue *q, size_t i, float *x) {
    const job *j = &q->list[i].j;
    const int ways = readers_of(q, i, x, j->n);
    if (!(ways & READ_GATES) || x != j->more[0]) return NULL;
    if (ways & READ_STASH) return gates_of(stash_at(q, i, x), j->product.m, q->strict);
    return ways & READ_FLOATS ? NULL : (uint32_t *)x;
}

static void make_stores(n2_queue *q, size_t i, mlp_layer *l) {
    const job *j = &q->list[i].j;
    const int out = j->out ? readers_of(q, i, j->out, j->n) : 0;
    const int more = j->more[0] ? readers_of(q, i, j->more[0], j->n) : 0;
    if (l->kind == LAYER_NARROW || out & (READ_FLOATS | READ_GATES)) l->out = j->out;
    if (out & READ_STASH) l->out_stash = stash_at(q, i, j->out);
    if (more & READ_STASH) l->more_stash = stash_at(q, i, j->more[0]);
    if (more) l->more_gates = gates_at(q, i, j->more[0]);
    if (more & READ_FLOATS) l->more = j->more[0];
    if (l->source == FROM_MEMORY && l->kind == LAYER_PRODUCT && wants_stash(q, i))
        l->in_stash = read_stash_at(q, i, l->a);
}

static void make_gate(n2_queue *q, size_t i, mlp_layer *l) {
    const job *j = &q->list[i].j;
    const size_t maker = j->gate ? maker_of(q, i, j->gate, j->n) : SIZE_MAX;
    if (maker != SIZE_MAX && as_gate(&q->list[i], &q->list[maker]))
        l->gates = gates_at(q, maker, (float *)j->gate);
}

static layer_kind kind_of(const job *j) {
    if (j->kind == JOB_FIRST_ROWS) return LAYER_ROWS;
    if (j->kind == JOB_NARROW) return LAYER_NARROW;
    return j->in[2] ? LAYER_PRODUCT : LAYER_OUTER;
}

static void make_layer(n2_queue *q, size_t i, mlp_layer *l) {
    const noted *n = &q->list[i];
    const job *j = &n->j;
    const size_t at = layer_before(q, i);
    const noted *before = at == SIZE_MAX ? NULL : &q->list[at];
    memset(l, 0, sizeof *l);
    l->kind = (uint8_t)kind_of(j);
    l->a = j->in[0];
    l->b = l->kind == LAYER_PRODUCT ? j->in[2] : j->in[1];
    l->bias = j->in[3];
    l->gate = j->gate;
    l->addend = j->addend;
    l->index = j->index;
    l->table_rows = j->product.addend_rows;
    l->slope = j->slope;
    l->slope_more = j->slope_more;
    l->k = (int32_t)j->product.k;
    l->n = (int32_t)j->product.n;
    l->sums = l->kind == LAYER_ROWS ? (uint8_t)j->m : 0;
    connect(before, j, l);
    make_stores(q, i, l);
    make_gate(q, i, l);
    l->plain = l->kind == LAYER_PRODUCT && l->source != FROM_MEMORY && !l->out && !l->more &&
               (!l->gate || l->gates) && !(l->out_stash && (l->more_stash || l->more_gates));
    l->plain_more = l->more_stash || l->more_gates;
    l->wide = l->n == MLP_WIDTH && is_even(l->out) && is_even(l->more);
}

/* Whether a layer multiplies what the layer before did, and that is still there. */
static bool multiplies_same(const mlp_layer *before, const mlp_layer *l) {
    const bool products = l->kind == LAYER_PRODUCT && before->kind == LAYER_PRODUCT;
    const bool stays =
        !before->plain && !before->out_stash && !before->more_stash && !before->more_gates;
    return products && stays && l->a == before->a && l->k == before->k &&
           l->source == FROM_MEMORY && !l->in_stash;
}

/* A block of a residual network, or of its way back: most layers are one or the other. */
static bool is_forward(const mlp_layer *l) {
    return l->plain && l->plain_more && l->adds_last && l->source == FROM_MORE && l->bias &&
           !l->gate;
}
static bool is_back(const mlp_layer *l) {
    return l->plain && !l->plain_more && l->adds_last && l->source == FROM_OUT && !l->bias &&
           l->gates;
}

/* How many layers from k on are alike, if they are of such a form. */
static uint8_t find_run(const fused_mlp *t, int k) {
    const mlp_layer *l = &t->layer[k], *next = l + 1;
    if (!is_forward(l) && !is_back(l)) return 0;
    const bool goes_on = k + 1 < t->n_layers && is_forward(next) == is_forward(l) &&
                         next->slope == l->slope && next->slope_more == l->slope_more;
    return (uint8_t)(1 + (goes_on ? next->run : 0));
}

void n2_fused_mlp_of_chain(n2_queue *q, size_t chain, uint32_t first_block, fused_mlp *t) {
    t->first_block = (int32_t)first_block;
    t->rows = q->list[chain].j.product.m;
    t->block_rows = n2_fused_mlp_rows(q, chain);
    t->n_blocks = (int32_t)n2_fused_mlp_blocks(q, chain);
    t->n_layers = 0;
    t->n_packed = 0;
    for (size_t i = chain; i < q->n; i++) {
        if (q->list[i].chain != chain) continue;
        mlp_layer *l = &t->layer[t->n_layers++];
        make_layer(q, i, l);
        if (l->kind == LAYER_PRODUCT) t->packed[t->n_packed++] = l->b;
    }
    for (int k = 0; k + 1 < t->n_layers; k++)
        t->layer[k].plain_more |= !t->layer[k].out_stash && t->layer[k + 1].source == FROM_MORE;
    for (int k = 1; k < t->n_layers; k++)
        if (multiplies_same(&t->layer[k - 1], &t->layer[k])) t->layer[k].source = FROM_SAME;
    for (int k = t->n_layers; k-- > 0 && t->block_rows > FEW_ROWS;)
        t->layer[k].run = find_run(t, k);
    if (t->block_rows == FEW_ROWS) n2_few_rows_make(t);
}
