/* Where a method with networks works: a store, graphs and their plans, freed together; progress
 * and cancellation while plans run. */
#ifndef N2_LAB_H
#define N2_LAB_H

#include "methods.h"
#include "nn/nn.h"

enum { N2_LAB_PLANS = 8 };

typedef struct n2_lab {
    n2ce_ctx *ctx;
    const n2_effort *effort;
    const n2_backend *backend;
    uint64_t seed;
    n2_arena arena; /* for what lives as long */
    n2_store *store;
    n2_graph *graphs[N2_LAB_PLANS];
    n2_plan *plans[N2_LAB_PLANS];
    size_t n_graphs, n_plans;
    double done;     /* share of the method's work, 0 to 1 */
    double reported; /* when, in seconds of n2_seconds() */
    double *trial;   /* seconds of all of it, by what is done in N2_TRIAL_SECONDS; NULL: none */
    double trial_from, trial_done; /* when its clock began, and what was done by then */
} n2_lab;

/* On the backend of the effort's choice, which is settled. */
n2ce_status n2_lab_open(n2ce_ctx *ctx, const n2_effort *effort, uint64_t seed, n2_lab *lab);
void n2_lab_close(n2_lab *lab); /* also after a failed open */

/* What a method does in a lab of its own, and a lab for it. Where its choice is open, it first
 * begins in others, which are closed after a moment. */
typedef n2ce_status n2_lab_work(n2_lab *lab, const n2_designs *offline, n2_proposals *out);
n2ce_status n2_lab_propose(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                           const n2_effort *effort, n2_lab_work *work, n2_proposals *out);

n2_graph *n2_lab_graph(n2_lab *lab); /* NULL: out of memory */

/* The plan of a graph, with random numbers that no other plan of the lab has. A graph may be NULL:
 * N2CE_ENOMEM. */
n2ce_status n2_lab_compile(n2_lab *lab, n2_graph *g, const n2_node *outputs, size_t n_outputs,
                           n2_plan **out);

/* A tensor [rows x cols] with values, or zeros where they are NULL; NULL: out of memory. */
n2_tensor *n2_lab_table(n2_lab *lab, const char *name, size_t rows, size_t cols,
                        const double *values);

/* Runs a plan so often, while the share of work done goes up to `upto`. N2CE_ECANCELED where that
 * is asked for. */
n2ce_status n2_lab_run(n2_lab *lab, n2_plan *plan, uint64_t times, double upto);

/* Says that a share of the work is done, and looks whether it should stop. */
n2ce_status n2_lab_report(n2_lab *lab, double done);

/* Steps of so many epochs, at this effort; a batch may be larger than the set. */
uint64_t n2_lab_steps(const n2_lab *lab, size_t rows, size_t batch, size_t epochs);

/* The mean of all elements, as a scalar. */
n2_node n2_lab_mean(n2_graph *g, n2_node x);

#endif
