/* optimize: designs and their values in, designs to try next out. What its files share. */
#ifndef N2_VERB_OPTIMIZE_H
#define N2_VERB_OPTIMIZE_H

#include "design/design_table.h"
#include "optimize/appraisal.h"
#include "optimize/latent.h"
#include "optimize_objectives.h"
#include "optimize_require.h"
#include "task.h"

#include <string.h>

/* The designs of the file that the verb's options name, or of matrices X and y, and the model that
 * they describe, with the columns of requirements and of further objectives aside (NULL: none);
 * where it is trained and kept is another matter. Close the table in any case. */
n2ce_status n2_optimize_designs(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                                const n2_requirements *required, n2_objectives *objectives,
                                n2_design_table *out);

/* What the options say that proposals must obey; a sum that was found is logged. Free it in any
 * case. */
n2ce_status n2_optimize_rules(const n2ce_options *o, const n2_design_table *t,
                              n2_design_rules *out);
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

/* Values as the file has them. */
static inline double n2_optimize_best(const n2_optimize_result *r) {
    return r->t->sign * r->record.y_best;
}
static inline double n2_optimize_predicted(const n2_optimize_result *r, size_t i) {
    return r->t->sign * r->proposals.predicted[i];
}

/* The mean of the predictions, and its 80 % interval; NaN: there is none. */
void n2_optimize_expected(const n2_optimize_result *r, double *mean, double *low, double *high);

/* Whether the device was chosen by the program. */
static inline bool n2_optimize_chose_device(const n2_optimize_result *r) {
    return strcmp(n2ce_options_get(r->options, "device"), "auto") == 0;
}

/* Sentences on what to be careful about. */
enum { N2_OPTIMIZE_NOTES = 8 };
typedef struct n2_optimize_notes {
    char text[N2_OPTIMIZE_NOTES][240];
    size_t n;
} n2_optimize_notes;

/* Logs what to be careful about, as warnings. */
void n2_optimize_warn(n2ce_ctx *ctx, const n2_optimize_result *r);

/* The report: verb_optimize_page.c. */
n2ce_status n2_optimize_page(n2ce_ctx *ctx, const n2_optimize_result *r, const n2_optimize_notes *w,
                             n2_text *page);

n2ce_status n2_optimize_answer(n2ce_ctx *ctx, const n2_optimize_result *r, n2ce_answer *answer);

#endif
