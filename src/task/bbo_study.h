/* The study of offline optimisation: methods on tasks with oracles, by seeds, beside what the paper
 * prints and what chance achieves.
 *
 * bbo_study.c runs it, bbo_study_kept.c takes over runs of earlier studies, bbo_study_view.c makes
 * tables, text and JSON, bbo_study_page.c the HTML report. */
#ifndef N2_BBO_STUDY_H
#define N2_BBO_STUDY_H

#include "design/design_task.h"
#include "optimize/methods.h"
#include "sheet.h"
#include "task.h"

enum { N2_BBO_TASKS = 64, N2_BBO_METHODS = 64 };

/* One method on one task with one seed. Values are normalised. A run that failed has no numbers.
 * The seconds are the only number that varies from run to run. */
typedef struct n2_bbo_run {
    uint64_t seed;
    double max, median;                 /* over the Q proposals, as they can be tried */
    double unmoved_max, unmoved_median; /* as proposed; NaN where the method does not tell */
    double inside;                      /* share that was within the bounds as proposed */
    double seconds;
    size_t distinct; /* different proposals */
    size_t scale;    /* n2_effort.scale */
    bool done, failed;
    const double *plane; /* the proposals as they can be tried, where they are points of a plane and
                          * the seed is the first; else NULL */
    size_t plane_rows;
} n2_bbo_run;

typedef struct n2_bbo_study {
    const n2ce_options *options;
    n2_arena *arena;                           /* of all that is below */
    const n2_design_task *tasks[N2_BBO_TASKS]; /* a task with two Q is here twice */
    size_t queries[N2_BBO_TASKS];              /* Q */
    const n2_listed_method *methods[N2_BBO_METHODS];
    size_t n_tasks, n_methods, n_seeds;
    size_t n_asked; /* the first of the methods were asked for, the others are trivial ones */
    uint64_t first_seed;
    n2_effort effort;
    n2_bbo_run *runs;     /* task by task, in it method by method, in it seed by seed */
    double *offline_best; /* task by task, in it seed by seed; normalised */
    size_t *offline_rows; /* by task */
    size_t n_done;
    bool interrupted;
} n2_bbo_study;

static inline size_t n2_bbo_runs(const n2_bbo_study *s) {
    return s->n_tasks * s->n_methods * s->n_seeds;
}

static inline n2_bbo_run *n2_bbo_run_at(const n2_bbo_study *s, size_t t, size_t m, size_t seed) {
    return &s->runs[(t * s->n_methods + m) * s->n_seeds + seed];
}

/* ---- runs of earlier studies (bbo_study_kept.c) ---- */

/* A run as the JSON of a study has it. */
typedef struct n2_bbo_row {
    const n2_design_task *task;
    const n2_listed_method *method;
    size_t queries;
    bool asked; /* not just a trivial method that is shown beside any */
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

/* The mean of that over the tasks that it was run on, *n of them if n is not NULL. */
double n2_bbo_mean_rank(const n2_bbo_study *s, size_t method, int percentile, size_t *n);

/* Tables, in the arena; without rows where there is nothing to show. */
n2ce_status n2_bbo_task_sheet(const n2_bbo_study *s, size_t task, n2_arena *arena, n2_sheet *out);
n2ce_status n2_bbo_rank_sheet(const n2_bbo_study *s, n2_arena *arena, n2_sheet *out);

/* What the reader must know to judge the numbers, and ranks of methods that were not all run on all
 * tasks; and a sentence about --scale, "" at 1. */
extern const char n2_bbo_caveat[], n2_bbo_gaps[];
void n2_bbo_scale_text(const n2_bbo_study *s, char text[256]);

/* ---- answers ---- */

n2ce_status n2_bbo_study_show(n2ce_ctx *ctx, const n2_bbo_study *study, n2ce_answer *answer);
n2ce_status n2_bbo_study_page(n2ce_ctx *ctx, const n2_bbo_study *study, char **html);

#endif
