/* DDOM (Krishnamoorthy et al. 2023): a diffusion model of standardised designs given y, asked for
 * the largest y offline.
 *
 * Variance-preserving diffusion with beta(t) from .01 to 2 on [0, 1]; a network of three hidden
 * layers of 1024 (Swish) on (x_t, t, y) that gives sqrt(beta) times the score; denoising score
 * matching with uniform t, batches of 256, Adam .001 on half a cosine, 1000 epochs; y is 0 with
 * probability .15. Rows are weighted by their value (value_weights.h). Proposals: 1000
 * steps of Euler and Maruyama from N(0, I), score (1 + gamma) with y less gamma without, gamma = 2.
 */
#include "base/numerics.h"
#include "design/design_space.h"
#include "value_weights.h"
#include "workspace.h"

#include <math.h>

enum { BATCH = 256, EPOCHS = 1000, WIDTH = 1024, LAYERS = 4, STEPS = 1000 };
static const double BETA0 = 0.01, BETA1 = 2.0, RATE = 1e-3, DROPPED = 0.15, GAMMA = 2;

typedef struct ddom {
    n2_workspace *ws;
    n2_code code;
    n2_parameters weights;
    n2_layer layers[LAYERS];
    n2_tensor *x, *y, *weight, *points, *time;
    double best, decay; /* largest y; steps of the cosine */
} ddom;

/* ---- the network ----------------------------------------------------------------------------- */

/* sqrt(beta) times the score at rows x; t and y are columns. */
static n2_node network(n2_graph *g, const ddom *d, n2_node x, n2_node t, n2_node y) {
    n2_node h = n2g_concat(g, n2g_concat(g, x, t, 1), y, 1);
    for (int i = 0; i < LAYERS; i++) {
        h = n2_layer_apply(g, &d->layers[i], h);
        if (i + 1 < LAYERS) h = n2g_silu(g, h);
    }
    return h;
}

static n2_node beta_at(n2_graph *g, n2_node t) { return n2g_affine(g, t, BETA1 - BETA0, BETA0); }

/* ln of the factor of x_0 in x_t: -t^2 (beta1 - beta0) / 4 - t beta0 / 2. */
static n2_node log_factor(n2_graph *g, n2_node t) {
    const n2_node line = n2g_affine(g, t, -(BETA1 - BETA0) / 4, -BETA0 / 2);
    return n2g_mul(g, t, line);
}

static n2ce_status make_network(ddom *d, const double *weight) {
    const int64_t width = n2_effort_width(d->ws->effort, WIDTH), dim = (int64_t)d->code.width;
    const int64_t widths[LAYERS + 1] = {dim + 2, width, width, width, dim};
    static const char *const names[LAYERS] = {"net.0", "net.2", "net.4", "net.6"};
    d->weights = n2_parameters_new(d->ws->store, d->ws->seed);
    for (int i = 0; i < LAYERS; i++)
        d->layers[i] = n2_layer_new(&d->weights, names[i], widths[i], widths[i + 1]);
    d->x = n2_workspace_table(d->ws, "x", d->code.rows, d->code.width, d->code.x);
    d->y = n2_workspace_table(d->ws, "y", d->code.rows, 1, d->code.y);
    d->weight = n2_workspace_table(d->ws, "weight", d->code.rows, 1, weight);
    return d->x && d->y && d->weight && !d->weights.failed ? N2CE_OK : N2CE_ENOMEM;
}

/* ---- training -------------------------------------------------------------------------------- */

/* Half of |score s + eps|^2 where s^2 is the variance of x_t given x_0. */
static n2_node matching_loss(n2_graph *g, const ddom *d, n2_node x, n2_node y, n2_node weight) {
    const n2_node t = n2g_randu(g, n2_dims(BATCH, 1));
    const n2_node eps = n2g_randn(g, n2_dims(BATCH, (int64_t)d->code.width));
    const n2_node kept = n2g_greater(g, n2g_randu(g, n2_dims(BATCH, 1)), n2g_constant(g, DROPPED));
    const n2_node lf = log_factor(g, t);
    const n2_node s = n2g_sqrt(g, n2g_affine(g, n2g_exp(g, n2g_scale(g, lf, 2)), -1, 1 + 1e-6));
    const n2_node xt = n2g_add(g, n2g_mul(g, x, n2g_exp(g, lf)), n2g_mul(g, eps, s));
    const n2_node a = network(g, d, xt, t, n2g_mul(g, y, kept));
    const n2_node scale = n2g_div(g, s, n2g_sqrt(g, beta_at(g, t)));
    const n2_node error = n2g_add(g, n2g_mul(g, a, scale), eps);
    const n2_node rows = n2g_sum(g, n2g_mul(g, error, error), n2_axis(1));
    return n2g_scale(g, n2_mean_all(g, n2g_mul(g, rows, weight)), 0.5);
}

static n2ce_status build_training(void *user, n2_graph *g, n2_outputs *out) {
    const ddom *d = user;
    const n2_node pick = n2g_randint(g, n2_dims(BATCH), (int64_t)d->code.rows);
    const n2_node loss = matching_loss(g, d, n2g_gather(g, n2g_read(g, d->x), pick),
                                       n2g_gather(g, n2g_read(g, d->y), pick),
                                       n2g_gather(g, n2g_read(g, d->weight), pick));
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-8, 0},
                               .rate = RATE,
                               .schedule = n2_schedule_cosine,
                               .schedule_arg = &d->decay};
    n2_minimise(g, &adam, "adam", &d->weights, loss, NULL);
    n2_output(out, loss);
    return N2CE_OK;
}

/* ---- sampling -------------------------------------------------------------------------------- */

/* One step back in time: x += (beta x / 2 + sqrt(beta) a) dt + sqrt(beta dt) e. */
static n2ce_status build_step(void *user, n2_graph *g, n2_outputs *out) {
    const ddom *d = user;
    const double dt = 1.0 / STEPS;
    const int64_t n = d->points->shape.dim[0];
    (void)out;
    const n2_node x = n2g_read(g, d->points), now = n2g_read(g, d->time);
    const n2_node t = n2g_broadcast(g, now, n2_dims(n, 1));
    const n2_node y = n2g_broadcast(g, n2g_constant(g, d->best), n2_dims(n, 1));
    const n2_node none = n2g_broadcast(g, n2g_constant(g, 0), n2_dims(n, 1));
    const n2_node a = n2g_sub(g, n2g_scale(g, network(g, d, x, t, y), 1 + GAMMA),
                              n2g_scale(g, network(g, d, x, t, none), GAMMA));
    const n2_node beta = beta_at(g, now), root = n2g_sqrt(g, beta);
    const n2_node drift = n2g_add(g, n2g_mul(g, x, n2g_scale(g, beta, 0.5)), n2g_mul(g, a, root));
    const n2_node noise = n2g_randn(g, n2_dims(n, (int64_t)d->code.width));
    const n2_node step =
        n2g_add(g, n2g_scale(g, drift, dt), n2g_mul(g, noise, n2g_scale(g, root, sqrt(dt))));
    n2g_assign(g, d->points, n2g_add(g, x, step));
    n2g_assign(g, d->time, n2g_affine(g, now, 1, -dt));
    return N2CE_OK;
}

static n2ce_status build_start(void *user, n2_graph *g, n2_outputs *out) {
    const ddom *d = user;
    (void)out;
    n2g_assign(g, d->points, n2g_randn(g, d->points->shape));
    return N2CE_OK;
}

static n2ce_status draw(ddom *d, n2_proposals *out) {
    const double one = 1;
    double *x = n2_arena_alloc(&d->ws->arena, out->rows * d->code.width, sizeof *x);
    d->points = n2_workspace_table(d->ws, "points", out->rows, d->code.width, NULL);
    d->time = n2_workspace_table(d->ws, "time", 1, 1, &one);
    if (!x || !d->points || !d->time) return N2CE_ENOMEM;
    const uint64_t start = n2_workspace_seed(d->ws);
    const n2_phase phases[2] = {
        {.build = build_start, .steps = 1, .seed = start},
        {.build = build_step, .steps = STEPS, .seed = n2_workspace_seed(d->ws)}};
    N2_TRY(n2_workspace_train(d->ws, d, phases, 2, 1));
    n2_tensor_get(d->ws->store, d->points, x);
    n2_code_propose(&d->code, x, out);
    return N2CE_OK;
}

static n2ce_status run(n2_workspace *ws, const n2_designs *offline, n2_proposals *out) {
    ddom d = {.ws = ws, .best = -N2_INFINITY};
    N2_TRY(n2_code_new(&ws->arena, offline, N2_CODE_LOGITS, &d.code));
    double *weight = n2_arena_alloc(&ws->arena, d.code.rows, sizeof *weight);
    if (!weight) return N2CE_ENOMEM;
    for (size_t i = 0; i < d.code.rows; i++) d.best = fmax(d.best, d.code.y[i]);
    const uint64_t steps = n2_workspace_steps(ws, d.code.rows, BATCH, EPOCHS);
    d.decay = (double)steps;
    N2_TRY(n2_value_weights(&ws->arena, &d.code, 0, weight));
    N2_TRY(make_network(&d, weight));
    const n2_phase fit = {.build = build_training, .steps = steps, .seed = n2_workspace_seed(ws)};
    N2_TRY(n2_workspace_train(ws, &d, &fit, 1, 0.95));
    return draw(&d, out);
}

n2ce_status n2_ddom_with(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                         const n2_effort *effort, n2_proposals *out) {
    return n2_workspace_propose(ctx, offline, seed, effort, run, out);
}

N2_PROPOSE_AS_PUBLISHED(n2_ddom_with)

const n2_method n2_ddom_method = {"ddom", "a diffusion model of designs given y", propose};
