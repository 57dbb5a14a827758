/* Which of many columns have a say: those whose values, squares or products of two
 * and three have other means in one
 * sample than in the other, by more than chance would give the most of so many.
 *
 * Of a joint sample and its pairs these are products of functions of x with functions of y, and of
 * two columns of x with them: y = x_1 x_2 is seen though neither column tells anything of y's mean.
 */
#ifndef N2_SCREEN_H
#define N2_SCREEN_H

#include "smooth.h"

/* Marks at most `most` columns, those that differ most; returns how many. Fails with N2CE_ENOMEM.
 */
n2ce_status n2_screen_columns(n2ce_ctx *ctx, const n2_smooth_rows *rows, size_t d, size_t dx,
                              size_t most, bool *active, size_t *count);

#endif
