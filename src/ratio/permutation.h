/* Do labels matter? A permutation test on the scores of rows that nobody has learnt from: if both
 * samples have one distribution, the labels can be exchanged, and p is exact. */
#ifndef N2_PERMUTATION_H
#define N2_PERMUTATION_H

#include "base/ctx.h"

/* The mean score of the first n of all rows, and what the mean of n rows by chance, drawn without
 * replacement, has as its exact mean and standard deviation. */
typedef struct n2_null {
    double observed, mean, spread;
} n2_null;
n2_null n2_null_of(const double *score, size_t n, size_t all);

/* Told the mean score of every permutation. */
typedef void n2_permutation_fn(void *user, double mean);

/* Share of the permutations, the one that was observed among them, whose first n scores have at
 * least the sum that was observed; ties with rounding count as such. The scores are left in another
 * order. `tell` may be NULL. */
double n2_permutation_p(double *score, size_t n, size_t all, size_t permutations, uint64_t seed,
                        n2_permutation_fn *tell, void *user);

/* Share of rows on the right side of 0: above for the first n, below for the others, both samples
 * alike; 0 is half right. */
double n2_balanced_accuracy(const double *log_ratio, size_t n, size_t all);

#endif
