/* Where a method with networks works: a store, the plans that it asks, all freed together, and the
 * trainings in it, whose progress and cancellation are the method's. */
#ifndef N2_WORKSPACE_H
#define N2_WORKSPACE_H

#include "methods.h"
#include "train/train.h"

enum { N2_WORKSPACE_PLANS = 8 };

typedef struct n2_workspace {
    n2ce_ctx *ctx;
    const n2_effort *effort;
    const n2_backend *backend; /* known after the first training */
    uint64_t seed, streams;    /* streams of random numbers that were given out */
    n2_arena arena;            /* for what lives as long */
    n2_store *store;
    n2_graph *graphs[N2_WORKSPACE_PLANS];
    n2_plan *plans[N2_WORKSPACE_PLANS];
    size_t n_graphs, n_plans;
    n2ce_status (*ready)(void *user, const n2_backend *backend); /* n2_trainer.ready; or NULL */
    double done, upto; /* shares of the method's work, 0 to 1: done, and after this training */
} n2_workspace;

/* What a method does in a workspace of its own, and a workspace for it. */
typedef n2ce_status n2_workspace_job(n2_workspace *ws, const n2_designs *offline,
                                     n2_proposals *out);
n2ce_status n2_workspace_propose(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                                 const n2_effort *effort, n2_workspace_job *job, n2_proposals *out);

/* Runs phases, while the share of work done goes up to `upto`. The first training settles the
 * device, if the effort leaves that open. */
n2ce_status n2_workspace_train(n2_workspace *ws, void *user, const n2_phase *phases, size_t n,
                               double upto);

/* A seed that no other graph of the workspace has: nodes of two graphs may have the same number. */
uint64_t n2_workspace_seed(n2_workspace *ws);

/* A graph, NULL if memory is short, and its plan, for what is asked after the first training. A
 * graph may be NULL: N2CE_ENOMEM. */
n2_graph *n2_workspace_graph(n2_workspace *ws);
n2ce_status n2_workspace_compile(n2_workspace *ws, n2_graph *g, const n2_node *outputs,
                                 size_t n_outputs, n2_plan **out);

/* A tensor [rows x cols] with values, or zeros where they are NULL; NULL: out of memory. */
n2_tensor *n2_workspace_table(n2_workspace *ws, const char *name, size_t rows, size_t cols,
                              const double *values);

/* Says that a share of the work is done; N2CE_ECANCELED where it should stop. */
n2ce_status n2_workspace_report(n2_workspace *ws, double done);

/* Steps of so many epochs, at this effort; a batch may be larger than the set. */
uint64_t n2_workspace_steps(const n2_workspace *ws, size_t rows, size_t batch, size_t epochs);

/* Levels drawn with their probabilities, one-hot: of logits [rows x positions x levels], likewise.
 */
n2_node n2_draw_levels(n2_graph *g, n2_node logits);

/* The mean of all elements, as a scalar. */
n2_node n2_mean_all(n2_graph *g, n2_node x);

#endif
