/* Functions of columns in a file. */
#ifndef N2_SHAPES_FILE_H
#define N2_SHAPES_FILE_H

#include "io/bundle.h"
#include "shapes.h"

void n2_shapes_put(n2_bundle *b, const n2_shapes *s); /* NULL is fine */

/* *out is NULL if the file has none. Fails with N2CE_EDATA, without a sentence, if they do not fit
 * the features, and N2CE_ENOMEM. */
n2ce_status n2_shapes_take(n2ce_ctx *ctx, const n2_st_file *f, const n2_features *features,
                           size_t dx, n2_shapes **out);

#endif
