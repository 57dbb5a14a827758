/* Weights of rows by their value: large values count more, and rare ones are not lost. 20 bins of
 * equal width between the least and the largest value; a row of a bin that has the share h of all
 * weighs
 *
 *     softmax(upper edge / tau) h / (h + .001), normalised over bins, divided by h; at most 5. */
#ifndef N2_VALUE_WEIGHTS_H
#define N2_VALUE_WEIGHTS_H

#include "design_code.h"

/* Of the rows of a code, by standardised values. tau 0: the distance of the 90 % quantile from the
 * largest value, at least .001. */
n2ce_status n2_value_weights(n2_arena *arena, const n2_code *code, double tau, double *weight);

#endif
