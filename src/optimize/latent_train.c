/* Training: three phases, and a fourth if asked for, by the trainer; and fitting as a whole. */
#include "base/clock.h"
#include "base/numerics.h"
#include "base/random.h"
#include "latent_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE, CODE, PRIOR, JOINT, PHASES };

/* ---- held-out rows ------------------------------------------------------- */

static uint64_t check_every(const n2_latent *m) {
    enum { CHECKS = 40, STEP = 25 };
    const uint64_t every = m->o.value_steps / CHECKS;
    return every < STEP ? STEP : every / STEP * STEP;
}

/* Squared errors of the members on their folds. A last round that is not whole is not judged. */
static n2ce_status check_members(void *user, uint64_t step, double *losses) {
    n2_latent *m = user;
    if (!m->check.plan) N2_TRY(n2_latent_build_check(m));
    const bool whole = step % check_every(m) == 0;
    if (whole) N2_TRY(n2_plan_run(m->check.plan));
    for (size_t e = 0; e < m->o.members; e++)
        losses[e] = whole ? n2_plan_scalar(m->check.plan, e) : N2_INFINITY;
    return N2CE_OK;
}

/* ---- phases -------------------------------------------------------------- */

static n2ce_status note_backend(void *user, const n2_backend *backend) {
    ((n2_latent *)user)->backend = backend;
    return N2CE_OK;
}

/* The rows are in the checkpoint too: others than ours mean another file, or another seed. */
static n2ce_status compare_rows(void *user) {
    n2_latent *m = user;
    m->record.resumed = true;
    const size_t bytes = (size_t)n2_elements(m->x->shape) * sizeof(float);
    if (memcmp(m->x_given, m->x->data, bytes) == 0) return N2CE_OK;
    return n2_fail(m->ctx, N2CE_EDATA,
                   "%s was made from other designs, or with another seed. Remove it, or "
                   "leave --resume out.",
                   m->o.checkpoint);
}

static void plan_phases(const n2_latent *m, n2_phase phases[PHASES]) {
    const n2_latent_options *o = &m->o;
    const bool gaussian = o->prior == N2_LATENT_GAUSSIAN || o->value_only;
    const double until[PHASES] = {0.5, 0.7, 0.9, 1}; /* shares of the time */
    phases[VALUE] = (n2_phase){.build = n2_latent_value_step,
                               .steps = o->value_steps,
                               .parameters = &m->value_parameters,
                               .members = o->members,
                               .average = 0.98,
                               .check = check_members,
                               .check_every = check_every(m)};
    phases[CODE] =
        (n2_phase){.build = n2_latent_code_step, .steps = o->value_only ? 0 : o->code_steps};
    phases[PRIOR] =
        (n2_phase){.build = n2_latent_prior_step, .steps = gaussian ? 0 : o->prior_steps};
    phases[JOINT] =
        (n2_phase){.build = n2_latent_joint_step, .steps = gaussian ? 0 : o->joint_steps};
    for (size_t i = 0; i < PHASES; i++) {
        phases[i].seed = o->seed + 1000003 * (i + 1);
        phases[i].deadline = o->seconds > 0 ? m->started + until[i] * o->seconds : 0;
    }
}

static void note_training(n2_latent *m, const n2_phase *phases, const n2_phase_record *r) {
    n2_latent_record *record = &m->record;
    double sum = 0;
    for (size_t i = 0; i < PHASES; i++) {
        record->steps_all += phases[i].steps;
        record->steps_done += r[i].steps;
        record->out_of_time |= r[i].out_of_time;
    }
    for (size_t e = 0; e < m->o.members; e++) {
        sum += r[VALUE].loss[e];
        record->best_step[e] = r[VALUE].best[e];
    }
    record->r2 = 1 - sum / (double)m->o.members;
    record->misfit = r[CODE].output[0];
    record->divergence = r[CODE].output[1];
    record->prior_loss = r[phases[JOINT].steps ? JOINT : PRIOR].output[0];
}

/* A trial is a part of a run, whose progress is told. */
static void stay_silent(void *user, double done, double total) {
    (void)user;
    (void)done;
    (void)total;
}

n2ce_status n2_latent_train(n2_latent *m) {
    n2_phase phases[PHASES];
    n2_phase_record records[PHASES];
    const size_t n = (size_t)n2_elements(m->x->shape);
    const n2_trainer t = {.store = m->store,
                          .user = m,
                          .phases = phases,
                          .n_phases = PHASES,
                          .ready = note_backend,
                          .checkpoint = m->o.checkpoint,
                          .resume = m->o.resume,
                          .identity = m->o.identity,
                          .resumed = compare_rows,
                          .progress = m->o.value_only ? stay_silent : NULL,
                          .choice = m->o.choice};
    plan_phases(m, phases);
    m->x_given = n2_alloc(m->ctx, n, sizeof *m->x_given);
    if (!m->x_given) return N2CE_ENOMEM;
    memcpy(m->x_given, m->x->data, n * sizeof *m->x_given);
    const n2ce_status status = n2_train(&t, records);
    n2_free(m->ctx, m->x_given);
    if (status == N2CE_OK) note_training(m, phases, records);
    return status == N2CE_OK ? n2_latent_build_appraise(m) : status;
}

/* ---- fitting ------------------------------------------------------------- */

n2_latent_options n2_latent_defaults(void) {
    return (n2_latent_options){.magnitude = 100,
                               .stages = 6,
                               .members = 5,
                               .width = 256,
                               .latent = 20,
                               .code_width = 256,
                               .ratio_width = 96,
                               .blocks = 3,
                               .batch = 128,
                               .noise = 4,
                               .value_steps = 3000,
                               .code_steps = 4000,
                               .prior_steps = 3000,
                               .divergence_weight = 0.05,
                               .rounds = 64,
                               .moves = 12,
                               .ambition = (double)NAN};
}

n2_latent_options n2_latent_paper(void) {
    n2_latent_options o = n2_latent_defaults();
    o.ratio_width = 128;
    o.blocks = 16;
    o.noise = 100;
    o.code_steps = 10000;
    o.prior_steps = 20000;
    o.joint_steps = 10000;
    return o;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static n2ce_status check_designs(n2ce_ctx *ctx, const n2_designs *d, n2_latent_record *r) {
    enum { FEWEST = 8 };
    double best = -N2_INFINITY, worst = N2_INFINITY;
    n2_tally tally = {0};
    if (d->rows < FEWEST)
        return n2_fail(ctx, N2CE_EDATA,
                       "There are %zu designs; it takes at least %d to learn from.", d->rows,
                       FEWEST);
    for (size_t i = 0; i < d->rows; i++) {
        best = fmax(best, d->y[i]);
        worst = fmin(worst, d->y[i]);
        n2_tally_add(&tally, d->y[i]);
    }
    r->y_sd = n2_tally_spread(&tally);
    r->y_best = best;
    r->rows = d->rows;
    if (best - worst > 1e-12 * fabs(best)) return N2CE_OK;
    return n2_fail(ctx, N2CE_EDATA,
                   "All %zu designs have the same value; there is nothing to learn.", d->rows);
}

/* Rows in a random order, so that a fold is a block. */
static n2ce_status shuffle(n2ce_ctx *ctx, size_t n, uint64_t seed, size_t **out) {
    size_t *order = *out = n2_alloc(ctx, n, sizeof *order);
    if (!order) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) order[i] = i;
    for (size_t i = n; i > 1; i--) {
        const size_t j = n2_random_below((n2_stream){seed, 77, 0}, i, i), kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
    return N2CE_OK;
}

static n2ce_status fill_rows(n2_latent *m) {
    const n2_designs *d = m->designs;
    const size_t width = m->code->width;
    size_t *order;
    m->x = n2_store_add(m->store, "x", n2_dims((int64_t)d->rows, (int64_t)width));
    m->y = n2_store_add(m->store, "y", n2_dims((int64_t)d->rows, 1));
    if (!m->x || !m->y) return N2CE_ENOMEM;
    N2_TRY(shuffle(m->ctx, d->rows, m->o.seed, &order));
    for (size_t i = 0; i < d->rows; i++) {
        const size_t row = order[i];
        n2_latent_code_write(m->code, d->x + row * d->space.n, (float *)m->x->data + i * width);
        ((float *)m->y->data)[i] = (float)n2_latent_scaled(m, d->y[row]);
    }
    n2_free(m->ctx, order);
    return N2CE_OK;
}

/* The members' spread over designs: root of the mean variance. */
static double spread_of(const double *members, size_t n, size_t e) {
    double spread = 0;
    for (size_t i = 0; i < n; i++) {
        double sum = 0, square = 0;
        for (size_t k = 0; k < e; k++) sum += members[i * e + k] / (double)e;
        for (size_t k = 0; k < e; k++) square += pow(members[i * e + k] - sum, 2) / (double)e;
        spread += square / (double)n;
    }
    return sqrt(spread);
}

/* What is usual among designs, and what is still plausible. */
static void note_usual(n2_latent_record *r, double *prior, double *misfit, size_t n) {
    qsort(prior, n, sizeof *prior, by_value);
    qsort(misfit, n, sizeof *misfit, by_value);
    r->prior_median = prior[n / 2];
    r->prior_floor = prior[n / 100] - (prior[n / 2] - prior[n / 100]);
    r->misfit_median = misfit[n / 2];
    r->misfit_ceiling = misfit[n - 1 - n / 100];
}

enum { MOST_LOOKED_AT = 4096 };

static n2ce_status look_at_values(n2_latent *m) {
    const size_t rows = m->designs->rows, n = rows < MOST_LOOKED_AT ? rows : MOST_LOOKED_AT;
    const size_t e = m->o.members;
    double *members = n2_alloc(m->ctx, n * e, sizeof *members);
    if (!members) return N2CE_ENOMEM;
    const n2ce_status status =
        n2_latent_say(m, m->x->data, n, &(n2_latent_words){.members = members});
    if (status == N2CE_OK) m->record.doubt = fmax(spread_of(members, n, e), 1e-3);
    n2_free(m->ctx, members);
    return status;
}

/* Of rows that the code has not seen: it holds those it has seen better than any others. */
static n2ce_status look_at_codes(n2_latent *m) {
    const size_t held = n2_latent_uncoded(m), n = held < MOST_LOOKED_AT ? held : MOST_LOOKED_AT;
    const float *rows = (const float *)m->x->data + (m->designs->rows - n) * m->code->width;
    double *prior = n2_alloc(m->ctx, 2 * n, sizeof *prior);
    if (!prior) return N2CE_ENOMEM;
    const n2ce_status status =
        n2_latent_say(m, rows, n, &(n2_latent_words){.log_prior = prior, .misfit = prior + n});
    if (status == N2CE_OK) note_usual(&m->record, prior, prior + n, n);
    n2_free(m->ctx, prior);
    return status;
}

/* The i-th of some designs; `room` is for two numbers a column. */
typedef void make_design(const n2_latent *m, size_t i, float *room, double *x);

/* Every column is from another row. */
static void mix_columns(const n2_latent *m, size_t i, float *room, double *x) {
    const n2_designs *d = m->designs;
    (void)room;
    const n2_stream draw = {m->o.seed, 78, (uint32_t)i};
    for (size_t j = 0; j < d->space.n; j++)
        x[j] = d->x[n2_random_below(draw, j, d->rows) * d->space.n + j];
}

/* By chance within the bounds. */
static void scatter(const n2_latent *m, size_t i, float *room, double *x) {
    n2_fill_uniform((n2_stream){m->o.seed, 82, (uint32_t)i}, 0, 2 * m->designs->space.n, room);
    n2_latent_code_scatter(m->code, false, room, x);
    if (m->o.rules) n2_design_rules_apply(m->o.rules, x);
}

/* How often the code cannot hold such designs. */
static n2ce_status count_strange(n2_latent *m, make_design *make, double *share) {
    enum { SOME = 1024 };
    const size_t width = m->code->width, columns = m->designs->space.n;
    double *x = n2_alloc(m->ctx, columns + SOME, sizeof *x), *misfit = x + columns;
    float *rows = n2_alloc(m->ctx, SOME * width + 2 * columns, sizeof *rows);
    n2ce_status status = x && rows ? N2CE_OK : N2CE_ENOMEM;
    for (size_t i = 0; i < SOME && status == N2CE_OK; i++) {
        make(m, i, rows + SOME * width, x);
        n2_latent_code_write(m->code, x, rows + i * width);
    }
    if (status == N2CE_OK)
        status = n2_latent_say(m, rows, SOME, &(n2_latent_words){.misfit = misfit});
    *share = 0;
    for (size_t i = 0; i < SOME && status == N2CE_OK; i++)
        *share += (double)(misfit[i] > m->record.misfit_ceiling) / SOME;
    n2_free(m->ctx, x);
    n2_free(m->ctx, rows);
    return status;
}

/* Seldom, where columns have nothing to do with one another, and where designs fill the bounds. */
static n2ce_status look_for_structure(n2_latent *m) {
    N2_TRY(count_strange(m, mix_columns, &m->record.structure));
    return count_strange(m, scatter, &m->record.narrow);
}

/* There are no steps to be timed: where a GPU may do, the processor does. */
static n2ce_status take_trained(n2_latent *m) {
    if (!n2_choice_is_timed(m->o.choice))
        N2_TRY(n2_choice_settle(m->o.choice, m->ctx, 0, NULL, NULL));
    m->backend = n2_choice_backend(m->o.choice);
    N2_TRY(n2_latent_build_appraise(m));
    return n2_latent_take(m, m->o.trained);
}

static n2ce_status fit(n2_latent *m) {
    N2_TRY(check_designs(m->ctx, m->designs, &m->record));
    N2_TRY(n2_latent_code_new(m->ctx, m->designs, &m->code));
    N2_TRY(n2_latent_choose_scale(m));
    m->record.code_numbers = m->code->width;
    N2_TRY(n2_store_new(m->ctx, sizeof(float), &m->store));
    N2_TRY(fill_rows(m));
    N2_TRY(n2_latent_make_networks(m));
    N2_TRY(n2_latent_fit_lines(m));
    N2_TRY(m->o.trained ? take_trained(m) : n2_latent_train(m));
    m->record.network_r2 = m->record.r2;
    N2_TRY(n2_latent_fit_forests(m));
    N2_TRY(n2_latent_fit_process(m));
    N2_TRY(n2_tensor_pull(m->store, m->x));
    N2_TRY(look_at_values(m));
    if (m->o.value_only) return N2CE_OK;
    N2_TRY(look_at_codes(m));
    N2_TRY(look_for_structure(m));
    N2_TRY(n2_latent_fit_needs(m));
    if (!m->o.trained) N2_TRY(n2_latent_try(m)); /* otherwise trials are in the file */
    return n2_latent_learn_from_trials(m);
}

n2ce_status n2_latent_fit(n2ce_ctx *ctx, const n2_designs *designs, const n2_latent_options *o,
                          n2_latent **out) {
    *out = NULL;
    n2_latent *m = n2_alloc(ctx, 1, sizeof *m);
    if (!m) return N2CE_ENOMEM;
    *m = (n2_latent){.ctx = ctx, .designs = designs, .o = *o, .started = n2_seconds()};
    if (m->o.prior == N2_LATENT_MLE) m->o.stages = 1;
    const n2ce_status status = fit(m);
    if (status == N2CE_OK)
        *out = m;
    else
        n2_latent_free(m);
    return status;
}

void n2_latent_free(n2_latent *m) {
    if (!m) return;
    n2_latent_plan_free(&m->check);
    n2_latent_plan_free(&m->appraise);
    n2_store_free(m->store);
    n2_latent_free_forests(m);
    n2_gauss_process_free(m->process);
    n2_latent_free_needs(m);
    n2_free(m->ctx, m->out);
    n2_latent_code_free(m->code);
    n2_free(m->ctx, m);
}

const n2_latent_record *n2_latent_seen(const n2_latent *m) { return &m->record; }
