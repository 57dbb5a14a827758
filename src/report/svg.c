#include "svg.h"

#include <math.h>

void n2_svg_fitted(n2_text *out, const char *s, double size, double room) {
    const bool cut = n2_label_width(s, size) > room;
    const size_t n = n2_label_fit(s, size, cut ? room - size : room);
    for (size_t i = 0; i < n; i++) n2_text_add_xml(out, (const char[]){s[i], '\0'});
    if (cut) n2_text_add(out, "\u2026");
}

void n2_svg_coordinate(n2_text *out, double value) {
    const long n = lround(100 * fmax(-1e5, fmin(1e5, value)));
    const long size = n < 0 ? -n : n;
    n2_text_add(out, "%s%ld", n < 0 ? "-" : "", size / 100);
    if (size % 10)
        n2_text_add(out, ".%02ld", size % 100);
    else if (size % 100)
        n2_text_add(out, ".%ld", size % 100 / 10);
}

void n2_svg_pair(n2_text *out, const char *command, double x, double y) {
    n2_text_add(out, "%s", command);
    n2_svg_coordinate(out, x);
    n2_text_add(out, " ");
    n2_svg_coordinate(out, y);
}

void n2_svg_attribute(n2_text *out, const char *name, double value) {
    n2_text_add(out, " %s=\"", name);
    n2_svg_coordinate(out, value);
    n2_text_add(out, "\"");
}

void n2_svg_open_text(n2_text *out, const char *class, double x, double y, const char *anchor) {
    n2_text_add(out, "<text class=\"%s\"", class);
    n2_svg_attribute(out, "x", x);
    n2_svg_attribute(out, "y", y);
    if (anchor) n2_text_add(out, " text-anchor=\"%s\"", anchor);
    n2_text_add(out, ">");
}

void n2_svg_raised(n2_text *out, int power) {
    n2_text_add(out, "<tspan class=\"n2-sup\" dy=\"-4\">%s%d</tspan>", power < 0 ? "\u2212" : "",
                power < 0 ? -power : power);
}

void n2_svg_tick_label(n2_text *out, const n2_tick *tick, double x, double y, const char *anchor) {
    if (!tick->major) return;
    n2_svg_open_text(out, "n2-tick", x, y, anchor);
    n2_text_add_xml(out, tick->label);
    if (tick->raised) n2_svg_raised(out, tick->power);
    n2_text_add(out, "</text>\n");
}

void n2_svg_power(n2_text *out, int power, double x, double y, const char *anchor) {
    if (power == 0) return;
    n2_svg_open_text(out, "n2-tick", x, y, anchor);
    n2_text_add(out, "\u00d710");
    n2_svg_raised(out, power);
    n2_text_add(out, "</text>\n");
}

void n2_svg_colour(n2_text *out, int colour) {
    if (colour <= N2_SHADE(0))
        n2_text_add(out, "<g class=\"n2-s%d\">", (N2_SHADE(0) - colour) % N2_SVG_SHADES);
    else if (colour < 0)
        n2_text_add(out, "<g class=\"n2-cn\">");
    else
        n2_text_add(out, "<g class=\"n2-c%d\">", colour % N2_SVG_COLOURS);
}

void n2_svg_label(n2_text *out, const char *class, const char *s, double size, double room,
                  const char *place) {
    if (!s) return;
    const double width = n2_label_width(s, size);
    const double fitted = fmax(0.75 * size, fmin(size, size * room / fmax(width, 1)));
    n2_text_add(out, "<text class=\"%s\"%s", class, place);
    if (fitted < size) {
        n2_text_add(out, " style=\"font-size:");
        n2_svg_coordinate(out, fitted);
        n2_text_add(out, "px\"");
    }
    n2_text_add(out, ">");
    n2_svg_fitted(out, s, fitted, room);
    n2_text_add(out, "</text>\n");
}
