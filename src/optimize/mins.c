/* MINs, model inversion networks (Kumar and Levine 2020), as Design-Bench runs them: a network that
 * makes a design from noise and a value, asked for the largest value offline.
 *
 * A conditional Wasserstein GAN with gradient penalty 10: generator (noise of 32 and y) and critic
 * (x and y) have one hidden layer of 1024, LeakyReLU(.3), Adam 2e-4 with betas 0 and .9, batches of
 * 128; the critic is updated ten times, then the generator once, and 200 epochs are the critic's.
 * Rows are drawn by their weights (value_weights.h, tau .1), so that in the mean losses are the
 * weighted ones. Sequences are logits. */
#include "base/numerics.h"
#include "base/random.h"
#include "value_weights.h"
#include "workspace.h"

#include <math.h>

enum { NOISE = 32, WIDTH = 1024, BATCH = 128, EPOCHS = 200, CRITICS = 10, STREAM = 0x4D490000 };
static const double SLOPE = 0.3, PENALTY = 10, TAU = 0.1;

typedef struct mins {
    n2_workspace *ws;
    n2_code code;
    n2_parameters generator_weights, critic_weights;
    n2_mlp generator, critic;
    n2_tensor *x, *y;
} mins;

/* ---- rows ------------------------------------------------------------------------------------ */

/* As many rows as there are, each about as often as its weight says: steps of equal length through
 * the sum of weights. */
static n2ce_status draw_rows(mins *m) {
    const size_t n = m->code.rows, width = m->code.width;
    double *weight = n2_arena_alloc(&m->ws->arena, n, sizeof *weight);
    double *x = n2_arena_alloc(&m->ws->arena, n * width, sizeof *x), sum = 0, passed;
    float first;
    double *y = n2_arena_alloc(&m->ws->arena, n, sizeof *y);
    if (!weight || !x || !y) return N2CE_ENOMEM;
    N2_TRY(n2_value_weights(&m->ws->arena, &m->code, TAU, weight));
    for (size_t i = 0; i < n; i++) sum += weight[i];
    n2_fill_uniform((n2_stream){m->ws->seed, STREAM, 0}, 0, 1, &first);
    passed = weight[0];
    for (size_t i = 0, row = 0; i < n; i++) {
        for (; passed < ((double)i + (double)first) / (double)n * sum && row + 1 < n;)
            passed += weight[++row];
        for (size_t k = 0; k < width; k++) x[i * width + k] = m->code.x[row * width + k];
        y[i] = m->code.y[row];
    }
    m->x = n2_workspace_table(m->ws, "x", n, width, x);
    m->y = n2_workspace_table(m->ws, "y", n, 1, y);
    return m->x && m->y ? N2CE_OK : N2CE_ENOMEM;
}

/* ---- networks -------------------------------------------------------------------------------- */

static n2ce_status make_networks(mins *m) {
    const int64_t width = n2_effort_width(m->ws->effort, WIDTH), d = (int64_t)m->code.width;
    m->generator_weights = n2_parameters_new(m->ws->store, m->ws->seed);
    m->generator =
        n2_mlp_new(&m->generator_weights, "generator", (int64_t[]){NOISE + 1, width, d}, 3, SLOPE);
    m->critic_weights = n2_parameters_new(m->ws->store, m->ws->seed + 1);
    m->critic = n2_mlp_new(&m->critic_weights, "critic", (int64_t[]){d + 1, width, 1}, 3, SLOPE);
    return m->generator_weights.failed || m->critic_weights.failed ? N2CE_ENOMEM : N2CE_OK;
}

static n2_node generate(n2_graph *g, const mins *m, n2_node y) {
    const n2_node z = n2g_randn(g, n2_dims(n2_shape_at(g, y).dim[0], NOISE));
    return n2_mlp_apply(g, &m->generator, n2g_concat(g, z, y, 1));
}

static n2_node criticise(n2_graph *g, const mins *m, n2_node x, n2_node y) {
    return n2_mlp_apply(g, &m->critic, n2g_concat(g, x, y, 1));
}

/* Mean of (|slope| - 1)^2 at points between designs of both kinds. */
static n2_node slope_penalty(n2_graph *g, const mins *m, n2_node real, n2_node made, n2_node y) {
    const n2_node t = n2g_randu(g, n2_dims(BATCH, 1));
    const n2_node between = n2g_add(g, real, n2g_mul(g, n2g_sub(g, made, real), t));
    n2_node slope;
    n2g_grad(g, n2g_total(g, criticise(g, m, between, y)), &between, 1, &slope);
    const n2_node square = n2g_sum(g, n2g_mul(g, slope, slope), n2_axis(1));
    const n2_node off = n2g_affine(g, n2g_sqrt(g, n2g_affine(g, square, 1, 1e-12)), 1, -1);
    return n2_mean_all(g, n2g_mul(g, off, off));
}

/* ---- training -------------------------------------------------------------------------------- */

static const n2_optimiser adam = {.adam = {0, 0.9, 1e-7, 0}, .rate = 2e-4};

static n2ce_status build_critic(void *user, n2_graph *g, n2_outputs *out) {
    const mins *m = user;
    const n2_node pick = n2g_randint(g, n2_dims(BATCH), (int64_t)m->code.rows);
    const n2_node x = n2g_gather(g, n2g_read(g, m->x), pick);
    const n2_node y = n2g_gather(g, n2g_read(g, m->y), pick);
    const n2_node made = n2g_detach(g, generate(g, m, y));
    const n2_node apart =
        n2_mean_all(g, n2g_sub(g, criticise(g, m, made, y), criticise(g, m, x, y)));
    const n2_node penalty = n2g_scale(g, slope_penalty(g, m, x, made, y), PENALTY);
    (void)out;
    n2_minimise(g, &adam, "adam.critic", &m->critic_weights, n2g_add(g, apart, penalty), NULL);
    return N2CE_OK;
}

static n2ce_status build_generator(void *user, n2_graph *g, n2_outputs *out) {
    const mins *m = user;
    const n2_node pick = n2g_randint(g, n2_dims(BATCH), (int64_t)m->code.rows);
    const n2_node y = n2g_gather(g, n2g_read(g, m->y), pick);
    const n2_node loss = n2g_neg(g, n2_mean_all(g, criticise(g, m, generate(g, m, y), y)));
    n2_minimise(g, &adam, "adam.generator", &m->generator_weights, loss, NULL);
    n2_output(out, loss);
    return N2CE_OK;
}

static n2ce_status train(mins *m) {
    const uint64_t epochs = EPOCHS * ((m->code.rows + BATCH - 1) / BATCH);
    const n2_phase fit = {.build = build_generator,
                          .steps = n2_effort_steps(m->ws->effort, (epochs + CRITICS - 1) / CRITICS),
                          .seed = n2_workspace_seed(m->ws),
                          .inner = {{build_critic, CRITICS, n2_workspace_seed(m->ws), 1}}};
    return n2_workspace_train(m->ws, m, &fit, 1, 1);
}

/* ---- the method ------------------------------------------------------------------------------ */

static n2ce_status run(n2_workspace *ws, const n2_designs *offline, n2_proposals *out) {
    mins m = {.ws = ws};
    double best = -N2_INFINITY;
    n2_plan *plan;
    N2_TRY(n2_code_new(&ws->arena, offline, N2_CODE_LOGITS, &m.code));
    N2_TRY(draw_rows(&m));
    N2_TRY(make_networks(&m));
    N2_TRY(train(&m));
    for (size_t i = 0; i < m.code.rows; i++) best = fmax(best, m.code.y[i]);
    double *x = n2_arena_alloc(&ws->arena, out->rows * m.code.width, sizeof *x);
    n2_graph *g = n2_workspace_graph(ws);
    if (!x || !g) return N2CE_ENOMEM;
    const n2_node y = n2g_broadcast(g, n2g_constant(g, best), n2_dims((int64_t)out->rows, 1));
    const n2_node made = generate(g, &m, y);
    N2_TRY(n2_workspace_compile(ws, g, &made, 1, &plan));
    N2_TRY(n2_plan_run(plan));
    n2_plan_get(plan, 0, x);
    n2_code_propose(&m.code, x, out);
    return N2CE_OK;
}

n2ce_status n2_mins_with(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                         const n2_effort *effort, n2_proposals *out) {
    return n2_workspace_propose(ctx, offline, seed, effort, run, out);
}

N2_PROPOSE_AS_PUBLISHED(n2_mins_with)

const n2_method n2_mins_method = {"mins", "a network that makes a design from noise and a value",
                                  propose};
