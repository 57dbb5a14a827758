/* optimize: designs and their values in, designs to try next out. What its files share. */
#ifndef N2_VERB_OPTIMIZE_H
#define N2_VERB_OPTIMIZE_H

#include "design/design.h"
#include "io/table.h"
#include "optimize/latent.h"
#include "task.h"

/* Designs as they were read: columns of the space with their names, and the value's. */
typedef struct n2_design_table {
    n2ce_ctx *ctx;
    n2_levels *levels;
    n2_table *table;
    n2_designs designs; /* y turned so that larger is better */
    const char **names; /* of the space's columns */
    char *target;
    double sign; /* -1: minimised */
} n2_design_table;

/* From the file that the options name, or from matrices X and y. Fails with N2CE_EDATA or
 * N2CE_EINVAL and a sentence. Close it in any case. */
n2ce_status n2_design_table_read(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                                 n2_design_table *t);
void n2_design_table_close(n2_design_table *t);

/* A value of a column as the file has it: a number, or the text of a level. */
void n2_design_value(const n2_design_table *t, size_t column, double value, n2_text *out);

/* Proposals as CSV: the file's own columns, TARGET_predicted and log_prior. */
void n2_design_csv(const n2_design_table *t, const n2_proposals *p, n2_text *out);

/* How far designs are from the nearest of others: root mean square over columns of the
 * difference in ranges, or 1 for another level. `self`: from the nearest other row. */
void n2_design_distances(const n2_design_table *t, const double *from, size_t n, const double *to,
                         size_t m, bool self, double *distance, size_t *nearest);

/* What a run found, for the answer. */
typedef struct n2_optimize_result {
    const n2_design_table *t;
    const n2ce_options *options;
    const char *path;            /* of the CSV; NULL: standard output */
    const char *device, *reason; /* and why that one */
    n2_proposals proposals;
    n2_latent_record record;
    double *spread;   /* of each prediction */
    double *distance; /* of each proposal to the nearest design */
    double *usual;    /* of some designs to the nearest other, sorted */
    size_t n_usual;
    double far;      /* share of proposals farther than 95 % of those */
    double above;    /* share predicted to be better than the best design */
    double backtest; /* percent hidden; 0: none */
    size_t hidden;
    double hidden_share;  /* of proposals whose nearest design was hidden */
    double neighbours[2]; /* best and median value of the proposals' nearest designs */
    double visible[2];    /* the same of as many of the best visible designs */
    double truth[2];      /* the same of as many of the best designs, hidden ones included */
} n2_optimize_result;

n2ce_status n2_optimize_answer(n2ce_ctx *ctx, const n2_optimize_result *r, n2ce_answer *answer);

#endif
