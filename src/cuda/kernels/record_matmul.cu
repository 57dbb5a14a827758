/* Matrix products as jobs: cut into tiles and slices, or layers of a fused MLP, or calls of a
 * library. */
#include "cuda/fused_mlp/fused_mlp.h"
#include "cuda/library/library.h"
#include "record.h"

static job_product product_shape(const n2_call *c) {
    const bool ta = c->node->attr->matmul.transpose_a, tb = c->node->attr->matmul.transpose_b;
    const n2_shape so = c->out.shape;
    const int r = so.rank;
    job_product p;
    memset(&p, 0, sizeof p);
    p.m = so.dim[r - 2];
    p.n = so.dim[r - 1];
    p.k = c->in[0].shape.dim[ta ? r - 2 : r - 1];
    p.batches = 1;
    for (int i = 0; i < r - 2; i++) p.batches *= (int32_t)so.dim[i];
    p.stride_a = p.m * p.k;
    p.stride_b = p.k * p.n;
    p.stride_out = p.m * p.n;
    p.ta = ta;
    p.tb = tb;
    p.strict = c->queue->strict;
    p.slices = 1;
    p.slice_k = (int32_t)(p.k > 0 ? p.k : 1);
    return p;
}

static void cut_into_tiles(job_product *p, bool small) {
    p->small = small;
    p->tiles_m = job_divide_by((uint32_t)pieces(p->m, small ? TILE_M / 2 : TILE_M));
    p->tiles_n = job_divide_by((uint32_t)pieces(p->n, small ? TILE_N / 2 : TILE_N));
}

static int64_t tiles_of(const job_product *p) {
    return (int64_t)p->tiles_m.by * p->tiles_n.by * p->batches * p->slices;
}

/* A long inner axis and a small output, a weight's gradient: slices of the inner axis run
 * side by side and are added in their order. */
static void slice_product(const n2_queue *q, job_product *p) {
    enum { LEAST = 256, MOST = 32 };
    const int64_t blocks = (int64_t)p->tiles_m.by * p->tiles_n.by;
    if (p->batches > 1 || p->k < 2 * LEAST || blocks > 64) return;
    const int64_t wanted = n2_fused_mlp_slice_unit(q, p), unit = wanted ? wanted : (int64_t)TILE_K;
    int64_t length = pieces(pieces(p->k, MOST), unit) * unit;
    if (length < LEAST) length = LEAST;
    p->slice_k = (int32_t)length;
    p->slices = (int32_t)pieces(p->k, length);
}

static void note_product_spans(const n2_call *c, noted *n, const job *j) {
    n2_note_read(n, j->in[0], n_in(c, 0));
    n2_note_read(n, j->in[1], j->in[2] ? 0 : n_in(c, 1));
    n2_fused_mlp_note_weights(c->queue, n, j);
    n2_note_read(n, j->in[3], j->product.n);
    n2_note_read(n, j->gate, n_out(c));
    n2_note_read(n, j->addend, n_out(c));
    n2_note_write(n, j->out, n_out(c) * j->product.slices);
}

/* One function of two, over the elements of the call's output. */
static void note_pair(const n2_call *c, int op, const float *x, const float *y, float *out,
                      double slope) {
    job j = job_of(c, JOB_BINARY);
    j.op = op;
    j.in[0] = x;
    j.in[1] = y;
    j.out = out;
    j.add = false;
    j.kept = c->kept && out == out_of(c);
    j.f[0] = slope;
    axes all = {};
    add_axis(&all, j.n, 1, 1);
    j.loops = loops_of(&all);
    j.vec4 = can_vec4(&j, j.n) && is_aligned(x) && is_aligned(y);
    noted *n = n2_queue_add(c->queue, &j, shares(j.n));
    n2_note_read(n, x, j.n);
    n2_note_read(n, y, j.n);
    n2_note_write(n, out, j.n);
}

/* A library adds on its way out, but has no gates: these are jobs of ours, and the product lies
 * elsewhere, for gate and addend may lie where the output is to be. */
static void note_library(const n2_call *c, job j) {
    const float *gate = j.gate, *addend = j.addend;
    j.kind = JOB_LIBRARY;
    if (gate) {
        j.out = n2_queue_scratch(c->queue, c->queue, j.n);
        j.gate = j.addend = NULL;
        j.kept = false;
    }
    noted *n = n2_queue_add(c->queue, &j, tiles_of(&j.product));
    note_product_spans(c, n, &j);
    if (!gate || !n) return;
    note_pair(c, N2_OP_lrelu_grad, gate, j.out, addend ? j.out : out_of(c), c->slope);
    if (addend) note_pair(c, N2_OP_add, j.out, addend, out_of(c), 0);
}

/* So long an inner axis, and so few tiles, that it has to be cut into slices, whatever else the
 * kernel would do on its way out. */
static bool is_long(const job_product *p) {
    enum { LONG = 4096, TILES = 16 };
    return p->k >= LONG && tiles_of(p) <= TILES && p->batches == 1;
}

/* Slices are added up elsewhere; gate and sum are jobs of their own behind it. */
static void note_long(const n2_call *c, job j) {
    const float *gate = j.gate, *addend = j.addend;
    job_product *p = &j.product;
    float *made = n2_queue_scratch(c->queue, (const char *)out_of(c) + 1, j.n);
    slice_product(c->queue, p);
    j.gate = j.addend = NULL;
    j.add = j.kept = false;
    j.out = n2_queue_scratch(c->queue, out_of(c), p->slices * p->m * p->n);
    noted *n = n2_queue_add(c->queue, &j, tiles_of(p));
    note_product_spans(c, n, &j);
    if (!n) return;
    n2_note_sum_slices(c, j.out, made, p->slices, p->m * p->n);
    if (gate) note_pair(c, N2_OP_lrelu_grad, gate, made, addend ? made : out_of(c), c->slope);
    if (addend) note_pair(c, N2_OP_add, made, addend, out_of(c), 0);
}

/* Products whose blocks have whole rows, and gradients of their weights: they are done in chains,
 * many in a launch. */
static bool is_narrow(const job_product *p) {
    return p->batches == 1 && p->n <= TILE_N && (p->ta ? p->m : p->k) <= TILE_N;
}

void n2_note_matmul(const n2_call *c) {
    job j = job_of(c, JOB_MATMUL);
    j.in[0] = in_of(c, 0);
    j.in[1] = in_of(c, 1);
    j.in[3] = c->node->n_in == 4 ? in_of(c, 3) : NULL;
    j.gate = (const float *)c->gate;
    j.addend = (const float *)c->addend;
    j.slope = (float)c->slope;
    j.product = product_shape(c);
    job_product *p = &j.product;
    if (j.n == 0) return;
    if (!fits(c, 2 * p->m) || !fits(c, 2 * p->n) || !fits(c, 2 * p->k)) return; /* 31 bits */
    const bool plain = !j.in[3] && !j.gate && !j.addend;
    cut_into_tiles(p, false);
    if (!is_narrow(p) && p->n > 4 && n2_library_takes(c->queue, &j)) return note_library(c, j);
    if (!plain && !j.in[3] && !j.add && is_long(p)) return note_long(c, j);
    if (plain) slice_product(c->queue, p);
    p->rows =
        !p->ta && p->batches == 1 && p->slices == 1 && p->n <= TILE_N && p->k <= TILE_N && p->k > 0;
    if (p->n <= 4 && !p->ta && p->batches == 1 && p->slices == 1) j.kind = JOB_NARROW;
    if (p->slices > 1) {
        j.add = false;
        j.out = n2_queue_scratch(c->queue, out_of(c), p->slices * p->m * p->n);
    }
    n2_fused_mlp_offer(c->queue, &j);
    const bool narrow = j.kind == JOB_NARROW;
    noted *n = n2_queue_add(c->queue, &j, narrow ? pieces(p->m, JOB_ROWS) : tiles_of(p));
    note_product_spans(c, n, &j);
    if (p->slices > 1 && n) n2_note_sum_slices(c, j.out, out_of(c), p->slices, p->m * p->n);
}

bool n2_is_small(const noted *n) {
    const job_product *p = &n->j.product;
    return n->j.kind == JOB_MATMUL && n->j.n_blocks > 0 && p->ta && !p->tb && p->batches == 1 &&
           !n->fused_gradient && n->j.chained == 0 && !n->j.in[3] && !n->j.gate && !n->j.addend &&
           (!n->j.more[0] || n->j.squares) && p->slice_k <= SMALL_K &&
           p->m * p->n * p->slice_k <= 128 * 128 * 128;
}

int64_t n2_small_blocks(const job_product *p) {
    return pieces(p->m, SMALL_M) * pieces(p->n, SMALL_N) * p->slices;
}

/* Whether it is done tile by tile, and nothing else with it. */
static bool has_tiles(const n2_queue *q, size_t i) {
    const noted *n = &q->list[i];
    return n->j.kind == JOB_MATMUL && n->j.n_blocks > 0 && !n->fused_gradient &&
           !n->j.product.rows && n->chain == i && n->j.chained == 0;
}

/* Tiles are small at levels that have no more of them than there are multiprocessors. */
static void choose_tiles(n2_queue *q) {
    int64_t *tiles = (int64_t *)n2_alloc(q->ctx, LONG_LEVELS * q->n + 1, sizeof *tiles);
    if (!tiles) q->status = N2CE_ENOMEM;
    for (size_t i = 0; tiles && i < q->n; i++)
        if (has_tiles(q, i)) tiles[q->list[i].level] += tiles_of(&q->list[i].j.product);
    for (size_t i = 0; tiles && i < q->n; i++)
        if (has_tiles(q, i))
            q->list[i].j.product.small = tiles[q->list[i].level] <= q->multiprocessors;
    n2_free(q->ctx, tiles);
}

void n2_products_settle(n2_queue *q) {
    for (size_t i = 0; i < q->n; i++) {
        job *j = &q->list[i].j;
        if (!n2_is_small(&q->list[i]) || q->list[i].chain != i) continue;
        j->kind = JOB_SMALL;
        j->n_blocks = (uint32_t)n2_small_blocks(&j->product);
    }
    choose_tiles(q);
    for (size_t i = 0; i < q->n; i++) {
        job *j = &q->list[i].j;
        if (!has_tiles(q, i)) continue;
        cut_into_tiles(&j->product, j->product.small);
        j->n_blocks = (uint32_t)tiles_of(&j->product);
    }
}
