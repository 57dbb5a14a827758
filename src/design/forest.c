/* A tree is grown on columns that were sorted once: a node owns the same range of every column's
 * order, and splitting it parts every range in two, keeping the order. */
#include "forest.h"

#include "base/arena.h"
#include "base/pool.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct node {
    uint32_t column, left; /* the right child follows the left one; left 0: a leaf */
    double threshold;      /* up to here: left */
    double value;
} node;

struct n2_forest {
    n2ce_ctx *ctx;
    n2_arena arena;
    size_t trees, cols, room;
    node *nodes; /* trees x room */
    size_t *used;
};

/* A node that has to be split: samples [begin, end) of every column's order. */
typedef struct range {
    uint32_t node, begin, end, depth;
} range;

/* Memory of one worker. */
typedef struct bench {
    uint16_t *order; /* cols x rows: samples of the tree, by the value of the column */
    uint16_t *later; /* rows: what goes right, while a range is parted */
    double *weight;  /* rows: how often the bootstrap drew it */
    bool *left;      /* rows */
    uint32_t *shuffled;
    range *stack;
} bench;

typedef struct growth {
    n2_forest *forest;
    const n2_forest_options *options;
    size_t rows;
    const double *y;
    double *column;   /* cols x rows: the values, column by column */
    uint16_t *sorted; /* cols x rows */
    bench *benches;
} growth;

/* ---- one split ------------------------------------------------------------------------------- */

typedef struct split {
    bool found;
    uint32_t column;
    double threshold, gain;
} split;

typedef struct totals {
    double weight, sum;
} totals;

static totals add_up(const growth *g, const bench *w, range r) {
    totals t = {0, 0};
    for (uint32_t i = r.begin; i < r.end; i++) {
        const uint16_t s = w->order[i];
        t.weight += w->weight[s];
        t.sum += w->weight[s] * g->y[s];
    }
    return t;
}

/* Squared error falls by sum_left^2 / n_left + sum_right^2 / n_right - sum^2 / n; the last term is
 * the same for all. */
static void try_column(const growth *g, const bench *w, range r, totals all, uint32_t column,
                       split *best) {
    const uint16_t *order = w->order + column * g->rows;
    const double *x = g->column + column * g->rows;
    totals left = {0, 0};
    if (x[order[r.begin]] == x[order[r.end - 1]]) return; /* constant */
    for (uint32_t i = r.begin; i + 1 < r.end; i++) {
        const uint16_t s = order[i];
        left.weight += w->weight[s];
        left.sum += w->weight[s] * g->y[s];
        const double here = x[s], next = x[order[i + 1]];
        if (here == next) continue;
        const double right = all.sum - left.sum;
        const double gain =
            left.sum * left.sum / left.weight + right * right / (all.weight - left.weight);
        if (best->found && gain <= best->gain) continue;
        *best = (split){true, column, here / 2 + next / 2, gain};
    }
}

/* Fisher and Yates, from the order of the node before: still uniform. */
static void shuffle(const growth *g, bench *w, uint32_t tree, uint32_t at) {
    const n2_stream stream = {g->options->seed, 0x46530000u + tree, at};
    for (size_t i = g->forest->cols; i > 1; i--) {
        const size_t k = n2_random_below(stream, i, i);
        const uint32_t swapped = w->shuffled[k];
        w->shuffled[k] = w->shuffled[i - 1];
        w->shuffled[i - 1] = swapped;
    }
}

static bool is_pure(const growth *g, const bench *w, range r) {
    const double first = g->y[w->order[r.begin]];
    for (uint32_t i = r.begin + 1; i < r.end; i++)
        if (g->y[w->order[i]] != first) return false;
    return true;
}

/* The number of samples that go left. */
static uint32_t mark_left(const growth *g, bench *w, range r, const split *s) {
    const double *x = g->column + s->column * g->rows;
    const uint16_t *order = w->order + s->column * g->rows;
    uint32_t n = 0;
    for (uint32_t i = r.begin; i < r.end; i++) {
        w->left[order[i]] = x[order[i]] <= s->threshold;
        n += w->left[order[i]];
    }
    return n;
}

/* A column that is constant here is so below, and is never looked at again: it stays. The first
 * column's order is also the list of the samples, so it is always parted. */
static void part(const growth *g, bench *w, range r) {
    for (size_t c = 0; c < g->forest->cols; c++) {
        uint16_t *order = w->order + c * g->rows;
        const double *x = g->column + c * g->rows;
        uint32_t at = r.begin, n = 0;
        if (c > 0 && x[order[r.begin]] == x[order[r.end - 1]]) continue;
        for (uint32_t i = r.begin; i < r.end; i++) {
            if (w->left[order[i]])
                order[at++] = order[i];
            else
                w->later[n++] = order[i];
        }
        memcpy(order + at, w->later, n * sizeof *order);
    }
}

/* ---- one tree -------------------------------------------------------------------------------- */

static uint32_t draw_sample(const growth *g, bench *w, uint32_t tree) {
    const n2_stream stream = {g->options->seed, 0x46420000u + tree, 0};
    uint32_t distinct = 0;
    memset(w->weight, 0, g->rows * sizeof *w->weight);
    for (size_t i = 0; i < g->rows; i++) w->weight[n2_random_below(stream, i, g->rows)]++;
    for (size_t i = 0; i < g->rows; i++) distinct += w->weight[i] > 0;
    for (size_t c = 0; c < g->forest->cols; c++) {
        uint16_t *order = w->order + c * g->rows;
        for (size_t i = 0; i < g->rows; i++) {
            const uint16_t s = g->sorted[c * g->rows + i];
            if (w->weight[s] > 0) *order++ = s;
        }
        w->shuffled[c] = (uint32_t)c;
    }
    return distinct;
}

static split best_split(const growth *g, bench *w, range r, uint32_t tree, totals all) {
    split best = {0};
    shuffle(g, w, tree, r.node);
    for (size_t c = 0; c < g->forest->cols; c++) try_column(g, w, r, all, w->shuffled[c], &best);
    return best;
}

static void grow_tree(void *arg, size_t tree, int worker) {
    const growth *g = arg;
    bench *w = &g->benches[worker];
    node *nodes = g->forest->nodes + tree * g->forest->room;
    size_t used = 1, depth = 0;
    w->stack[depth++] = (range){0, 0, draw_sample(g, w, (uint32_t)tree), 0};
    while (depth > 0) {
        const range r = w->stack[--depth];
        const totals all = add_up(g, w, r);
        nodes[r.node] = (node){.value = all.sum / all.weight};
        if (r.end - r.begin < 2 || r.depth >= g->options->depth || is_pure(g, w, r)) continue;
        const split s = best_split(g, w, r, (uint32_t)tree, all);
        if (!s.found) continue;
        const uint32_t middle = r.begin + mark_left(g, w, r, &s), left = (uint32_t)used;
        if (middle == r.begin || middle == r.end) continue; /* what is no number is on no side */
        part(g, w, r);
        nodes[r.node] = (node){s.column, left, s.threshold, nodes[r.node].value};
        w->stack[depth++] = (range){left + 1, middle, r.end, r.depth + 1};
        w->stack[depth++] = (range){left, r.begin, middle, r.depth + 1};
        used += 2;
    }
    g->forest->used[tree] = used;
}

/* ---- the forest ------------------------------------------------------------------------------ */

/* qsort has no argument for the column, so pairs are sorted. */
typedef struct pair {
    double x;
    uint16_t row;
} pair;

static int by_x(const void *a, const void *b) {
    const pair *p = a, *q = b;
    if (p->x != q->x) return p->x < q->x ? -1 : 1;
    return p->row < q->row ? -1 : p->row > q->row;
}

static n2ce_status sort_columns(growth *g, n2_arena *arena, const double *x) {
    const size_t cols = g->forest->cols;
    pair *pairs = n2_arena_alloc(arena, g->rows, sizeof *pairs);
    g->column = n2_arena_alloc(arena, cols * g->rows, sizeof *g->column);
    g->sorted = n2_arena_alloc(arena, cols * g->rows, sizeof *g->sorted);
    if (!pairs || !g->column || !g->sorted) return N2CE_ENOMEM;
    for (size_t c = 0; c < cols; c++) {
        for (size_t i = 0; i < g->rows; i++) pairs[i] = (pair){x[i * cols + c], (uint16_t)i};
        for (size_t i = 0; i < g->rows; i++) g->column[c * g->rows + i] = pairs[i].x;
        qsort(pairs, g->rows, sizeof *pairs, by_x);
        for (size_t i = 0; i < g->rows; i++) g->sorted[c * g->rows + i] = pairs[i].row;
    }
    return N2CE_OK;
}

static n2ce_status make_benches(growth *g, n2_arena *arena, size_t threads) {
    const size_t rows = g->rows, cols = g->forest->cols;
    g->benches = n2_arena_alloc(arena, threads, sizeof *g->benches);
    for (size_t i = 0; g->benches && i < threads; i++) {
        bench *w = &g->benches[i];
        w->order = n2_arena_alloc(arena, rows * cols, sizeof *w->order);
        w->later = n2_arena_alloc(arena, rows, sizeof *w->later);
        w->weight = n2_arena_alloc(arena, rows, sizeof *w->weight);
        w->left = n2_arena_alloc(arena, rows, sizeof *w->left);
        w->shuffled = n2_arena_alloc(arena, cols, sizeof *w->shuffled);
        w->stack = n2_arena_alloc(arena, 2 * rows, sizeof *w->stack);
        if (!w->order || !w->later || !w->weight || !w->left || !w->shuffled || !w->stack)
            return N2CE_ENOMEM;
    }
    return g->benches ? N2CE_OK : N2CE_ENOMEM;
}

static n2ce_status grow(growth *g, n2_arena *arena, const double *x) {
    n2_forest *f = g->forest;
    f->room = 2 * g->rows;
    f->nodes = n2_arena_alloc(&f->arena, f->trees * f->room, sizeof *f->nodes);
    f->used = n2_arena_alloc(&f->arena, f->trees, sizeof *f->used);
    if (!f->nodes || !f->used) return N2CE_ENOMEM;
    N2_TRY(sort_columns(g, arena, x));
    N2_TRY(make_benches(g, arena, (size_t)n2_ctx_threads(f->ctx)));
    return n2_parallel_for(f->ctx, f->trees, grow_tree, g);
}

n2ce_status n2_forest_fit(n2ce_ctx *ctx, const double *x, const double *y, size_t rows, size_t cols,
                          const n2_forest_options *o, n2_forest **out) {
    *out = NULL;
    if (rows < 1 || rows > UINT16_MAX || cols < 1 || o->trees < 1)
        return n2_fail(ctx, N2CE_EINVAL,
                       "A forest of %zu trees on %zu rows of %zu columns cannot be fitted: it "
                       "takes 1 to %d rows.",
                       o->trees, rows, cols, UINT16_MAX);
    n2_forest *f = n2_alloc(ctx, 1, sizeof *f);
    if (!f) return N2CE_ENOMEM;
    *f = (n2_forest){.ctx = ctx, .arena = n2_arena_new(ctx), .trees = o->trees, .cols = cols};
    n2_arena scratch = n2_arena_new(ctx);
    growth g = {.forest = f, .options = o, .rows = rows, .y = y};
    const n2ce_status status = grow(&g, &scratch, x);
    n2_arena_free(&scratch);
    if (status == N2CE_OK)
        *out = f;
    else
        n2_forest_free(f);
    return status;
}

void n2_forest_free(n2_forest *f) {
    if (!f) return;
    n2ce_ctx *ctx = f->ctx;
    n2_arena_free(&f->arena);
    n2_free(ctx, f);
}

size_t n2_forest_nodes(const n2_forest *f) {
    size_t n = 0;
    for (size_t t = 0; t < f->trees; t++) n += f->used[t];
    return n;
}

/* ---- prediction ------------------------------------------------------------------------------ */

typedef struct question {
    const n2_forest *forest;
    const double *x;
    double *y;
} question;

static double ask_tree(const node *nodes, const double *x) {
    const node *at = nodes;
    while (at->left > 0) at = &nodes[at->left + (x[at->column] <= at->threshold ? 0 : 1)];
    return at->value;
}

static void ask_row(void *arg, size_t row, int worker) {
    const question *q = arg;
    const n2_forest *f = q->forest;
    double sum = 0;
    (void)worker;
    for (size_t t = 0; t < f->trees; t++)
        sum += ask_tree(f->nodes + t * f->room, q->x + row * f->cols);
    q->y[row] = sum / (double)f->trees;
}

n2ce_status n2_forest_predict(const n2_forest *f, const double *x, size_t rows, double *y) {
    question q = {f, x, y};
    return n2_parallel_for(f->ctx, rows, ask_row, &q);
}
