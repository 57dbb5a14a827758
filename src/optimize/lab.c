#include "lab.h"

#include "base/clock.h"
#include "base/numerics.h"

enum { RUNS_AT_ONCE = 64 };
static const double SECONDS_BETWEEN_REPORTS = 0.1;

n2ce_status n2_lab_open(n2ce_ctx *ctx, const n2_effort *effort, uint64_t seed, n2_lab *lab) {
    *lab = (n2_lab){.ctx = ctx, .effort = effort, .seed = seed, .arena = n2_arena_new(ctx)};
    lab->backend = n2_choice_backend(effort->choice);
    return n2_store_new(ctx, lab->backend->bytes, &lab->store);
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
    N2_TRY(n2_plan_compile(g, lab->backend, outputs, n_outputs, out));
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

/* The first report begins; what is done once is done by then. */
static n2ce_status report_trial(n2_lab *lab, double done, double now) {
    const double took = now - lab->trial_from, gain = done - lab->trial_done;
    if (lab->trial_from > 0 && gain > 0) *lab->trial = took / gain;
    if (lab->trial_from > 0 && took > N2_TRIAL_SECONDS) return N2CE_ECANCELED;
    if (lab->trial_from > 0) return N2CE_OK;
    lab->trial_from = now;
    lab->trial_done = done;
    return N2CE_OK;
}

n2ce_status n2_lab_report(n2_lab *lab, double done) {
    const double now = n2_seconds();
    if (lab->trial) N2_TRY(report_trial(lab, done, now));
    lab->done = done;
    if (now - lab->reported >= SECONDS_BETWEEN_REPORTS) {
        n2_progress(lab->ctx, done, 1);
        lab->reported = now;
    }
    return n2_cancelled(lab->ctx) ? N2CE_ECANCELED : N2CE_OK;
}

n2ce_status n2_lab_run(n2_lab *lab, n2_plan *plan, uint64_t times, double upto) {
    const double from = lab->done;
    const bool on_device = lab->backend->device != NULL;
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

/* ---- where ---------------------------------------------------------------- */

/* A method and what it works on. */
typedef struct job {
    n2ce_ctx *ctx;
    const n2_designs *offline;
    uint64_t seed;
    const n2_effort *effort;
    n2_lab_work *work;
} job;

static n2ce_status run_job(const job *j, const n2_effort *effort, double *trial,
                           n2_proposals *out) {
    n2_lab lab;
    n2ce_status status = n2_lab_open(j->ctx, effort, j->seed, &lab);
    lab.trial = trial;
    if (status == N2CE_OK) status = j->work(&lab, j->offline, out);
    n2_lab_close(&lab);
    return status;
}

typedef struct trial {
    job job;
    n2_proposals *out;
} trial;

static n2ce_status time_on(void *user, const n2_backend *backend, double *seconds) {
    const trial *t = user;
    n2_device_choice choice = {.backend = backend};
    n2_effort effort = *t->job.effort;
    n2_proposals out = *t->out; /* nobody reads them */
    const double start = n2_seconds();
    effort.choice = &choice;
    *seconds = 0;
    const n2ce_status status = run_job(&t->job, &effort, seconds, &out);
    const bool ended = status == N2CE_ECANCELED && !n2_cancelled(t->job.ctx);
    if (*seconds == 0) *seconds = n2_seconds() - start;
    return ended ? N2CE_OK : status;
}

n2ce_status n2_lab_propose(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                           const n2_effort *effort, n2_lab_work *work, n2_proposals *out) {
    trial t = {{ctx, offline, seed, effort, work}, out};
    if (effort->choice) effort->choice->per = "in all";
    N2_TRY(n2_choice_settle(effort->choice, ctx, N2_INFINITY, time_on, &t));
    return run_job(&t.job, effort, NULL, out);
}
