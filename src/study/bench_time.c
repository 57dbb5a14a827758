#include "bench_time.h"

#include "base/clock.h"

n2ce_status n2_bench_time(n2ce_ctx *ctx, n2_plan *plan, double limit, double *seconds) {
    uint64_t runs = 0, batch = 1;
    N2_TRY(n2_plan_run(plan));
    const double before = n2_seconds();
    N2_TRY(n2_plan_run_many(plan, 8));
    if (n2_seconds() - before < limit / 4) N2_TRY(n2_plan_run_many(plan, 64));
    const double start = n2_seconds();
    double now = start, last = start;
    while (!n2_cancelled(ctx) && (runs == 0 || now - start < limit)) {
        N2_TRY(n2_plan_run_many(plan, batch));
        runs += batch;
        now = n2_seconds();
        if (now - last < limit / 4) batch *= 2;
        last = now;
    }
    *seconds = (now - start) / (double)(runs ? runs : 1);
    return runs ? N2CE_OK : N2CE_ECANCELED;
}
