/* Which columns make a row odd.
 *
 * A column's blame is what the score loses if the row has there what its nearest normal row has.
 * Columns that tell the same can hide one another, and what only two of them together make odd is
 * blamed on both. */
#ifndef N2_BLAME_H
#define N2_BLAME_H

#include "detector.h"

enum { N2_BLAMED = 5 };

typedef struct n2_blame {
    size_t n; /* columns that matter, at most N2_BLAMED, the worst first */
    size_t column[N2_BLAMED];
    double loss[N2_BLAMED];  /* of the score */
    double usual[N2_BLAMED]; /* the value of the nearest normal row */
} n2_blame;

/* row: cols values. fold: it is judged by the expert of this one alone, who has not seen it. Of
 * more than 64 columns those are tried in which it differs most from its nearest row.
 * Fails as n2_detector_score does. */
n2ce_status n2_blame_of(n2_detector *d, size_t fold, const double *row, n2_blame *out);

#endif
