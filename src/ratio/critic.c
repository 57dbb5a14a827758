#include "critic.h"

#include "base/clock.h"
#include "base/numerics.h"
#include "base/random.h"
#include "model/ratio_net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { EVALUATE_ROWS = 1024 };

struct n2_critic {
    n2ce_ctx *ctx;
    size_t d, dx, stages;
    n2_store *store;
    n2_graph *evaluate;
    n2_plan *plan; /* of `evaluate` */
    n2_parameters parameters;
    n2_ratio_net net;
    n2_mlp phi, psi;                                          /* with dx */
    n2_tensor *centre, *whiten, *basis, *delta, *inverse_var; /* of the shape, or NULL */
    n2_tensor *rows, *stage;                                  /* what `evaluate` reads */
    double *out;                                              /* what it says */
};

/* ---- evaluation ---------------------------------------------------------- */

static void zero(const n2_critic *c, n2_tensor *t) {
    memset(t->data, 0, (size_t)n2_elements(t->shape) * n2_store_bytes(c->store));
}

static n2_tensor *table(n2_store *store, const char *name, size_t rows, size_t cols,
                        const double *values) {
    n2_tensor *tensor = n2_store_add(store, name, n2_dims((int64_t)rows, (int64_t)cols));
    if (tensor) n2_tensor_set(store, tensor, values);
    return tensor;
}

static n2ce_status make_shape_tables(n2_critic *c, const n2_gauss *shape) {
    const size_t d = c->d;
    if (!shape) return N2CE_OK;
    c->centre = table(c->store, "shape.centre", 1, d, shape->centre);
    c->whiten = table(c->store, "shape.whiten", d, d, shape->whiten);
    c->basis = table(c->store, "shape.basis", d, d, shape->basis);
    c->delta = table(c->store, "shape.delta", 1, d, shape->delta);
    c->inverse_var = table(c->store, "shape.lambda", 1, d, shape->lambda);
    if (!c->centre || !c->whiten || !c->basis || !c->delta || !c->inverse_var) return N2CE_ENOMEM;
    for (size_t i = 0; i < d; i++)
        ((float *)c->inverse_var->data)[i] = (float)(1 / shape->lambda[i]);
    return N2CE_OK;
}

/* ln(1 + mean of the squares) of columns first .. first + n - 1: a distance that heavy
 * tails do not blow up. */
static n2_node log_distance(n2_graph *g, n2_node squares, size_t first, size_t n) {
    const n2_node part = n2g_slice(g, squares, 1, (int64_t)first, (int64_t)n);
    return n2g_log(g, n2g_affine(g, n2g_sum(g, part, n2_axis(1)), 1 / (double)n, 1));
}

/* x and its distances from the Gaussians. */
static n2_node with_distances(n2_graph *g, const n2_critic *c, n2_node x) {
    if (!c->centre) return x;
    const n2_node away = n2g_sub(g, x, n2g_read(g, c->centre));
    const n2_node v = n2g_matmul(g, away, n2g_read(g, c->whiten), false, true);
    const n2_node u =
        n2g_sub(g, n2g_matmul(g, away, n2g_read(g, c->basis), false, true), n2g_read(g, c->delta));
    const n2_node from_den = n2g_mul(g, v, v);
    const n2_node from_num = n2g_mul(g, n2g_mul(g, u, u), n2g_read(g, c->inverse_var));
    x = n2g_concat(g, x, log_distance(g, from_num, 0, c->d), 1);
    x = n2g_concat(g, x, log_distance(g, from_den, 0, c->dx ? c->dx : c->d), 1);
    return c->dx ? n2g_concat(g, x, log_distance(g, from_den, c->dx, c->d - c->dx), 1) : x;
}

/* g(x, k) of rows x at stages k. */
static n2_node learned_part(n2_graph *g, const n2_critic *c, n2_node x, n2_node stage) {
    const n2_node joint = n2_ratio_net_apply(g, &c->net, with_distances(g, c, x), stage);
    if (!c->dx) return joint;
    const n2_node phi = n2_mlp_apply(g, &c->phi, n2g_slice(g, x, 1, 0, (int64_t)c->dx));
    const n2_node psi =
        n2_mlp_apply(g, &c->psi, n2g_slice(g, x, 1, (int64_t)c->dx, (int64_t)(c->d - c->dx)));
    return n2g_add(g, joint, n2g_sum(g, n2g_mul(g, phi, psi), n2_axis(1)));
}

static n2ce_status build_evaluation(n2_critic *c) {
    n2_graph *g = c->evaluate = n2_graph_new(c->store);
    c->rows = n2_store_add(c->store, "evaluate.rows", n2_dims(EVALUATE_ROWS, (int64_t)c->d));
    c->stage = n2_store_add(c->store, "evaluate.stage", n2_dims(EVALUATE_ROWS));
    c->out = n2_alloc(c->ctx, EVALUATE_ROWS, sizeof *c->out);
    if (!g || !c->rows || !c->stage || !c->out || c->parameters.failed) return N2CE_ENOMEM;
    const n2_node f = learned_part(g, c, n2g_read(g, c->rows), n2g_read(g, c->stage));
    return n2_plan_compile(g, n2_cpu_backend(), &f, 1, &c->plan);
}

static void make_networks(n2_critic *c, const n2_critic_options *o) {
    n2_parameters *p = &c->parameters;
    const int64_t d = (int64_t)c->d, dx = (int64_t)c->dx, width = (int64_t)o->width;
    const int64_t distances = !c->centre ? 0 : dx ? 3 : 2;
    *p = n2_parameters_new(c->store, o->seed);
    c->net = n2_ratio_net_new(p, d + distances, width, (int)o->blocks, (int64_t)o->stages);
    if (!dx) return;
    c->phi = n2_mlp_new(p, "phi", (int64_t[]){dx, width, width, width / 2}, 4, 0.2);
    c->psi = n2_mlp_new(p, "psi", (int64_t[]){d - dx, width, width, width / 2}, 4, 0.2);
}

static void zero_last(const n2_critic *c) {
    const n2_layer *const last[] = {&c->net.out,
                                    c->dx ? &c->psi.layers[c->psi.n - 1] : &c->net.out};
    for (size_t i = 0; i < 2; i++) {
        zero(c, last[i]->weight);
        zero(c, last[i]->bias);
    }
}

n2ce_status n2_critic_new(n2ce_ctx *ctx, size_t d, size_t dx, const n2_gauss *shape,
                          const n2_critic_options *o, n2_critic **out) {
    *out = NULL;
    n2_critic *c = n2_alloc(ctx, 1, sizeof *c);
    if (!c) return N2CE_ENOMEM;
    *c = (n2_critic){.ctx = ctx, .d = d, .dx = dx, .stages = o->stages};
    n2ce_status status = n2_store_new(ctx, sizeof(float), &c->store);
    if (status == N2CE_OK) status = make_shape_tables(c, shape);
    if (status == N2CE_OK) {
        make_networks(c, o);
        status = build_evaluation(c);
    }
    if (status == N2CE_OK) {
        zero_last(c); /* start from the base */
        *out = c;
    } else {
        n2_critic_free(c);
    }
    return status;
}

void n2_critic_free(n2_critic *c) {
    if (!c) return;
    n2_plan_free(c->plan);
    n2_graph_free(c->evaluate);
    n2_store_free(c->store);
    n2_free(c->ctx, c->out);
    n2_free(c->ctx, c);
}

n2_tensor *n2_critic_parameter(const n2_critic *c, size_t index) {
    return index < c->parameters.n ? c->parameters.list[index] : NULL;
}

/* Adds g(x, stage) of n rows to f. */
static n2ce_status add_stage(n2_critic *c, const double *x, size_t n, size_t stage, double *f) {
    float *rows = c->rows->data, *stages = c->stage->data;
    for (size_t i = 0; i < EVALUATE_ROWS; i++) stages[i] = (float)stage;
    for (size_t first = 0; first < n; first += EVALUATE_ROWS) {
        const size_t count = n - first < EVALUATE_ROWS ? n - first : EVALUATE_ROWS;
        for (size_t i = 0; i < count * c->d; i++) rows[i] = (float)x[first * c->d + i];
        memset(rows + count * c->d, 0, (EVALUATE_ROWS - count) * c->d * sizeof *rows);
        N2_TRY(n2_plan_run(c->plan));
        n2_plan_get(c->plan, 0, c->out);
        for (size_t i = 0; i < count; i++) f[first + i] += c->out[i];
    }
    return N2CE_OK;
}

n2ce_status n2_critic_add(n2_critic *c, const double *x, size_t n, double *f) {
    for (size_t k = 0; k < c->stages; k++) N2_TRY(add_stage(c, x, n, k, f));
    return N2CE_OK;
}

/* ---- rows ---------------------------------------------------------------- */

/* Rows that may be used: all but the held-out ones, the last seventh for validation. */
typedef struct row_set {
    n2_rows_view rows;
    size_t held, held_end, train, all; /* counts of usable rows */
} row_set;

static row_set usable(n2_rows_view rows, const size_t held[2]) {
    const size_t all = rows.n - (held[1] - held[0]), validate = all / 7 > 0 ? all / 7 : 0;
    return (row_set){rows, held[0], held[1], all - validate, all};
}

/* Usable row i: 0 .. train-1 to train on, train .. all-1 to validate. */
static const double *row_at(const row_set *s, size_t i) {
    return s->rows.x + (i < s->held ? i : i + s->held_end - s->held) * s->rows.d;
}

static n2_tensor *training_rows(n2_store *store, const char *name, const row_set *s, size_t first,
                                size_t d) {
    n2_tensor *t = n2_store_add(store, name, n2_dims((int64_t)s->train, (int64_t)d));
    if (!t) return NULL;
    float *out = t->data;
    for (size_t i = 0; i < s->train; i++)
        for (size_t j = 0; j < d; j++) *out++ = (float)row_at(s, i)[first + j];
    return t;
}

/* ---- the training step --------------------------------------------------- */

typedef struct trainer {
    n2_critic *c;
    const n2_critic_options *o;
    const n2_gauss *base;
    size_t dx;
    row_set num, den;
    n2_graph *g;
    n2_tensor *rows[3]; /* numerator; denominator; or, with dx, x and y of the numerator */
    n2_tensor *averages[N2_MOST_PARAMETERS];
    n2_tensor *keep, *mix, *rest, *a, *b, *c0, *basis, *centre; /* by waymark or stage */
} trainer;

/* Waymark k is keep[k] numerator + mix[k] denominator, as seen from the base's centre: so
 * means move straight from one sample's to the other's. */
static n2ce_status make_waymark_tables(trainer *t) {
    double keep[64], mix[64];
    const size_t n = t->o->stages + 1;
    for (size_t k = 0; k < n; k++) {
        mix[k] = t->o->alpha[k];
        keep[k] = sqrt((1 - mix[k]) * (1 + mix[k]));
    }
    t->keep = table(t->c->store, "waymark.keep", n, 1, keep);
    t->mix = table(t->c->store, "waymark.mix", n, 1, mix);
    for (size_t k = 0; k < n; k++) mix[k] = 1 - keep[k] - mix[k];
    t->rest = table(t->c->store, "waymark.rest", n, 1, mix);
    return t->keep && t->mix && t->rest ? N2CE_OK : N2CE_ENOMEM;
}

/* The base of stage k is the log ratio of waymarks k + 1 and k. */
static n2ce_status make_base_tables(trainer *t) {
    const size_t d = t->c->d, n = t->o->stages;
    if (!t->base) return N2CE_OK;
    double *a = n2_alloc(t->c->ctx, 2 * n * d, sizeof *a), *b = a + n * d, c[64];
    if (!a) return N2CE_ENOMEM;
    for (size_t k = 0; k < n; k++)
        n2_gauss_waymark_ratio(t->base, t->o->alpha[k + 1], t->o->alpha[k], a + k * d, b + k * d,
                               &c[k]);
    t->a = table(t->c->store, "base.a", n, d, a);
    t->b = table(t->c->store, "base.b", n, d, b);
    t->c0 = table(t->c->store, "base.c", n, 1, c);
    t->basis = table(t->c->store, "base.basis", d, d, t->base->basis);
    n2_free(t->c->ctx, a);
    return t->a && t->b && t->c0 && t->basis ? N2CE_OK : N2CE_ENOMEM;
}

static n2_node draw(trainer *t, int which, int64_t n) {
    const int64_t rows = t->rows[which]->shape.dim[0];
    n2_node pick = n2g_randint(t->g, n2_dims(n), rows);
    return n2g_gather(t->g, n2g_read(t->g, t->rows[which]), pick);
}

static n2_node draw_num(trainer *t, int64_t n) {
    if (!t->dx) return draw(t, 0, n);
    const n2_node pick = n2g_randint(t->g, n2_dims(n), t->rows[0]->shape.dim[0]);
    return n2g_concat(t->g, n2g_gather(t->g, n2g_read(t->g, t->rows[0]), pick),
                      n2g_gather(t->g, n2g_read(t->g, t->rows[1]), pick), 1);
}

/* x and y of different rows are a draw from the product of the margins. */
static n2_node draw_den(trainer *t, int64_t n) {
    if (!t->dx) return draw(t, 1, n);
    const n2_node x = draw(t, 0, n);
    return n2g_concat(t->g, x, draw(t, 1, n), 1);
}

/* n rows of a waymark for each stage: that of the stage's numerator (side 1) or of its
 * denominator (side 0). Rows come in blocks, one a stage. */
static n2_node draw_waymark(trainer *t, int64_t n, int64_t side, n2_node stage) {
    n2_graph *g = t->g;
    if (t->o->stages == 1) return side ? draw_num(t, n) : draw_den(t, n);
    const n2_node at = n2g_affine(g, stage, 1, (double)side);
    const n2_node keep = n2g_gather(g, n2g_read(g, t->keep), at);
    const n2_node mix = n2g_gather(g, n2g_read(g, t->mix), at);
    const n2_node num = n2g_mul(g, keep, draw_num(t, n));
    const n2_node x = n2g_add(g, num, n2g_mul(g, mix, draw_den(t, n)));
    if (!t->base) return x;
    const n2_node rest = n2g_gather(g, n2g_read(g, t->rest), at);
    return n2g_add(g, x, n2g_mul(g, rest, n2g_read(g, t->centre)));
}

static n2_node base_of(trainer *t, n2_node x, n2_node stage) {
    n2_graph *g = t->g;
    const bool one = t->o->stages == 1;
    const n2_node u = n2g_matmul(g, x, n2g_read(g, t->basis), false, true);
    n2_node a = n2g_read(g, t->a), b = n2g_read(g, t->b), c = n2g_read(g, t->c0);
    if (!one) {
        a = n2g_gather(g, a, stage);
        b = n2g_gather(g, b, stage);
        c = n2g_gather(g, c, stage);
    }
    const n2_node line = n2g_add(g, n2g_mul(g, a, u), b);
    return n2g_add(g, n2g_sum(g, n2g_mul(g, line, u), n2_axis(1)), c);
}

/* -mean f_num + ln mean exp f_den */
static n2_node dv_loss(n2_graph *g, n2_node f_num, n2_node f_den) {
    const double n = (double)n2_shape_at(g, f_den).dim[0];
    const n2_node lse =
        n2g_affine(g, n2g_total(g, n2g_logsumexp(g, f_den, N2_ALL_AXES)), 1, -log(n));
    return n2g_sub(g, lse, n2g_total(g, n2g_mean(g, f_num, N2_ALL_AXES)));
}

/* One numerator row among the batch's noise rows: mean ln(1 + e^(lse_den - f)). */
static n2_node infonce_loss(n2_graph *g, n2_node f_num, n2_node f_den) {
    const n2_node lse = n2g_total(g, n2g_logsumexp(g, f_den, N2_ALL_AXES));
    const n2_node miss = n2g_softplus(g, n2g_sub(g, lse, f_num));
    return n2g_total(g, n2g_mean(g, miss, N2_ALL_AXES));
}

static n2_node mean_of(n2_graph *g, n2_node x) { return n2g_total(g, n2g_mean(g, x, N2_ALL_AXES)); }

static n2_node contrast(trainer *t, n2_node f_num, n2_node f_den) {
    n2_graph *g = t->g;
    const double m = t->o->magnitude;
    switch (t->o->contrast) {
    case N2_CONTRAST_N2CE:
        return n2g_n2ce_loss(g, f_num, f_den, m);
    case N2_CONTRAST_SMILE: /* trained as a classifier, read with clipped logits */
        return n2g_n2ce_loss(g, f_num, f_den, 1);
    case N2_CONTRAST_NWJ:
        return n2g_sub(g, mean_of(g, n2g_exp(g, f_den)), mean_of(g, f_num));
    case N2_CONTRAST_NEG_REWEIGHT:
        return n2g_add(
            g, mean_of(g, n2g_softplus(g, n2g_neg(g, f_num))),
            n2g_scale(g, mean_of(g, n2g_softplus(g, n2g_affine(g, f_den, 1, -log(m)))), m));
    case N2_CONTRAST_DV:
        return dv_loss(g, f_num, f_den);
    case N2_CONTRAST_INFONCE:
        break;
    }
    return infonce_loss(g, f_num, f_den);
}

/* Log ratios of n rows a stage on one side; *g receives the learned part. */
static n2_node logits(trainer *t, int64_t rows, int64_t side, n2_node *learned) {
    n2_graph *g = t->g;
    const int64_t stages = (int64_t)t->o->stages;
    const n2_node stage = n2g_row_index(g, rows, rows / stages, stages);
    n2_node x = draw_waymark(t, rows, side, stage);
    *learned = learned_part(g, t->c, x, stage);
    if (!t->base) return *learned;
    x = n2g_sub(g, x, n2g_read(g, t->centre));
    return n2g_add(g, base_of(t, x, stage), *learned);
}

/* The average goes back over about this many steps' inverse. */
static const double AVERAGE_DECAY = 0.99;

static n2ce_status make_averages(trainer *t) {
    for (size_t i = 0; i < t->c->parameters.n; i++) {
        const n2_tensor *p = t->c->parameters.list[i];
        char name[128];
        snprintf(name, sizeof name, "average.%s", p->name);
        if (!(t->averages[i] = n2_store_add(t->c->store, name, p->shape))) return N2CE_ENOMEM;
        memcpy(t->averages[i]->data, p->data, (size_t)n2_elements(p->shape) * sizeof(float));
    }
    return N2CE_OK;
}

static n2ce_status build_step(trainer *t, n2_plan **plan) {
    n2_graph *g = t->g = n2_graph_new(t->c->store);
    if (!g) return N2CE_ENOMEM;
    const size_t stages = t->o->stages, batch = (t->o->batch + stages - 1) / stages * stages;
    n2_node g_num, g_den;
    const n2_node f_num = logits(t, (int64_t)batch, 1, &g_num);
    const n2_node f_den = logits(t, (int64_t)(batch * t->o->noise), 0, &g_den);
    n2_node loss = contrast(t, f_num, f_den);
    if (t->o->regularisation > 0) {
        const n2_node size =
            n2g_add(g, mean_of(g, n2g_mul(g, g_num, g_num)), mean_of(g, n2g_mul(g, g_den, g_den)));
        loss = n2g_add(g, loss, n2g_scale(g, size, t->o->regularisation));
    }
    const double steps = (double)t->o->steps;
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-8, t->o->decay},
                               .rate = t->o->rate,
                               .clip = 10,
                               .schedule = n2_schedule_cosine,
                               .schedule_arg = &steps};
    n2_minimise(g, &adam, "adam", &t->c->parameters, loss, NULL);
    for (size_t i = 0; i < t->c->parameters.n; i++)
        n2_average(g, t->averages[i], t->c->parameters.list[i], AVERAGE_DECAY);
    return n2_plan_compile(g, n2_cpu_backend(), &loss, 1, plan);
}

static n2ce_status load_rows(trainer *t) {
    n2_store *store = t->c->store;
    const size_t d = t->c->d, dx = t->dx;
    if (dx) {
        t->rows[0] = training_rows(store, "data.x", &t->num, 0, dx);
        t->rows[1] = training_rows(store, "data.y", &t->num, dx, d - dx);
    } else {
        t->rows[0] = training_rows(store, "data.num", &t->num, 0, d);
        t->rows[1] = training_rows(store, "data.den", &t->den, 0, d);
    }
    if (t->base) t->centre = table(t->c->store, "base.centre", 1, d, t->base->centre);
    return t->rows[0] && t->rows[1] && (!t->base || t->centre) ? N2CE_OK : N2CE_ENOMEM;
}

/* ---- validation ---------------------------------------------------------- */

/* Rows begin .. end-1 of a set. */
typedef struct row_range {
    row_set set;
    size_t begin, end;
} row_range;

/* Waymark rows of pairs that training does not see, the base's log ratio there, and the
 * whole one with the present parameters. */
typedef struct validation {
    row_range num, den;
    size_t n_num, n_den; /* rows a stage */
    double *x[2];        /* stages x n x d; 0: denominator, 1: numerator */
    double *base[2], *f[2];
} validation;

enum { VALIDATION_ROWS = 4096, VALIDATION_NOISE = 8 };

static const double *range_row(const row_range *r, size_t i) {
    return row_at(&r->set, r->begin + i % (r->end - r->begin));
}

/* Pair p of the rows. The denominator's row has nothing to do with the numerator's: with
 * dx it is the x of one later row and the y of another. */
static void pair(const trainer *t, const validation *v, size_t p, double *num, double *den) {
    const size_t d = t->c->d, round = p / (v->num.end - v->num.begin);
    memcpy(num, range_row(&v->num, p), d * sizeof *num);
    if (!t->dx) {
        memcpy(den, range_row(&v->den, p), d * sizeof *den);
        return;
    }
    const double *x = range_row(&v->num, p + 1 + 2 * round),
                 *y = range_row(&v->num, p + 2 + 3 * round);
    memcpy(den, x, t->dx * sizeof *den);
    memcpy(den + t->dx, y + t->dx, (d - t->dx) * sizeof *den);
}

static void fill_waymarks(const trainer *t, validation *v, size_t side, size_t n, double *scratch) {
    const size_t d = t->c->d;
    const double *centre = t->base ? t->base->centre : NULL;
    double *x = v->x[side];
    for (size_t k = 0; k < t->o->stages; k++) {
        const double mix = t->o->alpha[k + side], keep = sqrt((1 - mix) * (1 + mix));
        for (size_t i = 0; i < n; i++, x += d) {
            pair(t, v, i, scratch, scratch + d);
            for (size_t j = 0; j < d; j++)
                x[j] = keep * scratch[j] + mix * scratch[d + j] +
                       (centre ? (1 - keep - mix) * centre[j] : 0);
        }
    }
}

/* Base of every stage at its rows, in double. */
static n2ce_status fill_base(const trainer *t, size_t n, const double *x, double *base) {
    const size_t d = t->c->d;
    if (!t->base) return N2CE_OK;
    double *ab = n2_alloc(t->c->ctx, 2 * d, sizeof *ab), c;
    if (!ab) return N2CE_ENOMEM;
    n2ce_status status = N2CE_OK;
    for (size_t k = 0; k < t->o->stages && status == N2CE_OK; k++) {
        n2_gauss_waymark_ratio(t->base, t->o->alpha[k + 1], t->o->alpha[k], ab, ab + d, &c);
        status = n2_gauss_quadratic(t->base, ab, c, x + k * n * d, n, base + k * n);
    }
    n2_free(t->c->ctx, ab);
    return status;
}

static size_t rows_of(const validation *v, size_t side) { return side ? v->n_num : v->n_den; }

static void validation_free(n2ce_ctx *ctx, validation *v) {
    for (size_t s = 0; s < 2; s++) {
        n2_free(ctx, v->x[s]);
        n2_free(ctx, v->base[s]);
        n2_free(ctx, v->f[s]);
    }
}

static void count_rows(const trainer *t, validation *v) {
    const size_t n = v->num.end - v->num.begin, most = VALIDATION_ROWS / t->o->stages;
    const size_t m = t->dx ? n * (n > 1 ? n - 1 : 1) : v->den.end - v->den.begin;
    v->n_num = n < most ? n : most;
    v->n_den = m < VALIDATION_NOISE * v->n_num ? m : VALIDATION_NOISE * v->n_num;
}

/* num and den of *v are set. */
static n2ce_status validation_fill(const trainer *t, validation *v) {
    const size_t d = t->c->d, stages = t->o->stages;
    count_rows(t, v);
    double *scratch = n2_alloc(t->c->ctx, 2 * d, sizeof *scratch);
    n2ce_status status = scratch ? N2CE_OK : N2CE_ENOMEM;
    for (size_t s = 0; s < 2 && status == N2CE_OK; s++) {
        const size_t rows = stages * rows_of(v, s);
        v->x[s] = n2_alloc(t->c->ctx, rows * d, sizeof(double));
        v->base[s] = n2_alloc(t->c->ctx, rows, sizeof(double));
        v->f[s] = n2_alloc(t->c->ctx, rows, sizeof(double));
        status = v->x[s] && v->base[s] && v->f[s] ? N2CE_OK : N2CE_ENOMEM;
        if (status != N2CE_OK) break;
        fill_waymarks(t, v, s, rows_of(v, s), scratch);
        status = fill_base(t, rows_of(v, s), v->x[s], v->base[s]);
    }
    n2_free(t->c->ctx, scratch);
    return status;
}

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

/* DV and InfoNCE leave the additive constant open: take the best one first. */
static double free_constant(const trainer *t, const validation *v) {
    const bool free = t->o->contrast == N2_CONTRAST_DV || t->o->contrast == N2_CONTRAST_INFONCE;
    if (!free) return 0;
    return n2_logsumexp(v->f[0], v->n_den) - log((double)v->n_den);
}

static n2ce_status evaluate(const trainer *t, validation *v) {
    for (size_t s = 0; s < 2; s++) {
        const size_t n = rows_of(v, s);
        memcpy(v->f[s], v->base[s], t->o->stages * n * sizeof(double));
        for (size_t k = 0; k < t->o->stages; k++)
            N2_TRY(add_stage(t->c, v->x[s] + k * n * t->c->d, n, k, v->f[s] + k * n));
    }
    return N2CE_OK;
}

/* Loss with the present parameters, and by how much it is below the base's. */
typedef struct verdict {
    double loss, gain, gain_var;
} verdict;

static n2ce_status validate(const trainer *t, validation *v, verdict *out) {
    *out = (verdict){0, 0, 0};
    N2_TRY(evaluate(t, v));
    const double shift = free_constant(t, v);
    for (size_t s = 0; s < 2; s++) {
        const size_t pairs = rows_of(v, s), stages = t->o->stages;
        double sum = 0, gain = 0, square = 0;
        for (size_t i = 0; i < pairs; i++) { /* all stages of a pair are one observation */
            double change = 0;
            for (size_t k = 0; k < stages; k++) {
                const double value = term(t->o, v->f[s][k * pairs + i] - shift, s);
                change += term(t->o, v->base[s][k * pairs + i], s) - value;
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
               : n2_fail(t->c->ctx, N2CE_ENAN, "The validation loss is not finite.");
}

/* ---- training ------------------------------------------------------------ */

static size_t parameter_bytes(const n2_critic *c) {
    return (size_t)n2_parameters_count(&c->parameters) * sizeof(float);
}

static void copy_parameters(const n2_critic *c, float *saved, bool restore) {
    for (size_t i = 0; i < c->parameters.n; i++) {
        const n2_tensor *t = c->parameters.list[i];
        const size_t n = (size_t)n2_elements(t->shape);
        if (restore)
            memcpy(t->data, saved, n * sizeof *saved);
        else
            memcpy(saved, t->data, n * sizeof *saved);
        saved += n;
    }
}

enum { CHECKS = 40, PATIENCE = 8 };

/* Exchanges the parameters with their running averages, which are what is judged and
 * kept: they are less noisy than where the last step happened to lead. */
static void swap_averages(const trainer *t) {
    for (size_t i = 0; i < t->c->parameters.n; i++) {
        n2_tensor *p = t->c->parameters.list[i];
        float *a = p->data, *b = t->averages[i]->data;
        for (int64_t k = 0; k < n2_elements(p->shape); k++) {
            const float x = a[k];
            a[k] = b[k];
            b[k] = x;
        }
    }
}

/* Trains in rounds with a look at the validation rows after each. */
static n2ce_status run_steps(trainer *t, n2_plan *plan, validation *v, float *best,
                             n2_critic_progress *progress, void *user, n2_critic_record *r) {
    const size_t every = t->o->steps / CHECKS > 10 ? t->o->steps / CHECKS : 10;
    size_t since_best = 0;
    verdict now;
    N2_TRY(validate(t, v, &now));
    r->loss = r->base_loss = now.loss;
    copy_parameters(t->c, best, false);
    while (r->steps < t->o->steps && !r->stopped_early && !r->out_of_time) {
        N2_TRY(n2_plan_run(plan));
        r->steps++;
        if (n2_cancelled(t->c->ctx)) return N2CE_ECANCELED;
        r->out_of_time = t->o->deadline > 0 && n2_seconds() > t->o->deadline;
        if (r->steps % every && r->steps < t->o->steps && !r->out_of_time) continue;
        if (progress) progress(user, (double)r->steps / (double)t->o->steps);
        swap_averages(t);
        N2_TRY(validate(t, v, &now));
        since_best++;
        if (now.loss < r->loss) {
            r->loss = now.loss;
            copy_parameters(t->c, best, false);
            since_best = 0;
        }
        swap_averages(t);
        r->stopped_early = since_best >= PATIENCE;
    }
    return N2CE_OK;
}

/* Goes back to the best parameters and asks the held-out rows what they are worth. */
static n2ce_status appraise(trainer *t, const n2_contrast_data *data, float *best,
                            n2_critic_record *r) {
    copy_parameters(t->c, best, true);
    validation held = {.num = {{.rows = data->num}, data->held[0][0], data->held[0][1]},
                       .den = {{.rows = data->den}, data->held[1][0], data->held[1][1]}};
    verdict v = {0, 0, 0};
    n2ce_status status = validation_fill(t, &held);
    if (status == N2CE_OK) status = validate(t, &held, &v);
    r->gain = v.gain;
    r->gain_error = sqrt(v.gain_var);
    validation_free(t->c->ctx, &held);
    return status;
}

static n2ce_status train(trainer *t, const n2_contrast_data *data, n2_critic_progress *progress,
                         void *user, n2_critic_record *record) {
    validation v = {.num = {t->num, t->num.train, t->num.all},
                    .den = {t->den, t->den.train, t->den.all}};
    n2_plan *plan = NULL;
    float *best = n2_alloc(t->c->ctx, parameter_bytes(t->c), 1);
    n2ce_status status = best ? make_waymark_tables(t) : N2CE_ENOMEM;
    if (status == N2CE_OK) status = make_base_tables(t);
    if (status == N2CE_OK) status = load_rows(t);
    if (status == N2CE_OK) status = make_averages(t);
    if (status == N2CE_OK) status = build_step(t, &plan);
    if (status == N2CE_OK) status = validation_fill(t, &v);
    if (status == N2CE_OK) {
        n2_plan_seed(plan, t->o->seed, 0);
        status = run_steps(t, plan, &v, best, progress, user, record);
    }
    if (status == N2CE_OK) status = appraise(t, data, best, record);
    n2_plan_free(plan);
    n2_graph_free(t->g);
    validation_free(t->c->ctx, &v);
    n2_free(t->c->ctx, best);
    return status;
}

n2ce_status n2_critic_train(n2ce_ctx *ctx, const n2_contrast_data *data, const n2_gauss *base,
                            const n2_gauss *shape, const n2_critic_options *o,
                            n2_critic_progress *progress, void *user, n2_critic **out,
                            n2_critic_record *record) {
    *record = (n2_critic_record){0};
    N2_TRY(n2_critic_new(ctx, data->num.d, data->dx, shape, o, out));
    trainer t = {.c = *out, .o = o, .base = base, .dx = data->dx};
    t.num = usable(data->num, data->held[0]);
    if (!data->dx) t.den = usable(data->den, data->held[1]);
    const n2ce_status status = train(&t, data, progress, user, record);
    if (status != N2CE_OK) {
        n2_critic_free(*out);
        *out = NULL;
    }
    return status;
}
