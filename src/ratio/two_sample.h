/* Do two samples have one distribution? Seven statistics that see different differences, each
 * a function of all rows and their labels, and one p-value for the most telling of them.
 *
 * Columns get normal margins by the ranks of both samples together, levels of categories are
 * indicators; neither looks at labels. With weights w = 1/n for rows of num and -1/m for rows of
 * den, and z the rows so scaled,
 *
 *     energy       -w' |z_i - z_j| w, the energy distance
 *     kernel       w' exp(-|z_i - z_j|^2 / 2h^2) w, finer: h is half of the median distance
 *     moments      w' (z_i . z_j)^2 w, the distance of the matrices of second moments
 *     neighbours   w' a w, a_ij = 1 if j is among the 5 nearest of i
 *     columns      the largest of the columns' Cramer-von Mises statistics of z
 *     spreads      the same of |z|: scale and tails of single columns
 *     pairs        the largest squared difference of means of z_a z_b, up to 64 columns
 *
 * of which the last three divide each column or pair by what it is on average when labels are
 * permuted. If both samples have one distribution labels can be exchanged. So the share of
 * permutations in which the best of seven ranks is at least as good as in the data is a p-value,
 * exact whatever the distribution, and whatever the seven are good for. */
#ifndef N2_TWO_SAMPLE_H
#define N2_TWO_SAMPLE_H

#include "base/ctx.h"

typedef enum n2_two_sample_statistic {
    N2_TS_ENERGY,
    N2_TS_KERNEL,
    N2_TS_MOMENTS,
    N2_TS_NEIGHBOURS,
    N2_TS_COLUMNS,
    N2_TS_SPREADS,
    N2_TS_PAIRS,
    N2_TS_STATISTICS
} n2_two_sample_statistic;

extern const char *const n2_two_sample_names[N2_TS_STATISTICS];

typedef struct n2_two_sample {
    double p;                      /* of the best of all: this is the test */
    double each[N2_TS_STATISTICS]; /* p-values one by one, to look at; NaN: not computed */
    n2_two_sample_statistic best;
    size_t rows[2]; /* of den and num that were looked at, 1500 of each at most */
} n2_two_sample;

/* Rows of both samples, [n x d] each, in random order; levels[c] is how many levels column c has, 0
 * or levels NULL: it holds numbers. Distances take rows^2 (d + permutations) operations.
 * Fails with N2CE_ENOMEM, N2CE_ECANCELED. */
typedef struct n2_two_sample_data {
    const double *num, *den;
    size_t n_num, n_den, d;
    const size_t *levels;
} n2_two_sample_data;

n2ce_status n2_two_sample_test(n2ce_ctx *ctx, const n2_two_sample_data *data, size_t permutations,
                               uint64_t seed, n2_two_sample *out);

#endif
