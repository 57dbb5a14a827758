/* Every verb of the command line, in the order of its help: the only file that knows verbs and
 * studies alike. A new one is a file that defines a task, and a line here. */
#include "task/task.h"

#include <string.h>

#define VERBS(X)           \
    X(n2_fit_task)         \
    X(n2_score_task)       \
    X(n2_info_task)        \
    X(n2_divergence_task)  \
    X(n2_mi_task)          \
    X(n2_test_task)        \
    X(n2_optimize_task)    \
    X(n2_draw_task)        \
    X(n2_gaussian_task)    \
    X(n2_ratio_study_task) \
    X(n2_bbo_study_task)   \
    X(n2_bench_task)       \
    X(n2_bench_step_task)  \
    X(n2_bench_svgd_task)  \
    X(n2_bench_matmul_task)

#define DECLARE(task) extern const n2ce_task task;
VERBS(DECLARE)

#define ADDRESS(task) &task,
static const n2ce_task *const verbs[] = {VERBS(ADDRESS) NULL};

const n2ce_task *n2ce_task_at(size_t index) {
    return index < sizeof verbs / sizeof verbs[0] ? verbs[index] : NULL;
}

const n2ce_task *n2ce_task_find(const char *name) {
    for (size_t i = 0; verbs[i]; i++)
        if (strcmp(verbs[i]->name, name) == 0) return verbs[i];
    return NULL;
}
