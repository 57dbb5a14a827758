/* The teacher, and its students. */
#include "distill_study.h"

#include "base/clock.h"

#include <math.h>
#include <unistd.h>

/* Controls have the lambda at which the gap of rewards is that of the larger M:
 * tests/unit/test_distill_losses.c. */
const n2_distill_arm n2_distill_arms[N2_DISTILL_ARMS] = {
    {"teacher", "teacher, 18 steps", N2_STUDY_TEACHER, N2_DISTILL_SID, {false, 1, 0}},
    {"start", "teacher, 10 steps", N2_STUDY_START, N2_DISTILL_DXMI, {false, 1, 0}},
    {"dxmi", "DxMI: CD", N2_STUDY_STUDENT, N2_DISTILL_DXMI, {true, 1, 1}},
    {"dxmi-m1", "DxMI: M = 1", N2_STUDY_STUDENT, N2_DISTILL_DXMI, {false, 1, 1.5}},
    {"dxmi-control",
     "DxMI: M = 1, lambda .73",
     N2_STUDY_STUDENT,
     N2_DISTILL_DXMI,
     {false, 1, 0.73}},
    {"dxmi-m100", "DxMI: M = 100", N2_STUDY_STUDENT, N2_DISTILL_DXMI, {false, 100, 1.5}},
    {"sid", "SiD", N2_STUDY_STUDENT, N2_DISTILL_SID, {false, 1, 0}},
    {"sida", "SiDA: logistic", N2_STUDY_STUDENT, N2_DISTILL_SIDA, {true, 1, 0}},
    {"sida-m1", "SiDA: M = 1", N2_STUDY_STUDENT, N2_DISTILL_SIDA, {false, 1, 0.5}},
    {"sida-control",
     "SiDA: M = 1, lambda .21",
     N2_STUDY_STUDENT,
     N2_DISTILL_SIDA,
     {false, 1, 0.21}},
    {"sida-m10", "SiDA: M = 10", N2_STUDY_STUDENT, N2_DISTILL_SIDA, {false, 10, 0.5}},
    {"sida-m50", "SiDA: M = 50", N2_STUDY_STUDENT, N2_DISTILL_SIDA, {false, 50, 0.5}},
    {"sida-m100", "SiDA: M = 100", N2_STUDY_STUDENT, N2_DISTILL_SIDA, {false, 100, 0.5}},
};

/* ---- lengths ---- */

static double effort_of(const n2_distill_study *s) {
    return n2ce_options_number(s->options, "effort");
}

static uint64_t scaled(const n2_distill_study *s, uint64_t steps, int64_t usual, int64_t batch) {
    const double seen = (double)steps * (double)usual * effort_of(s);
    return (uint64_t)fmax(1, floor(seen / (double)batch + 0.5));
}

/* --batch of the one-step arms and the teacher; DxMI has half of it. */
static int64_t batch_of(const n2_distill_study *s, int64_t usual) {
    if (n2_options_is_auto(s->options, "batch")) return usual;
    const int64_t asked = (int64_t)n2_options_count(s->options, "batch");
    return usual == 512 ? asked : (asked + 1) / 2;
}

static n2_distill_plan plan_of(const n2_distill_study *s, const n2_distill_arm *arm,
                               uint64_t seed) {
    n2_distill_plan p = n2_distill_defaults(arm->method);
    const int64_t batch = batch_of(s, p.batch);
    p.steps = scaled(s, p.steps, p.batch, batch);
    p.batch = batch;
    p.critic = arm->critic;
    p.fall = n2ce_options_number(s->options, "decay");
    p.seed = seed;
    const double seen = (double)p.steps * (double)batch;
    p.alone = fmin(p.alone, seen / 20);
    p.by_score = fmin(p.by_score, seen / 20);
    if (!n2_options_is_auto(s->options, "rate")) p.rate = n2ce_options_number(s->options, "rate");
    if (!n2_options_is_auto(s->options, "sampler-rate"))
        p.sampler_rate = n2ce_options_number(s->options, "sampler-rate");
    return p;
}

static n2_denoiser_run run_of(n2_distill_study *s) {
    return (n2_denoiser_run){.looks = (size_t)n2_options_count(s->options, "looks"),
                             .watch = s->watch,
                             .watched = (size_t)n2_options_count(s->options, "watched"),
                             .choice = &s->choice,
                             .quiet = true};
}

/* ---- the teacher ---- */

static n2ce_status train_teacher(n2_distill_study *s, n2_runner *runner, const char *path) {
    n2_denoiser_schedule schedule = n2_denoiser_schedule_default();
    const int64_t batch = batch_of(s, schedule.batch);
    n2_denoiser_run run = run_of(s);
    n2_denoiser_spec spec;
    schedule.steps = scaled(s, schedule.steps, schedule.batch, batch);
    schedule.batch = batch;
    schedule.seed = s->first_seed;
    schedule.ramp = fmin(schedule.ramp, (double)schedule.steps * (double)batch / 20);
    run.quiet = false;
    s->taught = n2_arena_alloc(s->arena, 1, sizeof *s->taught);
    if (!s->taught) return N2CE_ENOMEM;
    const int64_t width = n2_options_is_auto(s->options, "width")
                              ? 0
                              : (int64_t)n2_options_count(s->options, "width");
    N2_TRY(n2_denoiser_spec_for(s->ctx, "s", s->set.train, width, 0, &spec));
    N2_TRY(n2_denoiser_new(runner->inner, &spec, schedule.seed, &s->teacher));
    N2_TRY(n2_denoiser_train(s->teacher, s->set.train, &schedule, &run, s->taught));
    return path ? n2_denoiser_save(s->teacher, NULL, path, false) : N2CE_OK;
}

n2ce_status n2_distill_find_teacher(n2_distill_study *s, n2_runner *runner) {
    const char *path = n2ce_options_get(s->options, "teacher");
    const double start = n2_seconds();
    if (path && access(path, R_OK) == 0) {
        N2_TRY(n2_denoiser_load(s->ctx, path, &s->teacher));
        s->teacher->backend = n2_choice_backend(&s->choice);
        return n2_denoiser_check_size(s->ctx, &s->teacher->spec, s->set.train);
    }
    const n2ce_status status = train_teacher(s, runner, path);
    s->taught_seconds = n2_seconds() - start;
    if (status == N2CE_OK || status == N2CE_ECANCELED) return status;
    return *n2ce_errmsg(runner->inner) ? n2_fail(s->ctx, status, "%s", n2ce_errmsg(runner->inner))
                                       : status;
}

/* ---- arms ---- */

/* The mean distance over what was seen, by trapezoids. */
static double mean_along(const n2_curve *c) {
    double area = 0;
    for (size_t i = 1; i < c->n; i++)
        area += (c->point[i].seen - c->point[i - 1].seen) *
                (c->point[i].distance + c->point[i - 1].distance) / 2;
    return c->n > 1 ? area / (c->point[c->n - 1].seen - c->point[0].seen) : N2_NAN;
}

static void note_training(const n2_distill_arm *arm, const n2_denoiser_record *record,
                          n2_distill_run *run) {
    const int at = arm->method == N2_DISTILL_DXMI ? 1 : 2; /* of the curve's numbers */
    const n2_curve_point *last = &record->curve.point[record->curve.n - 1];
    run->curve = record->curve;
    run->score.along = mean_along(&record->curve);
    run->score.seen = last->seen;
    if (arm->method == N2_DISTILL_SID) return;
    run->score.real = last->number[at];
    run->score.made = last->number[at + 1];
}

static n2ce_status judge(n2_distill_study *s, const n2_images *made, bool first,
                         n2_distill_run *run) {
    n2_set_distance d;
    N2_TRY(n2_watch_all(s->watch, made, &d, &run->score.classes));
    run->score.frechet = d.frechet.distance;
    run->score.kid = d.kid.mean;
    run->score.precision = d.neighbours.precision;
    run->score.recall = d.neighbours.recall;
    const size_t n = made->n < N2_DISTILL_SHOWN ? made->n : N2_DISTILL_SHOWN;
    /* without libpng a report has no sheets */
    if (first && n2_images_sheet_bytes(made, n, 0, &run->sheet) != N2CE_OK)
        n2_text_free(&run->sheet);
    return N2CE_OK;
}

/* Samples are the same draws for all arms. */
static n2ce_status sample_and_judge(n2_distill_study *s, n2_denoiser *m, const n2_sampling *how,
                                    size_t seed, n2_distill_run *run) {
    n2_images *made;
    N2_TRY(n2_denoiser_sample(m, how, -1, s->number, s->first_seed + seed, &made));
    const n2ce_status status = judge(s, made, seed == 0, run);
    n2_images_free(made);
    return status;
}

static n2ce_status train_arm(n2_distill_study *s, n2_runner *runner, const n2_distill_arm *arm,
                             size_t seed, n2_distill_run *run) {
    const n2_distillation task = {.teacher = s->teacher,
                                  .pictures = s->set.train,
                                  .plan = plan_of(s, arm, s->first_seed + seed)};
    const n2_denoiser_run how = run_of(s);
    n2_denoiser *student = NULL;
    n2_denoiser_record *record = n2_alloc(s->ctx, 1, sizeof *record);
    n2ce_status status =
        record ? n2_distill(runner->inner, &task, &how, &student, record) : N2CE_ENOMEM;
    if (status == N2CE_OK) {
        const n2_sampling sampling = n2_denoiser_sampling(&student->spec);
        note_training(arm, record, run);
        status = sample_and_judge(s, student, &sampling, seed, run);
    }
    n2_denoiser_free(student);
    n2_free(s->ctx, record);
    return status;
}

n2ce_status n2_distill_run_arm(n2_distill_study *s, n2_runner *runner, size_t which, size_t seed) {
    const n2_distill_arm *arm = &n2_distill_arms[which];
    const n2_sampling ten = {.kind = N2_SAMPLER_ANCESTRAL, .steps = 10};
    const n2_sampling heun = n2_denoiser_sampling(&s->teacher->spec);
    n2_distill_run *run = n2_distill_run_at(s, which, seed);
    const double start = n2_seconds();
    run->score = (n2_distill_score){.along = N2_NAN, .real = N2_NAN, .made = N2_NAN};
    const n2ce_status status =
        arm->source == N2_STUDY_STUDENT ? train_arm(s, runner, arm, seed, run)
        : arm->source == N2_STUDY_START ? sample_and_judge(s, s->teacher, &ten, seed, run)
                                        : sample_and_judge(s, s->teacher, &heun, seed, run);
    run->failed = status == N2CE_ENAN; /* which is a result */
    run->done = status == N2CE_OK;
    run->seconds = n2_seconds() - start;
    return run->failed ? N2CE_OK : status;
}
