/* The study of distillation as an HTML report. */
#include "distill_study.h"
#include "report/page.h"

#include <math.h>
#include <stdio.h>

/* ---- curves ---- */

/* Of an arm, the mean over seeds at each look, and from the least to the most. */
typedef struct arm_curve {
    double x[N2_CURVE_POINTS], y[N2_CURVE_POINTS], low[N2_CURVE_POINTS], high[N2_CURVE_POINTS];
    size_t n;
} arm_curve;

static void add_seed(arm_curve *c, const n2_curve *from, double share) {
    if (c->n == 0 || from->n < c->n) c->n = from->n;
    for (size_t i = 0; i < from->n; i++) {
        const double d = from->point[i].distance;
        c->x[i] = from->point[i].seen / 1e6;
        c->y[i] += d * share;
        c->low[i] = c->low[i] > 0 && c->low[i] < d ? c->low[i] : d;
        c->high[i] = fmax(c->high[i], d);
    }
}

static bool gather(const n2_distill_study *s, size_t arm, arm_curve *out) {
    size_t seeds = 0;
    *out = (arm_curve){.n = 0};
    for (size_t k = 0; k < s->n_seeds; k++) {
        const n2_distill_run *r = n2_distill_run_at(s, arm, k);
        seeds += r->done && r->curve.n > 0;
    }
    for (size_t k = 0; k < s->n_seeds && seeds; k++) {
        const n2_distill_run *r = n2_distill_run_at(s, arm, k);
        if (r->done && r->curve.n > 0) add_seed(out, &r->curve, 1 / (double)seeds);
    }
    return out->n > 1;
}

static void add_curves(n2_text *page, const n2_distill_study *s, size_t first, size_t last,
                       const char *title) {
    n2_series series[N2_DISTILL_ARMS];
    arm_curve *curves = n2_arena_alloc(s->arena, N2_DISTILL_ARMS, sizeof *curves);
    size_t n = 0;
    for (size_t arm = first; curves && arm <= last; arm++) {
        arm_curve *c = &curves[n];
        if (!gather(s, arm, c)) continue;
        series[n] = (n2_series){.label = n2_distill_arms[arm].title,
                                .x = c->x,
                                .y = c->y,
                                .n = c->n,
                                .low = s->n_seeds > 1 ? c->low : NULL,
                                .high = s->n_seeds > 1 ? c->high : NULL,
                                .colour = (int)n};
        n++;
    }
    const n2_plot plot = {.title = title,
                          .x_label = "million pictures seen",
                          .y_label = "Fr\303\251chet distance",
                          .y_log = true,
                          .series = series,
                          .n_series = n};
    if (n) n2_page_figure(page, &plot, "Mean over seeds; bands go from the least to the most.");
}

/* ---- distances ---- */

static void add_bars(n2_text *page, const n2_distill_study *s) {
    n2_bar bars[N2_DISTILL_ARMS];
    size_t n = 0;
    for (size_t arm = 0; arm < N2_DISTILL_ARMS; arm++) {
        const n2_tally t = n2_distill_summarise(s, arm).frechet;
        if (t.n == 0) continue;
        bars[n] = (n2_bar){.label = n2_distill_arms[arm].title};
        bars[n].value[0] = n2_tally_mean(&t);
        bars[n].error[0] = t.n > 1 ? n2_tally_spread(&t) : 0;
        n++;
    }
    const n2_bars all = {.title = "Fr\303\251chet distance",
                         .x_label = "of samples from the pictures; less is better",
                         .key = {"at the end"},
                         .colour = {0},
                         .series = 1,
                         .bars = bars,
                         .n = n};
    n2_page_bars(page, &all, "Mean over seeds; whiskers are one standard deviation.");
}

static void add_sheets(n2_text *page, const n2_distill_study *s) {
    n2_page_section(page, "Samples");
    for (size_t arm = 0; arm < N2_DISTILL_ARMS; arm++) {
        const n2_text *png = &n2_distill_run_at(s, arm, 0)->sheet;
        char caption[96];
        snprintf(caption, sizeof caption, "%s, first seed.", n2_distill_arms[arm].title);
        if (png->length)
            n2_page_picture(page, png->data, png->length, n2_distill_arms[arm].title, caption);
    }
}

/* ---- the page ---- */

n2ce_status n2_distill_page(n2ce_ctx *ctx, const n2_distill_study *s, char **html) {
    n2_text page = n2_text_new(ctx);
    n2_text_table table;
    char footer[64];
    const n2ce_status status = n2_distill_table(s, s->arena, &table);
    if (status != N2CE_OK) return status;
    n2_page_begin(&page, "Distillation", "Students of one diffusion model");
    if (s->interrupted || s->out_of_time)
        n2_page_paragraph(&page, "The study was stopped; this page shows the runs that were "
                                 "finished by then.");
    n2_page_paragraph(&page, "%s", n2_distill_caveat);
    n2_page_table(&page, table.cells, table.n_rows, table.n_columns,
                  "Mean +- standard deviation over seeds.");
    add_bars(&page, s);
    add_curves(&page, s, N2_ARM_DXMI_M100 + 1, N2_DISTILL_ARMS - 1, "One step");
    add_curves(&page, s, 2, N2_ARM_DXMI_M100, "Ten steps");
    add_sheets(&page, s);
    n2_page_section(&page, "Settings");
    n2_page_code(&page, s->settings);
    snprintf(footer, sizeof footer, "n2ce %s", n2ce_version());
    n2_page_end(&page, footer);
    return n2_text_take(&page, html);
}
