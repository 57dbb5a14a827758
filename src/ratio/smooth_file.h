/* Smooth parts in a file. */
#ifndef N2_SMOOTH_FILE_H
#define N2_SMOOTH_FILE_H

#include "io/bundle.h"
#include "smooth.h"

/* Smooth part k. */
n2ce_status n2_smooth_put(n2_bundle *b, const n2_smooth *s, size_t k);

bool n2_smooth_is_there(const n2_st_file *f, size_t k);

/* `shapes`, which may be NULL, are those of the file, and stay the caller's. Fails with N2CE_EDATA,
 * without a sentence, if its tensors do not fit d columns, N2CE_ENOMEM; *out is then NULL. */
n2ce_status n2_smooth_take(n2ce_ctx *ctx, const n2_st_file *f, size_t k, size_t d,
                           const n2_shapes *shapes, n2_smooth **out);

#endif
