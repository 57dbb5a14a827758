/* The training of a teacher. */
#include "denoiser.h"

#include "augment.h"
#include "base/clock.h"
#include "picture_tensors.h"
#include "rewrite/rewrites.h"
#include "training_looks.h"

n2_denoiser_schedule n2_denoiser_schedule_default(void) {
    return (n2_denoiser_schedule){.steps = 24400,
                                  .batch = 512,
                                  .rate = 1e-3,
                                  .ramp = 2e5,
                                  .fall = 0.5,
                                  .half_life = 5e5,
                                  .untold = 0.1,
                                  .flips = true};
}

typedef struct training {
    n2_denoiser *m;
    const n2_denoiser_schedule *schedule;
    n2_picture_data data;
    n2_score_net average;
    n2_tensor *count;
    n2_looks looks;
    bool resumed;
} training;

/* ---- a step ---- */

static n2_rate_course course_of(const n2_denoiser_schedule *s) {
    const double steps = (double)s->steps;
    return (n2_rate_course){steps, s->ramp / (double)s->batch, s->fall * steps};
}

/* Classes, but for a share of them by chance; they are rows of one 1. */
static n2_node leave_out(n2_graph *g, n2_node labels, double share) {
    if (!labels.id || share <= 0) return labels;
    const n2_node draws = n2g_randu(g, n2_dims(n2_shape_at(g, labels).dim[0], 1));
    return n2g_mul(g, labels, n2g_greater(g, draws, n2g_constant(g, share)));
}

static n2ce_status build_step(void *user, n2_graph *g, n2_outputs *out) {
    training *t = user;
    const n2_denoiser_spec *spec = &t->m->spec;
    const n2_denoiser_schedule *s = t->schedule;
    const n2_rate_course course = course_of(s);
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-8, 0},
                               .rate = s->rate,
                               .schedule = n2_rate_factor,
                               .schedule_arg = &course};
    n2_unet_input in = {.level = n2_edm_sigmas(g, &spec->edm, s->batch), .training = true};
    const bool changed = s->augment > 0;
    in.x = n2_draw_pictures(g, spec, &t->data, s->batch, s->flips && !changed, &in.labels);
    in.labels = leave_out(g, in.labels, s->untold);
    if (changed) in.x = n2_augment_pictures(g, in.x, s->augment, &in.augment);
    if (!in.x.id) return N2CE_OK;
    const n2_node noise = n2g_randn(g, n2_shape_at(g, in.x));
    const n2_node loss = n2_edm_loss(g, &spec->edm, &t->m->net.unet, &in, noise);
    n2_minimise(g, &adam, "adam", &t->m->net.parameters, loss, NULL);
    const n2_node steps = n2_count_step(g, t->count);
    n2_average_weights(g, &t->average, &t->m->net, steps, s->batch, s->half_life);
    n2_looks_note(g, &t->looks, &loss);
    n2_output(out, loss);
    return N2CE_OK;
}

/* ---- the run ---- */

static n2ce_status look(void *user, uint64_t step) {
    return n2_looks_look(&((training *)user)->looks, step);
}

static n2ce_status get_ready(void *user, const n2_backend *backend) {
    training *t = user;
    t->m->backend = backend;
    n2_looks_move(&t->looks, backend);
    return n2_picture_data_fill(t->m->store, &t->data);
}

static n2ce_status note_resumed(void *user) {
    ((training *)user)->resumed = true;
    return N2CE_OK;
}

/* After the network, whose initial values depend on the number of tensors before. */
static n2ce_status make_tensors(training *t, const n2_images *pictures,
                                const n2_denoiser_run *run) {
    n2_denoiser *m = t->m;
    N2_TRY(n2_picture_data_new(m->store, &m->spec, pictures, &t->data));
    N2_TRY(n2_score_net_new(m->store, "average.", &m->spec.net, 0, &t->average));
    N2_TRY(n2_score_net_copy(&t->average, &m->net));
    t->count = n2_store_add(m->store, "steps", n2_scalar_shape());
    if (!t->count) return N2CE_ENOMEM;
    t->looks = (n2_looks){.run = run,
                          .source = {m->store, &m->spec, &t->average, NULL, m->backend},
                          .how = n2_denoiser_sampling(&m->spec),
                          .batch = t->schedule->batch,
                          .steps = t->schedule->steps,
                          .names = {"loss"}};
    return n2_looks_begin(&t->looks);
}

static n2ce_status train(training *t, const n2_denoiser_run *run, n2_denoiser_record *record) {
    const n2_phase phase = {.build = build_step,
                            .steps = t->schedule->steps,
                            .seed = t->schedule->seed + 1,
                            .renew = look,
                            .renew_every = t->looks.every,
                            .deadline = run->seconds > 0 ? n2_seconds() + run->seconds : 0};
    const n2_trainer trainer = {.store = t->m->store,
                                .user = t,
                                .phases = &phase,
                                .n_phases = 1,
                                .ready = get_ready,
                                .checkpoint = run->checkpoint,
                                .save_seconds = N2_DENOISER_SAVE_SECONDS,
                                .resume = run->resume,
                                .identity = run->identity,
                                .resumed = note_resumed,
                                .choice = run->choice};
    n2_phase_record done;
    N2_TRY(n2_train(&trainer, &done));
    N2_TRY(look(t, done.steps));
    record->steps = done.steps;
    record->out_of_time = done.out_of_time;
    record->resumed = t->resumed;
    n2_looks_curve(&t->looks, &record->curve);
    return n2_score_net_copy(&t->m->net, &t->average);
}

n2ce_status n2_denoiser_train(n2_denoiser *m, const n2_images *pictures,
                              const n2_denoiser_schedule *schedule, const n2_denoiser_run *run,
                              n2_denoiser_record *record) {
    training t = {.m = m, .schedule = schedule};
    record->curve.n = 0;
    N2_TRY(make_tensors(&t, pictures, run));
    const n2ce_status status = train(&t, run, record);
    n2_looks_end(&t.looks);
    return status;
}

/* ---- how long it would take ---- */

enum { FEW = 2 };

static n2ce_status time_step(training *t, const n2_images *pictures, double *seconds) {
    const n2_denoiser_run run = {.quiet = true};
    n2_outputs out = {.n = 0};
    n2_plan *plan = NULL;
    N2_TRY(make_tensors(t, pictures, &run));
    N2_TRY(n2_picture_data_fill(t->m->store, &t->data));
    n2_graph *g = n2_graph_new(t->m->store);
    n2ce_status status = g ? build_step(t, g, &out) : N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_plan_compile(g, t->m->backend, out.node, out.n, &plan);
    if (status == N2CE_OK) status = n2_time_plan(plan, N2_TRIAL_SECONDS, seconds);
    n2_plan_free(plan);
    n2_graph_free(g);
    return status;
}

n2ce_status n2_denoiser_step_seconds(n2ce_ctx *ctx, const n2_denoiser_spec *spec, int64_t batch,
                                     double *seconds) {
    n2_denoiser_schedule schedule = n2_denoiser_schedule_default();
    n2_denoiser_spec told = *spec;
    n2_images *pictures;
    training t = {.schedule = &schedule};
    schedule.batch = FEW;
    told.net.labels = 0;
    N2_TRY(n2_images_new(ctx, FEW, (size_t)spec->height, (size_t)spec->width,
                         (size_t)spec->net.channels, &pictures));
    n2ce_status status = n2_denoiser_new(ctx, &told, 0, &t.m);
    if (status == N2CE_OK) status = time_step(&t, pictures, seconds);
    n2_denoiser_free(t.m);
    n2_images_free(pictures);
    *seconds *= (double)batch / FEW;
    return status;
}
