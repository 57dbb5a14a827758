/* The Gaussian study as an HTML report. */
#include "gaussian.h"

#include "base/numerics.h"
#include "report/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LABEL = 48, CURVES = N2_GAUSSIAN_COLUMNS + 1 };

static double start_gap(const n2_gaussian_setting *s) {
    double sum = 0;
    for (size_t d = 0; d < s->dim; d++)
        sum += (s->start[d] - s->target[d]) * (s->start[d] - s->target[d]);
    return sqrt(sum);
}

/* Rivals of N2CE are dashed; everyone keeps one colour in all figures. */
static n2_series column_series(const n2_gaussian_setting *s, size_t c, const char *label) {
    return (n2_series){.label = label,
                       .colour = (int)(c % N2_PLOT_COLOURS),
                       .dashed = s->columns[c].family != N2CE_FAMILY_N2CE};
}

/* The bottom of the plot is set by the samples, not by exact MLE, which falls to
 * zero exponentially. */
static double lowest_distance(const n2_gaussian_setting *s, const n2_gaussian_result *r) {
    double lowest = N2_INFINITY;
    for (size_t c = 0; c < s->n_columns; c++)
        for (size_t p = 0; p < r->n_points; p++)
            if (r->paths[c].low[p] > 0) lowest = fmin(lowest, r->paths[c].low[p]);
    return lowest;
}

static void add_distance_figure(n2_text *page, const n2_gaussian_setting *s,
                                const n2_gaussian_result *r) {
    char names[CURVES][LABEL];
    n2_series series[CURVES];
    double mle[N2_GAUSSIAN_POINTS];
    for (size_t c = 0; c < s->n_columns; c++) {
        n2_column_label(&s->columns[c], names[c], LABEL);
        series[c] = column_series(s, c, names[c]);
        series[c].x = r->step;
        series[c].y = r->paths[c].median;
        series[c].low = r->paths[c].low;
        series[c].high = r->paths[c].high;
        series[c].n = r->n_points;
    }
    const double gap = start_gap(s), lowest = lowest_distance(s, r);
    for (size_t p = 0; p < r->n_points; p++) mle[p] = gap * pow(fabs(1 - s->step_size), r->step[p]);
    series[s->n_columns] =
        (n2_series){.label = "exact MLE", .x = r->step, .y = mle, .n = r->n_points, .colour = -1};
    const bool clip = isfinite(lowest) && gap > 0;
    const n2_plot plot = {.title = "Distance to the target",
                          .x_label = "step",
                          .y_label = "|a - a*|",
                          .y_log = true,
                          .y_min = clip ? lowest / 1.5 : 0,
                          .y_max = clip ? fmax(2.5 * gap, lowest) : 0,
                          .series = series,
                          .n_series = s->n_columns + 1};
    n2_page_figure(page, &plot,
                   "Median over the runs; the band holds 80 % of them. Dashed: the rivals.");
}

static void add_plane_figure(n2_text *page, const n2_gaussian_setting *s,
                             const n2_gaussian_result *r) {
    char names[CURVES][LABEL];
    n2_series series[CURVES];
    for (size_t c = 0; c < s->n_columns; c++) {
        n2_column_label(&s->columns[c], names[c], LABEL);
        series[c] = column_series(s, c, names[c]);
        series[c].x = r->paths[c].x;
        series[c].y = r->paths[c].y;
        series[c].n = r->n_points;
    }
    const double x[2] = {s->start[0], s->target[0]}, y[2] = {s->start[1], s->target[1]};
    series[s->n_columns] =
        (n2_series){.label = "exact MLE", .x = x, .y = y, .n = 2, .colour = -1, .markers = true};
    const n2_plot plot = {.title = "Trajectories",
                          .x_label = "first coordinate of a",
                          .y_label = "second coordinate",
                          .equal_scale = true,
                          .series = series,
                          .n_series = s->n_columns + 1};
    n2_page_figure(page, &plot, "The first run, from the start (left) to the target.");
}

/* Score against M, ours and the paper's: the U of the bias-variance trade. */
static void add_score_figure(n2_text *page, const n2_gaussian_setting *s,
                             const n2_gaussian_result *r) {
    double m[CURVES], mean[CURVES], low[CURVES], high[CURVES], paper[CURVES];
    size_t n = 0;
    for (size_t c = 0; c < s->n_columns; c++) {
        if (s->columns[c].family != N2CE_FAMILY_N2CE) continue;
        const double spread = isfinite(r->scores[c].std) ? r->scores[c].std : 0;
        m[n] = s->columns[c].magnitude;
        mean[n] = r->scores[c].mean;
        low[n] = fmax(mean[n] - spread, mean[n] / 10);
        high[n] = mean[n] + spread;
        paper[n++] = s->columns[c].paper_mean;
    }
    if (n < 2) return;
    const double mle = n2_gaussian_mle_score(s), ends[2] = {m[0], m[n - 1]}, level[2] = {mle, mle};
    const bool has_paper = isfinite(paper[0]);
    const n2_series series[] = {
        {.label = "n2ce", .x = m, .y = mean, .n = n, .low = low, .high = high, .markers = true},
        {.label = has_paper ? "paper" : NULL,
         .x = m,
         .y = paper,
         .n = n,
         .colour = 1,
         .markers = true,
         .dashed = true},
        {.label = "exact MLE", .x = ends, .y = level, .n = 2, .colour = -1, .dashed = true},
    };
    const n2_plot plot = {.title = "Score against the noise magnitude",
                          .x_label = "M",
                          .y_label = "mean over steps of |a - a*|\xc2\xb2",
                          .x_log = true,
                          .y_log = true,
                          .series = series,
                          .n_series = 3};
    n2_page_figure(page, &plot, "Mean and one standard deviation over the runs.");
}

static void add_bias_figure(n2_text *page, const n2_bias_curve *bias) {
    char names[N2_BIAS_CURVES][LABEL];
    n2_series series[N2_BIAS_CURVES + 1];
    for (int k = 0; k < N2_BIAS_CURVES; k++) {
        snprintf(names[k], LABEL, "%s, slope %.2f", bias[k].where, bias[k].slope);
        series[k] = (n2_series){.label = names[k],
                                .x = bias[k].magnitude,
                                .y = bias[k].squared,
                                .n = N2_BIAS_POINTS,
                                .colour = k};
    }
    const double x[2] = {10, 1000}, anchor = bias[0].squared[10] / 3, y[2] = {anchor, anchor / 1e4};
    series[N2_BIAS_CURVES] =
        (n2_series){.label = "slope -2", .x = x, .y = y, .n = 2, .colour = -1, .dashed = true};
    const n2_plot plot = {.title = "Squared gradient bias, exact",
                          .x_label = "M",
                          .y_label = "|grad L_M - grad MLE|\xc2\xb2",
                          .x_log = true,
                          .y_log = true,
                          .series = series,
                          .n_series = N2_BIAS_CURVES + 1};
    n2_page_figure(
        page, &plot,
        "At three points of the maximum-likelihood path. Slopes are fitted over M = 10 to "
        "1000; each curve reaches -2 once M is well above the ratios at its point.");
}

static void format_cell(char *cell, double value, bool best) {
    if (isfinite(value))
        snprintf(cell, LABEL, "%s%.4g", best ? "*" : "", value);
    else
        snprintf(cell, LABEL, "\xe2\x80\x93");
}

static size_t best_column(const n2_gaussian_setting *s, const n2_gaussian_result *r) {
    size_t best = 0;
    for (size_t c = 1; c < s->n_columns; c++)
        if (r->scores[c].mean < r->scores[best].mean) best = c;
    return best;
}

static void add_score_table(n2_text *page, const n2_gaussian_setting *s,
                            const n2_gaussian_result *r) {
    enum { COLUMNS = 6 };
    static const char *const header[COLUMNS] = {"objective",      "score", "std",
                                                "gradient error", "paper", "paper std"};
    char text[CURVES][COLUMNS][LABEL];
    const char *cells[CURVES * COLUMNS];
    bool has_paper = false;
    for (size_t c = 0; c < s->n_columns; c++) has_paper |= isfinite(s->columns[c].paper_mean);
    const size_t shown = has_paper ? COLUMNS : COLUMNS - 2, best = best_column(s, r);
    memcpy(cells, header, sizeof header);
    for (size_t c = 0; c < s->n_columns; c++) {
        const n2_gaussian_column *column = &s->columns[c];
        n2_column_label(column, text[c][0], LABEL);
        format_cell(text[c][1], r->scores[c].mean, c == best);
        format_cell(text[c][2], r->scores[c].std, false);
        format_cell(text[c][3], r->scores[c].gradient_error, false);
        format_cell(text[c][4], column->paper_mean, false);
        format_cell(text[c][5], column->paper_std, false);
        for (size_t k = 0; k < shown; k++) cells[(c + 1) * shown + k] = text[c][k];
    }
    char caption[128];
    snprintf(caption, sizeof caption,
             "Over %llu runs, the best in bold. Exact maximum likelihood scores %.4g.",
             (unsigned long long)r->runs_done, n2_gaussian_mle_score(s));
    n2_page_table(page, cells, s->n_columns + 1, shown, caption);
}

static void add_setting(n2_text *page, const n2_gaussian_setting *s, const n2_gaussian_result *r,
                        const n2_bias_curve *bias) {
    char heading[96];
    snprintf(heading, sizeof heading, "%zu dimension%s, n = %llu samples a side", s->dim,
             s->dim == 1 ? "" : "s", (unsigned long long)s->n);
    n2_page_section(page, heading);
    add_score_table(page, s, r);
    add_distance_figure(page, s, r);
    if (s->dim == 2) add_plane_figure(page, s, r);
    add_score_figure(page, s, r);
    add_bias_figure(page, bias);
}

n2ce_status n2_gaussian_page(n2ce_ctx *ctx, const n2_gaussian_study *study, char **html) {
    n2_text page = n2_text_new(ctx);
    n2_page_begin(&page, "Gaussian location family",
                  "Noisier noise contrastive estimation against maximum likelihood");
    if (study->interrupted)
        n2_page_paragraph(&page, "The study was interrupted; this page shows the runs that were "
                                 "finished by then.");
    n2_page_paragraph(
        &page,
        "The mean a of N(a, I) is fitted to a target N(a*, I) by gradient ascent on "
        "objectives of the N2CE family, with noise N(0, I) and fresh samples at every "
        "step. The score of a run is the mean over its steps of |a - a*|\xc2\xb2: "
        "smaller is better. Options: seed %s, %s steps of %s.",
        n2ce_options_get(study->options, "seed"), n2ce_options_get(study->options, "steps"),
        n2ce_options_get(study->options, "step-size"));
    for (size_t i = 0; i < study->n_settings; i++)
        add_setting(&page, &study->settings[i], &study->results[i], study->bias[i].curves);
    char footer[64];
    snprintf(footer, sizeof footer, "n2ce %s", n2ce_version());
    n2_page_end(&page, footer);
    return n2_text_take(&page, html);
}
