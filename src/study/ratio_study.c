/* "study ratio": from options to a list of fits, and through them. */
#include "ratio_study.h"

#include "base/clock.h"
#include "base/numerics.h"
#include "comm/comm.h"
#include "published.h"
#include "study_runner.h"
#include "task/ratio_verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    LEAST_ROWS = 30,
    FRESH_ROWS = 10000,   /* at which log ratios are compared with the truth */
    USUAL_TRE_RATIOS = 4, /* where the literature gives no number */
    MOST_WORDS = 256
};

static const uint64_t FRESH_SEED = (uint64_t)1 << 63; /* --seed stays below it */

static const n2ce_option options_table[] = {
    {"tasks", 0, N2CE_OPTION_TEXT, "quick", 0, 0, NULL, "LIST",
     "tasks to run: groups and names of problems, separated by commas; quick: seven problems; all"},
    {"methods", 0, N2CE_OPTION_WORDS, "n2ce,nce,ulsif", 0, 0,
     "n2ce|n2ce-net|nce|nwj|neg-reweight|tre|dv|infonce|smile|ulsif|kliep|knn|boosting|mlp", "LIST",
     "methods to compare"},
    {"seeds", 0, N2CE_OPTION_COUNT, "1", 1, 10000, NULL, "K", "repetitions of every fit"},
    {"n", 0, N2CE_OPTION_COUNT, "auto", LEAST_ROWS, 1e9, NULL, "N",
     "samples a side; auto: as many as the problem's authors drew"},
    N2_TIME_LIMIT_OPTION,
    N2_FIRST_SEED_OPTION,
    N2_DEVICE_OPTION,
    N2_PRECISION_OPTION,
    N2_REPORT_OPTION,
    N2_FORCE_OPTION,
    {0},
};

/* The baselines are a network alone and one ratio, as they were published. */
#define NEURAL(parts, contrast) N2_ESTIMATOR_NEURAL, N2_PARTS_##parts, N2_CONTRAST_##contrast

static const n2_study_method methods[N2_STUDY_METHODS] = {
    {"n2ce", 0, NEURAL(BOTH, N2CE), 0, 0, false, NULL},
    {"n2ce-net", 5, NEURAL(NET, N2CE), 0, 0, false, NULL},
    {"nce", 1, NEURAL(NET, N2CE), 1, 1, false, NULL},
    {"nwj", 6, NEURAL(NET, NWJ), 1, 1, false, NULL},
    {"neg-reweight", 7, NEURAL(NET, NEG_REWEIGHT), 0, 1, false, NULL},
    {"tre", 2, NEURAL(NET, N2CE), 1, USUAL_TRE_RATIOS, true, NULL},
    {"dv", 3, NEURAL(NET, DV), 1, 1, false, NULL},
    {"infonce", 4, NEURAL(NET, INFONCE), 1, 1, false, NULL},
    {"smile", 8, NEURAL(NET, SMILE), 1, 1, false, NULL},
    {"ulsif", 9, N2_ESTIMATOR_ULSIF, N2_PARTS_NET, N2_CONTRAST_N2CE, 1, 1, false, NULL},
    {"kliep", 6, N2_ESTIMATOR_KLIEP, N2_PARTS_NET, N2_CONTRAST_N2CE, 1, 1, false, NULL},
    {"knn", 7, N2_ESTIMATOR_KLIEP, N2_PARTS_NET, N2_CONTRAST_N2CE, 1, 1, false, n2_peer_neighbours},
    {"boosting", 8, N2_ESTIMATOR_KLIEP, N2_PARTS_NET, N2_CONTRAST_N2CE, 1, 1, false,
     n2_peer_boosting},
    {"mlp", 9, N2_ESTIMATOR_KLIEP, N2_PARTS_NET, N2_CONTRAST_N2CE, 1, 1, false, n2_peer_mlp},
};

int n2_study_colour(const char *method) {
    for (size_t m = 0; m < N2_STUDY_METHODS; m++)
        if (strcmp(methods[m].name, method) == 0) return methods[m].colour;
    return -1;
}

/* ---- which problems -------------------------------------------------------------------------- */

static const char *const quick[] = {
    "additive-noise-10", "student-1-nu-1", "spiral-2pair-3", "correlated-normal-6",
    "tre-gap-10",        "shifted-2d",     "sanity-2d",
};

static bool is_quick(const char *name) {
    for (size_t i = 0; i < sizeof quick / sizeof quick[0]; i++)
        if (strcmp(quick[i], name) == 0) return true;
    return false;
}

/* Whether the n characters at `word` ask for this problem. */
static bool asks_for(const char *word, size_t n, const n2_problem *p) {
    const char *const ways[] = {"all", p->group, p->name, is_quick(p->name) ? "quick" : p->name};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strlen(ways[i]) == n && memcmp(ways[i], word, n) == 0) return true;
    return false;
}

static n2ce_status unknown_task(n2ce_ctx *ctx, const char *word, size_t n) {
    const char *known[MOST_WORDS] = {"all", "quick"}, *nearest;
    size_t count = 2;
    const n2_problem *p;
    char copy[64] = "";
    if (n < sizeof copy) memcpy(copy, word, n);
    for (size_t i = 0; (p = n2_problem_at(i)) && count + 2 <= MOST_WORDS; i++) {
        known[count++] = p->group;
        known[count++] = p->name;
    }
    nearest = *copy ? n2ce_nearest_word(copy, known, count) : NULL;
    return n2_fail(ctx, N2CE_EINVAL,
                   "--tasks: there is no problem or group \"%.*s\"%s%s%s Groups: bmi, gaussian-mi, "
                   "mutinfo, correlated-normal, tre, shifted-2d, sanity; or quick, or all.",
                   (int)(n < 80 ? n : 80), word, nearest ? "; did you mean \"" : ".",
                   nearest ? nearest : "", nearest ? "\"?" : "");
}

/* Marks the problems that one word asks for. */
static n2ce_status mark(n2ce_ctx *ctx, const char *word, size_t n, bool *marked) {
    const n2_problem *p;
    bool any = false;
    for (size_t i = 0; (p = n2_problem_at(i)); i++) {
        if (!asks_for(word, n, p)) continue;
        marked[i] = any = true;
    }
    return any ? N2CE_OK : unknown_task(ctx, word, n);
}

static n2ce_status choose_problems(n2ce_ctx *ctx, const char *text, n2_arena *arena,
                                   n2_ratio_study *s) {
    const size_t count = n2_problem_count();
    bool *marked = n2_arena_alloc(arena, count, sizeof *marked);
    s->problems = n2_arena_alloc(arena, count, sizeof(*s->problems));
    if (!marked || !s->problems) return N2CE_ENOMEM;
    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",");
        N2_TRY(mark(ctx, at, n, marked));
        at += n;
        if (!*at) break;
    }
    for (size_t i = 0; i < count; i++)
        if (marked[i]) s->problems[s->n_problems++] = n2_problem_at(i);
    return N2CE_OK;
}

/* Where fits run, and for what. */
typedef struct study_runner {
    n2_runner base;
    n2_ratio_study *study;
    n2_arena *arena; /* of what is found */
} study_runner;

/* ---- samples --------------------------------------------------------------------------------- */

/* What n2_problem_rescale does to the columns, so that other rows can follow. */
typedef struct scaling {
    double *mean, *deviation; /* row_length; NULL: nothing is done */
} scaling;

static void scaling_free(n2ce_ctx *ctx, scaling *s) { n2_free(ctx, s->mean); }

static n2ce_status scaling_of(n2ce_ctx *ctx, const double *rows, size_t n, size_t d, scaling *s) {
    s->mean = n2_alloc(ctx, 2 * d, sizeof *s->mean);
    if (!s->mean) return N2CE_ENOMEM;
    s->deviation = s->mean + d;
    for (size_t c = 0; c < d; c++) {
        n2_sum sum = {0, 0}, squares = {0, 0};
        for (size_t i = 0; i < n; i++) n2_sum_add(&sum, rows[i * d + c]);
        s->mean[c] = n2_sum_value(&sum) / (double)n;
        for (size_t i = 0; i < n; i++) {
            const double x = rows[i * d + c] - s->mean[c];
            n2_sum_add(&squares, x * x);
        }
        s->deviation[c] = sqrt(n2_sum_value(&squares) / (double)n);
    }
    return N2CE_OK;
}

static void scaling_apply(const scaling *s, double *rows, size_t n, size_t d) {
    for (size_t i = 0; i < n * d && s->mean; i++) {
        const size_t c = i % d;
        rows[i] -= s->mean[c];
        if (s->deviation[c] > 0) rows[i] /= s->deviation[c];
    }
}

static n2ce_status make_table(n2ce_ctx *ctx, const double *rows, size_t n, size_t d,
                              n2_table **out) {
    const n2ce_matrix m = {rows, N2CE_F64, n, d, 0, 0};
    return n2_table_of_matrix(ctx, &m, "the problem's rows", NULL, out);
}

/* The protocol of bmi rescales its samples before anyone sees them. */
static bool is_rescaled(const n2_problem *p) { return strcmp(p->group, "bmi") == 0; }

static n2ce_status draw_into(n2_session *s, const n2_problem *p, size_t n, double *num, double *den,
                             scaling *scale) {
    const size_t d = n2_problem_row_length(p);
    N2_TRY(n2_problem_draw(s->ctx, p, n, s->fit.seed, num, den));
    if (is_rescaled(p)) {
        N2_TRY(scaling_of(s->ctx, num, n, d, scale));
        n2_problem_rescale(n, d, num);
    }
    s->x_cols = den ? 0 : p->dim_x;
    s->rows[1] = s->seen[1] = n;
    s->rows[0] = s->seen[0] = den ? n : 0;
    N2_TRY(make_table(s->ctx, num, n, d, &s->num));
    return den ? make_table(s->ctx, den, n, d, &s->den) : N2CE_OK;
}

static n2ce_status draw_samples(n2_session *s, const n2_problem *p, size_t n, scaling *scale) {
    const size_t d = n2_problem_row_length(p);
    const bool two = p->kind == N2_PROBLEM_KL;
    double *num = n2_alloc(s->ctx, n * d, sizeof *num);
    double *den = num && two ? n2_alloc(s->ctx, n * d, sizeof *den) : NULL;
    const bool enough = num && (den || !two);
    const n2ce_status status = enough ? draw_into(s, p, n, num, den, scale) : N2CE_ENOMEM;
    n2_free(s->ctx, num);
    n2_free(s->ctx, den);
    return status;
}

/* ---- the log ratio itself -------------------------------------------------------------------- */

/* Draws rows, notes their true log ratios, and scores them. other: where the denominator goes. */
static n2ce_status compare_at(n2_session *s, const n2_problem *p, const scaling *scale,
                              double *rows, double *other, double *truth, double *f) {
    const size_t d = n2_problem_row_length(p);
    N2_TRY(n2_problem_draw(s->ctx, p, FRESH_ROWS, FRESH_SEED + s->fit.seed, rows, other));
    for (size_t i = 0; i < FRESH_ROWS; i++) truth[i] = n2_problem_log_ratio(p, rows + i * d);
    scaling_apply(scale, rows, FRESH_ROWS, d);
    return n2_ratio_score(s->ratio, rows, FRESH_ROWS, f);
}

static double mean_square(const double *a, const double *b, size_t n) {
    n2_sum sum = {0, 0};
    for (size_t i = 0; i < n; i++) n2_sum_add(&sum, (a[i] - b[i]) * (a[i] - b[i]));
    return n2_sum_value(&sum) / (double)n;
}

/* *mse is NaN if the problem has no closed form. */
static n2ce_status compare_log_ratios(n2_session *s, const n2_problem *p, const scaling *scale,
                                      double *mse) {
    const size_t d = n2_problem_row_length(p), n = FRESH_ROWS;
    const bool two = p->kind == N2_PROBLEM_KL;
    *mse = N2_NAN;
    if (p->recipe.map != N2_MAP_NONE) return N2CE_OK;
    double *rows = n2_alloc(s->ctx, n * ((two ? 2 : 1) * d + 2), sizeof *rows);
    if (!rows) return N2CE_ENOMEM;
    double *truth = rows + n * d, *f = truth + n, *other = two ? f + n : NULL;
    const n2ce_status status = compare_at(s, p, scale, rows, other, truth, f);
    if (status == N2CE_OK) *mse = mean_square(truth, f, n);
    n2_free(s->ctx, rows);
    return status;
}

/* ---- one fit --------------------------------------------------------------------------------- */

static n2_fit_options fit_options(const n2_ratio_study *s, const n2_study_method *m,
                                  const n2_problem *p, uint64_t seed) {
    const size_t ratios = n2_published_tre_ratios(p->name);
    return (n2_fit_options){
        .estimator = m->estimator,
        .parts = m->parts,
        .smooth = m->parts == N2_PARTS_BOTH,
        .scaling = N2_SCALING_AUTO,
        .critic = {.contrast = m->contrast,
                   .magnitude = m->magnitude,
                   .stages = m->as_published && ratios ? ratios : m->stages,
                   .tau = 5},
        .max_seconds = s->max_seconds,
        .seed = seed,
    };
}

static void read_estimate(n2_session *s, n2_study_fit *fit) {
    const double z = n2_normal_quantile(0.975);
    n2_quality q;
    const n2_estimate e = n2_estimate_kl(&s->scores, &s->record, &q);
    fit->estimate = e.value;
    fit->lo = e.value - z * e.error;
    fit->hi = e.value + z * e.error;
    fit->trusted = n2_judge(s, N2_JUDGED_KL, e, &q, z).trust == N2_TRUSTED;
}

/* A peer has a number, no interval and no log ratio, and does not doubt itself. */
static n2ce_status ask_peer(n2_session *s, n2_peer_fn *peer, n2_study_fit *fit) {
    const n2_table *num = s->num, *den = s->den;
    const n2_peer_rows rows = {
        num->x, den ? den->x : NULL, num->rows, den ? den->rows : 0, num->cols, s->x_cols};
    const double start = n2_seconds();
    N2_TRY(peer(s->ctx, &rows, &fit->estimate));
    fit->seconds = n2_seconds() - start;
    fit->lo = fit->hi = fit->log_ratio_mse = N2_NAN;
    fit->trusted = true;
    return N2CE_OK;
}

static n2ce_status fit_session(n2_session *s, const n2_problem *p, n2_peer_fn *peer, size_t n,
                               n2_study_fit *fit) {
    scaling scale = {NULL, NULL};
    n2ce_status status = draw_samples(s, p, n, &scale);
    if (peer) {
        scaling_free(s->ctx, &scale);
        return status == N2CE_OK ? ask_peer(s, peer, fit) : status;
    }
    const double start = n2_seconds();
    if (status == N2CE_OK) status = n2_session_fit(s);
    if (status == N2CE_OK) read_estimate(s, fit);
    fit->seconds = n2_seconds() - start;
    if (status == N2CE_OK) status = compare_log_ratios(s, p, &scale, &fit->log_ratio_mse);
    scaling_free(s->ctx, &scale);
    return status;
}

static void note_failure(const study_runner *r, const n2_problem *p, const n2_study_method *m,
                         const char *message, n2_study_fit *fit) {
    fit->estimate = fit->lo = fit->hi = fit->log_ratio_mse = N2_NAN;
    fit->trusted = false;
    fit->failed = true;
    n2_log(r->base.ctx, N2CE_LOG_WARNING, "%s by %s with seed %llu gave no result: %s", p->name,
           m->name, (unsigned long long)fit->seed, message);
}

/* That a method fails on a problem is a result; that memory is short, or the user in a hurry, is
 * not. The kernel methods report no progress, so they run in the caller's context, which knows at
 * once of a cancellation. */
static n2ce_status run_fit(const study_runner *r, const n2_problem *p, const n2_study_method *m,
                           n2_study_fit *fit) {
    n2ce_ctx *ctx = m->estimator == N2_ESTIMATOR_NEURAL ? r->base.inner : r->base.ctx;
    const n2_ratio_study *study = r->study;
    n2_session s = {
        .ctx = ctx, .fit = fit_options(study, m, p, fit->seed), .choice = study->choice};
    const n2ce_status status = fit_session(&s, p, m->peer, study->rows ? study->rows : p->n, fit);
    fit->device = n2_session_device(&s);
    n2_session_close(&s);
    if (status == N2CE_ENOMEM || r->base.out_of_memory)
        return n2_fail(r->base.ctx, N2CE_ENOMEM,
                       "Out of memory: %s by %s. Give --n fewer rows, or leave it out of --tasks.",
                       p->name, m->name);
    if (status == N2CE_ECANCELED || n2_cancelled(r->base.ctx)) return N2CE_ECANCELED;
    if (status != N2CE_OK || !isfinite(fit->estimate))
        note_failure(r, p, m, status == N2CE_OK ? "the estimate is not finite." : n2ce_errmsg(ctx),
                     fit);
    fit->done = true;
    return N2CE_OK;
}

/* ---- the study ------------------------------------------------------------------------------- */

static n2ce_status run_one(void *user, size_t i) {
    study_runner *r = user;
    n2_ratio_study *s = r->study;
    const size_t cell = i / s->n_seeds;
    s->fits[i].seed = s->first_seed + i % s->n_seeds;
    N2_TRY(
        run_fit(r, s->problems[cell / s->n_methods], s->methods[cell % s->n_methods], &s->fits[i]));
    n2_runner_done(&r->base, (double)++s->n_done);
    return N2CE_OK;
}

/* What rank `root` found. */
static n2ce_status share_one(void *user, size_t i, int root) {
    study_runner *r = user;
    n2_study_fit *fit = &r->study->fits[i];
    n2ce_ctx *ctx = r->base.ctx;
    const char *device = fit->device;
    N2_TRY(n2_share_string(ctx, r->arena, root, &device));
    N2_TRY(n2_comm_broadcast(ctx, root, fit, sizeof *fit));
    fit->device = device;
    if (n2_rank(ctx) != root) n2_runner_done(&r->base, (double)++r->study->n_done);
    return N2CE_OK;
}

static n2ce_status run_all(study_runner *r) {
    return n2_comm_tasks(r->base.ctx, n2_study_fits(r->study), run_one, share_one, r);
}

static n2ce_status read_options(n2ce_ctx *ctx, const n2ce_options *o, n2_arena *arena,
                                n2_ratio_study *s) {
    s->options = o;
    s->n_seeds = (size_t)n2_options_count(o, "seeds");
    s->first_seed = n2_options_count(o, "seed");
    if (!n2_options_is_auto(o, "n")) s->rows = (size_t)n2_options_count(o, "n");
    if (!n2_options_is_auto(o, "time-limit")) s->max_seconds = n2ce_options_number(o, "time-limit");
    for (size_t m = 0; m < N2_STUDY_METHODS; m++)
        if (n2_options_has_word(o, "methods", methods[m].name))
            s->methods[s->n_methods++] = &methods[m];
    N2_TRY(n2_choice_of_options(ctx, o, &s->choice));
    N2_TRY(choose_problems(ctx, n2ce_options_get(o, "tasks"), arena, s));
    s->fits = n2_arena_alloc(arena, n2_study_fits(s), sizeof *s->fits);
    return s->fits ? N2CE_OK : N2CE_ENOMEM;
}

static n2ce_status study_with(n2ce_ctx *ctx, const n2ce_options *options, n2_arena *arena,
                              n2ce_answer *answer) {
    n2_ratio_study study = {0};
    study_runner r = {.study = &study, .arena = arena};
    N2_TRY(read_options(ctx, options, arena, &study));
    N2_TRY(n2_runner_open(ctx, (double)n2_study_fits(&study), &r.base));
    const n2ce_status status = run_all(&r);
    n2_runner_close(&r.base);
    study.interrupted = status == N2CE_ECANCELED;
    if (status != N2CE_OK && !study.interrupted) return status;
    if (study.n_done > 0) N2_TRY(n2_ratio_study_show(ctx, &study, answer));
    return status;
}

static n2ce_status run(n2ce_ctx *ctx, const n2ce_options *options, n2ce_answer *answer) {
    return n2_task_in_arena(ctx, options, answer, study_with);
}

const n2ce_task n2_ratio_study_task = {
    .name = "study ratio",
    .summary = "ratio estimators against problems with known answers",
    .description =
        "Runs the estimators of fit, divergence and mi on problems whose divergence or mutual\n"
        "information is known, and prints estimates, errors and times beside the truth and, where\n"
        "there are any, beside published numbers.\n"
        "\n"
        "Groups: bmi (40 tasks of the benchmark of Czyz et al. 2023), gaussian-mi, mutinfo,\n"
        "correlated-normal, tre, shifted-2d, sanity. A problem's name is a task too; n2ce study\n"
        "draw lists them. All of them by all methods take hours; Ctrl-C keeps the finished fits.\n"
        "\n"
        "n2ce is what the verbs do unless told otherwise: a Gaussian part in closed form, exact "
        "by\n"
        "construction on Gaussian problems, and a network. n2ce-net is the network alone. tre is\n"
        "NCE over several stages; nce, nwj, neg-reweight, dv, infonce and smile are one network\n"
        "and one stage; ulsif and kliep are kernel methods, knn nearest neighbours (KSG for "
        "mutual\n"
        "information), boosting and mlp classifiers: boosted trees, a small network. The neural\n"
        "methods share one set of training defaults.\n",
    .examples = "n2ce study ratio\n"
                "n2ce study ratio --tasks correlated-normal --methods n2ce,n2ce-net,dv --seeds 1\n"
                "n2ce study ratio --tasks bmi --methods n2ce --seeds 10 --report out --json\n",
    .page = "ratio.html",
    .data = "ratio.json",
    .options = options_table,
    .run = run,
};
