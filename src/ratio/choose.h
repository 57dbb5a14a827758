/* What the caller left open is chosen from the data. */
#ifndef N2_CHOOSE_H
#define N2_CHOOSE_H

#include "fit.h"

/* How many folds; the rest needs the base, which is fitted by folds. */
void n2_choose_folds(size_t n_num, size_t n_den, n2_fit_options *o);

/* Fills the other zeros of *o and the waymarks. base may be NULL; unbiased is its divergence, or
 * NaN. */
void n2_choose(const n2_gauss *base, double unbiased, size_t n_num, size_t n_den, n2_fit_options *o,
               double alpha[N2_MOST_STAGES + 1]);

#endif
