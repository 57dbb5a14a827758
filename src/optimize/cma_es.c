/* CMA-ES on the mean of an ensemble of forward models, as Design-Bench runs it: a search of its own
 * from each of the best designs offline, 100 generations with first step size .5; a search's best
 * point is a proposal. */
#include "cma.h"
#include "surrogate.h"

enum { GENERATIONS = 100 };

typedef struct asker {
    n2_workspace *ws;
    n2_surrogate *surrogate;
    size_t generation;
} asker;

static n2ce_status ask(void *user, const double *x, size_t rows, double *value) {
    asker *a = user;
    const double share = (double)++a->generation / GENERATIONS;
    N2_TRY(n2_surrogate_mean(a->surrogate, x, rows, value));
    return n2_workspace_report(a->ws, 0.5 + 0.5 * share);
}

static n2ce_status run(n2_workspace *ws, const n2_designs *offline, n2_proposals *out) {
    const n2_surrogate_options o = n2_surrogate_ensemble(1e-3);
    n2_code code;
    n2_surrogate s;
    double *x;
    N2_TRY(n2_code_new(&ws->arena, offline, N2_CODE_LOGITS, &code));
    N2_TRY(n2_surrogate_fit(ws, &code, &o, 0.5, &s));
    N2_TRY(n2_code_best(&ws->arena, offline, &code, out->rows, &x));
    asker a = {ws, &s, 0};
    const n2_cma cma = {.dim = code.width,
                        .generations = GENERATIONS,
                        .sigma = 0.5,
                        .seed = ws->seed,
                        .ask = ask,
                        .user = &a};
    N2_TRY(n2_cma_maximise(ws->ctx, &cma, out->rows, x));
    n2_code_propose(&code, x, out);
    return N2CE_OK;
}

n2ce_status n2_cma_es_with(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                           const n2_effort *effort, n2_proposals *out) {
    return n2_workspace_propose(ctx, offline, seed, effort, run, out);
}

N2_PROPOSE_AS_PUBLISHED(n2_cma_es_with)

const n2_method n2_cma_es_method = {"cma-es", "CMA-ES on an ensemble that predicts y", propose};
