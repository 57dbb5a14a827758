/* A file that is written again and again while something goes on, and is gone when that ends: the
 * state of a training, the finished runs of a study. What is replaced or removed is the context's
 * own: what it wrote itself, or claimed, because it goes on from there or may replace it. A file
 * that somebody else puts there meanwhile, another run of the program, say, stays. A context
 * remembers the last four. */
#ifndef N2_OWN_FILE_H
#define N2_OWN_FILE_H

#include "base/ctx.h"

/* What is there under this name, if anything, is from now on the context's. N2CE_ENOMEM. */
n2ce_status n2_own_file_claim(n2ce_ctx *ctx, const char *path);

/* As n2_file_write; N2CE_EEXIST, with a sentence, if what is there is not the context's own. */
n2ce_status n2_own_file_write(n2ce_ctx *ctx, const char *path, const char *bytes, size_t n);

/* Removes it if it is the context's own. */
void n2_own_file_remove(n2ce_ctx *ctx, const char *path);

#endif
