/* The data of the tasks of offline optimisation, where they are: N2CE_DATA names the folder. */
#ifndef TEST_BBO_DATA_H
#define TEST_BBO_DATA_H

#include "contexts.h"
#include "design/design_task.h"

#include <stdlib.h>

/* Skips the test where the data are not. */
static inline n2_design_bench *open_task(n2ce_ctx *ctx, const char *name) {
    const n2_design_task *task = n2_design_task_find(name);
    const char *folder = getenv("N2CE_DATA");
    n2_design_bench *bench;
    assert_non_null(task);
    if (task->folder && !folder) {
        print_message("%s is not tested: N2CE_DATA does not say where its data are.\n", name);
        n2ce_ctx_free(ctx);
        skip();
    }
    const n2ce_status status = n2_design_bench_open(ctx, task, folder, &bench);
    if (status != N2CE_OK) print_error("%s\n", n2ce_errmsg(ctx));
    assert_int_equal(status, N2CE_OK);
    return bench;
}

static inline void begin_seed(n2_design_bench *bench, uint64_t seed) {
    const n2ce_status status = n2_design_bench_begin(bench, seed);
    if (status != N2CE_OK) print_error("%s\n", n2ce_errmsg(bench->ctx));
    assert_int_equal(status, N2CE_OK);
}

static inline double largest(const double *y, size_t n) {
    double best = y[0];
    for (size_t i = 1; i < n; i++) best = fmax(best, y[i]);
    return best;
}

#endif
