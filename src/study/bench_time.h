/* How long a run of a plan takes. */
#ifndef N2_BENCH_TIME_H
#define N2_BENCH_TIME_H

#include "engine/plan.h"

/* Seconds of a run, measured for so many: what is done once, and graphs of several runs, come
 * before time counts. */
n2ce_status n2_bench_time(n2ce_ctx *ctx, n2_plan *plan, double limit, double *seconds);

#endif
