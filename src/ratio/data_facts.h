/* What makes a log ratio of two samples ill-defined, or less certain than rows suggest: found in
 * the data as they are, before anything is fitted. */
#ifndef N2_DATA_FACTS_H
#define N2_DATA_FACTS_H

#include "io/table.h"

/* A column, by its number, and a share of the rows of a sample; share 0: nothing of the kind. */
typedef struct n2_column_fact {
    size_t column;
    double share;
    double value;
} n2_column_fact;

/* Of the denominator (0) and the numerator (1). With a joint sample, den NULL, those of the
 * numerator alone are looked for that make sense of one. */
typedef struct n2_data_facts {
    n2_column_fact atom[2]; /* a value of at least 2 % of a sample's rowsthat the other never has */

    n2_column_fact beyond[2]; /* rows of a sample beyond the range of the other's column */
    n2_column_fact
        far[2];        /* less than half of the rows, but five or more, that are beyond it
                          by more than its width: the other sample cannot say anything of them */
    bool dependent[2]; /* columns are linear functions of one another in this sample alone */
    bool determined;   /* y is a linear function of x, or they share a column */
    size_t shared;     /* rows of the numerator that stand in the denominator, too, though
                          values hardly repeat */
    double cells;      /* of columns that all are levels: different rows for each row of the smaller
                          sample; 0 otherwise */
    size_t repeated;   /* rows of a joint sample that stand in it before, likewise */
} n2_data_facts;

/* Categorical columns are left out of what is about values. */
n2ce_status n2_data_facts_find(const n2_table *num, const n2_table *den, size_t x_cols,
                               n2_data_facts *out);

#endif
