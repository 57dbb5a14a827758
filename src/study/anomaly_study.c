/* "study anomaly": its options, and its runs. */
#include "anomaly_study.h"

#include "base/clock.h"
#include "comm/comm.h"
#include "study_runner.h"
#include "task/device_options.h"
#include "task/vocabulary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const n2ce_option options_table[] = {
    {"digits", 0, N2CE_OPTION_REALS, "1,4,5,7,9", 0, 9, NULL, "LIST",
     "digits that are held out, one after the other, separated by commas"},
    {"methods", 0, N2CE_OPTION_TEXT, "knn,pca", 0, 0, NULL, "LIST",
     "methods to compare, separated by commas; or all"},
    {"data", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "DIR",
     "folder of data, with MNIST's files in images/mnist; else the environment variable N2CE_DATA"},
    {"seeds", 0, N2CE_OPTION_COUNT, "1", 1, 10000, NULL, "K", "repetitions of every run"},
    N2_FIRST_SEED_OPTION,
    {"width", 0, N2CE_OPTION_COUNT, "32", 2, 1024, NULL, "W",
     "width of networks: a decoder's layers have 8, 4 and 2 times as many channels; published: "
     "128"},
    {"steps", 0, N2CE_OPTION_COUNT, "auto", 1, 1e9, NULL, "T",
     "steps of training networks; auto: 4000 of an autoencoder, 3000 of DAMC"},
    {"checks", 0, N2CE_OPTION_COUNT, "8", 0, 32, NULL, "N",
     "how often the test pictures are scored during the training, for the best checkpoint"},
    {"rate-factor", 0, N2CE_OPTION_REAL, "5", 1e-3, 1e3, NULL, "R",
     "factor on the published learning rates, which are for far more steps"},
    {"slow", 0, N2CE_OPTION_REAL, "0.05", 1e-6, 1, NULL, "A",
     "share of the way that the slow sampler goes to the sampler every 10 steps; published: 0.005"},
    {"sigma", 0, N2CE_OPTION_REAL, "1", 1e-3, 1e3, NULL, "S",
     "standard deviation of a pixel in Langevin dynamics"},
    {"weight", 0, N2CE_OPTION_REAL, "2", 1e-3, 1e3, NULL, "W",
     "weight of the squared error in the autoencoder of default"},
    {"members", 0, N2CE_OPTION_COUNT, "3", 1, 10, NULL, "N", "models that default averages"},
    {"contrast", 0, N2CE_OPTION_REAL, "1", 1, 1e6, NULL, "M",
     "noise magnitude of the critic of mixes in default"},
    {"keep-scores", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "DIR",
     "write the parts of default's scores into this folder, which is there, as CSV"},
    {"subset", 0, N2CE_OPTION_COUNT, "0", 0, 1e6, NULL, "N",
     "learn from N pictures only and judge N / 4, for a quick look; 0: all"},
    {"reuse", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILES",
     "take over the runs that are in these answers (anomaly.json, or folders with it, separated by "
     "commas); make the others"},
    N2_DEVICE_OPTION,
    N2_PICTURES_PRECISION_OPTION,
    N2_REPORT_OPTION,
    N2_FORCE_OPTION,
    {0},
};

/* ---- what is asked for ----------------------------------------------------------------------- */

static n2ce_status unknown_method(n2ce_ctx *ctx, const char *name) {
    const char *known[N2_ANOMALY_METHODS + 1] = {"all"};
    n2_text list = n2_text_new(ctx);
    for (size_t i = 0; i < n2_anomaly_method_count; i++) {
        known[i + 1] = n2_anomaly_methods[i].name;
        n2_text_add(&list, "%s%s", i ? ", " : "", known[i + 1]);
    }
    const char *nearest = n2ce_nearest_word(name, known, n2_anomaly_method_count + 1);
    const n2ce_status status = n2_fail(
        ctx, N2CE_EINVAL, "--methods: there is no method \"%.60s\"%s%s%s There are: %s; or all.",
        name, nearest ? "; did you mean \"" : ".", nearest ? nearest : "", nearest ? "\"?" : "",
        list.data ? list.data : "");
    n2_text_free(&list);
    return status;
}

static bool has_method(const n2_anomaly_study *s, const n2_anomaly_method *m) {
    for (size_t i = 0; i < s->n_methods; i++)
        if (s->methods[i] == m) return true;
    return false;
}

static void add_method(n2_anomaly_study *s, const n2_anomaly_method *m) {
    if (!has_method(s, m)) s->methods[s->n_methods++] = m;
}

static n2ce_status choose_methods(n2ce_ctx *ctx, const n2ce_options *o, n2_anomaly_study *s) {
    for (const char *at = n2ce_options_get(o, "methods");; at++) {
        const size_t n = strcspn(at, ",");
        char word[64] = "";
        memcpy(word, at, n < sizeof word ? n : sizeof word - 1);
        const n2_anomaly_method *m = n2_anomaly_method_find(word);
        const bool all = strcmp(word, "all") == 0;
        if (!m && !all) return unknown_method(ctx, word);
        for (size_t i = 0; all && i < n2_anomaly_method_count; i++)
            add_method(s, &n2_anomaly_methods[i]);
        if (m) add_method(s, m);
        at += n;
        if (!*at) return N2CE_OK;
    }
}

static n2ce_status choose_digits(n2ce_ctx *ctx, const n2ce_options *o, n2_anomaly_study *s) {
    double *values;
    size_t n;
    bool asked[N2_ANOMALY_DIGITS] = {false};
    N2_TRY(n2_options_reals(o, "digits", s->arena, &values, &n));
    for (size_t i = 0; i < n; i++) {
        if (values[i] != floor(values[i]))
            return n2_fail(ctx, N2CE_EINVAL, "--digits: %g is not a digit.", values[i]);
        asked[(size_t)values[i]] = true;
    }
    for (int d = 0; d < N2_ANOMALY_DIGITS; d++)
        if (asked[d]) s->digits[s->n_digits++] = d;
    return N2CE_OK;
}

/* ---- one run --------------------------------------------------------------------------------- */

typedef struct due_run {
    const n2_anomaly_method *method;
    n2_anomaly_run *run;
} due_run;

typedef struct anomaly_runner {
    n2_runner base;
    n2_anomaly_study *study;
    n2_anomaly_split split;
    const due_run *due; /* of the digit at hand */
} anomaly_runner;

/* Numbers of the pictures of a kind that score highest. */
static n2ce_status keep_pictures(const anomaly_runner *r, const double *score, n2_row_kind kind,
                                 size_t *pictures, size_t *n) {
    const n2_anomaly_split *s = &r->split;
    N2_TRY(n2_largest_scores(r->base.ctx, score, s->is_odd, s->n_test, kind, N2_ANOMALY_SHOWN,
                             pictures, n));
    for (size_t i = 0; i < *n; i++) pictures[i] = s->test[pictures[i]];
    return N2CE_OK;
}

static n2ce_status judge(const anomaly_runner *r, const n2_anomaly_scores *scores,
                         n2_anomaly_run *run) {
    const n2_anomaly_split *s = &r->split;
    n2ce_ctx *ctx = r->base.ctx;
    n2_rank_areas ranking;
    N2_TRY(n2_rank_scores(ctx, scores->score, s->is_odd, s->n_test, &ranking));
    run->auprc = ranking.auprc;
    run->auroc = ranking.auroc;
    run->n_checks = scores->n_checks;
    memcpy(run->checks, scores->checks, sizeof run->checks);
    N2_TRY(n2_precision_at_recall(ctx, scores->score, s->is_odd, s->n_test, N2_ANOMALY_CURVE,
                                  run->precision));
    N2_TRY(keep_pictures(r, scores->score, N2_RANKED_ODD, run->odd, &run->n_odd));
    N2_TRY(keep_pictures(r, scores->score, N2_RANKED_NORMAL, run->normal, &run->n_normal));
    for (run->n_parts = 0; run->n_parts < scores->n_parts; run->n_parts++) {
        const n2_anomaly_part *part = &scores->parts[run->n_parts];
        N2_TRY(n2_rank_scores(ctx, part->score, s->is_odd, s->n_test, &ranking));
        run->parts[run->n_parts].name = part->name;
        run->parts[run->n_parts].auprc = ranking.auprc;
    }
    return N2CE_OK;
}

static n2ce_status score(anomaly_runner *r, const n2_anomaly_method *m, n2_arena *arena,
                         n2_anomaly_run *run) {
    n2_device_choice choice = r->study->choice;
    n2_anomaly_scores scores = {.n_parts = 0};
    scores.score = n2_arena_alloc(arena, r->split.n_test, sizeof *scores.score);
    if (!scores.score) return N2CE_ENOMEM;
    n2_anomaly_job job = {.ctx = r->base.inner,
                          .arena = arena,
                          .split = &r->split,
                          .seed = run->seed,
                          .effort = r->study->effort};
    job.effort.choice = &choice;
    const double start = n2_seconds();
    N2_TRY(m->score(&job, &scores));
    run->seconds = n2_seconds() - start;
    if (m->seeded) run->device = n2_arena_strdup(r->study->arena, n2_choice_name(&choice));
    return judge(r, &scores, run);
}

static void note_failure(const anomaly_runner *r, const n2_anomaly_method *m, n2_anomaly_run *run) {
    run->auprc = run->auroc = N2_NAN;
    run->failed = true;
    n2_log(r->base.ctx, N2CE_LOG_WARNING, "Digit %d by %s with seed %llu gave no result: %s",
           r->split.digit, m->name, (unsigned long long)run->seed, n2ce_errmsg(r->base.inner));
}

/* That a method fails is a result; that memory is short, or the user in a hurry, is not. */
static n2ce_status run_method(anomaly_runner *r, const n2_anomaly_method *m, n2_anomaly_run *run) {
    n2_arena arena = n2_arena_new(r->base.ctx);
    const n2ce_status status = score(r, m, &arena, run);
    n2_arena_free(&arena);
    if (status == N2CE_ENOMEM || r->base.out_of_memory)
        return n2_fail(r->base.ctx, N2CE_ENOMEM, "Out of memory: digit %d by %s.", r->split.digit,
                       m->name);
    if (status == N2CE_ECANCELED || n2_cancelled(r->base.ctx)) return N2CE_ECANCELED;
    if (status != N2CE_OK) note_failure(r, m, run);
    run->done = true;
    n2_runner_done(&r->base, (double)++r->study->n_done);
    if (!run->failed)
        n2_log(r->base.ctx, N2CE_LOG_INFO, "Digit %d by %s, seed %llu: AUPRC %.3f in %.1f s",
               r->split.digit, m->name, (unsigned long long)run->seed, run->auprc, run->seconds);
    return N2CE_OK;
}

/* ---- the study ------------------------------------------------------------------------------- */

static size_t count_due(const n2_anomaly_study *s) {
    size_t n = 0;
    for (size_t i = 0; i < n2_anomaly_runs(s); i++)
        n += n2_anomaly_is_due(s, i / s->n_seeds % s->n_methods, i % s->n_seeds);
    return n;
}

static n2ce_status run_one(void *user, size_t i) {
    anomaly_runner *r = user;
    return run_method(r, r->due[i].method, r->due[i].run);
}

/* What rank `root` found, names of parts and of its device too. */
static n2ce_status share_one(void *user, size_t i, int root) {
    anomaly_runner *r = user;
    n2_anomaly_study *s = r->study;
    n2ce_ctx *ctx = r->base.ctx;
    n2_anomaly_run *run = r->due[i].run;
    const char *device = run->device, *names[N2_ANOMALY_PARTS];
    for (size_t k = 0; k < N2_ANOMALY_PARTS; k++) {
        names[k] = run->parts[k].name;
        N2_TRY(n2_share_string(ctx, s->arena, root, &names[k]));
    }
    N2_TRY(n2_share_string(ctx, s->arena, root, &device));
    N2_TRY(n2_comm_broadcast(ctx, root, run, sizeof *run));
    run->device = device;
    for (size_t k = 0; k < N2_ANOMALY_PARTS; k++) run->parts[k].name = names[k];
    if (n2_rank(ctx) != root) n2_runner_done(&r->base, (double)++s->n_done);
    return N2CE_OK;
}

/* Seed by seed, in it method by method. */
static n2ce_status run_digit(anomaly_runner *r, size_t digit) {
    n2_anomaly_study *s = r->study;
    due_run *due = n2_arena_alloc(s->arena, s->n_methods * s->n_seeds, sizeof *due);
    size_t n = 0;
    if (!due) return N2CE_ENOMEM;
    for (size_t i = 0; i < s->n_seeds * s->n_methods; i++) {
        const size_t k = i / s->n_methods, m = i % s->n_methods;
        n2_anomaly_run *run = n2_anomaly_run_at(s, digit, m, k);
        if (run->done || !n2_anomaly_is_due(s, m, k)) continue;
        run->seed = s->first_seed + k;
        due[n++] = (due_run){s->methods[m], run};
    }
    r->due = due;
    return n2_comm_tasks(r->base.ctx, n, run_one, share_one, r);
}

static n2ce_status run_digits(anomaly_runner *r) {
    n2_anomaly_study *s = r->study;
    n2ce_status status = N2CE_OK;
    for (size_t d = 0; d < s->n_digits && status == N2CE_OK; d++) {
        n2_arena arena = n2_arena_new(r->base.ctx);
        status = n2_anomaly_split_of(&arena, s->pictures, s->digits[d], &r->split);
        if (status == N2CE_OK && s->effort.subset)
            n2_anomaly_split_thin(&r->split, s->effort.subset);
        if (status == N2CE_OK) {
            s->counts[d].n_train = r->split.n_train;
            s->counts[d].n_normal = r->split.n_normal;
            s->counts[d].n_odd = r->split.n_test - r->split.n_normal;
            status = run_digit(r, d);
        }
        n2_arena_free(&arena);
    }
    return status;
}

static n2ce_status show_so_far(n2ce_ctx *ctx, const void *study, n2ce_answer *answer) {
    const n2_anomaly_study *s = study;
    return n2_anomaly_study_show(ctx, s, answer);
}

static n2ce_status run_study(n2ce_ctx *ctx, n2_anomaly_study *s) {
    anomaly_runner r = {.study = s};
    N2_TRY(n2_runner_open(ctx, (double)count_due(s), &r.base));
    n2_runner_done(&r.base, (double)s->n_done);
    n2_runner_keep(&r.base, &(n2_study_keeper){.options = s->options,
                                               .file = "anomaly.json",
                                               .study = s,
                                               .show = show_so_far});
    const n2ce_status status = run_digits(&r);
    n2_runner_close(&r.base);
    return status;
}

static n2ce_status read_options(n2ce_ctx *ctx, const n2ce_options *o, n2_anomaly_study *s) {
    const char *reuse = n2ce_options_get(o, "reuse");
    s->n_seeds = (size_t)n2_options_count(o, "seeds");
    s->first_seed = n2_options_count(o, "seed");
    N2_TRY(choose_digits(ctx, o, s));
    N2_TRY(choose_methods(ctx, o, s));
    N2_TRY(n2_choice_of_options(ctx, o, &s->choice));
    const bool any = n2_options_is_auto(o, "steps");
    const size_t steps = any ? 0 : (size_t)n2_options_count(o, "steps");
    s->effort = (n2_anomaly_effort){.width = (size_t)n2_options_count(o, "width"),
                                    .steps = steps,
                                    .rate = n2ce_options_number(o, "rate-factor"),
                                    .slow = n2ce_options_number(o, "slow"),
                                    .sigma = n2ce_options_number(o, "sigma")};
    s->effort.weight = n2ce_options_number(o, "weight");
    s->effort.magnitude = n2ce_options_number(o, "contrast");
    s->effort.members = (size_t)n2_options_count(o, "members");
    s->effort.keep = n2ce_options_get(o, "keep-scores");
    s->effort.checks = (size_t)n2_options_count(o, "checks");
    s->effort.subset = (size_t)n2_options_count(o, "subset");
    s->runs = n2_arena_alloc(s->arena, n2_anomaly_runs(s), sizeof *s->runs);
    if (!s->runs) return N2CE_ENOMEM;
    return reuse ? n2_anomaly_take_kept(ctx, reuse, s) : N2CE_OK;
}

static n2ce_status study_with(n2ce_ctx *ctx, const n2ce_options *options, n2_arena *arena,
                              n2ce_answer *answer) {
    const char *folder = n2ce_options_get(options, "data");
    n2_images *pictures;
    n2_anomaly_study study = {.options = options, .arena = arena};
    N2_TRY(read_options(ctx, options, &study));
    N2_TRY(n2_anomaly_read(ctx, folder ? folder : getenv("N2CE_DATA"), &pictures));
    study.pictures = pictures;
    n2ce_status status = run_study(ctx, &study), shown = N2CE_OK;
    study.interrupted = status == N2CE_ECANCELED;
    if ((status == N2CE_OK || study.interrupted) && study.n_done > 0)
        shown = n2_anomaly_study_show(ctx, &study, answer);
    n2_images_free(pictures);
    return shown == N2CE_OK ? status : shown;
}

static n2ce_status run(n2ce_ctx *ctx, const n2ce_options *options, n2ce_answer *answer) {
    return n2_task_in_arena(ctx, options, answer, study_with);
}

const n2ce_task n2_anomaly_study_task = {
    .name = "study anomaly",
    .summary = "anomalies: methods look for a digit that they never saw, as in the paper",
    .description =
        "One digit is held out; a method learns from four fifths of the pictures of the others,\n"
        "and scores the last fifth and all pictures of the held-out digit: 33 to 39 of 100 are\n"
        "odd. Printed is the area under precision over recall (AUPRC, trapezoids) for every\n"
        "digit, over seeds, beside the share of odd pictures, which chance achieves, and what\n"
        "is published. The split is that of the paper's code, always the same.\n"
        "\n"
        "Methods: knn, the mean distance to 5 neighbours in 50 principal components; pca, the\n"
        "error of a reconstruction from 20; vae, the bound of an autoencoder; damc-mle, damc-1,\n"
        "damc-100 and damc-100-k3, latent energy-based models with an amortised sampler (DAMC),\n"
        "whose prior is learnt by maximum likelihood or by N2CE with M = 1, M = 100, and M = 100\n"
        "with three ratios; default, an autoencoder, its prior and a critic of mixed codes,\n"
        "calibrated on normal pictures that are held out. All but the first two train networks,\n"
        "in minutes on a GPU and in hours on a few cores; --width 8 --subset 4000 is a look.\n"
        "\n"
        "A study that was interrupted keeps the finished runs, and goes on with --reuse.\n",
    .examples = "n2ce study anomaly --data data\n"
                "n2ce study anomaly --data data --digits 9 --methods all --report out\n"
                "n2ce study anomaly --data data --methods all --reuse out --report out --force\n",
    .page = "anomaly.html",
    .data = "anomaly.json",
    .options = options_table,
    .run = run,
};
