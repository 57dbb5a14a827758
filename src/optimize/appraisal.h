/* What can be said of proposals before anybody tries them: how far they are from what is known, how
 * much they promise, and, where the best designs were hidden from the model, what it found of
 * them. */
#ifndef N2_APPRAISAL_H
#define N2_APPRAISAL_H

#include "design/design.h"

/* Designs of which the best are hidden. */
typedef struct n2_backtest {
    n2ce_ctx *ctx;
    const n2_designs *all;
    n2_designs visible; /* in their order, with the space of all; x and y belong to this */
    double percent;     /* of the designs that are hidden; 0: nothing is tested */
    size_t hidden;      /* so many */
    size_t *order;      /* rows of all, best first */
} n2_backtest;

/* Hides so many percent of the designs, which must outlive *out; 0: none. Fails with N2CE_ENOMEM.
 * End it in any case. */
n2ce_status n2_backtest_begin(n2ce_ctx *ctx, const n2_designs *all, double percent,
                              n2_backtest *out);
void n2_backtest_end(n2_backtest *b);

typedef struct n2_best_and_median {
    double best, median;
} n2_best_and_median;

typedef struct n2_appraisal {
    n2ce_ctx *ctx;
    double *distance; /* of each proposal to the nearest visible design, n2_space_nearest */
    double *usual;    /* of some visible designs to the nearest other, sorted */
    size_t n_usual;
    double far;          /* share of proposals farther than 95 % of those */
    double above;        /* share predicted to be better than the best visible design */
    double hidden_share; /* of proposals whose nearest design was hidden; this and what is below are
                          * 0 where nothing is tested */
    n2_best_and_median neighbours; /* of the proposals' nearest designs, hidden ones included */
    n2_best_and_median visible;    /* of as many of the best visible designs */
    n2_best_and_median truth;      /* of as many of the best designs of all */
} n2_appraisal;

/* The proposals need x and predicted; best_seen: the largest visible value. Fails with N2CE_ENOMEM.
 * Free it in any case. */
n2ce_status n2_appraise(const n2_backtest *b, const n2_proposals *p, double best_seen,
                        n2_appraisal *out);
void n2_appraisal_free(n2_appraisal *a);

#endif
