/* What a fitted log ratio is made of: which columns carry it, and which stages.
 *
 * Both are asked of rows that the parts have not seen (the kernel models, which are not
 * cross-fitted, have). Rows of both samples are taken in pairs. A column matters as much as the log
 * ratio loses by exchanging the column's values between the two rows of a pair: what the
 * numerator's rows lose is a part of KL(num || den), what the denominator's gain one of the
 * reverse. If columns are independent in both samples, the column's own two divergences come out;
 * else what columns tell together counts for each of them, or, if one tells what another does, for
 * neither in full. With all columns exchanged it would be the sum of both divergences. */
#ifndef N2_EXPLAIN_H
#define N2_EXPLAIN_H

#include "blend.h"
#include "boosting.h"
#include "critic.h"
#include "feature_map.h"
#include "kernel_ratio.h"
#include "smooth.h"

/* Means over pairs, in nats, and their standard errors. */
typedef struct n2_column_part {
    double num, num_error; /* the fall of log ratios of numerator rows */
    double den, den_error; /* the rise of log ratios of denominator rows; with dx it means little:
                              a pair of x and y of different rows is one after the exchange, too */
} n2_column_part;

/* Means over the pairs' numerator rows, in nats: all stages add up to the mean log ratio. */
typedef struct n2_stage_part {
    double gaussian, learned;
} n2_stage_part;

typedef struct n2_explanation {
    n2ce_ctx *ctx;
    size_t pairs;           /* that were looked at */
    size_t columns, stages; /* columns: of the table; 0 and 0: there is no explanation */
    n2_column_part *column; /* all 0 for one that was left out because it is constant */
    n2_stage_part *stage;   /* NULL for kernel models */
} n2_explanation;

void n2_explanation_free(n2_explanation *e); /* one that is all 0 is fine */

/* A fit by folds: fold k has rows n k / folds .. n (k + 1) / folds - 1 of either side. */
typedef struct n2_explain_data {
    n2_rows_view num, den; /* features; no den with dx */
    size_t dx;
    const n2_features *features;
    size_t folds;
    n2_gauss *const *base;     /* of each fold; base[0] NULL: none */
    n2_critic *const *critic;  /* of each fold */
    size_t critics;            /* 0: none */
    n2_smooth *const *smooth;  /* of each fold */
    size_t smooths;            /* 0: none */
    n2_boosting *const *trees; /* of each fold */
    size_t forests;            /* 0: none */
    const n2_blend *blend;
    const n2_kernel_ratio *kernel;   /* or NULL */
    const n2_critic_options *shapes; /* stages, width, blocks */
    const double *alpha;             /* stages + 1 waymarks */
} n2_explain_data;

/* Looks at as many pairs as are cheap, and at most 1000: how many does not depend on time or
 * threads. Fails with N2CE_ENOMEM, N2CE_EDEVICE, N2CE_ECANCELED; *out is all 0 then. */
n2ce_status n2_explain(n2ce_ctx *ctx, const n2_explain_data *data, n2_explanation *out);

#endif
