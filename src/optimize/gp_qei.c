/* GP-qEI, as Design-Bench runs it: batches of 32 designs with the largest expected improvement of
 * their best, by a Gaussian process.
 *
 * The process (Matern 5/2, noise .1) learns from the 500 best designs offline. Ten times a batch is
 * chosen, the mean of an ensemble of networks says what its designs are worth, and they join the
 * process. qEI is the mean over 128 functions drawn from the process of what the best of the batch
 * is above the best value so far; of 128 batches by chance in the range of the data the best 10
 * climb, and the best of these is taken. Proposals are the best Q of everything seen, designs
 * offline among them.
 *
 * Functions are drawn once a round, as waves whose values at the designs are put right (Matheron's
 * rule), so that a batch's qEI is a graph with gradients. One length scale is common to all
 * columns; it and the amplitude have the largest likelihood of a grid. */
#include "base/linalg.h"
#include "base/numerics.h"
#include "base/random.h"
#include "design/design_space.h"
#include "surrogate.h"

#include <math.h>
#include <string.h>

enum { LEARNT = 500, ROUNDS = 10, BATCH = 32, MOST = LEARNT + ROUNDS * BATCH };
enum { DRAWS = 128, WAVES = 256, RAW = 128, RESTARTS = 10, CLIMB = 50 };
enum { WAVE_STREAM = 0x51450000, PHASE_STREAM, DRAW_STREAM, NOISE_STREAM, RAW_STREAM };
static const double NOISE = 0.1, RATE = 0.05, TURN = 6.283185307179586;

typedef struct qei {
    n2_workspace *ws;
    n2_code code;
    n2_surrogate judge;
    size_t n, width, round;
    double *x, *y;                  /* what is known, coded; its values */
    double *low, *high;             /* the range of the data */
    double mean, length, amplitude; /* of the process */
    double *covariance, *waves, *phases, *weights, *parts, *right, *raw;
    /* What graphs read: designs, in lengths of the process; waves; the weights of waves and designs
     * in every function; one over the length; the best value so far. */
    n2_tensor *t_known, *t_waves, *t_phases, *t_weights, *t_right, *t_scale, *t_best;
    n2_tensor *t_raw, *t_low, *t_high;
    n2_parameters batches; /* what climbs, [RESTARTS * BATCH x width] */
    n2_plan *raw_values, *climbed_values;
} qei;

/* ---- the process ----------------------------------------------------------------------------- */

/* Of two designs at a distance of r lengths. */
static double matern(double r) {
    r *= sqrt(5);
    return (1 + r + r * r / 3) * exp(-r);
}

static double distance(const qei *q, size_t i, size_t j) {
    double sum = 0;
    for (size_t k = 0; k < q->width; k++) {
        const double d = q->x[i * q->width + k] - q->x[j * q->width + k];
        sum += d * d;
    }
    return sqrt(sum);
}

/* Its Cholesky factor; false: there is none. */
static bool factorise(qei *q) {
    const double a = q->amplitude * q->amplitude;
    for (size_t i = 0; i < q->n; i++)
        for (size_t j = 0; j <= i; j++)
            q->covariance[i * q->n + j] =
                a * matern(distance(q, i, j) / q->length) + (i == j ? NOISE * NOISE : 0);
    return n2_cholesky(q->covariance, q->n);
}

static double log_likelihood(qei *q) {
    if (!factorise(q)) return -N2_INFINITY;
    for (size_t i = 0; i < q->n; i++) q->right[i] = q->y[i] - q->mean;
    n2_lower_solve(q->covariance, q->n, q->right, 1);
    return -0.5 * (n2_dot(q->right, q->right, q->n) + n2_cholesky_log_det(q->covariance, q->n));
}

/* Lengths around what lies between designs by chance, amplitudes around the values' spread. */
static void tune(qei *q) {
    double most = -N2_INFINITY, length = 1, amplitude = 1, spread = 0;
    q->mean = 0;
    for (size_t i = 0; i < q->n; i++) q->mean += q->y[i] / (double)q->n;
    for (size_t i = 0; i < q->n; i++) spread += pow(q->y[i] - q->mean, 2) / (double)q->n;
    for (int l = -3; l <= 2; l++)
        for (int a = -1; a <= 2; a++) {
            q->length = sqrt((double)q->width) * pow(2, l);
            q->amplitude = fmax(sqrt(spread), NOISE) * pow(2, a);
            const double likely = log_likelihood(q);
            if (!(likely > most)) continue;
            most = likely;
            length = q->length;
            amplitude = q->amplitude;
        }
    q->length = length;
    q->amplitude = amplitude;
}

/* ---- functions drawn from it ----------------------------------------------------------------- */

static n2_stream stream_of(const qei *q, uint32_t stream) {
    return (n2_stream){q->ws->seed, stream, (uint32_t)q->round};
}

static void fill_normal(n2_stream stream, size_t first, size_t n, double *out) {
    for (size_t i = 0; i < n; i++) {
        float e;
        n2_fill_normal(stream, first + i, 1, &e);
        out[i] = (double)e;
    }
}

/* Frequencies have the kernel's spectral density: Student's t with 5 degrees of freedom. */
static void draw_waves(qei *q) {
    const size_t row = q->width + 5;
    for (size_t w = 0; w < WAVES; w++) {
        double *wave = q->waves + w * q->width, chi[5], u;
        float uniform;
        fill_normal(stream_of(q, WAVE_STREAM), w * row, q->width, wave);
        fill_normal(stream_of(q, WAVE_STREAM), w * row + q->width, 5, chi);
        n2_fill_uniform(stream_of(q, PHASE_STREAM), w, 1, &uniform);
        u = sqrt(n2_dot(chi, chi, 5) / 5) * q->length;
        for (size_t k = 0; k < q->width; k++) wave[k] /= u;
        q->phases[w] = TURN * (double)uniform;
    }
    fill_normal(stream_of(q, DRAW_STREAM), 0, (size_t)WAVES * DRAWS, q->weights);
    for (size_t i = 0; i < (size_t)WAVES * DRAWS; i++)
        q->weights[i] *= q->amplitude * sqrt(2.0 / WAVES);
}

/* right = K^-1 (y - waves - noise) of every function: what puts it right at the designs. */
static void put_right(qei *q) {
    for (size_t i = 0; i < q->n; i++)
        for (size_t w = 0; w < WAVES; w++)
            q->parts[w * q->n + i] =
                cos(n2_dot(q->x + i * q->width, q->waves + w * q->width, q->width) + q->phases[w]);
    n2_turned_product(q->parts, q->weights, WAVES, q->n, DRAWS, q->right);
    for (size_t i = 0; i < q->n * DRAWS; i++) {
        double noise;
        fill_normal(stream_of(q, NOISE_STREAM), i, 1, &noise);
        q->right[i] = q->y[i / DRAWS] - q->mean - NOISE * noise - q->right[i];
    }
    n2_cholesky_solve(q->covariance, q->n, q->right, DRAWS);
    for (size_t i = 0; i < q->n * DRAWS; i++) q->right[i] *= q->amplitude * q->amplitude;
    for (size_t i = q->n * DRAWS; i < (size_t)MOST * DRAWS; i++) q->right[i] = 0;
}

static n2ce_status draw_functions(qei *q) {
    double best = -N2_INFINITY, scale = 1 / q->length;
    if (!factorise(q))
        return n2_fail(q->ws->ctx, N2CE_ENAN, "gp-qei: the designs make no covariance.");
    draw_waves(q);
    put_right(q);
    for (size_t i = 0; i < q->n; i++) best = fmax(best, q->y[i] - q->mean);
    const n2_store *store = q->ws->store;
    n2_tensor_set(store, q->t_known, q->x);
    n2_tensor_set(store, q->t_waves, q->waves);
    n2_tensor_set(store, q->t_phases, q->phases);
    n2_tensor_set(store, q->t_weights, q->weights);
    n2_tensor_set(store, q->t_right, q->right);
    n2_tensor_set(store, q->t_scale, &scale);
    n2_tensor_set(store, q->t_best, &best);
    return N2CE_OK;
}

/* ---- expected improvement of batches --------------------------------------------------------- */

/* qEI of each of the batches of rows x, [batches x 1]. */
static n2_node improvement(n2_graph *g, const qei *q, n2_node x) {
    const int64_t batches = n2_shape_at(g, x).dim[0] / BATCH;
    const n2_node apart = n2g_squared_distances(g, x, n2g_read(g, q->t_known));
    const n2_node root =
        n2g_sqrt(g, n2g_affine(g, n2g_maximum(g, apart, n2g_constant(g, 0)), 5, 1e-9));
    const n2_node r = n2g_mul(g, root, n2g_read(g, q->t_scale));
    const n2_node line = n2g_affine(g, r, 1.0 / 3, 1);
    const n2_node kernel =
        n2g_mul(g, n2g_affine(g, n2g_mul(g, r, line), 1, 1), n2g_exp(g, n2g_neg(g, r)));
    const n2_node waves =
        n2g_cos(g, n2g_linear(g, x, n2g_read(g, q->t_waves), n2g_read(g, q->t_phases)));
    const n2_node f = n2g_add(g, n2g_matmul(g, waves, n2g_read(g, q->t_weights), false, false),
                              n2g_matmul(g, kernel, n2g_read(g, q->t_right), false, false));
    const n2_node best = n2g_amax(g, n2g_reshape(g, f, n2_dims(batches, BATCH, DRAWS)), n2_axis(1));
    const n2_node more =
        n2g_maximum(g, n2g_sub(g, best, n2g_read(g, q->t_best)), n2g_constant(g, 0));
    return n2g_reshape(g, n2g_mean(g, more, n2_axis(2)), n2_dims(batches, 1));
}

/* A step uphill, and back into the range of the data. */
static n2ce_status build_climb(void *user, n2_graph *g, n2_outputs *out) {
    const qei *q = user;
    n2_tensor *x = q->batches.list[0];
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-8, 0}, .rate = RATE};
    const n2_node loss = n2g_neg(g, n2g_total(g, improvement(g, q, n2g_read(g, x))));
    n2_minimise(g, &adam, "adam", &q->batches, loss, NULL);
    const n2_node low = n2g_maximum(g, n2g_read(g, x), n2g_read(g, q->t_low));
    n2g_assign(g, x, n2g_minimum(g, low, n2g_read(g, q->t_high)));
    n2_output(out, loss);
    return N2CE_OK;
}

static n2ce_status build_values(qei *q, n2_tensor *batches, n2_plan **plan) {
    n2_graph *g = n2_workspace_graph(q->ws);
    if (!g) return N2CE_ENOMEM;
    const n2_node out = improvement(g, q, n2g_read(g, batches));
    return n2_workspace_compile(q->ws, g, &out, 1, plan);
}

/* ---- a round --------------------------------------------------------------------------------- */

static void draw_raw(qei *q) {
    for (size_t i = 0; i < (size_t)RAW * BATCH * q->width; i++) {
        const size_t k = i % q->width;
        float u;
        n2_fill_uniform(stream_of(q, RAW_STREAM), i, 1, &u);
        q->raw[i] = q->low[k] + (q->high[k] - q->low[k]) * (double)u;
    }
    n2_tensor_set(q->ws->store, q->t_raw, q->raw);
}

/* The best RESTARTS of the batches by chance become those that climb. */
static n2ce_status choose_starts(qei *q) {
    const size_t size = BATCH * q->width;
    double value[RAW], *start = q->raw + RAW * size;
    N2_TRY(n2_plan_run(q->raw_values));
    n2_plan_get(q->raw_values, 0, value);
    for (size_t r = 0; r < RESTARTS; r++) {
        size_t best = 0;
        for (size_t i = 1; i < RAW; i++)
            if (value[i] > value[best]) best = i;
        memcpy(start + r * size, q->raw + best * size, size * sizeof *start);
        value[best] = -N2_INFINITY;
    }
    n2_tensor_set(q->ws->store, q->batches.list[0], start);
    return N2CE_OK;
}

/* The best batch joins what is known, with the values that the ensemble believes in. */
static n2ce_status take_best(qei *q) {
    const size_t size = BATCH * q->width;
    double value[RESTARTS], *climbed = q->raw + RAW * size;
    size_t best = 0;
    N2_TRY(n2_plan_run(q->climbed_values));
    n2_plan_get(q->climbed_values, 0, value);
    for (size_t r = 1; r < RESTARTS; r++)
        if (value[r] > value[best]) best = r;
    n2_tensor_get(q->ws->store, q->batches.list[0], climbed);
    memcpy(q->x + q->n * q->width, climbed + best * size, size * sizeof *climbed);
    N2_TRY(n2_surrogate_mean(&q->judge, q->x + q->n * q->width, BATCH, q->y + q->n));
    q->n += BATCH;
    return N2CE_OK;
}

static n2ce_status play_round(qei *q, size_t rounds) {
    const n2_phase climb = {.build = build_climb, .steps = CLIMB, .seed = n2_workspace_seed(q->ws)};
    N2_TRY(draw_functions(q));
    draw_raw(q);
    N2_TRY(choose_starts(q));
    const double share = (double)(q->round + 1) / (double)rounds;
    N2_TRY(n2_workspace_train(q->ws, q, &climb, 1, 0.5 + 0.5 * share));
    return take_best(q);
}

/* ---- the method ------------------------------------------------------------------------------ */

static n2ce_status make_room(qei *q) {
    n2_arena *arena = &q->ws->arena;
    const size_t d = q->width;
    const struct {
        double **to;
        size_t n;
    } rooms[] = {{&q->x, MOST * d},
                 {&q->y, MOST},
                 {&q->low, d},
                 {&q->high, d},
                 {&q->covariance, (size_t)MOST * MOST},
                 {&q->waves, WAVES * d},
                 {&q->phases, WAVES},
                 {&q->weights, (size_t)WAVES * DRAWS},
                 {&q->parts, (size_t)WAVES * MOST},
                 {&q->right, (size_t)MOST * DRAWS},
                 {&q->raw, (RAW + RESTARTS) * BATCH * d}};
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
        *rooms[i].to = n2_arena_alloc(arena, rooms[i].n, sizeof(double));
        if (!*rooms[i].to) return N2CE_ENOMEM;
    }
    return N2CE_OK;
}

static n2ce_status make_tensors(qei *q) {
    const size_t d = q->width;
    const struct {
        n2_tensor **to;
        const char *name;
        size_t rows, cols;
        const double *values;
    } tables[] = {{&q->t_known, "known", MOST, d, NULL},
                  {&q->t_waves, "waves", WAVES, d, NULL},
                  {&q->t_weights, "weights", WAVES, DRAWS, NULL},
                  {&q->t_right, "right", MOST, DRAWS, NULL},
                  {&q->t_scale, "scale", 1, 1, NULL},
                  {&q->t_best, "best", 1, 1, NULL},
                  {&q->t_raw, "raw", (size_t)RAW * BATCH, d, NULL},
                  {&q->t_low, "low", 1, d, q->low},
                  {&q->t_high, "high", 1, d, q->high}};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        *tables[i].to = n2_workspace_table(q->ws, tables[i].name, tables[i].rows, tables[i].cols,
                                           tables[i].values);
        if (!*tables[i].to) return N2CE_ENOMEM;
    }
    q->t_phases = n2_store_add(q->ws->store, "phases", n2_dims(WAVES));
    q->batches = n2_parameters_new(q->ws->store, q->ws->seed);
    n2_parameter(&q->batches, "batches", n2_dims(RESTARTS * BATCH, (int64_t)d), 0);
    return q->t_phases && !q->batches.failed ? N2CE_OK : N2CE_ENOMEM;
}

static n2ce_status begin(qei *q, const n2_designs *offline) {
    const n2_surrogate_options o = n2_surrogate_ensemble(1e-3);
    double *best;
    size_t row[LEARNT];
    N2_TRY(n2_code_new(&q->ws->arena, offline, N2_CODE_LOGITS, &q->code));
    q->width = q->code.width;
    q->n = offline->rows < LEARNT ? offline->rows : LEARNT;
    N2_TRY(make_room(q));
    N2_TRY(n2_code_best(&q->ws->arena, offline, &q->code, q->n, &best));
    N2_TRY(n2_designs_best(q->ws->ctx, offline, q->n, row));
    memcpy(q->x, best, q->n * q->width * sizeof *best);
    for (size_t i = 0; i < q->n; i++) q->y[i] = q->code.y[row[i]];
    for (size_t k = 0; k < q->width; k++) q->low[k] = q->high[k] = q->code.x[k];
    for (size_t i = 0; i < q->code.rows * q->width; i++) {
        q->low[i % q->width] = fmin(q->low[i % q->width], q->code.x[i]);
        q->high[i % q->width] = fmax(q->high[i % q->width], q->code.x[i]);
    }
    N2_TRY(n2_surrogate_fit(q->ws, &q->code, &o, 0.5, &q->judge));
    N2_TRY(make_tensors(q));
    N2_TRY(build_values(q, q->t_raw, &q->raw_values));
    N2_TRY(build_values(q, q->batches.list[0], &q->climbed_values));
    tune(q);
    return N2CE_OK;
}

/* The best by their values, each once; where they are too few, from the first on again. */
static n2ce_status propose_best(qei *q, n2_proposals *out) {
    const size_t d = q->width;
    double *x = n2_arena_alloc(&q->ws->arena, out->rows * d, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    for (size_t i = 0; i < out->rows; i++) {
        size_t best = 0;
        for (size_t j = 1; j < q->n; j++)
            if (q->y[j] > q->y[best]) best = j;
        const bool once_more = i >= q->n;
        memcpy(x + i * d, once_more ? x + (i - q->n) * d : q->x + best * d, d * sizeof *x);
        q->y[best] = -N2_INFINITY;
    }
    n2_code_propose(&q->code, x, out);
    return N2CE_OK;
}

/* Designs that the ensemble is asked for are the steps of this method. */
static n2ce_status run(n2_workspace *ws, const n2_designs *offline, n2_proposals *out) {
    qei q = {.ws = ws};
    const size_t asked = (size_t)n2_effort_steps(ws->effort, ROUNDS * BATCH);
    const size_t rounds = (asked + BATCH - 1) / BATCH;
    N2_TRY(begin(&q, offline));
    for (; q.round < rounds; q.round++) N2_TRY(play_round(&q, rounds));
    return propose_best(&q, out);
}

n2ce_status n2_gp_qei_with(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                           const n2_effort *effort, n2_proposals *out) {
    return n2_workspace_propose(ctx, offline, seed, effort, run, out);
}

N2_PROPOSE_AS_PUBLISHED(n2_gp_qei_with)

const n2_method n2_gp_qei_method = {
    "gp-qei", "batches with the largest expected improvement, by a Gaussian process", propose};
