#include "lab.h"

#include "base/clock.h"

enum { RUNS_AT_ONCE = 64 };
static const double SECONDS_BETWEEN_REPORTS = 0.1;

n2ce_status n2_lab_open(n2ce_ctx *ctx, const n2_effort *effort, uint64_t seed, n2_lab *lab) {
    *lab = (n2_lab){.ctx = ctx, .effort = effort, .seed = seed, .arena = n2_arena_new(ctx)};
    return n2_store_new(ctx, effort->backend->bytes, &lab->store);
}

void n2_lab_close(n2_lab *lab) {
    for (size_t i = 0; i < lab->n_plans; i++) n2_plan_free(lab->plans[i]);
    for (size_t i = 0; i < lab->n_graphs; i++) n2_graph_free(lab->graphs[i]);
    n2_store_free(lab->store);
    n2_arena_free(&lab->arena);
}

n2_graph *n2_lab_graph(n2_lab *lab) {
    n2_graph *g = lab->n_graphs < N2_LAB_PLANS ? n2_graph_new(lab->store) : NULL;
    if (g) lab->graphs[lab->n_graphs++] = g;
    return g;
}

/* Nodes of two graphs may have the same number, which is their stream: so seeds differ. */
n2ce_status n2_lab_compile(n2_lab *lab, n2_graph *g, const n2_node *outputs, size_t n_outputs,
                           n2_plan **out) {
    if (!g) return N2CE_ENOMEM;
    N2_TRY(n2_plan_compile(g, lab->effort->backend, outputs, n_outputs, out));
    n2_plan_seed(*out, lab->seed + ((uint64_t)(lab->n_plans + 1) << 56), 0);
    lab->plans[lab->n_plans++] = *out;
    return N2CE_OK;
}

n2_tensor *n2_lab_table(n2_lab *lab, const char *name, size_t rows, size_t cols,
                        const double *values) {
    n2_tensor *t = n2_store_add(lab->store, name, n2_dims((int64_t)rows, (int64_t)cols));
    if (t && values) n2_tensor_set(lab->store, t, values);
    return t;
}

n2ce_status n2_lab_report(n2_lab *lab, double done) {
    const double now = n2_seconds();
    lab->done = done;
    if (now - lab->reported >= SECONDS_BETWEEN_REPORTS) {
        n2_progress(lab->ctx, done, 1);
        lab->reported = now;
    }
    return n2_cancelled(lab->ctx) ? N2CE_ECANCELED : N2CE_OK;
}

n2ce_status n2_lab_run(n2_lab *lab, n2_plan *plan, uint64_t times, double upto) {
    const double from = lab->done;
    const bool on_device = lab->effort->backend->device != NULL;
    for (uint64_t i = 0; i < times;) {
        const uint64_t left = times - i, most = on_device ? RUNS_AT_ONCE : 1;
        const uint64_t n = left < most ? left : most;
        N2_TRY(n2_plan_run_many(plan, n));
        i += n;
        N2_TRY(n2_lab_report(lab, from + (upto - from) * (double)i / (double)times));
    }
    return N2CE_OK;
}

uint64_t n2_lab_steps(const n2_lab *lab, size_t rows, size_t batch, size_t epochs) {
    return n2_effort_steps(lab->effort, epochs * ((rows + batch - 1) / batch));
}

n2_node n2_lab_mean(n2_graph *g, n2_node x) { return n2g_total(g, n2g_mean(g, x, N2_ALL_AXES)); }

n2ce_status n2_lab_propose(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                           const n2_effort *effort, n2_lab_work *work, n2_proposals *out) {
    n2_lab lab;
    n2ce_status status = n2_lab_open(ctx, effort, seed, &lab);
    if (status == N2CE_OK) status = work(&lab, offline, out);
    n2_lab_close(&lab);
    return status;
}
