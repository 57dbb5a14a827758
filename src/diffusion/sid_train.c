/* SiD and SiDA: one graph for an iteration, first the fake score's step, then the generator's. */
#include "base/clock.h"
#include "picture_tensors.h"
#include "sid_loss.h"
#include "training_looks.h"

enum { ALONE, BOTH, PHASES };

typedef struct training {
    n2_store *store;
    const n2_distillation *task;
    n2_denoiser_spec spec; /* the student's */
    n2_picture_data data;
    n2_score_net teacher, fake, generator, average;
    n2_tensor *count; /* iterations so far */
    n2_looks looks;
    bool resumed;
} training;

static const n2_distill_plan *plan_of(const training *t) { return &t->task->plan; }

static bool is_adversarial(const training *t) { return plan_of(t)->method == N2_DISTILL_SIDA; }

static n2_shape batch_shape(const training *t) {
    return n2_dims(plan_of(t)->batch, t->spec.height, t->spec.width, t->spec.net.channels);
}

static uint64_t steps_alone(const training *t) {
    const n2_distill_plan *p = plan_of(t);
    const uint64_t n = is_adversarial(t) ? (uint64_t)(p->alone / (double)p->batch) : 0;
    return n < p->steps ? n : p->steps;
}

/* Of a network that is trained from iteration `first` on: both end together. */
static n2_rate_course course_from(const training *t, uint64_t first) {
    const n2_distill_plan *p = plan_of(t);
    return (n2_rate_course){.steps = (double)(p->steps - first),
                            .fall = p->fall * (double)p->steps};
}

/* As the authors have it: no first moment, and of SiDA every number of a gradient within 1. */
static n2_optimiser adam(const training *t, const n2_rate_course *course, bool clipped) {
    return (n2_optimiser){.adam = {0, 0.999, 1e-8, 0},
                          .rate = plan_of(t)->rate,
                          .schedule = n2_rate_factor,
                          .schedule_arg = course,
                          .clip_each = clipped ? 1 : 0};
}

/* What the generator makes for the others: without dropout, and without gradients. */
static n2_node make_pictures(const training *t, n2_graph *g, n2_node labels) {
    const n2_node z = n2g_randn(g, batch_shape(t));
    return n2g_detach(
        g, n2_generate(g, &t->spec.edm, &t->generator.unet, z, labels, plan_of(t)->sigma, false));
}

/* ---- the fake score's step ---- */

/* What a step tells: the loss, logits on real and on made pictures. */
typedef struct fake_step {
    n2_node loss, real, made;
} fake_step;

/* The discriminator's part: real pictures with the same noise; only the way down is run for them.
 * All of it is weighted by the mean weight of the batch's levels. */
static n2_node critic_part(const training *t, n2_graph *g, const n2_unet_input *in, n2_node noise,
                           n2_node real, n2_node bottom, fake_step *step) {
    const n2_node sigma = n2g_reshape(g, in->level, n2_dims(plan_of(t)->batch, 1, 1, 1));
    n2_unet_input seen = *in;
    seen.x = n2g_add(g, real, n2g_mul(g, sigma, noise));
    seen.bottom = NULL;
    const n2_node of_real = n2_logit_map(g, n2_edm_encode(g, &t->spec.edm, &t->fake.unet, &seen));
    const n2_node of_made = n2_logit_map(g, bottom);
    const n2_node weight = n2_mean_of(g, n2_edm_weights(g, &t->spec.edm, in->level));
    step->real = n2_mean_of(g, of_real);
    step->made = n2_mean_of(g, of_made);
    return n2g_mul(g, weight, n2_critic_loss(g, &plan_of(t)->critic, of_real, of_made));
}

static fake_step train_fake(const training *t, n2_graph *g) {
    const n2_distill_plan *p = plan_of(t);
    const n2_rate_course course = course_from(t, 0);
    const n2_optimiser o = adam(t, &course, is_adversarial(t));
    fake_step step = {.loss = N2_NONE};
    n2_node bottom = N2_NONE, labels = N2_NONE, real = N2_NONE;
    if (is_adversarial(t))
        real = n2_draw_pictures(g, &t->spec, &t->data, p->batch, p->flips, &labels);
    else
        labels = n2_draw_classes(g, &t->spec, &t->data, p->batch);
    const n2_node noise = n2g_randn(g, batch_shape(t));
    const n2_unet_input in = {.x = make_pictures(t, g, labels),
                              .level = n2_edm_sigmas(g, &t->spec.edm, p->batch),
                              .labels = labels,
                              .training = true,
                              .bottom = &bottom};
    step.loss = n2_edm_loss(g, &t->spec.edm, &t->fake.unet, &in, noise);
    n2_node all = step.loss;
    step.real = step.made = n2g_constant(g, 0);
    if (is_adversarial(t))
        all = n2g_add(g, all, critic_part(t, g, &in, noise, real, bottom, &step));
    n2_minimise(g, &o, "fake.adam", &t->fake.parameters, all, NULL);
    return step;
}

/* ---- the generator's step ---- */

/* SiD's loss times 100; in SiDA after a while half of it, and half of the discriminator's. */
static n2_node join_losses(const training *t, n2_graph *g, n2_node sid, n2_node adversarial,
                           n2_node iteration) {
    static const double WEIGHT = 100;
    const n2_distill_plan *p = plan_of(t);
    const n2_node by_score = n2g_scale(g, sid, WEIGHT);
    if (!adversarial.id) return by_score;
    const double begins = (p->alone + p->by_score) / (double)p->batch;
    const n2_node half = n2g_scale(g, n2g_greater(g, iteration, n2g_constant(g, begins)), 0.5);
    return n2g_add(g, n2g_mul(g, n2g_affine(g, half, -1, 1), by_score),
                   n2g_mul(g, half, adversarial));
}

static n2_node train_generator(const training *t, n2_graph *g, n2_node iteration) {
    const n2_distill_plan *p = plan_of(t);
    const n2_edm *edm = &t->spec.edm;
    const n2_rate_course course = course_from(t, steps_alone(t));
    const n2_optimiser o = adam(t, &course, false);
    n2_node bottom = N2_NONE, adversarial = N2_NONE;
    const n2_node labels = n2_draw_classes(g, &t->spec, &t->data, p->batch);
    const n2_node z = n2g_randn(g, batch_shape(t)), noise = n2g_randn(g, batch_shape(t));
    const n2_node y = n2_generate(g, edm, &t->generator.unet, z, labels, p->sigma, true);
    n2_unet_input in = {.level = n2_sid_sigmas(g, p->batch), .labels = labels};
    const n2_node sigma = n2g_reshape(g, in.level, n2_dims(p->batch, 1, 1, 1));
    in.x = n2g_add(g, y, n2g_mul(g, sigma, noise));
    const n2_node a = n2_edm_denoise(g, edm, &t->teacher.unet, &in);
    in.bottom = &bottom;
    const n2_node b = n2_edm_denoise(g, edm, &t->fake.unet, &in);
    const n2_node scale = n2_sid_scale(g, y, a);
    const n2_node sid = n2_sid_loss(g, a, b, y, scale, p->alpha);
    if (is_adversarial(t))
        adversarial = n2_adversarial_loss(g, n2_logit_map(g, bottom), scale,
                                          (double)n2_denoiser_numbers(&t->spec));
    const n2_node loss = join_losses(t, g, sid, adversarial, iteration);
    n2_minimise(g, &o, "generator.adam", &t->generator.parameters, loss, NULL);
    return sid;
}

/* ---- phases ---- */

static void note(const training *t, n2_graph *g, const fake_step *fake, n2_node sid,
                 n2_outputs *out) {
    const n2_node numbers[] = {fake->loss, sid, fake->real, fake->made};
    n2_looks_note(g, &t->looks, numbers);
    n2_output(out, fake->loss);
    n2_output(out, sid);
}

static n2ce_status fake_alone(void *user, n2_graph *g, n2_outputs *out) {
    training *t = user;
    const fake_step fake = train_fake(t, g);
    n2_count_step(g, t->count);
    note(t, g, &fake, n2g_constant(g, 0), out);
    return N2CE_OK;
}

static n2ce_status both(void *user, n2_graph *g, n2_outputs *out) {
    training *t = user;
    const n2_distill_plan *p = plan_of(t);
    const fake_step fake = train_fake(t, g);
    const n2_node iteration = n2_count_step(g, t->count);
    const n2_node sid = train_generator(t, g, iteration);
    n2_average_weights(g, &t->average, &t->generator, iteration, p->batch, p->half_life);
    note(t, g, &fake, sid, out);
    return N2CE_OK;
}

/* ---- the run ---- */

static n2ce_status look_alone(void *user, uint64_t step) {
    return n2_looks_look(&((training *)user)->looks, step);
}

/* Steps go on from phase to phase. */
static n2ce_status look_both(void *user, uint64_t step) {
    return look_alone(user, step + steps_alone(user));
}

static n2ce_status get_ready(void *user, const n2_backend *backend) {
    training *t = user;
    n2_looks_move(&t->looks, backend);
    return n2_picture_data_fill(t->store, &t->data);
}

static n2ce_status note_resumed(void *user) {
    ((training *)user)->resumed = true;
    return N2CE_OK;
}

static n2ce_status copy_into(training *t, const char *name, const n2_score_net *from,
                             n2_score_net *out) {
    N2_TRY(n2_score_net_new(t->store, name, &t->spec.net, 0, out));
    return n2_score_net_copy(out, from);
}

/* The teacher stands still: a checkpoint is without it. */
static n2ce_status make_networks(training *t) {
    const n2_denoiser *start = t->task->start ? t->task->start : t->task->teacher;
    N2_TRY(copy_into(t, "teacher.", &t->task->teacher->net, &t->teacher));
    for (size_t i = 0; i < t->teacher.parameters.n; i++)
        t->teacher.parameters.list[i]->is_given = true;
    N2_TRY(copy_into(t, "fake.", &t->task->teacher->net, &t->fake));
    N2_TRY(copy_into(t, "generator.", &start->net, &t->generator));
    return copy_into(t, "average.", &start->net, &t->average);
}

static n2ce_status make_tensors(training *t, const n2_denoiser_run *run) {
    const n2_distill_plan *p = plan_of(t);
    N2_TRY(n2_picture_data_new(t->store, &t->spec, t->task->pictures, &t->data));
    N2_TRY(make_networks(t));
    t->count = n2_store_add(t->store, "iterations", n2_scalar_shape());
    if (!t->count) return N2CE_ENOMEM;
    t->looks = (n2_looks){.run = run,
                          .source = {.store = t->store, .spec = &t->spec, .net = &t->average},
                          .how = n2_denoiser_sampling(&t->spec),
                          .batch = p->batch,
                          .steps = p->steps};
    const char *const *names = n2_distill_numbers(p->method);
    for (size_t k = 0; names[k]; k++) t->looks.names[k] = names[k];
    return n2_looks_begin(&t->looks);
}

static n2ce_status train(training *t, const n2_denoiser_run *run, n2_denoiser_record *record) {
    const n2_distill_plan *p = plan_of(t);
    const uint64_t alone = steps_alone(t);
    const double deadline = run->seconds > 0 ? n2_seconds() + run->seconds : 0;
    const n2_phase phases[PHASES] = {[ALONE] = {.build = fake_alone,
                                                .steps = alone,
                                                .seed = p->seed + 1,
                                                .renew = look_alone,
                                                .renew_every = t->looks.every,
                                                .deadline = deadline},
                                     [BOTH] = {.build = both,
                                               .steps = p->steps - alone,
                                               .seed = p->seed + 2,
                                               .renew = look_both,
                                               .renew_every = t->looks.every,
                                               .deadline = deadline}};
    const n2_trainer trainer = {.store = t->store,
                                .user = t,
                                .phases = phases,
                                .n_phases = PHASES,
                                .ready = get_ready,
                                .checkpoint = run->checkpoint,
                                .save_seconds = N2_DENOISER_SAVE_SECONDS,
                                .resume = run->resume,
                                .identity = run->identity,
                                .resumed = note_resumed,
                                .choice = run->choice};
    n2_phase_record done[PHASES];
    N2_TRY(n2_train(&trainer, done));
    record->steps = done[ALONE].steps + done[BOTH].steps;
    record->out_of_time = done[ALONE].out_of_time || done[BOTH].out_of_time;
    record->resumed = t->resumed;
    N2_TRY(n2_looks_look(&t->looks, record->steps));
    n2_looks_curve(&t->looks, &record->curve);
    return N2CE_OK;
}

n2ce_status n2_distill_by_score(n2_store *store, const n2_distillation *task,
                                const n2_denoiser_run *run, n2_denoiser *student,
                                n2_denoiser_record *record) {
    training t = {.store = store, .task = task, .spec = student->spec};
    N2_TRY(make_tensors(&t, run));
    const n2ce_status status = train(&t, run, record);
    n2_looks_end(&t.looks);
    N2_TRY(status);
    return n2_score_net_copy(&student->net, &t.average);
}

/* The warm-up is over from the start. */
n2_node n2_distill_iteration(n2_graph *g, const n2_distillation *task) {
    n2_distillation at_once = *task;
    at_once.plan.alone = at_once.plan.by_score = 0;
    training t = {.store = n2_graph_store(g), .task = &at_once, .spec = n2_student_spec(task)};
    const n2_denoiser_run run = {.looks = 1};
    n2_outputs out = {.n = 0};
    if (make_tensors(&t, &run) != N2CE_OK || both(&t, g, &out) != N2CE_OK) return N2_NONE;
    return out.node[0];
}
