/* "study gaussian": from options to settings, and through the study. */
#include "gaussian.h"

#include "base/numerics.h"
#include "task/task.h"
#include "task/vocabulary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const n2ce_option options_table[] = {
    {"dim", 0, N2CE_OPTION_COUNT, "auto", 1, 10000, NULL, "D",
     "dimension; auto: that of --target, else 5"},
    {"target", 0, N2CE_OPTION_REALS, "auto", 0, 0, NULL, "LIST",
     "mean of the target; auto: the paper's, or -1.5 to 1.5 evenly"},
    {"start", 0, N2CE_OPTION_REALS, "auto", 0, 0, NULL, "LIST",
     "first iterate; auto: the paper's, or minus the target"},
    {"n", 0, N2CE_OPTION_COUNT, "auto", 1, 1e9, NULL, "N",
     "samples a side at every step; auto: 500 (4000 in two dimensions)"},
    {"magnitudes", 0, N2CE_OPTION_REALS, "auto", 1, 1e300, NULL, "LIST",
     "noise magnitudes M to compare; auto: the paper's list for this n"},
    {"families", 0, N2CE_OPTION_WORDS, "n2ce,nwj,neg-reweight", 0, 0, "n2ce|nwj|neg-reweight",
     "LIST", "objectives to compare; neg-reweight runs at the recommended M"},
    {"runs", 0, N2CE_OPTION_COUNT, "100", 1, 1e9, NULL, "R", "independent runs to average over"},
    {"steps", 0, N2CE_OPTION_COUNT, "150", 1, 1e9, NULL, "T", "steps of gradient descent, a run"},
    {"step-size", 0, N2CE_OPTION_REAL, "0.2", 1e-12, 100, NULL, "ETA", "length of a step"},
    {"seed", 's', N2CE_OPTION_COUNT, "0", 0, 9007199254740992.0, NULL, "S",
     "random seed; same seed, same bytes, for any number of threads"},
    N2_REPORT_OPTION,
    N2_FORCE_OPTION,
    {0},
};

/* ---- what the paper printed ---------------------------------------------- */

typedef struct paper_row {
    double magnitude; /* infinity: NWJ */
    double mean, std;
} paper_row;

static const paper_row paper_500[] = {
    {N2_INFINITY, 1.359, 5.454}, {1, 0.678, 0.004},   {10, 0.489, 0.004},
    {50, 0.456, 0.006},          {100, 0.453, 0.007}, {1000, 0.489, 0.020},
    {1e4, 0.641, 0.324},         {2e4, 0.750, 0.889}, {1e9, 1.909, 11.201},
};
static const paper_row paper_2[] = {
    {N2_INFINITY, 54.548, 237.528},
    {1, 0.904, 0.084},
    {1.5, 0.884, 0.083},
    {2, 0.888, 0.084},
    {5, 0.983, 0.107},
    {10, 1.139, 0.168},
    {100, 3.158, 2.683},
    {1000, 17.564, 42.751},
    {1e9, 61.291, 277.336},
};
enum { PAPER_ROWS = 9 };

static const double plane_target[] = {1.5, -0.8}, plane_start[] = {-2.0, 1.0};
static const double line_target[] = {-1.5, -0.75, 0, 0.75, 1.5};

static bool is_paper_table(const n2_gaussian_setting *s) {
    if (s->dim != 5 || s->steps != 150 || s->step_size != 0.2) return false;
    for (size_t d = 0; d < 5; d++)
        if (s->target[d] != line_target[d] || s->start[d] != -line_target[d]) return false;
    return s->n == 500 || s->n == 2;
}

static void note_paper(const n2_gaussian_setting *s, n2_gaussian_column *c) {
    c->paper_mean = c->paper_std = N2_NAN;
    if (!is_paper_table(s) || c->family == N2CE_FAMILY_NEG_REWEIGHT) return;
    const double m = c->family == N2CE_FAMILY_NWJ ? N2_INFINITY : c->magnitude;
    const paper_row *rows = s->n == 500 ? paper_500 : paper_2;
    for (int i = 0; i < PAPER_ROWS; i++) {
        if (rows[i].magnitude != m) continue;
        c->paper_mean = rows[i].mean;
        c->paper_std = rows[i].std;
    }
}

/* ---- from options to a setting ------------------------------------------- */

static n2ce_status add_column(n2ce_ctx *ctx, n2_gaussian_setting *s, n2ce_family family,
                              double magnitude) {
    if (s->n_columns == N2_GAUSSIAN_COLUMNS)
        return n2_fail(ctx, N2CE_EINVAL, "--magnitudes: at most %d objectives can be compared.",
                       N2_GAUSSIAN_COLUMNS);
    n2_gaussian_column *c = &s->columns[s->n_columns++];
    c->family = family;
    c->magnitude = magnitude;
    note_paper(s, c);
    return N2CE_OK;
}

/* The paper's magnitudes for this dimension and sample size, without NWJ. */
static size_t usual_magnitudes(const n2_gaussian_setting *s, double *list) {
    static const double plane[] = {1, 2, 10, 50, 100, 1000};
    if (s->dim == 2) {
        memcpy(list, plane, sizeof plane);
        return sizeof plane / sizeof plane[0];
    }
    const paper_row *rows = s->n <= 20 ? paper_2 : paper_500;
    for (int i = 1; i < PAPER_ROWS; i++) list[i - 1] = rows[i].magnitude;
    return PAPER_ROWS - 1;
}

static n2ce_status choose_columns(n2ce_ctx *ctx, const n2ce_options *o, n2_arena *arena,
                                  n2_gaussian_setting *s) {
    double usual[PAPER_ROWS], *list;
    size_t n;
    N2_TRY(n2_options_reals(o, "magnitudes", arena, &list, &n));
    if (!list) {
        n = usual_magnitudes(s, usual);
        list = usual;
    }
    if (n2_options_has_word(o, "families", "nwj"))
        N2_TRY(add_column(ctx, s, N2CE_FAMILY_NWJ, N2_INFINITY));
    if (n2_options_has_word(o, "families", "neg-reweight"))
        N2_TRY(add_column(ctx, s, N2CE_FAMILY_NEG_REWEIGHT, n2ce_magnitude_for((double)s->n, 0)));
    for (size_t i = 0; i < n && n2_options_has_word(o, "families", "n2ce"); i++)
        N2_TRY(add_column(ctx, s, N2CE_FAMILY_N2CE, list[i]));
    return N2CE_OK;
}

/* -1.5 to 1.5 evenly: in five dimensions that is the paper's target. */
static n2ce_status default_target(n2_arena *arena, n2_gaussian_setting *s) {
    double *target = n2_arena_alloc(arena, s->dim, sizeof *target);
    if (!target) return N2CE_ENOMEM;
    for (size_t d = 0; d < s->dim; d++)
        target[d] = s->dim == 1   ? 1.5
                    : s->dim == 2 ? plane_target[d]
                                  : -1.5 + 3.0 * (double)d / (double)(s->dim - 1);
    s->target = target;
    return N2CE_OK;
}

static n2ce_status default_start(n2_arena *arena, n2_gaussian_setting *s) {
    double *start = n2_arena_alloc(arena, s->dim, sizeof *start);
    if (!start) return N2CE_ENOMEM;
    const bool plane = s->dim == 2 && memcmp(s->target, plane_target, sizeof plane_target) == 0;
    for (size_t d = 0; d < s->dim; d++) start[d] = plane ? plane_start[d] : 0.0 - s->target[d];
    s->start = start;
    return N2CE_OK;
}

static n2ce_status check_length(n2ce_ctx *ctx, const char *name, size_t found, size_t dim) {
    if (found == 0 || found == dim) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL,
                   "--%s has %zu numbers but the dimension is %zu. Give %zu numbers, or another "
                   "--dim.",
                   name, found, dim, dim);
}

static n2ce_status choose_points(n2ce_ctx *ctx, const n2ce_options *o, size_t fallback_dim,
                                 n2_arena *arena, n2_gaussian_setting *s) {
    double *target, *start;
    size_t n_target, n_start;
    N2_TRY(n2_options_reals(o, "target", arena, &target, &n_target));
    N2_TRY(n2_options_reals(o, "start", arena, &start, &n_start));
    s->dim = n_target ? n_target : n_start ? n_start : fallback_dim;
    if (!n2_options_is_auto(o, "dim")) s->dim = (size_t)n2_options_count(o, "dim");
    N2_TRY(check_length(ctx, "target", n_target, s->dim));
    N2_TRY(check_length(ctx, "start", n_start, s->dim));
    s->target = target;
    if (!target) N2_TRY(default_target(arena, s));
    s->start = start;
    if (!start) N2_TRY(default_start(arena, s));
    return N2CE_OK;
}

/* fallback_n 0: by the dimension. */
static n2ce_status make_setting(n2ce_ctx *ctx, const n2ce_options *o, size_t fallback_dim,
                                uint64_t fallback_n, n2_arena *arena, n2_gaussian_setting *s) {
    N2_TRY(choose_points(ctx, o, fallback_dim, arena, s));
    s->n = fallback_n ? fallback_n : s->dim == 2 ? 4000 : 500;
    if (!n2_options_is_auto(o, "n")) s->n = n2_options_count(o, "n");
    s->runs = n2_options_count(o, "runs");
    s->steps = n2_options_count(o, "steps");
    s->step_size = n2ce_options_number(o, "step-size");
    s->seed = n2_options_count(o, "seed");
    return choose_columns(ctx, o, arena, s);
}

/* With nothing said about the problem: the paper's three. */
enum { MAX_SETTINGS = 3 };

static n2ce_status make_settings(n2ce_ctx *ctx, const n2ce_options *o, n2_arena *arena,
                                 n2_gaussian_setting *settings, size_t *n) {
    const bool papers = n2_options_is_auto(o, "dim") && n2_options_is_auto(o, "target") &&
                        n2_options_is_auto(o, "start") && n2_options_is_auto(o, "n");
    *n = papers ? MAX_SETTINGS : 1;
    if (!papers) return make_setting(ctx, o, 5, 0, arena, &settings[0]);
    N2_TRY(make_setting(ctx, o, 2, 4000, arena, &settings[0]));
    N2_TRY(make_setting(ctx, o, 5, 500, arena, &settings[1]));
    return make_setting(ctx, o, 5, 2, arena, &settings[2]);
}

/* ---- the study ----------------------------------------------------------- */

static n2ce_status simulate_all(n2ce_ctx *ctx, n2_gaussian_study *study, n2_arena *arena,
                                n2_gaussian_result *results, n2_gaussian_bias *bias) {
    n2_gaussian_progress progress = {0, 0};
    for (size_t i = 0; i < study->n_settings; i++)
        progress.total += (double)study->settings[i].runs * n2_gaussian_work(&study->settings[i]);
    for (size_t i = 0; i < study->n_settings; i++) {
        N2_TRY(n2_gaussian_bias_curves(&study->settings[i], arena, &bias[i]));
        const n2ce_status status =
            n2_gaussian_simulate(ctx, &study->settings[i], &progress, arena, &results[i]);
        if (status == N2CE_OK) continue;
        study->interrupted = status == N2CE_ECANCELED;
        study->n_settings = i + (results[i].runs_done > 0); /* what can be shown */
        return status;
    }
    return N2CE_OK;
}

static n2ce_status study_with(n2ce_ctx *ctx, const n2ce_options *options, n2_arena *arena,
                              n2ce_answer *answer) {
    n2_gaussian_setting *settings = n2_arena_alloc(arena, MAX_SETTINGS, sizeof *settings);
    n2_gaussian_result *results = n2_arena_alloc(arena, MAX_SETTINGS, sizeof *results);
    n2_gaussian_bias *bias = n2_arena_alloc(arena, MAX_SETTINGS, sizeof *bias);
    if (!settings || !results || !bias) return N2CE_ENOMEM;
    n2_gaussian_study study = {
        .settings = settings, .results = results, .bias = bias, .options = options};
    N2_TRY(make_settings(ctx, options, arena, settings, &study.n_settings));
    const n2ce_status status = simulate_all(ctx, &study, arena, results, bias);
    if (status != N2CE_OK && status != N2CE_ECANCELED) return status;
    if (study.n_settings > 0) N2_TRY(n2_gaussian_show(ctx, &study, answer));
    return status;
}

static n2ce_status run(n2ce_ctx *ctx, const n2ce_options *options, n2ce_answer *answer) {
    return n2_task_in_arena(ctx, options, answer, study_with);
}

const n2ce_task n2_gaussian_task = {
    .name = "study gaussian",
    .summary = "the paper's Gaussian experiments: trajectories, gradient bias, tables",
    .description =
        "Fits the mean a of N(a, I) to a target N(a*, I) by gradient ascent on the N2CE family\n"
        "with noise N(0, I), fresh samples at every step, and compares the noise magnitudes M\n"
        "with NWJ, with re-weighting the noise side only, and with exact maximum likelihood.\n"
        "The score of a run is the mean over its steps of |a_t - a*|^2: smaller is better, and\n"
        "maximum likelihood without sampling is the best possible.\n"
        "\n"
        "Without --dim, --target, --start and --n it runs the three problems of the paper (two\n"
        "dimensions; five with n = 500 and n = 2) and prints the paper's values beside its own.\n"
        "The squared bias of the gradient is exact (quadrature, no sampling).\n",
    .examples = "n2ce study gaussian --report out\n"
                "n2ce study gaussian --dim 5 --n 500 --runs 100 --json\n"
                "n2ce study gaussian --target 2,0,1 --n 50 --magnitudes 1,5,25,125\n",
    .page = "gaussian.html",
    .data = "gaussian.json",
    .options = options_table,
    .run = run,
};
