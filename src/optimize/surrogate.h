/* Forward models: networks that predict a design's standardised value, mean and spread.
 *
 * An ensemble of `members` networks, each trained on its own bootstrap of the offline rows (its
 * counts weight the Gaussian negative log likelihood). The log spread is clamped softly between
 * two bounds that are trained too and start at ln .1 and ln .2. LeakyReLU(.3). For sequences coded
 * one-hot the first layer is an embedding of 256 numbers a level, shared by the positions, and a
 * linear layer. */
#ifndef N2_SURROGATE_H
#define N2_SURROGATE_H

#include "design_code.h"
#include "workspace.h"

enum { N2_MOST_MEMBERS = 5, N2_SURROGATE_ROWS = 1024 };

typedef struct n2_surrogate_options {
    size_t members, layers; /* hidden layers: 1 or 2 */
    int64_t width;          /* of them */
    size_t epochs, batch;
    double rate; /* of Adam */
} n2_surrogate_options;

/* What CMA-ES, REINFORCE and CbAS use: 5 members with one hidden layer of 256. */
n2_surrogate_options n2_surrogate_ensemble(double rate);

/* A first layer that sees a coded design. */
typedef struct n2_first_layer {
    n2_tensor *embedding; /* [levels x 256] or NULL */
    n2_tensor *weight;    /* [positions * out x 256], or [out x width] */
    n2_tensor *bias;
    int64_t positions, out;
} n2_first_layer;
n2_first_layer n2_first_layer_new(n2_parameters *p, const char *name, const n2_code *code,
                                  int64_t out);
n2_node n2_first_layer_apply(n2_graph *g, const n2_first_layer *layer, n2_node x);

typedef struct n2_member {
    n2_first_layer first;
    n2_mlp rest;
    n2_tensor *bounds; /* of the log spread */
} n2_member;

typedef struct n2_surrogate {
    n2_workspace *ws;
    const n2_code *code;
    n2_tensor *x, *y, *counts; /* rows to train on; how much each counts for each member */
    double *bootstraps;        /* how often each member's bootstrap drew them, rows x members */
    n2_surrogate_options options;
    n2_parameters parameters;
    n2_member members[N2_MOST_MEMBERS];
    n2_tensor *rows; /* [N2_SURROGATE_ROWS x width], what is asked */
    n2_plan *ask;
    double *answer;
} n2_surrogate;

/* Trains it in the workspace, which owns all of it; it and code must outlive it. The share of work
 * done goes up to `upto`. */
n2ce_status n2_surrogate_fit(n2_workspace *ws, const n2_code *code, const n2_surrogate_options *o,
                             double upto, n2_surrogate *out);

/* Goes on for so many steps, with every row's share of the loss multiplied by its weight. */
n2ce_status n2_surrogate_refit(n2_surrogate *s, const double *weight, uint64_t steps, double upto);

/* Mean and log spread of member m at rows x, [n x 1] both, as nodes; log_spread may be NULL. */
void n2_surrogate_apply(n2_graph *g, const n2_surrogate *s, size_t m, n2_node x, n2_node *mean,
                        n2_node *log_spread);

/* At n coded rows: means and spreads, n x members; spreads may be NULL. */
n2ce_status n2_surrogate_ask(n2_surrogate *s, const double *x, size_t n, double *means,
                             double *spreads);

/* The mean of the mixture at n coded rows. */
n2ce_status n2_surrogate_mean(n2_surrogate *s, const double *x, size_t n, double *mean);

/* bounds are [2]; see above. */
n2_node n2_soft_clamp(n2_graph *g, n2_node x, n2_node bounds);

#endif
