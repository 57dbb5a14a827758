/* optimize: designs and their values in, designs to try next out. What its files share. */
#ifndef N2_VERB_OPTIMIZE_H
#define N2_VERB_OPTIMIZE_H

#include "design/design_table.h"
#include "optimize/appraisal.h"
#include "optimize/latent.h"
#include "task.h"

/* The designs of the file that the verb's options name, or of matrices X and y, and the model that
 * they describe; where it is trained and kept is another matter. Close the table in any case. */
n2ce_status n2_optimize_designs(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                                n2_design_table *out);
void n2_optimize_model(const n2ce_options *o, n2_latent_options *out);

/* What a run found, for the answer. */
typedef struct n2_optimize_result {
    const n2_design_table *t;
    const n2ce_options *options;
    const char *path;            /* of the CSV; NULL: standard output */
    const char *device, *reason; /* and why that one */
    n2_proposals proposals;
    size_t asked; /* designs that were wanted */
    n2_latent_record record;
    double *spread; /* of each prediction */
    const n2_backtest *backtest;
    n2_appraisal worth; /* values as the file has them, not turned */
} n2_optimize_result;

/* Logs what to be careful about, as warnings. */
void n2_optimize_warn(n2ce_ctx *ctx, const n2_optimize_result *r);

n2ce_status n2_optimize_answer(n2ce_ctx *ctx, const n2_optimize_result *r, n2ce_answer *answer);

#endif
