/* Scores of pictures by a model with an amortised sampler. */
#include "damc.h"

#include "rewrite/rewrites.h"

/* Plans in the order in which they run, and how often. */
enum { BEGIN, DRAW, MOVE, JUDGE, PLANS };

struct n2_damc_scorer {
    n2ce_ctx *ctx;
    n2_store *store;
    const n2_damc *model;
    n2_tensor *pictures, *rows; /* rows: [batch], which pictures */
    n2_damc_batch batch;
    double move;
    uint64_t times[PLANS];
    n2_graph *graph[PLANS];
    n2_plan *plan[PLANS];
    n2_node result[2]; /* of JUDGE: misfit, -ln p(z) */
    double *values;    /* [batch] */
};

/* ---- plans ---- */

static void build_begin(n2_damc_scorer *s, n2_graph *g) {
    const n2_node x = n2g_gather(g, n2g_read(g, s->pictures), n2g_read(g, s->rows));
    n2_damc_begin(g, &s->model->sampler, &s->batch, x);
}

static void build_move(n2_damc_scorer *s, n2_graph *g) {
    const n2_damc_posterior p = {s->model, s->batch.x};
    const n2_node z = n2g_read(g, s->batch.chain.z);
    const n2_node score = n2_score(g, z, n2_damc_log_posterior, &p, NULL);
    const n2_node drift = n2g_scale(g, score, s->move * s->move / 2);
    n2g_assign(g, s->batch.chain.z, n2g_add(g, z, drift));
}

static void build_judge(n2_damc_scorer *s, n2_graph *g) {
    const n2_node z = n2g_read(g, s->batch.chain.z);
    s->result[0] = n2_damc_misfit(g, s->model, n2g_read(g, s->batch.x), z);
    s->result[1] = n2g_neg(g, n2_prior_log_density(g, z, &s->model->prior));
}

static n2ce_status build(n2_damc_scorer *s) {
    for (int i = 0; i < PLANS; i++) {
        s->graph[i] = n2_graph_new(s->store);
        if (!s->graph[i]) return N2CE_ENOMEM;
    }
    build_begin(s, s->graph[BEGIN]);
    n2_damc_draw(s->graph[DRAW], &s->model->sampler, &s->batch);
    build_move(s, s->graph[MOVE]);
    build_judge(s, s->graph[JUDGE]);
    return N2CE_OK;
}

static n2ce_status make_room(n2_damc_scorer *s, int64_t batch) {
    N2_TRY(n2_damc_batch_new(s->store, s->model, "scored", batch, &s->batch));
    s->rows = n2_store_add(s->store, "scored.rows", n2_dims(batch));
    s->values = n2_alloc(s->ctx, (size_t)batch, sizeof *s->values);
    return s->rows && s->values ? N2CE_OK : N2CE_ENOMEM;
}

n2ce_status n2_damc_scorer_new(n2_store *store, const n2_damc *model, n2_tensor *pictures,
                               int64_t batch, uint64_t moves, double move, n2_damc_scorer **out) {
    n2ce_ctx *ctx = n2_store_ctx(store);
    n2_damc_scorer *s = n2_alloc(ctx, 1, sizeof *s);
    *out = NULL;
    if (!s) return N2CE_ENOMEM;
    *s = (n2_damc_scorer){.ctx = ctx, .store = store, .model = model, .pictures = pictures};
    s->move = move;
    s->times[BEGIN] = s->times[JUDGE] = 1;
    s->times[DRAW] = N2_DIFFUSION_STEPS;
    s->times[MOVE] = moves;
    n2ce_status status = make_room(s, batch);
    if (status == N2CE_OK) status = build(s);
    if (status == N2CE_OK)
        *out = s;
    else
        n2_damc_scorer_free(s);
    return status;
}

static void free_plans(n2_damc_scorer *s) {
    for (int i = 0; i < PLANS; i++) {
        n2_plan_free(s->plan[i]);
        s->plan[i] = NULL;
    }
}

n2ce_status n2_damc_scorer_compile(n2_damc_scorer *s, const n2_backend *backend) {
    free_plans(s);
    for (int i = 0; i < PLANS; i++)
        N2_TRY(n2_plan_compile(s->graph[i], backend, s->result, i == JUDGE ? 2 : 0, &s->plan[i]));
    return N2CE_OK;
}

void n2_damc_scorer_free(n2_damc_scorer *s) {
    if (!s) return;
    free_plans(s);
    for (int i = 0; i < PLANS; i++) n2_graph_free(s->graph[i]);
    n2_free(s->ctx, s->values);
    n2_free(s->ctx, s);
}

/* ---- scores ---- */

/* Which pictures; where there are no more, the last again. */
static void choose_rows(const n2_damc_scorer *s, size_t first) {
    const size_t n = (size_t)s->pictures->shape.dim[0], batch = (size_t)s->rows->shape.dim[0];
    for (size_t i = 0; i < batch; i++) s->values[i] = (double)(first + i < n ? first + i : n - 1);
    n2_tensor_set(s->store, s->rows, s->values);
}

/* Result k of the batch, as far as there are pictures. */
static void copy_result(const n2_damc_scorer *s, size_t k, size_t first, double *to) {
    const size_t n = (size_t)s->pictures->shape.dim[0], batch = (size_t)s->rows->shape.dim[0];
    n2_plan_get(s->plan[JUDGE], k, s->values);
    for (size_t i = 0; i < batch && first + i < n; i++) to[first + i] = s->values[i];
}

n2ce_status n2_damc_score(n2_damc_scorer *s, uint64_t seed, n2_damc_scores *out) {
    const size_t n = (size_t)s->pictures->shape.dim[0], batch = (size_t)s->rows->shape.dim[0];
    for (int i = 0; i < PLANS; i++) n2_plan_seed(s->plan[i], seed + (uint64_t)i, 0);
    for (size_t first = 0; first < n; first += batch) {
        if (n2_cancelled(s->ctx)) return n2_fail(s->ctx, N2CE_ECANCELED, "Stopped on request.");
        choose_rows(s, first);
        for (int i = 0; i < PLANS; i++) N2_TRY(n2_plan_run_many(s->plan[i], s->times[i]));
        copy_result(s, 0, first, out->misfit);
        copy_result(s, 1, first, out->prior);
    }
    return N2CE_OK;
}
