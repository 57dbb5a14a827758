/* One axis of a plot: its range, the place of a value on it, its ticks.
 *
 * An axis is used in this order: new, include every value, settle, ticks. Its
 * coordinate is the value itself, or log10 of it, so a logarithmic axis spans
 * at most some 630 and a linear one is kept within +-1e300: no difference of
 * two coordinates overflows. */
#ifndef N2_AXIS_H
#define N2_AXIS_H

#include <stdbool.h>
#include <stddef.h>

enum { N2_TICKS_MAX = 64 };

typedef struct n2_tick {
    double at;      /* 0 at the start of the axis, 1 at its end */
    bool major;     /* has a label and a grid line */
    char label[40]; /* UTF-8 */
    bool raised;    /* the label ends in "10" and `power` is its exponent */
    int power;
} n2_tick;

typedef struct n2_axis {
    bool log;
    double min, max; /* coordinates; min > max while nothing is included */
    int power;       /* the labels count in units of 10^power; 0 on log axes */
    n2_tick ticks[N2_TICKS_MAX];
    size_t n_ticks;
} n2_axis;

n2_axis n2_axis_new(bool log);

/* Whether the value has a place: finite, and positive on a log axis. */
bool n2_axis_shows(const n2_axis *axis, double value);

/* Widens the range to the value; one without a place changes nothing. */
void n2_axis_include(n2_axis *axis, double value);

/* Makes the range one to draw: at least some width, and a margin on either side
 * (a fraction of the width). An empty range becomes 0 to 1. */
void n2_axis_settle(n2_axis *axis, double margin);

/* Sets the ends of a settled range, in any order. An end without a place on
 * this axis is left where it was. */
void n2_axis_clip(n2_axis *axis, double end, double other_end);

/* Makes the range this wide (in coordinates) about its middle. */
void n2_axis_resize(n2_axis *axis, double width);

/* The place of a value that the axis shows: 0 at the start, 1 at the end, and
 * beyond them when out of range. */
double n2_axis_at(const n2_axis *axis, double value);

/* Chooses about `target` ticks with labels, at 1-2-5 steps or powers of ten. */
void n2_axis_set_ticks(n2_axis *axis, int target);

/* As many ticks as can have their labels side by side along a length; `size` is
 * that of the font. */
void n2_axis_fit_ticks(n2_axis *axis, double length, double size);

double n2_tick_width(const n2_tick *tick, double size);
double n2_label_width(const char *s, double size);

/* How many bytes of the text are not wider than `room`: whole characters. */
size_t n2_label_fit(const char *s, double size, double room);

#endif
