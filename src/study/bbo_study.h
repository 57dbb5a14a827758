/* The study of offline optimisation: methods on tasks with oracles, by seeds, beside what the paper
 * prints and what chance achieves.
 *
 * bbo_study_choose.c reads what is asked for, bbo_study.c and bbo_study_aims.c run it,
 * bbo_study_kept.c takes over runs of earlier studies, bbo_study_view.c makes tables and text,
 * bbo_study_json.c JSON, bbo_study_page.c the HTML report. */
#ifndef N2_BBO_STUDY_H
#define N2_BBO_STUDY_H

#include "base/numerics.h"
#include "design/design_task.h"
#include "optimize/methods.h"
#include "report/text_table.h"
#include "task/task.h"

enum { N2_BBO_TASKS = 64, N2_BBO_METHODS = 64 };

/* Designs drawn for a value, and what they are worth. Values are normalised, but for `scaled`. */
typedef struct n2_bbo_aim {
    double scaled, target;      /* the value: 0 the least, 1 the best offline; and as it is */
    double mean, sd, low, high; /* of those of the draws; their 10th and 90th percentile */
} n2_bbo_aim;

/* Points of a plane. */
typedef struct n2_bbo_points {
    const double *x; /* NULL: there are none */
    size_t n;
} n2_bbo_points;

/* One method on one task with one seed. Values are normalised. A run that failed has no numbers.
 * The seconds are the only number that varies from run to run. */
typedef struct n2_bbo_run {
    uint64_t seed;
    double max, median;                 /* over the Q proposals, as they can be tried */
    double unmoved_max, unmoved_median; /* as proposed; NaN where the method does not tell */
    double inside;                      /* share that was within the bounds as proposed */
    double seconds;
    size_t distinct;    /* different proposals */
    size_t scale;       /* n2_effort.scale */
    const char *device; /* where it was made, if that was measured; else NULL */
    bool done, failed;
    n2_bbo_aim *aims; /* target by target */
    size_t n_aims;
    n2_bbo_points
        proposed;        /* as they can be tried, where they are points of a plane and the seed */
    n2_bbo_points drawn; /* is the first; and draws for the best value offline, or nearest to it */
} n2_bbo_run;

typedef struct n2_bbo_study {
    const n2ce_options *options;
    n2_arena *arena;                           /* of all that is below */
    const n2_design_task *tasks[N2_BBO_TASKS]; /* a task with two Q is here twice */
    size_t queries[N2_BBO_TASKS];              /* Q */
    const n2_listed_method *methods[N2_BBO_METHODS];
    size_t n_tasks, n_methods, n_seeds;
    size_t n_asked; /* the first of the methods were asked for, the others are shown beside them */
    uint64_t first_seed;
    const double *targets; /* scaled */
    size_t n_targets;
    n2_effort effort;
    n2_device_choice choice; /* of every run, which settles it by itself */
    n2_bbo_run *runs;        /* task by task, in it method by method, in it seed by seed */
    double *offline_best;    /* task by task, in it seed by seed; normalised */
    size_t *offline_rows;    /* by task */
    size_t n_done;
    bool interrupted;
} n2_bbo_study;

static inline size_t n2_bbo_runs(const n2_bbo_study *s) {
    return s->n_tasks * s->n_methods * s->n_seeds;
}

static inline n2_bbo_run *n2_bbo_run_at(const n2_bbo_study *s, size_t t, size_t m, size_t seed) {
    return &s->runs[(t * s->n_methods + m) * s->n_seeds + seed];
}

/* ---- what is asked for (bbo_study_choose.c) ---- */

/* The options that were given, above those of the preset that they name. Free *out. */
n2ce_status n2_bbo_preset(n2ce_ctx *ctx, const n2ce_options *given, const n2ce_option *table,
                          n2ce_options **out);

/* Tasks with their Q, targets, and methods: those asked for, then those that are shown beside
 * them. */
n2ce_status n2_bbo_choose(n2ce_ctx *ctx, const n2ce_options *o, n2_bbo_study *s);

/* ---- draws for values (bbo_study_aims.c) ---- */

/* Aims of a study at this bench, with room in the arena; none (n is 0) if nothing is asked for. */
n2ce_status n2_bbo_aims_open(const n2_bbo_study *s, size_t task, const n2_design_bench *b,
                             n2_arena *arena, n2_aims *aims);

/* What the oracle says of them, into the run. */
n2ce_status n2_bbo_aims_judge(const n2_bbo_study *s, const n2_design_bench *b, const n2_aims *aims,
                              n2_bbo_run *run);

/* Copies points of a plane into the study's arena, if its seed is the first and its space a
 * plane. */
n2ce_status n2_bbo_points_keep(const n2_bbo_study *s, const n2_design_bench *b, const double *x,
                               size_t rows, uint64_t seed, n2_bbo_points *out);

/* The first seed of which points were kept; 0: of none. */
size_t n2_bbo_pictured(const n2_bbo_study *s, size_t task, size_t method);

/* The scaled values that methods drew for on a task, from the least on, in the arena. */
n2ce_status n2_bbo_aim_values(const n2_bbo_study *s, size_t task, n2_arena *arena, double **scaled,
                              size_t *n);

/* The mean over seeds of a method's aim at one of them; false, and NaN: there is none. */
bool n2_bbo_aim_mean(const n2_bbo_study *s, size_t task, size_t method, double scaled,
                     n2_bbo_aim *mean);

/* ---- runs of earlier studies (bbo_study_kept.c) ---- */

/* A run as the JSON of a study has it. */
typedef struct n2_bbo_row {
    const n2_design_task *task;
    const n2_listed_method *method;
    size_t queries;
    bool asked; /* not just shown beside others */
    n2_bbo_run run;
} n2_bbo_row;

/* What there was to learn from: rows, and the best of them. */
typedef struct n2_bbo_offline {
    const n2_design_task *task;
    uint64_t seed;
    size_t rows;
    double best;
} n2_bbo_offline;

typedef struct n2_bbo_kept {
    n2_arena *arena;
    n2_bbo_row *rows;
    n2_bbo_offline *offline;
    size_t n_rows, n_offline;
} n2_bbo_kept;

/* Reads the JSON of studies: paths of files, or of folders with a bbo.json, separated by commas. */
n2ce_status n2_bbo_kept_read(n2ce_ctx *ctx, const char *paths, n2_arena *arena, n2_bbo_kept *out);

/* Makes a study of all that was read: tasks, Q, methods, seeds. */
n2ce_status n2_bbo_kept_choose(n2ce_ctx *ctx, const n2_bbo_kept *kept, n2_bbo_study *s);

/* Takes over the runs that are among the study's; of several the first. With `any_scale` also those
 * with another --scale. */
void n2_bbo_kept_take(const n2_bbo_kept *kept, bool any_scale, n2_bbo_study *s);

/* ---- summaries (bbo_study_view.c) ---- */

/* A method on a task over its seeds; NaN where there is nothing. */
typedef struct n2_bbo_summary {
    size_t done, failed;
    n2_tally max, median, unmoved_max, unmoved_median, inside, distinct, seconds;
} n2_bbo_summary;

n2_bbo_summary n2_bbo_summarise(const n2_bbo_study *s, size_t task, size_t method);

/* The place of a method on a task by its mean over seeds, 1 for the best, halves where some are
 * equal; percentile is 100 or 50. Last is a method of which all runs failed. NaN if it was not run.
 * It is the place among those that are no variants; a variant has the place that it would have
 * instead of the method it is a variant of. */
double n2_bbo_rank(const n2_bbo_study *s, size_t task, size_t method, int percentile);

/* The mean of that over the tasks that it was run on, *n of them if n is not NULL; without
 * variants of tasks. */
double n2_bbo_mean_rank(const n2_bbo_study *s, size_t method, int percentile, size_t *n);

/* Whether not all methods were run on the same number of tasks. */
bool n2_bbo_has_gaps(const n2_bbo_study *s);

/* Tables, in the arena; without rows where there is nothing to show. */
n2ce_status n2_bbo_task_table(const n2_bbo_study *s, size_t task, n2_arena *arena,
                              n2_text_table *out);
n2ce_status n2_bbo_rank_table(const n2_bbo_study *s, n2_arena *arena, n2_text_table *out);
n2ce_status n2_bbo_aim_table(const n2_bbo_study *s, size_t task, n2_arena *arena,
                             n2_text_table *out);
n2ce_status n2_bbo_query_table(const n2_bbo_study *s, size_t task, n2_arena *arena,
                               n2_text_table *out);

/* What the reader must know to judge the numbers, and ranks of methods that were not all run on all
 * tasks; and a sentence about --scale, "" at 1. */
extern const char n2_bbo_caveat[], n2_bbo_gaps[];
void n2_bbo_scale_text(const n2_bbo_study *s, char text[256]);

/* ---- answers ---- */

n2_form n2_bbo_study_json; /* about an n2_bbo_study */

n2ce_status n2_bbo_study_show(n2ce_ctx *ctx, const n2_bbo_study *study, n2ce_answer *answer);
n2ce_status n2_bbo_study_page(n2ce_ctx *ctx, const n2_bbo_study *study, char **html);

#endif
