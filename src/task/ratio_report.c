#include "ratio_report.h"

#include "base/numerics.h"

#include <math.h>
#include <string.h>

/* ---- what is shown --------------------------------------------------------- */

/* Pairs of x and y of different rows are such pairs after an exchange, too: for mutual information
 * only the rows themselves tell. */
static double carries(const n2_session *s, size_t c) {
    const n2_column_part *p = &s->scores.explanation.column[c];
    return s->x_cols ? p->num : p->num + p->den;
}

/* The columns that say something, by insertion: few, or time does not matter. */
static n2ce_status sort_columns(const n2_session *s, n2_ratio_report *r) {
    const n2_explanation *e = &s->scores.explanation;
    const n2_features *features = s->ratio->features;
    r->order = n2_alloc(s->ctx, e->columns, sizeof *r->order);
    if (!r->order) return N2CE_ENOMEM;
    for (size_t c = 0; c < e->columns; c++) {
        if (features->column[c].kind == N2_FEATURE_CONSTANT) continue;
        size_t at = r->columns++;
        for (; at > 0 && carries(s, r->order[at - 1]) < carries(s, c); at--)
            r->order[at] = r->order[at - 1];
        r->order[at] = c;
    }
    return N2CE_OK;
}

static void take_checks(const n2_scores *s, n2_ratio_report *r) {
    double m = 1;
    for (size_t k = 0; k < N2_REPORT_BALANCES; k++, m *= 10)
        r->balance[k] = (n2_report_check){m, n2_estimate_balance(s, m), 0};
    for (size_t side = 0; side < 2; side++)
        r->mean[side].found = n2_estimate_mean_ratio(s, side, &r->mean[side].share);
}

void n2_report_show(n2_ratio_report *r, const double *const f[2], const size_t n[2]) {
    r->bins = n2_bins_for(f, n, 2);
    for (size_t side = 0; side < 2; side++)
        r->f[side] = n2_histogram_of(&r->bins, f[side], n[side]);
    r->seen = false;
}

n2ce_status n2_report_new(n2_session *s) {
    n2_quality q;
    const double *const f[2] = {s->scores.f[0], s->scores.f[1]};
    s->report = n2_alloc(s->ctx, 1, sizeof *s->report);
    if (!s->report) return N2CE_ENOMEM;
    n2_report_show(s->report, f, s->scores.n);
    s->report->seen = s->ratio->kernel;
    n2_estimate_kl(&s->scores, &s->record, &q);
    s->report->used_balance = q.balance_magnitude;
    take_checks(&s->scores, s->report);
    return sort_columns(s, s->report);
}

void n2_report_free(n2ce_ctx *ctx, n2_ratio_report *r) {
    if (r) n2_free(ctx, r->order);
    n2_free(ctx, r);
}

/* ---- JSON ------------------------------------------------------------------ */

static void add_number(n2_text *json, const char *before, double value) {
    n2_text_add(json, "%s", before);
    n2_text_add_number(json, value);
}

static void add_counts(n2_text *json, const size_t *count, size_t n) {
    n2_text_add(json, "[");
    for (size_t i = 0; i < n; i++) n2_text_add(json, "%s%zu", i ? ", " : "", count[i]);
    n2_text_add(json, "]");
}

void n2_report_json_bins(n2_text *json, const n2_bins *bins, const n2_histogram *const *h,
                         const char *const *names, size_t n) {
    add_number(json, "{\"low\": ", bins->low);
    add_number(json, ", \"width\": ", bins->width);
    for (size_t k = 0; k < n; k++) {
        n2_text_add(json, ", \"%s\": {\"rows\": %zu, \"below\": %zu, \"above\": %zu, \"count\": ",
                    names[k], h[k]->rows, h[k]->below, h[k]->above);
        add_counts(json, h[k]->count, bins->n);
        n2_text_add(json, "}");
    }
    n2_text_add(json, "}");
}

static void add_columns(const n2_session *s, n2_text *json) {
    const n2_explanation *e = &s->scores.explanation;
    const n2_ratio_report *r = s->report;
    n2_text_add(json, ", \"pairs\": %zu, \"columns\": [", e->pairs);
    for (size_t i = 0; i < r->columns; i++) {
        const size_t c = r->order[i];
        n2_text_add(json, "%s{\"column\": ", i ? ", " : "");
        n2_text_add_json_string(json, s->num->names[c]);
        if (s->x_cols) n2_text_add(json, ", \"of\": \"%s\"", c < s->x_cols ? "x" : "y");
        add_number(json, ", \"num\": ", e->column[c].num);
        add_number(json, ", \"num_error\": ", e->column[c].num_error);
        if (!s->x_cols) {
            add_number(json, ", \"den\": ", e->column[c].den);
            add_number(json, ", \"den_error\": ", e->column[c].den_error);
        }
        n2_text_add(json, "}");
    }
    n2_text_add(json, "]");
}

static void add_stages(const n2_explanation *e, n2_text *json) {
    n2_text_add(json, ", \"stages\": [");
    for (size_t k = 0; k < e->stages; k++) {
        add_number(json, k ? ", {\"gaussian\": " : "{\"gaussian\": ", e->stage[k].gaussian);
        add_number(json, ", \"learned\": ", e->stage[k].learned);
        n2_text_add(json, "}");
    }
    n2_text_add(json, "]");
}

static void add_curves(const n2_fit_record *r, n2_text *json) {
    n2_text_add(json, ", \"curves\": [");
    for (size_t k = 0; k < r->folds_run; k++) {
        const n2_learning_curve *c = &r->fold[k].curve;
        n2_text_add(json, "%s{\"kept\": %zu, \"step\": [", k ? ", " : "", r->fold[k].best_step);
        for (size_t i = 0; i < c->n; i++) add_number(json, i ? ", " : "", c->step[i]);
        n2_text_add(json, "], \"loss\": [");
        for (size_t i = 0; i < c->n; i++) add_number(json, i ? ", " : "", c->loss[i]);
        n2_text_add(json, "]}");
    }
    n2_text_add(json, "]");
}

static void add_checks(const n2_ratio_report *r, n2_text *json) {
    static const char *const names[] = {"mean_ratio_den", "mean_inverse_ratio_num"};
    n2_text_add(json, ", \"balance\": [");
    for (size_t k = 0; k < N2_REPORT_BALANCES; k++) {
        const n2_report_check *c = &r->balance[k];
        add_number(json, k ? ", {\"M\": " : "{\"M\": ", c->magnitude);
        add_number(json, ", \"value\": ", c->found.value);
        add_number(json, ", \"error\": ", c->found.error);
        n2_text_add(json, "}");
    }
    n2_text_add(json, "]");
    for (size_t side = 0; side < 2; side++) {
        n2_text_add(json, ", \"%s\": {", names[side]);
        add_number(json, "\"value\": ", r->mean[side].found.value);
        add_number(json, ", \"error\": ", r->mean[side].found.error);
        add_number(json, ", \"ess\": ", r->mean[side].share);
        n2_text_add(json, "}");
    }
}

void n2_report_json(const n2_session *s, n2_text *json) {
    const n2_ratio_report *r = s->report;
    const n2_histogram *const h[2] = {&r->f[1], &r->f[0]};
    const char *const names[2] = {"num", "den"};
    n2_text_add(json, ", \"report\": {\"log_ratios\": ");
    n2_report_json_bins(json, &r->bins, h, names, 2);
    add_columns(s, json);
    add_stages(&s->scores.explanation, json);
    add_curves(&s->record, json);
    add_checks(r, json);
}
