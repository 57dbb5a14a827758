/* Training a critic: a step is one graph, batches are drawn inside it; every so often the running
 * averages of the parameters are judged, and the best of them kept. */
#include "critic_parts.h"
#include "train/train.h"

#include <math.h>

/* ---- the training step --------------------------------------------------- */

static n2_row_set usable(n2_rows_view rows, const size_t held[2]) {
    const size_t all = rows.n - (held[1] - held[0]), validate = all / 7 > 0 ? all / 7 : 0;
    return (n2_row_set){rows, held[0], held[1], all - validate, all};
}

typedef struct learner {
    n2_critic *c;
    const n2_critic_options *o;
    const n2_gauss *base;
    size_t dx;
    n2_row_set num, den;
    n2_graph *g;        /* that is being built */
    n2_tensor *rows[2]; /* numerator; denominator; or, with dx, x and y of the numerator */
    n2_waymark_tables waymarks;
    /* Of the base, by stage; no b of a joint sample, where it is 0. */
    n2_tensor *a, *b, *c0, *basis;
    n2_check validation, held;
    const n2_critic_listener *listener;
    n2_critic_record *record;
} learner;

/* Columns first .. first + d - 1 of the rows to train on, as floats seen from the base's centre. */
typedef struct rows_view {
    const n2_row_set *set;
    const double *centre; /* or NULL */
    size_t first, d;
} rows_view;

static void write_rows(void *arg, size_t first, size_t n, void *out) {
    const rows_view *v = arg;
    for (size_t i = 0; i < n; i++)
        n2_seen_from(v->centre, n2_row_at(v->set, first + i) + v->first, v->d,
                     (float *)out + i * v->d);
}

static n2ce_status fill_rows(const learner *t, n2_tensor *rows, const n2_row_set *set,
                             size_t first) {
    const double *centre = t->base ? t->base->centre + first : NULL;
    rows_view v = {set, centre, first, (size_t)rows->shape.dim[1]};
    return n2_tensor_fill(t->c->store, rows, write_rows, &v);
}

/* When it is known where they go. */
static n2ce_status fill_all_rows(void *user, const n2_backend *backend) {
    learner *t = user;
    t->c->backend = backend;
    N2_TRY(fill_rows(t, t->rows[0], &t->num, 0));
    return t->dx ? fill_rows(t, t->rows[1], &t->num, t->dx) : fill_rows(t, t->rows[1], &t->den, 0);
}

static n2ce_status make_waymark_tables(learner *t) {
    double keep[64] = {0}, mix[64] = {0};
    const size_t n = t->o->stages + 1, d = t->c->d;
    for (size_t k = 0; k < n; k++) {
        mix[k] = t->o->alpha[k];
        keep[k] = sqrt((1 - mix[k]) * (1 + mix[k]));
    }
    n2_waymark_tables *w = &t->waymarks;
    w->keep = n2_critic_table(t->c->store, "waymark.keep", n, 1, keep);
    w->mix = n2_critic_table(t->c->store, "waymark.mix", n, 1, mix);
    if (t->base) w->centre = n2_critic_table(t->c->store, "base.centre", 1, d, t->base->centre);
    return w->keep && w->mix && (!t->base || w->centre) ? N2CE_OK : N2CE_ENOMEM;
}

/* The base of stage k is the log ratio of waymarks k + 1 and k. */
static n2ce_status make_base_tables(learner *t) {
    const size_t d = t->c->d, n = t->o->stages;
    if (!t->base) return N2CE_OK;
    double *a = n2_alloc(t->c->ctx, 2 * n * d, sizeof *a), *b = a + n * d, c[64];
    if (!a) return N2CE_ENOMEM;
    for (size_t k = 0; k < n; k++)
        n2_gauss_waymark_ratio(t->base, t->o->alpha[k + 1], t->o->alpha[k], a + k * d, b + k * d,
                               &c[k]);
    t->a = n2_critic_table(t->c->store, "base.a", n, d, a);
    if (!t->base->dx) t->b = n2_critic_table(t->c->store, "base.b", n, d, b);
    t->c0 = n2_critic_table(t->c->store, "base.c", n, 1, c);
    t->basis = n2_critic_table(t->c->store, "base.basis", d, d, t->base->basis);
    n2_free(t->c->ctx, a);
    return t->a && (t->b || t->base->dx) && t->c0 && t->basis ? N2CE_OK : N2CE_ENOMEM;
}

static n2_node draw(learner *t, int which, int64_t n) {
    const int64_t rows = t->rows[which]->shape.dim[0];
    n2_node pick = n2g_randint(t->g, n2_dims(n), rows);
    return n2g_gather(t->g, n2g_read(t->g, t->rows[which]), pick);
}

static n2_node draw_num(learner *t, int64_t n) {
    if (!t->dx) return draw(t, 0, n);
    const n2_node pick = n2g_randint(t->g, n2_dims(n), t->rows[0]->shape.dim[0]);
    return n2g_concat(t->g, n2g_gather(t->g, n2g_read(t->g, t->rows[0]), pick),
                      n2g_gather(t->g, n2g_read(t->g, t->rows[1]), pick), 1);
}

/* x and y of different rows are a draw from the product of the margins. */
static n2_node draw_den(learner *t, int64_t n) {
    if (!t->dx) return draw(t, 1, n);
    const n2_node x = draw(t, 0, n);
    return n2g_concat(t->g, x, draw(t, 1, n), 1);
}

/* n rows of a waymark for each stage: that of the stage's numerator (side 1) or of its
 * denominator (side 0). Rows come in blocks, one a stage. */
static n2_node draw_waymark(learner *t, int64_t n, int64_t side, n2_node stage) {
    if (t->o->stages == 1) return side ? draw_num(t, n) : draw_den(t, n);
    const n2_node num = draw_num(t, n);
    return n2_waymark_mix(t->g, &t->waymarks, num, draw_den(t, n), stage, side);
}

static n2_node of_stage(learner *t, n2_tensor *table, n2_node stage) {
    const n2_node all = n2g_read(t->g, table);
    return t->o->stages == 1 ? all : n2g_gather(t->g, all, stage);
}

static n2_node base_of(learner *t, n2_node x, n2_node stage) {
    n2_graph *g = t->g;
    const n2_node u = n2g_matmul(g, x, n2g_read(g, t->basis), false, true);
    n2_node line = n2g_mul(g, of_stage(t, t->a, stage), u);
    if (t->b) line = n2g_add(g, line, of_stage(t, t->b, stage));
    const n2_node sum = n2g_sum(g, n2g_mul(g, line, u), n2_axis(1));
    return n2g_add(g, sum, of_stage(t, t->c0, stage));
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

static n2_node contrast(learner *t, n2_node f_num, n2_node f_den) {
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
static n2_node logits(learner *t, int64_t rows, int64_t side, n2_node *learned) {
    n2_graph *g = t->g;
    const int64_t stages = (int64_t)t->o->stages;
    const n2_node stage = n2g_row_index(g, rows, rows / stages, stages);
    const n2_node away = draw_waymark(t, rows, side, stage);
    const n2_node x = n2_waymark_row(g, &t->waymarks, away);
    *learned = n2_critic_learned(g, t->c, &t->c->nets, x, n2_critic_features(g, t->c, x), stage);
    return t->base ? n2g_add(g, base_of(t, away, stage), *learned) : *learned;
}

/* The networks with the averages in the place of their parameters: they are what is judged and
 * kept, being less noisy than where the last step happened to lead. */
static n2ce_status averaged(const learner *t, n2_critic_nets *out) {
    n2_store *store = t->c->store;
    const n2_critic_nets *nets = &t->c->nets;
    *out = *nets;
    out->net.join = n2_averaged_layer(store, nets->net.join);
    out->net.out = n2_averaged_layer(store, nets->net.out);
    N2_TRY(n2_averaged_layers(store, nets->net.blocks, nets->net.n_blocks, &out->net.blocks));
    N2_TRY(n2_averaged_mlp(store, &nets->net.stage, &out->net.stage));
    N2_TRY(n2_averaged_mlp(store, &nets->net.input, &out->net.input));
    N2_TRY(n2_averaged_mlp(store, &nets->phi, &out->phi));
    return n2_averaged_mlp(store, &nets->psi, &out->psi);
}

static n2ce_status build_step(void *user, n2_graph *g, n2_outputs *out) {
    learner *t = user;
    t->g = g;
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
    n2_output(out, loss);
    return N2CE_OK;
}

static n2_tensor *add_rows(const learner *t, const char *name, const n2_row_set *s, size_t d) {
    return n2_store_add_blank(t->c->store, name, n2_dims((int64_t)s->train, (int64_t)d));
}

static n2ce_status add_all_rows(learner *t) {
    const size_t d = t->c->d, dx = t->dx;
    t->rows[0] = add_rows(t, dx ? "data.x" : "data.num", &t->num, dx ? dx : d);
    t->rows[1] = add_rows(t, dx ? "data.y" : "data.den", dx ? &t->num : &t->den, d - dx);
    return t->rows[0] && t->rows[1] ? N2CE_OK : N2CE_ENOMEM;
}

static void learner_free(learner *t) {
    n2_check_free(&t->validation);
    n2_check_free(&t->held);
    n2_critic_free(t->c);
}

static n2_check new_check(const learner *t, const char *name, n2_row_range num, n2_row_range den) {
    return (n2_check){.name = name,
                      .c = t->c,
                      .o = t->o,
                      .base = t->base,
                      .waymarks = &t->waymarks,
                      .num = num,
                      .den = den};
}

/* Has a critic of its own, which goes with it: rows, moments and averages are of no use later. */
static n2ce_status learner_new(n2ce_ctx *ctx, const n2_contrast_data *data, const n2_gauss *base,
                               const n2_gauss *shape, const n2_critic_options *o, learner *t) {
    *t = (learner){.o = o, .base = base, .dx = data->dx};
    N2_TRY(n2_critic_new(ctx, data->num.d, data->dx, shape, o, &t->c));
    t->num = usable(data->num, data->held[0]);
    if (!data->dx) t->den = usable(data->den, data->held[1]);
    t->validation = new_check(t, "validation", (n2_row_range){t->num, t->num.train, t->num.all},
                              (n2_row_range){t->den, t->den.train, t->den.all});
    t->held = new_check(t, "held",
                        (n2_row_range){{.rows = data->num}, data->held[0][0], data->held[0][1]},
                        (n2_row_range){{.rows = data->den}, data->held[1][0], data->held[1][1]});
    n2ce_status status = make_waymark_tables(t);
    if (status == N2CE_OK) status = make_base_tables(t);
    if (status == N2CE_OK) status = add_all_rows(t);
    if (status != N2CE_OK) learner_free(t);
    return status;
}

/* ---- training ------------------------------------------------------------ */

/* What the host has to do for checks, while a device works: first what is needed first. What they
 * have to do on the device itself comes after the steps that it was asked for. */
static n2ce_status use_the_time(void *user) {
    learner *t = user;
    const bool first = !t->validation.prepared;
    if (!first && !t->c->backend->device) return N2CE_OK;
    n2_check *check = first ? &t->validation : &t->held;
    n2_critic_nets nets = t->c->nets;
    if (first) N2_TRY(averaged(t, &nets));
    N2_TRY(n2_check_prepare(check));
    return n2_check_compile(check, &nets);
}

static void note_loss(n2_critic_record *r, uint64_t step, double loss) {
    n2_learning_curve *c = &r->curve;
    if (step == 0) r->base_loss = loss;
    if (c->n == N2_MOST_LOOKS) return;
    c->step[c->n] = (double)step;
    c->loss[c->n++] = loss;
}

/* Networks begin at 0: what they are worth then is known without them. */
static n2ce_status judge(void *user, uint64_t step, double *loss) {
    learner *t = user;
    n2_verdict v;
    N2_TRY(step ? n2_check_run(&t->validation, &v) : n2_check_base(&t->validation, &v));
    note_loss(t->record, step, v.loss);
    *loss = v.loss;
    return N2CE_OK;
}

static void tell(void *user, double done, double total) {
    const n2_critic_listener *listener = user;
    if (listener->progress) listener->progress(listener->user, done / total);
}

static n2ce_status run_steps(learner *t) {
    enum { CHECKS = 40, LEAST = 10, PATIENCE = 8 };
    const size_t every = t->o->steps / CHECKS;
    const n2_phase phase = {.build = build_step,
                            .steps = t->o->steps,
                            .seed = t->o->seed,
                            .parameters = &t->c->parameters,
                            .average = 0.99,
                            .check = judge,
                            .check_every = every > LEAST ? every : LEAST,
                            .check_later = true,
                            .patience = PATIENCE,
                            .deadline = t->o->deadline};
    const n2_trainer trainer = {.store = t->c->store,
                                .user = t,
                                .phases = &phase,
                                .n_phases = 1,
                                .ready = fill_all_rows,
                                .meanwhile = use_the_time,
                                .progress = tell,
                                .progress_user = (void *)(uintptr_t)t->listener,
                                .choice = t->o->choice};
    n2_phase_record r;
    N2_TRY(n2_train(&trainer, &r));
    t->record->steps = r.steps;
    t->record->best_step = r.best[0];
    t->record->loss = r.loss[0];
    t->record->stopped_early = r.stopped_early;
    t->record->out_of_time = r.out_of_time;
    return N2CE_OK;
}

/* Asks the held-out rows what the best parameters are worth. */
static n2ce_status appraise(learner *t) {
    n2_verdict v = {0, 0, 0};
    N2_TRY(n2_check_prepare(&t->held));
    N2_TRY(n2_check_compile(&t->held, &t->c->nets));
    N2_TRY(n2_check_run(&t->held, &v));
    t->record->gain = v.gain;
    t->record->gain_error = sqrt(v.gain_var);
    return N2CE_OK;
}

n2ce_status n2_critic_train(n2ce_ctx *ctx, const n2_contrast_data *data, const n2_gauss *base,
                            const n2_gauss *shape, const n2_critic_options *o,
                            const n2_critic_listener *listener, n2_critic **out,
                            n2_critic_record *record) {
    learner t;
    *out = NULL;
    *record = (n2_critic_record){0};
    N2_TRY(learner_new(ctx, data, base, shape, o, &t));
    t.listener = listener;
    t.record = record;
    n2ce_status status = run_steps(&t);
    if (status == N2CE_OK) status = appraise(&t);
    if (status == N2CE_OK) status = n2_critic_copy(t.c, shape, o, out);
    learner_free(&t);
    return status;
}
