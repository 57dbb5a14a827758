#include "boosting.h"

#include "base/arena.h"
#include "base/numerics.h"
#include "base/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TREES = 100, LEAVES = 31, LEAST_ROWS = 20, BINS = 255 };
static const double RATE = 0.1;
static const double LEAST_CURVATURE = 1e-3; /* of a leaf */

/* Rows of a leaf while a tree grows, and its best split. */
typedef struct leaf {
    size_t begin, end;
    uint32_t node;
    double sum, curvature, gain;
    uint32_t column, bin; /* bins up to this one go left */
} leaf;

typedef struct found {
    double gain;
    uint32_t bin;
} found;

typedef struct growth {
    n2_arena arena;
    n2_boosting *model;
    n2_boosting_options o; /* with nothing left open */
    size_t rows, cols;
    const double *y;
    double *guess;   /* of each row, so far */
    double *curve;   /* second derivative of its loss */
    uint8_t *bin;    /* cols x rows */
    double *edge;    /* cols x BINS: the largest value of a bin, halfway to the next one */
    size_t *bins;    /* of a column */
    double *left;    /* what is still to be explained: minus the first derivative */
    uint32_t *order; /* rows, leaf by leaf */
    uint32_t *later;
    found *best; /* of a column, for the leaf that is looked at */
    const leaf *at;
    leaf *leaves;
    size_t n_leaves;
} growth;

/* ---- bins ------------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Edges halfway between distinct values, or between quantiles where there are too many. */
static void find_edges(growth *g, double *sorted, size_t c) {
    double *edge = g->edge + c * BINS;
    size_t distinct = 1, n = 0;
    qsort(sorted, g->rows, sizeof *sorted, by_value);
    for (size_t i = 1; i < g->rows; i++) distinct += sorted[i] > sorted[i - 1];
    for (size_t i = 1; i < g->rows; i++) {
        const bool quantile = distinct <= BINS || i * BINS / g->rows != (i - 1) * BINS / g->rows;
        const double middle = sorted[i - 1] / 2 + sorted[i] / 2;
        if (quantile && sorted[i] > sorted[i - 1] && (n == 0 || middle > edge[n - 1]) &&
            n + 1 < BINS)
            edge[n++] = middle;
    }
    edge[n++] = N2_INFINITY;
    g->bins[c] = n;
}

static size_t bin_of(const double *edge, size_t n, double x) {
    size_t low = 0, high = n - 1;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (x <= edge[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void bin_columns(growth *g, const double *x, double *column) {
    for (size_t c = 0; c < g->cols; c++) {
        if (g->o.looked_at && !g->o.looked_at[c]) continue;
        for (size_t i = 0; i < g->rows; i++) column[i] = x[i * g->cols + c];
        find_edges(g, column, c);
        for (size_t i = 0; i < g->rows; i++)
            g->bin[c * g->rows + i] =
                (uint8_t)bin_of(g->edge + c * BINS, g->bins[c], x[i * g->cols + c]);
    }
}

/* ---- one tree -------------------------------------------------------------------------------- */

/* The best split of the leaf along a column. */
static void try_column(void *arg, size_t c, int worker) {
    growth *g = arg;
    const leaf *l = g->at;
    const uint8_t *bin = g->bin + c * g->rows;
    double sum[BINS] = {0}, curve[BINS] = {0}, left_sum = 0, left_curve = 0;
    uint32_t count[BINS] = {0}, left = 0;
    const uint32_t n = (uint32_t)(l->end - l->begin);
    (void)worker;
    g->best[c] = (found){0, 0};
    if (g->bins[c] < 2) return;
    for (size_t i = l->begin; i < l->end; i++) {
        const uint32_t row = g->order[i];
        sum[bin[row]] += g->left[row];
        curve[bin[row]] += g->curve[row];
        count[bin[row]]++;
    }
    for (uint32_t b = 0; b + 1 < g->bins[c]; b++) {
        left += count[b];
        left_sum += sum[b];
        left_curve += curve[b];
        const double right_sum = l->sum - left_sum, right_curve = l->curvature - left_curve;
        if (left < g->o.least_rows || n - left < g->o.least_rows || count[b] == 0) continue;
        if (left_curve < LEAST_CURVATURE || right_curve < LEAST_CURVATURE) continue;
        const double gain = left_sum * left_sum / left_curve + right_sum * right_sum / right_curve -
                            l->sum * l->sum / l->curvature;
        if (gain > g->best[c].gain) g->best[c] = (found){gain, b};
    }
}

static n2ce_status look_at(growth *g, leaf *l) {
    l->sum = l->curvature = l->gain = 0;
    for (size_t i = l->begin; i < l->end; i++) {
        l->sum += g->left[g->order[i]];
        l->curvature += g->curve[g->order[i]];
    }
    if (l->end - l->begin < 2 * g->o.least_rows) return N2CE_OK;
    g->at = l;
    N2_TRY(n2_parallel_for(g->model->ctx, g->cols, try_column, g));
    for (size_t c = 0; c < g->cols; c++) {
        if (g->best[c].gain <= l->gain * (1 + 1e-12)) continue;
        l->gain = g->best[c].gain;
        l->column = (uint32_t)c;
        l->bin = g->best[c].bin;
    }
    return N2CE_OK;
}

/* Parts the rows of a leaf, in their order; where those that go right begin. */
static size_t part(growth *g, const leaf *l) {
    const uint8_t *bin = g->bin + l->column * g->rows;
    size_t at = l->begin, n = 0;
    for (size_t i = l->begin; i < l->end; i++) {
        const uint32_t row = g->order[i];
        if (bin[row] <= l->bin)
            g->order[at++] = row;
        else
            g->later[n++] = row;
    }
    memcpy(g->order + at, g->later, n * sizeof *g->order);
    return at;
}

static n2ce_status split(growth *g, n2_tree_node *nodes, leaf *l, uint32_t *used) {
    const leaf old = *l;
    const size_t middle = part(g, &old);
    nodes[old.node].column = old.column;
    nodes[old.node].threshold = g->edge[old.column * BINS + old.bin];
    nodes[old.node].left = *used;
    *l = (leaf){.begin = old.begin, .end = middle, .node = *used};
    g->leaves[g->n_leaves] = (leaf){.begin = middle, .end = old.end, .node = *used + 1};
    *used += 2;
    N2_TRY(look_at(g, l));
    return look_at(g, &g->leaves[g->n_leaves++]);
}

/* What is left of each row, and its curvature. */
static void differentiate(const growth *g) {
    for (size_t i = 0; i < g->rows; i++) {
        const bool odds = g->o.loss == N2_BOOSTING_LOGISTIC;
        const double p = odds ? n2_sigmoid(g->guess[i]) : g->guess[i];
        const double weight = g->o.weight ? g->o.weight[i] : 1;
        g->left[i] = weight * (g->y[i] - p);
        g->curve[i] = weight * (odds ? p * (1 - p) : 1);
    }
}

/* Values of leaves, which are added to what is guessed. */
static void settle(growth *g, n2_tree_node *nodes) {
    for (size_t k = 0; k < g->n_leaves; k++) {
        const leaf *l = &g->leaves[k];
        const double value = l->curvature > 0 ? RATE * l->sum / l->curvature : 0;
        nodes[l->node].value = value;
        for (size_t i = l->begin; i < l->end; i++) g->guess[g->order[i]] += value;
    }
}

static n2ce_status grow_tree(growth *g, n2_tree_node *nodes) {
    uint32_t used = 1;
    differentiate(g);
    for (size_t i = 0; i < g->rows; i++) g->order[i] = (uint32_t)i;
    g->leaves[0] = (leaf){.begin = 0, .end = g->rows, .node = 0};
    g->n_leaves = 1;
    N2_TRY(look_at(g, &g->leaves[0]));
    while (g->n_leaves < g->o.leaves) {
        leaf *best = &g->leaves[0];
        for (size_t k = 1; k < g->n_leaves; k++)
            if (g->leaves[k].gain > best->gain) best = &g->leaves[k];
        if (!(best->gain > 0)) break;
        N2_TRY(split(g, nodes, best, &used));
    }
    settle(g, nodes);
    return N2CE_OK;
}

/* ---- all trees ------------------------------------------------------------------------------- */

static n2ce_status make_room(growth *g) {
    const size_t n = g->rows, c = g->cols;
    g->bin = n2_arena_alloc(&g->arena, n * c, sizeof *g->bin);
    g->edge = n2_arena_alloc(&g->arena, c * BINS, sizeof *g->edge);
    g->bins = n2_arena_alloc(&g->arena, c, sizeof *g->bins);
    g->left = n2_arena_alloc(&g->arena, n, sizeof *g->left);
    g->curve = n2_arena_alloc(&g->arena, n, sizeof *g->curve);
    g->guess = n2_arena_alloc(&g->arena, n, sizeof *g->guess);
    g->order = n2_arena_alloc(&g->arena, 2 * n, sizeof *g->order);
    g->best = n2_arena_alloc(&g->arena, c, sizeof *g->best);
    g->later = g->order ? g->order + n : NULL;
    g->leaves = n2_arena_alloc(&g->arena, g->o.leaves, sizeof *g->leaves);
    const bool rows = g->bin && g->left && g->curve && g->guess && g->order && g->leaves;
    return rows && g->edge && g->bins && g->best ? N2CE_OK : N2CE_ENOMEM;
}

/* The best constant; of labels that are all the same, odds that a sample of twice the size has. */
static double first_guess(const growth *g) {
    double mean = 0, total = 0;
    if (g->o.offset) return 0;
    for (size_t i = 0; i < g->rows; i++) total += g->o.weight ? g->o.weight[i] : 1;
    for (size_t i = 0; i < g->rows; i++)
        mean += (g->o.weight ? g->o.weight[i] : 1) * g->y[i] / total;
    if (g->o.loss == N2_BOOSTING_SQUARES) return mean;
    const double least = 0.5 / (double)g->rows, p = fmin(fmax(mean, least), 1 - least);
    return log(p / (1 - p));
}

static n2ce_status grow_trees(growth *g, const double *x) {
    N2_TRY(make_room(g));
    bin_columns(g, x, g->left);
    g->model->first = first_guess(g);
    for (size_t i = 0; i < g->rows; i++)
        g->guess[i] = g->o.offset ? g->o.offset[i] : g->model->first;
    for (size_t t = 0; t < g->model->trees; t++) {
        if (n2_cancelled(g->model->ctx)) return N2CE_ECANCELED;
        N2_TRY(grow_tree(g, g->model->node + t * g->model->nodes));
    }
    return N2CE_OK;
}

n2ce_status n2_boosting_new(n2ce_ctx *ctx, size_t cols, size_t trees, size_t nodes,
                            n2_boosting **out) {
    n2_boosting *b = *out = n2_alloc(ctx, 1, sizeof *b);
    if (!b) return N2CE_ENOMEM;
    *b = (n2_boosting){.ctx = ctx, .cols = cols, .trees = trees, .nodes = nodes};
    b->node = n2_alloc(ctx, trees * nodes, sizeof *b->node);
    if (b->node) {
        memset(b->node, 0, trees * nodes * sizeof *b->node);
        return N2CE_OK;
    }
    n2_boosting_free(b);
    *out = NULL;
    return N2CE_ENOMEM;
}

n2ce_status n2_boosting_fit(n2ce_ctx *ctx, const n2_boosting_options *o, const double *x,
                            const double *y, size_t rows, size_t cols, n2_boosting **out) {
    growth g = {.arena = n2_arena_new(ctx), .o = *o, .rows = rows, .cols = cols, .y = y};
    if (g.o.trees == 0) g.o.trees = TREES;
    if (g.o.leaves == 0) g.o.leaves = LEAVES;
    if (g.o.least_rows == 0) g.o.least_rows = LEAST_ROWS;
    N2_TRY(n2_boosting_new(ctx, cols, g.o.trees, 2 * g.o.leaves - 1, out));
    g.model = *out;
    const n2ce_status status = grow_trees(&g, x);
    n2_arena_free(&g.arena);
    if (status == N2CE_OK) return N2CE_OK;
    n2_boosting_free(*out);
    *out = NULL;
    return status;
}

void n2_boosting_free(n2_boosting *b) {
    if (!b) return;
    n2_free(b->ctx, b->node);
    n2_free(b->ctx, b);
}

void n2_boosting_add(const n2_boosting *b, size_t begin, size_t end, const double *x, size_t rows,
                     double *y) {
    for (size_t i = 0; i < rows; i++) {
        const double *row = x + i * b->cols;
        for (size_t t = begin; t < end; t++) {
            const n2_tree_node *tree = b->node + t * b->nodes, *n = tree;
            while (n->left) n = &tree[n->left + (row[n->column] > n->threshold)];
            y[i] += n->value;
        }
    }
}

void n2_boosting_predict(const n2_boosting *b, const double *x, size_t rows, double *y) {
    for (size_t i = 0; i < rows; i++) y[i] = b->first;
    n2_boosting_add(b, 0, b->trees, x, rows, y);
}
