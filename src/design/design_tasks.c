/* The table of tasks, and what they share. */
#include "design_task.h"
#include "io/file.h"
#include "io/table.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

static const n2_design_task *const tasks[] = {&n2_branin_task,
                                              &n2_branin_50_task,
                                              &n2_branin_all_task,
                                              &n2_branin_50_all_task,
                                              &n2_tfbind8_task,
                                              &n2_tfbind10_task,
                                              &n2_superconductor_task,
                                              &n2_molecule_task,
                                              &n2_ant_task,
                                              &n2_dkitty_task,
                                              &n2_utr_task,
                                              &n2_aav_task,
                                              &n2_rna_task,
                                              &n2_hairpin_task,
                                              &n2_grammar_task,
                                              &n2_recipe_task};

const n2_design_task *n2_design_task_at(size_t index) {
    return index < sizeof tasks / sizeof tasks[0] ? tasks[index] : NULL;
}

const n2_design_task *n2_design_task_find(const char *name) {
    for (size_t i = 0; n2_design_task_at(i); i++)
        if (strcmp(n2_design_task_at(i)->name, name) == 0) return n2_design_task_at(i);
    return NULL;
}

double n2_design_normalise(const n2_design_task *task, double y) {
    return (y - task->low) / (task->high - task->low);
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static n2ce_status find_folder(n2ce_ctx *ctx, const n2_design_task *task, const char *folder,
                               char path[PATH_MAX]) {
    char below[PATH_MAX];
    if (!folder)
        return n2_fail(ctx, N2CE_EINVAL,
                       "The task %s needs data. Say where with --data DIR or the environment "
                       "variable N2CE_DATA; DIR/%s has its files (docs/bbo.md).",
                       task->name, task->folder);
    N2_TRY(n2_path_join(ctx, path, PATH_MAX, folder, task->folder));
    if (is_folder(path)) return N2CE_OK;
    N2_TRY(n2_path_join(ctx, below, sizeof below, folder, "bbo"));
    N2_TRY(n2_path_join(ctx, path, PATH_MAX, below, task->folder));
    if (is_folder(path)) return N2CE_OK;
    return n2_fail(ctx, N2CE_EIO,
                   "%s: there is no folder %s, nor bbo/%s, in it. The task %s needs its files "
                   "there (docs/bbo.md).",
                   folder, task->folder, task->folder, task->name);
}

n2ce_status n2_design_bench_open(n2ce_ctx *ctx, const n2_design_task *task, const char *folder,
                                 n2_design_bench **out) {
    char path[PATH_MAX] = "";
    *out = NULL;
    if (task->needs) N2_TRY(task->needs(ctx));
    if (task->folder) N2_TRY(find_folder(ctx, task, folder, path));
    n2_design_bench *b = n2_alloc(ctx, 1, sizeof *b);
    if (!b) return N2CE_ENOMEM;
    *b = (n2_design_bench){.ctx = ctx, .task = task};
    b->always = n2_arena_new(ctx);
    b->by_seed = n2_arena_new(ctx);
    const n2ce_status status = task->open ? task->open(b, path) : N2CE_OK;
    if (status == N2CE_OK)
        *out = b;
    else
        n2_design_bench_close(b);
    return status;
}

static void end(n2_design_bench *b) {
    if (b->task->end) b->task->end(b);
    b->oracle = NULL;
    b->offline = (n2_designs){0};
    n2_arena_free(&b->by_seed);
}

void n2_design_bench_close(n2_design_bench *b) {
    if (!b) return;
    end(b);
    n2_arena_free(&b->always);
    n2_free(b->ctx, b);
}

n2ce_status n2_design_bench_begin(n2_design_bench *b, uint64_t seed) {
    end(b);
    b->seed = seed;
    return b->task->begin(b, seed);
}

/* An oracle that is a table must not be asked for what it does not have. Numbers beyond the bounds
 * are the oracle's business. */
static n2ce_status check_design(const n2_design_bench *b, const double *x, size_t row) {
    for (size_t c = 0; c < b->offline.space.n; c++) {
        const n2_factor *f = &b->offline.space.factor[c];
        const bool level = x[c] >= 0 && x[c] < (double)f->levels && x[c] == floor(x[c]);
        if (f->kind == N2_CATEGORY ? level : isfinite(x[c])) continue;
        return n2_fail(b->ctx, N2CE_EINVAL,
                       "%s: design %zu has %g in column %zu, which is no %s; designs are made "
                       "such that they can be tried before they are scored.",
                       b->task->name, row, x[c], c,
                       f->kind == N2_CATEGORY ? "level" : "finite number");
    }
    return N2CE_OK;
}

n2ce_status n2_design_bench_score(const n2_design_bench *b, const double *x, size_t rows,
                                  double *y) {
    for (size_t i = 0; i < rows; i++) N2_TRY(check_design(b, x + i * b->offline.space.n, i));
    return b->task->score(b, x, rows, y);
}

/* ---- helpers of the tasks -------------------------------------------------------------------- */

n2_space n2_space_of(n2_arena *arena, size_t n, n2_factor factor) {
    n2_space s = {n2_arena_alloc(arena, n, sizeof *s.factor), n};
    for (size_t i = 0; s.factor && i < n; i++) s.factor[i] = factor;
    return s;
}

n2ce_status n2_design_make_room(n2_design_bench *b, size_t rows, size_t cols) {
    b->offline.rows = rows;
    b->offline.x = n2_arena_alloc(&b->by_seed, rows * cols, sizeof *b->offline.x);
    b->offline.y = n2_arena_alloc(&b->by_seed, rows, sizeof *b->offline.y);
    return b->offline.x && b->offline.y ? N2CE_OK : N2CE_ENOMEM;
}

static n2ce_status copy_table(const n2_table *t, const char *path, size_t rows, size_t cols,
                              n2_arena *arena, double **out) {
    if (t->rows != rows || t->cols != cols)
        return n2_fail(t->ctx, N2CE_EDATA,
                       "%s: %zu rows and %zu columns were found where the task has %zu and %zu. "
                       "docs/bbo.md says which files are meant.",
                       path, t->rows, t->cols, rows, cols);
    *out = n2_arena_alloc(arena, rows * cols, sizeof **out);
    if (!*out) return N2CE_ENOMEM;
    memcpy(*out, t->x, rows * cols * sizeof **out);
    return N2CE_OK;
}

n2ce_status n2_design_read(n2ce_ctx *ctx, const char *folder, const char *name, size_t rows,
                           size_t cols, n2_arena *arena, double **out) {
    char path[PATH_MAX];
    n2_table *t;
    N2_TRY(n2_path_join(ctx, path, sizeof path, folder, name));
    N2_TRY(n2_table_read(ctx, path, NULL, &t));
    const n2ce_status status = copy_table(t, path, rows, cols, arena, out);
    n2_table_free(t);
    return status;
}
