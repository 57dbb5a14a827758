/* Horizontal bars as SVG: one or two for each label, with whiskers. For a page made by page.h. */
#ifndef N2_BARS_H
#define N2_BARS_H

#include "base/text.h"

typedef struct n2_bar {
    const char *label;
    double value[2];
    double error[2]; /* half the length of the whiskers; 0: none */
} n2_bar;

typedef struct n2_bars {
    const char *title, *x_label;
    const char *key[2]; /* what the first and the second bar of a label are; NULL: no legend */
    int colour[2];      /* of the palette; -1: neutral */
    size_t series;      /* 1 or 2 */
    const n2_bar *bars;
    size_t n;
} n2_bars;

/* Appends one <svg> element, as high as it takes. Values that are not finite are left out. */
void n2_bars_svg(n2_text *out, const n2_bars *bars);

#endif
