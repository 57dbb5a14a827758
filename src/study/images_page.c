/* The study of pictures as an HTML report. */
#include "images_study.h"
#include "report/page.h"

#include <stdio.h>

/* ---- distances ---- */

static void add_bars(n2_text *page, const n2_images_study *s) {
    n2_bar bars[N2_IMAGES_ARMS];
    size_t n = 0;
    for (size_t arm = 0; arm < N2_IMAGES_ARMS; arm++) {
        n2_bar *b = &bars[n];
        *b = (n2_bar){.label = n2_images_arms[arm].title};
        for (size_t stage = 0; stage < N2_IMAGES_STAGES; stage++) {
            const n2_tally t = n2_images_summarise(s, arm, stage).frechet;
            b->value[stage] = t.n ? n2_tally_mean(&t) : N2_NAN;
            b->error[stage] = t.n > 1 ? n2_tally_spread(&t) : 0;
        }
        if (isfinite(b->value[0])) n++;
    }
    const n2_bars all = {.title = "Fr\303\251chet distance",
                         .x_label = "of samples from the pictures; less is better",
                         .key = {"codes stand still", "refined together"},
                         .colour = {0, 1},
                         .series = 2,
                         .bars = bars,
                         .n = n};
    n2_page_bars(page, &all, "Mean over seeds; whiskers are one standard deviation.");
}

/* ---- learning ---- */

typedef struct curve {
    double x[N2_LEBM_LOOKS_MAX], y[3][N2_LEBM_LOOKS_MAX];
    size_t n;
} curve;

/* Steps go on from phase to phase: before each stand those of the phases before. */
static void add_looks(curve *c, const n2_lebm_record *r, const uint64_t *steps) {
    for (size_t i = 0; i < r->looks && c->n < N2_LEBM_LOOKS_MAX; i++) {
        c->x[c->n] = (double)r->look[i].step;
        for (size_t k = 0; k < r->look[i].phase; k++) c->x[c->n] += (double)steps[k];
        c->y[0][c->n] = r->look[i].misfit;
        c->y[1][c->n] = r->look[i].divergence;
        c->y[2][c->n] = 0;
        for (size_t k = 0; k < N2_PRIOR_STAGES_MAX; k++) c->y[2][c->n] += r->look[i].ratio[k];
        c->n++;
    }
}

static void add_curve(n2_text *page, const curve *c, size_t which, const char *title,
                      const char *label) {
    const n2_series line = {.x = c->x, .y = c->y[which], .n = c->n, .markers = true};
    const n2_plot plot = {.title = title,
                          .x_label = "step of vae, then of prior, joint and settle",
                          .y_label = label,
                          .series = &line,
                          .n_series = 1};
    n2_page_figure(page, &plot, "N2CE with M = 100 and K = 3, first seed, of 256 pictures.");
}

static void add_learning(n2_text *page, const n2_images_study *s) {
    const n2_lebm_record *r = n2_images_run_at(s, N2_IMAGES_ARMS - 1, 0)->record;
    const uint64_t *steps = s->plan.schedule.steps;
    curve c = {.n = 0};
    if (!r) return;
    add_looks(&c, &s->vae, steps);
    add_looks(&c, &r[N2_IMAGES_FROZEN], steps);
    add_looks(&c, &r[N2_IMAGES_JOINT], steps);
    n2_page_section(page, "Learning");
    add_curve(page, &c, 0, "Misfit", "squared error of a picture");
    add_curve(page, &c, 1, "Divergence", "of posteriors from N(0, I), nats");
    add_curve(page, &c, 2, "Log ratio f", "on codes of pictures, nats");
}

/* ---- pictures ---- */

static void add_sheet(n2_text *page, const n2_text *png, const char *alt, const char *caption) {
    if (png->length) n2_page_picture(page, png->data, png->length, alt, caption);
}

static void add_sheets(n2_text *page, const n2_images_study *s) {
    char caption[160];
    n2_page_section(page, "Samples");
    for (size_t arm = 0; arm < N2_IMAGES_ARMS; arm++) {
        const n2_images_run *r = n2_images_run_at(s, arm, 0);
        const bool joint = r->score[N2_IMAGES_JOINT].done;
        snprintf(caption, sizeof caption, "%s%s, first seed.", n2_images_arms[arm].title,
                 joint ? ", refined together" : "");
        add_sheet(page, &r->sheet, n2_images_arms[arm].title, caption);
    }
    add_sheet(
        page, &s->chains, "chains",
        "Chains of Langevin dynamics on the prior of N2CE with K = 3, a row each, after 0, 1, "
        "2, 5, 10, 20, 50 and 100 steps from its base.");
    add_sheet(page, &s->pairs, "reconstructions",
              "Pictures, and what their codes become, in turns.");
    add_sheet(page, &s->lines, "interpolations",
              "On lines between the codes of two pictures, a row each.");
}

/* ---- the page ---- */

static void add_head(n2_text *page, const n2_images_study *s) {
    const n2_images *p = s->set.train;
    if (s->interrupted || s->out_of_time)
        n2_page_paragraph(page, "The study was stopped; this page shows the runs that were "
                                "finished by then.");
    n2_page_paragraph(page, "%zu pictures of %s, %zu x %zu; %zu made with each prior; %zu seed%s.",
                      p->n, s->set.name, p->height, p->width, s->number, s->n_seeds,
                      s->n_seeds == 1 ? "" : "s");
    n2_page_paragraph(page, "%s", n2_images_caveat);
}

n2ce_status n2_images_page(n2ce_ctx *ctx, const n2_images_study *s, char **html) {
    n2_text page = n2_text_new(ctx);
    n2_text_table table;
    char footer[64];
    const n2ce_status status = n2_images_table(s, s->arena, &table);
    if (status != N2CE_OK) return status;
    n2_page_begin(&page, "Pictures", "Priors of the codes of one autoencoder");
    add_head(&page, s);
    n2_page_table(&page, table.cells, table.n_rows, table.n_columns,
                  "Mean +- standard deviation over seeds.");
    add_bars(&page, s);
    add_sheets(&page, s);
    add_learning(&page, s);
    n2_page_section(&page, "Settings");
    n2_page_code(&page, s->settings);
    snprintf(footer, sizeof footer, "n2ce %s", n2ce_version());
    n2_page_end(&page, footer);
    return n2_text_take(&page, html);
}
