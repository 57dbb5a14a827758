/* What designs must obey besides their bounds: columns that have one value, and sums that must
 * hold.
 *
 *     n2_design_rules rules;
 *     n2_design_rules_read(&table, "temp=80, colour=red", "a,b,c = 100", &rules);
 *     n2_design_rules_apply(&rules, design);       moves it to a design that obeys
 *     n2_design_rules_free(&rules); */
#ifndef N2_DESIGN_RULES_H
#define N2_DESIGN_RULES_H

#include "design_table.h"

/* Columns whose values add up to a total. */
typedef struct n2_design_sum {
    size_t *column, n;
    double total;
    bool found; /* it holds in all rows, and nobody declared it */
} n2_design_sum;

typedef struct n2_design_rules {
    n2ce_ctx *ctx;
    const n2_space *space;
    n2_arena arena;
    double *fixed; /* of each column; NAN: free */
    double *unit;  /* of each column: decimals that values keep; 0: any */
    n2_design_sum *sums;
    size_t n_sums, n_fixed;
} n2_design_rules;

/* Reads "COLUMN=VALUE, ..." and "COLUMNS = TOTAL; ..."; either may be "", and names and levels may
 * be in quotes. The sums "auto" are one
 * that holds in all rows within their decimals, if there is one; where --fix or the bounds exclude
 * it, that is a warning. The table must outlive *out. Fails with N2CE_EINVAL, and a sentence that
 * says which rule excludes what, if no design within the bounds can obey. Free it in any case. */
n2ce_status n2_design_rules_read(const n2_design_table *t, const char *fix, const char *sums,
                                 n2_design_rules *out);
void n2_design_rules_free(n2_design_rules *r);

/* The rules as numbers, and back: fixed values (NAN: free), and a row a sum: a one a column in it,
 * and the total. Units are those of the designs. */
size_t n2_design_rules_size(const n2_design_rules *r); /* of `sums` */
void n2_design_rules_write(const n2_design_rules *r, double *fixed, double *sums);
n2ce_status n2_design_rules_restore(const n2_design_table *t, const double *fixed,
                                    const double *sums, size_t n_sums, n2_design_rules *out);

/* Moves a design, which must be within the bounds, to one near it that obeys: fixed columns first,
 * then sums, by shrinking or stretching what is above the lower bounds, with the decimals of the
 * column. */
void n2_design_rules_apply(const n2_design_rules *r, double *design);

/* Whether a design obeys, sums to 1e-9 of their size. */
bool n2_design_rules_hold(const n2_design_rules *r, const double *design);

#endif
