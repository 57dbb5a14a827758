/* Facts about the report: plots are well-formed SVG whatever the numbers are,
 * pages need nothing from outside, the same input gives the same bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/axis.h"
#include "report/histogram.h"
#include "report/page.h"

/* --------------------------------------------------------------------------
 * Helpers
 * ----------------------------------------------------------------------- */

static int make_ctx(void **state) {
    n2ce_ctx *ctx = NULL;
    if (n2ce_ctx_new(&ctx, NULL) != N2CE_OK) return -1;
    *state = ctx;
    return 0;
}

static int free_ctx(void **state) {
    n2ce_ctx_free(*state);
    return 0;
}

static char *take(n2_text *text) {
    char *s = NULL;
    assert_int_equal(n2_text_take(text, &s), N2CE_OK);
    return s;
}

static size_t count(const char *s, const char *what) {
    size_t n = 0;
    for (const char *p = s; (p = strstr(p, what)); p += strlen(what)) n++;
    return n;
}

typedef struct tags {
    char names[32][16];
    size_t depth;
} tags;

static bool is_void(const char *name) { return !strcmp(name, "meta") || name[0] == '!'; }

/* Takes one tag, p just behind its "<". Returns its end, NULL if it is wrong. */
static const char *take_tag(tags *open, const char *p) {
    const bool closing = *p == '/';
    char name[16] = "";
    size_t n = 0;
    for (p += closing; *p && !strchr(" />", *p) && n < 15; p++) name[n++] = *p;
    for (; *p && *p != '>'; p++) {
        if (*p == '<') return NULL;
        if (*p != '"') continue;
        for (p++; *p != '"'; p++)
            if (!*p || *p == '<') return NULL; /* an attribute that does not end */
    }
    if (!*p || n == 0) return NULL;
    if (closing) {
        if (open->depth == 0 || strcmp(open->names[--open->depth], name)) return NULL;
    } else if (p[-1] != '/' && !is_void(name)) {
        if (open->depth == 32) return NULL;
        memcpy(open->names[open->depth++], name, sizeof name);
    }
    return p;
}

static bool is_reference(const char *p) {
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
    for (size_t i = 0; i < 4; i++)
        if (!strncmp(p, known[i], strlen(known[i]))) return true;
    return false;
}

/* Every tag is closed in order, every & begins a reference. */
static bool well_formed(const char *s) {
    tags open = {.depth = 0};
    for (const char *p = s; *p; p++) {
        if (*p == '&' && !is_reference(p)) return false;
        if (*p == '>') return false;
        if (*p == '<' && !(p = take_tag(&open, p + 1))) return false;
    }
    return open.depth == 0;
}

/* The SVG of a plot after the checks that hold for every plot. */
static char *draw(void **state, const n2_plot *plot) {
    n2_text text = n2_text_new(*state);
    n2_plot_svg(&text, plot);
    char *svg = take(&text);
    assert_true(well_formed(svg));
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "inf"));
    assert_null(strstr(svg, "http"));
    assert_ptr_equal(strstr(svg, "<svg"), svg);
    return svg;
}

static char *draw_xy(void **state, const double *x, const double *y, size_t n, bool log) {
    const n2_series series = {.label = "a", .x = x, .y = y, .n = n, .markers = true};
    const n2_plot plot = {.x_log = log, .y_log = log, .series = &series, .n_series = 1};
    return draw(state, &plot);
}

/* The data of the first path of a class, up to its closing quote. */
static char *path_of(const char *svg, const char *class) {
    char start[64];
    snprintf(start, sizeof start, "<path class=\"%s\" d=\"", class);
    const char *p = strstr(svg, start);
    assert_non_null(p);
    p += strlen(start);
    const size_t n = strcspn(p, "\"");
    char *d = malloc(n + 1);
    assert_non_null(d);
    memcpy(d, p, n);
    d[n] = '\0';
    return d;
}

static void assert_labels(void **state, double low, double high, const char *const *labels) {
    (void)state;
    n2_axis axis = n2_axis_new(false);
    n2_axis_include(&axis, low);
    n2_axis_include(&axis, high);
    n2_axis_settle(&axis, 0);
    n2_axis_set_ticks(&axis, 5);
    size_t n = 0;
    for (; labels[n]; n++) {
        assert_true(n < axis.n_ticks);
        assert_string_equal(axis.ticks[n].label, labels[n]);
    }
    assert_int_equal(axis.n_ticks, n);
}

/* --------------------------------------------------------------------------
 * Axes
 * ----------------------------------------------------------------------- */

static void linear_ticks_are_at_nice_numbers(void **state) {
    assert_labels(state, 0, 10, (const char *[]){"0", "2", "4", "6", "8", "10", NULL});
    assert_labels(state, -1, 1,
                  (const char *[]){"\u22121.0", "\u22120.5", "0", "0.5", "1.0", NULL});
    assert_labels(state, 0.3, 0.7, (const char *[]){"0.3", "0.4", "0.5", "0.6", "0.7", NULL});
    assert_labels(state, 0, 5e8, (const char *[]){"0", "1", "2", "3", "4", "5", NULL});
}

static void log_ticks_are_at_decades(void **state) {
    (void)state;
    n2_axis axis = n2_axis_new(true);
    n2_axis_include(&axis, 0.1);
    n2_axis_include(&axis, 1e4);
    n2_axis_settle(&axis, 0);
    n2_axis_set_ticks(&axis, 8);
    static const char *const labels[] = {"0.1", "1", "10", "100", "10", "10"};
    assert_int_equal(axis.n_ticks, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(axis.ticks[i].label, labels[i]);
        assert_true(fabs(axis.ticks[i].at - (double)i / 5) < 1e-12);
        assert_int_equal(axis.ticks[i].raised, i >= 4);
    }
    assert_int_equal(axis.ticks[5].power, 4);
}

static void few_decades_have_minor_ticks(void **state) {
    (void)state;
    n2_axis axis = n2_axis_new(true);
    n2_axis_include(&axis, 1);
    n2_axis_include(&axis, 1000);
    n2_axis_settle(&axis, 0);
    n2_axis_set_ticks(&axis, 6);
    assert_int_equal(axis.n_ticks, 4 + 3 * 8);
}

static void many_decades_have_few_labels(void **state) {
    (void)state;
    n2_axis axis = n2_axis_new(true);
    n2_axis_include(&axis, 1e-300);
    n2_axis_include(&axis, 1e300);
    n2_axis_settle(&axis, 0.05);
    n2_axis_set_ticks(&axis, 6);
    assert_in_range(axis.n_ticks, 3, 8);
}

/* Whatever the range, an axis has a tick with a label in a readable number. */
static void every_range_has_labels(void **state) {
    (void)state;
    static const double ends[] = {-1e308, -5,           0, 5e-324, 1e-300, 3e-5,
                                  1,      1.0000000001, 7, 1e6,    1e15,   1e308};
    const size_t n = sizeof ends / sizeof *ends;
    for (size_t i = 0; i < n * n * 2; i++) {
        n2_axis axis = n2_axis_new(i >= n * n);
        n2_axis_include(&axis, ends[i % n]);
        n2_axis_include(&axis, ends[i / n % n]);
        n2_axis_settle(&axis, 0.02);
        assert_true(axis.max > axis.min);
        n2_axis_fit_ticks(&axis, 540, 12);
        size_t major = 0;
        for (size_t k = 0; k < axis.n_ticks; k++) {
            const n2_tick *tick = &axis.ticks[k];
            assert_true(tick->at >= 0 && tick->at <= 1);
            assert_int_equal(tick->major, tick->label[0] != '\0');
            major += tick->major;
        }
        assert_in_range(major, 1, 14);
    }
}

static void clip_takes_ends_in_any_order(void **state) {
    (void)state;
    n2_axis axis = n2_axis_new(false);
    n2_axis_include(&axis, 5);
    n2_axis_settle(&axis, 0.05);
    n2_axis_clip(&axis, 3, -2);
    assert_true(axis.min == -2 && axis.max == 3);
    n2_axis_clip(&axis, 4, 4);
    assert_true(axis.min < 4 && axis.max > 4);
    n2_axis log_axis = n2_axis_new(true);
    n2_axis_include(&log_axis, 5);
    n2_axis_settle(&log_axis, 0.05);
    n2_axis_clip(&log_axis, -1, 1e-3); /* below every value; one end has no place */
    assert_true(log_axis.min < -3 && log_axis.max > -3);
}

static void labels_are_cut_between_characters(void **state) {
    (void)state;
    const char *s = "\u03b1\u03b2\u03b3";
    assert_int_equal(n2_label_fit(s, 10, 1000), 6);
    assert_int_equal(n2_label_fit(s, 10, 15), 4);
    assert_int_equal(n2_label_fit(s, 10, 1), 0);
}

/* --------------------------------------------------------------------------
 * Plots
 * ----------------------------------------------------------------------- */

static void labels_are_escaped(void **state) {
    const double x[] = {1, 2}, y[] = {3, 4};
    const n2_series series = {.label = "<i>&\"a\"", .x = x, .y = y, .n = 2};
    const n2_plot plot = {.title = "a < b",
                          .x_label = "x & y",
                          .y_label = "</text>",
                          .series = &series,
                          .n_series = 1};
    char *svg = draw(state, &plot);
    assert_non_null(strstr(svg, "aria-label=\"a &lt; b\""));
    assert_non_null(strstr(svg, ">a &lt; b</text>"));
    assert_non_null(strstr(svg, ">x &amp; y</text>"));
    assert_non_null(strstr(svg, ">&lt;/text&gt;</text>"));
    assert_non_null(strstr(svg, "<title>&lt;i&gt;&amp;&quot;a&quot;</title>"));
    n2_free(*state, svg);
}

static void values_without_a_place_break_the_line(void **state) {
    const double inf = (double)INFINITY, nan = (double)NAN;
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8}, y[] = {1, 2, nan, 4, inf, -inf, 3, 2};
    char *svg = draw_xy(state, x, y, 8, false);
    char *line = path_of(svg, "n2-line");
    assert_int_equal(count(line, "M"), 3); /* 1 2 | 4 | 3 2 */
    assert_int_equal(count(line, "L"), 2);
    assert_int_equal(count(line, "h0"), 1); /* the single point shows as a dot */
    free(line);
    char *dots = path_of(svg, "n2-dot");
    assert_int_equal(count(dots, "M"), 5);
    free(dots);
    n2_free(*state, svg);
}

static void log_axes_skip_what_is_not_positive(void **state) {
    const double x[] = {1, 10, 100, 1000, 0, -1}, y[] = {1, 0, -3, 100, 5, 5};
    char *svg = draw_xy(state, x, y, 6, true);
    char *line = path_of(svg, "n2-line");
    assert_int_equal(count(line, "M"), 2);
    assert_int_equal(count(line, "L"), 0);
    free(line);
    n2_free(*state, svg);
}

static void assert_says_empty(void **state, const n2_plot *plot) {
    char *svg = draw(state, plot);
    assert_non_null(strstr(svg, "No data to show"));
    n2_free(*state, svg);
}

static void empty_plot_says_so(void **state) {
    const double x[] = {1, 2}, y[] = {(double)NAN, -1};
    const n2_series series[] = {{.label = "a", .x = x, .y = y, .n = 2}, {.label = "b"}};
    assert_says_empty(state, &(n2_plot){.title = "t"});
    assert_says_empty(state, &(n2_plot){.y_log = true, .series = series, .n_series = 2});
    assert_says_empty(state, &(n2_plot){.series = series + 1, .n_series = 1, .equal_scale = true});
}

static void degenerate_data_are_drawn(void **state) {
    const double x[] = {5, 5, 5}, y[] = {7, 7, 7}, zero[] = {0, 0, 0};
    for (int log = 0; log < 2; log++) {
        n2_free(*state, draw_xy(state, x, y, 1, log));
        n2_free(*state, draw_xy(state, x, y, 3, log));
        n2_free(*state, draw_xy(state, zero, zero, 3, log));
    }
    char *svg = draw_xy(state, x, y, 1, false);
    char *dot = path_of(svg, "n2-dot");
    assert_int_equal(count(dot, "h0"), 1);
    free(dot);
    n2_free(*state, svg);
}

static void huge_ranges_are_drawn(void **state) {
    const double x[] = {1e-300, 1, 1e300}, y[] = {-1.7e308, 5e-324, 1.7e308};
    const n2_series series = {.x = x, .y = y, .n = 3, .low = y, .high = y};
    for (int i = 0; i < 8; i++) {
        const n2_plot plot = {
            .x_log = i & 1, .y_log = i & 2, .equal_scale = i & 4, .series = &series, .n_series = 1};
        n2_free(*state, draw(state, &plot));
    }
}

static void far_points_have_short_coordinates(void **state) {
    const double x[] = {0, 1, 2}, y[] = {0, 1e200, 1};
    const n2_series series = {.x = x, .y = y, .n = 3};
    const n2_plot plot = {.y_min = 1, .y_max = 0, .series = &series, .n_series = 1};
    char *svg = draw(state, &plot);
    char *line = path_of(svg, "n2-line");
    assert_non_null(strstr(line, " -100000L"));
    free(line);
    n2_free(*state, svg);
}

static void ill_chosen_y_limits_are_survived(void **state) {
    const double x[] = {1, 2}, y[] = {1, 1000}, nan = (double)NAN;
    const n2_series series = {.x = x, .y = y, .n = 2};
    const double limits[][2] = {{-5, -1}, {-1, 1e-9}, {1e9, 0}, {nan, 3}, {3, 3}, {nan, nan}};
    for (size_t i = 0; i < 12; i++) {
        const n2_plot plot = {.y_log = i % 2,
                              .y_min = limits[i / 2][0],
                              .y_max = limits[i / 2][1],
                              .series = &series,
                              .n_series = 1};
        n2_free(*state, draw(state, &plot));
    }
}

static void equal_scale_makes_squares(void **state) {
    const double x[] = {0, 4, 4, 0}, y[] = {0, 0, 2, 2};
    const n2_series series = {.x = x, .y = y, .n = 4};
    const n2_plot plot = {.equal_scale = true, .series = &series, .n_series = 1};
    char *svg = draw(state, &plot);
    char *line = path_of(svg, "n2-line");
    double p[8] = {0};
    assert_int_equal(sscanf(line, "M%lf %lfL%lf %lfL%lf %lfL%lf %lf", p, p + 1, p + 2, p + 3, p + 4,
                            p + 5, p + 6, p + 7),
                     8);
    assert_true(fabs((p[2] - p[0]) - 2 * (p[3] - p[5])) < 0.05);
    free(line);
    n2_free(*state, svg);
}

enum { LONG = 5000 };

static void long_series_are_thinned(void **state) {
    static double x[LONG], y[LONG];
    for (int i = 0; i < LONG; i++) {
        x[i] = i;
        y[i] = i == 2345 ? 9 : 0; /* one spike, which has to stay */
    }
    y[4000] = (double)NAN; /* and one gap */
    const n2_series series = {.x = x, .y = y, .n = LONG};
    const n2_plot plot = {.series = &series, .n_series = 1};
    char *svg = draw(state, &plot);
    char *line = path_of(svg, "n2-line");
    assert_in_range(count(line, "L") + count(line, "M"), 250, 800);
    assert_int_equal(count(line, "M"), 2);
    assert_int_equal(count(line, " 13.64"), 1); /* the top: 300 less its margin of 5 % */
    free(line);
    n2_free(*state, svg);
}

static void bands_are_closed_shapes(void **state) {
    const double x[] = {1, 2, 3, 4, 5}, y[] = {1, 2, 3, 4, 5};
    const double low[] = {0.5, -1, (double)NAN, 3, 4}, high[] = {2, 3, 4, 5, 6};
    const n2_series series = {.x = x, .y = y, .n = 5, .low = low, .high = high};
    const n2_plot plot = {.y_log = true, .series = &series, .n_series = 1};
    char *svg = draw(state, &plot);
    char *band = path_of(svg, "n2-band");
    assert_int_equal(count(band, "Z"), 2);
    assert_non_null(strstr(band, " 300L")); /* a low end below zero: the axis' end */
    free(band);
    n2_free(*state, svg);
}

static void colours_repeat_and_references_are_neutral(void **state) {
    const double x[] = {1, 2};
    const n2_series series[] = {{.x = x, .y = x, .n = 2, .colour = 13},
                                {.x = x, .y = x, .n = 2, .colour = -1, .dashed = true}};
    const n2_plot plot = {.series = series, .n_series = 2};
    char *svg = draw(state, &plot);
    assert_non_null(strstr(svg, "class=\"n2-c3\""));
    assert_non_null(strstr(svg, "class=\"n2-cn\""));
    assert_int_equal(count(svg, "n2-dash"), 1);
    assert_null(strstr(svg, "n2-key")); /* no labels: no legend */
    n2_free(*state, svg);
}

/* --------------------------------------------------------------------------
 * Pages
 * ----------------------------------------------------------------------- */

static void write_page(n2_text *out) {
    const double x[] = {1, 2, 3}, y[] = {3, 1, 2};
    const n2_series series = {.label = "a", .x = x, .y = y, .n = 3};
    const n2_plot plot = {.title = "plot", .series = &series, .n_series = 1};
    const char *cells[] = {"name", "value", "<a>", "*1.5", "b", NULL};
    static const n2_bar columns[] = {{"<c>", {2, -1}, {0.5, 0.25}}, {"d", {1, 0}, {0, 0}}};
    static const n2_bars bars = {.title = "t & u",
                                 .x_label = "x",
                                 .key = {"one", "<two>"},
                                 .colour = {0, -1},
                                 .series = 2,
                                 .bars = columns,
                                 .n = 2};
    static const n2_page_number numbers[] = {{"KL <", "0.5", "nats", "0.4 to 0.6"},
                                             {"p", "0.01", NULL, NULL}};
    n2_page_begin(out, "A & B", "sub");
    n2_page_section(out, "one < two");
    n2_page_paragraph(out, "%d %s", 7, "<b>");
    n2_page_figure(out, &plot, "caption");
    n2_page_figure(out, &plot, NULL);
    n2_page_table(out, cells, 3, 2, "table");
    n2_page_code(out, "n2ce < in > out");
    n2_page_numbers(out, numbers, 2);
    n2_page_verdict(out, false, "not <good>");
    n2_page_facts_begin(out);
    n2_page_fact(out, "M & N", "%d of <%s>", 3, "x");
    n2_page_facts_end(out);
    n2_page_bars(out, &bars, "bars");
    n2_page_end(out, "end");
}

/* Style sheets have selectors with ">", which is not a tag's end. */
static void blank_style(char *page) {
    bool inside = false;
    for (char *p = page; *p; p++) {
        if (!strncmp(p, "</style>", 8)) inside = false;
        if (inside) *p = ' ';
        if (!strncmp(p, "<style>", 7)) {
            inside = true;
            p += 6;
        }
    }
}

static void page_is_complete_and_escaped(void **state) {
    n2_text text = n2_text_new(*state);
    write_page(&text);
    char *page = take(&text);
    assert_ptr_equal(strstr(page, "<!doctype html>"), page);
    assert_non_null(strstr(page, "<title>A &amp; B</title>"));
    assert_non_null(strstr(page, "<h2>one &lt; two</h2>"));
    assert_non_null(strstr(page, "<p>7 &lt;b&gt;</p>"));
    assert_non_null(strstr(page, "<th>name</th><th>value</th>"));
    assert_non_null(strstr(page, "<td>&lt;a&gt;</td><td><strong>1.5</strong></td>"));
    assert_non_null(strstr(page, "<code>n2ce &lt; in &gt; out</code>"));
    assert_non_null(strstr(page, "<p>KL &lt; <b>0.5 <small>nats</small></b> 0.4 to 0.6</p>"));
    assert_non_null(strstr(page, "<p>p <b>0.01</b> </p>"));
    assert_non_null(strstr(page, "<p class=\"n2-verdict n2-bad\">not &lt;good&gt;</p>"));
    assert_non_null(strstr(page, "<dt>M &amp; N</dt>\n<dd>3 of &lt;x&gt;</dd>"));
    blank_style(page);
    assert_true(well_formed(page));
    n2_free(*state, page);
}

static void page_needs_nothing_from_outside(void **state) {
    n2_text text = n2_text_new(*state);
    write_page(&text);
    char *page = take(&text);
    static const char *const outside[] = {"http", "<script", "<link", "src=", "url(", "@import"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        assert_null(strstr(page, outside[i]));
    n2_free(*state, page);
}

static void every_colour_has_a_class(void **state) {
    n2_text text = n2_text_new(*state);
    n2_page_begin(&text, "t", NULL);
    char *page = take(&text);
    for (int i = 0; i < N2_PLOT_COLOURS; i++) {
        char class[32], value[16];
        snprintf(class, sizeof class, ".n2-c%d{", i);
        snprintf(value, sizeof value, "--c%d:", i);
        assert_int_equal(count(page, class), 1);
        assert_int_equal(count(page, value), 2); /* light and dark */
    }
    n2_free(*state, page);
}

static void same_input_gives_the_same_bytes(void **state) {
    n2_text text = n2_text_new(*state), again = n2_text_new(*state);
    write_page(&text);
    write_page(&again);
    char *one = take(&text), *two = take(&again);
    assert_string_equal(one, two);
    n2_free(*state, one);
    n2_free(*state, two);
}

/* Counts the calls down to the one that fails; those after it succeed again. */
static void *failing_alloc(void *user, void *ptr, size_t size) {
    int *left = user;
    if (size == 0) {
        free(ptr);
        return NULL;
    }
    return (*left)-- != 0 ? realloc(ptr, size) : NULL;
}

/* --------------------------------------------------------------------------
 * Bars and histograms
 * ----------------------------------------------------------------------- */

static char *draw_bars(n2ce_ctx *ctx, const n2_bars *bars) {
    n2_text text = n2_text_new(ctx);
    n2_bars_svg(&text, bars);
    char *svg = take(&text);
    if (!well_formed(svg)) print_error("%s\n", svg);
    assert_true(well_formed(svg));
    return svg;
}

/* Lengths are in proportion, and what is not finite has no bar. */
static void bars_have_the_lengths_of_their_values(void **state) {
    const n2_bar rows[] = {{"a", {4}, {0}}, {"b", {2}, {0.5}}, {"c", {(double)NAN}, {0}}};
    const n2_bars bars = {.colour = {0}, .series = 1, .bars = rows, .n = 3};
    char *svg = draw_bars(*state, &bars);
    double length[2] = {0, 0};
    const char *at = svg;
    for (size_t i = 0; i < 2; i++) {
        at = strstr(at, "<rect class=\"n2-bar\"");
        assert_non_null(at);
        at = strstr(at, "width=\"");
        assert_int_equal(sscanf(at, "width=\"%lf", &length[i]), 1);
    }
    assert_true(fabs(length[0] - 2 * length[1]) < 0.05);
    assert_int_equal(count(svg, "<rect class=\"n2-bar\""), 2);
    assert_int_equal(count(svg, "<title>b: 2 \u00b1 0.5</title>"), 1);
    n2_free(*state, svg);
}

static void bars_of_anything_are_drawn(void **state) {
    const n2_bar rows[] = {{"a very long label that has to be cut somewhere, or it hides the bars",
                            {-1e300, 1e300},
                            {0, 0}},
                           {"", {0, 0}, {0, 0}}};
    n2_bars bars = {.title = "t", .colour = {0, 1}, .series = 2, .bars = rows, .n = 2};
    n2_free(*state, draw_bars(*state, &bars));
    bars.series = 1;
    n2_free(*state, draw_bars(*state, &bars));
    bars.n = 0;
    n2_free(*state, draw_bars(*state, &bars));
}

/* All values are in a bin or a tail; edges are round; what lies on an edge belongs right of it. */
static void histograms_count_every_value(void **state) {
    (void)state;
    const double values[] = {-0.05, 0, 0.1, 0.1, 0.99, 1, 7, (double)NAN, -(double)INFINITY};
    const n2_bins bins = n2_bins_between(0, 1, 10);
    assert_true(fabs(bins.low) < 1e-12 && fabs(bins.width - 0.1) < 1e-12);
    assert_int_equal(bins.n, 11);
    const n2_histogram h = n2_histogram_of(&bins, values, 9);
    assert_int_equal(h.rows, 9);
    assert_int_equal(h.below, 2);
    assert_int_equal(h.above, 2);
    assert_int_equal(h.count[0], 1);
    assert_int_equal(h.count[1], 2);
    assert_true(fabs(h.sum[1] - 0.2) < 1e-12);
    assert_int_equal(h.count[9], 1);
    assert_int_equal(h.count[10], 1);
    double x[N2_MOST_STEPS], y[N2_MOST_STEPS], area = 0;
    const size_t n = n2_histogram_steps(&h, &bins, x, y);
    assert_true(n <= N2_MOST_STEPS && y[0] == 0 && y[n - 1] == 0);
    for (size_t i = 1; i < n; i++) area += (x[i] - x[i - 1]) * 0.5 * (y[i] + y[i - 1]);
    assert_true(fabs(area - 5.0 / 9) < 1e-9);
}

/* One stray value does not make all others one bin; samples of one value, or none, have bins. */
static void bins_are_for_most_values(void **state) {
    (void)state;
    enum { N = 1000 };
    double a[N], b[N];
    for (size_t i = 0; i < N; i++) {
        a[i] = sin((double)i);
        b[i] = 3 + cos((double)i);
    }
    a[500] = 1e9;
    const double *const x[] = {a, b};
    const size_t n[] = {N, N}, none[] = {0, 0};
    const n2_bins bins = n2_bins_for(x, n, 2);
    const double high = bins.low + bins.width * (double)bins.n;
    assert_true(bins.low < -0.9 && bins.low > -1.5 && high > 3.9 && high < 4.6);
    assert_true(bins.n >= 10 && bins.n <= N2_MOST_BINS);
    for (size_t i = 0; i < N; i++) a[i] = b[i] = 0.25;
    const n2_bins one = n2_bins_for(x, n, 2), empty = n2_bins_for(x, none, 2);
    const n2_histogram h = n2_histogram_of(&one, a, N);
    assert_int_equal(h.below + h.above, 0);
    assert_true(empty.n > 0 && isfinite(empty.low) && empty.width > 0);
}

/* A page is complete or not there at all, whichever allocation fails. */
/* The vectors of RFC 4648. */
static void pictures_are_inside_the_page(void **state) {
    static const char *const vectors[][2] = {{"f", "Zg=="},         {"fo", "Zm8="},
                                             {"foo", "Zm9v"},       {"foob", "Zm9vYg=="},
                                             {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        n2_text text = n2_text_new(*state);
        char expected[64];
        n2_page_picture(&text, vectors[i][0], strlen(vectors[i][0]), "a < b", "caption");
        snprintf(expected, sizeof expected, "src=\"data:image/png;base64,%s\">", vectors[i][1]);
        assert_non_null(strstr(text.data, expected));
        assert_non_null(strstr(text.data, "alt=\"a &lt; b\""));
        n2_text_free(&text);
    }
}

static void allocation_failure_is_sticky(void **state) {
    n2_text reference = n2_text_new(*state);
    write_page(&reference);
    char *complete = take(&reference);
    n2ce_status status = N2CE_ENOMEM;
    for (int allowed = 1; status != N2CE_OK && allowed < 100; allowed++) {
        int left = allowed;
        n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
        options.alloc = failing_alloc;
        options.alloc_user = &left;
        n2ce_ctx *ctx = NULL;
        assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
        n2_text text = n2_text_new(ctx);
        write_page(&text);
        char *page = NULL;
        status = n2_text_take(&text, &page);
        assert_true(status == N2CE_ENOMEM ? !page : !strcmp(page, complete));
        n2_free(ctx, page);
        n2ce_ctx_free(ctx);
    }
    assert_int_equal(status, N2CE_OK);
    n2_free(*state, complete);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_ticks_are_at_nice_numbers),
        cmocka_unit_test(log_ticks_are_at_decades),
        cmocka_unit_test(few_decades_have_minor_ticks),
        cmocka_unit_test(many_decades_have_few_labels),
        cmocka_unit_test(every_range_has_labels),
        cmocka_unit_test(clip_takes_ends_in_any_order),
        cmocka_unit_test(labels_are_cut_between_characters),
        cmocka_unit_test(labels_are_escaped),
        cmocka_unit_test(values_without_a_place_break_the_line),
        cmocka_unit_test(log_axes_skip_what_is_not_positive),
        cmocka_unit_test(empty_plot_says_so),
        cmocka_unit_test(degenerate_data_are_drawn),
        cmocka_unit_test(huge_ranges_are_drawn),
        cmocka_unit_test(far_points_have_short_coordinates),
        cmocka_unit_test(ill_chosen_y_limits_are_survived),
        cmocka_unit_test(equal_scale_makes_squares),
        cmocka_unit_test(long_series_are_thinned),
        cmocka_unit_test(bands_are_closed_shapes),
        cmocka_unit_test(colours_repeat_and_references_are_neutral),
        cmocka_unit_test(bars_have_the_lengths_of_their_values),
        cmocka_unit_test(bars_of_anything_are_drawn),
        cmocka_unit_test(histograms_count_every_value),
        cmocka_unit_test(bins_are_for_most_values),
        cmocka_unit_test(page_is_complete_and_escaped),
        cmocka_unit_test(page_needs_nothing_from_outside),
        cmocka_unit_test(every_colour_has_a_class),
        cmocka_unit_test(same_input_gives_the_same_bytes),
        cmocka_unit_test(pictures_are_inside_the_page),
        cmocka_unit_test(allocation_failure_is_sticky),
    };
    return cmocka_run_group_tests_name("report", tests, make_ctx, free_ctx);
}
