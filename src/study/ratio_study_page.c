/* The study of ratio estimators as an HTML report. */
#include "base/numerics.h"
#include "published.h"
#include "ratio_study.h"
#include "report/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- points ---------------------------------------------------------------------------------- */

enum { LABEL = 64, SERIES = 2 * N2_STUDY_METHODS + 8, CURVE = 100 };

/* Points of a plot in the making. A NaN after each keeps them from being joined. */
typedef struct points {
    double *x, *y;
    size_t n;
} points;

static n2ce_status points_new(n2_arena *arena, size_t room, points *p) {
    p->n = 0;
    p->x = n2_arena_alloc(arena, room, sizeof *p->x);
    p->y = n2_arena_alloc(arena, room, sizeof *p->y);
    return p->x && p->y ? N2CE_OK : N2CE_ENOMEM;
}

static void point_add(points *p, double x, double y) {
    p->x[p->n] = x;
    p->y[p->n++] = y;
}

static double truth_range(const n2_ratio_study *s, size_t first, size_t end, double range[2]) {
    range[0] = N2_INFINITY;
    range[1] = 0;
    for (size_t p = first; p < end; p++) {
        range[0] = fmin(range[0], s->problems[p]->truth);
        range[1] = fmax(range[1], s->problems[p]->truth);
    }
    return range[1] / range[0];
}

enum { DECADES_FROM = 20 }; /* truths that span more than this factor have logarithmic axes */

/* The range of y to show: what there is, but no further than two limits, so that one estimate that
 * went astray does not flatten all others. */
typedef struct frame {
    double least, most; /* limits */
    double min, max;
} frame;

static frame frame_new(double least, double most, const double start[2]) {
    return (frame){least, most, start[0], start[1]};
}

static void frame_add(frame *f, double y) {
    if (isnan(y)) return;
    const double held = fmax(f->least, fmin(f->most, y));
    f->min = fmin(f->min, held);
    f->max = fmax(f->max, held);
}

static void frame_add_all(frame *f, const n2_series *s) {
    for (size_t i = 0; i < s->n; i++) frame_add(f, s->y[i]);
}

/* A margin on either side. */
static void frame_settle(frame *f, bool log, n2_plot *plot) {
    const double room = 0.06 * (f->max - f->min), factor = pow(f->max / f->min, 0.06);
    plot->y_min = log ? f->min / factor : f->min - room;
    plot->y_max = log ? f->max * factor : f->max + room;
}

/* ---- estimate against truth ------------------------------------------------------------------ */

/* Methods stand side by side, a little off the truth, so that none hides another. */
static double beside(double truth, const n2_ratio_study *s, size_t m, double width, bool log) {
    const double shift = ((double)m - 0.5 * (double)(s->n_methods - 1)) * 0.012;
    return log ? truth * pow(width, shift) : truth + shift * width;
}

/* Dots at the means, and bars of one standard deviation either way. */
static n2ce_status scatter(const n2_ratio_study *s, size_t first, size_t end, size_t m, bool log,
                           n2_arena *arena, points *dots, points *bars) {
    double range[2];
    const double ratio = truth_range(s, first, end, range);
    const double width = log ? ratio : fmax(range[1] - range[0], 0.1 * range[1]);
    N2_TRY(points_new(arena, 2 * (end - first), dots));
    N2_TRY(points_new(arena, 3 * (end - first), bars));
    for (size_t p = first; p < end; p++) {
        const n2_study_summary sum = n2_study_summarise(s, p, p + 1, m);
        const double x = beside(s->problems[p]->truth, s, m, width, log);
        const double low = sum.mean - sum.spread;
        point_add(dots, x, sum.mean);
        point_add(dots, x, N2_NAN);
        point_add(bars, x, log ? fmax(low, 0.1 * sum.mean) : low);
        point_add(bars, x, sum.mean + sum.spread);
        point_add(bars, x, N2_NAN);
    }
    return N2CE_OK;
}

static n2ce_status add_estimates(n2_text *page, const n2_ratio_study *s, size_t first, size_t end,
                                 n2_arena *arena) {
    n2_series series[SERIES];
    double range[2];
    const bool log = truth_range(s, first, end, range) > DECADES_FROM;
    size_t n = 0;
    for (size_t m = 0; m < s->n_methods; m++) {
        const n2_study_method *method = s->methods[m];
        points dots, bars;
        N2_TRY(scatter(s, first, end, m, log, arena, &dots, &bars));
        series[n++] = (n2_series){.x = bars.x, .y = bars.y, .n = bars.n, .colour = method->colour};
        series[n++] = (n2_series){.label = method->name,
                                  .x = dots.x,
                                  .y = dots.y,
                                  .n = dots.n,
                                  .colour = method->colour,
                                  .markers = true};
    }
    const double room = range[1] > range[0] ? 0 : 0.1 * range[1];
    const double ends[2] = {range[0] - room, range[1] + room};
    series[n++] =
        (n2_series){.label = "truth", .x = ends, .y = ends, .n = 2, .colour = -1, .dashed = true};
    n2_plot plot = {.title = "Estimate against truth",
                    .x_label = "truth, nats",
                    .y_label = "estimate, nats",
                    .x_log = log,
                    .y_log = log,
                    .series = series,
                    .n_series = n};
    frame f = frame_new(log ? range[0] / 30 : -0.5 * range[1], (log ? 30 : 2.5) * range[1], ends);
    for (size_t i = 0; i < n; i++) frame_add_all(&f, &series[i]);
    frame_settle(&f, log, &plot);
    n2_page_figure(page, &plot,
                   "Mean over the seeds, bars of one standard deviation; methods stand side by "
                   "side. What lies beyond the frame is in the table only.");
    return N2CE_OK;
}

/* ---- error against truth --------------------------------------------------------------------- */

/* Problems in the order of their truths, so that a line runs from left to right. */
static n2ce_status order_by_truth(const n2_ratio_study *s, size_t first, size_t end,
                                  n2_arena *arena, size_t **out) {
    size_t *order = *out = n2_arena_alloc(arena, end - first, sizeof *order);
    if (!order) return N2CE_ENOMEM;
    for (size_t p = first; p < end; p++) {
        size_t k = p - first;
        for (; k > 0 && s->problems[order[k - 1]]->truth > s->problems[p]->truth; k--)
            order[k] = order[k - 1];
        order[k] = p;
    }
    return N2CE_OK;
}

static n2ce_status error_line(const n2_ratio_study *s, const size_t *order, size_t n, size_t m,
                              n2_arena *arena, n2_series *out) {
    points line;
    N2_TRY(points_new(arena, n, &line));
    for (size_t k = 0; k < n; k++)
        point_add(&line, s->problems[order[k]]->truth,
                  n2_study_summarise(s, order[k], order[k] + 1, m).error);
    *out = (n2_series){.label = s->methods[m]->name,
                       .x = line.x,
                       .y = line.y,
                       .n = line.n,
                       .colour = s->methods[m]->colour,
                       .markers = true};
    return N2CE_OK;
}

/* An error that was published, or that a published estimate has. */
static double published_error(const n2_problem *p, const char *method) {
    const n2_published *e = n2_published_find(p->name, method, N2_PUBLISHED_ERROR);
    if (e) return e->value;
    e = n2_published_find(p->name, method, N2_PUBLISHED_ESTIMATE);
    return e ? fabs(e->value - p->truth) : N2_NAN;
}

/* *out has no points if nothing was published. */
static n2ce_status published_line(const n2_ratio_study *s, const size_t *order, size_t n,
                                  const char *method, n2_arena *arena, n2_series *out) {
    points line;
    char label[LABEL];
    size_t found = 0;
    *out = (n2_series){0};
    N2_TRY(points_new(arena, n, &line));
    for (size_t k = 0; k < n; k++) {
        const double error = published_error(s->problems[order[k]], method);
        found += isfinite(error) ? 1 : 0;
        point_add(&line, s->problems[order[k]]->truth, error);
    }
    if (!found) return N2CE_OK;
    snprintf(label, sizeof label, "%s, published", method);
    *out = (n2_series){
        .x = line.x, .y = line.y, .n = line.n, .colour = n2_study_colour(method), .dashed = true};
    out->label = n2_arena_strdup(arena, label);
    return out->label ? N2CE_OK : N2CE_ENOMEM;
}

/* The error of the guess 0 is the truth: a curve where one axis is logarithmic. */
static n2ce_status guess_line(const double range[2], n2_arena *arena, n2_series *out) {
    points line;
    N2_TRY(points_new(arena, CURVE, &line));
    for (size_t i = 0; i < CURVE; i++) {
        const double x = range[0] + (range[1] - range[0]) * (double)i / (CURVE - 1);
        point_add(&line, x, x);
    }
    *out = (n2_series){.label = "guess 0", .x = line.x, .y = line.y, .n = line.n, .colour = -1};
    return N2CE_OK;
}

static n2ce_status error_lines(const n2_ratio_study *s, size_t first, size_t end, n2_arena *arena,
                               n2_series *series, size_t *n) {
    static const char *const others[] = {"tre", "dv", "nwj", "infonce", "ksg"};
    size_t *order;
    const size_t count = end - first;
    N2_TRY(order_by_truth(s, first, end, arena, &order));
    for (size_t m = 0; m < s->n_methods; m++)
        N2_TRY(error_line(s, order, count, m, arena, &series[(*n)++]));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        N2_TRY(published_line(s, order, count, others[i], arena, &series[*n]));
        *n += series[*n].n > 0;
    }
    return N2CE_OK;
}

static n2ce_status add_errors(n2_text *page, const n2_ratio_study *s, size_t first, size_t end,
                              n2_arena *arena) {
    n2_series series[SERIES];
    double range[2];
    size_t n = 0;
    if (end - first < 2) return N2CE_OK;
    const bool log = truth_range(s, first, end, range) > DECADES_FROM;
    N2_TRY(error_lines(s, first, end, arena, series, &n));
    N2_TRY(guess_line(range, arena, &series[n++]));
    n2_plot plot = {.title = "Error against truth",
                    .x_label = "truth, nats",
                    .y_label = "mean |error|, nats",
                    .x_log = log,
                    .y_log = true,
                    .series = series,
                    .n_series = n};
    frame f = frame_new(1e-5 * range[0], 30 * range[1], range);
    for (size_t i = 0; i < n; i++) frame_add_all(&f, &series[i]);
    frame_settle(&f, true, &plot);
    n2_page_figure(page, &plot,
                   "Mean over the seeds. Above the line of the guess 0 a method is worth nothing. "
                   "Dashed: published.");
    return N2CE_OK;
}

/* ---- error against time ---------------------------------------------------------------------- */

static n2ce_status add_times(n2_text *page, const n2_ratio_study *s, size_t first, size_t end,
                             n2_arena *arena) {
    n2_series series[SERIES];
    points all;
    N2_TRY(points_new(arena, s->n_methods, &all));
    for (size_t m = 0; m < s->n_methods; m++) {
        const n2_study_summary sum = n2_study_summarise(s, first, end, m);
        point_add(&all, sum.seconds, sum.error);
        series[m] = (n2_series){.label = s->methods[m]->name,
                                .x = &all.x[m],
                                .y = &all.y[m],
                                .n = 1,
                                .colour = s->methods[m]->colour,
                                .markers = true};
    }
    const n2_plot plot = {.title = "Error and time by method",
                          .x_label = "mean seconds of a fit",
                          .y_label = "mean |error|, nats",
                          .x_log = true,
                          .y_log = true,
                          .series = series,
                          .n_series = s->n_methods};
    n2_page_figure(page, &plot, "Over all problems and seeds of the group. Lower left is better.");
    return N2CE_OK;
}

/* ---- the page -------------------------------------------------------------------------------- */

static n2ce_status add_tables(n2_text *page, const n2_ratio_study *s, size_t first, size_t end,
                              n2_arena *arena) {
    n2_text_table table;
    N2_TRY(n2_study_table_make(s, first, end, N2_STUDY_ESTIMATES, arena, &table));
    n2_page_table(page, table.cells, table.n_rows, table.n_columns,
                  "Mean +- standard deviation over the seeds, nats; the best in bold.");
    N2_TRY(n2_study_table_make(s, first, end, N2_STUDY_MSE, arena, &table));
    if (table.n_rows)
        n2_page_table(page, table.cells, table.n_rows, table.n_columns,
                      "Mean squared error of the log ratio at fresh rows of the numerator.");
    return N2CE_OK;
}

/* Problems of the group that were begun: an interrupted study has fewer. */
static size_t begun(const n2_ratio_study *s, size_t first, size_t end) {
    const size_t a_problem = s->n_methods * s->n_seeds;
    while (end > first && !s->fits[(end - 1) * a_problem].done) end--;
    return end;
}

static n2ce_status add_group(n2_text *page, const n2_ratio_study *s, size_t first, size_t end,
                             n2_arena *arena) {
    const n2_problem *p = s->problems[first];
    end = begun(s, first, end);
    if (end == first) return N2CE_OK;
    n2_page_section(page, p->group);
    n2_page_paragraph(page, "To be estimated: %s; %zu rows%s.", n2_study_group_text(p->group),
                      s->rows ? s->rows : p->n, p->kind == N2_PROBLEM_KL ? " a side" : "");
    N2_TRY(add_tables(page, s, first, end, arena));
    N2_TRY(add_estimates(page, s, first, end, arena));
    N2_TRY(add_errors(page, s, first, end, arena));
    return add_times(page, s, first, end, arena);
}

static n2ce_status add_groups(n2_text *page, const n2_ratio_study *s) {
    n2_arena arena = n2_arena_new(page->ctx);
    n2ce_status status = N2CE_OK;
    for (size_t p = 0; p < s->n_problems && status == N2CE_OK; p = n2_study_group_end(s, p))
        status = add_group(page, s, p, n2_study_group_end(s, p), &arena);
    n2_arena_free(&arena);
    return status;
}

n2ce_status n2_ratio_study_page(n2ce_ctx *ctx, const n2_ratio_study *study, char **html) {
    n2_text page = n2_text_new(ctx);
    char footer[64];
    n2_page_begin(&page, "Ratio estimators", "Problems with known answers");
    if (study->interrupted)
        n2_page_paragraph(&page,
                          "The study was interrupted; this page shows the %zu of %zu fits that "
                          "were finished by then.",
                          study->n_done, n2_study_fits(study));
    n2_page_paragraph(&page, "%s", n2_study_caveat);
    n2_page_paragraph(&page, "%s Options: tasks %s, %zu seeds from %llu on.", n2_study_legend,
                      n2ce_options_get(study->options, "tasks"), study->n_seeds,
                      (unsigned long long)study->first_seed);
    const n2ce_status status = add_groups(&page, study);
    snprintf(footer, sizeof footer, "n2ce %s", n2ce_version());
    n2_page_end(&page, footer);
    const n2ce_status taken = n2_text_take(&page, html);
    return status == N2CE_OK ? taken : status;
}
