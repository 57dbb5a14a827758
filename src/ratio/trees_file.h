/* Trees in a file. */
#ifndef N2_TREES_FILE_H
#define N2_TREES_FILE_H

#include "boosting.h"
#include "io/bundle.h"

/* The trees of fold k. */
n2ce_status n2_trees_put(n2_bundle *b, const n2_boosting *trees, size_t k);

bool n2_trees_are_there(const n2_st_file *f, size_t k);

/* Fails with N2CE_EDATA, without a sentence, if its numbers are no trees of d columns, N2CE_ENOMEM;
 * *out is then NULL. */
n2ce_status n2_trees_take(n2ce_ctx *ctx, const n2_st_file *f, size_t k, size_t d,
                          n2_boosting **out);

#endif
