/* "study distill": its options, and the order of its work. */
#include "distill_study.h"

#include "base/clock.h"
#include "comm/comm.h"
#include "task/device_options.h"
#include "task/diffusion_options.h"
#include "task/vocabulary.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const n2ce_option options_table[] = {
    {"set", 0, N2CE_OPTION_WORD, "cifar10", 0, 0, "mnist|cifar10|svhn", "NAME",
     "pictures to learn: the set of this name in the folder of data"},
    {"data", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "DIR",
     "folder of data, with the files of a set in images/NAME; else the environment variable "
     "N2CE_DATA"},
    {"images", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "IMAGES",
     "pictures to learn from instead: files or folders, separated by commas"},
    {"test", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "IMAGES",
     "pictures beside --images that are not learnt from, for the floor"},
    {"subset", 0, N2CE_OPTION_COUNT, "0", 0, 1e6, NULL, "N",
     "learn from N pictures only, at equal steps, for a quick look; 0: all"},
    {"halve", 0, N2CE_OPTION_COUNT, "1", 0, 8, NULL, "N",
     "halve the sides of the pictures N times first, for a diffusion model: means of 2 x 2 pixels"},
    {"teacher", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "TEACHER",
     "a diffusion model of these pictures; one that is not there is trained and written here"},
    {"students", 0, N2CE_OPTION_WORDS,
     "teacher,start,dxmi,dxmi-m1,dxmi-control,dxmi-m100,sid,sida,sida-m1,sida-control,sida-m10,"
     "sida-m50,sida-m100",
     0, 0,
     "teacher|start|dxmi|dxmi-m1|dxmi-control|dxmi-m100|sid|sida|sida-m1|sida-control|sida-m10|"
     "sida-m50|sida-m100",
     "LIST", "students and samplers to compare, separated by commas"},
    {"seeds", 0, N2CE_OPTION_COUNT, "1", 1, 10000, NULL, "K", "repetitions of every run"},
    N2_FIRST_SEED_OPTION,
    {"number", 'n', N2CE_OPTION_COUNT, "auto", 40, 1e7, NULL, "N",
     "pictures to make with each arm; auto: as many as are learnt from, 50000 at most"},
    {"width", 0, N2CE_OPTION_COUNT, "auto", 4, 4096, NULL, "W",
     "width of the network: channels of the first layer; auto: 64"},
    {"batch", 0, N2CE_OPTION_COUNT, "auto", 2, 1e5, NULL, "N",
     "rows a step: pictures; auto: 512. DxMI has half of it"},
    {"rate", 0, N2CE_OPTION_REAL, "auto", 1e-9, 1, NULL, "R",
     "learning rate of generator and fake score; auto: 1e-4"},
    {"sampler-rate", 0, N2CE_OPTION_REAL, "auto", 1e-9, 1, NULL, "R",
     "learning rate of DxMI's sampler; auto: 3e-6"},
    N2_DECAY_OPTION("0"),
    {"effort", 0, N2CE_OPTION_REAL, "1", 1e-6, 100, NULL, "F",
     "factor on the steps of training: of 12.5 million pictures for the teacher, 1.8 million for "
     "SiD and SiDA, 500,000 for DxMI"},
    N2_WATCH_OPTIONS,
    {"reuse", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILES",
     "take over the runs that are in these answers (distill-study.json, or folders with it, "
     "separated by commas); make the others"},
    N2_TIME_LIMIT_OPTION,
    N2_DEVICE_OPTION,
    N2_PICTURES_PRECISION_OPTION,
    N2_FORCE_CPU_OPTION,
    N2_REPORT_OPTION,
    N2_FORCE_OPTION,
    {0},
};

/* ---- pictures and options ---- */

static n2ce_status read_set(n2_distill_study *s) {
    const char *test = n2ce_options_get(s->options, "test");
    N2_TRY(n2_images_set_read(s->ctx, s->options, &s->set));
    if (test && !s->set.test) N2_TRY(n2_images_read_list(s->ctx, test, &s->set.test));
    for (uint64_t i = n2_options_count(s->options, "halve"); i > 0; i--) {
        N2_TRY(n2_images_halve(s->set.train));
        if (s->set.test) N2_TRY(n2_images_halve(s->set.test));
    }
    return N2CE_OK;
}

/* All that decides a number of a run but its arm, its seed, and the teacher's weights. */
static void note_settings(n2_distill_study *s) {
    const char *net = n2ce_options_get(s->options, "features");
    const n2_images *p = s->set.train;
    char sum[N2_SET_SUM_ROOM];
    n2_images_set_sum(&s->set, sum);
    snprintf(s->settings, sizeof s->settings,
             "%s (%s) %zu of %zu, %zu x %zu, %s, effort %s, batch %s, width %s, rates %s and %s, "
             "decay %s, %s, %s watched at %s looks",
             s->set.name, sum, s->number, p->n, p->height, p->width,
             net ? strrchr(net, '/') ? strrchr(net, '/') + 1 : net : "patches",
             n2ce_options_get(s->options, "effort"), n2ce_options_get(s->options, "batch"),
             n2ce_options_get(s->options, "width"), n2ce_options_get(s->options, "rate"),
             n2ce_options_get(s->options, "sampler-rate"), n2ce_options_get(s->options, "decay"),
             n2ce_options_get(s->options, "precision"), n2ce_options_get(s->options, "watched"),
             n2ce_options_get(s->options, "looks"));
}

static n2ce_status read_options(n2_distill_study *s) {
    enum { MOST = 50000 };
    const n2ce_options *o = s->options;
    const char *reuse = n2ce_options_get(o, "reuse");
    const size_t n = s->set.train->n;
    s->n_seeds = (size_t)n2_options_count(o, "seeds");
    s->first_seed = n2_options_count(o, "seed");
    s->number = n2_options_is_auto(o, "number") ? (n < MOST ? n : MOST)
                                                : (size_t)n2_options_count(o, "number");
    for (size_t i = 0; i < N2_DISTILL_ARMS; i++)
        s->asked[i] = n2_options_has_word(o, "students", n2_distill_arms[i].name);
    N2_TRY(n2_diffusion_device(s->ctx, o, &s->choice));
    if (!n2_options_is_auto(o, "time-limit"))
        s->deadline = n2_seconds() + n2ce_options_number(o, "time-limit");
    s->runs = n2_arena_alloc(s->arena, N2_DISTILL_ARMS * s->n_seeds, sizeof *s->runs);
    if (!s->runs) return N2CE_ENOMEM;
    for (size_t i = 0; i < N2_DISTILL_ARMS * s->n_seeds; i++)
        s->runs[i].sheet = n2_text_new(s->ctx);
    note_settings(s);
    return reuse ? n2_distill_take_kept(s->ctx, reuse, s) : N2CE_OK;
}

/* A rough guess, from a step of the teacher: students take four such steps or six. */
static n2ce_status check_time(n2_distill_study *s) {
    const double effort = n2ce_options_number(s->options, "effort");
    const double seen[] = {
        [N2_DISTILL_SID] = 1.8e6 * 4, [N2_DISTILL_SIDA] = 1.8e6 * 4, [N2_DISTILL_DXMI] = 5e5 * 6};
    const char *teacher = n2ce_options_get(s->options, "teacher");
    double all = teacher && access(teacher, R_OK) == 0 ? 0 : 12.5e6, each = 0;
    n2_denoiser_spec spec;
    if (n2_choice_backend(&s->choice)->device) return N2CE_OK;
    const int64_t width = n2_options_is_auto(s->options, "width")
                              ? 0
                              : (int64_t)n2_options_count(s->options, "width");
    N2_TRY(n2_denoiser_spec_for(s->ctx, "s", s->set.train, width, 0, &spec));
    N2_TRY(n2_denoiser_step_seconds(s->ctx, &spec, 1, &each));
    for (size_t i = 0; i < N2_DISTILL_ARMS; i++)
        if (s->asked[i] && n2_distill_arms[i].source == N2_STUDY_STUDENT)
            all += seen[n2_distill_arms[i].method] * (double)s->n_seeds;
    return n2_diffusion_check_time(s->ctx, s->options, &s->choice, (uint64_t)(all * effort), 1,
                                   all * effort * each);
}

/* ---- the work ---- */

static size_t count_due(const n2_distill_study *s) {
    size_t n = 0;
    for (size_t i = 0; i < N2_DISTILL_ARMS; i++)
        for (size_t k = 0; k < s->n_seeds; k++) n += n2_distill_is_due(s, i, k);
    return n;
}

/* Test pictures against those learnt from; without some, the first half against the others. */
static n2ce_status find_floor(n2_distill_study *s) {
    n2_images half = *s->set.train;
    half.n /= 2;
    return n2_watch_all(s->watch, s->set.test ? s->set.test : &half, &s->floor, &s->real_classes);
}

static void tell(const n2_distill_study *s, size_t arm, size_t seed) {
    const n2_distill_run *r = n2_distill_run_at(s, arm, seed);
    n2_log(s->ctx, N2CE_LOG_INFO, "seed %llu, %s: Frechet distance %.4g, in %.0f s",
           (unsigned long long)(s->first_seed + seed), n2_distill_arms[arm].name,
           r->failed ? N2_NAN : r->score.frechet, r->seconds);
}

typedef struct dealt_runs {
    n2_distill_study *s;
    n2_runner *runner;
    size_t *due; /* numbers of runs: arms of a seed, then those of the next */
} dealt_runs;

static n2_distill_run *run_of(const dealt_runs *d, size_t i) {
    return n2_distill_run_at(d->s, d->due[i] % N2_DISTILL_ARMS, d->due[i] / N2_DISTILL_ARMS);
}

static n2ce_status run_one(void *user, size_t i) {
    const dealt_runs *d = user;
    n2_distill_study *s = d->s;
    const size_t arm = d->due[i] % N2_DISTILL_ARMS, seed = d->due[i] / N2_DISTILL_ARMS;
    s->out_of_time |= s->deadline > 0 && n2_seconds() > s->deadline;
    if (s->out_of_time) return N2CE_OK;
    const n2ce_status status = n2_distill_run_arm(s, d->runner, arm, seed);
    if (status == N2CE_ECANCELED || n2_cancelled(s->ctx)) return N2CE_ECANCELED;
    if (status != N2CE_OK)
        return *n2ce_errmsg(d->runner->inner)
                   ? n2_fail(s->ctx, status, "%s", n2ce_errmsg(d->runner->inner))
                   : status;
    tell(s, arm, seed);
    n2_runner_done(d->runner, (double)++s->n_done);
    return N2CE_OK;
}

static n2ce_status share_one(void *user, size_t i, int root) {
    const dealt_runs *d = user;
    n2_distill_study *s = d->s;
    n2_distill_run *run = run_of(d, i);
    n2_text sheet = run->sheet;
    bool late = s->out_of_time;
    N2_TRY(n2_comm_broadcast(s->ctx, root, run, sizeof *run));
    run->sheet = sheet;
    N2_TRY(n2_share_text(s->ctx, root, &run->sheet));
    N2_TRY(n2_comm_broadcast(s->ctx, root, &late, sizeof late));
    s->out_of_time |= late;
    if (n2_rank(s->ctx) != root && (run->done || run->failed))
        n2_runner_done(d->runner, (double)++s->n_done);
    return N2CE_OK;
}

/* Seed by seed, so that a study that ends early has all arms of some seeds. */
static n2ce_status run_arms(n2_distill_study *s, n2_runner *runner) {
    size_t n = 0, *due = n2_arena_alloc(s->arena, N2_DISTILL_ARMS * s->n_seeds, sizeof *due);
    if (!due) return N2CE_ENOMEM;
    for (size_t i = 0; i < N2_DISTILL_ARMS * s->n_seeds; i++)
        if (n2_distill_is_due(s, i % N2_DISTILL_ARMS, i / N2_DISTILL_ARMS)) due[n++] = i;
    return n2_comm_tasks(s->ctx, n, run_one, share_one,
                         &(dealt_runs){.s = s, .runner = runner, .due = due});
}

static n2ce_status run_study(n2_distill_study *s, n2_runner *runner) {
    n2_denoiser_run watching = {.watched = 0};
    const n2ce_status status = n2_open_watch(runner->inner, s->options, s->set.train, &s->choice,
                                             &s->for_watch, &watching);
    s->watch = watching.watch;
    if (status == N2CE_OK && !s->watch)
        return n2_fail(s->ctx, N2CE_EINVAL, "--watched is 0: a study measures distances.");
    if (status != N2CE_OK) return n2_fail(s->ctx, status, "%s", n2ce_errmsg(runner->inner));
    N2_TRY(find_floor(s));
    if (count_due(s) == 0) return N2CE_OK;
    N2_TRY(n2_distill_find_teacher(s, runner));
    return run_arms(s, runner);
}

static n2ce_status show_so_far(n2ce_ctx *ctx, const void *study, n2ce_answer *answer) {
    const n2_distill_study *s = study;
    return n2_distill_show(ctx, s, answer);
}

/* What is the inner context's goes before it. */
static n2ce_status run_and_close(n2_distill_study *s) {
    n2_runner runner;
    N2_TRY(n2_runner_open(s->ctx, (double)count_due(s) + (double)s->n_done, &runner));
    n2_runner_done(&runner, (double)s->n_done);
    n2_runner_keep(&runner, &(n2_study_keeper){.options = s->options,
                                               .file = "distill-study.json",
                                               .study = s,
                                               .show = show_so_far});
    const n2ce_status status = run_study(s, &runner);
    n2_distance_watch_close(s->watch);
    n2_denoiser_free(s->teacher);
    n2_runner_close(&runner);
    return status;
}

static n2ce_status study_with(n2ce_ctx *ctx, const n2ce_options *options, n2_arena *arena,
                              n2ce_answer *answer) {
    n2_distill_study *s = n2_arena_alloc(arena, 1, sizeof *s);
    if (!s) return N2CE_ENOMEM;
    *s = (n2_distill_study){.ctx = ctx, .options = options, .arena = arena};
    n2ce_status status = read_set(s), shown = N2CE_OK;
    if (status == N2CE_OK) status = read_options(s);
    if (status == N2CE_OK) status = check_time(s);
    if (status == N2CE_OK) status = run_and_close(s);
    s->interrupted = status == N2CE_ECANCELED;
    if ((status == N2CE_OK || s->interrupted) && s->n_done > 0)
        shown = n2_distill_show(ctx, s, answer);
    for (size_t i = 0; s->runs && i < N2_DISTILL_ARMS * s->n_seeds; i++)
        n2_text_free(&s->runs[i].sheet);
    n2_images_set_free(&s->set);
    return shown == N2CE_OK ? status : shown;
}

static n2ce_status run(n2ce_ctx *ctx, const n2ce_options *options, n2ce_answer *answer) {
    return n2_task_in_arena(ctx, options, answer, study_with);
}

const n2ce_task n2_distill_study_task = {
    .name = "study distill",
    .summary = "diffusion models: students of one teacher, by how near samples are to real",
    .description =
        "A teacher is trained on the pictures, or read; students of it are then made and judged\n"
        "by their samples. teacher: Heun's 18 steps; start: ten ancestral steps without training.\n"
        "dxmi, dxmi-m1 and dxmi-m100: ten steps by DxMI with contrastive divergence, with N2CE of\n"
        "M = 1 and M = 100 (lambda = 1.5). sid: one step. sida, sida-m1, sida-m10, sida-m50 and\n"
        "sida-m100: one step with the logistic loss, and with N2CE (lambda = 0.5). The controls\n"
        "are M = 1 with lambda so small that rewards are as large as those of the larger M.\n"
        "\n"
        "Lengths are fixed, and the last state is judged. Distances of other features, printed\n"
        "ones of Inception-v3 among them, are not comparable. A study that was interrupted keeps\n"
        "the finished runs, and goes on with --reuse and the same --teacher.\n",
    .examples =
        "n2ce study distill --data data --teacher c16.teacher --features cifar10_resnet20.f32 "
        "--report out\n"
        "n2ce study distill --data data --teacher c16.teacher --students "
        "sida-m1,sida-control,sida-m50 "
        "--seeds 3 --reuse out --report out --force\n",
    .page = "distill-study.html",
    .data = "distill-study.json",
    .options = options_table,
    .run = run,
};
