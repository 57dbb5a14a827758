/* Ant and D'Kitty as tasks: the shape of a robot for what it earns in an episode (robot.h).
 *
 * The data are designs that repeated CMA-ES tried from around the usual one, every candidate
 * (tools/make_robots.c); offline are the lowest 40 %. */
#include "forest_oracle.h"
#include "io/file.h"
#include "io/table.h"
#include "robot.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { STREAM = 0x524F0000, CHECKED = 4 };

typedef struct trials {
    const n2_robot *robot;
    size_t rows;
    double *x, *y;
} trials;

static n2ce_status take_trials(n2_design_bench *b, const char *path, const n2_table *t,
                               trials *out) {
    const size_t n = out->robot->columns;
    if (t->cols != n + 1)
        return n2_fail(b->ctx, N2CE_EDATA,
                       "%s: %zu columns were found where %s has %zu and a value.", path, t->cols,
                       out->robot->name, n);
    out->rows = t->rows;
    out->x = n2_arena_alloc(&b->always, t->rows * n, sizeof *out->x);
    out->y = n2_arena_alloc(&b->always, t->rows, sizeof *out->y);
    if (!out->x || !out->y) return N2CE_ENOMEM;
    for (size_t i = 0; i < t->rows; i++) {
        memcpy(out->x + i * n, t->x + i * t->cols, n * sizeof *out->x);
        out->y[i] = t->x[i * t->cols + n];
    }
    return N2CE_OK;
}

/* Whether what the file says of some designs is what they earn here: contacts make walking chaotic,
 * and another version of MuJoCo, or of the mathematical library, may come to something else. */
static n2ce_status check_trials(const n2_design_bench *b, const char *path, const trials *t) {
    const double apart = 1e-3 * (b->task->high - b->task->low);
    for (size_t k = 0; k < CHECKED && t->rows > 0; k++) {
        const size_t i = k * (t->rows - 1) / (CHECKED - 1);
        double y;
        N2_TRY(n2_robot_walk(b->ctx, t->robot, t->x + i * t->robot->columns, 1, t->robot->policy,
                             false, &y));
        if (fabs(y - t->y[i]) <= apart) continue;
        n2_log(b->ctx, N2CE_LOG_WARNING,
               "%s: design %zu is worth %g there and %g here. Make the data anew (docs/bbo.md), "
               "else methods learn from other values than they are judged by.",
               path, i, t->y[i], y);
        return N2CE_OK;
    }
    return N2CE_OK;
}

static n2ce_status open_trials(n2_design_bench *b, const char *folder, const n2_robot *robot) {
    char path[PATH_MAX];
    n2_table *table;
    trials *t = b->data = n2_arena_alloc(&b->always, 1, sizeof *t);
    if (!t) return N2CE_ENOMEM;
    t->robot = robot;
    N2_TRY(n2_robot_ready(b->ctx));
    N2_TRY(n2_path_join(b->ctx, path, sizeof path, folder, "designs.csv"));
    N2_TRY(n2_table_read(b->ctx, path, NULL, &table));
    const n2ce_status status = take_trials(b, path, table, t);
    n2_table_free(table);
    return status == N2CE_OK ? check_trials(b, path, t) : status;
}

static n2ce_status open_ant(n2_design_bench *b, const char *folder) {
    return open_trials(b, folder, &n2_ant_robot);
}

static n2ce_status open_dkitty(n2_design_bench *b, const char *folder) {
    return open_trials(b, folder, &n2_dkitty_robot);
}

static n2ce_status begin(n2_design_bench *b, uint64_t seed) {
    const trials *t = b->data;
    (void)seed;
    b->offline.space =
        n2_space_of(&b->by_seed, t->robot->columns, (n2_factor){N2_CONTINUOUS, 0, 0, 0});
    if (!b->offline.space.factor) return N2CE_ENOMEM;
    n2_robot_space(t->robot, b->offline.space.factor);
    return n2_offline_up_to(b, t->x, t->y, t->rows, 40, 0, STREAM);
}

static n2ce_status score(const n2_design_bench *b, const double *x, size_t rows, double *y) {
    const trials *t = b->data;
    return n2_robot_walk(b->ctx, t->robot, x, rows, t->robot->policy, false, y);
}

/* low and high are those of the data that the stored policies made. */
const n2_design_task n2_ant_task = {
    .name = "ant",
    .summary = "60 numbers of the legs of Ant, for walking by a fixed policy; in kind",
    .folder = "ant",
    .low = -23.9802244,
    .high = 211.080511,
    .queries = 256,
    .moves = true,
    .needs = n2_robot_ready,
    .open = open_ant,
    .begin = begin,
    .score = score,
};
const n2_design_task n2_dkitty_task = {
    .name = "dkitty",
    .summary = "56 numbers of the legs of D'Kitty, for walking by a fixed policy; in kind",
    .folder = "dkitty",
    .low = -922.199085,
    .high = 124.32359,
    .queries = 256,
    .moves = true,
    .needs = n2_robot_ready,
    .open = open_dkitty,
    .begin = begin,
    .score = score,
};
