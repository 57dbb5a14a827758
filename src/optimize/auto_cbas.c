/* Autofocused CbAS (Fannjiang and Listgarten 2020), as Design-Bench runs it: CbAS whose ensemble is
 * refitted after each of the 20 rounds, 10 epochs, to the offline rows with the weights
 *
 *     q(x|z) / p(x|z),   z from N(0, I),
 *
 * so that it is right where q has come to look. They are treated as CbAS's weights are. */
#include "cbas.h"

enum { EPOCHS = 10 };

static n2ce_status build_comparison(n2_cbas *c) {
    n2_graph *g = n2_workspace_graph(c->ws);
    if (!g) return N2CE_ENOMEM;
    const n2_node x = n2g_read(g, c->data);
    const n2_node z = n2g_randn(g, n2_dims((int64_t)c->code.rows, N2_CBAS_LATENT));
    const n2_node out =
        n2g_sub(g, n2_cbas_log_density(g, c, &c->q, z, x), n2_cbas_log_density(g, c, &c->p, z, x));
    return n2_workspace_compile(c->ws, g, &out, 1, &c->compare);
}

static n2ce_status refit(n2_cbas *c, size_t round, double *weight) {
    const n2_surrogate_options *o = &c->surrogate.options;
    const uint64_t all = n2_workspace_steps(c->ws, c->code.rows, o->batch, N2_CBAS_ROUNDS * EPOCHS);
    const double left = 1 - c->ws->done, rounds = (double)(N2_CBAS_ROUNDS - round);
    N2_TRY(n2_plan_run(c->compare));
    n2_plan_get(c->compare, 0, weight);
    n2_cbas_weights(weight, c->code.rows);
    return n2_surrogate_refit(&c->surrogate, weight, all / N2_CBAS_ROUNDS + 1,
                              c->ws->done + left / rounds);
}

static n2ce_status focus(n2_cbas *c, size_t round) {
    if (!c->compare) N2_TRY(build_comparison(c));
    double *weight = n2_alloc(c->ws->ctx, c->code.rows, sizeof *weight);
    if (!weight) return N2CE_ENOMEM;
    const n2ce_status status = refit(c, round, weight);
    n2_free(c->ws->ctx, weight);
    return status;
}

static n2ce_status run(n2_workspace *ws, const n2_designs *offline, n2_proposals *out) {
    return n2_cbas_run(ws, offline, focus, out);
}

n2ce_status n2_auto_cbas_with(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                              const n2_effort *effort, n2_proposals *out) {
    return n2_workspace_propose(ctx, offline, seed, effort, run, out);
}

N2_PROPOSE_AS_PUBLISHED(n2_auto_cbas_with)

const n2_method n2_auto_cbas_method = {"auto-cbas",
                                       "CbAS whose ensemble is refitted where it looks", propose};
