/* Ranks: several processes that work on one task, each of which runs the same program.
 *
 * Every rank does what the others do, with the same data, and has the same numbers; two things are
 * shared. Tasks that do not depend on one another (folds, members, seeds) are dealt out and their
 * results exchanged; and the rows of a plan are (engine/plan_ranks.c). Neither changes a
 * bit of the result: tasks are functions of their number, and sums over rows go by a tree that
 * ranks have branches of. So a decision that depends on anything else, a clock or a signal, has to
 * be rank 0's: n2_comm_decide.
 *
 * All functions but the first few are collective: all ranks call them in the same order, or wait.
 * Where a rank has failed the others' calls fail. With one rank they do nothing. May use base. */
#ifndef N2_COMM_H
#define N2_COMM_H

#include "base/ctx.h"

/* This process and how many there are; in n2_comm_alone 0 of 1. */
int n2_rank(const n2ce_ctx *ctx);
int n2_ranks(const n2ce_ctx *ctx);

/* Among all processes, whatever the scope: rank 0 alone writes files and prints. */
int n2_world_rank(const n2ce_ctx *ctx);
int n2_world_ranks(const n2ce_ctx *ctx);

/* Until n2_comm_together this rank works alone, on a task of its own. May be nested. */
void n2_comm_alone(n2ce_ctx *ctx);
void n2_comm_together(n2ce_ctx *ctx);

/* Until it is called with 0, ranks 0 .. ranks - 1 are all there are: for measurements. The others
 * do nothing meanwhile. */
void n2_comm_few(n2ce_ctx *ctx, int ranks);

/* ---- collectives ---- */

/* x[i] becomes the sum of what ranks 0 .. contributors - 1, a power of two of them, have there:
 * neighbours first, then pairs of them, and so on. All ranks have it then. Numbers have 4 or 8
 * bytes. */
n2ce_status n2_comm_sum(n2ce_ctx *ctx, void *x, size_t n, size_t bytes, int contributors);

n2ce_status n2_comm_broadcast(n2ce_ctx *ctx, int root, void *x, size_t bytes);

/* Rank r has bytes begin[r] .. begin[r + 1] - 1 of x; all have all of them then. */
n2ce_status n2_comm_gather(n2ce_ctx *ctx, void *x, const size_t *begin);

/* To rank 0 alone: the blocks of ranks, one after the other, of sizes that are exchanged first.
 * `take` is called there for each, in order. */
typedef n2ce_status n2_take_fn(void *user, int rank, const void *bytes, size_t n);
n2ce_status n2_comm_collect(n2ce_ctx *ctx, const void *bytes, size_t n, n2_take_fn *take,
                            void *user);

/* What rank 0 says. */
n2ce_status n2_comm_decide(n2ce_ctx *ctx, bool *flag);

/* Whether any rank says so. */
n2ce_status n2_comm_any(n2ce_ctx *ctx, bool *flag);

/* Not collective: fails, as an exchange would, if a rank is gone. For who waits by other means. */
n2ce_status n2_comm_check(n2ce_ctx *ctx);

/* ---- tasks ---- */

/* Runs tasks 0 .. n-1, each alone on one of the ranks, several at once; then `share` is called for
 * each on all ranks, to exchange results by n2_comm_broadcast from `root`, who ran it. If one
 * fails all ranks do, with its status and message. On one rank this is a loop over `run`. */
typedef n2ce_status n2_run_task_fn(void *user, size_t task);
typedef n2ce_status n2_share_task_fn(void *user, size_t task, int root);
n2ce_status n2_comm_tasks(n2ce_ctx *ctx, size_t n, n2_run_task_fn *run, n2_share_task_fn *share,
                          void *user);

/* All fail as `root` did, with its message; nobody if it did not. */
n2ce_status n2_comm_outcome(n2ce_ctx *ctx, int root, n2ce_status status);

/* Bytes that this rank has sent so far, and exchanges it took. */
typedef struct n2_comm_traffic {
    double bytes, exchanges;
} n2_comm_traffic;
n2_comm_traffic n2_comm_sent(const n2ce_ctx *ctx);

#endif
