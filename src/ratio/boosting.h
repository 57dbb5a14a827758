/* Gradient-boosted trees. What is left open is as people fit them without thinking, scikit-learn's
 * HistGradientBoostingRegressor and HistGradientBoostingClassifier with their defaults: 100 trees
 * of at most 31 leaves with at least 20 rows each, grown leaf by leaf where the loss falls most, at
 * a rate of 0.1, over at most 255 bins a column. Unlike there, no rows are held out where there are
 * more than 10,000. */
#ifndef N2_BOOSTING_H
#define N2_BOOSTING_H

#include "base/ctx.h"

/* A leaf has left 0. Rows with x <= threshold go left, the others to the node after that. */
typedef struct n2_tree_node {
    uint32_t column, left;
    double threshold, value;
} n2_tree_node;

typedef struct n2_boosting {
    n2ce_ctx *ctx;
    size_t cols, trees, nodes; /* nodes of a tree, at most */
    double first;              /* what is predicted before any tree */
    n2_tree_node *node;        /* trees x nodes */
} n2_boosting;

/* What is predicted: the value, by squared errors; or the log odds of the value 1 against 0, by the
 * logistic loss, a Newton step a leaf. */
typedef enum n2_boosting_loss { N2_BOOSTING_SQUARES, N2_BOOSTING_LOGISTIC } n2_boosting_loss;

/* 0 and NULL: as above, all rows alike, all columns, from the best constant on. */
typedef struct n2_boosting_options {
    n2_boosting_loss loss;
    size_t trees, leaves, least_rows;
    const bool *looked_at; /* columns that trees may split by */
    const double *weight;  /* of rows */
    const double *offset;  /* what a row has before any tree; not among the predictions */
} n2_boosting_options;

/* x is rows x cols, row-major. Fails with N2CE_ENOMEM or N2CE_ECANCELED; *out is then NULL. The
 * same bytes for any number of threads. */
n2ce_status n2_boosting_fit(n2ce_ctx *ctx, const n2_boosting_options *o, const double *x,
                            const double *y, size_t rows, size_t cols, n2_boosting **out);

/* Room for one of these sizes, all 0. */
n2ce_status n2_boosting_new(n2ce_ctx *ctx, size_t cols, size_t trees, size_t nodes,
                            n2_boosting **out);
void n2_boosting_free(n2_boosting *b); /* NULL is fine */

void n2_boosting_predict(const n2_boosting *b, const double *x, size_t rows, double *y);

/* Adds what trees begin .. end - 1 say of rows to y. */
void n2_boosting_add(const n2_boosting *b, size_t begin, size_t end, const double *x, size_t rows,
                     double *y);

#endif
