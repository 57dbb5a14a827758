/* A context for the parts of a study.
 *
 * A fit or a method reports its progress to its context as if it were all there is to do. So the
 * parts of a study have a context of their own, that turns this into progress of the study; its
 * memory comes from the caller's. It learns of a cancellation when it reports. */
#ifndef N2_STUDY_RUNNER_H
#define N2_STUDY_RUNNER_H

#include "base/ctx.h"

typedef struct n2_runner {
    n2ce_ctx *ctx, *inner;
    double done, total; /* parts */
    bool out_of_memory; /* the caller's context had none left */
} n2_runner;

/* The runner must stay where it is until it is closed. */
n2ce_status n2_runner_open(n2ce_ctx *ctx, double total, n2_runner *r);
void n2_runner_close(n2_runner *r);

/* So many parts are done. */
void n2_runner_done(n2_runner *r, double done);

#endif
