/* Whether scores can be taken at their word: the mean weight, and in bins of the log ratio what was
 * predicted beside what was seen. Of rows that the fit has not seen. */
#ifndef N2_RELIABILITY_H
#define N2_RELIABILITY_H

#include "estimate.h"

enum { N2_RELIABILITY_BINS = 10 };

/* Rows between two tenths of all log ratios, both samples counting the same. */
typedef struct n2_reliability_bin {
    double predicted;       /* log odds of the numerator among them, by their log ratios */
    double observed, error; /* by their labels, and its standard error */
    double num, den;        /* rows of either sample */
} n2_reliability_bin;

typedef struct n2_reliability {
    n2_estimate mean_weight;  /* of r over the denominator: 1 if r is right */
    double share;             /* effective share of the denominator under r */
    n2_estimate mean_inverse; /* of 1/r over the numerator */
    n2_reliability_bin bin[N2_RELIABILITY_BINS];
    size_t bins; /* fewer where log ratios are equal; 0: not known */
} n2_reliability;

/* Fails with N2CE_ENOMEM. */
n2ce_status n2_reliability_of(const n2_scores *s, n2_reliability *out);

/* How far what was seen is from what was predicted, on average over bins, less what chance gives;
 * nats. */
double n2_reliability_gap(const n2_reliability *r);

#endif
