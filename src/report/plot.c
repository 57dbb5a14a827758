#include "plot.h"

#include "svg.h"

#include <math.h>
#include <stdio.h>

/* User units of the view box; the page scales them to the width it has. */
enum {
    WIDTH = N2_SVG_WIDTH,
    HEIGHT = 300,       /* of the plotting area */
    EQUAL_HEIGHT = 360, /* of the plotting area of a plane, at most */
    MARGIN = N2_SVG_MARGIN,
    LEFT_LEAST = 68, /* the same left edge for most plots of a page */
    RIGHT = 28,      /* room for half a tick label */
    TICK_SIZE = N2_SVG_TICK,
    LABEL_SIZE = N2_SVG_LABEL,
    TITLE_SIZE = N2_SVG_TITLE,
    KEY_ROW = 20, /* legend: row height, length of the line, gap between columns */
    KEY_LINE = 24,
    KEY_GAP = 22,
    POINTS_MAX = 800 /* points written per line; more are not seen */
};

typedef struct legend {
    size_t n, columns, rows;
    double x, y, column; /* place of the first entry, width of a column */
    bool beside;         /* right of the plotting area instead of below it */
} legend;

typedef struct canvas {
    n2_text *out;
    const n2_plot *plot;
    n2_axis x, y;
    double left, top, width, height; /* the plotting area */
    double bottom;                   /* where the axis labels end */
    legend key;
    bool empty;
} canvas;

/* --------------------------------------------------------------------------
 * Ranges and layout
 * ----------------------------------------------------------------------- */

static bool shown(const canvas *c, const n2_series *s, size_t i) {
    return n2_axis_shows(&c->x, s->x[i]) && n2_axis_shows(&c->y, s->y[i]);
}

static bool has_band(const n2_series *s) { return s->low && s->high; }

static void find_ranges(canvas *c) {
    const n2_plot *plot = c->plot;
    c->x = n2_axis_new(plot->x_log);
    c->y = n2_axis_new(plot->y_log);
    for (size_t k = 0; k < plot->n_series; k++) {
        const n2_series *s = &plot->series[k];
        for (size_t i = 0; i < s->n; i++) {
            if (!shown(c, s, i)) continue;
            n2_axis_include(&c->x, s->x[i]);
            n2_axis_include(&c->y, s->y[i]);
            if (!has_band(s)) continue;
            n2_axis_include(&c->y, s->low[i]);
            n2_axis_include(&c->y, s->high[i]);
        }
    }
    c->empty = c->x.min > c->x.max;
    n2_axis_settle(&c->x, 0.02);
    n2_axis_settle(&c->y, 0.05);
    if (plot->y_min != 0 || plot->y_max != 0) n2_axis_clip(&c->y, plot->y_min, plot->y_max);
}

/* The largest area with one scale for both axes. It keeps a least size, so the
 * axis of a flat or slim picture shows more than the data. */
static void fit_equal(canvas *c, double room) {
    const double x = c->x.max - c->x.min, y = c->y.max - c->y.min;
    const double scale = fmin(room / x, EQUAL_HEIGHT / y);
    c->width = fmax(240, scale * x);
    c->height = fmax(160, scale * y);
    n2_axis_resize(&c->x, c->width / scale);
    n2_axis_resize(&c->y, c->height / scale);
}

/* What stands left of the area: the label, the tick labels, the ticks. */
static double left_needed(const canvas *c) {
    double widest = 0;
    for (size_t i = 0; i < c->y.n_ticks; i++)
        widest = fmax(widest, n2_tick_width(&c->y.ticks[i], TICK_SIZE));
    return MARGIN + (c->plot->y_label ? LABEL_SIZE + 8 : 0) + widest + 10;
}

/* The area is as wide as the tick labels of y leave it, and those labels depend
 * on the area where the scales are equal: so there are two rounds. */
static void place_area(canvas *c) {
    const n2_axis x = c->x, y = c->y;
    c->left = LEFT_LEAST;
    for (int round = 0; round < 2; round++) {
        c->x = x;
        c->y = y;
        c->width = WIDTH - RIGHT - c->left;
        c->height = HEIGHT;
        if (c->plot->equal_scale && x.log == y.log) fit_equal(c, c->width);
        n2_axis_set_ticks(&c->y, (int)(c->height / 46));
        c->left = fmax(c->left, left_needed(c));
    }
    c->width = fmin(c->width, WIDTH - RIGHT - c->left);
    n2_axis_fit_ticks(&c->x, c->width, TICK_SIZE);
    c->top = MARGIN + (c->plot->title ? TITLE_SIZE + 13 : 0) + (c->y.power ? TICK_SIZE + 6 : 0);
    c->bottom = c->top + c->height + 24;
    if (c->plot->x_label || c->x.power) c->bottom += LABEL_SIZE + 7;
}

/* In the room beside a narrow area if it fits, else below in columns. */
static void place_legend(canvas *c) {
    legend *key = &c->key;
    double widest = 0;
    for (size_t k = 0; k < c->plot->n_series; k++) {
        if (!c->plot->series[k].label) continue;
        key->n++;
        widest = fmax(widest, n2_label_width(c->plot->series[k].label, TICK_SIZE));
    }
    if (key->n == 0) return;
    const double entry = KEY_LINE + 8 + widest;
    key->beside = entry <= WIDTH - MARGIN - (c->left + c->width + KEY_GAP) &&
                  (double)key->n * KEY_ROW <= c->height;
    const double room = WIDTH - MARGIN - c->left;
    key->column = fmin(entry, room) + KEY_GAP;
    const size_t fit = key->beside ? 1 : (size_t)((room + KEY_GAP) / key->column);
    key->rows = (key->n + fit - 1) / fit;
    key->columns = (key->n + key->rows - 1) / key->rows;
    key->x = key->beside ? c->left + c->width + KEY_GAP : c->left;
    key->y = key->beside ? c->top + 10 : c->bottom + 22;
    if (!key->beside) c->bottom += 8 + (double)(key->rows * KEY_ROW);
}

/* --------------------------------------------------------------------------
 * Axes, grid, labels
 * ----------------------------------------------------------------------- */

static void draw_grid(const canvas *c) {
    n2_text_add(c->out, "<path class=\"n2-grid\" d=\"");
    for (size_t i = 0; i < c->x.n_ticks; i++) {
        if (!c->x.ticks[i].major) continue;
        n2_svg_pair(c->out, "M", c->left + c->x.ticks[i].at * c->width, c->top);
        n2_text_add(c->out, "v");
        n2_svg_coordinate(c->out, c->height);
    }
    for (size_t i = 0; i < c->y.n_ticks; i++) {
        if (!c->y.ticks[i].major) continue;
        n2_svg_pair(c->out, "M", c->left, c->top + (1 - c->y.ticks[i].at) * c->height);
        n2_text_add(c->out, "h");
        n2_svg_coordinate(c->out, c->width);
    }
    n2_text_add(c->out, "\"/>\n");
}

static void draw_axis_lines(const canvas *c) {
    const double base = c->top + c->height;
    n2_text_add(c->out, "<path class=\"n2-axis\" d=\"");
    n2_svg_pair(c->out, "M", c->left, c->top);
    n2_svg_pair(c->out, "L", c->left, base);
    n2_svg_pair(c->out, "L", c->left + c->width, base);
    for (size_t i = 0; i < c->x.n_ticks; i++) {
        n2_svg_pair(c->out, "M", c->left + c->x.ticks[i].at * c->width, base);
        n2_text_add(c->out, c->x.ticks[i].major ? "v5" : "v3");
    }
    for (size_t i = 0; i < c->y.n_ticks; i++) {
        n2_svg_pair(c->out, "M", c->left, base - c->y.ticks[i].at * c->height);
        n2_text_add(c->out, c->y.ticks[i].major ? "h-5" : "h-3");
    }
    n2_text_add(c->out, "\"/>\n");
}

static void draw_tick_labels(const canvas *c) {
    for (size_t i = 0; i < c->x.n_ticks; i++) {
        const n2_tick *tick = &c->x.ticks[i];
        const double x = c->left + tick->at * c->width;
        n2_svg_tick_label(c->out, tick, fmin(x, WIDTH - n2_tick_width(tick, TICK_SIZE) / 2),
                          c->top + c->height + 19, "middle");
    }
    for (size_t i = 0; i < c->y.n_ticks; i++) {
        const n2_tick *tick = &c->y.ticks[i];
        n2_svg_tick_label(c->out, tick, c->left - 9, c->top + (1 - tick->at) * c->height + 4,
                          "end");
    }
}

static void draw_labels(const canvas *c) {
    const n2_plot *plot = c->plot;
    char place[160];
    const double bold_room = (WIDTH - MARGIN - c->left) / 1.1; /* bold is wider */
    const int left = (int)c->left, middle = (int)(c->left + c->width / 2);
    const int base = (int)(c->top + c->height);
    snprintf(place, sizeof place, " x=\"%d\" y=\"%d\"", left, MARGIN + TITLE_SIZE - 1);
    n2_svg_label(c->out, "n2-title", plot->title, TITLE_SIZE, bold_room, place);
    snprintf(place, sizeof place, " x=\"%d\" y=\"%d\" text-anchor=\"middle\"", middle, base + 40);
    n2_svg_label(c->out, "n2-label", plot->x_label, LABEL_SIZE, c->width - 100, place);
    snprintf(place, sizeof place,
             " transform=\"translate(%d %d) rotate(-90)\" text-anchor=\"middle\"",
             MARGIN + LABEL_SIZE - 2, (int)(c->top + c->height / 2));
    n2_svg_label(c->out, "n2-label", plot->y_label, LABEL_SIZE, c->height, place);
    n2_svg_power(c->out, c->x.power, c->left + c->width, base + 38, "end");
    n2_svg_power(c->out, c->y.power, c->left, c->top - 10, "middle");
}

/* --------------------------------------------------------------------------
 * Series
 * ----------------------------------------------------------------------- */

typedef struct point {
    double x, y;
} point;

/* In units of the plotting area, from its upper left corner. */
static point place_point(const canvas *c, double x, double y) {
    return (point){c->width * n2_axis_at(&c->x, x), c->height * (1 - n2_axis_at(&c->y, y))};
}

static void sort_three(size_t *v) {
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 2; i++)
            if (v[i] > v[i + 1]) {
                const size_t t = v[i];
                v[i] = v[i + 1];
                v[i + 1] = t;
            }
}

/* From first to last - 1: the lowest point, the highest, and one that is not
 * shown if there is one, so that spikes and gaps of a long line stay visible. */
static size_t pick_extremes(const canvas *c, const n2_series *s, size_t first, size_t last,
                            size_t *out) {
    size_t low = last, high = last, gap = last;
    for (size_t i = first; i < last; i++) {
        if (!shown(c, s, i))
            gap = i;
        else {
            if (low == last || s->y[i] < s->y[low]) low = i;
            if (high == last || s->y[i] > s->y[high]) high = i;
        }
    }
    size_t picks[3] = {low, high, gap}, n = 0;
    sort_three(picks);
    for (int k = 0; k < 3; k++)
        if (picks[k] < last && (n == 0 || out[n - 1] != picks[k])) out[n++] = picks[k];
    return n;
}

/* The points to write: all, or for a long series the first, the last and at most
 * three from each of equal stretches between. Returns how many. */
static size_t thin(const canvas *c, const n2_series *s, size_t *out) {
    size_t n = 0;
    if (s->points) { /* every so-manieth of a cloud */
        const size_t step = (s->n + POINTS_MAX - 1) / POINTS_MAX;
        for (size_t i = 0; i < s->n; i += step) out[n++] = i;
        return n;
    }
    if (s->n <= POINTS_MAX) {
        for (; n < s->n; n++) out[n] = n;
        return n;
    }
    const size_t stretches = (POINTS_MAX - 2) / 3, inner = s->n - 2;
    const size_t length = inner / stretches, longer = inner % stretches;
    size_t first = 1;
    out[n++] = 0;
    for (size_t k = 0; k < stretches; k++) {
        const size_t last = first + length + (k < longer ? 1 : 0);
        n += pick_extremes(c, s, first, last, out + n);
        first = last;
    }
    out[n++] = s->n - 1;
    return n;
}

static void open_series(const canvas *c, const n2_series *s) {
    n2_svg_colour(c->out, s->colour);
    if (!s->label) return;
    n2_text_add(c->out, "<title>");
    n2_text_add_xml(c->out, s->label);
    n2_text_add(c->out, "</title>");
}

static void open_line(n2_text *out, bool dashed) {
    n2_text_add(out, "<path class=\"n2-line%s\" d=\"", dashed ? " n2-dash" : "");
}

/* A point between two gaps gets a segment of no length: its round caps show. */
static void draw_line(const canvas *c, const n2_series *s, const size_t *index, size_t n) {
    size_t run = 0; /* points since the last gap */
    open_line(c->out, s->dashed);
    for (size_t k = 0; k <= n; k++) {
        const bool on = k < n && shown(c, s, index[k]);
        if (!on && run == 1) n2_text_add(c->out, "h0");
        run = on ? run + 1 : 0;
        if (!on) continue;
        const point p = place_point(c, s->x[index[k]], s->y[index[k]]);
        n2_svg_pair(c->out, run == 1 ? "M" : "L", p.x, p.y);
    }
    n2_text_add(c->out, "\"/>");
}

static void draw_dots(const canvas *c, const n2_series *s, const size_t *index, size_t n) {
    n2_text_add(c->out, "<path class=\"n2-dot%s\" d=\"", s->points ? " n2-small" : "");
    for (size_t k = 0; k < n; k++) {
        if (!shown(c, s, index[k])) continue;
        const point p = place_point(c, s->x[index[k]], s->y[index[k]]);
        n2_svg_pair(c->out, "M", p.x, p.y);
        n2_text_add(c->out, "h0");
    }
    n2_text_add(c->out, "\"/>");
}

static bool band_shown(const canvas *c, const n2_series *s, size_t i) {
    return shown(c, s, i) && isfinite(s->low[i]) && n2_axis_shows(&c->y, s->high[i]);
}

/* The lower edge; one at or below zero lies under the end of a log axis. */
static point low_point(const canvas *c, const n2_series *s, size_t i) {
    if (n2_axis_shows(&c->y, s->low[i])) return place_point(c, s->x[i], s->low[i]);
    const point p = place_point(c, s->x[i], s->y[i]);
    return (point){p.x, fmax(p.y, c->height)};
}

/* One closed shape for each run of points: along the upper edge and back. */
static void draw_band(const canvas *c, const n2_series *s, const size_t *index, size_t n) {
    open_series(c, s);
    n2_text_add(c->out, "<path class=\"n2-band\" d=\"");
    size_t start = 0;
    for (size_t k = 0; k <= n; k++) {
        if (k < n && band_shown(c, s, index[k])) {
            const point p = place_point(c, s->x[index[k]], s->high[index[k]]);
            n2_svg_pair(c->out, k == start ? "M" : "L", p.x, p.y);
            continue;
        }
        for (size_t back = k; back > start; back--) {
            const point p = low_point(c, s, index[back - 1]);
            n2_svg_pair(c->out, "L", p.x, p.y);
        }
        if (k > start) n2_text_add(c->out, "Z");
        start = k + 1;
    }
    n2_text_add(c->out, "\"/></g>\n");
}

/* The inner svg clips what leaves the plotting area, without an id that would
 * have to be unique in the page. Bands lie below all lines. */
static void draw_series(const canvas *c) {
    size_t index[POINTS_MAX];
    n2_text_add(c->out, "<svg class=\"n2-area\"");
    n2_svg_attribute(c->out, "x", c->left);
    n2_svg_attribute(c->out, "y", c->top);
    n2_svg_attribute(c->out, "width", c->width);
    n2_svg_attribute(c->out, "height", c->height);
    n2_text_add(c->out, " overflow=\"hidden\">\n");
    for (size_t k = 0; k < c->plot->n_series; k++) {
        const n2_series *s = &c->plot->series[k];
        if (has_band(s) && s->n > 0) draw_band(c, s, index, thin(c, s, index));
    }
    for (size_t k = 0; k < c->plot->n_series; k++) {
        const n2_series *s = &c->plot->series[k];
        if (s->n == 0) continue;
        const size_t n = thin(c, s, index);
        open_series(c, s);
        if (!s->points) draw_line(c, s, index, n);
        if (s->markers || s->points) draw_dots(c, s, index, n);
        n2_text_add(c->out, "</g>\n");
    }
    n2_text_add(c->out, "</svg>\n");
}

static void draw_key(const canvas *c, const n2_series *s, double x, double y) {
    open_series(c, s);
    if (has_band(s)) {
        n2_text_add(c->out, "<path class=\"n2-band\" d=\"");
        n2_svg_pair(c->out, "M", x, y - 9);
        n2_text_add(c->out, "h%dv10h-%dZ\"/>", KEY_LINE, KEY_LINE);
    }
    if (!s->points && (s->n != 1 || !s->markers)) { /* a single marker has no line */
        open_line(c->out, s->dashed);
        n2_svg_pair(c->out, "M", x, y - 4);
        n2_text_add(c->out, "h%d\"/>", KEY_LINE);
    }
    if (s->markers || s->points) {
        n2_text_add(c->out, "<path class=\"n2-dot%s\" d=\"", s->points ? " n2-small" : "");
        n2_svg_pair(c->out, "M", x + KEY_LINE / 2, y - 4);
        n2_text_add(c->out, "h0\"/>");
    }
    n2_svg_open_text(c->out, "n2-key", x + KEY_LINE + 8, y, NULL);
    n2_svg_fitted(c->out, s->label, TICK_SIZE, WIDTH - MARGIN - (x + KEY_LINE + 8));
    n2_text_add(c->out, "</text></g>\n");
}

static void draw_legend(const canvas *c) {
    const legend *key = &c->key;
    size_t i = 0;
    for (size_t k = 0; k < c->plot->n_series; k++) {
        if (!c->plot->series[k].label) continue;
        const double column = (double)(i % key->columns), row = (double)(i / key->columns);
        draw_key(c, &c->plot->series[k], key->x + column * key->column, key->y + row * KEY_ROW);
        i++;
    }
}

static void draw_nothing(const canvas *c) {
    n2_svg_open_text(c->out, "n2-tick", c->left + c->width / 2, c->top + c->height / 2, "middle");
    n2_text_add(c->out, "No data to show</text>\n");
}

void n2_plot_svg(n2_text *out, const n2_plot *plot) {
    canvas c = {.out = out, .plot = plot};
    find_ranges(&c);
    place_area(&c);
    place_legend(&c);
    n2_text_add(out, "<svg class=\"n2-plot\" viewBox=\"0 0 %d %d\" role=\"img\"", WIDTH,
                (int)ceil(c.bottom) + 6);
    if (plot->title) {
        n2_text_add(out, " aria-label=\"");
        n2_text_add_xml(out, plot->title);
        n2_text_add(out, "\"");
    }
    n2_text_add(out, ">\n");
    if (c.empty) {
        c.x.n_ticks = c.y.n_ticks = 0; /* a scale would be made up */
        c.x.power = c.y.power = 0;
    }
    draw_grid(&c);
    if (c.empty)
        draw_nothing(&c);
    else
        draw_series(&c);
    draw_axis_lines(&c);
    draw_tick_labels(&c);
    draw_labels(&c);
    draw_legend(&c);
    n2_text_add(out, "</svg>\n");
}
