/* The autoencoder of a seed, and the priors of its codes. */
#include "images_study.h"
#include "lebm/prior_fit.h"

#include "base/clock.h"

#include <stdio.h>

const n2_images_arm n2_images_arms[N2_IMAGES_ARMS] = {
    {"codes", "codes of pictures", N2_IMAGES_CODES, 0, N2_PRIOR_GAUSSIAN, 1, 1, false},
    {"vae", "N(0, I): the VAE alone", N2_IMAGES_NORMAL, 0, N2_PRIOR_GAUSSIAN, 1, 1, false},
    {"gaussian", "a full Gaussian, fitted", N2_IMAGES_FITTED, 1, N2_PRIOR_GAUSSIAN, 1, 1, false},
    {"mixture", "10 Gaussians, fitted", N2_IMAGES_FITTED, 10, N2_PRIOR_GAUSSIAN, 1, 1, false},
    {"mle-normal", "maximum likelihood, N(0, I)", N2_IMAGES_LEARNT, 0, N2_PRIOR_MLE, 1, 1, true},
    {"n2ce-m1-normal", "NCE: M = 1, N(0, I)", N2_IMAGES_LEARNT, 0, N2_PRIOR_N2CE, 1, 1, true},
    {"n2ce-normal", "N2CE: M = 100, K = 3, N(0, I)", N2_IMAGES_LEARNT, 0, N2_PRIOR_N2CE, 100, 3,
     true},
    {"mle", "maximum likelihood", N2_IMAGES_LEARNT, 0, N2_PRIOR_MLE, 1, 1, false},
    {"n2ce-m1", "NCE: M = 1, K = 1", N2_IMAGES_LEARNT, 0, N2_PRIOR_N2CE, 1, 1, false},
    {"n2ce-k1", "N2CE: M = 100, K = 1", N2_IMAGES_LEARNT, 0, N2_PRIOR_N2CE, 100, 1, false},
    {"n2ce", "N2CE: M = 100, K = 3", N2_IMAGES_LEARNT, 0, N2_PRIOR_N2CE, 100, 3, false},
};

enum { BETWEEN = 8, MIXTURE_ROWS = 20000 };

typedef struct seed_work {
    n2_images_study *s;
    n2_runner *runner;
    size_t k; /* seed */
    n2_lebm *vae;
    float *codes; /* posteriors of all pictures, and of mirror images if they are learnt from */
    size_t n_codes;
    double *held; /* codes of pictures that were not learnt from, if there are such */
    size_t n_held;
} seed_work;

bool n2_images_is_done(const n2_images_study *s, size_t arm, size_t seed) {
    const n2_images_run *r = n2_images_run_at(s, arm, seed);
    return r->failed || (r->score[N2_IMAGES_FROZEN].done &&
                         (r->score[N2_IMAGES_JOINT].done || !n2_images_has_joint(s, arm)));
}

static uint64_t seed_of(const seed_work *w) { return w->s->first_seed + w->k; }

/* ---- pictures for the report ---- */

static n2ce_status keep_sheet(const seed_work *w, const n2_images *p, size_t columns,
                              n2_text *sheet) {
    if (w->k > 0 || !n2ce_options_get(w->s->options, "report")) return N2CE_OK;
    n2_text_free(sheet);
    *sheet = n2_text_new(w->s->ctx);
    return n2_images_sheet_bytes(p, p->n < N2_IMAGES_SHOWN ? p->n : N2_IMAGES_SHOWN, columns,
                                 sheet);
}

/* Eight chains, a row each, after so many moves. */
static n2ce_status show_chains(const seed_work *w, n2_lebm *m) {
    static const uint64_t moves[BETWEEN] = {0, 1, 2, 5, 10, 20, 50, N2_IMAGES_MOVES};
    n2_images *column = NULL, *sheet = NULL;
    n2_lebm_sampler *sampler;
    n2_lebm_sampling how = n2_lebm_sampling_of(w->s->options);
    how.rows = BETWEEN;
    N2_TRY(n2_lebm_sampler_open(m, &how, &sampler));
    n2ce_status status = n2_lebm_blank(m, BETWEEN * BETWEEN, &sheet);
    if (status == N2CE_OK) status = n2_lebm_sampler_begin(sampler, seed_of(w), 0);
    for (size_t i = 0; i < BETWEEN && status == N2CE_OK; i++) {
        status = n2_lebm_sampler_move(sampler, moves[i] - (i ? moves[i - 1] : 0));
        if (status == N2CE_OK) status = n2_lebm_sampler_show(sampler, BETWEEN, sheet, i * BETWEEN);
    }
    /* columns became rows: picture (i, k) is chain k after moves i */
    size_t order[BETWEEN * BETWEEN];
    for (size_t i = 0; i < BETWEEN * BETWEEN; i++) order[i] = i % BETWEEN * BETWEEN + i / BETWEEN;
    if (status == N2CE_OK) status = n2_images_pick(sheet, order, BETWEEN * BETWEEN, &column);
    if (status == N2CE_OK) status = keep_sheet(w, column, BETWEEN, &w->s->chains);
    n2_images_free(column);
    n2_images_free(sheet);
    n2_lebm_sampler_close(sampler);
    return status;
}

/* Reconstructions and lines between pictures that were not learnt from, if there are such. */
static n2ce_status show_pictures(const seed_work *w, n2_lebm *m) {
    n2_images some = w->s->set.test ? *w->s->set.test : *w->s->set.train;
    n2_images *pairs = NULL, *lines = NULL;
    if (some.n > N2_IMAGES_SHOWN / 2) some.n = N2_IMAGES_SHOWN / 2;
    n2ce_status status = n2_lebm_reconstruct(m, &some, &pairs);
    if (status == N2CE_OK) status = keep_sheet(w, pairs, BETWEEN, &w->s->pairs);
    some.n = some.n < 2 * BETWEEN ? some.n : 2 * BETWEEN;
    if (status == N2CE_OK) status = n2_lebm_interpolate(m, &some, BETWEEN, &lines);
    if (status == N2CE_OK) status = keep_sheet(w, lines, BETWEEN, &w->s->lines);
    n2_images_free(pairs);
    n2_images_free(lines);
    return status;
}

static bool shows(const seed_work *w) {
    return w->k == 0 && n2ce_options_get(w->s->options, "report");
}

/* ---- training ---- */

static n2ce_status train(const seed_work *w, n2_lebm *m, const n2_lebm_plan *plan,
                         n2_lebm_phase phase, n2_lebm_record *record) {
    n2_lebm_run run = {.schedule = plan->schedule, .choice = &w->s->choice, .quiet = true};
    for (size_t i = 0; i < N2_LEBM_PHASES; i++)
        if (i != phase && !(i == N2_LEBM_SETTLE && phase == N2_LEBM_JOINT))
            run.schedule.steps[i] = 0;
    run.schedule.seed = seed_of(w);
    return n2_lebm_train(m, w->s->set.train, &run, record);
}

static n2ce_status train_vae(seed_work *w) {
    n2_images_study *s = w->s;
    n2_lebm_record record;
    n2_lebm_plan plan = s->plan;
    const double start = n2_seconds();
    n2_lebm_plan_prior(s->options, N2_PRIOR_GAUSSIAN, 1, 1, &plan);
    N2_TRY(n2_lebm_new(w->runner->inner, &plan.spec, seed_of(w), &w->vae));
    N2_TRY(train(w, w->vae, &plan, N2_LEBM_VAE, &record));
    s->vae_seconds = n2_seconds() - start;
    if (w->k == 0) s->vae = record;
    return N2CE_OK;
}

static n2ce_status code_pictures(seed_work *w) {
    const n2_images *p = w->s->set.train;
    const size_t half = p->n * 2 * (size_t)w->vae->nets.spec.nz;
    const bool both = w->s->plan.schedule.flips;
    w->n_codes = both ? 2 * p->n : p->n;
    w->codes = n2_alloc(w->s->ctx, both ? 2 * half : half, sizeof *w->codes);
    if (!w->codes) return N2CE_ENOMEM;
    N2_TRY(n2_lebm_codes(w->vae, p, false, w->codes));
    return both ? n2_lebm_codes(w->vae, p, true, w->codes + half) : N2CE_OK;
}

/* A draw of the posterior of each. */
static n2ce_status code_held(seed_work *w) {
    enum { MOST = 5000 };
    const size_t nz = (size_t)w->vae->nets.spec.nz;
    n2_images some = w->s->set.test ? *w->s->set.test : *w->s->set.train;
    w->n_held = some.n = some.n < MOST ? some.n : MOST;
    float *codes = n2_alloc(w->s->ctx, some.n * 2 * nz, sizeof *codes);
    w->held = n2_alloc(w->s->ctx, some.n * nz, sizeof *w->held);
    n2ce_status status = codes && w->held ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_lebm_codes(w->vae, &some, false, codes);
    if (status == N2CE_OK) n2_code_draw(codes, some.n, nz, seed_of(w), w->held);
    n2_free(w->s->ctx, codes);
    return status;
}

/* ---- samples ---- */

static n2ce_status judge(const seed_work *w, n2_images *made, n2_images_run *run, size_t stage) {
    n2ce_status status = n2_images_judge(w->s, made, &run->score[stage]);
    if (status == N2CE_OK) status = keep_sheet(w, made, 0, &run->sheet);
    n2_images_free(made);
    return status;
}

/* Pictures of codes that somebody else drew, which are freed. */
static n2ce_status judge_codes(const seed_work *w, double *z, n2ce_status status,
                               n2_images_run *run) {
    n2_images *made;
    if (status == N2CE_OK && !z) status = N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_lebm_decode(w->vae, z, w->s->number, &made);
    n2_free(w->s->ctx, z);
    return status == N2CE_OK ? judge(w, made, run, N2_IMAGES_FROZEN) : status;
}

/* A draw of the posterior of pictures at equal steps, again from the first on if more are to be
 * made. */
static n2ce_status run_codes(const seed_work *w, n2_images_run *run) {
    const size_t nz = (size_t)w->vae->nets.spec.nz, n = w->s->number, all = w->s->set.train->n;
    double *z = n2_alloc(w->s->ctx, n * nz, sizeof *z);
    for (size_t i = 0; z && i < n; i++) {
        const size_t from = n < all ? i * all / n : i % all;
        n2_code_draw(w->codes + from * 2 * nz, 1, nz, seed_of(w) + i, z + i * nz);
    }
    return judge_codes(w, z, N2CE_OK, run);
}

/* So many rows of all codes, at equal steps, each drawn once. */
static n2ce_status fit_mixture(const seed_work *w, size_t k, n2_code_mixture *m) {
    const size_t nz = (size_t)w->vae->nets.spec.nz;
    const size_t n = w->n_codes < MIXTURE_ROWS ? w->n_codes : MIXTURE_ROWS;
    double *z = n2_alloc(w->s->ctx, n * nz, sizeof *z);
    if (!z) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++)
        n2_code_draw(w->codes + i * w->n_codes / n * 2 * nz, 1, nz, seed_of(w) + i, z + i * nz);
    const n2ce_status status = n2_code_mixture_fit(w->s->ctx, z, n, nz, k, seed_of(w), m);
    n2_free(w->s->ctx, z);
    return status;
}

static n2ce_status run_fitted(const seed_work *w, size_t k, n2_images_run *run) {
    n2_images_study *s = w->s;
    const size_t nz = (size_t)w->vae->nets.spec.nz;
    n2_code_mixture m;
    double gain;
    N2_TRY(k == 1 ? n2_code_gaussian_fit(s->ctx, w->codes, w->n_codes, nz, &m)
                  : fit_mixture(w, k, &m));
    double *z = n2_alloc(s->ctx, s->number * nz, sizeof *z);
    n2ce_status status = n2_code_mixture_gain(s->ctx, &m, w->held, w->n_held, &gain);
    if (status == N2CE_OK && z)
        status = n2_code_mixture_sample(s->ctx, &m, s->number, seed_of(w), z);
    n2_code_mixture_free(s->ctx, &m);
    N2_TRY(judge_codes(w, z, status, run));
    run->score[N2_IMAGES_FROZEN].gain = gain;
    return N2CE_OK;
}

static n2ce_status sample(const seed_work *w, n2_lebm *m, n2_images_run *run, size_t stage) {
    n2_images *made;
    const n2_lebm_sampling how = n2_lebm_sampling_of(w->s->options);
    N2_TRY(n2_lebm_sample(m, &how, w->s->number, N2_IMAGES_MOVES, seed_of(w), &made));
    return judge(w, made, run, stage);
}

/* Where Z rests on hardly a draw, nothing is known. */
static n2ce_status note_gain(const seed_work *w, n2_lebm *m, n2_images_score *score) {
    enum { FEW = 20 };
    n2_lebm_gain gain;
    N2_TRY(n2_lebm_prior_gain(m, w->held, w->n_held, seed_of(w), &gain));
    score->gain = gain.draws >= FEW ? gain.nats : N2_NAN;
    return N2CE_OK;
}

/* On codes that stand still, then all together. */
static n2ce_status learn(const seed_work *w, const n2_lebm_plan *plan, n2_lebm *m, size_t arm) {
    n2_images_run *run = n2_images_run_at(w->s, arm, w->k);
    run->record = n2_arena_alloc(w->s->arena, 2, sizeof *run->record);
    if (!run->record) return N2CE_ENOMEM;
    N2_TRY(n2_lebm_take_vae(m, w->vae));
    N2_TRY(train(w, m, plan, N2_LEBM_PRIOR, &run->record[N2_IMAGES_FROZEN]));
    N2_TRY(sample(w, m, run, N2_IMAGES_FROZEN));
    N2_TRY(note_gain(w, m, &run->score[N2_IMAGES_FROZEN]));
    if (n2_images_has_joint(w->s, arm)) {
        N2_TRY(train(w, m, plan, N2_LEBM_JOINT, &run->record[N2_IMAGES_JOINT]));
        N2_TRY(sample(w, m, run, N2_IMAGES_JOINT));
    }
    if (arm + 1 < N2_IMAGES_ARMS || !shows(w)) return N2CE_OK;
    N2_TRY(show_chains(w, m));
    return show_pictures(w, m);
}

static n2ce_status run_learnt(const seed_work *w, size_t arm) {
    const n2_images_arm *a = &n2_images_arms[arm];
    n2_lebm_plan plan = w->s->plan;
    n2_lebm *m;
    n2_lebm_plan_prior(w->s->options, a->kind, a->magnitude, a->stages, &plan);
    if (a->over_normal) plan.spec.prior.fitted = false;
    N2_TRY(n2_lebm_new(w->runner->inner, &plan.spec, seed_of(w), &m));
    const n2ce_status status = learn(w, &plan, m, arm);
    n2_lebm_free(m);
    return status;
}

static n2ce_status run_arm(const seed_work *w, size_t arm) {
    n2_images_run *run = n2_images_run_at(w->s, arm, w->k);
    switch (n2_images_arms[arm].source) {
    case N2_IMAGES_CODES:
        return run_codes(w, run);
    case N2_IMAGES_NORMAL:
        return sample(w, w->vae, run, N2_IMAGES_FROZEN);
    case N2_IMAGES_FITTED:
        return run_fitted(w, n2_images_arms[arm].components, run);
    case N2_IMAGES_LEARNT:
        break;
    }
    return run_learnt(w, arm);
}

static void tell(const seed_work *w, size_t arm) {
    const n2_images_run *run = n2_images_run_at(w->s, arm, w->k);
    char joint[64] = "";
    if (run->failed)
        n2_log(w->s->ctx, N2CE_LOG_WARNING, "seed %llu, %s: %s", (unsigned long long)seed_of(w),
               n2_images_arms[arm].name, n2ce_errmsg(w->runner->inner));
    if (!run->score[N2_IMAGES_FROZEN].done) return;
    if (run->score[N2_IMAGES_JOINT].done)
        snprintf(joint, sizeof joint, "; joint %.4g", run->score[N2_IMAGES_JOINT].frechet);
    n2_log(w->s->ctx, N2CE_LOG_INFO, "seed %llu, %s: Frechet distance %.4g%s, in %.0f s",
           (unsigned long long)seed_of(w), n2_images_arms[arm].name,
           run->score[N2_IMAGES_FROZEN].frechet, joint, run->seconds);
}

static n2ce_status run_arms(seed_work *w) {
    n2_images_study *s = w->s;
    for (size_t arm = 0; arm < N2_IMAGES_ARMS; arm++) {
        if (!s->asked[arm] || n2_images_is_done(s, arm, w->k)) continue;
        s->out_of_time = s->deadline > 0 && n2_seconds() > s->deadline;
        if (s->out_of_time) return N2CE_OK;
        const double start = n2_seconds();
        const n2ce_status status = run_arm(w, arm);
        if (status == N2CE_ECANCELED || n2_cancelled(s->ctx)) return N2CE_ECANCELED;
        n2_images_run *run = n2_images_run_at(s, arm, w->k);
        run->failed = status == N2CE_ENAN; /* which is a result */
        if (status != N2CE_OK && !run->failed) return status;
        run->seconds = n2_seconds() - start;
        tell(w, arm);
        n2_runner_done(w->runner, (double)++s->n_done);
    }
    return N2CE_OK;
}

n2ce_status n2_images_run_seed(n2_images_study *s, n2_runner *runner, size_t seed) {
    seed_work w = {.s = s, .runner = runner, .k = seed};
    n2ce_status status = train_vae(&w);
    if (status == N2CE_OK && !s->real) status = n2_images_judge_open(s);
    if (status == N2CE_OK) status = code_pictures(&w);
    if (status == N2CE_OK) status = code_held(&w);
    if (status == N2CE_OK) status = run_arms(&w);
    /* the parts of a study have a context of their own: what it says is said again */
    if (status != N2CE_OK && status != N2CE_ECANCELED && *n2ce_errmsg(runner->inner))
        status = n2_fail(s->ctx, status, "%s", n2ce_errmsg(runner->inner));
    n2_lebm_free(w.vae);
    n2_free(s->ctx, w.codes);
    n2_free(s->ctx, w.held);
    return n2_cancelled(s->ctx) ? N2CE_ECANCELED : status;
}
