/* A graph compiled once, replayed millions of times.
 *
 * Compiling keeps what the outputs and updates need, orders it into stages, groups
 * nodes that work row by row into row programs, and packs all values into one block of
 * memory by their lifetimes. Running allocates nothing; a run wakes the workers once and
 * takes no lock after that.
 *
 * Row programs. Nodes over the same R rows that only need row i of each other to
 * compute row i are run tile by tile: all of them on rows 0..95, then on 96..191, and so
 * on, so that a tile's values stay in cache through forward and backward pass and are
 * never stored as a whole. Sums over rows (gradients of weights, losses) are gathered
 * in a fixed number of partial sums, whatever the number of threads, and added in a
 * fixed order: results do not depend on threads. */
#ifndef N2_PLAN_H
#define N2_PLAN_H

#include "base/text.h"
#include "kernel.h"

typedef struct n2_plan n2_plan;

/* Whether cheap values are made again where gradients need them, and not kept (recompute.h). The
 * numbers are the same; it saves memory and costs time. */
typedef enum n2_recompute {
    N2_RECOMPUTE_IF_NEEDED, /* if the plan does not fit into memory otherwise */
    N2_RECOMPUTE_ALWAYS,
    N2_RECOMPUTE_NEVER
} n2_recompute;

/* The outputs can be read after a run. The graph must outlive the plan. */
n2ce_status n2_plan_compile_with(n2_graph *g, const n2_backend *backend, const n2_node *outputs,
                                 size_t n_outputs, n2_recompute recompute, n2_plan **out);

/* The same, with N2_RECOMPUTE_IF_NEEDED. */
n2ce_status n2_plan_compile(n2_graph *g, const n2_backend *backend, const n2_node *outputs,
                            size_t n_outputs, n2_plan **out);
void n2_plan_free(n2_plan *plan); /* NULL is fine */

/* One run of everything.
 *
 * Numbers given to n2g_watch and, if the plan has updates, outputs of one element must be
 * finite. Where one is not, the updates built after it are not made, so that parameters and
 * moments stay those of the run before; the plan finds the first node that is not finite
 * and returns N2CE_ENAN: "Step 7: the op log [128 x 1] built at ratio.c:77 gave ...".
 * Outputs are undefined then, and the run does not count: running again fails again. */
n2ce_status n2_plan_run(n2_plan *plan);

/* n runs, as n calls would make them, up to the first that fails. A device is asked for all
 * of them at once and works without waiting for the host: this is how to train on one. */
n2ce_status n2_plan_run_many(n2_plan *plan, uint64_t n);

/* The same in two parts, between which a device works while the caller does something else; it
 * must not touch the plan or the values of its tensors. On the processor the runs are over when
 * `begin` returns. If that fails there is nothing to end. */
n2ce_status n2_plan_begin(n2_plan *plan, uint64_t n);
n2ce_status n2_plan_end(n2_plan *plan);

/* The random numbers of a run are a function of the seed and of the number of runs so
 * far, which a checkpoint restores. */
void n2_plan_seed(n2_plan *plan, uint64_t seed, uint32_t runs_so_far);
uint32_t n2_plan_runs(const n2_plan *plan);
uint64_t n2_plan_seed_of(const n2_plan *plan);
const n2_backend *n2_plan_backend(const n2_plan *plan);
bool n2_plan_writes(const n2_plan *plan, const n2_tensor *t); /* whether a run updates it */

/* Output k, converted to double; the scalar form is for outputs of one element, and
 * NaN for others. */
void n2_plan_get(const n2_plan *plan, size_t k, double *values);
double n2_plan_scalar(const n2_plan *plan, size_t k);

/* Runs once, looking at every value: N2CE_ENAN names the first node, in order of
 * computation, that is not finite, with the number of the step (1 for the first run) and
 * the line that built the node. Slow. */
n2ce_status n2_plan_run_checked(n2_plan *plan);

/* Steps, shapes, bytes, floating-point operations and, after some runs with timing
 * switched on, the time of each step. */
void n2_plan_time(n2_plan *plan, bool on);
void n2_plan_print(const n2_plan *plan, n2_text *out);

/* Where the time goes, of a plan that has run with timing switched on: by op and shape, in all
 * threads together; on a device by launch, which takes some more runs. */
n2ce_status n2_plan_profile(n2_plan *plan, n2_text *out);

typedef struct n2_plan_size {
    size_t steps, nodes;
    size_t again;          /* nodes that are made again for a gradient */
    size_t bytes;          /* all memory of the plan, which is the sum of */
    size_t values;         /* values that cross steps, and partial sums, */
    size_t tiles, scratch; /* of all workers, */
    size_t kernels;        /* and on a device, once it has run, what its kernels keep */
    size_t tensors;        /* beside that: tensors of the store that it uses */
    double flops;          /* of one run */
    size_t launches;       /* of kernels, of a run on a device; 0: not there, or not yet */
} n2_plan_size;
n2_plan_size n2_plan_measure(const n2_plan *plan);

#endif
