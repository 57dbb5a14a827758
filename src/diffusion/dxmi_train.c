/* DxMI: an iteration is
 *
 *     roll out    pictures from noise in T steps, all states kept; s_t^2 follows their velocity
 *     energy      V of real pictures against V of made ones
 *     value       T steps: V of each state towards V of the next and the cost of a step, last first
 *     sampler     states by chance: the step from them to where V is low, with noise of its own
 *
 * each a graph. Energy and value have one optimiser, as published; gradients of the value's steps
 * are clipped, else those of noise, whose pictures are a hundred times as large, would leave the
 * energy's nothing to say. */
#include "base/clock.h"
#include "dxmi_loss.h"
#include "model/energy_net.h"
#include "picture_tensors.h"
#include "sid_loss.h"
#include "training_looks.h"

typedef struct training {
    n2_store *store;
    const n2_distillation *task;
    n2_denoiser_spec spec; /* the student's */
    n2_sampling how;
    n2_picture_data data;
    n2_score_net sampler;
    n2_parameters noise_parameters, value_parameters;
    n2_tensor *log_sigma; /* [T] */
    n2_energy_net value;
    n2_tensor *path;  /* [(T + 1) n x numbers]: states, step by step */
    n2_tensor *s2;    /* [T] */
    n2_tensor *turn;  /* of the value's steps: 0 .. T - 1 */
    n2_tensor *table; /* [T x COLUMNS], what does not change: */
    n2_looks looks;
    bool resumed;
} training;

/* Of a step: n2_denoise_step, R(t), whether it has noise, and whether the regularisers count. */
enum { SIGMA, KEEP, TAKE, COST, NOISY, REGULAR, COLUMNS };

static const n2_distill_plan *plan_of(const training *t) { return &t->task->plan; }
static int64_t steps_of(const training *t) { return (int64_t)t->spec.steps; }

static n2_shape batch_shape(const training *t) {
    return n2_dims(plan_of(t)->batch, t->spec.height, t->spec.width, t->spec.net.channels);
}

static n2_optimiser adam(const training *t, double rate, double clip) {
    return (n2_optimiser){.adam = {0.9, 0.999, 1e-8, 0},
                          .rate = rate,
                          .clip = clip,
                          .loss_scale = n2_denoiser_loss_scale(t->looks.run)};
}

/* ---- a step of the sampler ---- */

/* The mean of where a step goes from x: sigma, keep and take for each picture, [n, 1, 1, 1]. */
static n2_node step_mean(const training *t, n2_graph *g, n2_node x, n2_node labels, n2_node sigma,
                         n2_node keep, n2_node take, bool training_now) {
    const n2_unet_input in = {.x = x,
                              .level = n2g_reshape(g, sigma, n2_dims(plan_of(t)->batch)),
                              .labels = labels,
                              .training = training_now};
    const n2_node d = n2_edm_denoise(g, &t->spec.edm, &t->sampler.unet, &in);
    return n2g_add(g, n2g_mul(g, keep, x), n2g_mul(g, take, d));
}

/* Number `column` of step k, for all pictures. */
static n2_node constant(const training *t, n2_graph *g, size_t k, int column) {
    const n2_denoise_step s = n2_sampling_step(&t->how, k);
    const double value = column == SIGMA ? s.sigma : column == KEEP ? s.keep : s.take;
    return n2g_broadcast(g, n2g_constant(g, value), n2_dims(plan_of(t)->batch, 1, 1, 1));
}

/* ---- rolling out ---- */

static n2_node roll_step(const training *t, n2_graph *g, size_t k, n2_node x, n2_node labels) {
    const n2_node mean = step_mean(t, g, x, labels, constant(t, g, k, SIGMA),
                                   constant(t, g, k, KEEP), constant(t, g, k, TAKE), false);
    if (k + 1 == t->spec.steps) return mean;
    const n2_node log_sigma = n2g_slice(g, n2g_read(g, t->log_sigma), 0, (int64_t)k, 1);
    const n2_node z = n2g_randn(g, batch_shape(t));
    return n2g_add(g, mean, n2g_mul(g, n2g_exp(g, log_sigma), z));
}

static n2ce_status roll_out(void *user, n2_graph *g, n2_outputs *out) {
    training *t = user;
    const int64_t n = plan_of(t)->batch, numbers = n2_denoiser_numbers(&t->spec);
    const n2_node labels = n2_draw_classes(g, &t->spec, &t->data, n);
    n2_node x = n2g_scale(g, n2g_randn(g, batch_shape(t)), n2_sampling_start(&t->how));
    n2_node path = n2g_reshape(g, x, n2_dims(n, numbers)), s2 = N2_NONE;
    (void)out;
    for (size_t k = 0; k < t->spec.steps; k++) {
        const n2_node next = roll_step(t, g, k, x, labels);
        const n2_node before = n2g_slice(g, n2g_read(g, t->s2), 0, (int64_t)k, 1);
        const n2_node adapted = n2_adapt_velocity(g, before, x, next);
        path = n2g_concat(g, path, n2g_reshape(g, next, n2_dims(n, numbers)), 0);
        s2 = k ? n2g_concat(g, s2, adapted, 0) : adapted;
        x = next;
    }
    n2g_assign(g, t->path, path);
    n2g_assign(g, t->s2, s2);
    return N2CE_OK;
}

/* ---- energy and value ---- */

/* Rows of the path as pictures. */
static n2_node states(const training *t, n2_graph *g, n2_node rows) {
    return n2g_reshape(g, n2g_gather(g, n2g_read(g, t->path), rows), batch_shape(t));
}

/* All pictures after step k - 1, for a node k of one number. */
static n2_node states_at(const training *t, n2_graph *g, n2_node k) {
    const int64_t n = plan_of(t)->batch;
    const n2_node first = n2g_scale(g, k, (double)n);
    return states(t, g, n2g_add(g, n2g_row_index(g, n, 1, n), first));
}

static n2_node value_of(const training *t, n2_graph *g, n2_node x) {
    return n2_energy_net_apply(g, &t->value, x);
}

static n2ce_status train_energy(void *user, n2_graph *g, n2_outputs *out) {
    training *t = user;
    const n2_distill_plan *p = plan_of(t);
    const n2_optimiser o = adam(t, p->value_rate, 0);
    n2_node labels;
    (void)out;
    const n2_node x = n2_draw_pictures(g, &t->spec, &t->data, p->batch, p->flips, &labels);
    const n2_node end = n2g_broadcast(g, n2g_constant(g, (double)steps_of(t)), n2_dims(1));
    const n2_node real = value_of(t, g, x), made = value_of(t, g, states_at(t, g, end));
    const n2_node loss = n2_energy_loss(g, &p->critic, real, made);
    n2_minimise(g, &o, "value.adam", &t->value_parameters, loss, NULL);
    const n2_node numbers[] = {loss, n2_mean_of(g, real), n2_mean_of(g, made)};
    n2_looks_note(g, &t->looks, numbers);
    return N2CE_OK;
}

/* Turns go from the last step to the first, and begin again. */
static n2ce_status train_value(void *user, n2_graph *g, n2_outputs *out) {
    training *t = user;
    const double steps = (double)steps_of(t);
    const n2_optimiser o = adam(t, plan_of(t)->value_rate, plan_of(t)->clip);
    (void)out;
    const n2_node turn = n2g_read(g, t->turn), k = n2g_affine(g, turn, -1, steps - 1);
    const n2_node value = value_of(t, g, states_at(t, g, k));
    const n2_node next = value_of(t, g, states_at(t, g, n2g_affine(g, k, 1, 1)));
    const n2_node row = n2g_gather(g, n2g_read(g, t->table), k);
    const n2_node cost = n2g_slice(g, row, 1, COST, 1);
    const n2_node loss = n2_temporal_loss(g, value, next, cost);
    n2_minimise(g, &o, "value.adam", &t->value_parameters, loss, NULL);
    const n2_node after = n2g_affine(g, turn, 1, 1);
    const n2_node over = n2g_greater(g, after, n2g_constant(g, steps - 0.5));
    n2g_assign(g, t->turn, n2g_sub(g, after, n2g_scale(g, over, steps)));
    return N2CE_OK;
}

/* ---- the sampler's step ---- */

/* What belongs to steps `which` [n] of a tensor [T] or a column of the table: [n, 1, 1, 1]. */
static n2_node pick(const training *t, n2_graph *g, n2_node numbers, n2_node which) {
    const n2_node column = n2g_reshape(g, numbers, n2_dims(steps_of(t), 1));
    return n2g_reshape(g, n2g_gather(g, column, which), n2_dims(plan_of(t)->batch, 1, 1, 1));
}

static n2_node in_table(const training *t, n2_graph *g, int column, n2_node which) {
    return pick(t, g, n2g_slice(g, n2g_read(g, t->table), 1, column, 1), which);
}

static n2ce_status train_sampler(void *user, n2_graph *g, n2_outputs *out) {
    training *t = user;
    const n2_distill_plan *p = plan_of(t);
    const int64_t n = p->batch;
    const n2_optimiser of_net = adam(t, p->sampler_rate, p->clip),
                       of_noise = adam(t, p->noise_rate, p->clip);
    const n2_node which = n2g_randint(g, n2_dims(n), steps_of(t));
    const n2_node rows = n2g_add(g, n2g_scale(g, which, (double)n), n2g_randint(g, n2_dims(n), n));
    const n2_node x = states(t, g, rows);
    const n2_node labels = n2_draw_classes(g, &t->spec, &t->data, n);
    const n2_node mean = step_mean(t, g, x, labels, in_table(t, g, SIGMA, which),
                                   in_table(t, g, KEEP, which), in_table(t, g, TAKE, which), true);
    const n2_node log_sigma = pick(t, g, n2g_read(g, t->log_sigma), which);
    const n2_node noise = n2g_mul(g, n2g_exp(g, log_sigma), in_table(t, g, NOISY, which));
    const n2_node next = n2g_add(g, mean, n2g_mul(g, noise, n2g_randn(g, batch_shape(t))));
    const n2_node velocity = n2_velocity(g, x, next, pick(t, g, n2g_read(g, t->s2), which));
    const n2_node terms =
        n2g_sub(g, n2g_scale(g, velocity, p->velocity), n2g_scale(g, log_sigma, p->entropy));
    const n2_node cost = n2_mean_of(g, n2g_mul(g, in_table(t, g, REGULAR, which), terms));
    const n2_node loss = n2g_add(g, n2_mean_of(g, value_of(t, g, next)), cost);
    n2_minimise(g, &of_net, "sampler.adam", &t->sampler.parameters, loss, NULL);
    n2_minimise(g, &of_noise, "noise.adam", &t->noise_parameters, loss, NULL);
    n2_output(out, loss);
    return N2CE_OK;
}

/* ---- the run ---- */

static n2ce_status look(void *user, uint64_t step) {
    return n2_looks_look(&((training *)user)->looks, step);
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

static void fill_table(training *t) {
    const size_t steps = t->spec.steps;
    for (size_t k = 0; k < steps; k++) {
        const n2_denoise_step s = n2_sampling_step(&t->how, k);
        float *row = (float *)t->table->data + k * COLUMNS;
        row[SIGMA] = (float)s.sigma;
        row[KEEP] = (float)s.keep;
        row[TAKE] = (float)s.take;
        row[COST] = (float)n2_dxmi_time_cost(k, steps);
        row[NOISY] = k + 1 < steps;
        row[REGULAR] = k + plan_of(t)->plain < steps;
        ((float *)t->s2->data)[k] = (float)(s.sigma * s.sigma);
        ((float *)t->log_sigma->data)[k] = (float)n2_few_steps_log_sigma(&t->how, k);
    }
    n2_tensor_push(t->store, t->table);
    n2_tensor_push(t->store, t->s2);
    n2_tensor_push(t->store, t->log_sigma);
}

static n2ce_status make_networks(training *t) {
    const n2_distill_plan *p = plan_of(t);
    N2_TRY(n2_score_net_new(t->store, "sampler.", &t->spec.net, 0, &t->sampler));
    N2_TRY(n2_score_net_copy(&t->sampler, &t->task->teacher->net));
    t->noise_parameters = n2_parameters_new(t->store, 0);
    t->log_sigma = n2_parameter_of(&t->noise_parameters, "log_sigma", n2_dims(steps_of(t)), 0);
    t->value_parameters = n2_parameters_new(t->store, p->seed);
    t->value =
        n2_energy_net_new(&t->value_parameters, "value.", t->spec.net.channels, p->value_width);
    return t->noise_parameters.failed || t->value_parameters.failed ? N2CE_ENOMEM : N2CE_OK;
}

static n2ce_status make_tensors(training *t, const n2_denoiser_run *run) {
    const n2_distill_plan *p = plan_of(t);
    const int64_t states = (steps_of(t) + 1) * p->batch;
    N2_TRY(n2_picture_data_new(t->store, &t->spec, t->task->pictures, &t->data));
    N2_TRY(make_networks(t));
    t->path = n2_given_tensor(t->store, "path", n2_dims(states, n2_denoiser_numbers(&t->spec)));
    t->table = n2_given_tensor(t->store, "table", n2_dims(steps_of(t), COLUMNS));
    t->s2 = n2_store_add(t->store, "velocity", n2_dims(steps_of(t)));
    t->turn = n2_store_add(t->store, "turn", n2_dims(1));
    if (!t->path || !t->table || !t->s2 || !t->turn) return N2CE_ENOMEM;
    fill_table(t);
    t->looks = (n2_looks){.run = run,
                          .source = {.store = t->store,
                                     .spec = &t->spec,
                                     .net = &t->sampler,
                                     .log_sigma = t->log_sigma},
                          .how = t->how,
                          .batch = p->batch,
                          .steps = p->steps};
    const char *const *names = n2_distill_numbers(p->method);
    for (size_t k = 0; names[k]; k++) t->looks.names[k] = names[k];
    return n2_looks_begin(&t->looks);
}

static n2ce_status train(training *t, const n2_denoiser_run *run, n2_denoiser_record *record) {
    const n2_distill_plan *p = plan_of(t);
    const n2_phase phase = {
        .build = train_sampler,
        .steps = p->steps,
        .seed = p->seed + 1,
        .inner = {{.build = roll_out, .times = 1, .seed = p->seed + 2},
                  {.build = train_energy, .times = 1, .seed = p->seed + 3},
                  {.build = train_value, .times = t->spec.steps, .seed = p->seed + 4}},
        .renew = look,
        .renew_every = t->looks.every,
        .deadline = run->seconds > 0 ? n2_seconds() + run->seconds : 0};
    const n2_trainer trainer = {.store = t->store,
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
    record->steps = done.steps;
    record->out_of_time = done.out_of_time;
    record->resumed = t->resumed;
    N2_TRY(look(t, done.steps));
    n2_looks_curve(&t->looks, &record->curve);
    return N2CE_OK;
}

/* What was learnt of the noise: numbers of one tensor into that of the student. */
static n2ce_status copy_noise(const training *t, const n2_denoiser *student) {
    double values[N2_FEW_STEPS_MAX];
    N2_TRY(n2_tensor_pull(t->store, t->log_sigma));
    n2_tensor_get(t->store, t->log_sigma, values);
    n2_tensor_set(student->store, student->log_sigma, values);
    return N2CE_OK;
}

n2ce_status n2_distill_by_value(n2_store *store, const n2_distillation *task,
                                const n2_denoiser_run *run, n2_denoiser *student,
                                n2_denoiser_record *record) {
    training t = {.store = store, .task = task, .spec = student->spec};
    t.how = n2_denoiser_sampling(&t.spec);
    N2_TRY(make_tensors(&t, run));
    const n2ce_status status = train(&t, run, record);
    n2_looks_end(&t.looks);
    N2_TRY(status);
    N2_TRY(n2_score_net_copy(&student->net, &t.sampler));
    return copy_noise(&t, student);
}
