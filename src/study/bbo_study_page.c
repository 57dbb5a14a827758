/* The study of offline optimisation as an HTML report. */
#include "base/numerics.h"
#include "bbo_published.h"
#include "bbo_study.h"
#include "report/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- every run as a dot ---------------------------------------------------------------------- */

/* A method has a place on the axis, its runs stand around it; a NaN keeps dots apart. */
static n2ce_status dots_of(const n2_bbo_study *s, size_t task, size_t m, int percentile,
                           n2_arena *arena, n2_series *out) {
    double *x = n2_arena_alloc(arena, 2 * s->n_seeds, sizeof *x);
    double *y = n2_arena_alloc(arena, 2 * s->n_seeds, sizeof *y);
    if (!x || !y) return N2CE_ENOMEM;
    for (size_t k = 0; k < s->n_seeds; k++) {
        const n2_bbo_run *r = n2_bbo_run_at(s, task, m, k);
        const double beside = s->n_seeds > 1 ? (double)k / (double)(s->n_seeds - 1) - 0.5 : 0;
        x[2 * k] = x[2 * k + 1] = (double)(m + 1) + 0.4 * beside;
        y[2 * k] = r->done ? (percentile == 100 ? r->max : r->median) : N2_NAN;
        y[2 * k + 1] = N2_NAN;
    }
    *out = (n2_series){.label = s->methods[m]->method->name,
                       .x = x,
                       .y = y,
                       .n = 2 * s->n_seeds,
                       .colour = s->methods[m]->colour,
                       .markers = true};
    return N2CE_OK;
}

/* The paper's numbers, as short lines where the method stands. */
static n2ce_status paper_of(const n2_bbo_study *s, size_t task, int percentile, n2_arena *arena,
                            n2_series *out) {
    double *x = n2_arena_alloc(arena, 3 * s->n_methods, sizeof *x);
    double *y = n2_arena_alloc(arena, 3 * s->n_methods, sizeof *y);
    if (!x || !y) return N2CE_ENOMEM;
    for (size_t m = 0; m < s->n_methods; m++) {
        const n2_bbo_published *p = n2_bbo_published_find(
            s->tasks[task]->name, s->methods[m]->method->name, s->queries[task], percentile);
        x[3 * m] = (double)(m + 1) - 0.35;
        x[3 * m + 1] = x[3 * m + 2] = (double)(m + 1) + 0.35;
        y[3 * m] = y[3 * m + 1] = p ? p->value : N2_NAN;
        y[3 * m + 2] = N2_NAN;
    }
    *out = (n2_series){.label = "paper", .x = x, .y = y, .n = 3 * s->n_methods, .colour = -1};
    return N2CE_OK;
}

static n2ce_status add_figure(n2_text *page, const n2_bbo_study *s, size_t task, int percentile,
                              n2_arena *arena) {
    n2_series series[N2_BBO_METHODS + 1];
    for (size_t m = 0; m < s->n_methods; m++)
        N2_TRY(dots_of(s, task, m, percentile, arena, &series[m]));
    N2_TRY(paper_of(s, task, percentile, arena, &series[s->n_methods]));
    const n2_plot plot = {.title = percentile == 100 ? "Largest of Q" : "Median of Q",
                          .x_label = "method, in the order of the table",
                          .y_label = "normalised value",
                          .series = series,
                          .n_series = s->n_methods + 1};
    n2_page_figure(page, &plot, "A dot a seed; a line where the paper has a number.");
    return N2CE_OK;
}

/* ---- proposals in the plane ---------------------------------------------------------------- */

static n2ce_status points_of(const double *plane, size_t n, n2_arena *arena, n2_series *out) {
    double *x = n2_arena_alloc(arena, 2 * n, sizeof *x),
           *y = n2_arena_alloc(arena, 2 * n, sizeof *y);
    if (!x || !y) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        x[2 * i] = x[2 * i + 1] = plane[2 * i];
        y[2 * i] = plane[2 * i + 1];
        y[2 * i + 1] = N2_NAN; /* not joined */
    }
    *out = (n2_series){.x = x, .y = y, .n = 2 * n, .markers = true};
    return N2CE_OK;
}

/* Points of a method, and where the square and the optima of Branin's function are: it is the only
 * task in the plane. */
static n2ce_status add_plane(n2_text *page, const n2_listed_method *m, const n2_bbo_points *p,
                             const char *caption, n2_arena *arena) {
    static const double optima[] = {-3.14159, 12.275, 3.14159, 2.275, 9.42478, 2.475};
    static const double corner[2][5] = {{-5, 10, 10, -5, -5}, {0, 0, 15, 15, 0}};
    const char *name = m->method->name;
    n2_series series[3];
    if (!p->x) return N2CE_OK;
    N2_TRY(points_of(p->x, p->n, arena, &series[0]));
    N2_TRY(points_of(optima, 3, arena, &series[1]));
    series[0].colour = m->colour;
    series[0].label = name;
    series[1].colour = -1;
    series[1].label = "optima";
    series[2] =
        (n2_series){.label = "bounds", .x = corner[0], .y = corner[1], .n = 5, .colour = -1};
    series[2].dashed = true;
    const n2_plot plot = {.title = name,
                          .x_label = "x1",
                          .y_label = "x2",
                          .equal_scale = true,
                          .series = series,
                          .n_series = 3};
    n2_page_figure(page, &plot, caption);
    return N2CE_OK;
}

/* The place of a method in the paper's figure of samples; the others follow. */
static size_t place_in_figure(const n2_listed_method *m) {
    static const char *const order[] = {"n2ce-m1", "n2ce-m10", "n2ce",   "n2ce-m1000",
                                        "ddom",    "gaussian", "mle-ld", "mle"};
    size_t i = 0;
    while (i < sizeof order / sizeof order[0] && strcmp(order[i], m->method->name) != 0) i++;
    return i;
}

static n2ce_status add_planes(n2_text *page, const n2_bbo_study *s, size_t task, bool drawn,
                              const char *caption, n2_arena *arena) {
    for (size_t place = 0; place < N2_BBO_METHODS; place++)
        for (size_t m = 0; m < s->n_methods; m++) {
            const n2_bbo_run *r = n2_bbo_run_at(s, task, m, n2_bbo_pictured(s, task, m));
            if (place_in_figure(s->methods[m]) == place)
                N2_TRY(add_plane(page, s->methods[m], drawn ? &r->drawn : &r->proposed, caption,
                                 arena));
        }
    return N2CE_OK;
}

/* ---- target and achieved value -------------------------------------------------------------- */

/* Means over seeds of what a method drew for n values, with their spread as a band. */
static n2ce_status aims_of(const n2_bbo_study *s, size_t task, size_t m, const double *scaled,
                           size_t n, n2_arena *arena, n2_series *out) {
    double *numbers = n2_arena_alloc(arena, 4 * n + 1, sizeof *numbers);
    if (!numbers) return N2CE_ENOMEM;
    double *x = numbers, *y = x + n, *low = y + n, *high = low + n;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        n2_bbo_aim aim;
        if (!n2_bbo_aim_mean(s, task, m, scaled[i], &aim)) continue;
        x[kept] = aim.target;
        y[kept] = aim.mean;
        low[kept] = aim.low;
        high[kept++] = aim.high;
    }
    *out = (n2_series){.label = s->methods[m]->method->name, .x = x, .y = y, .n = kept};
    out->markers = true;
    out->low = low;
    out->high = high;
    return N2CE_OK;
}

/* One line a method, the first with its band, and where target and value are equal. */
static n2ce_status add_aims(n2_text *page, const n2_bbo_study *s, size_t task, double from,
                            const char *title, n2_arena *arena) {
    n2_series series[N2_BBO_METHODS + 1];
    double *scaled;
    size_t n = 0, values, first = 0;
    N2_TRY(n2_bbo_aim_values(s, task, arena, &scaled, &values));
    while (first < values && scaled[first] < from) first++;
    for (size_t m = 0; m < s->n_methods; m++) {
        N2_TRY(aims_of(s, task, m, scaled + first, values - first, arena, &series[n]));
        series[n].colour = (int)n;
        if (n > 0) series[n].low = series[n].high = NULL;
        n += series[n].n > 0;
    }
    if (n == 0) return N2CE_OK;
    series[n] = (n2_series){.label = "equal", .x = series[0].x, .y = series[0].x};
    series[n].n = series[0].n;
    series[n].colour = -1;
    series[n++].dashed = true;
    const n2_plot plot = {.title = title,
                          .x_label = "target value",
                          .y_label = "value of the draws",
                          .series = series,
                          .n_series = n};
    n2_page_figure(page, &plot,
                   "Mean over draws and seeds; the band is from the 10th to the 90th "
                   "percentile of the draws, of the first method.");
    return N2CE_OK;
}

static n2ce_status add_targets(n2_text *page, const n2_bbo_study *s, size_t task, n2_arena *arena) {
    n2_text_table table;
    N2_TRY(n2_bbo_aim_table(s, task, arena, &table));
    if (!table.n_rows) return N2CE_OK;
    n2_page_table(
        page, table.cells, table.n_rows, table.n_columns,
        "Designs drawn for a value, 0 the least and 1 the best offline: mean of what they "
        "are worth, 10th to 90th percentile, over the seeds.");
    N2_TRY(add_aims(page, s, task, -N2_INFINITY, "Target and achieved value", arena));
    N2_TRY(add_aims(page, s, task, 0.9, "The same near the best", arena));
    return add_planes(page, s, task, true, "Draws for the best value offline, first seed.", arena);
}

/* ---- the page -------------------------------------------------------------------------------- */

static n2ce_status add_task(n2_text *page, const n2_bbo_study *s, size_t task, n2_arena *arena) {
    n2_text_table table, queries;
    N2_TRY(n2_bbo_task_table(s, task, arena, &table));
    if (!table.n_rows) return N2CE_OK;
    n2_page_section(page, s->tasks[task]->name);
    N2_TRY(n2_bbo_query_table(s, task, arena, &queries));
    if (queries.n_rows)
        n2_page_table(page, queries.cells, queries.n_rows, queries.n_columns,
                      "By the number of proposals Q: mean +- standard deviation over the seeds.");
    n2_page_paragraph(page, "%s. %zu rows offline, Q = %zu.", s->tasks[task]->summary,
                      s->offline_rows[task], s->queries[task]);
    n2_page_table(page, table.cells, table.n_rows, table.n_columns,
                  "Mean +- standard deviation over the seeds; the best in bold. Unmoved: values of "
                  "designs as they were proposed, bounds or not.");
    N2_TRY(add_figure(page, s, task, 100, arena));
    N2_TRY(add_figure(page, s, task, 50, arena));
    N2_TRY(add_planes(page, s, task, false, "Proposals of the first seed.", arena));
    return add_targets(page, s, task, arena);
}

static n2ce_status add_tasks(n2_text *page, const n2_bbo_study *s) {
    n2_arena arena = n2_arena_new(page->ctx);
    n2ce_status status = N2CE_OK;
    n2_text_table ranks;
    for (size_t t = 0; t < s->n_tasks && status == N2CE_OK; t++)
        status = add_task(page, s, t, &arena);
    if (status == N2CE_OK) status = n2_bbo_rank_table(s, &arena, &ranks);
    if (status == N2CE_OK && ranks.n_rows) {
        n2_page_section(page, "Mean ranks");
        n2_page_table(page, ranks.cells, ranks.n_rows, ranks.n_columns,
                      "Place of the mean over seeds among the methods here, averaged over the "
                      "tasks. A variant has the place it would have instead of its method.");
        if (n2_bbo_has_gaps(s)) n2_page_paragraph(page, "%s", n2_bbo_gaps);
    }
    n2_arena_free(&arena);
    return status;
}

n2ce_status n2_bbo_study_page(n2ce_ctx *ctx, const n2_bbo_study *study, char **html) {
    n2_text page = n2_text_new(ctx);
    char footer[64], scale[256];
    n2_page_begin(&page, "Offline optimisation", "Methods against tasks with oracles");
    if (study->interrupted)
        n2_page_paragraph(&page,
                          "The study was interrupted; this page shows the %zu of %zu runs that "
                          "were finished by then.",
                          study->n_done, n2_bbo_runs(study));
    n2_page_paragraph(&page, "%s", n2_bbo_caveat);
    n2_bbo_scale_text(study, scale);
    if (*scale) n2_page_paragraph(&page, "%s", scale);
    const n2ce_status status = add_tasks(&page, study);
    snprintf(footer, sizeof footer, "n2ce %s", n2ce_version());
    n2_page_end(&page, footer);
    const n2ce_status taken = n2_text_take(&page, html);
    return status == N2CE_OK ? taken : status;
}
