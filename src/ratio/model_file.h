/* A fitted ratio as a file, and as the public n2ce_model. */
#ifndef N2_MODEL_FILE_H
#define N2_MODEL_FILE_H

#include "reliability.h"

struct n2_st_file;

struct n2ce_model {
    n2ce_ctx *ctx;
    n2_ratio *ratio;
    n2_fit_record record;
    char **names; /* of the columns */
    size_t cols, x_cols;
    n2_levels *levels; /* of the categorical columns, frozen; NULL: none */
    bool *categorical;
    char *json;                 /* what n2ce_model_json says */
    n2_reliability reliability; /* of its scores; bins = 0: not known */
};

/* Takes the ratio over, also on failure. `table` gives names; levels may be NULL. json is
 * copied. */
n2ce_status n2_model_new(n2ce_ctx *ctx, n2_ratio *ratio, const n2_fit_record *record,
                         const n2_table *table, size_t x_cols, n2_levels *levels, const char *json,
                         n2ce_model **out);

/* The model in a safetensors file that is open; path is what messages call it. */
n2ce_status n2_model_of_file(n2ce_ctx *ctx, const char *path, const struct n2_st_file *file,
                             n2ce_model **out);

/* Reads rows of a file block by block, as this model needs them: those that begin in bytes piece[0]
 * .. piece[1] - 1, where there may be none (*out NULL), or all, if piece is NULL. */
n2ce_status n2_model_open_rows(const n2ce_model *model, const char *path, n2_header header,
                               bool drop_missing, const char *columns, const size_t piece[2],
                               n2_reader **out);

#endif
