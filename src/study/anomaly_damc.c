/* Latent energy-based models with an amortised sampler as methods of the study of anomalies. */
#include "anomaly_study.h"
#include "lebm/damc.h"
#include "rewrite/rewrites.h"

#include <string.h>

enum { SCORED = 1024, MOVES = 10, MOST_CHANNELS = 128, MOST_EMBEDDING = 1024 };
static const double MOVE = 0.1;

/* A run; the learner comes first, as the trainer's phase wants it. */
typedef struct damc_run {
    n2_damc_learner learner;
    const n2_anomaly_job *job;
    n2_store *store;
    n2_tensor *train, *test;
    n2_damc_scorer *scorer;
    n2_damc_scores scores;
    n2_anomaly_scores *out;
} damc_run;

static int64_t least(size_t a, int64_t b) { return a < (size_t)b ? (int64_t)a : b; }

/* The published sizes at a width of 128; narrower ones in proportion, the sampler a little less. */
static n2_damc_spec spec_of(const n2_anomaly_effort *e, const n2_prior_spec *prior) {
    n2_damc_spec s = n2_damc_defaults();
    s.decoder_width = (int64_t)e->width;
    s.encoder_width = (int64_t)e->width;
    s.sampler_width = least(4 * e->width, MOST_CHANNELS);
    s.embedding = least(16 * e->width, MOST_EMBEDDING);
    s.sigma = e->sigma;
    s.prior = *prior;
    return s;
}

/* Rates are those published, times a factor; but at more than the published one the chains of
 * maximum likelihood do not keep up, and its f runs away. */
static n2_damc_training training_of(const n2_anomaly_job *job, n2_prior_kind prior) {
    n2_damc_training t = n2_damc_training_defaults();
    if (job->effort.steps) t.steps = job->effort.steps;
    t.seed = 1000 * job->seed;
    t.decoder_rate *= job->effort.rate;
    if (prior != N2_PRIOR_MLE) t.prior_rate *= job->effort.rate;
    t.sampler_rate *= job->effort.rate;
    t.slow_rate = job->effort.slow;
    return t;
}

static n2_tensor *add_pictures(n2_store *store, const char *name, const n2_images *pictures,
                               const size_t *numbers, size_t n) {
    n2_tensor *t = n2_store_add(store, name,
                                n2_dims((int64_t)n, (int64_t)pictures->height,
                                        (int64_t)pictures->width, (int64_t)pictures->channels));
    if (t) n2_anomaly_pixels(pictures, numbers, n, t->data);
    return t;
}

/* ---- what the trainer calls ------------------------------------------------------------------ */

static n2ce_status ready(void *user, const n2_backend *backend) {
    damc_run *r = user;
    return n2_damc_scorer_compile(r->scorer, backend);
}

/* The published score, |x - g(z)|^2 - ln p(z), whatever sigma is. */
static n2ce_status score_test(damc_run *r, uint64_t step) {
    const n2_anomaly_split *s = r->job->split;
    n2_anomaly_scores *out = r->out;
    n2_rank_areas ranking;
    N2_TRY(n2_damc_score(r->scorer, r->job->seed, &r->scores));
    for (size_t i = 0; i < s->n_test; i++) out->score[i] = r->scores.misfit[i] + r->scores.prior[i];
    N2_TRY(n2_rank_scores(r->job->ctx, out->score, s->is_odd, s->n_test, &ranking));
    if (out->n_checks < N2_ANOMALY_CHECKS)
        out->checks[out->n_checks++] = (n2_anomaly_check){(double)step, ranking.auprc};
    return N2CE_OK;
}

static n2ce_status check(void *user, uint64_t step) {
    return step > 0 ? score_test(user, step) : N2CE_OK;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static n2ce_status open_run(damc_run *r, const n2_prior_spec *prior) {
    const n2_anomaly_job *job = r->job;
    const n2_anomaly_split *s = job->split;
    const n2_damc_spec spec = spec_of(&job->effort, prior);
    const n2_damc_training training = training_of(job, prior->kind);
    n2_damc model;
    N2_TRY(n2_store_new(job->ctx, sizeof(float), &r->store));
    N2_TRY(n2_damc_new(r->store, &spec, 10 * job->seed + 1, &model));
    r->train = add_pictures(r->store, "train", s->pictures, s->train, s->n_train);
    r->test = add_pictures(r->store, "test", s->pictures, s->test, s->n_test);
    r->scores.misfit = n2_arena_alloc(job->arena, s->n_test, sizeof(double));
    r->scores.prior = n2_arena_alloc(job->arena, s->n_test, sizeof(double));
    if (!r->train || !r->test || !r->scores.misfit || !r->scores.prior) return N2CE_ENOMEM;
    N2_TRY(n2_damc_learner_new(r->store, &model, &training, r->train, &r->learner));
    return n2_damc_scorer_new(r->store, &r->learner.model, r->test, least(s->n_test, SCORED), MOVES,
                              MOVE, &r->scorer);
}

static n2ce_status learn(damc_run *r) {
    n2_phase phase = n2_damc_phase(&r->learner);
    const uint64_t checks = r->job->effort.checks;
    phase.renew = checks > 0 && checks < phase.steps ? check : NULL;
    phase.renew_every = phase.renew ? phase.steps / checks : 0;
    const n2_trainer trainer = {.store = r->store,
                                .user = r,
                                .phases = &phase,
                                .n_phases = 1,
                                .ready = ready,
                                .choice = r->job->effort.choice};
    n2_phase_record record;
    N2_TRY(n2_train(&trainer, &record));
    return score_test(r, record.steps);
}

static n2ce_status score_by(const n2_anomaly_job *job, const n2_prior_spec *prior,
                            n2_anomaly_scores *out) {
    damc_run r = {.job = job, .out = out};
    n2ce_status status = open_run(&r, prior);
    if (status == N2CE_OK) status = learn(&r);
    n2_damc_scorer_free(r.scorer);
    n2_store_free(r.store);
    if (status != N2CE_OK) return status;
    out->parts[0] = (n2_anomaly_part){"misfit", r.scores.misfit};
    out->parts[1] = (n2_anomaly_part){"prior", r.scores.prior};
    out->n_parts = 2;
    return N2CE_OK;
}

static n2ce_status score_by_ratios(const n2_anomaly_job *job, double magnitude, int64_t stages,
                                   n2_anomaly_scores *out) {
    n2_prior_spec prior = n2_prior_defaults();
    prior.magnitude = magnitude;
    prior.noise = (int64_t)magnitude;
    prior.stages = stages;
    return score_by(job, &prior, out);
}

n2ce_status n2_anomaly_damc_mle(const n2_anomaly_job *job, n2_anomaly_scores *out) {
    n2_prior_spec prior = n2_prior_defaults();
    prior.kind = N2_PRIOR_MLE;
    prior.stages = 1;
    return score_by(job, &prior, out);
}

n2ce_status n2_anomaly_damc_1(const n2_anomaly_job *job, n2_anomaly_scores *out) {
    return score_by_ratios(job, 1, 1, out);
}

n2ce_status n2_anomaly_damc_100(const n2_anomaly_job *job, n2_anomaly_scores *out) {
    return score_by_ratios(job, 100, 1, out);
}

n2ce_status n2_anomaly_damc_100_k3(const n2_anomaly_job *job, n2_anomaly_scores *out) {
    return score_by_ratios(job, 100, 3, out);
}
