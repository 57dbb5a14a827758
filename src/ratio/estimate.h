/* Divergences, with intervals, from cross-fitted log ratios.
 *
 * Each is a mean over rows of both samples, so its standard error follows from how much
 * each row moves it (its influence). */
#ifndef N2_ESTIMATE_H
#define N2_ESTIMATE_H

#include "fit.h"

typedef struct n2_estimate {
    double value, error; /* nats; standard error */
} n2_estimate;

/* What the log ratios say about themselves. With r = e^f and any M,
 *
 *     balance(M) = mean_den M r / (M + r)  -  mean_num M / (M + r)
 *
 * is 0 on average if f is right: it is the slope of the N2CE loss under a shift of f.
 * At M = infinity it is mean_den r - 1, which large ratios make too noisy to use. */
typedef struct n2_quality {
    double balance, balance_error; /* as used for the correction */
    double balance_magnitude;      /* the M it was taken at */
    double normalisation;          /* mean of r over the denominator, 1 if f is right */
    double ess;                    /* effective share of the denominator under r */
    double saturated;              /* share of the numerator with r > M */
    double sampling;               /* standard error from which rows were drawn */
    double
        fitting; /* from the gap between rows that the fit has seen and has not, and its penalty */
    double tail; /* from rows where the other sample has hardly any */
    double choice;     /* from whether what was learned belongs there at all */
    double curve;      /* from what half of the rows find less, or products of columns more */
    double bound, cap; /* KL bound of the objective, and what it cannot exceed */
} n2_quality;

/* KL(num || den), or the mutual information. */
n2_estimate n2_estimate_kl(const n2_scores *s, const n2_fit_record *r, n2_quality *q);
n2_estimate n2_estimate_reverse_kl(const n2_scores *s, const n2_fit_record *r, n2_quality *q);

/* balance(M) of KL(num || den) and its standard error. */
n2_estimate n2_estimate_balance(const n2_scores *s, double magnitude);

/* The mean of r over the denominator (side 0) or of 1/r over the numerator (side 1), 1 if f is
 * right, with its standard error; *share is the effective share of those rows. */
n2_estimate n2_estimate_mean_ratio(const n2_scores *s, size_t side, double *share);

/* (1 + M) D_alpha, alpha = M / (1 + M): twice JS at M = 1, KL at infinity. */
n2_estimate n2_estimate_path(const n2_scores *s, double magnitude);

/* The share of a number that is still to be found, by what half of the rows find less or products
 * of columns more; 0 if neither is known. */
double n2_estimate_curve(const n2_scores *s);

#endif
