/* Designs in files: the rows of a table, one of whose columns is the value, as designs of a space;
 * and proposals as rows of such a table. */
#ifndef N2_DESIGN_TABLE_H
#define N2_DESIGN_TABLE_H

#include "base/arena.h"
#include "base/text.h"
#include "design.h"
#include "io/table.h"

enum { N2_DESIGN_ASIDE = 8 }; /* the most columns aside */

typedef struct n2_design_table_options {
    const char *target;       /* column of the value, by its name, which may be in quotes, or its
                               * number; not for matrices */
    bool minimize;            /* the smaller the value, the better */
    const char *const *aside; /* other columns that are no part of a design, named alike, */
    size_t n_aside;           /* so many; not for matrices */
    const char *asked_by;     /* the options that name these and the value, for messages */
    const char *columns; /* of the designs; "": all others. Lists as n2_columns_parse has them */
    const char
        *categorical;       /* those that are categories, besides those that hold texts; "": none */
    const char *continuous; /* those that may have fractions although no value has; "": none */
    const char *bounds;     /* a CSV file with rows column, low, high; NULL: the data's range */
    const char *append;     /* files with more rows of these columns, separated by commas, of which
                             * rows without a value are left out; NULL or "": none. Not for
                             * matrices */
    n2_header header;       /* of the file of designs */
    bool drop_missing;
    size_t max_rows; /* a random subset of a longer table; 0: all */
    uint64_t seed;   /* decides which */
} n2_design_table_options;

/* Designs as they were read: columns of the space with their names, and the value's. */
typedef struct n2_design_table {
    n2ce_ctx *ctx;
    n2_levels *levels;
    n2_table *table;
    n2_designs designs; /* y turned so that larger is better */
    double *aside;      /* values of the columns aside, one column after the other; NULL: none; */
    const char *aside_name[N2_DESIGN_ASIDE]; /* and their names in the file */
    const char **names;                      /* of the space's columns */
    char *target;
    double sign;       /* -1: minimised */
    size_t appended;   /* rows that came from files of `append`, */
    size_t unfinished; /* and rows of these that had no value */

    /* More columns of proposals, which n2_design_csv writes: names, and values one column after the
     * other. */
    size_t n_also;
    const char *also_name[N2_DESIGN_ASIDE];
    const double *also;
} n2_design_table;

/* Reads a file as n2_table_read does, or takes matrices X and y. Fails as that does, or with
 * N2CE_EDATA or N2CE_EINVAL and a sentence. Close it in any case. */
n2ce_status n2_design_table_read(n2ce_ctx *ctx, const char *path, const n2_design_table_options *o,
                                 n2_design_table *t);
n2ce_status n2_design_table_of_matrices(n2ce_ctx *ctx, const n2ce_matrix x_and_y[2],
                                        const n2_design_table_options *o, n2_design_table *t);
void n2_design_table_close(n2_design_table *t);

/* A value of a column as the file has it: a number, or the text of a level. */
void n2_design_value(const n2_design_table *t, size_t column, double value, n2_text *out);

/* Proposals as CSV: the file's own columns, TARGET_predicted and log_prior, and the chance to meet
 * what is required, where there is one. */
void n2_design_csv(const n2_design_table *t, const n2_proposals *p, n2_text *out);

/* Proposals as the public header has them: in the table's units, with names and levels, for as
 * long as the arena, the table and the given arrays live. */
n2ce_status n2_design_proposals(const n2_design_table *t, const n2_proposals *p,
                                const double *spread, const double *distance, n2_arena *arena,
                                n2ce_proposals *out);

#endif
