/* "study images": its options, and the order of its work. */
#include "images_study.h"

#include "base/clock.h"
#include "comm/comm.h"
#include "task/device_options.h"
#include "task/vocabulary.h"

#include <stdio.h>
#include <string.h>

static const n2ce_option options_table[] = {
    {"set", 0, N2CE_OPTION_WORD, "mnist", 0, 0, "mnist|cifar10|svhn", "NAME",
     "pictures to learn: the set of this name in the folder of data"},
    {"data", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "DIR",
     "folder of data, with the files of a set in images/NAME; else the environment variable "
     "N2CE_DATA"},
    {"images", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "IMAGES",
     "pictures to learn from instead: files or folders, separated by commas"},
    {"subset", 0, N2CE_OPTION_COUNT, "0", 0, 1e6, NULL, "N",
     "learn from N pictures only, at equal steps, for a quick look; 0: all"},
    {"arms", 0, N2CE_OPTION_WORDS,
     "codes,vae,gaussian,mixture,mle-normal,n2ce-m1-normal,mle,n2ce-m1,n2ce-k1,n2ce", 0, 0,
     "codes|vae|gaussian|mixture|mle-normal|n2ce-m1-normal|n2ce-normal|mle|n2ce-m1|n2ce-k1|n2ce",
     "LIST", "priors to compare, separated by commas"},
    {"seeds", 0, N2CE_OPTION_COUNT, "1", 1, 10000, NULL, "K", "repetitions of every run"},
    N2_FIRST_SEED_OPTION,
    {"number", 'n', N2CE_OPTION_COUNT, "auto", 40, 1e7, NULL, "N",
     "pictures to make with each prior; auto: as many as are learnt from, 50000 at most, 5000 in "
     "the preset fast"},
    N2_CHAINS_OPTIONS,
    {"features", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "NET",
     "features of a network, as compare has them; default: layout and texture of patches"},
    {"neighbours", 0, N2CE_OPTION_COUNT, "3", 1, N2_NEIGHBOURS_MAX, NULL, "K",
     "of precision and recall: a picture's ball reaches to its K-th nearest"},
    N2_LEBM_OPTIONS,
    {"reuse", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILES",
     "take over the runs that are in these answers (images.json, or folders with it, separated by "
     "commas); make the others"},
    N2_TIME_LIMIT_OPTION,
    N2_DEVICE_OPTION,
    N2_PICTURES_PRECISION_OPTION,
    N2_REPORT_OPTION,
    N2_FORCE_OPTION,
    {0},
};

/* ---- options ---- */

/* All that decides a number of a run but its arm and its seed. */
static n2ce_status note_settings(n2_images_study *s) {
    const char *net = n2ce_options_get(s->options, "features");
    n2_lebm_schedule schedule = s->plan.schedule;
    n2_text text = n2_text_new(s->ctx);
    char *settings, sum[N2_SET_SUM_ROOM];
    schedule.seed = 0;
    n2_images_set_sum(&s->set, sum);
    n2_lebm_plan_prior(s->options, N2_PRIOR_N2CE, 100, 3, &s->plan);
    n2_text_add(&text, "%s (%s) %zu of %zu, %zu neighbours, ", s->set.name, sum, s->number,
                s->set.train->n, s->neighbours);
    n2_text_add(&text, "chains %s %s, %s, ", n2ce_options_get(s->options, "chains"),
                n2ce_options_get(s->options, "step-size"),
                n2ce_options_get(s->options, "precision"));
    n2_text_add(&text, "%s, ", net ? strrchr(net, '/') ? strrchr(net, '/') + 1 : net : "patches");
    n2_lebm_spec_json(&s->plan.spec, &text);
    n2_lebm_schedule_json(&schedule, &text);
    N2_TRY(n2_text_take(&text, &settings));
    snprintf(s->settings, sizeof s->settings, "%s", settings);
    n2_free(s->ctx, settings);
    return N2CE_OK;
}

static n2ce_status read_options(n2_images_study *s) {
    const n2ce_options *o = s->options;
    const size_t most = n2_options_has_word(o, "preset", "fast") ? 5000 : 50000;
    const char *reuse = n2ce_options_get(o, "reuse");
    const size_t n = s->set.train->n;
    s->n_seeds = (size_t)n2_options_count(o, "seeds");
    s->first_seed = n2_options_count(o, "seed");
    s->neighbours = (size_t)n2_options_count(o, "neighbours");
    s->number = n2_options_is_auto(o, "number") ? (n < most ? n : most)
                                                : (size_t)n2_options_count(o, "number");
    for (size_t i = 0; i < N2_IMAGES_ARMS; i++)
        s->asked[i] = n2_options_has_word(o, "arms", n2_images_arms[i].name);
    N2_TRY(n2_lebm_plan_of_options(s->ctx, o, s->set.train, &s->plan));
    N2_TRY(n2_choice_of_options(s->ctx, o, &s->choice));
    if (!n2_options_is_auto(o, "time-limit"))
        s->deadline = n2_seconds() + n2ce_options_number(o, "time-limit");
    s->runs = n2_arena_alloc(s->arena, N2_IMAGES_ARMS * s->n_seeds, sizeof *s->runs);
    if (!s->runs) return N2CE_ENOMEM;
    N2_TRY(note_settings(s));
    return reuse ? n2_images_take_kept(s->ctx, reuse, s) : N2CE_OK;
}

/* ---- the work ---- */

static size_t count_asked(const n2_images_study *s) {
    size_t n = 0;
    for (size_t i = 0; i < N2_IMAGES_ARMS; i++) n += s->asked[i];
    return n;
}

static bool is_due(const n2_images_study *s, size_t seed) {
    for (size_t i = 0; i < N2_IMAGES_ARMS; i++)
        if (s->asked[i] && !n2_images_is_done(s, i, seed)) return true;
    return false;
}

static n2ce_status show_so_far(n2ce_ctx *ctx, const void *study, n2ce_answer *answer) {
    const n2_images_study *s = study;
    return n2_images_show(ctx, s, answer);
}

typedef struct dealt_seeds {
    n2_images_study *s;
    n2_runner *runner;
} dealt_seeds;

static n2ce_status run_seed(void *user, size_t seed) {
    const dealt_seeds *d = user;
    if (d->s->out_of_time || !is_due(d->s, seed)) return N2CE_OK;
    return n2_images_run_seed(d->s, d->runner, seed);
}

static size_t count_done(const n2_images_study *s, size_t seed) {
    size_t n = 0;
    for (size_t i = 0; i < N2_IMAGES_ARMS; i++) n += s->asked[i] && n2_images_is_done(s, i, seed);
    return n;
}

/* Pictures and looks for the report are of the first seed, which is rank 0's, who writes it. */
static n2ce_status share_run(n2ce_ctx *ctx, int root, n2_images_run *run) {
    N2_TRY(n2_comm_broadcast(ctx, root, run->score, sizeof run->score));
    N2_TRY(n2_comm_broadcast(ctx, root, &run->seconds, sizeof run->seconds));
    return n2_comm_broadcast(ctx, root, &run->failed, sizeof run->failed);
}

static n2ce_status share_seed(void *user, size_t seed, int root) {
    const dealt_seeds *d = user;
    n2_images_study *s = d->s;
    const size_t had = count_done(s, seed);
    bool late = s->out_of_time;
    for (size_t i = 0; i < N2_IMAGES_ARMS; i++)
        N2_TRY(share_run(s->ctx, root, n2_images_run_at(s, i, seed)));
    N2_TRY(n2_comm_broadcast(s->ctx, root, &late, sizeof late));
    s->out_of_time |= late;
    s->n_done += count_done(s, seed) - had;
    n2_runner_done(d->runner, (double)s->n_done);
    return N2CE_OK;
}

static n2ce_status run_study(n2_images_study *s) {
    n2_runner runner;
    N2_TRY(n2_runner_open(s->ctx, (double)(count_asked(s) * s->n_seeds), &runner));
    n2_runner_done(&runner, (double)s->n_done);
    n2_runner_keep(&runner, &(n2_study_keeper){.options = s->options,
                                               .file = "images.json",
                                               .study = s,
                                               .show = show_so_far});
    n2ce_status status = n2_comm_tasks(s->ctx, s->n_seeds, run_seed, share_seed,
                                       &(dealt_seeds){.s = s, .runner = &runner});
    n2_runner_close(&runner);
    if (status == N2CE_OK && !s->real) status = n2_images_judge_open(s); /* for the floor */
    return status;
}

static void free_sheets(n2_images_study *s) {
    for (size_t i = 0; s->runs && i < N2_IMAGES_ARMS * s->n_seeds; i++)
        n2_text_free(&s->runs[i].sheet);
    n2_text_free(&s->chains);
    n2_text_free(&s->pairs);
    n2_text_free(&s->lines);
}

static n2ce_status study_with(n2ce_ctx *ctx, const n2ce_options *options, n2_arena *arena,
                              n2ce_answer *answer) {
    n2_images_study *s = n2_arena_alloc(arena, 1, sizeof *s);
    if (!s) return N2CE_ENOMEM;
    *s = (n2_images_study){.ctx = ctx, .options = options, .arena = arena};
    s->chains = s->pairs = s->lines = n2_text_new(ctx);
    N2_TRY(n2_images_set_read(ctx, options, &s->set));
    n2ce_status status = read_options(s), shown = N2CE_OK;
    for (size_t i = 0; s->runs && i < N2_IMAGES_ARMS * s->n_seeds; i++)
        s->runs[i].sheet = n2_text_new(ctx);
    if (status == N2CE_OK) status = n2_images_features_open(s);
    if (status == N2CE_OK) status = run_study(s);
    s->interrupted = status == N2CE_ECANCELED;
    if ((status == N2CE_OK || s->interrupted) && s->n_done > 0)
        shown = n2_images_show(ctx, s, answer);
    free_sheets(s);
    n2_images_judge_close(s);
    n2_images_set_free(&s->set);
    return shown == N2CE_OK ? status : shown;
}

static n2ce_status run(n2ce_ctx *ctx, const n2ce_options *options, n2ce_answer *answer) {
    return n2_task_in_arena(ctx, options, answer, study_with);
}

const n2ce_task n2_images_study_task = {
    .name = "study images",
    .summary = "pictures: priors of the codes of one autoencoder, by how near samples are to real",
    .description =
        "A variational autoencoder is trained on the pictures, once a seed. Its codes are then\n"
        "drawn by each prior, decoded, and compared with the pictures: Frechet distance, KID,\n"
        "precision, recall, and the class score where the features have classes. Priors: vae,\n"
        "N(0, I); gaussian and mixture, explicit fits of the codes by one or ten Gaussians with\n"
        "full covariance; mle, by maximum likelihood with Langevin dynamics; n2ce-m1, n2ce-k1 and\n"
        "n2ce, ratios by N2CE with M = 1, M = 100, and M = 100 in three stages, all of them over\n"
        "the fitted Gaussian, or over N(0, I) with --base normal. mle-normal, n2ce-m1-normal and\n"
        "n2ce-normal are over N(0, I) anyway, as published. codes has the codes of the\n"
        "pictures themselves: no prior can do better with this decoder. The floor is what real\n"
        "pictures that were not learnt from have, or halves of the set.\n"
        "\n"
        "Learnt priors are judged twice: on codes that stand still, and after encoder, decoder "
        "and\n"
        "prior were refined together. The preset fast takes minutes on two cores with mnist and\n"
        "--subset 10000; paper is for a GPU. Distances of other features, printed ones of\n"
        "Inception-v3 among them, are not comparable.\n"
        "\n"
        "A study that was interrupted keeps the finished runs, and goes on with --reuse.\n",
    .examples =
        "n2ce study images --data data --subset 10000 --report out\n"
        "n2ce study images --set cifar10 --net cifar --data data --preset paper --device cuda\n"
        "n2ce study images --set svhn --data data --preset paper --seeds 3 --reuse out --report "
        "out "
        "--force\n",
    .page = "images.html",
    .data = "images.json",
    .options = options_table,
    .run = run,
};
