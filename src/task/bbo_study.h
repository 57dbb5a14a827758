/* The study of offline optimisation: methods on tasks with oracles, by seeds, beside what the paper
 * prints and what chance achieves.
 *
 * bbo_study.c runs it, bbo_study_view.c makes tables, text and JSON, bbo_study_page.c the HTML
 * report. */
#ifndef N2_BBO_STUDY_H
#define N2_BBO_STUDY_H

#include "design/design_task.h"
#include "optimize/methods.h"
#include "sheet.h"
#include "task.h"

enum { N2_BBO_TASKS = 16, N2_BBO_METHODS = 64 };

/* One method on one task with one seed. Values are normalised. A run that failed has no numbers.
 * The seconds are the only number that varies from run to run. */
typedef struct n2_bbo_run {
    uint64_t seed;
    double max, median;                 /* over the Q proposals, as they can be tried */
    double unmoved_max, unmoved_median; /* as proposed; NaN where the method does not tell */
    double inside;                      /* share that was within the bounds as proposed */
    double seconds;
    size_t distinct; /* different proposals */
    bool done, failed;
    const double *plane; /* the proposals as they can be tried, where they are points of a plane and
                          * the seed is the first; else NULL */
} n2_bbo_run;

typedef struct n2_bbo_study {
    const n2ce_options *options;
    n2_arena *arena; /* of all that is below */
    const n2_design_task *tasks[N2_BBO_TASKS];
    const n2_listed_method *methods[N2_BBO_METHODS];
    size_t n_tasks, n_methods, n_seeds;
    size_t n_asked; /* the first of the methods were asked for, the others are trivial ones */
    uint64_t first_seed;
    size_t queries; /* 0: the task's usual number */
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

static inline size_t n2_bbo_queries(const n2_bbo_study *s, size_t t) {
    return s->queries ? s->queries : s->tasks[t]->queries;
}

/* ---- summaries (bbo_study_view.c) ---- */

/* A method on a task over its seeds; NaN where there is nothing. */
typedef struct n2_bbo_summary {
    size_t done, failed;
    n2_tally max, median, unmoved_max, unmoved_median, inside, distinct, seconds;
} n2_bbo_summary;

n2_bbo_summary n2_bbo_summarise(const n2_bbo_study *s, size_t task, size_t method);

/* The place of a method among all on a task by its mean, 1 for the best, halves where some are
 * equal; percentile is 100 or 50. NaN if it has no number. */
double n2_bbo_rank(const n2_bbo_study *s, size_t task, size_t method, int percentile);

/* The mean of that over the tasks. */
double n2_bbo_mean_rank(const n2_bbo_study *s, size_t method, int percentile);

/* Tables, in the arena; without rows where there is nothing to show. */
n2ce_status n2_bbo_task_sheet(const n2_bbo_study *s, size_t task, n2_arena *arena, n2_sheet *out);
n2ce_status n2_bbo_rank_sheet(const n2_bbo_study *s, n2_arena *arena, n2_sheet *out);

/* What the reader must know to judge the numbers; and a sentence about --scale, "" at 1. */
extern const char n2_bbo_caveat[];
void n2_bbo_scale_text(const n2_bbo_study *s, char text[256]);

/* ---- answers ---- */

n2ce_status n2_bbo_study_show(n2ce_ctx *ctx, const n2_bbo_study *study, n2ce_answer *answer);
n2ce_status n2_bbo_study_page(n2ce_ctx *ctx, const n2_bbo_study *study, char **html);

#endif
