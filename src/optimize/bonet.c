/* BONET (Krishnamoorthy et al. 2023): a transformer that continues sequences of designs of which
 * each is better than the one before.
 *
 * The offline rows become 800 trajectories of 128 designs: 64 bins of equal width by regret, 1 less
 * the value between the least and the largest; a bin of n rows of mean value m has the score
 * n / (n + .03 N) exp((m - 1) / tau), tau = 1 less the 90 % quantile of regret, and as many places
 * as its share of the scores; drawn with replacement, sorted by value. The transformer (8 layers of
 * width 128, 8 heads, GELU, dropout .1) sees pairs of tokens, regret to go and design, 64 pairs at
 * a time, and predicts a design from what is before it: squared error, or cross-entropy for
 * sequences; AdamW 1e-4, betas .9 and .95, decay .1, clip 1, 50 epochs in batches of 16. It then
 * continues 64 designs of a trajectory by Q / 4 with each of the regrets to go 0, .01, .05 and .1.
 *
 * Regret to go is the sum of what is left of the trajectory, over 64. Values are between those
 * offline, for others are not known. Smaller efforts have 2 layers of 32 at least, and learn faster
 * by as much as they are narrower. */
#include "base/numerics.h"
#include "base/random.h"
#include "design/design_space.h"
#include "design_code.h"
#include "workspace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TRAJECTORIES = 800, LENGTH = 128, CONTEXT = 64, TOKENS = 2 * CONTEXT, BINS = 64 };
enum { WIDTH = 128, LEAST_WIDTH = 32, HEAD = 16, LAYERS = 8, LEAST_LAYERS = 2, BATCH = 16 };
enum { EPOCHS = 50, REGRETS = 4, STREAM = 0x424F0000, PLACE_STREAM };
static const double RATE = 1e-4, DROPPED = 0.1, SHRINK = 0.03;
static const double REGRET[REGRETS] = {0, 0.01, 0.05, 0.1};

typedef struct block {
    n2_tensor *gain[2], *shift[2]; /* of both norms */
    n2_layer qkv, out, up, down;
} block;

typedef struct bonet {
    n2_workspace *ws;
    n2_code code;
    bool sequence;
    size_t *row;   /* of every place of every trajectory */
    double *togo;  /* regret to go there */
    int64_t width; /* of tokens */
    size_t layers;
    n2_parameters weights;
    n2_layer see_togo, see_x, predict;
    n2_tensor *places, *last_gain, *last_shift, *mask;
    block blocks[LAYERS];
    n2_tensor *x, *t_row, *t_togo;       /* the data */
    n2_tensor *context_x, *context_togo; /* what is continued, [REGRETS * CONTEXT x ...] */
} bonet;

/* ---- trajectories ---------------------------------------------------------------------------- */

typedef struct bins {
    size_t n[BINS], first[BINS], places[BINS];
    size_t *rows;   /* by bin */
    double *regret; /* of every row */
} bins;

static size_t bin_of(double regret) { return regret < 1 ? (size_t)(regret * BINS) : BINS - 1; }

/* Places of a trajectory by the scores of bins; what rounding leaves goes to the best bins. */
static void share_places(bins *b, size_t rows, double tau, const double *mean_regret) {
    double score[BINS], sum = 0;
    size_t left = LENGTH;
    for (size_t k = 0; k < BINS; k++) {
        const double n = (double)b->n[k];
        score[k] = n > 0 ? n / (n + SHRINK * (double)rows) * exp(-mean_regret[k] / tau) : 0;
        sum += score[k];
    }
    for (size_t k = 0; k < BINS; k++)
        left -= b->places[k] = (size_t)(score[k] / sum * (LENGTH - 1e-6));
    for (size_t k = 0; left > 0; k = (k + 1) % BINS)
        if (b->n[k] > 0) {
            b->places[k]++;
            left--;
        }
}

static n2ce_status make_bins(bonet *m, bins *b) {
    const size_t n = m->code.rows;
    double low = N2_INFINITY, high = -N2_INFINITY, mean[BINS] = {0};
    b->rows = n2_arena_alloc(&m->ws->arena, n, sizeof *b->rows);
    b->regret = n2_arena_alloc(&m->ws->arena, n, sizeof *b->regret);
    double *sorted = n2_arena_alloc(&m->ws->arena, n, sizeof *sorted);
    if (!b->rows || !b->regret || !sorted) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) low = fmin(low, m->code.y[i]);
    for (size_t i = 0; i < n; i++) high = fmax(high, m->code.y[i]);
    for (size_t i = 0; i < n; i++) {
        sorted[i] = b->regret[i] = high > low ? (high - m->code.y[i]) / (high - low) : 0;
        b->n[bin_of(b->regret[i])]++;
        mean[bin_of(b->regret[i])] += b->regret[i];
    }
    for (size_t k = 1; k < BINS; k++) b->first[k] = b->first[k - 1] + b->n[k - 1];
    for (size_t k = 0; k < BINS; k++) mean[k] /= fmax(1, (double)b->n[k]);
    memset(b->places, 0, sizeof b->places);
    for (size_t i = 0; i < n; i++) {
        const size_t k = bin_of(b->regret[i]);
        b->rows[b->first[k] + b->places[k]++] = i;
    }
    share_places(b, n, fmax(1 - n2_percentile(sorted, n, 90), 0.01), mean);
    return N2CE_OK;
}

/* From the worst bin to the best, in a bin by regret. */
static void draw_trajectory(const bonet *m, const bins *b, uint32_t t) {
    size_t *row = m->row + (size_t)t * LENGTH, at = 0;
    double *togo = m->togo + (size_t)t * LENGTH, sum = 0;
    for (size_t k = BINS; k-- > 0;)
        for (size_t i = 0; i < b->places[k]; i++) {
            const n2_stream stream = {m->ws->seed, STREAM, t};
            const size_t pick = b->rows[b->first[k] + n2_random_below(stream, at, b->n[k])];
            size_t place = at++;
            for (; place > 0 && b->regret[row[place - 1]] < b->regret[pick]; place--)
                row[place] = row[place - 1];
            row[place] = pick;
        }
    for (size_t i = LENGTH; i-- > 0;) togo[i] = sum += b->regret[row[i]] / CONTEXT;
}

static n2ce_status make_trajectories(bonet *m) {
    const size_t n = (size_t)TRAJECTORIES * LENGTH;
    bins b = {.rows = NULL};
    m->row = n2_arena_alloc(&m->ws->arena, n, sizeof *m->row);
    m->togo = n2_arena_alloc(&m->ws->arena, n, sizeof *m->togo);
    double *row = n2_arena_alloc(&m->ws->arena, n, sizeof *row);
    if (!m->row || !m->togo || !row) return N2CE_ENOMEM;
    N2_TRY(make_bins(m, &b));
    for (uint32_t t = 0; t < TRAJECTORIES; t++) draw_trajectory(m, &b, t);
    for (size_t i = 0; i < n; i++) row[i] = (double)m->row[i];
    m->x = n2_workspace_table(m->ws, "x", m->code.rows, m->code.width, m->code.x);
    m->t_row = n2_workspace_table(m->ws, "row", n, 1, row);
    m->t_togo = n2_workspace_table(m->ws, "togo", n, 1, m->togo);
    return m->x && m->t_row && m->t_togo ? N2CE_OK : N2CE_ENOMEM;
}

/* ---- the transformer ------------------------------------------------------------------------- */

static void new_block(bonet *m, size_t k) {
    static const char *const names[] = {"qkv", "out", "up", "down"};
    const int64_t e = m->width, in[] = {e, e, e, 4 * e}, out[] = {3 * e, e, 4 * e, e};
    block *b = &m->blocks[k];
    n2_layer *const layers[] = {&b->qkv, &b->out, &b->up, &b->down};
    char name[48];
    for (size_t i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "blocks.%zu.%s", k, names[i]);
        *layers[i] = n2_layer_new(&m->weights, name, in[i], out[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "blocks.%zu.norm.%zu.weight", k, i);
        b->gain[i] = n2_parameter_of(&m->weights, name, n2_dims(e), 1);
        snprintf(name, sizeof name, "blocks.%zu.norm.%zu.bias", k, i);
        b->shift[i] = n2_parameter_of(&m->weights, name, n2_dims(e), 0);
    }
}

static n2ce_status make_network(bonet *m) {
    const size_t scale = m->ws->effort->scale ? m->ws->effort->scale : 1;
    const int64_t width = WIDTH / (int64_t)scale / HEAD * HEAD, d = (int64_t)m->code.width;
    const size_t layers = LAYERS / scale;
    double *mask = n2_arena_alloc(&m->ws->arena, (size_t)TOKENS * TOKENS, sizeof *mask);
    if (!mask) return N2CE_ENOMEM;
    for (size_t i = 0; i < TOKENS; i++)
        for (size_t j = i + 1; j < TOKENS; j++) mask[i * TOKENS + j] = -1e9;
    m->width = width > LEAST_WIDTH ? width : LEAST_WIDTH;
    m->layers = layers > LEAST_LAYERS ? layers : LEAST_LAYERS;
    m->mask = n2_workspace_table(m->ws, "mask", TOKENS, TOKENS, mask);
    m->weights = n2_parameters_new(m->ws->store, m->ws->seed);
    n2_parameters *p = &m->weights;
    m->see_togo = n2_layer_new(p, "togo", 1, m->width);
    m->see_x = n2_layer_new(p, "design", d, m->width);
    m->places = n2_parameter(p, "places", n2_dims(CONTEXT, m->width), 0.02);
    for (size_t k = 0; k < m->layers; k++) new_block(m, k);
    m->last_gain = n2_parameter_of(p, "norm.weight", n2_dims(m->width), 1);
    m->last_shift = n2_parameter_of(p, "norm.bias", n2_dims(m->width), 0);
    m->predict = n2_layer_new(p, "predict", m->width, d);
    return m->mask && !p->failed ? N2CE_OK : N2CE_ENOMEM;
}

static n2_node layer_norm(n2_graph *g, n2_node x, n2_tensor *gain, n2_tensor *shift) {
    const n2_norm norm = {.groups = 1, .act = N2_ACT_NONE, .eps = 1e-5};
    return n2g_norm(g, x, N2_NONE, n2g_read(g, gain), n2g_read(g, shift), norm);
}

/* Heads of queries (0), keys (1) or values (2): [n * heads x TOKENS x HEAD]. */
static n2_node heads_of(n2_graph *g, const bonet *m, n2_node qkv, int64_t n, int64_t which) {
    const int64_t heads = m->width / HEAD;
    const n2_node part = n2g_slice(g, qkv, 1, which * m->width, m->width);
    const n2_node apart = n2g_reshape(g, part, n2_dims(n, TOKENS, heads, HEAD));
    return n2g_reshape(g, n2g_transpose(g, apart, 1, 2), n2_dims(n * heads, TOKENS, HEAD));
}

/* No token sees those after it. */
static n2_node attend(n2_graph *g, const bonet *m, const block *b, n2_node x, int64_t n) {
    const int64_t heads = m->width / HEAD;
    const n2_node qkv = n2_layer_apply(g, &b->qkv, x);
    const n2_node q = heads_of(g, m, qkv, n, 0), k = heads_of(g, m, qkv, n, 1);
    const n2_node like = n2g_scale(g, n2g_matmul(g, q, k, false, true), 1 / sqrt((double)HEAD));
    const n2_node share = n2g_softmax(g, n2g_add(g, like, n2g_read(g, m->mask)), 2);
    const n2_node y = n2g_matmul(g, share, heads_of(g, m, qkv, n, 2), false, false);
    const n2_node apart = n2g_reshape(g, y, n2_dims(n, heads, TOKENS, HEAD));
    const n2_node together = n2g_transpose(g, apart, 1, 2);
    return n2_layer_apply(g, &b->out, n2g_reshape(g, together, n2_dims(n * TOKENS, m->width)));
}

static n2_node drop(n2_graph *g, n2_node x, bool learning) {
    return learning ? n2g_dropout(g, x, DROPPED) : x;
}

/* What is predicted for each of n * CONTEXT designs from what is before it. */
static n2_node transform(n2_graph *g, const bonet *m, n2_node togo, n2_node x, bool learning) {
    const int64_t rows = n2_shape_at(g, x).dim[0], n = rows / CONTEXT, e = m->width;
    const n2_node places = n2g_tile_rows(g, n2g_read(g, m->places), n);
    const n2_node a = n2g_add(g, n2_layer_apply(g, &m->see_togo, togo), places);
    const n2_node b = n2g_add(g, n2_layer_apply(g, &m->see_x, x), places);
    const n2_node pairs = n2g_concat(g, n2g_reshape(g, a, n2_dims(rows, 1, e)),
                                     n2g_reshape(g, b, n2_dims(rows, 1, e)), 1);
    n2_node h = drop(g, n2g_reshape(g, pairs, n2_dims(2 * rows, e)), learning);
    for (size_t k = 0; k < m->layers; k++) {
        const block *l = &m->blocks[k];
        const n2_node y = attend(g, m, l, layer_norm(g, h, l->gain[0], l->shift[0]), n);
        h = n2g_add(g, h, drop(g, y, learning));
        const n2_node up = n2_layer_apply(g, &l->up, layer_norm(g, h, l->gain[1], l->shift[1]));
        h = n2g_add(g, h, drop(g, n2_layer_apply(g, &l->down, n2g_gelu(g, up)), learning));
    }
    h = n2g_slice(g, n2g_reshape(g, h, n2_dims(rows, 2, e)), 1, 0, 1);
    h = layer_norm(g, n2g_reshape(g, h, n2_dims(rows, e)), m->last_gain, m->last_shift);
    return n2_layer_apply(g, &m->predict, h);
}

/* ---- training -------------------------------------------------------------------------------- */

/* The logits of levels, [rows x positions x levels]. */
static n2_node levels_of(n2_graph *g, const bonet *m, n2_node x) {
    const int64_t positions = (int64_t)m->code.space->n, d = (int64_t)m->code.width;
    return n2g_reshape(g, x, n2_dims(n2_shape_at(g, x).dim[0], positions, d / positions));
}

static n2_node loss_of(n2_graph *g, const bonet *m, n2_node predicted, n2_node x) {
    if (!m->sequence) {
        const n2_node error = n2g_sub(g, predicted, x);
        return n2_mean_all(g, n2g_mul(g, error, error));
    }
    const n2_node logits = levels_of(g, m, predicted);
    const n2_node own = n2g_sum(g, n2g_mul(g, logits, levels_of(g, m, x)), n2_axis(2));
    return n2_mean_all(g, n2g_sub(g, n2g_logsumexp(g, logits, n2_axis(2)), own));
}

static n2ce_status build_step(void *user, n2_graph *g, n2_outputs *out) {
    const bonet *m = user;
    const n2_node which = n2g_randint(g, n2_dims(BATCH), TRAJECTORIES);
    const n2_node from = n2g_randint(g, n2_dims(BATCH), LENGTH - CONTEXT + 1);
    const n2_node first = n2g_add(g, n2g_scale(g, which, LENGTH), from);
    const n2_node at = n2g_add(g, n2g_repeat_rows(g, first, CONTEXT),
                               n2g_row_index(g, BATCH * CONTEXT, 1, CONTEXT));
    const n2_node row = n2g_gather(g, n2g_read(g, m->t_row), at);
    const n2_node x =
        n2g_gather(g, n2g_read(g, m->x), n2g_reshape(g, row, n2_dims(BATCH * CONTEXT)));
    const n2_node togo = n2g_gather(g, n2g_read(g, m->t_togo), at);
    const n2_node loss = loss_of(g, m, transform(g, m, togo, x, true), x);
    const n2_optimiser adam = {
        .adam = {0.9, 0.95, 1e-8, 0.1}, .rate = RATE * WIDTH / (double)m->width, .clip = 1};
    n2_minimise(g, &adam, "adam", &m->weights, loss, NULL);
    n2_output(out, loss);
    return N2CE_OK;
}

/* ---- continuing ------------------------------------------------------------------------------ */

/* The last design of each context; levels by chance. */
static n2ce_status build_next(bonet *m, n2_plan **plan) {
    n2_graph *g = n2_workspace_graph(m->ws);
    if (!g) return N2CE_ENOMEM;
    const int64_t d = (int64_t)m->code.width;
    const n2_node all =
        transform(g, m, n2g_read(g, m->context_togo), n2g_read(g, m->context_x), false);
    n2_node next =
        n2g_slice(g, n2g_reshape(g, all, n2_dims(REGRETS, CONTEXT, d)), 1, CONTEXT - 1, 1);
    next = n2g_reshape(g, next, n2_dims(REGRETS, d));
    if (m->sequence)
        next = n2g_reshape(g, n2_draw_levels(g, levels_of(g, m, next)), n2_dims(REGRETS, d));
    return n2_workspace_compile(m->ws, g, &next, 1, plan);
}

/* Contexts begin with the first designs of a trajectory, all but the last place; regrets to go are
 * those up to here, and what is wanted. */
static void begin_contexts(const bonet *m, double *x, double *togo) {
    const size_t d = m->code.width;
    const size_t t = n2_random_below((n2_stream){m->ws->seed, PLACE_STREAM, 0}, 0, TRAJECTORIES);
    const size_t *row = m->row + t * LENGTH;
    const double *left = m->togo + t * LENGTH;
    for (size_t i = 0; i < (size_t)REGRETS * CONTEXT; i++) {
        const size_t k = i % CONTEXT;
        togo[i] = left[k] - left[CONTEXT] + REGRET[i / CONTEXT];
        memcpy(x + i * d, m->code.x + row[k] * d, d * sizeof *x);
    }
}

/* All move one place on; the last has the regret that is wanted, and no design yet. */
static void move_on(const bonet *m, double *x, double *togo) {
    const size_t d = m->code.width;
    for (size_t r = 0; r < REGRETS; r++) {
        double *xr = x + r * CONTEXT * d, *tr = togo + r * CONTEXT;
        memmove(xr, xr + d, (CONTEXT - 1) * d * sizeof *x);
        memmove(tr, tr + 1, (CONTEXT - 1) * sizeof *togo);
        memset(xr + (CONTEXT - 1) * d, 0, d * sizeof *x);
        tr[CONTEXT - 1] = REGRET[r];
    }
    n2_tensor_set(m->ws->store, m->context_x, x);
    n2_tensor_set(m->ws->store, m->context_togo, togo);
}

static n2ce_status propose_next(bonet *m, n2_proposals *out) {
    const size_t d = m->code.width, contexts = (size_t)REGRETS * CONTEXT;
    double *x = n2_arena_alloc(&m->ws->arena, contexts * d, sizeof *x);
    double *togo = n2_arena_alloc(&m->ws->arena, contexts, sizeof *togo);
    double *next = n2_arena_alloc(&m->ws->arena, REGRETS * d, sizeof *next);
    double *made = n2_arena_alloc(&m->ws->arena, (out->rows + REGRETS) * d, sizeof *made);
    n2_plan *plan;
    m->context_x = n2_workspace_table(m->ws, "context.x", contexts, d, NULL);
    m->context_togo = n2_workspace_table(m->ws, "context.togo", contexts, 1, NULL);
    if (!x || !togo || !next || !made || !m->context_x || !m->context_togo) return N2CE_ENOMEM;
    N2_TRY(build_next(m, &plan));
    begin_contexts(m, x, togo);
    for (size_t i = 0; i < out->rows; i += REGRETS) {
        move_on(m, x, togo);
        N2_TRY(n2_plan_run(plan));
        n2_plan_get(plan, 0, next);
        memcpy(made + i * d, next, REGRETS * d * sizeof *next);
        for (size_t r = 0; r < REGRETS; r++)
            memcpy(x + ((r + 1) * CONTEXT - 1) * d, next + r * d, d * sizeof *next);
    }
    n2_code_propose(&m->code, made, out);
    return N2CE_OK;
}

static n2ce_status run(n2_workspace *ws, const n2_designs *offline, n2_proposals *out) {
    bonet m = {.ws = ws, .sequence = n2_space_is_sequence(&offline->space)};
    const n2_code_kind kind = m.sequence ? N2_CODE_ONE_HOT : N2_CODE_LOGITS;
    N2_TRY(n2_code_new(&ws->arena, offline, kind, &m.code));
    N2_TRY(make_trajectories(&m));
    N2_TRY(make_network(&m));
    const n2_phase fit = {.build = build_step,
                          .steps = n2_workspace_steps(ws, TRAJECTORIES, BATCH, EPOCHS),
                          .seed = n2_workspace_seed(ws)};
    N2_TRY(n2_workspace_train(ws, &m, &fit, 1, 0.95));
    return propose_next(&m, out);
}

n2ce_status n2_bonet_with(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                          const n2_effort *effort, n2_proposals *out) {
    return n2_workspace_propose(ctx, offline, seed, effort, run, out);
}

N2_PROPOSE_AS_PUBLISHED(n2_bonet_with)

const n2_method n2_bonet_method = {
    "bonet", "a transformer continues designs of which each is better than the one before",
    propose};
