/* Conservative objective models (Trabucco et al. 2021): a network of two hidden layers of 2048
 * (ReLU) that fits y and predicts little for points that gradient ascent on itself reaches:
 *
 *     loss = mean (f(x) - y)^2 + alpha (mean f(x') - mean f(x))
 *
 * with x' = 50 steps of .05 sqrt(d) from x along the gradient of f, and alpha moved so that the
 * overestimation stays at .5: Adam .01 on ln alpha, from alpha = 1. Batches of 128, 50 epochs.
 * Proposals: the same 50 steps from the best designs offline. */
#include "design_code.h"
#include "workspace.h"

#include <math.h>

enum { ASCENT = 50, BATCH = 128, EPOCHS = 50, WIDTH = 2048 };
static const double LIMIT = 0.5, RATE = 3e-4, ALPHA_RATE = 0.01;

typedef struct coms {
    n2_workspace *ws;
    n2_code code;
    n2_parameters weights, dual;
    n2_mlp net;
    n2_tensor *log_alpha;
    n2_tensor *x, *y, *batch_x, *batch_y, *adverse, *points; /* adverse: x' */
} coms;

static n2_node predict(n2_graph *g, const coms *c, n2_node x) {
    return n2_mlp_apply(g, &c->net, x);
}

static n2ce_status make_network(coms *c) {
    const int64_t width = n2_effort_width(c->ws->effort, WIDTH), d = (int64_t)c->code.width;
    c->weights = n2_parameters_new(c->ws->store, c->ws->seed);
    c->net = n2_mlp_new(&c->weights, "net", (int64_t[]){d, width, width, 1}, 4, 0);
    c->dual = n2_parameters_new(c->ws->store, c->ws->seed);
    c->log_alpha = n2_parameter(&c->dual, "log_alpha", n2_scalar_shape(), 0);
    c->x = n2_workspace_table(c->ws, "x", c->code.rows, c->code.width, c->code.x);
    c->y = n2_workspace_table(c->ws, "y", c->code.rows, 1, c->code.y);
    c->batch_x = n2_workspace_table(c->ws, "batch.x", BATCH, c->code.width, NULL);
    c->batch_y = n2_workspace_table(c->ws, "batch.y", BATCH, 1, NULL);
    c->adverse = n2_workspace_table(c->ws, "adverse", BATCH, c->code.width, NULL);
    const bool tables = c->x && c->y && c->batch_x && c->batch_y && c->adverse;
    return tables && !c->weights.failed && !c->dual.failed ? N2CE_OK : N2CE_ENOMEM;
}

static n2ce_status build_draw(void *user, n2_graph *g, n2_outputs *out) {
    const coms *c = user;
    (void)out;
    const n2_node pick = n2g_randint(g, n2_dims(BATCH), (int64_t)c->code.rows);
    const n2_node x = n2g_gather(g, n2g_read(g, c->x), pick);
    n2g_assign(g, c->batch_x, x);
    n2g_assign(g, c->adverse, x);
    n2g_assign(g, c->batch_y, n2g_gather(g, n2g_read(g, c->y), pick));
    return N2CE_OK;
}

/* One step of all points uphill. */
static n2ce_status climb(const coms *c, n2_tensor *points, n2_graph *g) {
    const double step = 0.05 * sqrt((double)c->code.width);
    n2_node gradient;
    const n2_node x = n2g_read(g, points);
    n2g_grad(g, n2g_total(g, predict(g, c, x)), &x, 1, &gradient);
    n2g_assign(g, points, n2g_add(g, x, n2g_scale(g, gradient, step)));
    return N2CE_OK;
}

static n2ce_status build_adverse(void *user, n2_graph *g, n2_outputs *out) {
    const coms *c = user;
    (void)out;
    return climb(c, c->adverse, g);
}

static n2ce_status build_ascent(void *user, n2_graph *g, n2_outputs *out) {
    const coms *c = user;
    (void)out;
    return climb(c, c->points, g);
}

static n2ce_status build_fit(void *user, n2_graph *g, n2_outputs *out) {
    const coms *c = user;
    const n2_node f = predict(g, c, n2g_read(g, c->batch_x));
    const n2_node error = n2g_sub(g, f, n2g_read(g, c->batch_y));
    const n2_node uphill = n2_mean_all(g, predict(g, c, n2g_read(g, c->adverse)));
    const n2_node over = n2g_sub(g, uphill, n2_mean_all(g, f));
    const n2_node alpha = n2g_exp(g, n2g_read(g, c->log_alpha));
    const n2_node penalty = n2g_mul(g, n2g_detach(g, alpha), over);
    const n2_node loss = n2g_add(g, n2_mean_all(g, n2g_mul(g, error, error)), penalty);
    const n2_node slack = n2g_affine(g, n2g_detach(g, over), -1, LIMIT);
    const n2_optimiser fit = {.adam = {0.9, 0.999, 1e-7, 0}, .rate = RATE};
    const n2_optimiser dual = {.adam = {0.9, 0.999, 1e-7, 0}, .rate = ALPHA_RATE};
    n2_minimise(g, &fit, "adam", &c->weights, loss, NULL);
    n2_minimise(g, &dual, "adam.alpha", &c->dual, n2g_mul(g, alpha, slack), NULL);
    n2_output(out, loss);
    return N2CE_OK;
}

static n2ce_status train(coms *c) {
    const uint64_t draw = n2_workspace_seed(c->ws), up = n2_workspace_seed(c->ws);
    const n2_phase fit = {.build = build_fit,
                          .steps = n2_workspace_steps(c->ws, c->code.rows, BATCH, EPOCHS),
                          .seed = n2_workspace_seed(c->ws),
                          .inner = {{build_draw, 1, draw, 1}, {build_adverse, ASCENT, up, 1}}};
    return n2_workspace_train(c->ws, c, &fit, 1, 0.98);
}

static n2ce_status run(n2_workspace *ws, const n2_designs *offline, n2_proposals *out) {
    coms c = {.ws = ws};
    double *x;
    N2_TRY(n2_code_new(&ws->arena, offline, N2_CODE_LOGITS, &c.code));
    N2_TRY(make_network(&c));
    N2_TRY(train(&c));
    N2_TRY(n2_code_best(&ws->arena, offline, &c.code, out->rows, &x));
    c.points = n2_workspace_table(ws, "points", out->rows, c.code.width, x);
    if (!c.points) return N2CE_ENOMEM;
    const n2_phase ascent = {.build = build_ascent, .steps = ASCENT, .seed = n2_workspace_seed(ws)};
    N2_TRY(n2_workspace_train(ws, &c, &ascent, 1, 1));
    n2_tensor_get(ws->store, c.points, x);
    n2_code_propose(&c.code, x, out);
    return N2CE_OK;
}

n2ce_status n2_coms_with(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                         const n2_effort *effort, n2_proposals *out) {
    return n2_workspace_propose(ctx, offline, seed, effort, run, out);
}

N2_PROPOSE_AS_PUBLISHED(n2_coms_with)

const n2_method n2_coms_method = {"coms", "gradient ascent on a conservative objective model",
                                  propose};
