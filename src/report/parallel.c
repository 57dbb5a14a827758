#include "parallel.h"

#include "svg.h"

#include <stdio.h>

enum {
    WIDTH = N2_SVG_WIDTH,
    TOP = 58,     /* of the axes: title and upper ends are above */
    HEIGHT = 240, /* of the axes */
    LEFT = 34,
    RIGHT = 34,
    NAMES = 74,     /* below: lower ends and slanted names */
    FEW_LABELS = 12 /* axes of which the ends can be written without overlap */
};

static double axis_at(const n2_parallel *p, size_t j) {
    return LEFT + (double)(WIDTH - LEFT - RIGHT) * (double)j / (double)(p->n_axes - 1);
}

static void draw_rows(n2_text *out, const n2_parallel *p, const n2_parallel_rows *rows) {
    n2_svg_colour(out, rows->colour);
    n2_text_add(out, "<path class=\"n2-thin\" d=\"");
    for (size_t i = 0; i < rows->n; i++)
        for (size_t j = 0; j < p->n_axes; j++)
            n2_svg_pair(out, j ? "L" : "M", axis_at(p, j),
                        TOP + HEIGHT * (1 - rows->at[i * p->n_axes + j]));
    n2_text_add(out, "\"/></g>\n");
}

static void draw_axes(n2_text *out, const n2_parallel *p) {
    n2_text_add(out, "<path class=\"n2-axis\" d=\"");
    for (size_t j = 0; j < p->n_axes; j++) {
        n2_svg_pair(out, "M", axis_at(p, j), TOP);
        n2_text_add(out, "v%d", HEIGHT);
    }
    n2_text_add(out, "\"/>\n");
}

/* The name slants down from the foot of its axis, so that many have room. */
static void draw_names(n2_text *out, const n2_parallel *p) {
    char place[96];
    for (size_t j = 0; j < p->n_axes; j++) {
        const double x = axis_at(p, j);
        const double room = p->n_axes > 1 ? axis_at(p, 1) - axis_at(p, 0) - 2 : WIDTH;
        if (p->n_axes <= FEW_LABELS) {
            snprintf(place, sizeof place, " x=\"%.1f\" y=\"%d\" text-anchor=\"middle\"", x,
                     TOP - 8);
            n2_svg_label(out, "n2-tick", p->axes[j].high, N2_SVG_TICK, room, place);
            snprintf(place, sizeof place, " x=\"%.1f\" y=\"%d\" text-anchor=\"middle\"", x,
                     TOP + HEIGHT + 16);
            n2_svg_label(out, "n2-tick", p->axes[j].low, N2_SVG_TICK, room, place);
        }
        snprintf(place, sizeof place,
                 " transform=\"translate(%.1f %d) rotate(-35)\" text-anchor=\"end\"", x + 4,
                 TOP + HEIGHT + (p->n_axes <= FEW_LABELS ? 32 : 16));
        n2_svg_label(out, "n2-label", p->axes[j].name, N2_SVG_LABEL, 76, place);
    }
}

static void draw_key(n2_text *out, const n2_parallel *p) {
    double x = LEFT;
    const int y = TOP + HEIGHT + NAMES + 14;
    for (size_t k = 0; k < p->n_sets; k++) {
        n2_svg_colour(out, p->sets[k].colour);
        n2_text_add(out, "<path class=\"n2-line\" d=\"");
        n2_svg_pair(out, "M", x, y - 4);
        n2_text_add(out, "h24\"/>");
        n2_svg_open_text(out, "n2-key", x + 32, y, NULL);
        n2_text_add_xml(out, p->sets[k].label);
        n2_text_add(out, "</text></g>\n");
        x += 32 + n2_label_width(p->sets[k].label, N2_SVG_TICK) + 22;
    }
}

void n2_parallel_svg(n2_text *out, const n2_parallel *p) {
    n2_text_add(out, "<svg class=\"n2-plot\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"",
                WIDTH, TOP + HEIGHT + NAMES + 24);
    n2_text_add_xml(out, p->title);
    n2_text_add(out, "\">\n");
    n2_svg_open_text(out, "n2-title", LEFT - 22, 26, NULL);
    n2_text_add_xml(out, p->title);
    n2_text_add(out, "</text>\n");
    for (size_t k = 0; k < p->n_sets; k++) draw_rows(out, p, &p->sets[k]);
    draw_axes(out, p);
    draw_names(out, p);
    draw_key(out, p);
    n2_text_add(out, "</svg>\n");
}
