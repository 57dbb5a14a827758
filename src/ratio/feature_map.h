/* From columns of a table to the numbers that estimators see.
 *
 * A numeric column is standardised, either as it is or, where that makes the samples more
 * Gaussian, after a monotone map that gives the pooled column normal margins. Such maps
 * change neither a log ratio nor a mutual information. A column of levels becomes one
 * column of 0 and 1 for each level but the first; a column with one value is left out.
 *
 * Features are part of the model and of its file: a model that is loaded scales as the
 * one that was saved. */
#ifndef N2_FEATURE_MAP_H
#define N2_FEATURE_MAP_H

#include "io/table.h"

typedef enum n2_feature_kind {
    N2_FEATURE_CONSTANT, /* left out */
    N2_FEATURE_LINEAR,   /* (x - mean) / scale */
    N2_FEATURE_NORMAL,   /* piecewise linear, knots to normal quantiles, then the same */
    N2_FEATURE_LEVELS    /* a 0/1 column for each level but the first */
} n2_feature_kind;

typedef struct n2_feature {
    n2_feature_kind kind;
    double mean, scale;
    size_t levels;         /* LEVELS: how many */
    size_t n_knots;        /* NORMAL */
    double *knot, *normal; /* strictly increasing values, and where they go */
} n2_feature;

typedef struct n2_features {
    n2ce_ctx *ctx;
    size_t cols, width; /* columns of the table, numbers out */
    n2_feature *column; /* cols */
} n2_features;

typedef enum n2_scaling { N2_SCALING_AUTO, N2_SCALING_LINEAR, N2_SCALING_NORMAL } n2_scaling;

/* Learns the features of two tables with the same columns; b may be NULL. Both count
 * the same, whatever their sizes. levels[c] is how many levels column c has. */
n2ce_status n2_features_new(n2ce_ctx *ctx, const n2_table *a, const n2_table *b,
                            const size_t *levels, n2_scaling scaling, n2_features **out);
void n2_features_free(n2_features *f); /* NULL is fine */

/* Every column is one feature: so they can take its place. */
bool n2_features_fit_in_place(const n2_features *f);

/* rows x cols to rows x width, on all threads; out may be x if features fit in place. Fails with
 * N2CE_ENOMEM only. */
n2ce_status n2_features_apply(const n2_features *f, const double *x, size_t rows, double *out);

/* The column's value that a numeric feature stands for; beyond the values that a map was made from
 * as far as it can be told. */
double n2_feature_back(const n2_feature *f, double z);

/* Width of the first `cols` columns. */
size_t n2_features_width(const n2_features *f, size_t cols);

#endif
