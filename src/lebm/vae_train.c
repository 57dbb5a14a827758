/* Models, and the phases of their training. */
#include "base/clock.h"
#include "base/numerics.h"
#include "prior_fit.h"
#include "rewrite/rewrites.h"
#include "train/train.h"
#include "vae_pictures.h"

#include <stdio.h>
#include <string.h>

const char *const n2_lebm_phase_names[N2_LEBM_PHASES] = {"vae", "prior", "joint", "settle"};

/* ---- models ---- */

n2ce_status n2_lebm_new(n2ce_ctx *ctx, const n2_lebm_spec *spec, uint64_t seed, n2_lebm **out) {
    n2_lebm *m = n2_alloc(ctx, 1, sizeof *m);
    *out = NULL;
    if (!m) return N2CE_ENOMEM;
    m->ctx = ctx;
    m->backend = n2_choice_backend(NULL);
    n2ce_status status = n2_store_new(ctx, sizeof(float), &m->store);
    if (status == N2CE_OK) status = n2_lebm_nets_new(m->store, spec, seed, &m->nets);
    if (status == N2CE_OK)
        *out = m;
    else
        n2_lebm_free(m);
    return status;
}

void n2_lebm_free(n2_lebm *m) {
    if (!m) return;
    n2_store_free(m->store);
    n2_free(m->ctx, m);
}

n2ce_status n2_lebm_take_vae(n2_lebm *to, const n2_lebm *from) {
    const n2_parameters *a = &from->nets.vae, *b = &to->nets.vae;
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = n2_same_shape(a->list[i]->shape, b->list[i]->shape);
    if (!same) return n2_fail(to->ctx, N2CE_EINVAL, "The two models have networks of other sizes.");
    for (size_t i = 0; i < a->n; i++) {
        N2_TRY(n2_tensor_pull(from->store, a->list[i]));
        memcpy(b->list[i]->data, a->list[i]->data, n2_tensor_bytes(to->store, b->list[i]));
        n2_tensor_push(to->store, b->list[i]);
    }
    return N2CE_OK;
}

n2_lebm_schedule n2_lebm_schedule_for(const n2_lebm_spec *spec) {
    const bool cifar = strcmp(spec->net->name, "cifar") == 0;
    const bool mle = spec->prior.kind == N2_PRIOR_MLE;
    const double rate = 2e-4;
    return (n2_lebm_schedule){.steps = {10000, 10000, 5000, 3000},
                              .batch = 128,
                              .weight = {cifar ? 100 : 1, 0, cifar ? 2 : 5, 0},
                              .vae_rate = rate,
                              .joint_rate = rate,
                              .prior_rate = mle ? rate / 10 : rate,
                              .joint_prior_rate = mle ? rate / 10 : rate,
                              .flips = spec->net->channels == 3};
}

/* ---- a training ---- */

enum { LOOK_ROWS = 256, LOOK_NUMBERS = 4 + N2_PRIOR_STAGES_MAX, MARK_NUMBERS = 4 };

typedef struct training {
    n2_lebm *m;
    const n2_lebm_run *run;
    const n2_images *pictures;
    n2_phase phases[N2_LEBM_PHASES];
    n2_tensor *x, *codes; /* all pictures; posteriors of them and, with flips, of mirror images */
    n2_tensor *history;   /* looks, as numbers */
    n2_tensor *mark;      /* of pictures and schedule: a checkpoint of others has another */
    float given[MARK_NUMBERS];
    n2_graph *look_graph;
    n2_plan *look;
    bool resumed;
} training;

static bool has_prior(const training *t) { return t->m->nets.spec.prior.kind != N2_PRIOR_GAUSSIAN; }

static int64_t rows_of(const n2_tensor *t) { return t->shape.dim[0]; }

/* ---- steps ---- */

static n2_optimiser optimiser(double beta1, double rate, const uint64_t *steps, double *arg) {
    *arg = (double)*steps;
    return (n2_optimiser){.adam = {beta1, 0.999, 1e-8, 0},
                          .rate = rate,
                          .clip = 100,
                          .loss_scale = beta1 < 0.9 ? N2_HALF_LOSS_SCALE : 0,
                          .schedule = n2_schedule_cosine,
                          .schedule_arg = arg};
}

static n2_lebm_batch draw_batch(const training *t, n2_graph *g) {
    const n2_lebm_nets *nets = &t->m->nets;
    const int64_t n = t->run->schedule.batch;
    const n2_node pick = n2g_randint(g, n2_dims(n), rows_of(t->x));
    const n2_node coin = t->run->schedule.flips ? n2g_randint(g, n2_dims(n), 2) : N2_NONE;
    const n2_node eps = n2g_randn(g, n2_dims(n, nets->spec.nz));
    n2_lebm_batch b;
    n2_lebm_encode(g, &b, &nets->encoder, n2_lebm_pick(g, nets->spec.net, t->x, pick, coin), eps);
    return b;
}

static void output_bound(n2_outputs *out, const n2_lebm_bound *b) {
    n2_output(out, b->misfit);
    n2_output(out, b->divergence);
    n2_output(out, b->ratio);
}

static n2ce_status vae_step(void *user, n2_graph *g, n2_outputs *out) {
    const training *t = user;
    const n2_lebm_schedule *s = &t->run->schedule;
    n2_lebm_nets *nets = &t->m->nets;
    n2_lebm_bound bound;
    double steps;
    const n2_optimiser o = optimiser(0.5, s->vae_rate, &s->steps[N2_LEBM_VAE], &steps);
    const n2_lebm_batch b = draw_batch(t, g);
    n2_lebm_bound_of(g, &bound, &nets->decoder, NULL, &b, s->weight[N2_LEBM_VAE]);
    n2_minimise(g, &o, "vae.adam", &nets->vae, bound.loss, NULL);
    output_bound(out, &bound);
    return N2CE_OK;
}

static n2ce_status learn_prior(const training *t, n2_lebm_phase phase, const char *adam,
                               n2_graph *g, n2_outputs *out) {
    const n2_lebm_schedule *s = &t->run->schedule;
    n2_prior *prior = &t->m->nets.prior;
    const int64_t n = s->batch, nz = prior->nz;
    double steps;
    const n2_optimiser o = optimiser(0.9, s->prior_rate, &s->steps[phase], &steps);
    const n2_node pick = n2g_randint(g, n2_dims(n), rows_of(t->codes));
    const n2_node rows = n2g_gather(g, n2g_read(g, t->codes), pick);
    const n2_node eps = n2g_randn(g, n2_dims(n, nz));
    const n2_node z =
        n2g_reparameterise(g, n2g_slice(g, rows, 1, 0, nz), n2g_slice(g, rows, 1, nz, nz), eps);
    const n2_node loss = n2_prior_loss(g, prior, z);
    n2_minimise(g, &o, adam, &prior->parameters, loss, NULL);
    n2_output(out, loss);
    return N2CE_OK;
}

static n2ce_status prior_step(void *user, n2_graph *g, n2_outputs *out) {
    return learn_prior(user, N2_LEBM_PRIOR, "prior.adam", g, out);
}

static n2ce_status settle_step(void *user, n2_graph *g, n2_outputs *out) {
    return learn_prior(user, N2_LEBM_SETTLE, "settle.adam", g, out);
}

static n2ce_status joint_step(void *user, n2_graph *g, n2_outputs *out) {
    const training *t = user;
    const n2_lebm_schedule *s = &t->run->schedule;
    n2_lebm_nets *nets = &t->m->nets;
    const uint64_t *steps = &s->steps[N2_LEBM_JOINT];
    n2_lebm_bound bound;
    double for_vae, for_prior;
    const n2_optimiser vae = optimiser(0.5, s->joint_rate, steps, &for_vae);
    const n2_optimiser prior = optimiser(0.9, s->joint_prior_rate, steps, &for_prior);
    const n2_lebm_batch b = draw_batch(t, g);
    const n2_node loss = n2_prior_loss(g, &nets->prior, b.z);
    n2_minimise(g, &prior, "joint.prior", &nets->prior.parameters, loss, NULL);
    n2_lebm_bound_of(g, &bound, &nets->decoder, &nets->prior, &b, s->weight[N2_LEBM_JOINT]);
    n2_minimise(g, &vae, "joint.vae", &nets->vae, bound.loss, NULL);
    n2_output(out, loss);
    output_bound(out, &bound);
    return N2CE_OK;
}

/* ---- looks ---- */

/* Of pictures at equal steps, the same every time, and the same draws of their codes. */
static n2ce_status build_look(training *t) {
    const n2_lebm_nets *nets = &t->m->nets;
    n2_graph *g = t->look_graph = n2_graph_new(t->m->store);
    if (!g) return N2CE_ENOMEM;
    const int64_t n = rows_of(t->x) < LOOK_ROWS ? rows_of(t->x) : LOOK_ROWS;
    const n2_node index = n2g_affine(g, n2g_row_index(g, n, 1, n), (double)(rows_of(t->x) / n), 0);
    const n2_node x = n2_lebm_pick(g, nets->spec.net, t->x, index, N2_NONE);
    n2_lebm_batch b;
    n2_lebm_bound bound;
    n2_lebm_encode(g, &b, &nets->encoder, x, n2g_randn(g, n2_dims(n, nets->spec.nz)));
    n2_lebm_bound_of(g, &bound, &nets->decoder, NULL, &b, 1);
    n2_node outputs[] = {bound.misfit, bound.divergence, N2_NONE};
    if (has_prior(t))
        outputs[2] =
            n2_ratio_means(g, &nets->prior.net, n2_prior_standardise(g, &nets->prior, b.z));
    return n2_plan_compile(g, t->m->backend, outputs, has_prior(t) ? 3 : 2, &t->look);
}

static void tell(const training *t, const n2_lebm_look *look) {
    const int64_t stages = has_prior(t) ? t->m->nets.spec.prior.stages : 0;
    char ratios[32 * N2_PRIOR_STAGES_MAX] = "";
    for (int64_t k = 0; k < stages && look->phase > N2_LEBM_VAE; k++) {
        const size_t at = strlen(ratios);
        snprintf(ratios + at, sizeof ratios - at, "%s%.2f", k ? " + " : ", f ", look->ratio[k]);
    }
    n2_log(t->m->ctx, N2CE_LOG_INFO, "%s %llu of %llu: misfit %.2f, divergence %.2f nats%s",
           n2_lebm_phase_names[look->phase], (unsigned long long)look->step,
           (unsigned long long)t->phases[look->phase].steps, look->misfit, look->divergence,
           ratios);
}

/* A row of the history: is there, phase, step, misfit, divergence, ratios. */
static n2ce_status look_now(training *t, n2_lebm_look *look) {
    if (!t->look) N2_TRY(build_look(t));
    n2_plan_seed(t->look, t->run->schedule.seed, 0);
    N2_TRY(n2_plan_run(t->look));
    look->misfit = n2_plan_scalar(t->look, 0);
    look->divergence = n2_plan_scalar(t->look, 1);
    if (has_prior(t)) n2_plan_get(t->look, 2, look->ratio);
    if (!t->run->quiet) tell(t, look);
    return N2CE_OK;
}

static n2ce_status look_at(training *t, n2_lebm_phase phase, uint64_t step) {
    n2_lebm_look look = {.phase = phase, .step = step};
    N2_TRY(look_now(t, &look));
    const uint64_t every = t->phases[phase].renew_every;
    const size_t row = (size_t)phase * (N2_LEBM_LOOKS + 2) + (size_t)((step + every - 1) / every);
    float *to = (float *)t->history->data + row * LOOK_NUMBERS;
    to[0] = 1;
    to[1] = (float)step;
    to[2] = (float)look.misfit;
    to[3] = (float)look.divergence;
    for (size_t k = 0; k < N2_PRIOR_STAGES_MAX; k++) to[4 + k] = (float)look.ratio[k];
    return N2CE_OK;
}

static void note_looks(const training *t, n2_lebm_record *record) {
    for (size_t row = 0; row < N2_LEBM_LOOKS_MAX; row++) {
        const float *from = (float *)t->history->data + row * LOOK_NUMBERS;
        if (from[0] < 1) continue;
        n2_lebm_look *look = &record->look[record->looks++];
        *look = (n2_lebm_look){.phase = (n2_lebm_phase)(row / (N2_LEBM_LOOKS + 2)),
                               .step = (uint64_t)from[1],
                               .misfit = (double)from[2],
                               .divergence = (double)from[3]};
        for (size_t k = 0; k < N2_PRIOR_STAGES_MAX; k++) look->ratio[k] = (double)from[4 + k];
    }
}

/* ---- codes ---- */

static n2ce_status code_all(training *t) {
    const size_t half = t->pictures->n * 2 * (size_t)t->m->nets.spec.nz;
    if (!t->codes) return N2CE_OK;
    N2_TRY(n2_lebm_codes(t->m, t->pictures, false, t->codes->data));
    if (t->run->schedule.flips)
        N2_TRY(n2_lebm_codes(t->m, t->pictures, true, (float *)t->codes->data + half));
    n2_tensor_push(t->m->store, t->codes);
    return N2CE_OK;
}

static n2ce_status fit_base(n2_lebm *m, const float *codes, size_t n) {
    n2_code_mixture fit;
    N2_TRY(n2_code_gaussian_fit(m->ctx, codes, n, (size_t)m->nets.spec.nz, &fit));
    const n2ce_status status = n2_prior_set_base(m->store, &m->nets.prior, fit.mean, fit.factor);
    n2_code_mixture_free(m->ctx, &fit);
    return status;
}

/* Pictures at equal steps. */
static n2ce_status some_pictures(const training *t, n2_images **out) {
    enum { MOST = 10000 };
    const size_t all = t->pictures->n, n = all < MOST ? all : MOST;
    size_t *numbers = n2_alloc(t->m->ctx, n, sizeof *numbers);
    if (!numbers) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) numbers[i] = i * all / n;
    const n2ce_status status = n2_images_pick(t->pictures, numbers, n, out);
    n2_free(t->m->ctx, numbers);
    return status;
}

/* Codes move in the joint phase, and the base with them: else f would have to learn again what a
 * Gaussian can say. */
static n2ce_status follow_codes(const training *t) {
    n2_lebm *m = t->m;
    const bool flips = t->run->schedule.flips;
    n2_images *some;
    N2_TRY(some_pictures(t, &some));
    const size_t half = some->n * 2 * (size_t)m->nets.spec.nz, n = some->n;
    float *codes = n2_alloc(m->ctx, 2 * half, sizeof *codes);
    n2ce_status status = codes ? n2_lebm_codes(m, some, false, codes) : N2CE_ENOMEM;
    if (status == N2CE_OK && flips) status = n2_lebm_codes(m, some, true, codes + half);
    if (status == N2CE_OK) status = fit_base(m, codes, flips ? 2 * n : n);
    n2_free(m->ctx, codes);
    n2_images_free(some);
    return status;
}

static n2ce_status renew_vae(void *user, uint64_t step) { return look_at(user, N2_LEBM_VAE, step); }

static n2ce_status look_at_prior(training *t, n2_lebm_phase phase, uint64_t step) {
    if (step == 0) N2_TRY(code_all(t));
    if (step == 0 && t->m->nets.spec.prior.fitted)
        N2_TRY(fit_base(t->m, t->codes->data, (size_t)rows_of(t->codes)));
    return look_at(t, phase, step);
}

static n2ce_status renew_prior(void *user, uint64_t step) {
    return look_at_prior(user, N2_LEBM_PRIOR, step);
}

static n2ce_status renew_settle(void *user, uint64_t step) {
    return look_at_prior(user, N2_LEBM_SETTLE, step);
}

static n2ce_status renew_joint(void *user, uint64_t step) {
    training *t = user;
    if (step > 0 && t->m->nets.spec.prior.fitted) N2_TRY(follow_codes(t));
    return look_at(t, N2_LEBM_JOINT, step);
}

/* ---- the run ---- */

static n2ce_status get_ready(void *user, const n2_backend *backend) {
    training *t = user;
    n2_plan_free(t->look); /* of another device */
    n2_graph_free(t->look_graph);
    t->look = NULL;
    t->look_graph = NULL;
    t->m->backend = backend;
    return n2_lebm_pictures_fill(t->m, t->x, t->pictures);
}

/* FNV-1a. */
static uint64_t hash(uint64_t h, const void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) h = (h ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    return h;
}

/* Numbers of 16 bits, which a float holds. */
static void mark(const training *t, float out[MARK_NUMBERS]) {
    const n2_images *p = t->pictures;
    const n2_lebm_schedule *s = &t->run->schedule;
    const double numbers[] = {(double)s->seed, (double)s->batch,    s->weight[0],
                              s->weight[2],    s->vae_rate,         s->joint_rate,
                              s->prior_rate,   s->joint_prior_rate, s->flips};
    uint64_t h = hash(14695981039346656037u, p->pixels, p->n * p->height * p->width * p->channels);
    h = hash(h, numbers, sizeof numbers);
    h = hash(h, s->steps, sizeof s->steps);
    for (int i = 0; i < MARK_NUMBERS; i++) out[i] = (float)(h >> (16 * i) & 0xffff);
}

/* Codes are not in a checkpoint: those of this phase are what they were. */
static n2ce_status compare_marks(void *user) {
    training *t = user;
    t->resumed = true;
    if (memcmp(t->given, t->mark->data, sizeof t->given) == 0) return code_all(t);
    return n2_fail(
        t->m->ctx, N2CE_EDATA,
        "%s was made from other pictures, or with another seed, steps, weights or rates. "
        "Remove it, or leave --resume out.",
        t->run->checkpoint);
}

static void plan_phases(training *t) {
    static const double until[] = {0.5, 0.62, 0.92, 1}; /* shares of the time */
    const n2_lebm_run *run = t->run;
    const double now = n2_seconds();
    t->phases[N2_LEBM_VAE] = (n2_phase){.build = vae_step, .renew = renew_vae};
    t->phases[N2_LEBM_PRIOR] = (n2_phase){.build = prior_step, .renew = renew_prior};
    t->phases[N2_LEBM_JOINT] = (n2_phase){.build = joint_step, .renew = renew_joint};
    t->phases[N2_LEBM_SETTLE] = (n2_phase){.build = settle_step, .renew = renew_settle};
    for (size_t i = 0; i < N2_LEBM_PHASES; i++) {
        n2_phase *p = &t->phases[i];
        p->steps = i == N2_LEBM_VAE || has_prior(t) ? run->schedule.steps[i] : 0;
        p->seed = run->schedule.seed + 1000003 * (i + 1);
        p->renew_every = (p->steps + N2_LEBM_LOOKS - 1) / N2_LEBM_LOOKS + (p->steps == 0);
        p->deadline = run->seconds > 0 ? now + until[i] * run->seconds : 0;
    }
}

/* After the networks: initial values depend on the number of tensors before. */
static n2ce_status make_tensors(training *t) {
    n2_lebm *m = t->m;
    const size_t n = t->pictures->n, each = t->run->schedule.flips ? 2 : 1;
    t->x = n2_lebm_pictures_new(m, "pictures", n);
    t->history = n2_lebm_given(m, "history", n2_dims(N2_LEBM_LOOKS_MAX, LOOK_NUMBERS));
    t->mark = n2_lebm_given(m, "mark", n2_dims(MARK_NUMBERS));
    if (!t->x || !t->history || !t->mark) return N2CE_ENOMEM;
    t->history->is_given = t->mark->is_given = false; /* these two a checkpoint keeps */
    memset(t->history->data, 0, n2_tensor_bytes(m->store, t->history));
    mark(t, t->given);
    memcpy(t->mark->data, t->given, sizeof t->given);
    if (t->phases[N2_LEBM_PRIOR].steps + t->phases[N2_LEBM_SETTLE].steps == 0) return N2CE_OK;
    t->codes = n2_lebm_given(m, "codes", n2_dims((int64_t)(n * each), 2 * m->nets.spec.nz));
    return t->codes ? N2CE_OK : N2CE_ENOMEM;
}

static void note(const training *t, const n2_phase_record *records, n2_lebm_record *out) {
    out->resumed = t->resumed;
    out->prior_loss = N2_NAN;
    for (size_t i = 0; i < N2_LEBM_PHASES; i++) {
        out->steps[i] = records[i].steps;
        out->out_of_time |= records[i].out_of_time;
        if (i != N2_LEBM_VAE && records[i].steps) out->prior_loss = records[i].output[0];
    }
    note_looks(t, out);
}

static n2_lebm_phase last_phase(const n2_phase_record *records) {
    size_t last = N2_LEBM_PHASES - 1;
    while (last > N2_LEBM_VAE && records[last].steps == 0) last--;
    return (n2_lebm_phase)last;
}

static n2ce_status train(training *t, n2_lebm_record *record) {
    n2_phase_record records[N2_LEBM_PHASES];
    const n2_trainer trainer = {.store = t->m->store,
                                .user = t,
                                .phases = t->phases,
                                .n_phases = N2_LEBM_PHASES,
                                .ready = get_ready,
                                .checkpoint = t->run->checkpoint,
                                .resume = t->run->resume,
                                .resumed = compare_marks,
                                .choice = t->run->choice};
    plan_phases(t);
    N2_TRY(make_tensors(t));
    N2_TRY(n2_train(&trainer, records));
    const n2_lebm_phase last = last_phase(records);
    if (records[last].steps) N2_TRY(look_at(t, last, records[last].steps));
    note(t, records, record);
    return N2CE_OK;
}

n2ce_status n2_lebm_train(n2_lebm *m, const n2_images *pictures, const n2_lebm_run *run,
                          n2_lebm_record *record) {
    training t = {.m = m, .run = run, .pictures = pictures};
    *record = (n2_lebm_record){.looks = 0};
    N2_TRY(n2_lebm_check_frame(m->ctx, &m->nets.spec, pictures));
    const n2ce_status status = train(&t, record);
    n2_plan_free(t.look);
    n2_graph_free(t.look_graph);
    return status;
}
