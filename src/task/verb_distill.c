/* distill: a diffusion model into a generator of one step, or of few. */
#include "base/numerics.h"
#include "checkpoint_options.h"
#include "device_options.h"
#include "diffusion/distill.h"
#include "diffusion_options.h"
#include "distill_report.h"
#include "io/file.h"
#include "ratio_session.h"
#include "vocabulary.h"

#include <math.h>

static const n2ce_option distill_options[] = {
    {"teacher", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "TEACHER",
     "a diffusion model that n2ce train wrote"},
    {"images", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "IMAGES",
     "pictures to learn from: those of the teacher, as train takes them"},
    {"output", 'o', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE", "write the model here"},
    N2_FORCE_OPTION,
    {"method", 0, N2CE_OPTION_WORD, "sida", 0, 0, "sid|sida|sid2a|dxmi", "NAME",
     "way to distil: sid, sida and sid2a to one step; dxmi to --steps of them"},
    {"loss", 0, N2CE_OPTION_WORD, "n2ce", 0, 0, "n2ce|published", "NAME",
     "loss that tells real pictures from made ones: N2CE, or as published: logistic, of dxmi "
     "contrastive divergence"},
    {"M", 'M', N2CE_OPTION_REAL, "auto", 1, 1e12, NULL, "M",
     "noise magnitude of that loss; auto: 50, of dxmi 100"},
    {"lambda", 0, N2CE_OPTION_REAL, "auto", 0, 1e9, NULL, "L",
     "ratio regularisation of that loss: times the mean squares of log ratios; auto: 0.5, of dxmi "
     "1.5"},
    {"generator", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "STUDENT",
     "student that the generator begins as: of sid2a, one by sid; default: the teacher"},
    {"seen", 0, N2CE_OPTION_REAL, "auto", 1, 1e12, NULL, "N",
     "pictures to learn from in all, each counted as often as it comes; auto: 1.8e6, of dxmi "
     "5e5"},
    {"batch", 0, N2CE_OPTION_COUNT, "auto", 2, 1e5, NULL, "N",
     "rows a step: pictures; auto: 512, of dxmi 256"},
    {"rate", 0, N2CE_OPTION_REAL, "auto", 1e-9, 1, NULL, "R",
     "learning rate of generator and fake score, or of the sampler; auto: 1e-4, of dxmi 3e-6"},
    N2_DECAY_OPTION("0"),
    {"alpha", 0, N2CE_OPTION_REAL, "1.2", -10, 10, NULL, "A", "alpha of SiD's loss"},
    {"steps", 0, N2CE_OPTION_COUNT, "10", 2, N2_FEW_STEPS_MAX, NULL, "T",
     "steps of the sampler that dxmi trains"},
    N2_HALVE_OPTION,
    N2_WATCH_OPTIONS,
    N2_TIME_LIMIT_OPTION,
    N2_CHECKPOINT_OPTIONS,
    N2_SEED_OPTION,
    N2_DEVICE_OPTION,
    N2_PICTURES_PRECISION_OPTION,
    N2_FORCE_CPU_OPTION,
    N2_REPORT_OPTION,
    {0},
};

typedef struct session {
    n2ce_ctx *ctx;
    const n2ce_options *o;
    n2_distilled d;
    n2_denoiser *teacher, *start;
    n2_images *pictures;
    n2_denoiser_run run;
    n2_device_choice choice, for_watch;
    n2_checkpoint_use checkpoint;
    char *identity;
} session;

/* ---- before ---- */

static n2_distill_method method_of(const n2ce_options *o) {
    return n2_options_has_word(o, "method", "dxmi")  ? N2_DISTILL_DXMI
           : n2_options_has_word(o, "method", "sid") ? N2_DISTILL_SID
                                                     : N2_DISTILL_SIDA;
}

static n2_distill_plan read_plan(const n2ce_options *o) {
    n2_distill_plan p = n2_distill_defaults(method_of(o));
    double seen = (double)p.steps * (double)p.batch;
    p.critic.published = n2_options_has_word(o, "loss", "published");
    if (!n2_options_is_auto(o, "M")) p.critic.magnitude = n2ce_options_number(o, "M");
    if (!n2_options_is_auto(o, "lambda")) p.critic.lambda = n2ce_options_number(o, "lambda");
    if (!n2_options_is_auto(o, "batch")) p.batch = (int64_t)n2_options_count(o, "batch");
    if (!n2_options_is_auto(o, "seen")) seen = n2ce_options_number(o, "seen");
    if (!n2_options_is_auto(o, "rate")) p.rate = p.sampler_rate = n2ce_options_number(o, "rate");
    p.fall = n2ce_options_number(o, "decay");
    p.alpha = n2ce_options_number(o, "alpha");
    p.sampler_steps = (size_t)n2_options_count(o, "steps");
    p.steps = (uint64_t)fmax(1, floor(seen / (double)p.batch + 0.5));
    p.alone = fmin(p.alone, seen / 20);
    p.by_score = fmin(p.by_score, seen / 20);
    p.seed = n2_options_count(o, "seed");
    return p;
}

static n2ce_status load_models(session *s) {
    const char *start = n2ce_options_get(s->o, "generator");
    const bool again = n2_options_has_word(s->o, "method", "sid2a");
    if (again != (start != NULL))
        return n2_fail(s->ctx, N2CE_EINVAL,
                       again
                           ? "sid2a begins with a student that sid made: name it with --generator."
                           : "--generator is for --method sid2a.");
    N2_TRY(n2_denoiser_load(s->ctx, n2ce_options_get(s->o, "teacher"), &s->teacher));
    if (!start) return N2CE_OK;
    N2_TRY(n2_denoiser_load(s->ctx, start, &s->start));
    if (s->start->spec.kind == N2_DENOISER_ONE_STEP) return N2CE_OK;
    return n2_fail(s->ctx, N2CE_EINVAL,
                   "%s makes no pictures in one step: name a student that --method sid made.",
                   start);
}

/* A step takes as long as four of a teacher's training, or of DxMI as six. */
static n2ce_status check_time(session *s) {
    const n2_distill_plan *p = &s->d.task.plan;
    double seconds = 0;
    if (n2_choice_backend(&s->choice)->device) return N2CE_OK;
    N2_TRY(n2_denoiser_step_seconds(s->ctx, &s->teacher->spec, p->batch, &seconds));
    seconds *= (p->method == N2_DISTILL_DXMI ? 6 : 4) * (double)p->steps;
    return n2_diffusion_check_time(s->ctx, s->o, &s->choice, p->steps, p->batch, seconds);
}

static n2ce_status check_names(session *s) {
    static const char *const needed[] = {"teacher", "images", "output"};
    for (size_t i = 0; i < 3; i++) N2_TRY(n2_option_needed(s->ctx, s->o, "distill", needed[i]));
    s->d.output = n2ce_options_get(s->o, "output");
    N2_TRY(n2_file_check_output(s->ctx, s->d.output, n2_options_flag(s->o, "force")));
    return n2_checkpoint_of_options(s->ctx, s->o, s->d.output, &s->checkpoint);
}

static n2ce_status prepare(session *s) {
    N2_TRY(check_names(s));
    N2_TRY(load_models(s));
    N2_TRY(n2_diffusion_check_sheet(s->ctx, s->o));
    N2_TRY(n2_diffusion_device(s->ctx, s->o, &s->choice));
    N2_TRY(n2_diffusion_pictures(s->ctx, s->o, &s->pictures));
    N2_TRY(n2_denoiser_check_size(s->ctx, &s->teacher->spec, s->pictures));
    s->d.task = (n2_distillation){s->teacher, s->start, s->pictures, read_plan(s->o)};
    N2_TRY(check_time(s));
    N2_TRY(n2_diffusion_identity(s->ctx, s->o, s->pictures, &s->identity));
    s->run = (n2_denoiser_run){.looks = (size_t)n2_options_count(s->o, "looks"),
                               .sheet = n2ce_options_get(s->o, "sheet"),
                               .checkpoint = s->checkpoint.path,
                               .resume = s->checkpoint.resume,
                               .identity = s->identity,
                               .choice = &s->choice};
    if (!n2_options_is_auto(s->o, "time-limit"))
        s->run.seconds = n2ce_options_number(s->o, "time-limit");
    return n2_open_watch(s->ctx, s->o, s->pictures, &s->choice, &s->for_watch, &s->run);
}

static n2ce_status run_session(session *s, n2ce_answer *answer) {
    N2_TRY(prepare(s));
    const n2ce_status status = n2_distill(s->ctx, &s->d.task, &s->run, &s->d.student, &s->d.record);
    if (status == N2CE_ECANCELED) return n2_checkpoint_stopped(s->ctx, &s->checkpoint, answer);
    N2_TRY(status);
    N2_TRY(n2_denoiser_save(s->d.student, NULL, s->d.output, n2_options_flag(s->o, "force")));
    n2_checkpoint_used_up(s->ctx, &s->checkpoint);
    s->d.options = s->o;
    s->d.device = n2_choice_name(&s->choice);
    s->d.watched = s->run.watch ? s->run.watched : 0;
    return n2_distill_answer(s->ctx, &s->d, answer);
}

static n2ce_status run_distill(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    session *s = n2_alloc(ctx, 1, sizeof *s);
    if (!s) return N2CE_ENOMEM;
    s->ctx = ctx;
    s->o = o;
    const n2ce_status status = run_session(s, answer);
    n2_distance_watch_close(s->run.watch);
    n2_denoiser_free(s->d.student);
    n2_denoiser_free(s->start);
    n2_denoiser_free(s->teacher);
    n2_images_free(s->pictures);
    n2_free(ctx, s->identity);
    n2_free(ctx, s);
    return status;
}

const n2ce_task n2_distill_task = {
    .name = "distill",
    .summary = "a diffusion model into a generator of one step, or of few",
    .description =
        "sid: a generator of one step learns from the teacher alone, against a second network "
        "that\n"
        "learns to remove noise from what the generator makes. sida: the same with real pictures,\n"
        "whose log ratio to made ones the second network learns too, by N2CE with --M and "
        "--lambda;\n"
        "sid2a: sida from a student that sid made. dxmi: a sampler of few steps against an energy\n"
        "of real pictures, learnt by N2CE. --loss published takes the losses of the authors.\n"
        "\n"
        "Progress is told as lines, with the Frechet distance of samples from the pictures. "
        "Ctrl-C\n"
        "keeps the state of training; --resume goes on from there. The student is a model of its\n"
        "own: n2ce sample needs no teacher.\n",
    .examples = "n2ce distill teacher images/ -o student\n"
                "n2ce distill teacher images/ -o student --method sida -M 50 --lambda 0.5 --report "
                "out\n"
                "n2ce distill teacher images/ -o ten --method dxmi --steps 10\n",
    .page = "distill.html",
    .data = "distill.json",
    .options = distill_options,
    .operands = "teacher images",
    .run = run_distill,
};
