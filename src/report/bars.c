#include "bars.h"

#include "svg.h"

#include <math.h>
#include <stdio.h>

enum {
    LABEL_ROOM = 210, /* labels are cut beyond it */
    RIGHT = 28,
    THICK = 14, /* of a bar that is alone, and of one that has company */
    THIN = 9,
    GAP = 8, /* between labels */
    KEY_BOX = 14,
    KEY_ROW = 20
};

typedef struct chart {
    n2_text *out;
    const n2_bars *bars;
    n2_axis x;
    double left, top, width, row, height;
} chart;

/* ---- layout --------------------------------------------------------------- */

static void find_range(chart *c) {
    const n2_bars *b = c->bars;
    c->x = n2_axis_new(false);
    n2_axis_include(&c->x, 0);
    for (size_t i = 0; i < b->n; i++)
        for (size_t k = 0; k < b->series; k++) {
            n2_axis_include(&c->x, b->bars[i].value[k] - b->bars[i].error[k]);
            n2_axis_include(&c->x, b->bars[i].value[k] + b->bars[i].error[k]);
        }
    const bool positive = c->x.min >= 0;
    n2_axis_settle(&c->x, 0.03);
    if (positive) n2_axis_clip(&c->x, 0, c->x.max);
}

static void place(chart *c) {
    const n2_bars *b = c->bars;
    double widest = 0;
    for (size_t i = 0; i < b->n; i++)
        widest = fmax(widest, n2_label_width(b->bars[i].label, N2_SVG_TICK));
    c->left = N2_SVG_MARGIN + fmax(56, fmin(widest, LABEL_ROOM) + 10);
    c->width = N2_SVG_WIDTH - RIGHT - c->left;
    c->top = N2_SVG_MARGIN + (b->title ? N2_SVG_TITLE + 13 : 0);
    c->row = (b->series == 2 ? 2 * THIN : THICK) + GAP;
    c->height = c->row * (double)b->n + GAP;
    n2_axis_fit_ticks(&c->x, c->width, N2_SVG_TICK);
}

static double along(const chart *c, double value) {
    return c->left + c->width * n2_axis_at(&c->x, value);
}

/* ---- drawing --------------------------------------------------------------- */

static void draw_frame(const chart *c) {
    n2_text_add(c->out, "<path class=\"n2-grid\" d=\"");
    for (size_t i = 0; i < c->x.n_ticks; i++) {
        n2_svg_pair(c->out, "M", c->left + c->x.ticks[i].at * c->width, c->top);
        n2_text_add(c->out, "v");
        n2_svg_coordinate(c->out, c->height);
    }
    n2_text_add(c->out, "\"/>\n");
    for (size_t i = 0; i < c->x.n_ticks; i++)
        n2_svg_tick_label(c->out, &c->x.ticks[i], c->left + c->x.ticks[i].at * c->width,
                          c->top + c->height + 19, "middle");
}

static void draw_zero(const chart *c) {
    n2_text_add(c->out, "<path class=\"n2-axis\" d=\"");
    n2_svg_pair(c->out, "M", along(c, 0), c->top);
    n2_text_add(c->out, "v");
    n2_svg_coordinate(c->out, c->height);
    n2_text_add(c->out, "\"/>\n");
}

static void draw_texts(const chart *c) {
    char at[160];
    const n2_bars *b = c->bars;
    const double base = c->top + c->height;
    const double title_room = (N2_SVG_WIDTH - 2 * N2_SVG_MARGIN) / 1.1;
    snprintf(at, sizeof at, " x=\"%d\" y=\"%d\"", N2_SVG_MARGIN, N2_SVG_MARGIN + N2_SVG_TITLE - 1);
    n2_svg_label(c->out, "n2-title", b->title, N2_SVG_TITLE, title_room, at);
    snprintf(at, sizeof at, " x=\"%d\" y=\"%d\" text-anchor=\"middle\"",
             (int)(c->left + c->width / 2), (int)base + 40);
    n2_svg_label(c->out, "n2-label", b->x_label, N2_SVG_LABEL, c->width - 40, at);
    n2_svg_power(c->out, c->x.power, c->left + c->width, base + 38, "end");
}

/* What a pointer that rests on the bar is told. */
static void add_tip(n2_text *out, const n2_bars *b, const n2_bar *bar, size_t k) {
    n2_text_add(out, "<title>");
    n2_text_add_xml(out, bar->label);
    if (b->key[k]) {
        n2_text_add(out, ", ");
        n2_text_add_xml(out, b->key[k]);
    }
    n2_text_add(out, ": %.4g", bar->value[k]);
    if (bar->error[k] > 0) n2_text_add(out, " \u00b1 %.2g", bar->error[k]);
    n2_text_add(out, "</title>");
}

static void draw_whisker(const chart *c, double value, double error, double y) {
    if (!(error > 0)) return;
    n2_text_add(c->out, "<path class=\"n2-axis\" d=\"");
    n2_svg_pair(c->out, "M", along(c, value - error), y);
    n2_text_add(c->out, "H");
    n2_svg_coordinate(c->out, along(c, value + error));
    n2_text_add(c->out, "\"/>");
}

static void draw_bar(const chart *c, const n2_bar *bar, size_t k, double y, double thickness) {
    const double value = bar->value[k];
    if (!isfinite(value)) return;
    const double from = along(c, fmin(0, value)), to = along(c, fmax(0, value));
    n2_svg_colour(c->out, c->bars->colour[k]);
    add_tip(c->out, c->bars, bar, k);
    n2_text_add(c->out, "<rect class=\"n2-bar\"");
    n2_svg_attribute(c->out, "x", from);
    n2_svg_attribute(c->out, "y", y);
    n2_svg_attribute(c->out, "width", fmax(to - from, 0.5));
    n2_svg_attribute(c->out, "height", thickness);
    n2_text_add(c->out, "/>");
    draw_whisker(c, value, bar->error[k], y + thickness / 2);
    n2_text_add(c->out, "</g>\n");
}

static void draw_label(const chart *c, const n2_bar *bar, double middle) {
    n2_svg_open_text(c->out, "n2-key", c->left - 8, middle + 4, "end");
    n2_svg_fitted(c->out, bar->label, N2_SVG_TICK, LABEL_ROOM);
    n2_text_add(c->out, "</text>\n");
}

static void draw_bars(const chart *c) {
    const n2_bars *b = c->bars;
    const double thickness = b->series == 2 ? THIN : THICK;
    for (size_t i = 0; i < b->n; i++) {
        const double y = c->top + GAP + c->row * (double)i;
        for (size_t k = 0; k < b->series; k++)
            draw_bar(c, &b->bars[i], k, y + (double)k * THIN, thickness);
        draw_label(c, &b->bars[i], y + (c->row - GAP) / 2);
    }
}

/* Below the axis, one under the other; returns where it ends. */
static double draw_legend(const chart *c, double y) {
    const n2_bars *b = c->bars;
    for (size_t k = 0; k < b->series; k++) {
        if (!b->key[k]) continue;
        n2_svg_colour(c->out, b->colour[k]);
        n2_text_add(c->out, "<rect class=\"n2-bar\"");
        n2_svg_attribute(c->out, "x", c->left);
        n2_svg_attribute(c->out, "y", y + 3);
        n2_text_add(c->out, " width=\"%d\" height=\"10\"/>", KEY_BOX);
        n2_svg_open_text(c->out, "n2-key", c->left + KEY_BOX + 8, y + 12, NULL);
        n2_svg_fitted(c->out, b->key[k], N2_SVG_TICK, c->width - KEY_BOX - 8 + RIGHT);
        n2_text_add(c->out, "</text></g>\n");
        y += KEY_ROW;
    }
    return y;
}

static double legend_end(const n2_bars *b, double y) {
    for (size_t k = 0; k < b->series; k++) y += b->key[k] ? KEY_ROW : 0;
    return y;
}

void n2_bars_svg(n2_text *out, const n2_bars *bars) {
    chart c = {.out = out, .bars = bars};
    find_range(&c);
    place(&c);
    const double below = c.top + c.height + 24 + (bars->x_label ? N2_SVG_LABEL + 11 : 0);
    n2_text_add(out, "<svg class=\"n2-plot\" viewBox=\"0 0 %d %d\" role=\"img\"", N2_SVG_WIDTH,
                (int)ceil(legend_end(bars, below)) + 6);
    if (bars->title) {
        n2_text_add(out, " aria-label=\"");
        n2_text_add_xml(out, bars->title);
        n2_text_add(out, "\"");
    }
    n2_text_add(out, ">\n");
    draw_frame(&c);
    draw_bars(&c);
    draw_zero(&c);
    draw_texts(&c);
    draw_legend(&c, below);
    n2_text_add(out, "</svg>\n");
}
