/* Training: three phases, and a fourth if asked for. All that a phase knows is in tensors of
 * the store, so a checkpoint is the store and the number of the step. */
#include "base/clock.h"
#include "base/numerics.h"
#include "base/random.h"
#include "latent_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_EVERY = 25, SAVE_SECONDS = 20 };

void n2_latent_phases(const n2_latent *m, n2_phase out[N2_PHASES]) {
    const bool gaussian = m->o.prior == N2_LATENT_GAUSSIAN;
    const n2_phase all[N2_PHASES] = {{&m->train_value, m->o.value_steps, 0.5},
                                     {&m->train_code, m->o.code_steps, 0.2},
                                     {&m->train_prior, gaussian ? 0 : m->o.prior_steps, 0.2},
                                     {&m->train_joint, gaussian ? 0 : m->o.joint_steps, 0.1}};
    memcpy(out, all, sizeof all);
}

static size_t all_steps(const n2_latent *m) {
    n2_phase phases[N2_PHASES];
    size_t sum = 0;
    n2_latent_phases(m, phases);
    for (size_t i = 0; i < N2_PHASES; i++) sum += phases[i].steps;
    return sum;
}

/* ---- checkpoints --------------------------------------------------------- */

static float *progress_of(const n2_latent *m) { return m->progress->data; }

static n2ce_status save(const n2_latent *m, size_t which, size_t step) {
    if (!m->o.checkpoint) return N2CE_OK;
    progress_of(m)[0] = (float)which;
    progress_of(m)[1] = (float)step;
    return n2_checkpoint_save(m->store, m->train_value.plan, m->o.checkpoint);
}

/* The rows are in the checkpoint too: others than ours mean another file, or another seed. */
static n2ce_status resume(n2_latent *m, size_t *which, size_t *step) {
    *which = *step = 0;
    if (!m->o.checkpoint || !m->o.resume || access(m->o.checkpoint, F_OK) != 0) return N2CE_OK;
    const size_t n = (size_t)n2_elements(m->x->shape);
    float *x = n2_alloc(m->ctx, n, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    memcpy(x, m->x->data, n * sizeof *x);
    n2ce_status status = n2_checkpoint_load(m->store, m->train_value.plan, m->o.checkpoint);
    if (status == N2CE_OK && memcmp(x, m->x->data, n * sizeof *x) != 0)
        status = n2_fail(m->ctx, N2CE_EDATA,
                         "%s was made from other designs, or with another seed. Remove it, or "
                         "leave --resume out.",
                         m->o.checkpoint);
    n2_free(m->ctx, x);
    N2_TRY(status);
    *which = (size_t)progress_of(m)[0];
    *step = (size_t)progress_of(m)[1];
    m->record.resumed = true;
    return N2CE_OK;
}

/* ---- held-out rows ------------------------------------------------------- */

static n2ce_status copy(const n2_latent *m, n2_tensor *to, const n2_tensor *from) {
    N2_TRY(n2_tensor_pull(m->store, from));
    memcpy(to->data, from->data, (size_t)n2_elements(from->shape) * n2_store_bytes(m->store));
    n2_tensor_push(m->store, to);
    return N2CE_OK;
}

/* Parameters of a member, in the order of the list: weight, bias, weight, ... */
static n2ce_status move_member(n2_latent *m, size_t e, bool keep) {
    const size_t each = 2 * (size_t)m->value[e].n;
    for (size_t i = 0; i < each; i++) {
        const n2_layer *layer = &m->value[e].layers[i / 2];
        n2_tensor *average = i % 2 ? layer->bias : layer->weight, *kept = m->kept[e * each + i];
        N2_TRY(keep ? copy(m, kept, average) : copy(m, average, kept));
    }
    return N2CE_OK;
}

static n2ce_status check_members(n2_latent *m, size_t step) {
    float *best = m->best->data;
    N2_TRY(n2_plan_run(m->check.plan));
    for (size_t e = 0; e < m->o.members; e++) {
        const float miss = (float)n2_plan_scalar(m->check.plan, e);
        if (step > 0 && !(miss < best[2 * e])) continue;
        best[2 * e] = miss;
        best[2 * e + 1] = (float)step;
        N2_TRY(move_member(m, e, true));
    }
    return N2CE_OK;
}

/* What the value phase leaves: each member as it was when it was best. */
static n2ce_status end_value(n2_latent *m) {
    const float *best = m->best->data;
    double sum = 0;
    for (size_t e = 0; e < m->o.members; e++) {
        N2_TRY(move_member(m, e, false));
        sum += (double)best[2 * e];
        m->record.best_step[e] = (size_t)best[2 * e + 1];
    }
    m->record.r2 = 1 - sum / (double)m->o.members;
    return N2CE_OK;
}

/* ---- phases -------------------------------------------------------------- */

typedef struct run {
    n2_latent *m;
    size_t which, step, before, all; /* before: steps of earlier phases */
    double until, saved;
} run;

static size_t check_every(const n2_latent *m) {
    const size_t every = m->o.value_steps / 40;
    return every < LOOK_EVERY ? LOOK_EVERY : every / LOOK_EVERY * LOOK_EVERY;
}

static n2ce_status look_up(run *r, bool *stop) {
    n2_latent *m = r->m;
    n2_progress(m->ctx, (double)(r->before + r->step), (double)r->all);
    if (r->which == 0 && r->step % check_every(m) == 0) N2_TRY(check_members(m, r->step));
    if (n2_cancelled(m->ctx)) {
        N2_TRY(save(m, r->which, r->step));
        return N2CE_ECANCELED;
    }
    if (m->o.checkpoint && n2_seconds() - r->saved > SAVE_SECONDS) {
        N2_TRY(save(m, r->which, r->step));
        r->saved = n2_seconds();
    }
    *stop = r->until > 0 && n2_seconds() > r->until;
    if (*stop) m->record.out_of_time = true;
    return N2CE_OK;
}

static n2ce_status run_phase(run *r, const n2_phase *p) {
    n2_plan *plan = p->program->plan;
    bool stop = false;
    if (p->steps == 0) return N2CE_OK; /* and there may be no plan */
    if (r->which == 0 && r->step == 0) N2_TRY(check_members(r->m, 0));
    n2_plan_seed(plan, r->m->o.seed + 1000003 * (r->which + 1), (uint32_t)r->step);
    while (r->step < p->steps && !stop) {
        const size_t left = p->steps - r->step, n = left < LOOK_EVERY ? left : LOOK_EVERY;
        N2_TRY(n2_plan_run_many(plan, n));
        r->step += n;
        N2_TRY(look_up(r, &stop));
    }
    r->m->record.steps_done += r->step;
    return N2CE_OK;
}

static void note_losses(n2_latent *m, size_t which, const n2_phase *p) {
    if (p->steps == 0) return;
    const n2_plan *plan = p->program->plan;
    if (which == 1) {
        m->record.misfit = n2_plan_scalar(plan, 0);
        m->record.divergence = n2_plan_scalar(plan, 1);
    }
    if (which >= 2) m->record.prior_loss = n2_plan_scalar(plan, 0);
}

n2ce_status n2_latent_train(n2_latent *m) {
    n2_phase phases[N2_PHASES];
    run r = {.m = m, .all = all_steps(m), .saved = n2_seconds()};
    double share = 0;
    n2_latent_phases(m, phases);
    m->record.steps_all = r.all;
    N2_TRY(resume(m, &r.which, &r.step));
    const size_t first = r.which;
    for (size_t i = 0; i < N2_PHASES; i++) {
        share += phases[i].share;
        if (i >= first) {
            if (i > first) r.step = 0;
            r.which = i;
            r.until = m->o.seconds > 0 ? m->started + share * m->o.seconds : 0;
            N2_TRY(run_phase(&r, &phases[i]));
            note_losses(m, i, &phases[i]);
        }
        if (i == 0) N2_TRY(end_value(m));
        r.before += phases[i].steps;
    }
    return save(m, N2_PHASES, 0);
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
                               .ambition = 0.5};
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
    if (d->rows < FEWEST)
        return n2_fail(ctx, N2CE_EDATA,
                       "There are %zu designs; it takes at least %d to learn from.", d->rows,
                       FEWEST);
    for (size_t i = 0; i < d->rows; i++) {
        best = fmax(best, d->y[i]);
        worst = fmin(worst, d->y[i]);
    }
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
    m->progress = n2_store_add(m->store, "progress", n2_dims(2));
    if (!m->x || !m->y || !m->progress) return N2CE_ENOMEM;
    N2_TRY(shuffle(m->ctx, d->rows, m->o.seed, &order));
    for (size_t i = 0; i < d->rows; i++) {
        const size_t row = order[i];
        n2_latent_code_write(m->code, d->x + row * d->space.n, (float *)m->x->data + i * width);
        ((float *)m->y->data)[i] =
            (float)((n2_latent_bent(m, d->y[row]) - m->record.y_mean) / m->record.y_sd);
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
    r->misfit_ceiling = misfit[n - 1 - n / 100];
}

static n2ce_status look_at_designs(n2_latent *m) {
    const size_t n = m->designs->rows < 4096 ? m->designs->rows : 4096, e = m->o.members;
    N2_TRY(n2_tensor_pull(m->store, m->x));
    double *members = n2_alloc(m->ctx, n * (e + 2), sizeof *members);
    if (!members) return N2CE_ENOMEM;
    const n2_latent_words words = {
        .members = members, .log_prior = members + n * e, .misfit = members + n * (e + 1)};
    const n2ce_status status = n2_latent_say(m, m->x->data, n, &words);
    if (status == N2CE_OK) {
        m->record.doubt = fmax(spread_of(members, n, e), 1e-3);
        note_usual(&m->record, words.log_prior, words.misfit, n);
    }
    n2_free(m->ctx, members);
    return status;
}

/* One design with every column from another row. */
static void mix_columns(const n2_latent *m, size_t i, double *x) {
    const n2_designs *d = m->designs;
    const n2_stream draw = {m->o.seed, 78, (uint32_t)i};
    for (size_t j = 0; j < d->space.n; j++)
        x[j] = d->x[n2_random_below(draw, j, d->rows) * d->space.n + j];
}

/* How often the code cannot hold a design whose columns have nothing to do with one another: seldom
 * where that is so of all designs. */
static n2ce_status look_for_structure(n2_latent *m) {
    enum { SOME = 1024 };
    const size_t width = m->code->width;
    double *x = n2_alloc(m->ctx, m->designs->space.n + SOME, sizeof *x);
    float *rows = n2_alloc(m->ctx, SOME * width, sizeof *rows);
    n2ce_status status = x && rows ? N2CE_OK : N2CE_ENOMEM;
    double *misfit = x + m->designs->space.n;
    for (size_t i = 0; i < SOME && status == N2CE_OK; i++) {
        mix_columns(m, i, x);
        n2_latent_code_write(m->code, x, rows + i * width);
    }
    if (status == N2CE_OK)
        status = n2_latent_say(m, rows, SOME, &(n2_latent_words){.misfit = misfit});
    m->record.structure = 0;
    for (size_t i = 0; i < SOME && status == N2CE_OK; i++)
        m->record.structure += (double)(misfit[i] > m->record.misfit_ceiling) / SOME;
    n2_free(m->ctx, x);
    n2_free(m->ctx, rows);
    return status;
}

n2ce_status n2_latent_set_up(n2_latent *m) {
    N2_TRY(n2_store_new(m->ctx, sizeof(float), &m->store));
    N2_TRY(fill_rows(m));
    return n2_latent_build(m);
}

static n2ce_status fit(n2_latent *m) {
    N2_TRY(check_designs(m->ctx, m->designs, &m->record));
    N2_TRY(n2_latent_bend(m));
    N2_TRY(n2_latent_code_new(m->ctx, m->designs, &m->code));
    m->record.code_numbers = m->code->width;
    N2_TRY(n2_latent_settle(m));
    N2_TRY(n2_latent_set_up(m));
    N2_TRY(n2_latent_fit_lines(m));
    N2_TRY(m->o.trained ? n2_latent_take(m, m->o.trained) : n2_latent_train(m));
    N2_TRY(n2_latent_fit_forests(m));
    N2_TRY(look_at_designs(m));
    return look_for_structure(m);
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

void n2_latent_clear(n2_latent *m) {
    n2_program *const programs[] = {&m->train_value, &m->check,       &m->train_code,
                                    &m->train_prior, &m->train_joint, &m->appraise};
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) n2_program_free(programs[i]);
    if (m->store) n2_store_free(m->store);
    n2_latent_free_forests(m);
    n2_free(m->ctx, m->out);
}

void n2_latent_free(n2_latent *m) {
    if (!m) return;
    n2_latent_clear(m);
    n2_latent_code_free(m->code);
    n2_free(m->ctx, m);
}

const n2_latent_record *n2_latent_seen(const n2_latent *m) { return &m->record; }
