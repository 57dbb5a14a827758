/* What a log ratio has left over: products of columns whose means in the two samples it does not
 * account for. They are looked at one by one: x_i x_j, of a joint sample one column of x and one of
 * y, else squares too; and each of them times the squared distance of the row, of its x or of its
 * y, from the middle, as patterns that turn with the distance have it. */
#ifndef N2_LEFT_OVER_H
#define N2_LEFT_OVER_H

#include "second_opinion.h"

/* By how much the NCE loss would fall, in nats, by products that do more than chance would give the
 * best of so many. At most 6000 rows a side are asked, of many columns
 * fewer, the first ones. Fails with N2CE_ENOMEM. */
n2ce_status n2_left_over(n2ce_ctx *ctx, const n2_opinion_rows *of, size_t dx, double *out);

#endif
