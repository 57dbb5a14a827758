/* optimize: what is wanted, where it is more than one column: several objectives, each weighted, or
 * a value that a column is to be near. */
#ifndef N2_OPTIMIZE_OBJECTIVES_H
#define N2_OPTIMIZE_OBJECTIVES_H

#include "design/design_table.h"
#include "task.h"

enum { N2_OBJECTIVES_MAX = 4, N2_WEIGHTINGS = 5 };

typedef struct n2_objective {
    const char *column; /* as it was given, and as the file has it once it is read */
    double sign;        /* 1: to be large, -1: to be small, 0: to be near `aim` */
    double weight;      /* of its standard deviation */
    double aim;
    const double *value; /* of every row, as the file has it */
    double mean, sd,
        best; /* of these, turned so that more is better, or of distances from the aim */
} n2_objective;

typedef struct n2_objectives {
    n2_arena arena;
    n2_objective each[N2_OBJECTIVES_MAX];
    size_t n;
    bool combined; /* more than a column to be made large or small */
    char title[160];
} n2_objectives;

/* --maximize, --minimize ("yield, 2*purity") and --target ("temp=80"). Fails with N2CE_EINVAL. Free
 * it in any case. */
n2ce_status n2_objectives_read(n2ce_ctx *ctx, const n2ce_options *o, n2_objectives *out);
void n2_objectives_free(n2_objectives *w);

/* Takes the values of a table whose column is the first objective, and whose columns aside are the
 * others, from number `first` on; and makes what is combined the table's value. */
n2ce_status n2_objectives_take(n2_objectives *w, n2_design_table *t, size_t first);

/* The table's value with other weights: factors on those that were asked for. */
void n2_objectives_weigh(const n2_objectives *w, const double *factor, n2_design_table *t);

/* How many standard deviations a value can be above the best that was seen: of a distance, to 0;
 * NaN of others, which may be anything. */
double n2_objectives_reach(const n2_objectives *w);

/* Factors of weighting k of N2_WEIGHTINGS: from all on the first objective, by way of the others,
 * to all on the last. */
void n2_objectives_weighting(const n2_objectives *w, size_t k, double *factor);

/* What forests on the rows predict of every objective for designs, objective by objective, and
 * which of the designs no other one is better than in all; in the arena. */
n2ce_status n2_objectives_predict(n2_objectives *w, const n2_designs *seen, const double *x,
                                  size_t rows, double **predicted, double **front);

#endif
