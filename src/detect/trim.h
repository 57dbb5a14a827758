/* Normal rows among rows of which some are odd. */
#ifndef N2_TRIM_H
#define N2_TRIM_H

#include "io/table.h"

/* Leaves the fifth of the rows out that is farthest from its 20 nearest neighbours, in both views
 * of the columns (column_map.h): what is odd is there, unless it comes in larger crowds. Rows keep
 * their order, and t->origin says which they are. Fewer than 50 rows stay as they are. Fails with
 * N2CE_ENOMEM, N2CE_ECANCELED. */
n2ce_status n2_trim(n2ce_ctx *ctx, n2_table *t, const n2_levels *levels);

#endif
