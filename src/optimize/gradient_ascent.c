/* Gradient ascent on a forward model (Design-Bench): one network with two hidden layers of 2048,
 * trained for 100 epochs (50 where a design has more than 60 numbers, as published for
 * Superconductor); from the best designs offline 200 steps of .01 sqrt(d) along the gradient of
 * the predicted mean. The last points are proposed. */
#include "surrogate.h"

#include <math.h>

enum { STEPS = 200, EPOCHS = 100, EPOCHS_IF_LARGE = 50, LARGE = 60 };

typedef struct climber {
    n2_surrogate s;
    n2_tensor *points;
} climber;

static n2ce_status build_ascent(void *user, n2_graph *g, n2_outputs *out) {
    const climber *c = user;
    const double step = 0.01 * sqrt((double)c->s.code->width);
    n2_node mean, gradient;
    (void)out;
    const n2_node x = n2g_read(g, c->points);
    n2_surrogate_apply(g, &c->s, 0, x, &mean, NULL);
    n2g_grad(g, n2g_total(g, mean), &x, 1, &gradient);
    n2g_assign(g, c->points, n2g_add(g, x, n2g_scale(g, gradient, step)));
    return N2CE_OK;
}

static n2ce_status climb(n2_workspace *ws, const n2_designs *offline, n2_proposals *out) {
    const bool large = offline->space.n > LARGE;
    const n2_surrogate_options o = {.members = 1,
                                    .layers = 2,
                                    .width = 2048,
                                    .epochs = large ? EPOCHS_IF_LARGE : EPOCHS,
                                    .batch = 128,
                                    .rate = 3e-4};
    n2_code code;
    climber c;
    double *x;
    N2_TRY(n2_code_new(&ws->arena, offline, N2_CODE_LOGITS, &code));
    N2_TRY(n2_surrogate_fit(ws, &code, &o, 0.95, &c.s));
    N2_TRY(n2_code_best(&ws->arena, offline, &code, out->rows, &x));
    c.points = n2_workspace_table(ws, "points", out->rows, code.width, x);
    if (!c.points) return N2CE_ENOMEM;
    const n2_phase ascent = {.build = build_ascent, .steps = STEPS, .seed = n2_workspace_seed(ws)};
    N2_TRY(n2_workspace_train(ws, &c, &ascent, 1, 1));
    n2_tensor_get(ws->store, c.points, x);
    n2_code_propose(&code, x, out);
    return N2CE_OK;
}

n2ce_status n2_gradient_with(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                             const n2_effort *effort, n2_proposals *out) {
    return n2_workspace_propose(ctx, offline, seed, effort, climb, out);
}

N2_PROPOSE_AS_PUBLISHED(n2_gradient_with)

const n2_method n2_gradient_method = {"gradient-ascent",
                                      "gradient ascent on a network that predicts y", propose};
