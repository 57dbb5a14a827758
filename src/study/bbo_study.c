/* "study bbo": its options, and its runs. */
#include "bbo_study.h"

#include "base/clock.h"
#include "base/numerics.h"
#include "comm/comm.h"
#include "design/design_space.h"
#include "study_runner.h"
#include "task/device_options.h"
#include "task/vocabulary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const n2ce_option options_table[] = {
    {"preset", 0, N2CE_OPTION_WORD, "none", 0, 0,
     "none|branin|table|rows|ablation|queries|cubes|prior", "NAME",
     "settings by name: what makes a table or figure of the paper; options that are given besides "
     "count"},
    {"tasks", 0, N2CE_OPTION_TEXT, "branin", 0, 0, NULL, "LIST",
     "tasks to run, separated by commas: branin, branin-50, tfbind8, tfbind10, superconductor, "
     "molecule; or all of these; robots: ant, dkitty; further: utr, aav, rna, hairpin, grammar, "
     "recipe; variants: branin-all, branin-50-all"},
    {"methods", 0, N2CE_OPTION_TEXT, "n2ce,random,top-offline", 0, 0, NULL, "LIST",
     "methods to compare, separated by commas; all: those that are no variant of another; "
     "variants: those"},
    {"beside", 0, N2CE_OPTION_TEXT, "gbm-rank,mlp-evolve,random,top-offline", 0, 0, NULL, "LIST",
     "methods that are shown beside those: what an engineer would do with scikit-learn, and what "
     "learns nothing; none: nothing"},
    {"data", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "DIR",
     "folder of the tasks' data; else the environment variable N2CE_DATA"},
    {"seeds", 0, N2CE_OPTION_COUNT, "5", 1, 10000, NULL, "K", "repetitions of every run"},
    {"queries", 0, N2CE_OPTION_REALS, "auto", 1, 1e6, NULL, "LIST",
     "how many designs are proposed, several numbers separated by commas; auto: 256, and 128 for "
     "Branin"},
    {"targets", 0, N2CE_OPTION_REALS, "auto", -10, 10, NULL, "LIST",
     "also draw Q designs for each of these values, 0 the least and 1 the best offline, by methods "
     "that can; auto: none, or the preset's"},
    {"scale", 0, N2CE_OPTION_COUNT, "1", 1, 1e6, NULL, "S",
     "train networks of 1/S of the published width for 1/S of the published steps"},
    N2_FIRST_SEED_OPTION,
    {"reuse", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILES",
     "take over the runs that are in these answers (bbo.json, or folders with it, separated by "
     "commas); make the others"},
    {"merge", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILES",
     "make no runs: one answer of those in these answers, with their tasks, methods, seeds and Q"},
    {"device", 0, N2CE_OPTION_TEXT, "cpu", 0, 0, NULL, "DEVICE",
     "where to compute: auto (whichever is faster, by measurement), cpu, cuda, cuda:N for GPU N"},
    N2_PRECISION_OPTION,
    N2_REPORT_OPTION,
    N2_FORCE_OPTION,
    {0},
};

/* ---- one run --------------------------------------------------------------------------------- */

typedef struct bbo_runner {
    n2_runner base;
    n2_bbo_study *study;
    n2_design_bench *bench;
    size_t task;
    size_t begun; /* seed that the bench is at, and one; 0: none */
} bbo_runner;

/* Proposals in the making: x and unmoved, and values of them. */
typedef struct desk {
    double *x, *unmoved, *y;
    n2_aims aims;
} desk;

static n2ce_status score(const n2_design_bench *b, const double *x, size_t rows, double *y,
                         double *max, double *median) {
    N2_TRY(n2_design_bench_score(b, x, rows, y));
    for (size_t i = 0; i < rows; i++) y[i] = n2_design_normalise(b->task, y[i]);
    *median = n2_percentile(y, rows, 50);
    *max = y[rows - 1];
    return N2CE_OK;
}

/* A design that was moved may have a value of its own where it was, if it has one at all: levels
 * and whole numbers between others have none. */
static bool has_unmoved(const n2_space *space, const double *x, size_t rows) {
    for (size_t i = 0; i < rows * space->n; i++)
        if (!isfinite(x[i]) || space->factor[i % space->n].kind != N2_CONTINUOUS) return false;
    return true;
}

static n2ce_status judge(const bbo_runner *r, const n2_proposals *p, const desk *d,
                         n2_bbo_run *run) {
    const n2_design_bench *b = r->bench;
    const n2_space *space = &b->offline.space;
    run->inside = p->inside;
    run->unmoved_max = run->unmoved_median = N2_NAN;
    N2_TRY(n2_bbo_points_keep(r->study, b, p->x, p->rows, run->seed, &run->proposed));
    N2_TRY(n2_designs_distinct(r->base.ctx, p->x, p->rows, space->n, &run->distinct));
    N2_TRY(score(b, p->x, p->rows, d->y, &run->max, &run->median));
    if (b->task->moves || !has_unmoved(space, d->unmoved, p->rows)) return N2CE_OK;
    return score(b, d->unmoved, p->rows, d->y, &run->unmoved_max, &run->unmoved_median);
}

/* Where "auto" led, if the method had a choice. */
static n2ce_status note_device(bbo_runner *r, const n2_listed_method *m,
                               const n2_device_choice *choice, n2_bbo_run *run) {
    if (!r->study->choice.open || choice->open) return N2CE_OK;
    run->device = n2_arena_strdup(r->study->arena, n2_choice_name(choice));
    if (!run->device) return N2CE_ENOMEM;
    const char *before = run->seed > r->study->first_seed ? run[-1].device : NULL;
    if (before && strcmp(before, run->device) == 0) return N2CE_OK; /* it need not be said again */
    n2_log(r->base.ctx, N2CE_LOG_INFO, "%s by %s with seed %llu on %s (%s)", r->bench->task->name,
           m->method->name, (unsigned long long)run->seed, run->device, choice->reason);
    return N2CE_OK;
}

static n2ce_status propose(bbo_runner *r, const n2_listed_method *m, size_t rows, const desk *d,
                           n2_bbo_run *run) {
    const n2_aims *aims = m->aim && d->aims.n > 0 ? &d->aims : NULL;
    const n2_designs *offline = &r->bench->offline;
    n2_proposals p = {.rows = rows, .x = d->x, .inside = N2_NAN, .unmoved = d->unmoved};
    for (size_t i = 0; i < rows * offline->space.n; i++) d->unmoved[i] = N2_NAN;
    const double start = n2_seconds();
    n2_device_choice choice = r->study->choice;
    n2_effort effort = r->study->effort;
    effort.choice = &choice;
    const n2ce_status status =
        n2_method_run(r->base.inner, m, offline, run->seed, &effort, aims, &p);
    run->seconds = n2_seconds() - start;
    if (status != N2CE_OK) return status;
    N2_TRY(note_device(r, m, &choice, run));
    if (aims) N2_TRY(n2_bbo_aims_judge(r->study, r->bench, aims, run));
    return judge(r, &p, d, run);
}

static void note_failure(const bbo_runner *r, const n2_listed_method *m, const char *message,
                         n2_bbo_run *run) {
    run->max = run->median = run->unmoved_max = run->unmoved_median = run->inside = N2_NAN;
    run->failed = true;
    n2_log(r->base.ctx, N2CE_LOG_WARNING, "%s by %s with seed %llu gave no result: %s",
           r->bench->task->name, m->method->name, (unsigned long long)run->seed, message);
}

/* That a method fails on a task is a result; that memory is short, or the user in a hurry, is
 * not. */
static n2ce_status run_method(bbo_runner *r, const n2_listed_method *m, n2_bbo_run *run) {
    const size_t rows = r->study->queries[r->task], n = r->bench->offline.space.n;
    n2_arena arena = n2_arena_new(r->base.ctx);
    desk d = {n2_arena_alloc(&arena, rows * n, sizeof *d.x),
              n2_arena_alloc(&arena, rows * n, sizeof *d.x),
              n2_arena_alloc(&arena, rows, sizeof *d.x),
              {0}};
    n2ce_status status = d.x && d.unmoved && d.y ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK && m->aim)
        status = n2_bbo_aims_open(r->study, r->task, r->bench, &arena, &d.aims);
    if (status == N2CE_OK) status = propose(r, m, rows, &d, run);
    n2_arena_free(&arena);
    if (status == N2CE_ENOMEM || r->base.out_of_memory)
        return n2_fail(r->base.ctx, N2CE_ENOMEM,
                       "Out of memory: %s by %s. Give --queries less, or a larger --scale.",
                       r->bench->task->name, m->method->name);
    if (status == N2CE_ECANCELED || n2_cancelled(r->base.ctx)) return N2CE_ECANCELED;
    if (status != N2CE_OK) note_failure(r, m, n2ce_errmsg(r->base.inner), run);
    run->done = true;
    n2_runner_done(&r->base, (double)++r->study->n_done);
    return N2CE_OK;
}

/* ---- the study ------------------------------------------------------------------------------- */

static double best_offline(const n2_design_bench *b) {
    double best = -N2_INFINITY;
    for (size_t i = 0; i < b->offline.rows; i++) best = fmax(best, b->offline.y[i]);
    return n2_design_normalise(b->task, best);
}

/* The offline set and the oracle of a seed are made once, on the rank that needs them. */
static n2ce_status begin_seed(bbo_runner *r, size_t k) {
    n2_bbo_study *s = r->study;
    if (r->begun == k + 1) return N2CE_OK;
    N2_TRY(n2_design_bench_begin(r->bench, s->first_seed + k));
    r->begun = k + 1;
    s->offline_best[r->task * s->n_seeds + k] = best_offline(r->bench);
    s->offline_rows[r->task] = r->bench->offline.rows;
    return N2CE_OK;
}

/* Seeds outside, methods inside: what an interruption leaves can be compared. What was taken over
 * is done, if the best value offline is known too. */
static n2ce_status run_one(void *user, size_t i) {
    bbo_runner *r = user;
    n2_bbo_study *s = r->study;
    const size_t k = i / s->n_methods, m = i % s->n_methods;
    n2_bbo_run *run = n2_bbo_run_at(s, r->task, m, k);
    if (run->done && isfinite(s->offline_best[r->task * s->n_seeds + k])) return N2CE_OK;
    N2_TRY(begin_seed(r, k));
    if (run->done) return N2CE_OK;
    run->seed = s->first_seed + k;
    run->scale = s->effort.scale;
    return run_method(r, s->methods[m], run);
}

/* Bytes of the arena that rank `root` has at *at: copies of them elsewhere. */
static n2ce_status share_list(bbo_runner *r, int root, const void **at, size_t bytes) {
    n2ce_ctx *ctx = r->base.ctx;
    if (bytes == 0) return N2CE_OK;
    void *copy = n2_arena_alloc(r->study->arena, bytes, 1);
    if (!copy) return N2CE_ENOMEM;
    if (n2_rank(ctx) == root) memcpy(copy, *at, bytes);
    *at = copy;
    return n2_comm_broadcast(ctx, root, copy, bytes);
}

static n2ce_status share_points(bbo_runner *r, int root, n2_bbo_points *p) {
    const void *x = p->x;
    N2_TRY(share_list(r, root, &x, p->x ? 2 * p->n * sizeof *p->x : 0));
    p->x = x;
    return N2CE_OK;
}

/* Lists first say whether there are any, by the root's pointers, which mean nothing else here. */
static n2ce_status share_run(bbo_runner *r, int root, n2_bbo_run *run) {
    const char *device = run->device;
    N2_TRY(n2_share_string(r->base.ctx, r->study->arena, root, &device));
    N2_TRY(n2_comm_broadcast(r->base.ctx, root, run, sizeof *run));
    const void *aims = run->aims;
    N2_TRY(share_list(r, root, &aims, run->n_aims * sizeof *run->aims));
    run->device = device;
    run->aims = (n2_bbo_aim *)(uintptr_t)aims;
    N2_TRY(share_points(r, root, &run->proposed));
    return share_points(r, root, &run->drawn);
}

static n2ce_status share_one(void *user, size_t i, int root) {
    bbo_runner *r = user;
    n2_bbo_study *s = r->study;
    const size_t k = i / s->n_methods;
    n2_bbo_run *run = n2_bbo_run_at(s, r->task, i % s->n_methods, k);
    const bool had = run->done;
    double *best = &s->offline_best[r->task * s->n_seeds + k];
    N2_TRY(n2_comm_broadcast(r->base.ctx, root, best, sizeof *best));
    N2_TRY(n2_comm_broadcast(r->base.ctx, root, &s->offline_rows[r->task],
                             sizeof s->offline_rows[r->task]));
    N2_TRY(share_run(r, root, run));
    if (!had) n2_runner_done(&r->base, (double)++s->n_done);
    return N2CE_OK;
}

static n2ce_status run_task(bbo_runner *r) {
    r->begun = 0;
    return n2_comm_tasks(r->base.ctx, r->study->n_seeds * r->study->n_methods, run_one, share_one,
                         r);
}

static const char *data_folder(const n2ce_options *o) {
    const char *folder = n2ce_options_get(o, "data");
    return folder ? folder : getenv("N2CE_DATA");
}

static n2ce_status run_all(bbo_runner *r) {
    n2_bbo_study *s = r->study;
    n2ce_status status = N2CE_OK;
    for (r->task = 0; r->task < s->n_tasks && status == N2CE_OK; r->task++) {
        N2_TRY(n2_design_bench_open(r->base.ctx, s->tasks[r->task], data_folder(s->options),
                                    &r->bench));
        status = run_task(r);
        n2_design_bench_close(r->bench);
    }
    return status;
}

/* Before hours of work: the data of all tasks are there. */
static n2ce_status check_data(n2ce_ctx *ctx, const n2_bbo_study *s) {
    for (size_t t = 0; t < s->n_tasks && s->n_tasks > 1; t++) {
        n2_design_bench *b;
        N2_TRY(n2_design_bench_open(ctx, s->tasks[t], data_folder(s->options), &b));
        n2_design_bench_close(b);
    }
    return N2CE_OK;
}

static n2ce_status make_room(n2_bbo_study *s) {
    s->runs = n2_arena_alloc(s->arena, n2_bbo_runs(s), sizeof *s->runs);
    s->offline_best = n2_arena_alloc(s->arena, s->n_tasks * s->n_seeds, sizeof *s->offline_best);
    s->offline_rows = n2_arena_alloc(s->arena, s->n_tasks, sizeof *s->offline_rows);
    if (!s->runs || !s->offline_best || !s->offline_rows) return N2CE_ENOMEM;
    for (size_t i = 0; i < s->n_tasks * s->n_seeds; i++) s->offline_best[i] = N2_NAN;
    return N2CE_OK;
}

static n2ce_status read_options(n2ce_ctx *ctx, const n2ce_options *o, n2_bbo_study *s) {
    const char *reuse = n2ce_options_get(o, "reuse");
    n2_bbo_kept kept;
    s->n_seeds = (size_t)n2_options_count(o, "seeds");
    s->first_seed = n2_options_count(o, "seed");
    N2_TRY(n2_bbo_choose(ctx, o, s));
    N2_TRY(n2_choice_of_options(ctx, o, &s->choice));
    s->effort = (n2_effort){(size_t)n2_options_count(o, "scale"), N2_LEAST_WIDTH, N2_LEAST_STEPS,
                            &s->choice};
    N2_TRY(make_room(s));
    if (reuse) {
        N2_TRY(n2_bbo_kept_read(ctx, reuse, s->arena, &kept));
        n2_bbo_kept_take(&kept, false, s);
    }
    return check_data(ctx, s);
}

static n2ce_status show_so_far(n2ce_ctx *ctx, const void *study, n2ce_answer *answer) {
    const n2_bbo_study *s = study;
    return n2_bbo_study_show(ctx, s, answer);
}

/* Runs what is to be run. */
static n2ce_status run_study(n2ce_ctx *ctx, n2_bbo_study *s) {
    bbo_runner r = {.study = s};
    N2_TRY(read_options(ctx, s->options, s));
    N2_TRY(n2_runner_open(ctx, (double)n2_bbo_runs(s), &r.base));
    n2_runner_done(&r.base, (double)s->n_done);
    n2_runner_keep(&r.base,
                   &(n2_study_keeper){
                       .options = s->options, .file = "bbo.json", .study = s, .show = show_so_far});
    const n2ce_status status = run_all(&r);
    n2_runner_close(&r.base);
    return status;
}

/* Puts answers together. */
static n2ce_status merge_studies(n2ce_ctx *ctx, const char *paths, n2_bbo_study *s) {
    n2_bbo_kept kept;
    N2_TRY(n2_bbo_kept_read(ctx, paths, s->arena, &kept));
    N2_TRY(n2_bbo_kept_choose(ctx, &kept, s));
    N2_TRY(make_room(s));
    n2_bbo_kept_take(&kept, true, s);
    return N2CE_OK;
}

static n2ce_status study_with(n2ce_ctx *ctx, const n2ce_options *options, n2_arena *arena,
                              n2ce_answer *answer) {
    const char *merge = n2ce_options_get(options, "merge");
    n2_bbo_study study = {.options = options, .arena = arena};
    const n2ce_status status = merge ? merge_studies(ctx, merge, &study) : run_study(ctx, &study);
    study.interrupted = status == N2CE_ECANCELED;
    if (status != N2CE_OK && !study.interrupted) return status;
    if (study.n_done > 0) N2_TRY(n2_bbo_study_show(ctx, &study, answer));
    return status;
}

static n2ce_status run(n2ce_ctx *ctx, const n2ce_options *options, n2ce_answer *answer) {
    n2ce_options *all;
    N2_TRY(n2_bbo_preset(ctx, options, options_table, &all));
    const n2ce_status status = n2_task_in_arena(ctx, all, answer, study_with);
    n2ce_options_free(all);
    return status;
}

const n2ce_task n2_bbo_study_task = {
    .name = "study bbo",
    .summary = "offline optimisation: methods against tasks with oracles, as in the paper",
    .description =
        "A method sees designs that were tried and their values, without the best ones, and\n"
        "proposes Q new designs; an oracle, which the method does not see, says what they are\n"
        "worth. Printed are the largest value and the median of the Q, normalised as in the\n"
        "paper, over seeds, beside the paper's numbers and what chance (random) and the best\n"
        "designs offline (top-offline) achieve: what does not beat those has learned nothing;\n"
        "and what an engineer would do with scikit-learn: boosted trees rank candidates\n"
        "(gbm-rank), networks rank and change them (mlp-evolve).\n"
        "\n"
        "Tasks: branin and branin-50 need no data, nor do their variants with the best tenth,\n"
        "branin-all and branin-50-all. tfbind8, tfbind10 and superconductor read theirs from\n"
        "the folders of these names in --data, molecule (the paper's ChEMBL in kind) from\n"
        "chembl_aux. The robots, ant and dkitty, are in kind, too, and need MuJoCo and data that\n"
        "are made. Further tasks are none of the paper's: utr and aav with data; rna, and\n"
        "hairpin, grammar and recipe, whose designs are worth nothing unless they pair, are a\n"
        "formula, or add up.\n"
        "\n"
        "Methods: n2ce, the latent model of n2ce optimize, with the variants n2ce-m1, -m10,\n"
        "-m1000, -k1, -k2, -k4, -k8, -ld, gaussian, mle and mle-ld, and its draws for the best\n"
        "value offline, as in the paper: n2ce-draws, n2ce-m1-draws, n2ce-k1-draws,\n"
        "n2ce-k1-m1-draws, gaussian-draws, mle-draws; gradient-ascent, coms, cma-es, reinforce,\n"
        "cbas, auto-cbas, mins, gp-qei, ddom, bonet with the published hyper-parameters; random,\n"
        "with the variants cube-0.005, -0.01, -0.05, -0.1, and top-offline. Networks of the\n"
        "published size train for hours on a few cores: --scale 8 makes them smaller, and the\n"
        "answer says so. Designs beyond the bounds are moved to them before they are tried;\n"
        "inside is the share that needed no move. Ctrl-C keeps the finished runs.\n"
        "\n"
        "Presets: branin, the paper's figures and table of Branin; table, its tables at Q = 128\n"
        "and 256; rows, all methods on all tasks and robots; ablation, M, K, samplers and\n"
        "objectives; queries, Q; cubes, the control by random cubes; prior, what priors do to\n"
        "draws of designs that must pair, be a formula, or add up.\n"
        "\n"
        "Runs made in pieces, with other tasks, methods or seeds, or on other machines, become\n"
        "one answer with --merge; a study that was interrupted goes on with --reuse.\n",
    .examples =
        "n2ce study bbo\n"
        "n2ce study bbo --tasks tfbind8 --data data --methods gradient-ascent --scale 8\n"
        "n2ce study bbo --tasks all --data data --methods all --report out --json\n"
        "n2ce study bbo --tasks all --data data --methods all --reuse out --report out --force\n"
        "n2ce study bbo --merge out,elsewhere/bbo.json --report together\n",
    .page = "bbo.html",
    .data = "bbo.json",
    .options = options_table,
    .run = run,
};
