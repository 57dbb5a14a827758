/* optimize: the answer, as text, JSON, bare numbers and a page. */
#include "verb_optimize.h"

#include "base/numerics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double seen_best(const n2_optimize_result *r) { return n2_optimize_best(r); }
static double predicted(const n2_optimize_result *r, size_t i) {
    return n2_optimize_predicted(r, i);
}

/* ---- what to be careful about -------------------------------------------- */

static void add_warning(n2_optimize_notes *w, const char *format, double a, double b) {
    if (w->n < N2_OPTIMIZE_NOTES) snprintf(w->text[w->n++], sizeof w->text[0], format, a, b);
}

static n2_optimize_notes find_warnings(const n2_optimize_result *r) {
    n2_optimize_notes w = {.n = 0};
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
    const n2_optimize_notes w = find_warnings(r);
    for (size_t i = 0; i < w.n; i++) n2_log(ctx, N2CE_LOG_WARNING, "%s", w.text[i]);
}

/* ---- text ---------------------------------------------------------------- */

void n2_optimize_expected(const n2_optimize_result *r, double *mean, double *low, double *high) {
    const bool turned = r->t->sign < 0;
    *mean = 0;
    for (size_t i = 0; i < r->proposals.rows; i++)
        *mean += predicted(r, i) / (double)r->proposals.rows;
    *low = r->t->sign * (turned ? r->proposals.high : r->proposals.low);
    *high = r->t->sign * (turned ? r->proposals.low : r->proposals.high);
    if (*low == 0 && *high == 0) *low = *high = N2_NAN;
}

static void say_expected(const n2_optimize_result *r, n2_text *out) {
    double mean, low, high;
    n2_optimize_expected(r, &mean, &low, &high);
    n2_text_add(out, "expected    %.6g on average", mean);
    if (!isnan(low)) n2_text_add(out, "; %.6g to %.6g with 80 %%", low, high);
    n2_text_add(out, "\n");
    if (r->record.trials > 0)
        n2_text_add(out,
                    "trials      with hidden rows say: believe predictions up to %.3g standard "
                    "deviations above the best\n",
                    r->record.ambition);
}

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

static void write_text(const n2_optimize_result *r, const n2_optimize_notes *w, n2_text *out) {
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
    say_expected(r, out);
    n2_text_add(out, "model       explains %.3g of the variance of held-out rows", fmax(a->r2, 0));
    if (strcmp(r->device, "cpu") != 0) n2_text_add(out, ", trained on %s", r->device);
    n2_text_add(out, "\n");
    if (n2_optimize_chose_device(r))
        n2_text_add(out, "device      %s (%s)\n", r->device, r->reason);
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

static void add_values(n2_text *out, const char *name, const double *x, size_t n, double sign) {
    n2_text_add_json_string(out, name);
    n2_text_add(out, ": [");
    for (size_t i = 0; i < n; i++) {
        if (i) n2_text_add(out, ", ");
        n2_text_add_number(out, sign * x[i]);
    }
    n2_text_add(out, "]");
}

static void add_list(n2_text *out, const char *name, const double *x, size_t n, double sign) {
    add_values(out, name, x, n, sign);
    n2_text_add(out, ", ");
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

/* What is predicted of every objective, by the CSV's names, and behind several of them the column
 * that says which proposals no other one is better than in all. */
static void add_objectives(const n2_design_table *t, size_t rows, n2_text *out) {
    const size_t n = t->n_also > 1 ? t->n_also - 1 : t->n_also;
    if (n == 0) return;
    n2_text_add(out, "\"objectives\": {");
    for (size_t k = 0; k < n; k++) {
        if (k) n2_text_add(out, ", ");
        add_values(out, t->also_name[k], t->also + k * rows, rows, 1);
    }
    n2_text_add(out, "}, ");
    if (t->n_also > n) add_list(out, t->also_name[n], t->also + n * rows, rows, 1);
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
    n2_text_add(out, "\"scale\": \"%s\", ", a->y_log ? "log" : "plain");
    add_number(out, "structure", a->structure);
    add_number(out, "narrow", a->narrow);
    add_number(out, "ambition", a->ambition);
    add_number(out, "cut", a->cut);
    n2_text_add(out, "\"outdone\": %s, ", a->outdone ? "true" : "false");
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

static void add_expected(const n2_optimize_result *r, n2_text *out) {
    double mean, low, high;
    n2_optimize_expected(r, &mean, &low, &high);
    n2_text_add(out, "\"expected\": {");
    add_number(out, "mean", mean);
    add_number(out, "low", low);
    n2_text_add(out, "\"high\": ");
    n2_text_add_number(out, high);
    n2_text_add(out, "}, ");
}

static void write_json(const n2_optimize_result *r, const n2_optimize_notes *w, n2_text *out) {
    const size_t n = r->proposals.rows;
    n2_text_add(out, "{\"rows\": %zu, ", n);
    add_number(out, "seen", (double)r->record.rows);
    add_number(out, "best_seen", seen_best(r));
    add_number(out, "best_predicted", predicted(r, 0));
    add_expected(r, out);
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
    if (r->proposals.chance) add_list(out, "chance", r->proposals.chance, n, 1);
    add_objectives(r->t, n, out);
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

n2ce_status n2_optimize_answer(n2ce_ctx *ctx, const n2_optimize_result *r, n2ce_answer *answer) {
    const n2_optimize_notes w = find_warnings(r);
    n2_writer writer = n2_writer_new(ctx);
    n2_text page = n2_text_new(ctx);
    write_text(r, &w, &writer.text);
    write_json(r, &w, &writer.json);
    for (size_t i = 0; i < r->proposals.rows; i++) {
        n2_text_add_number(&writer.brief, predicted(r, i));
        n2_text_add(&writer.brief, "\n");
    }
    n2_text_add(&writer.kept, "nothing\n");
    if (!r->path && n2_optimize_chose_device(r))
        n2_log(ctx, N2CE_LOG_INFO, "trained on %s (%s)", r->device, r->reason);
    if (!r->path) n2_optimize_warn(ctx, r);
    n2ce_status status = note(r, answer);
    if (status == N2CE_OK) status = n2_optimize_page(ctx, r, &w, &page);
    if (status == N2CE_OK) status = n2_text_take(&page, &answer->html);
    n2_text_free(&page);
    const n2ce_status taken = n2_writer_take(&writer, answer);
    return status == N2CE_OK ? taken : status;
}
