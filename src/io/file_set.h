/* Files that a pattern stands for, as a shell has them: 'part-*.csv', '{jan,feb}.csv'. */
#ifndef N2_FILE_SET_H
#define N2_FILE_SET_H

#include "base/ctx.h"

typedef struct n2_file_set {
    n2ce_ctx *ctx;
    char **path;
    size_t n; /* at least 1 */
} n2_file_set;

/* In the order of their names. A name without *, ?, [ and { stands for itself, as does one that is
 * a file's, and "-". Fails with N2CE_EIO if there are none, N2CE_ENOMEM. */
n2ce_status n2_file_set_find(n2ce_ctx *ctx, const char *pattern, n2_file_set *out);
void n2_file_set_free(n2_file_set *set); /* all zeros are fine */

#endif
