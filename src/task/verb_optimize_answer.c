/* optimize: the answer, as text, JSON, bare numbers and a page. */
#include "report/page.h"
#include "verb_optimize.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double seen_best(const n2_optimize_result *r) { return r->t->sign * r->record.y_best; }

static double predicted(const n2_optimize_result *r, size_t i) {
    return r->t->sign * r->proposals.predicted[i];
}

/* ---- what to be careful about -------------------------------------------- */

enum { WARNINGS_MAX = 6 };
typedef struct warnings {
    char text[WARNINGS_MAX][240];
    size_t n;
} warnings;

static void add_warning(warnings *w, const char *format, double a, double b) {
    if (w->n < WARNINGS_MAX) snprintf(w->text[w->n++], sizeof w->text[0], format, a, b);
}

static warnings find_warnings(const n2_optimize_result *r) {
    warnings w = {.n = 0};
    if (r->record.r2 < 0.1)
        add_warning(&w,
                    "The value networks explain %.2g of the variance of held-out rows: the values "
                    "are noisy, or do not depend on these columns. Expect little.",
                    fmax(r->record.r2, 0), 0);
    if (r->worth.far > 0.2)
        add_warning(&w,
                    "%.0f %% of the proposals are farther from any known design than 95 %% of "
                    "designs are from each other: predictions there are extrapolation.",
                    100 * r->worth.far, 0);
    if (r->worth.above > 0.5 && r->record.r2 < 0.9)
        add_warning(&w,
                    "%.0f %% of the proposals are predicted to be better than anything seen; such "
                    "predictions tend to be too good.",
                    100 * r->worth.above, 0);
    if (r->proposals.rows < r->asked)
        add_warning(&w, "Only %.0f of %.0f designs were found that are new and plausible.",
                    (double)r->proposals.rows, (double)r->asked);
    if (r->record.out_of_time)
        add_warning(&w,
                    "Training was cut short by --time-limit after %.0f of %.0f steps; another "
                    "run may differ.",
                    (double)r->record.steps_done, (double)r->record.steps_all);
    if (r->record.rows < 100)
        add_warning(&w, "%.0f designs are few to learn from.", (double)r->record.rows, 0);
    return w;
}

void n2_optimize_warn(n2ce_ctx *ctx, const n2_optimize_result *r) {
    const warnings w = find_warnings(r);
    for (size_t i = 0; i < w.n; i++) n2_log(ctx, N2CE_LOG_WARNING, "%s", w.text[i]);
}

/* ---- text ---------------------------------------------------------------- */

static void say_backtest(const n2_optimize_result *r, n2_text *out) {
    n2_text_add(out,
                "back-test   the best %.3g %% (%zu rows) were hidden\n"
                "            nearest known design of a proposal: best %.6g, median %.6g\n"
                "            as many of the best visible ones:   best %.6g, median %.6g\n"
                "            as many of the best of all:         best %.6g, median %.6g\n"
                "            %.0f %% of the proposals lie nearest to a hidden design (%.3g %% by "
                "chance)\n",
                r->backtest->percent, r->backtest->hidden, r->worth.neighbours.best,
                r->worth.neighbours.median, r->worth.visible.best, r->worth.visible.median,
                r->worth.truth.best, r->worth.truth.median, 100 * r->worth.hidden_share,
                r->backtest->percent);
}

/* Whether the device was chosen by the program. */
static bool chose_device(const n2_optimize_result *r) {
    return strcmp(n2ce_options_get(r->options, "device"), "auto") == 0;
}

static void say_design(const n2_optimize_result *r, size_t i, n2_text *out) {
    enum { SHOWN = 6 };
    const size_t n = r->t->designs.space.n;
    n2_text_add(out, "  %10.6g  ", predicted(r, i));
    for (size_t j = 0; j < n && j < SHOWN; j++) {
        n2_text_add(out, "%s%s=", j ? ", " : "", r->t->names[j]);
        n2_design_value(r->t, j, r->proposals.x[i * n + j], out);
    }
    n2_text_add(out, n > SHOWN ? ", ...\n" : "\n");
}

static void write_text(const n2_optimize_result *r, const warnings *w, n2_text *out) {
    const n2_latent_record *a = &r->record;
    const size_t n = r->proposals.rows;
    if (!r->path) {
        n2_design_csv(r->t, &r->proposals, out);
        return;
    }
    n2_text_add(out, "%s: %zu proposals\n", r->path, n);
    n2_text_add(out, "seen        %zu designs, best %s %.6g\n", a->rows, r->t->target,
                seen_best(r));
    n2_text_add(out, "predicted   %.6g (best) to %.6g; %.0f %% beyond the best seen\n",
                predicted(r, 0), predicted(r, n - 1), 100 * r->worth.above);
    n2_text_add(out, "model       explains %.3g of the variance of held-out rows", fmax(a->r2, 0));
    if (strcmp(r->device, "cpu") != 0) n2_text_add(out, ", trained on %s", r->device);
    n2_text_add(out, "\n");
    if (chose_device(r)) n2_text_add(out, "device      %s (%s)\n", r->device, r->reason);
    n2_text_add(out, "distance    %.0f %% of the proposals are unusually far from known designs\n",
                100 * r->worth.far);
    if (r->backtest->percent > 0) say_backtest(r, out);
    for (size_t i = 0; i < w->n; i++) n2_text_add(out, "note        %s\n", w->text[i]);
    n2_text_add(out, "the first   %s predicted, design\n", r->t->target);
    for (size_t i = 0; i < n && i < 5; i++) say_design(r, i, out);
}

/* ---- JSON ---------------------------------------------------------------- */

static void add_number(n2_text *out, const char *name, double value) {
    n2_text_add(out, "\"%s\": ", name);
    n2_text_add_number(out, value);
    n2_text_add(out, ", ");
}

static void add_list(n2_text *out, const char *name, const double *x, size_t n, double sign) {
    n2_text_add(out, "\"%s\": [", name);
    for (size_t i = 0; i < n; i++) {
        if (i) n2_text_add(out, ", ");
        n2_text_add_number(out, sign * x[i]);
    }
    n2_text_add(out, "], ");
}

/* Levels as texts, numbers as numbers. */
static void add_designs(const n2_optimize_result *r, n2_text *out) {
    const n2_space *s = &r->t->designs.space;
    n2_text_add(out, "\"proposals\": [");
    for (size_t i = 0; i < r->proposals.rows; i++) {
        n2_text_add(out, i ? ", [" : "[");
        for (size_t j = 0; j < s->n; j++) {
            const double x = r->proposals.x[i * s->n + j];
            if (j) n2_text_add(out, ", ");
            if (s->factor[j].kind == N2_CATEGORY)
                n2_text_add_json_string(out,
                                        n2_levels_text(r->t->levels, r->t->names[j], (size_t)x));
            else
                n2_text_add_number(out, x);
        }
        n2_text_add(out, "]");
    }
    n2_text_add(out, "], ");
}

/* What proposals were worth of which the best rows knew nothing. */
static void add_trials(const n2_optimize_result *r, n2_text *out) {
    n2_text_add(out, "\"trials\": [");
    for (size_t i = 0; i < r->record.trials; i++) {
        const n2_latent_trial *t = &r->record.trial[i];
        n2_text_add(out, i ? ", {" : "{");
        add_number(out, "hidden", t->hidden);
        add_number(out, "ambition", t->ambition);
        add_number(out, "best", r->t->sign * t->best);
        add_number(out, "predicted", r->t->sign * t->predicted);
        n2_text_add(out, "\"judged\": ");
        n2_text_add_number(out, r->t->sign * t->judged);
        n2_text_add(out, "}");
    }
    n2_text_add(out, "], ");
}

static void add_model(const n2_optimize_result *r, n2_text *out) {
    const n2_latent_record *a = &r->record;
    n2_text_add(out, "\"model\": {\"device\": \"%s\", \"device_reason\": ", r->device);
    n2_text_add_json_string(out, r->reason);
    n2_text_add(out, ", ");
    add_number(out, "r2", a->r2);
    add_number(out, "forest_share", a->forest_share);
    add_number(out, "process_share", a->process_share);
    add_number(out, "structure", a->structure);
    add_number(out, "ambition", a->ambition);
    add_trials(r, out);
    add_number(out, "misfit", a->misfit);
    add_number(out, "divergence", a->divergence);
    add_number(out, "elbo", -a->misfit - a->divergence);
    add_number(out, "prior_loss", a->prior_loss);
    add_number(out, "prior_median", a->prior_median);
    add_number(out, "prior_floor", a->prior_floor);
    add_number(out, "doubt", a->doubt * a->y_sd);
    add_list(out, "stages", a->stage_mean, (size_t)n2_options_count(r->options, "stages"), 1);
    n2_text_add(out, "\"steps\": %zu, \"out_of_time\": %s, \"resumed\": %s}, ", a->steps_done,
                a->out_of_time ? "true" : "false", a->resumed ? "true" : "false");
}

static void add_pair(n2_text *out, const char *name, n2_best_and_median v) {
    add_list(out, name, (double[]){v.best, v.median}, 2, 1);
}

static void add_backtest(const n2_optimize_result *r, n2_text *out) {
    const n2_appraisal *a = &r->worth;
    n2_text_add(out, "\"backtest\": {\"hidden\": %zu, ", r->backtest->hidden);
    add_number(out, "hidden_share", a->hidden_share);
    add_pair(out, "neighbours", a->neighbours);
    add_pair(out, "visible", a->visible);
    n2_text_add(out, "\"truth\": [");
    n2_text_add_number(out, a->truth.best);
    n2_text_add(out, ", ");
    n2_text_add_number(out, a->truth.median);
    n2_text_add(out, "]}, ");
}

static void write_json(const n2_optimize_result *r, const warnings *w, n2_text *out) {
    const size_t n = r->proposals.rows;
    n2_text_add(out, "{\"rows\": %zu, ", n);
    add_number(out, "seen", (double)r->record.rows);
    add_number(out, "best_seen", seen_best(r));
    add_number(out, "best_predicted", predicted(r, 0));
    add_number(out, "above", r->worth.above);
    add_number(out, "far", r->worth.far);
    n2_text_add(out, "\"columns\": [");
    for (size_t j = 0; j < r->t->designs.space.n; j++) {
        if (j) n2_text_add(out, ", ");
        n2_text_add_json_string(out, r->t->names[j]);
    }
    n2_text_add(out, "], ");
    add_designs(r, out);
    add_list(out, "predicted", r->proposals.predicted, n, r->t->sign);
    add_list(out, "spread", r->spread, n, 1);
    add_list(out, "log_prior", r->proposals.log_prior, n, 1);
    add_list(out, "distance", r->worth.distance, n, 1);
    if (r->backtest->percent > 0) add_backtest(r, out);
    add_model(r, out);
    n2_text_add(out, "\"warnings\": [");
    for (size_t i = 0; i < w->n; i++) {
        if (i) n2_text_add(out, ", ");
        n2_text_add_json_string(out, w->text[i]);
    }
    n2_text_add(out, "], \"version\": \"%s\", \"options\": ", n2ce_version());
    n2_options_json(r->options, out);
    n2_text_add(out, "}\n");
}

/* ---- numbers for programs ------------------------------------------------ */

static void note_numbers(const n2_optimize_result *r, n2ce_answer *a) {
    n2_note_number(a, "rows", (double)r->proposals.rows);
    n2_note_number(a, "seen", (double)r->record.rows);
    n2_note_number(a, "best_seen", seen_best(r));
    n2_note_number(a, "best_predicted", predicted(r, 0));
    n2_note_number(a, "above", r->worth.above);
    n2_note_number(a, "far", r->worth.far);
}

static n2ce_status note(const n2_optimize_result *r, n2ce_answer *a) {
    n2_arena arena = n2_arena_new(a->ctx);
    n2ce_proposals all;
    note_numbers(r, a);
    const n2ce_status status =
        n2_design_proposals(r->t, &r->proposals, r->spread, r->worth.distance, &arena, &all);
    if (status == N2CE_OK) n2_note_proposals(a, &all);
    n2_arena_free(&arena);
    return status;
}

/* ---- page ---------------------------------------------------------------- */

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

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
    const size_t n = r->proposals.rows, step = d->rows / 1000 + 1, m = (d->rows - 1) / step + 1;
    double *x = n2_alloc(ctx, 2 * (n + m), sizeof *x);
    if (!x) return N2CE_ENOMEM;
    double *seen = x + 2 * n;
    for (size_t i = 0; i < n; i++) x[i] = predicted(r, i);
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

/* The two number columns in which the proposals differ most from one another. */
static size_t pick_columns(const n2_optimize_result *r, size_t out[2]) {
    const n2_space *s = &r->t->designs.space;
    double most[2] = {-1, -1};
    size_t found = 0;
    for (size_t j = 0; j < s->n; j++) {
        const double range = s->factor[j].high - s->factor[j].low;
        double low = 1e300, high = -1e300;
        if (s->factor[j].kind == N2_CATEGORY || !(range > 0)) continue;
        for (size_t i = 0; i < r->proposals.rows; i++) {
            low = fmin(low, r->proposals.x[i * s->n + j]);
            high = fmax(high, r->proposals.x[i * s->n + j]);
        }
        const double width = (high - low) / range;
        const int at = width > most[0] ? 0 : 1;
        found++;
        if (!(width > most[at])) continue;
        if (at == 0) {
            most[1] = most[0];
            out[1] = out[0];
        }
        most[at] = width;
        out[at] = j;
    }
    return found;
}

/* Dots without lines: every dot is a series' point between two that cannot be shown. */
static n2_series dots(const char *label, const double *rows, size_t n, size_t step, size_t columns,
                      const size_t at[2], double *x, int colour) {
    size_t m = 0;
    double *y = x + 2 * (n / step + 1);
    for (size_t i = 0; i < n; i += step) {
        x[m] = rows[i * columns + at[0]];
        y[m++] = rows[i * columns + at[1]];
        x[m] = y[m] = (double)NAN;
        m++;
    }
    return (n2_series){.label = label, .x = x, .y = y, .n = m, .colour = colour, .markers = true};
}

static n2ce_status add_map(n2ce_ctx *ctx, const n2_optimize_result *r, n2_text *page) {
    const n2_designs *d = &r->t->designs;
    const size_t n = r->proposals.rows, step = d->rows / 1000 + 1;
    size_t at[2] = {0, 0};
    if (pick_columns(r, at) < 2) return N2CE_OK;
    const size_t room = 4 * (d->rows / step + 1) + 4 * (n + 1);
    double *x = n2_alloc(ctx, room, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    const n2_series two[] = {
        dots("designs", d->x, d->rows, step, d->space.n, at, x, -1),
        dots("proposals", r->proposals.x, n, 1, d->space.n, at, x + 4 * (d->rows / step + 1), 1)};
    const n2_plot plot = {.title = "Where the proposals lie",
                          .x_label = r->t->names[at[0]],
                          .y_label = r->t->names[at[1]],
                          .series = two,
                          .n_series = 2};
    n2_page_figure(page, &plot, "The two columns in which the proposals differ most.");
    n2_free(ctx, x);
    return N2CE_OK;
}

static void add_best(const n2_optimize_result *r, n2_text *page) {
    n2_text lines = n2_text_new(page->ctx);
    for (size_t i = 0; i < r->proposals.rows && i < 10; i++) say_design(r, i, &lines);
    n2_page_section(page, "The first proposals");
    if (!lines.failed && lines.data) n2_page_code(page, lines.data);
    n2_text_free(&lines);
}

static n2ce_status write_page(n2ce_ctx *ctx, const n2_optimize_result *r, const warnings *w,
                              n2_text *page) {
    char subtitle[200];
    snprintf(subtitle, sizeof subtitle, "%zu proposals from %zu designs", r->proposals.rows,
             r->record.rows);
    n2_page_begin(page, "Designs to try next", subtitle);
    n2_page_paragraph(page,
                      "The best design seen has %s = %.6g; the proposals are predicted to have "
                      "%.6g to %.6g. The model explains %.3g of the variance of rows that it was "
                      "not fitted to.",
                      r->t->target, seen_best(r), predicted(r, 0),
                      predicted(r, r->proposals.rows - 1), fmax(r->record.r2, 0));
    if (chose_device(r) || strcmp(r->device, "cpu") != 0)
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
    n2_page_section(page, "Values and places");
    N2_TRY(add_values(ctx, r, page));
    N2_TRY(add_map(ctx, r, page));
    add_best(r, page);
    n2_page_end(page, "n2ce optimize");
    return N2CE_OK;
}

n2ce_status n2_optimize_answer(n2ce_ctx *ctx, const n2_optimize_result *r, n2ce_answer *answer) {
    const warnings w = find_warnings(r);
    n2_writer writer = n2_writer_new(ctx);
    n2_text page = n2_text_new(ctx);
    write_text(r, &w, &writer.text);
    write_json(r, &w, &writer.json);
    for (size_t i = 0; i < r->proposals.rows; i++) {
        n2_text_add_number(&writer.brief, predicted(r, i));
        n2_text_add(&writer.brief, "\n");
    }
    n2_text_add(&writer.kept, "nothing\n");
    if (!r->path && chose_device(r))
        n2_log(ctx, N2CE_LOG_INFO, "trained on %s (%s)", r->device, r->reason);
    if (!r->path) n2_optimize_warn(ctx, r);
    n2ce_status status = note(r, answer);
    if (status == N2CE_OK) status = write_page(ctx, r, &w, &page);
    if (status == N2CE_OK) status = n2_text_take(&page, &answer->html);
    n2_text_free(&page);
    const n2ce_status taken = n2_writer_take(&writer, answer);
    return status == N2CE_OK ? taken : status;
}
