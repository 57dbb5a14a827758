/* The study of anomalies as an HTML report. */
#include "anomaly_study.h"
#include "report/page.h"

#include <stdio.h>

enum { SHEET_COLUMNS = 12 };

/* Precision over recall: a line a method, of its first run. */
static void add_curves(n2_text *page, const n2_anomaly_study *s, size_t digit) {
    n2_series series[N2_ANOMALY_METHODS + 1];
    double recall[N2_ANOMALY_CURVE], chance[N2_ANOMALY_CURVE];
    char title[32];
    size_t n = 0;
    for (size_t i = 0; i < N2_ANOMALY_CURVE; i++) {
        recall[i] = (double)i / (N2_ANOMALY_CURVE - 1);
        chance[i] = n2_anomaly_prevalence(s, digit);
    }
    for (size_t m = 0; m < s->n_methods; m++) {
        const n2_anomaly_run *r = n2_anomaly_run_at(s, digit, m, 0);
        if (!r->done || r->failed) continue;
        series[n] = (n2_series){.label = s->methods[m]->name, .x = recall, .y = r->precision};
        series[n].n = N2_ANOMALY_CURVE;
        series[n++].colour = (int)(m % N2_PLOT_COLOURS);
    }
    if (n == 0) return;
    series[n] = (n2_series){.label = "chance", .x = recall, .y = chance, .n = N2_ANOMALY_CURVE};
    series[n].colour = -1;
    series[n++].dashed = true;
    snprintf(title, sizeof title, "Digit %d", s->digits[digit]);
    const n2_plot plot = {.title = title,
                          .x_label = "recall",
                          .y_label = "precision",
                          .y_min = 0,
                          .y_max = 1,
                          .series = series,
                          .n_series = n};
    n2_page_figure(page, &plot, "Precision over recall, first seed, last checkpoint.");
}

/* AUPRC over the steps of training: a line a method, of its first run. */
static void add_checks(n2_text *page, const n2_anomaly_study *s, size_t digit) {
    n2_series series[N2_ANOMALY_METHODS];
    double x[N2_ANOMALY_METHODS][N2_ANOMALY_CHECKS], y[N2_ANOMALY_METHODS][N2_ANOMALY_CHECKS];
    char title[32];
    size_t n = 0;
    for (size_t m = 0; m < s->n_methods; m++) {
        const n2_anomaly_run *r = n2_anomaly_run_at(s, digit, m, 0);
        if (r->n_checks < 2) continue;
        for (size_t i = 0; i < r->n_checks; i++) {
            x[n][i] = r->checks[i].step;
            y[n][i] = r->checks[i].auprc;
        }
        series[n] = (n2_series){.label = s->methods[m]->name, .x = x[n], .y = y[n]};
        series[n].n = r->n_checks;
        series[n].markers = true;
        series[n++].colour = (int)(m % N2_PLOT_COLOURS);
    }
    if (n == 0) return;
    snprintf(title, sizeof title, "Digit %d in training", s->digits[digit]);
    const n2_plot plot = {
        .title = title, .x_label = "steps", .y_label = "AUPRC", .series = series, .n_series = n};
    n2_page_figure(page, &plot, "AUPRC after so many steps, first seed. Nothing is chosen by it.");
}

static n2ce_status add_tables(n2_text *page, const n2_anomaly_study *s, n2_arena *arena) {
    static const struct {
        n2_anomaly_table which;
        const char *caption;
    } tables[] = {
        {N2_ANOMALY_LAST, "AUPRC of the last checkpoint, mean +- standard deviation over seeds"},
        {N2_ANOMALY_BEST, "AUPRC of the best checkpoint, chosen by the test pictures themselves"},
        {N2_ANOMALY_AUROC, "AUROC of the last checkpoint"},
    };
    n2_text_table t;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        N2_TRY(n2_anomaly_table_of(s, tables[i].which, arena, &t));
        if (t.n_rows) n2_page_table(page, t.cells, t.n_rows, t.n_columns, tables[i].caption);
    }
    N2_TRY(n2_anomaly_parts_table(s, arena, &t));
    if (t.n_rows)
        n2_page_table(page, t.cells, t.n_rows, t.n_columns, "AUPRC of parts of the scores");
    return N2CE_OK;
}

/* ---- pictures -------------------------------------------------------------------------------- */

static n2ce_status add_sheet(n2_text *page, const n2_images *pictures, const size_t *numbers,
                             size_t n, const char *alt, const char *caption) {
    n2_images *some;
    if (n == 0) return N2CE_OK;
    for (size_t i = 0; i < n; i++)
        if (numbers[i] >= pictures->n) return N2CE_OK; /* of another data set */
    n2_text png = n2_text_new(page->ctx);
    N2_TRY(n2_images_pick(pictures, numbers, n, &some));
    const n2ce_status status = n2_images_sheet_bytes(some, n, SHEET_COLUMNS, &png);
    n2_images_free(some);
    if (status == N2CE_OK) n2_page_picture(page, png.data, png.length, alt, caption);
    page->failed |= png.failed;
    n2_text_free(&png);
    return status == N2CE_EINVAL ? N2CE_OK : status; /* without libpng there are none */
}

/* What one method finds oddest, of its first run on a digit. */
static n2ce_status add_sheets(n2_text *page, const n2_anomaly_study *s, size_t digit, size_t m) {
    const n2_anomaly_run *r = n2_anomaly_run_at(s, digit, m, 0);
    char alt[64], caption[160];
    if (!r->done || r->failed || !s->pictures) return N2CE_OK;
    snprintf(alt, sizeof alt, "Pictures of the digit %d", s->digits[digit]);
    snprintf(caption, sizeof caption, "Digit %d held out, %s: those that score highest, of %.3f.",
             s->digits[digit], s->methods[m]->name, r->auprc);
    N2_TRY(add_sheet(page, s->pictures, r->odd, r->n_odd, alt, caption));
    snprintf(caption, sizeof caption, "Digit %d held out, %s: the normal ones that score highest.",
             s->digits[digit], s->methods[m]->name);
    return add_sheet(page, s->pictures, r->normal, r->n_normal, "Pictures of other digits",
                     caption);
}

static n2ce_status add_pictures(n2_text *page, const n2_anomaly_study *s) {
    n2_page_section(page, "Pictures that are found oddest");
    for (size_t d = 0; d < s->n_digits; d++)
        for (size_t m = 0; m < s->n_methods; m++) N2_TRY(add_sheets(page, s, d, m));
    return N2CE_OK;
}

n2ce_status n2_anomaly_study_page(n2ce_ctx *ctx, const n2_anomaly_study *s, char **html) {
    n2_text page = n2_text_new(ctx);
    n2_arena arena = n2_arena_new(ctx);
    char footer[64];
    n2_page_begin(&page, "Anomalies of MNIST", "Methods that never saw a digit look for it");
    if (s->interrupted)
        n2_page_paragraph(&page,
                          "The study was interrupted; this page shows the %zu runs that were "
                          "finished by then.",
                          s->n_done);
    n2_page_paragraph(&page, "%s", n2_anomaly_caveat);
    n2ce_status status = add_tables(&page, s, &arena);
    n2_page_section(&page, "Precision and recall");
    for (size_t d = 0; d < s->n_digits; d++) add_curves(&page, s, d);
    for (size_t d = 0; d < s->n_digits; d++) add_checks(&page, s, d);
    if (status == N2CE_OK) status = add_pictures(&page, s);
    n2_arena_free(&arena);
    snprintf(footer, sizeof footer, "n2ce %s", n2ce_version());
    n2_page_end(&page, footer);
    const n2ce_status taken = n2_text_take(&page, html);
    return status == N2CE_OK ? taken : status;
}
