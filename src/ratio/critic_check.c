/* What networks are worth: their loss on rows that training does not see, and by how much it is
 * below that of the base alone. */
#include "critic_parts.h"

#include "base/numerics.h"
#include "base/pool.h"
#include "rewrite/rewrites.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ROWS = 4096, NOISE = 8 };

/* ---- pairs of rows ------------------------------------------------------- */

static const double *range_row(const n2_row_range *r, size_t i) {
    return n2_row_at(&r->set, r->begin + i % (r->end - r->begin));
}

/* The numerator's and the denominator's row of pair p. They have nothing to do with one another:
 * with dx the denominator is the x of one later row and the y of another. */
typedef struct row_pair {
    const double *num, *x, *y; /* y: where the coordinates from dx on are */
} row_pair;

static row_pair pair_at(const n2_check *v, size_t p) {
    const size_t round = p / (v->num.end - v->num.begin);
    const double *num = range_row(&v->num, p);
    if (!v->c->dx) return (row_pair){num, range_row(&v->den, p), range_row(&v->den, p)};
    return (row_pair){num, range_row(&v->num, p + 1 + 2 * round),
                      range_row(&v->num, p + 2 + 3 * round)};
}

/* Both rows, for the base as they are and for the networks as floats. */
typedef struct pairs_job {
    const n2_check *v;
    double *work; /* without a base: two rows for each worker */
} pairs_job;

static void narrow(const n2_check *v, size_t side, const double *x, size_t i) {
    n2_tensor *rows = v->rows[side];
    if (i >= (size_t)rows->shape.dim[0]) return;
    n2_seen_from(v->base ? v->base->centre : NULL, x, v->c->d, (float *)rows->data + i * v->c->d);
}

static void take_pair(void *arg, size_t i, double *num, double *den) {
    const pairs_job *job = arg;
    const n2_check *v = job->v;
    const size_t d = v->c->d, dx = v->c->dx;
    const row_pair p = pair_at(v, i);
    memcpy(num, p.num, d * sizeof *num);
    memcpy(den, p.x, dx * sizeof *den);
    memcpy(den + dx, p.y + dx, (d - dx) * sizeof *den);
    narrow(v, 0, den, i);
    narrow(v, 1, num, i);
}

static void take_pair_alone(void *arg, size_t item, int worker) {
    const pairs_job *job = arg;
    double *num = job->work + (size_t)worker * 2 * job->v->c->d;
    take_pair(arg, item, num, num + job->v->c->d);
}

/* The pairs' rows, and the base at their waymarks. */
static n2ce_status fill_rows(n2_check *v) {
    n2ce_ctx *ctx = v->c->ctx;
    const size_t pairs = v->n[0] > v->n[1] ? v->n[0] : v->n[1];
    pairs_job job = {v, NULL};
    for (size_t side = 0; side < 2; side++) n2_tensor_push(v->c->store, v->rows[side]);
    if (v->base)
        return n2_gauss_stages(v->base, v->o->alpha, v->o->stages, v->n, take_pair, &job,
                               v->base_f);
    job.work = n2_alloc(ctx, (size_t)n2_ctx_threads(ctx) * 2 * v->c->d, sizeof *job.work);
    if (!job.work) return N2CE_ENOMEM;
    const n2ce_status status = n2_parallel_for(ctx, pairs, take_pair_alone, &job);
    n2_free(ctx, job.work);
    return status;
}

static void count_rows(n2_check *v) {
    const size_t n = v->num.end - v->num.begin, most = MOST_ROWS / v->o->stages;
    const size_t m = v->c->dx ? n * (n > 1 ? n - 1 : 1) : v->den.end - v->den.begin;
    v->n[1] = n < most ? n : most;
    v->n[0] = m < NOISE * v->n[1] ? m : NOISE * v->n[1];
}

/* ---- terms of the loss -------------------------------------------------- */

/* A row's term of the loss on one side. DV and InfoNCE, whose terms are not separate,
 * are judged by NWJ's with the same logits, SMILE by NCE's. */
static double term(const n2_critic_options *o, double f, size_t side) {
    const double m = o->contrast == N2_CONTRAST_N2CE ? o->judge : 1;
    if (o->contrast == N2_CONTRAST_NEG_REWEIGHT)
        return side ? n2_softplus(-f) : n2_scaled_softplus(f, o->magnitude);
    if (o->contrast == N2_CONTRAST_N2CE || o->contrast == N2_CONTRAST_SMILE)
        return side ? n2_shifted_softplus(f, m) : n2_scaled_softplus(f, m);
    return side ? -f : exp(f < 700 ? f : 700);
}

/* Log ratios of a side become terms of the loss, on all threads. */
typedef struct term_job {
    const n2_critic_options *o;
    double *f, shift;
    size_t n, side;
} term_job;

enum { TERMS = 1024 };

static void take_terms(void *arg, size_t item, int worker) {
    (void)worker;
    const term_job *job = arg;
    const size_t begin = item * TERMS, left = job->n - begin;
    const size_t end = begin + (left < TERMS ? left : TERMS);
    for (size_t i = begin; i < end; i++)
        job->f[i] = term(job->o, job->f[i] - job->shift, job->side);
}

static n2ce_status make_terms(const n2_check *v, size_t side, double *f, double shift) {
    term_job job = {v->o, f, shift, v->o->stages * v->n[side], side};
    return n2_parallel_for(v->c->ctx, (job.n + TERMS - 1) / TERMS, take_terms, &job);
}

/* ---- what the host does ---------------------------------------------------- */

static const char *tensor_name(const n2_check *v, size_t side, const char *what, char text[64]) {
    snprintf(text, 64, "%s.%s.%s", v->name, side ? "num" : "den", what);
    return text;
}

/* Memory for a side; between waymarks either side needs both rows of a pair. */
static n2ce_status add_side(n2_check *v, size_t side) {
    char name[64];
    n2ce_ctx *ctx = v->c->ctx;
    const size_t rows = v->o->stages * v->n[side];
    const size_t pairs = v->o->stages == 1 || v->n[side] > v->n[!side] ? v->n[side] : v->n[!side];
    v->rows[side] = n2_store_add(v->c->store, tensor_name(v, side, "rows", name),
                                 n2_dims((int64_t)pairs, (int64_t)v->c->d));
    v->base_f[side] = n2_alloc(ctx, rows, sizeof(double));
    v->base_terms[side] = n2_alloc(ctx, rows, sizeof(double));
    v->f[side] = n2_alloc(ctx, rows, sizeof(double));
    const bool all = v->rows[side] && v->base_f[side] && v->base_terms[side] && v->f[side];
    return all ? N2CE_OK : N2CE_ENOMEM;
}

n2ce_status n2_check_prepare(n2_check *v) {
    if (v->prepared) return N2CE_OK;
    count_rows(v);
    for (size_t s = 0; s < 2; s++) N2_TRY(add_side(v, s));
    N2_TRY(fill_rows(v));
    for (size_t s = 0; s < 2; s++) {
        memcpy(v->base_terms[s], v->base_f[s], v->o->stages * v->n[s] * sizeof(double));
        N2_TRY(make_terms(v, s, v->base_terms[s], 0));
    }
    v->prepared = true;
    return N2CE_OK;
}

/* ---- where the networks run ------------------------------------------------ */

/* The number of the stage of each row of a side, whose stages come one after the other. */
static n2_node stage_of_rows(n2_graph *g, const n2_check *v, size_t side) {
    const int64_t stages = (int64_t)v->o->stages, n = (int64_t)v->n[side];
    return n2g_row_index(g, stages * n, n, stages);
}

/* Rows of the waymarks of all stages on one side. */
static n2_node waymark_rows(n2_graph *g, const n2_check *v, size_t side) {
    const n2_waymark_tables *w = v->waymarks;
    const int64_t stages = (int64_t)v->o->stages, n = (int64_t)v->n[side];
    if (stages == 1) return n2_waymark_row(g, w, n2g_read(g, v->rows[side]));
    const n2_node pair = n2g_row_index(g, stages * n, 1, n);
    const n2_node num = n2g_gather(g, n2g_read(g, v->rows[1]), pair);
    const n2_node den = n2g_gather(g, n2g_read(g, v->rows[0]), pair);
    const n2_node stage = stage_of_rows(g, v, side);
    return n2_waymark_row(g, w, n2_waymark_mix(g, w, num, den, stage, (int64_t)side));
}

static n2ce_status assign_features(const n2_check *v, size_t side, n2_graph *g, n2_node features,
                                   n2_tensor **out) {
    char name[64];
    n2_plan *plan = NULL;
    N2_TRY(n2_graph_status(g));
    *out = n2_store_add_blank(v->c->store, tensor_name(v, side, "features", name),
                              n2_shape_at(g, features));
    if (!*out) return N2CE_ENOMEM;
    n2g_assign(g, *out, features);
    n2ce_status status = n2_plan_compile(g, v->c->backend, NULL, 0, &plan);
    if (status == N2CE_OK) status = n2_plan_run(plan);
    n2_plan_free(plan);
    return status;
}

/* Waymarks and distances do not change while the networks learn: they are computed here, once. */
static n2ce_status make_features(const n2_check *v, size_t side, n2_tensor **out) {
    *out = v->rows[side];
    if (!v->base && !v->c->centre && v->o->stages == 1) return N2CE_OK;
    n2_graph *g = n2_graph_new(v->c->store);
    if (!g) return N2CE_ENOMEM;
    const n2_node features = n2_critic_features(g, v->c, waymark_rows(g, v, side));
    const n2ce_status status = assign_features(v, side, g, features, out);
    n2_graph_free(g);
    return status;
}

n2ce_status n2_check_compile(n2_check *v, const n2_critic_nets *nets) {
    n2_tensor *features[2];
    n2_node out[2];
    if (v->plan) return N2CE_OK;
    for (size_t s = 0; s < 2; s++) N2_TRY(make_features(v, s, &features[s]));
    n2_graph *g = v->g = n2_graph_new(v->c->store);
    if (!g) return N2CE_ENOMEM;
    for (size_t s = 0; s < 2; s++) {
        const n2_node x = n2g_read(g, features[s]);
        out[s] = n2_critic_learned(g, v->c, nets, x, x, stage_of_rows(g, v, s));
    }
    return n2_plan_compile(g, v->c->backend, out, 2, &v->plan);
}

void n2_check_free(n2_check *v) {
    n2_plan_free(v->plan);
    n2_graph_free(v->g);
    for (size_t s = 0; s < 2; s++) {
        n2_free(v->c->ctx, v->base_f[s]);
        n2_free(v->c->ctx, v->base_terms[s]);
        n2_free(v->c->ctx, v->f[s]);
    }
}

/* ---- the verdict --------------------------------------------------------- */

/* DV and InfoNCE leave the additive constant open: take the best one first. */
static double free_constant(const n2_check *v) {
    const bool free = v->o->contrast == N2_CONTRAST_DV || v->o->contrast == N2_CONTRAST_INFONCE;
    if (!free) return 0;
    return n2_logsumexp(v->f[0], v->n[0]) - log((double)v->n[0]);
}

static n2ce_status evaluate(n2_check *v) {
    N2_TRY(n2_plan_run(v->plan));
    for (size_t s = 0; s < 2; s++) {
        n2_plan_get(v->plan, s, v->f[s]);
        for (size_t i = 0; i < v->o->stages * v->n[s]; i++) v->f[s][i] += v->base_f[s][i];
    }
    return N2CE_OK;
}

/* Of the log ratios in f, which become terms. */
static n2ce_status conclude(n2_check *v, n2_verdict *out) {
    *out = (n2_verdict){0, 0, 0};
    const double shift = free_constant(v);
    for (size_t s = 0; s < 2; s++) {
        const size_t pairs = v->n[s], stages = v->o->stages;
        double sum = 0, gain = 0, square = 0;
        N2_TRY(make_terms(v, s, v->f[s], shift));
        for (size_t i = 0; i < pairs; i++) { /* all stages of a pair are one observation */
            double change = 0;
            for (size_t k = 0; k < stages; k++) {
                const double value = v->f[s][k * pairs + i];
                change += v->base_terms[s][k * pairs + i] - value;
                sum += value;
            }
            gain += change / (double)stages;
            square += change * change / (double)(stages * stages);
        }
        const double n = (double)pairs;
        out->loss += sum / n / (double)stages;
        out->gain += gain / n;
        out->gain_var += (square / n - gain / n * gain / n) / n;
    }
    return isfinite(out->loss)
               ? N2CE_OK
               : n2_fail(v->c->ctx, N2CE_ENAN, "The validation loss is not finite.");
}

n2ce_status n2_check_run(n2_check *v, n2_verdict *out) {
    N2_TRY(evaluate(v));
    return conclude(v, out);
}

n2ce_status n2_check_base(n2_check *v, n2_verdict *out) {
    for (size_t s = 0; s < 2; s++)
        memcpy(v->f[s], v->base_f[s], v->o->stages * v->n[s] * sizeof(double));
    return conclude(v, out);
}
