#include "workspace.h"

#include "rewrite/rewrites.h"

static n2ce_status open_workspace(n2ce_ctx *ctx, const n2_effort *effort, uint64_t seed,
                                  n2_workspace *ws) {
    *ws = (n2_workspace){.ctx = ctx, .effort = effort, .seed = seed, .arena = n2_arena_new(ctx)};
    ws->backend = n2_choice_backend(effort->choice);
    return n2_store_new(ctx, ws->backend->bytes, &ws->store);
}

static void close_workspace(n2_workspace *ws) {
    for (size_t i = 0; i < ws->n_plans; i++) n2_plan_free(ws->plans[i]);
    for (size_t i = 0; i < ws->n_graphs; i++) n2_graph_free(ws->graphs[i]);
    n2_store_free(ws->store);
    n2_arena_free(&ws->arena);
}

n2ce_status n2_workspace_propose(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                                 const n2_effort *effort, n2_workspace_job *job,
                                 n2_proposals *out) {
    n2_workspace ws;
    n2ce_status status = open_workspace(ctx, effort, seed, &ws);
    if (status == N2CE_OK) status = job(&ws, offline, out);
    close_workspace(&ws);
    return status;
}

static void tell(void *user, double done, double total) {
    const n2_workspace *ws = user;
    n2_progress(ws->ctx, ws->done + (ws->upto - ws->done) * done / total, 1);
}

n2ce_status n2_workspace_train(n2_workspace *ws, void *user, const n2_phase *phases, size_t n,
                               double upto) {
    n2_phase_record records[4];
    const n2_trainer t = {.store = ws->store,
                          .user = user,
                          .phases = phases,
                          .n_phases = n,
                          .ready = ws->ready,
                          .progress = tell,
                          .progress_user = ws,
                          .choice = ws->effort->choice,
                          .measure_all = true};
    ws->upto = upto;
    N2_TRY(n2_train(&t, records));
    ws->done = upto;
    ws->backend = n2_choice_backend(ws->effort->choice);
    return N2CE_OK;
}

uint64_t n2_workspace_seed(n2_workspace *ws) { return ws->seed + (++ws->streams << 56); }

n2_graph *n2_workspace_graph(n2_workspace *ws) {
    n2_graph *g = ws->n_graphs < N2_WORKSPACE_PLANS ? n2_graph_new(ws->store) : NULL;
    if (g) ws->graphs[ws->n_graphs++] = g;
    return g;
}

n2ce_status n2_workspace_compile(n2_workspace *ws, n2_graph *g, const n2_node *outputs,
                                 size_t n_outputs, n2_plan **out) {
    if (!g) return N2CE_ENOMEM;
    N2_TRY(n2_plan_compile(g, ws->backend, outputs, n_outputs, out));
    n2_plan_seed(*out, n2_workspace_seed(ws), 0);
    ws->plans[ws->n_plans++] = *out;
    return N2CE_OK;
}

n2_tensor *n2_workspace_table(n2_workspace *ws, const char *name, size_t rows, size_t cols,
                              const double *values) {
    n2_tensor *t = n2_store_add(ws->store, name, n2_dims((int64_t)rows, (int64_t)cols));
    if (t && values) n2_tensor_set(ws->store, t, values);
    return t;
}

n2ce_status n2_workspace_report(n2_workspace *ws, double done) {
    ws->done = done;
    n2_progress(ws->ctx, done, 1);
    return n2_cancelled(ws->ctx) ? N2CE_ECANCELED : N2CE_OK;
}

uint64_t n2_workspace_steps(const n2_workspace *ws, size_t rows, size_t batch, size_t epochs) {
    return n2_effort_steps(ws->effort, epochs * ((rows + batch - 1) / batch));
}

/* By Gumbel's trick. */
n2_node n2_draw_levels(n2_graph *g, n2_node logits) {
    const n2_node u =
        n2g_minimum(g, n2g_randu(g, n2_shape_at(g, logits)), n2g_constant(g, 1 - 1e-6));
    const n2_node gumbel = n2g_neg(g, n2g_log(g, n2g_neg(g, n2g_log(g, u))));
    const n2_node v = n2g_add(g, logits, gumbel);
    return n2g_equal(g, v, n2g_amax(g, v, n2_axis(2)));
}

n2_node n2_mean_all(n2_graph *g, n2_node x) { return n2g_total(g, n2g_mean(g, x, N2_ALL_AXES)); }
