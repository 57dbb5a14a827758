/* What pictures share: sizes, and pieces of SVG. Colours are classes of the page (page.c). */
#ifndef N2_SVG_H
#define N2_SVG_H

#include "axis.h"
#include "base/text.h"

/* User units of the view box; the page scales them to the width it has. */
enum {
    N2_SVG_WIDTH = 640,
    N2_SVG_MARGIN = 12, /* the outer edge, where nothing is written */
    N2_SVG_TICK = 12,   /* font sizes; page.c sets the same */
    N2_SVG_LABEL = 13,
    N2_SVG_TITLE = 15,
    N2_SVG_COLOURS = 10,
    N2_SVG_SHADES = 5 /* of one scale, for classes of values from low to high */
};
#define N2_SHADE(k) (-2 - (k))

/* A coordinate with at most two decimals, whatever the locale. Its limit is far outside every
 * plot and keeps lines to points out of range short to write. */
void n2_svg_coordinate(n2_text *out, double value);
void n2_svg_pair(n2_text *out, const char *command, double x, double y);
void n2_svg_attribute(n2_text *out, const char *name, double value);

/* The text escaped, cut with an ellipsis where it would be too wide. */
void n2_svg_fitted(n2_text *out, const char *s, double size, double room);

/* <text ...> at a place; anchor may be NULL. */
void n2_svg_open_text(n2_text *out, const char *class, double x, double y, const char *anchor);

/* An exponent; the label of a tick; the factor 10^power of an axis, nothing for 0. */
void n2_svg_raised(n2_text *out, int power);
void n2_svg_tick_label(n2_text *out, const n2_tick *tick, double x, double y, const char *anchor);
void n2_svg_power(n2_text *out, int power, double x, double y, const char *anchor);

/* <g> in a colour of the palette or a shade, N2_SHADE(k); -1: neutral. */
void n2_svg_colour(n2_text *out, int colour);

/* A text at its usual size, a smaller one or a cut, whatever has room; nothing for NULL. `place`
 * are attributes. */
void n2_svg_label(n2_text *out, const char *class, const char *s, double size, double room,
                  const char *place);

#endif
