/* Gradient ascent on a forward model (Design-Bench): one network with two hidden layers of 2048,
 * trained for 100 epochs (50 where a design has more than 60 numbers, as published for
 * Superconductor); from the best designs offline 200 steps of .01 sqrt(d) along the gradient of
 * the predicted mean. The last points are proposed. */
#include "surrogate.h"

#include <math.h>

enum { STEPS = 200, EPOCHS = 100, EPOCHS_IF_LARGE = 50, LARGE = 60 };

static n2ce_status build_ascent(n2_lab *lab, const n2_surrogate *s, n2_tensor *points,
                                n2_plan **plan) {
    const double step = 0.01 * sqrt((double)s->code->width);
    n2_graph *g = n2_lab_graph(lab);
    n2_node mean, gradient;
    if (!g || !points) return N2CE_ENOMEM;
    const n2_node x = n2g_read(g, points);
    n2_surrogate_apply(g, s, 0, x, &mean, NULL);
    n2g_grad(g, n2g_total(g, mean), &x, 1, &gradient);
    n2g_assign(g, points, n2g_add(g, x, n2g_scale(g, gradient, step)));
    return n2_lab_compile(lab, g, NULL, 0, plan);
}

static n2ce_status climb(n2_lab *lab, const n2_designs *offline, n2_proposals *out) {
    const bool large = offline->space.n > LARGE;
    const n2_surrogate_options o = {.members = 1,
                                    .layers = 2,
                                    .width = 2048,
                                    .epochs = large ? EPOCHS_IF_LARGE : EPOCHS,
                                    .batch = 128,
                                    .rate = 3e-4};
    n2_code code;
    n2_surrogate s;
    double *x;
    n2_plan *plan;
    N2_TRY(n2_code_new(&lab->arena, offline, N2_CODE_LOGITS, &code));
    N2_TRY(n2_surrogate_fit(lab, &code, &o, 0.95, &s));
    N2_TRY(n2_code_best(&lab->arena, offline, &code, out->rows, &x));
    n2_tensor *points = n2_lab_table(lab, "points", out->rows, code.width, x);
    N2_TRY(build_ascent(lab, &s, points, &plan));
    N2_TRY(n2_lab_run(lab, plan, STEPS, 1));
    n2_tensor_get(lab->store, points, x);
    n2_code_propose(&code, x, out);
    return N2CE_OK;
}

n2ce_status n2_gradient_with(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                             const n2_effort *effort, n2_proposals *out) {
    return n2_lab_propose(ctx, offline, seed, effort, climb, out);
}

N2_PROPOSE_AS_PUBLISHED(n2_gradient_with)

const n2_method n2_gradient_method = {"gradient-ascent",
                                      "gradient ascent on a network that predicts y", propose};
