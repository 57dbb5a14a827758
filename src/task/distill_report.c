#include "distill_report.h"

#include "base/numerics.h"
#include "diffusion_options.h"
#include "report/page.h"

#include <math.h>
#include <stdio.h>

static const n2_curve_point *last_of(const n2_distilled *d) {
    const n2_curve *c = &d->record.curve;
    return c->n ? &c->point[c->n - 1] : NULL;
}

static const char *title_of(const n2_distilled *d) {
    return d->task.plan.method == N2_DISTILL_DXMI  ? "DxMI"
           : d->task.plan.method == N2_DISTILL_SID ? "SiD"
           : d->task.start                         ? "SiD2A"
                                                   : "SiDA";
}

/* The loss that tells real pictures from made ones. */
static void say_loss(const n2_distilled *d, char out[64]) {
    const n2_critic *c = &d->task.plan.critic;
    const bool dxmi = d->task.plan.method == N2_DISTILL_DXMI;
    if (d->task.plan.method == N2_DISTILL_SID)
        snprintf(out, 64, "no discriminator");
    else if (c->published)
        snprintf(out, 64, dxmi ? "contrastive divergence" : "logistic loss");
    else
        snprintf(out, 64, "N2CE, M = %g, lambda = %g", c->magnitude, c->lambda);
}

/* ---- text ---- */

static void say(n2_text *text, const n2_distilled *d) {
    const n2_curve_point *last = last_of(d);
    const char *const *names = n2_distill_numbers(d->task.plan.method);
    char loss[64];
    say_loss(d, loss);
    n2_text_add(text, "method     %s, %s\n", title_of(d), loss);
    n2_text_add(text, "steps      %llu of %lld pictures, on %s\n",
                (unsigned long long)d->record.steps, (long long)d->task.plan.batch, d->device);
    if (last) {
        n2_text_add(text, "at the end");
        for (size_t k = 0; names[k]; k++)
            n2_text_add(text, "%s %s %.4g", k ? "," : "", names[k], last->number[k]);
        if (isfinite(last->distance))
            n2_text_add(text, "; Frechet distance of %zu samples %.4g", d->watched, last->distance);
        n2_text_add(text, "\n");
    }
    if (d->record.out_of_time)
        n2_text_add(text, "The time limit ended it before all steps were done.\n");
    n2_text_add(text, "model      %s\n", d->output);
}

static void say_json(n2_text *json, const n2_distilled *d) {
    n2_text_add(json, "{\"options\": ");
    n2_options_json(d->options, json);
    n2_text_add(json, ", \"model\": ");
    n2_denoiser_spec_json(&d->student->spec, json);
    n2_text_add(json, ", \"device\": \"%s\", \"steps\": %llu", d->device,
                (unsigned long long)d->record.steps);
    n2_text_add(json, ", \"out_of_time\": %s, \"resumed\": %s, \"curve\": ",
                d->record.out_of_time ? "true" : "false", d->record.resumed ? "true" : "false");
    n2_curve_json(&d->record.curve, n2_distill_numbers(d->task.plan.method), json);
    n2_text_add(json, "}\n");
}

/* ---- the page ---- */

static void add_curve(n2_text *page, const n2_distilled *d, int which, const char *title) {
    const n2_curve *c = &d->record.curve;
    double x[N2_CURVE_POINTS], y[N2_CURVE_POINTS];
    for (size_t i = 0; i < c->n; i++) {
        x[i] = c->point[i].seen / 1e6;
        y[i] = which < 0 ? c->point[i].distance
               : i == 0  ? N2_NAN /* nothing was learnt yet */
                         : c->point[i].number[which];
    }
    const n2_series line = {.x = x, .y = y, .n = c->n, .markers = true};
    const n2_plot plot = {.title = title,
                          .x_label = "million pictures seen",
                          .y_label = title,
                          .y_log = which < 0,
                          .series = &line,
                          .n_series = 1};
    n2_page_figure(page, &plot,
                   which < 0 ? "Of samples from the pictures; less is better."
                             : "Running mean over steps.");
}

static void add_samples(n2_text *page, const n2_distilled *d) {
    enum { SHOWN = 64 };
    const n2_sampling how = n2_denoiser_sampling(&d->student->spec);
    n2_images *made;
    n2_text png = n2_text_new(d->student->ctx);
    if (n2_denoiser_sample(d->student, &how, -1, SHOWN, 0, &made) != N2CE_OK) return;
    if (n2_images_sheet_bytes(made, 0, 0, &png) == N2CE_OK)
        n2_page_picture(page, png.data, png.length, "samples", "Samples of the student.");
    n2_text_free(&png);
    n2_images_free(made);
}

static n2ce_status write_page(n2ce_ctx *ctx, const n2_distilled *d, char **html) {
    const char *const *names = n2_distill_numbers(d->task.plan.method);
    n2_text page = n2_text_new(ctx);
    char loss[64], footer[64];
    say_loss(d, loss);
    n2_page_begin(&page, "Distillation", title_of(d));
    n2_page_paragraph(&page, "%s of %lld x %lld pictures: %s; %llu steps of %lld pictures.",
                      title_of(d), (long long)d->student->spec.height,
                      (long long)d->student->spec.width, loss, (unsigned long long)d->record.steps,
                      (long long)d->task.plan.batch);
    add_curve(&page, d, -1, "Fr\303\251chet distance");
    for (int k = 0; names[k]; k++) add_curve(&page, d, k, names[k]);
    add_samples(&page, d);
    snprintf(footer, sizeof footer, "n2ce %s", n2ce_version());
    n2_page_end(&page, footer);
    return n2_text_take(&page, html);
}

n2ce_status n2_distill_answer(n2ce_ctx *ctx, const n2_distilled *d, n2ce_answer *answer) {
    const n2_curve_point *last = last_of(d);
    n2_writer w = n2_writer_new(ctx);
    say(&w.text, d);
    say_json(&w.json, d);
    n2_text_add_number(&w.brief, last ? last->distance : N2_NAN);
    n2_text_add(&w.brief, "\n");
    n2_text_add(&w.kept, "the model\n");
    if (last) n2_note_number(answer, "distance", last->distance);
    N2_TRY(n2_writer_take(&w, answer));
    return n2ce_options_get(d->options, "report") ? write_page(ctx, d, &answer->html) : N2CE_OK;
}
