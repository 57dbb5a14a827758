/* What networks are worth: their loss on rows that training does not see, and by how much it is
 * below that of the base alone. */
#include "critic_parts.h"

#include "base/numerics.h"
#include "base/pool.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ROWS = 4096, NOISE = 8 };

/* ---- waymark rows -------------------------------------------------------- */

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

typedef struct waymark_job {
    const n2_check *v;
    size_t side;
    float *rows;  /* stages x n x d */
    double *work; /* without a base: a row for each worker */
} waymark_job;

/* Coordinates [begin, end) of a waymark, all in double. */
static void mix_rows(const double *num, const double *den, const double *centre, double mix,
                     size_t begin, size_t end, double *x) {
    const double keep = sqrt((1 - mix) * (1 + mix)), rest = 1 - keep - mix;
    for (size_t j = begin; j < end; j++)
        x[j] = keep * num[j] + mix * den[j] + (centre ? rest * centre[j] : 0);
}

/* Row i of a stage, for the base as it is and for the networks as floats. */
static void waymark_row(void *arg, size_t stage, size_t i, double *x) {
    const waymark_job *job = arg;
    const n2_check *v = job->v;
    const size_t d = v->c->d, dx = v->c->dx;
    const double mix = v->o->alpha[stage + job->side];
    const double *centre = v->base ? v->base->centre : NULL;
    const row_pair p = pair_at(v, i);
    mix_rows(p.num, p.x, centre, mix, 0, dx, x);
    mix_rows(p.num, p.y, centre, mix, dx, d, x);
    float *row = job->rows + (stage * v->n[job->side] + i) * d;
    for (size_t j = 0; j < d; j++) row[j] = (float)x[j];
}

static void waymark_item(void *arg, size_t item, int worker) {
    const waymark_job *job = arg;
    const size_t stages = job->v->o->stages;
    waymark_row(arg, item % stages, item / stages, job->work + (size_t)worker * job->v->c->d);
}

/* Rows of every stage, and their base. */
static n2ce_status fill_rows(const n2_check *v, size_t side, n2_tensor *t) {
    n2ce_ctx *ctx = v->c->ctx;
    const size_t n = v->n[side], stages = v->o->stages;
    waymark_job job = {v, side, t->data, NULL};
    n2_tensor_push(v->c->store, t);
    if (v->base)
        return n2_gauss_stages(v->base, v->o->alpha, stages, n, waymark_row, &job, v->base_f[side]);
    job.work = n2_alloc(ctx, (size_t)n2_ctx_threads(ctx) * v->c->d, sizeof *job.work);
    if (!job.work) return N2CE_ENOMEM;
    const n2ce_status status = n2_parallel_for(ctx, n * stages, waymark_item, &job);
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

/* ---- where the networks run ---------------------------------------------- */

static n2_tensor *add_tensor(const n2_check *v, const char *name, size_t side, const char *what,
                             size_t rows, int64_t cols) {
    char text[64];
    snprintf(text, sizeof text, "%s.%s.%s", name, side ? "num" : "den", what);
    return n2_store_add(v->c->store, text, n2_dims((int64_t)rows, cols));
}

/* Distances do not change while the networks learn: they are computed here, once. */
static n2ce_status make_features(const n2_check *v, n2_tensor *x, const char *name, size_t side,
                                 n2_tensor **out) {
    n2_plan *plan = NULL;
    *out = x;
    if (!v->c->centre) return N2CE_OK;
    n2_graph *g = n2_graph_new(v->c->store);
    if (!g) return N2CE_ENOMEM;
    const n2_node features = n2_critic_features(g, v->c, n2g_read(g, x));
    n2ce_status status = n2_graph_status(g);
    if (status == N2CE_OK) {
        const n2_shape shape = n2_shape_at(g, features);
        *out = add_tensor(v, name, side, "features", (size_t)shape.dim[0], shape.dim[1]);
        status = *out ? N2CE_OK : N2CE_ENOMEM;
    }
    if (status == N2CE_OK) {
        n2g_assign(g, *out, features);
        status = n2_plan_compile(g, v->c->backend, NULL, 0, &plan);
    }
    if (status == N2CE_OK) status = n2_plan_run(plan);
    n2_plan_free(plan);
    n2_graph_free(g);
    return status;
}

/* One side's rows as a tensor; their base. */
static n2ce_status make_side(n2_check *v, const char *name, size_t side, n2_tensor **out) {
    n2ce_ctx *ctx = v->c->ctx;
    const size_t d = v->c->d, rows = v->o->stages * v->n[side];
    n2_tensor *t = add_tensor(v, name, side, "rows", rows, (int64_t)d);
    v->base_f[side] = n2_alloc(ctx, rows, sizeof(double));
    v->base_terms[side] = n2_alloc(ctx, rows, sizeof(double));
    v->f[side] = n2_alloc(ctx, rows, sizeof(double));
    if (!t || !v->base_f[side] || !v->base_terms[side] || !v->f[side]) return N2CE_ENOMEM;
    N2_TRY(fill_rows(v, side, t));
    memcpy(v->base_terms[side], v->base_f[side], rows * sizeof(double));
    N2_TRY(make_terms(v, side, v->base_terms[side], 0));
    return make_features(v, t, name, side, out);
}

n2ce_status n2_check_new(n2_check *v, const n2_critic_nets *nets, const char *name) {
    n2_tensor *rows[2];
    n2_node out[2];
    count_rows(v);
    for (size_t s = 0; s < 2; s++) N2_TRY(make_side(v, name, s, &rows[s]));
    n2_graph *g = v->g = n2_graph_new(v->c->store);
    if (!g) return N2CE_ENOMEM;
    for (size_t s = 0; s < 2; s++) {
        const int64_t stages = (int64_t)v->o->stages, n = (int64_t)v->n[s];
        const n2_node x = n2g_read(g, rows[s]);
        out[s] = n2_critic_learned(g, v->c, nets, x, x, n2g_row_index(g, stages * n, n, stages));
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

n2ce_status n2_check_run(n2_check *v, n2_verdict *out) {
    *out = (n2_verdict){0, 0, 0};
    N2_TRY(evaluate(v));
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
