/* Parallel coordinates: an axis a column side by side, a line a row. Which values go together, and
 * where rows of one kind differ from those of another, for more columns than a plane has.
 *
 * The SVG is put inline into a page, as that of plot.h. */
#ifndef N2_PARALLEL_H
#define N2_PARALLEL_H

#include "base/text.h"

enum { N2_PARALLEL_AXES = 40 }; /* the most that can be told apart */

typedef struct n2_parallel_axis {
    const char *name;
    char low[24], high[24]; /* what its ends are */
} n2_parallel_axis;

/* Rows of one colour: n x axes numbers from 0, the low end, to 1. */
typedef struct n2_parallel_rows {
    const char *label; /* legend entry */
    const double *at;
    size_t n;
    int colour; /* as of n2_series */
} n2_parallel_rows;

typedef struct n2_parallel {
    const char *title;
    const n2_parallel_axis *axes;
    size_t n_axes; /* 2 to N2_PARALLEL_AXES */
    const n2_parallel_rows *sets;
    size_t n_sets; /* later ones lie above */
} n2_parallel;

/* Appends one <svg> element. */
void n2_parallel_svg(n2_text *out, const n2_parallel *p);

#endif
