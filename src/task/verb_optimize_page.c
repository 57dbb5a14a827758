/* optimize: the report. */
#include "base/numerics.h"
#include "report/page.h"
#include "verb_optimize.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SEEN = 1500, MOST_LINES = 300, MOST_ROWS = 1000 };

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Every so-manieth design is enough for a picture. */
static size_t stride(const n2_optimize_result *r, size_t most) {
    return r->t->designs.rows / most + 1;
}

/* ---- values and distances ------------------------------------------------ */

/* Sorted values against the share of rows below. */
static n2_series shares(const char *label, double *x, size_t n, double *share, int colour) {
    qsort(x, n, sizeof *x, by_size);
    for (size_t i = 0; i < n; i++) share[i] = ((double)i + 0.5) / (double)n;
    return (n2_series){.label = label, .x = x, .y = share, .n = n, .colour = colour};
}

static void draw_shares(n2_text *page, const char *title, const char *axis, const n2_series two[2],
                        const char *caption) {
    const n2_plot plot = {.title = title,
                          .x_label = axis,
                          .y_label = "share of rows below",
                          .series = two,
                          .n_series = 2};
    n2_page_figure(page, &plot, caption);
}

static n2ce_status add_values(n2ce_ctx *ctx, const n2_optimize_result *r, n2_text *page) {
    const n2_designs *d = &r->t->designs;
    const size_t n = r->proposals.rows, step = stride(r, 1000), m = (d->rows - 1) / step + 1;
    double *x = n2_alloc(ctx, 2 * (n + m), sizeof *x);
    if (!x) return N2CE_ENOMEM;
    double *seen = x + 2 * n;
    for (size_t i = 0; i < n; i++) x[i] = n2_optimize_predicted(r, i);
    for (size_t i = 0; i < m; i++) seen[i] = r->t->sign * d->y[i * step];
    const n2_series two[] = {shares("seen", seen, m, seen + m, 0),
                             shares("predicted for proposals", x, n, x + n, 1)};
    draw_shares(page, "Predicted against seen", r->t->target, two,
                "Values of the designs that were tried, and what is predicted for the proposals.");
    for (size_t i = 0; i < n; i++) x[i] = r->worth.distance[i];
    const n2_series far[] = {
        shares("designs from each other", r->worth.usual, r->worth.n_usual, seen, 0),
        shares("proposals from designs", x, n, x + n, 1)};
    draw_shares(page, "How far outside", "distance to the nearest design, in ranges", far,
                "Root mean square over columns of the difference, in units of the column's range; "
                "another level counts as 1.");
    n2_free(ctx, x);
    return N2CE_OK;
}

/* ---- trials -------------------------------------------------------------- */

/* Predicted against judged, of the trials with the ambition that was taken. */
static void add_trials(const n2_optimize_result *r, n2_text *page) {
    double x[N2_LATENT_DEPTHS][N2_LATENT_TRIED], y[N2_LATENT_DEPTHS][N2_LATENT_TRIED];
    double low = N2_INFINITY, high = -N2_INFINITY;
    char label[N2_LATENT_DEPTHS][80];
    n2_series series[N2_LATENT_DEPTHS + 1];
    size_t n = 0;
    for (size_t k = 0; k < r->record.trials && n < N2_LATENT_DEPTHS; k++) {
        const n2_latent_trial *t = &r->record.trial[k];
        if (t->ambition != r->record.ambition) continue;
        for (size_t i = 0; i < (size_t)t->n; i++) {
            x[n][i] = r->t->sign * t->each_predicted[i];
            y[n][i] = r->t->sign * t->each_judged[i];
            low = fmin(low, fmin(x[n][i], y[n][i]));
            high = fmax(high, fmax(x[n][i], y[n][i]));
        }
        snprintf(label[n], sizeof label[n], "the best %.0f %% of the rows hidden", 100 * t->hidden);
        series[n] = (n2_series){.label = label[n],
                                .x = x[n],
                                .y = y[n],
                                .n = (size_t)t->n,
                                .colour = (int)n,
                                .points = true};
        n++;
    }
    if (n == 0) return;
    const double ends[] = {low, high};
    series[n] = (n2_series){.x = ends, .y = ends, .n = 2, .colour = -1, .dashed = true};
    const n2_plot plot = {.title = "Trials: predicted against what happened",
                          .x_label = "predicted without the hidden rows",
                          .y_label = "judged by the model that knows them",
                          .series = series,
                          .n_series = n + 1};
    n2_page_figure(page, &plot,
                   "Proposals from rows of which the best were hidden. On the dashed line a "
                   "prediction came true; above it, it was too careful.");
}

/* ---- places -------------------------------------------------------------- */

/* How far the proposals differ in a number column, in its ranges; -1 for a category. */
static double width_of(const n2_optimize_result *r, size_t j) {
    const n2_factor *f = &r->t->designs.space.factor[j];
    const size_t n = r->t->designs.space.n;
    double low = N2_INFINITY, high = -N2_INFINITY;
    if (f->kind == N2_CATEGORY || !(f->high > f->low)) return -1;
    for (size_t i = 0; i < r->proposals.rows; i++) {
        low = fmin(low, r->proposals.x[i * n + j]);
        high = fmax(high, r->proposals.x[i * n + j]);
    }
    return (high - low) / (f->high - f->low);
}

/* The two number columns in which the proposals differ most from one another. */
static size_t pick_columns(const n2_optimize_result *r, size_t out[2]) {
    double most[2] = {-1, -1};
    size_t found = 0;
    for (size_t j = 0; j < r->t->designs.space.n; j++) {
        const double width = width_of(r, j);
        if (width < 0) continue;
        found++;
        if (width > most[0]) {
            most[1] = most[0];
            out[1] = out[0];
            most[0] = width;
            out[0] = j;
        } else if (width > most[1]) {
            most[1] = width;
            out[1] = j;
        }
    }
    return found;
}

/* The class of a value among five that are equally frequent. */
static int shade_of(const double *limits, double value) {
    int k = 0;
    while (k < N2_SVG_SHADES - 1 && value > limits[k]) k++;
    return k;
}

/* Upper limits of all classes but the best, whatever direction that is. */
static n2ce_status find_limits(n2ce_ctx *ctx, const n2_designs *d, double *limits) {
    double *y = n2_alloc(ctx, d->rows, sizeof *y);
    if (!y) return N2CE_ENOMEM;
    memcpy(y, d->y, d->rows * sizeof *y);
    qsort(y, d->rows, sizeof *y, by_size);
    for (size_t k = 0; k + 1 < N2_SVG_SHADES; k++)
        limits[k] = y[(k + 1) * (d->rows - 1) / N2_SVG_SHADES];
    n2_free(ctx, y);
    return N2CE_OK;
}

static const char *const shade_label[N2_SVG_SHADES] = {"designs seen: the worst fifth", NULL,
                                                       "the middle", NULL, "the best fifth"};

static n2ce_status add_map(n2ce_ctx *ctx, const n2_optimize_result *r, n2_text *page) {
    const n2_designs *d = &r->t->designs;
    const size_t n = r->proposals.rows, step = stride(r, MOST_SEEN), m = d->rows / step + 1;
    size_t at[2] = {0, 0};
    double limits[N2_SVG_SHADES - 1];
    if (pick_columns(r, at) < 2) return N2CE_OK;
    N2_TRY(find_limits(ctx, d, limits));
    double *room = n2_alloc(ctx, 2 * (N2_SVG_SHADES * m + n), sizeof *room);
    if (!room) return N2CE_ENOMEM;
    n2_series series[N2_SVG_SHADES + 1];
    for (int k = 0; k < N2_SVG_SHADES; k++) {
        double *x = room + 2 * m * (size_t)k, *y = x + m;
        size_t count = 0;
        for (size_t i = 0; i < d->rows; i += step) {
            if (shade_of(limits, d->y[i]) != k) continue;
            x[count] = d->x[i * d->space.n + at[0]];
            y[count++] = d->x[i * d->space.n + at[1]];
        }
        series[k] = (n2_series){.label = shade_label[k],
                                .x = x,
                                .y = y,
                                .n = count,
                                .colour = N2_SHADE(k),
                                .points = true};
    }
    double *x = room + 2 * m * N2_SVG_SHADES, *y = x + n;
    for (size_t i = 0; i < n; i++) {
        x[i] = r->proposals.x[i * d->space.n + at[0]];
        y[i] = r->proposals.x[i * d->space.n + at[1]];
    }
    series[N2_SVG_SHADES] =
        (n2_series){.label = "proposals", .x = x, .y = y, .n = n, .colour = 1, .points = true};
    const n2_plot plot = {.title = "Where the proposals lie",
                          .x_label = r->t->names[at[0]],
                          .y_label = r->t->names[at[1]],
                          .series = series,
                          .n_series = N2_SVG_SHADES + 1};
    n2_page_figure(page, &plot, "The two columns in which the proposals differ most.");
    n2_free(ctx, room);
    return N2CE_OK;
}

/* ---- parallel coordinates ------------------------------------------------ */

/* Columns that vary; as many as there is room for. */
static size_t pick_axes(const n2_optimize_result *r, size_t *column, n2_parallel_axis *axes) {
    const n2_space *s = &r->t->designs.space;
    size_t n = 0;
    for (size_t j = 0; j < s->n && n < N2_PARALLEL_AXES; j++) {
        const n2_factor *f = &s->factor[j];
        if (f->kind == N2_CATEGORY ? f->levels < 2 : !(f->high > f->low)) continue;
        axes[n].name = r->t->names[j];
        if (f->kind == N2_CATEGORY) {
            snprintf(axes[n].low, sizeof axes[n].low, "%.20s",
                     n2_levels_text(r->t->levels, r->t->names[j], 0));
            snprintf(axes[n].high, sizeof axes[n].high, "%.20s",
                     n2_levels_text(r->t->levels, r->t->names[j], f->levels - 1));
        } else {
            snprintf(axes[n].low, sizeof axes[n].low, "%.4g", f->low + 0.0);
            snprintf(axes[n].high, sizeof axes[n].high, "%.4g", f->high);
        }
        column[n++] = j;
    }
    return n;
}

static double place(const n2_factor *f, double x) {
    const double low = f->kind == N2_CATEGORY ? 0 : f->low;
    const double high = f->kind == N2_CATEGORY ? (double)f->levels - 1 : f->high;
    return fmin(fmax((x - low) / (high - low), 0), 1);
}

static void place_row(const n2_space *s, const size_t *column, size_t axes, const double *design,
                      double *at) {
    for (size_t k = 0; k < axes; k++) at[k] = place(&s->factor[column[k]], design[column[k]]);
}

static n2ce_status add_parallel(n2ce_ctx *ctx, const n2_optimize_result *r, n2_text *page) {
    const n2_designs *d = &r->t->designs;
    size_t column[N2_PARALLEL_AXES], seen = 0, step = stride(r, MOST_LINES);
    n2_parallel_axis axes[N2_PARALLEL_AXES];
    const size_t n = pick_axes(r, column, axes), rows = r->proposals.rows;
    const size_t shown = rows < MOST_LINES ? rows : MOST_LINES;
    if (n < 3) return N2CE_OK;
    double *at = n2_alloc(ctx, (d->rows / step + 1 + shown) * n, sizeof *at);
    if (!at) return N2CE_ENOMEM;
    for (size_t i = 0; i < d->rows; i += step)
        place_row(&d->space, column, n, d->x + i * d->space.n, at + seen++ * n);
    double *proposed = at + seen * n;
    for (size_t i = 0; i < shown; i++)
        place_row(&d->space, column, n, r->proposals.x + i * d->space.n, proposed + i * n);
    const n2_parallel_rows sets[] = {{"designs seen", at, seen, N2_SHADE(1)},
                                     {"proposals", proposed, shown, 1}};
    const n2_parallel p = {
        .title = "Column by column", .axes = axes, .n_axes = n, .sets = sets, .n_sets = 2};
    n2_page_parallel(page, &p,
                     n < d->space.n ? "A line a design, from bound to bound of each column; the "
                                      "first columns that vary."
                                    : "A line a design, from bound to bound of each column.");
    n2_free(ctx, at);
    return N2CE_OK;
}

/* ---- the rows ------------------------------------------------------------ */

static const char *number(n2_arena *arena, double value) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", value);
    const char *kept = n2_arena_strdup(arena, text);
    return kept ? kept : "";
}

/* Rank, value, its spread, distance, log density, and the design. */
enum { HEADS = 5 };

static void fill_row(const n2_optimize_result *r, size_t i, n2_arena *arena, const char **cells) {
    const size_t n = r->t->designs.space.n;
    cells[0] = number(arena, (double)(i + 1));
    cells[1] = number(arena, n2_optimize_predicted(r, i));
    cells[2] = number(arena, r->spread[i]);
    cells[3] = number(arena, r->worth.distance[i]);
    cells[4] = number(arena, r->proposals.log_prior[i]);
    for (size_t j = 0; j < n; j++) {
        const double x = r->proposals.x[i * n + j];
        const bool level = r->t->designs.space.factor[j].kind == N2_CATEGORY;
        cells[HEADS + j] =
            level ? n2_levels_text(r->t->levels, r->t->names[j], (size_t)x) : number(arena, x);
    }
}

static n2ce_status add_rows(n2ce_ctx *ctx, const n2_optimize_result *r, n2_text *page) {
    static const char *const heads[HEADS] = {"rank", "predicted", "spread", "distance",
                                             "log prior"};
    const size_t n = r->t->designs.space.n, columns = HEADS + n;
    const size_t rows = r->proposals.rows < MOST_ROWS ? r->proposals.rows : MOST_ROWS;
    n2_arena arena = n2_arena_new(ctx);
    const char **cells = n2_arena_alloc(&arena, (rows + 1) * columns, sizeof *cells);
    if (cells) {
        memcpy(cells, heads, sizeof heads);
        for (size_t j = 0; j < n; j++) cells[HEADS + j] = r->t->names[j];
        for (size_t i = 0; i < rows; i++) fill_row(r, i, &arena, cells + (i + 1) * columns);
        n2_page_section(page, "The proposals");
        n2_page_sortable(page, cells, rows + 1, columns,
                         rows < r->proposals.rows
                             ? "The first thousand; all are in the CSV. A click on a head sorts."
                             : "All of them. A click on a head sorts.");
    }
    n2_arena_free(&arena);
    return cells ? N2CE_OK : N2CE_ENOMEM;
}

/* ---- the page ------------------------------------------------------------ */

static void add_words(const n2_optimize_result *r, const n2_optimize_notes *w, n2_text *page) {
    char value[3][40], note[80];
    double mean, low, high;
    n2_optimize_expected(r, &mean, &low, &high);
    snprintf(value[0], sizeof value[0], "%.5g", n2_optimize_best(r));
    snprintf(value[1], sizeof value[1], "%.5g", mean);
    snprintf(value[2], sizeof value[2], "%.0f %%", 100 * r->worth.above);
    snprintf(note, sizeof note, isnan(low) ? "without an interval" : "%.5g to %.5g with 80 %%", low,
             high);
    const n2_page_number numbers[] = {{"best seen", value[0], NULL, r->t->target},
                                      {"expected of the proposals", value[1], NULL, note},
                                      {"predicted beyond the best", value[2], NULL, "of them"}};
    n2_page_numbers(page, numbers, 3);
    n2_page_paragraph(page,
                      "The best design seen has %s = %.6g; the proposals are predicted to have "
                      "%.6g to %.6g. The model explains %.3g of the variance of rows that it was "
                      "not fitted to.",
                      r->t->target, n2_optimize_best(r), n2_optimize_predicted(r, 0),
                      n2_optimize_predicted(r, r->proposals.rows - 1), fmax(r->record.r2, 0));
    if (n2_optimize_chose_device(r) || strcmp(r->device, "cpu") != 0)
        n2_page_paragraph(page, "Networks were trained, and chains moved, on %s (%s).", r->device,
                          r->reason);
    for (size_t i = 0; i < w->n; i++) n2_page_paragraph(page, "Note: %s", w->text[i]);
    if (r->backtest->percent > 0)
        n2_page_paragraph(page,
                          "Back-test: the best %.3g %% were hidden. The designs nearest to the "
                          "proposals have a best value of %.6g and a median of %.6g; as many of "
                          "the best visible designs have %.6g and %.6g.",
                          r->backtest->percent, r->worth.neighbours.best,
                          r->worth.neighbours.median, r->worth.visible.best,
                          r->worth.visible.median);
}

n2ce_status n2_optimize_page(n2ce_ctx *ctx, const n2_optimize_result *r, const n2_optimize_notes *w,
                             n2_text *page) {
    char subtitle[200];
    snprintf(subtitle, sizeof subtitle, "%zu proposals from %zu designs", r->proposals.rows,
             r->record.rows);
    n2_page_begin(page, "Designs to try next", subtitle);
    add_words(r, w, page);
    n2_page_section(page, "Values and places");
    N2_TRY(add_values(ctx, r, page));
    add_trials(r, page);
    N2_TRY(add_map(ctx, r, page));
    N2_TRY(add_parallel(ctx, r, page));
    N2_TRY(add_rows(ctx, r, page));
    n2_page_end(page, "n2ce optimize");
    return N2CE_OK;
}
