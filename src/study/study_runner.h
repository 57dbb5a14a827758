/* A context for the parts of a study.
 *
 * A fit or a method reports its progress to its context as if it were all there is to do. So the
 * parts of a study have a context of their own, that turns this into progress of the study; its
 * memory comes from the caller's. It learns of a cancellation when it reports. */
#ifndef N2_STUDY_RUNNER_H
#define N2_STUDY_RUNNER_H

#include "task/task.h"

/* What is finished, for a study that is killed: its JSON goes to FILE.part in the folder of its
 * report, as parts are done, but not more often than every few seconds. The report removes it. */
typedef struct n2_study_keeper {
    const n2ce_options *options;
    const char *file; /* NULL: nothing is kept */
    const void *study;
    n2ce_status (*show)(n2ce_ctx *ctx, const void *study, n2ce_answer *answer);
    double at; /* when it was kept last, in seconds of n2_seconds */
} n2_study_keeper;

typedef struct n2_runner {
    n2ce_ctx *ctx, *inner;
    double done, total; /* parts */
    bool out_of_memory; /* the caller's context had none left */
    n2_study_keeper keeper;
} n2_runner;

/* The runner must stay where it is until it is closed. */
n2ce_status n2_runner_open(n2ce_ctx *ctx, double total, n2_runner *r);
void n2_runner_close(n2_runner *r);

/* From now on it keeps what is finished. */
void n2_runner_keep(n2_runner *r, const n2_study_keeper *keeper);

/* So many parts are done. */
void n2_runner_done(n2_runner *r, double done);

/* Of runs that ranks share (n2_comm_tasks): what rank `root` has, NULL or nothing too, everywhere.
 * A string becomes one of the arena, a text that of the root. Collective. */
n2ce_status n2_share_string(n2ce_ctx *ctx, n2_arena *arena, int root, const char **s);
n2ce_status n2_share_text(n2ce_ctx *ctx, int root, n2_text *text);

#endif
