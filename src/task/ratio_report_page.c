#include "ratio_report.h"

#include "base/numerics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLUE = 0, ORANGE = 1, NEUTRAL = -1 }; /* numerator, denominator, references */

/* A text that goes into the page; if it has failed, so has the page. */
static const char *part_of(n2_text *page, const n2_text *text) {
    if (text->failed) page->failed = true;
    return text->data ? text->data : "";
}

/* ---- the front -------------------------------------------------------------- */

/* Without its folders. */
static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

const char *n2_report_sample(const n2_session *s, size_t side) {
    if (!s->den) return side ? "x and y of one row" : "x and y of different rows";
    const char *path = n2ce_options_get(s->options, side ? "num" : "den");
    if (!path) return side ? "numerator" : "denominator";
    return strcmp(path, "-") == 0 ? "standard input" : base_name(path);
}

/* Four digits, or four decimals if that is fewer. */
static void write_number(char *out, size_t size, double x) {
    const double r = fabs(x);
    snprintf(out, size, "%s%.*f", x < 0 ? "\u2212" : "", r < 10 ? 4 : r < 100 ? 3 : 2, r);
}

n2_page_number n2_report_number(const n2ce_options *o, const char *what, n2_interval v,
                                char value[N2_REPORT_TEXT], char note[N2_REPORT_TEXT]) {
    char lo[32], hi[32];
    write_number(value, N2_REPORT_TEXT, v.value);
    write_number(lo, sizeof lo, v.lo);
    write_number(hi, sizeof hi, v.hi);
    snprintf(note, N2_REPORT_TEXT, "%g %% interval %s to %s%s",
             100 * n2ce_options_number(o, "level"), lo, hi,
             v.lo <= 0 && v.hi >= 0 ? ", consistent with 0" : "");
    return (n2_page_number){what, value, n2ce_options_get(o, "unit"), note};
}

/* Who is who, and how many rows and columns there are. */
static void write_subtitle(const n2_session *s, n2_text *out) {
    const char *file = s->den ? NULL : n2ce_options_get(s->options, "file");
    if (s->den)
        n2_text_add(out, "num is %s, den is %s: ", n2_report_sample(s, 1), n2_report_sample(s, 0));
    else if (file)
        n2_text_add(out, "%s: ", strcmp(file, "-") == 0 ? "standard input" : base_name(file));
    n2_session_samples(s, out);
}

static void add_front(const n2_session *s, const n2_report_front *front, n2_text *page) {
    n2_text subtitle = n2_text_new(page->ctx);
    const n2_judgement *j = front->judgement;
    char verdict[280] = "";
    write_subtitle(s, &subtitle);
    n2_page_begin(page, front->title, part_of(page, &subtitle));
    n2_text_free(&subtitle);
    n2_page_numbers(page, front->numbers, front->n_numbers);
    if (j)
        snprintf(verdict, sizeof verdict, "%s%s%s", n2_trust_name(j->trust), *j->reason ? ": " : "",
                 j->reason);
    n2_page_verdict(page, !j || j->trust == N2_TRUSTED, j ? verdict : front->verdict);
    if (front->more) front->more(front->about, page);
}

/* ---- log ratios -------------------------------------------------------------- */

static void add_tail(n2_text *caption, const char *sample, const n2_histogram *h) {
    const size_t n = h->below + h->above;
    if (n > 0)
        n2_text_add(caption, " Beyond the ends: %zu of %zu (%s; %zu left, %zu right).", n, h->rows,
                    sample, h->below, h->above);
}

static void add_histograms(const n2_session *s, n2_text *page) {
    const n2_ratio_report *r = s->report;
    double x[2][N2_MOST_STEPS], y[2][N2_MOST_STEPS], zero[N2_MOST_STEPS] = {0};
    n2_series series[2];
    for (size_t k = 0; k < 2; k++) {
        const size_t side = 1 - k, n = n2_histogram_steps(&r->f[side], &r->bins, x[k], y[k]);
        series[k] = (n2_series){.label = n2_report_sample(s, side),
                                .x = x[k],
                                .y = y[k],
                                .n = n,
                                .low = zero,
                                .high = y[k],
                                .colour = side ? BLUE : ORANGE};
    }
    const n2_plot plot = {.title = "Log ratios of both samples",
                          .x_label = "log ratio, nats",
                          .y_label = "density of rows",
                          .series = series,
                          .n_series = 2};
    n2_text caption = n2_text_new(page->ctx);
    n2_text_add(&caption, "%s Right of 0 a row is likelier in the numerator.",
                r->seen ? "The kernels were fitted to the same rows."
                        : "Every row is scored by a fit that has not seen it.");
    for (size_t k = 0; k < 2; k++) add_tail(&caption, series[k].label, &r->f[1 - k]);
    n2_page_figure(page, &plot, part_of(page, &caption));
    n2_text_free(&caption);
}

/* Bins with rows enough of either sample: the log of the ratio of their shares should be the log
 * ratio itself. */
typedef struct calibration {
    double x[N2_MOST_BINS], y[N2_MOST_BINS], low[N2_MOST_BINS], high[N2_MOST_BINS];
    size_t n;
} calibration;

static void calibrate(const n2_ratio_report *r, calibration *c) {
    enum { ENOUGH = 5 };
    c->n = 0;
    for (size_t i = 0; i < r->bins.n; i++) {
        const double num = (double)r->f[1].count[i], den = (double)r->f[0].count[i];
        if (num < ENOUGH || den < ENOUGH) continue;
        const double share = log(num / (double)r->f[1].rows) - log(den / (double)r->f[0].rows);
        const double error = sqrt(1 / num + 1 / den);
        c->x[c->n] = (r->f[1].sum[i] + r->f[0].sum[i]) / (num + den);
        c->y[c->n] = share;
        c->low[c->n] = share - 2 * error;
        c->high[c->n++] = share + 2 * error;
    }
}

static void add_calibration(const n2_session *s, n2_text *page) {
    const n2_ratio_report *r = s->report;
    calibration c;
    calibrate(r, &c);
    if (c.n < 2) {
        n2_page_paragraph(page,
                          "The histograms hardly overlap, so there is no picture of the log ratio "
                          "against that of the histograms.");
        return;
    }
    const double ends[2] = {c.x[0], c.x[c.n - 1]};
    const n2_series series[] = {{.label = "if the log ratio is right",
                                 .x = ends,
                                 .y = ends,
                                 .n = 2,
                                 .colour = NEUTRAL,
                                 .dashed = true},
                                {.label = "found, with two standard errors",
                                 .x = c.x,
                                 .y = c.y,
                                 .n = c.n,
                                 .low = c.low,
                                 .high = c.high,
                                 .colour = 2,
                                 .markers = true}};
    const n2_plot plot = {.title = "The log ratio against the histograms",
                          .x_label = "log ratio, nats",
                          .y_label = "log of the histograms' ratio",
                          .series = series,
                          .n_series = 2};
    n2_page_figure(page, &plot,
                   "In each bin with at least 5 rows of both samples, the share of numerator rows "
                   "divided by that of denominator rows: its logarithm should be the log ratio.");
}

/* ---- columns ------------------------------------------------------------------ */

enum { SHOWN = 24, NAME = 80 };

static void name_column(const n2_session *s, size_t c, char out[NAME]) {
    const char *name = s->num->names[c];
    const bool number = strspn(name, "0123456789") == strlen(name);
    snprintf(out, NAME, "%s%s%.64s",
             !s->x_cols      ? ""
             : c < s->x_cols ? "x: "
                             : "y: ",
             number ? "column " : "", name);
}

static void column_caption(const n2_session *s, size_t shown, n2_text *out) {
    const n2_ratio_report *r = s->report;
    n2_text_add(out,
                "What the log ratio loses if %s: mean of %zu rows, with 95 %% intervals. What "
                "columns tell together counts for each of them; columns that tell the same can "
                "hide one another.",
                s->x_cols ? "a row gets the column's value of another row"
                          : "a row of each sample exchange the column's values",
                s->scores.explanation.pairs);
    if (shown < r->columns)
        n2_text_add(out, " The %zu columns with most, of %zu; all are in the JSON.", shown,
                    r->columns);
    if (r->columns < s->num->cols)
        n2_text_add(out, " %zu with one value only are left out.", s->num->cols - r->columns);
}

static void add_columns(const n2_session *s, n2_text *page) {
    const n2_ratio_report *r = s->report;
    char names[SHOWN][NAME], keys[2][160];
    n2_bar bars[SHOWN];
    const size_t n = r->columns < SHOWN ? r->columns : SHOWN;
    for (size_t i = 0; i < n; i++) {
        const n2_column_part *p = &s->scores.explanation.column[r->order[i]];
        name_column(s, r->order[i], names[i]);
        bars[i] = (n2_bar){names[i], {p->num, p->den}, {1.96 * p->num_error, 1.96 * p->den_error}};
    }
    snprintf(keys[0], sizeof keys[0], "fall for %.120s", n2_report_sample(s, 1));
    snprintf(keys[1], sizeof keys[1], "rise for %.120s", n2_report_sample(s, 0));
    const n2_bars chart = {.title = s->x_cols ? "Columns that carry the dependence"
                                              : "Columns that carry the difference",
                           .x_label = "change of the mean log ratio, nats",
                           .key = {s->x_cols ? NULL : keys[0], keys[1]},
                           .colour = {BLUE, ORANGE},
                           .series = s->x_cols ? 1 : 2,
                           .bars = bars,
                           .n = n};
    n2_text caption = n2_text_new(page->ctx);
    column_caption(s, n, &caption);
    n2_page_bars(page, &chart, part_of(page, &caption));
    n2_text_free(&caption);
}

/* ---- stages --------------------------------------------------------------------- */

static void add_stages(const n2_session *s, n2_text *page) {
    const n2_explanation *e = &s->scores.explanation;
    char names[N2_MOST_STAGES][NAME];
    n2_bar bars[N2_MOST_STAGES];
    double sum = 0;
    if (!s->record.learned || e->stages < 2) return;
    for (size_t k = 0; k < e->stages; k++) sum += e->stage[k].gaussian + e->stage[k].learned;
    for (size_t k = 0; k < e->stages; k++) {
        const double part = e->stage[k].gaussian + e->stage[k].learned;
        snprintf(names[k], NAME, "stage %zu, %.0f %%%s", k + 1, 100 * part / sum,
                 k == 0               ? " (at den)"
                 : k + 1 == e->stages ? " (at num)"
                                      : "");
        bars[k] = (n2_bar){names[k], {e->stage[k].gaussian, e->stage[k].learned}, {0, 0}};
    }
    const bool base = s->ratio->base;
    const n2_bars chart = {.title = "Stages and their share",
                           .x_label = "mean log ratio of numerator rows, nats",
                           .key = {base ? "Gaussian part" : NULL, "network"},
                           .colour = {3, 2},
                           .series = 2,
                           .bars = bars,
                           .n = e->stages};
    n2_page_bars(page, &chart,
                 "The log ratio is a sum over stages between waymarks from the denominator to the "
                 "numerator; together they are the mean log ratio of numerator rows.");
}

/* ---- training --------------------------------------------------------------------- */

static void add_curves(const n2_session *s, n2_text *page) {
    const n2_fit_record *record = &s->record;
    double gain[N2_MOST_FOLDS][N2_MOST_LOOKS];
    char names[N2_MOST_FOLDS][64];
    n2_series series[N2_MOST_FOLDS + 1];
    double end = 1;
    if (record->folds_run == 0) return;
    for (size_t k = 0; k < record->folds_run; k++) {
        const n2_critic_record *f = &record->fold[k];
        for (size_t i = 0; i < f->curve.n; i++) gain[k][i] = f->curve.loss[i] - f->base_loss;
        end = fmax(end, (double)f->steps);
        snprintf(names[k], sizeof names[k], "fold %zu, kept at %zu", k + 1, f->best_step);
        series[k + 1] = (n2_series){
            .label = names[k], .x = f->curve.step, .y = gain[k], .n = f->curve.n, .colour = (int)k};
    }
    const double x[2] = {0, end}, zero[2] = {0, 0};
    series[0] = (n2_series){.label = s->ratio->base ? "Gaussian part alone" : "no ratio at all",
                            .x = x,
                            .y = zero,
                            .n = 2,
                            .colour = NEUTRAL,
                            .dashed = true};
    const n2_plot plot = {.title = "Learning curves",
                          .x_label = "training steps",
                          .y_label = "change of the held-out loss",
                          .series = series,
                          .n_series = record->folds_run + 1};
    n2_page_figure(page, &plot,
                   record->learned
                       ? "Loss on rows that training does not see, for the network of each fold. "
                         "The weights of the lowest point are kept."
                       : "Loss on rows that training does not see. The networks did not lower that "
                         "of other held-out rows by more than its error, so they were left out.");
}

/* ---- checks ----------------------------------------------------------------------- */

enum { CHECKS = 5 }; /* columns of the table */

/* What is resting on a handful of rows tells nothing. */
static void mean_row(const n2_session *s, size_t side, char text[CHECKS][NAME]) {
    enum { FEW = 5 };
    const n2_report_check *c = &s->report->mean[side];
    const double rows = c->share * (double)s->scores.n[side];
    snprintf(text[0], NAME, "%s", side ? "mean of 1/r over num" : "mean of r over den");
    snprintf(text[1], NAME, "%.4g", c->found.value);
    snprintf(text[2], NAME, "%.2g", c->found.error);
    if (rows < FEW) strcpy(text[1], strcpy(text[2], "\u2013"));
    snprintf(text[3], NAME, "1");
    snprintf(text[4], NAME, "%.2g %%", 100 * c->share);
}

static void add_checks(const n2_session *s, n2_text *page) {
    enum { ROWS = 3 + N2_REPORT_BALANCES };
    static const char *const header[CHECKS] = {"check", "found", "std. error", "if right",
                                               "effective rows"};
    const n2_ratio_report *r = s->report;
    char text[ROWS][CHECKS][NAME] = {{{0}}};
    const char *cells[ROWS * CHECKS];
    for (size_t k = 0; k < N2_REPORT_BALANCES; k++) {
        const n2_report_check *c = &r->balance[k];
        const bool used = c->magnitude == r->used_balance;
        snprintf(text[k + 1][0], NAME, "%sbalance at M = %g", used ? "*" : "", c->magnitude);
        snprintf(text[k + 1][1], NAME, "%s%.4f", used ? "*" : "", c->found.value);
        snprintf(text[k + 1][2], NAME, "%s%.4f", used ? "*" : "", c->found.error);
        snprintf(text[k + 1][3], NAME, "0");
    }
    for (size_t side = 0; side < 2; side++) mean_row(s, side, text[N2_REPORT_BALANCES + 1 + side]);
    for (size_t i = 0; i < ROWS * CHECKS; i++)
        cells[i] = i < CHECKS ? header[i] : text[i / CHECKS][i % CHECKS];
    n2_page_section(page, "Checks");
    n2_page_paragraph(page,
                      "With r the ratio, balance(M) is the mean of M r / (M + r) over the "
                      "denominator minus that of M / (M + r) over the numerator. Large M look at "
                      "large ratios, which few rows have; the one in bold is used for the "
                      "estimate and its verdict. The means of r and 1/r are the strictest checks "
                      "and the noisiest.");
    n2_page_table(page, cells, ROWS, CHECKS, NULL);
}

/* ---- what was chosen ---------------------------------------------------------------- */

static bool chosen(const n2ce_options *o, const char *name) {
    return strcmp(n2ce_options_get(o, name), "auto") == 0;
}

static void add_network_choices(const n2_session *s, n2_text *page) {
    const n2_fit_record *r = &s->record;
    const n2_critic_options *c = &r->used.critic;
    if (r->raced && r->learned)
        n2_page_fact(page, "magnitude M", "%.4g, the best of %s by the loss of held-out rows",
                     c->magnitude, r->race);
    else
        n2_page_fact(page, "magnitude M", "%.4g%s", c->magnitude,
                     chosen(s->options, "M") ? ", from the number of rows" : ", as asked");
    n2_page_fact(page, "stages", "%zu%s", c->stages,
                 !chosen(s->options, "stages") ? ", as asked"
                 : c->stages > 1
                     ? ": the samples are so far apart that one ratio would have to bridge too much"
                     : ": the samples are near enough for one ratio");
    n2_page_fact(page, "network",
                 "width %zu, %zu residual block%s, at most %zu steps in each of %zu folds",
                 c->width, c->blocks, c->blocks == 1 ? "" : "s", c->steps, r->used.folds);
    n2_page_fact(page, "device", "%s", n2_session_device(s));
}

static const char *parts_of(const n2_session *s) {
    const n2_fit_record *r = &s->record;
    if (s->ratio->kernel) return "a sum of kernels";
    if (r->learned) return s->ratio->base ? "Gaussian part and network" : "a network";
    return r->folds_run > 0 ? "Gaussian part alone: the network found nothing more on held-out rows"
                            : "Gaussian part alone; no network was trained";
}

static void add_choices(const n2_session *s, n2_text *page) {
    const n2_fit_record *r = &s->record;
    n2_page_section(page, "What was chosen, and why");
    n2_page_facts_begin(page);
    n2_page_fact(page, "method", "%s", n2ce_options_get(s->options, "method"));
    n2_page_fact(page, "log ratio", "%s", parts_of(s));
    if (s->ratio->base && isfinite(r->gaussian))
        n2_page_fact(page, "Gaussian part", "%.4g nats, from means and covariances", r->gaussian);
    if (r->folds_run > 0) add_network_choices(s, page);
    if (r->mapped)
        n2_page_fact(page, "scaling", "normal margins for %zu of %zu columns", r->mapped,
                     s->num->cols);
    else
        n2_page_fact(page, "scaling", "columns as they are, standardised");
    n2_page_fact(page, "seed", "%s", n2ce_options_get(s->options, "seed"));
    n2_page_facts_end(page);
}

n2ce_status n2_report_page(const n2_session *s, const n2_report_front *front, n2ce_answer *answer) {
    char footer[96];
    if (!s->report) return N2CE_OK;
    n2_text page = n2_text_new(s->ctx);
    add_front(s, front, &page);
    n2_page_section(&page, "Log ratios");
    add_histograms(s, &page);
    add_calibration(s, &page);
    n2_page_section(&page, "What they are made of");
    add_columns(s, &page);
    add_stages(s, &page);
    add_curves(s, &page);
    add_checks(s, &page);
    add_choices(s, &page);
    snprintf(footer, sizeof footer, "n2ce %s, n2ce %s", front->verb, n2ce_version());
    n2_page_end(&page, footer);
    const n2ce_status status = n2_text_take(&page, &answer->html);
    n2_text_free(&page);
    return status;
}
