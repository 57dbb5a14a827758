/* Line plots as SVG: linear or logarithmic axes, bands, markers, a legend.
 *
 * The SVG is meant to be put inline into a page made by page.h: its colours are
 * CSS classes defined there, so that one plot is readable in light and dark.
 * Values that cannot be shown (not finite; not positive on a log axis) break the
 * line where they stand and do not take part in the range. */
#ifndef N2_PLOT_H
#define N2_PLOT_H

#include "base/text.h"
#include "svg.h"

enum { N2_PLOT_COLOURS = N2_SVG_COLOURS }; /* distinct line colours; later ones repeat */

typedef struct n2_series {
    const char *label; /* legend entry; NULL: none */
    const double *x, *y;
    size_t n;
    const double *low, *high; /* a band around y, or NULL */
    int colour;               /* palette index, or N2_SHADE(k); -1: neutral, for references */
    bool dashed;
    bool markers; /* a dot at every point */
    bool points;  /* small dots, and no line: a cloud in any order */
} n2_series;

typedef struct n2_plot {
    const char *title, *x_label, *y_label;
    bool x_log, y_log;
    bool equal_scale;    /* one unit is as long on both axes (maps, planes) */
    double y_min, y_max; /* clip the y axis to this range; both 0: from data */
    const n2_series *series;
    size_t n_series;
} n2_plot;

/* Appends one <svg> element. A plot without a point to show says so inside. */
void n2_plot_svg(n2_text *out, const n2_plot *plot);

#endif
