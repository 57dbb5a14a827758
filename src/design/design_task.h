/* Tasks of offline optimisation: designs that were tried, and an oracle that says what new ones
 * are worth.
 *
 *     const n2_design_task *task = n2_design_task_find("tfbind8");
 *     n2_design_bench *bench;
 *     n2_design_bench_open(ctx, task, folder, &bench);           read the data once
 *     n2_design_bench_begin(bench, seed);                        what depends on the seed
 *     method->propose(ctx, &bench->offline, seed, &proposals);   sees nothing but the offline set
 *     n2_design_bench_score(bench, proposals.x, rows, y);        larger is better
 *     n2_design_normalise(task, y[0]);
 *
 * The table of tasks is in design_tasks.c; a task is a row of it and a file. Data files are those
 * described in docs/bbo.md. All functions fail with N2CE_EIO (a file cannot be read), N2CE_EDATA
 * (its contents), N2CE_ENOMEM or N2CE_ECANCELED. */
#ifndef N2_DESIGN_TASK_H
#define N2_DESIGN_TASK_H

#include "base/arena.h"
#include "design.h"

struct n2_design_bench;

typedef struct n2_design_task {
    const char *name, *summary;
    const char *folder;     /* of its files, below the folder of all data; NULL: it needs none */
    double low, high;       /* least and largest y of the full data: 0 and 1 after normalising */
    size_t queries;         /* how many designs are usually proposed */
    const char *variant_of; /* the task that this is with something changed; NULL: none */
    bool further;           /* none of the paper's, nor one in kind */
    bool moves;             /* the oracle moves designs inside by itself */
    double setting;         /* what tells this task from another of its file; see there */

    /* Whether the program has what the task needs besides data, with a sentence if not; NULL: it
     * needs nothing. */
    n2ce_status (*needs)(n2ce_ctx *ctx);

    /* Reads the data into bench->data, bench->always; `folder` is the task's own. */
    n2ce_status (*open)(struct n2_design_bench *bench, const char *folder);

    /* Fills bench->offline and, where the oracle depends on the seed, bench->oracle; both in
     * bench->by_seed, which is empty. */
    n2ce_status (*begin)(struct n2_design_bench *bench, uint64_t seed);

    /* y of the rows, in the data's units. An oracle may be a table, a formula, a model, or a
     * simulation that takes minutes: it may use all threads of the context and returns
     * N2CE_ECANCELED soon after n2_cancelled(). */
    n2ce_status (*score)(const struct n2_design_bench *bench, const double *x, size_t rows,
                         double *y);

    /* Frees what an oracle has outside the arenas; NULL: nothing. Called before the next begin
     * and at the end. */
    void (*end)(struct n2_design_bench *bench);
} n2_design_task;

/* A task with its data. */
typedef struct n2_design_bench {
    n2ce_ctx *ctx;
    const n2_design_task *task;
    n2_arena always, by_seed;
    void *data;         /* the task's own */
    n2_designs offline; /* what a method may see; valid until the next begin */
    void *oracle;
    uint64_t seed;
} n2_design_bench;

const n2_design_task *n2_design_task_at(size_t index); /* NULL beyond the last */
const n2_design_task *n2_design_task_find(const char *name);

/* `folder` is that of all data (tasks have folders below it, or below its folder "bbo"); NULL is
 * fine for a task that needs none, else N2CE_EINVAL. *out is NULL after a failure. */
n2ce_status n2_design_bench_open(n2ce_ctx *ctx, const n2_design_task *task, const char *folder,
                                 n2_design_bench **out);
void n2_design_bench_close(n2_design_bench *bench); /* NULL is fine */

/* The same seed gives the same offline set and the same oracle, for any number of threads. */
n2ce_status n2_design_bench_begin(n2_design_bench *bench, uint64_t seed);

/* Values of rows, in the data's units. N2CE_EINVAL for a number that is not finite, or a level that
 * there is not. */
n2ce_status n2_design_bench_score(const n2_design_bench *bench, const double *x, size_t rows,
                                  double *y);

/* (y - low) / (high - low). */
double n2_design_normalise(const n2_design_task *task, double y);

/* -(x2 - b x1^2 + c x1 - 6)^2 - 10 (1 - 1/(8 pi)) cos x1 - 10, at most -0.397887. */
double n2_branin(double x1, double x2);

/* ---- for the files of tasks ---- */

extern const n2_design_task n2_branin_task, n2_branin_50_task, n2_branin_all_task,
    n2_branin_50_all_task, n2_tfbind8_task, n2_tfbind10_task, n2_superconductor_task,
    n2_molecule_task, n2_ant_task, n2_dkitty_task, n2_utr_task, n2_aav_task, n2_rna_task,
    n2_hairpin_task, n2_grammar_task, n2_recipe_task;

/* A space of n equal factors in the arena; factor is NULL if memory is short. */
n2_space n2_space_of(n2_arena *arena, size_t n, n2_factor factor);

/* Numbers of a file, rows x cols, into the arena; N2CE_EDATA unless it has so many. cols = 1 is
 * one value a row. */
n2ce_status n2_design_read(n2ce_ctx *ctx, const char *folder, const char *name, size_t rows,
                           size_t cols, n2_arena *arena, double **out);

/* Room for the offline set in by_seed. */
n2ce_status n2_design_make_room(n2_design_bench *bench, size_t rows, size_t cols);

#endif
