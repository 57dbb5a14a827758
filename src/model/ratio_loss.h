/* What a ratio network learns from: the N2CE loss of all its stages.
 *
 * Between noise and data stand waymarks, K + 1 of them for K stages: sqrt(1 - s) noise + sqrt(s) z
 * for data z, noise of N(0, I), and variances s that rise from 0, noise alone, to 1, data as they
 * are. Stage k is the ratio of waymark k + 1 to waymark k, so the sum of all f is the log ratio of
 * data to noise (Rhodes et al. 2020). */
#ifndef N2_RATIO_LOSS_H
#define N2_RATIO_LOSS_H

#include "ratio_net.h"

/* Variances of the stages + 1 waymarks, both ends exact; docs/bbo.md says where they come from. */
void n2_waymarks_of_stages(size_t stages, double *variances);

/* The variances as a tensor [n x 1]; NULL: out of memory, or the name is taken. */
n2_tensor *n2_waymarks_new(n2_store *store, const char *name, const double *variances, size_t n);

/* What the loss draws: a stage of each row [n], noise of the numerator's [n x nz] and of the
 * denominator's rows [n times x nz]. */
typedef struct n2_ratio_draws {
    n2_node k, num, den;
} n2_ratio_draws;

typedef struct n2_ratio_task {
    const n2_ratio_net *net;
    n2_tensor *waymarks;
    int64_t times;               /* rows of the denominator for one of the numerator, */
    double magnitude;            /* weighted as if they were M times as many */
    bool every_stage;            /* data learn all stages, not one by chance: K times the rows */
    const n2_ratio_draws *draws; /* NULL: random numbers */
} n2_ratio_task;

/* The loss, a mean over data z [n x nz] at a random stage each, or at every stage. No gradient is
 * meant to go into z: give it detached. */
#define n2_ratio_loss(g, ...) N2_BUILT(g, n2_build_ratio_loss(g, __VA_ARGS__))
n2_node n2_build_ratio_loss(n2_graph *g, const n2_ratio_task *task, n2_node z);

/* The mean over rows z of the sum over stages of f; and of each stage, [1 x stages]. */
#define n2_ratio_mean(g, ...)  N2_BUILT(g, n2_build_ratio_mean(g, __VA_ARGS__))
#define n2_ratio_means(g, ...) N2_BUILT(g, n2_build_ratio_means(g, __VA_ARGS__))
n2_node n2_build_ratio_mean(n2_graph *g, const n2_ratio_net *net, n2_node z);
n2_node n2_build_ratio_means(n2_graph *g, const n2_ratio_net *net, n2_node z);

#endif
