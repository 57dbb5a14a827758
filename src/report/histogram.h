/* Histograms: how many values lie in each of some bins of one width, for samples side by side. */
#ifndef N2_HISTOGRAM_H
#define N2_HISTOGRAM_H

#include <stddef.h>

enum { N2_MOST_BINS = 64, N2_MOST_STEPS = 2 * N2_MOST_BINS + 2 };

typedef struct n2_bins {
    double low, width; /* bin i holds low + i width <= x < low + (i + 1) width */
    size_t n;
} n2_bins;

typedef struct n2_histogram {
    size_t rows;                /* all of them */
    size_t below, above;        /* outside; what is no number is above */
    size_t count[N2_MOST_BINS]; /* rows in each bin */
    double sum[N2_MOST_BINS];   /* of their values */
} n2_histogram;

/* Bins for the middle 99 % of either sample, with round edges, the fewer the fewer values there
 * are. Of a long sample evenly spaced values are looked at: they must be in no order. */
n2_bins n2_bins_for(const double *const x[], const size_t n[], size_t samples);

/* Bins from low to high with round edges, about `target` of them. */
n2_bins n2_bins_between(double low, double high, size_t target);

void n2_histogram_add(n2_histogram *h, const n2_bins *bins, double x);
n2_histogram n2_histogram_of(const n2_bins *bins, const double *x, size_t n);

/* The outline of the density, the share of rows per unit of x: from 0 up, over the bins, and down.
 * Returns how many points there are, at most N2_MOST_STEPS. */
size_t n2_histogram_steps(const n2_histogram *h, const n2_bins *bins, double *x, double *y);

#endif
