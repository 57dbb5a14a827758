/* The study of anomalies as JSON. */
#include "anomaly_study.h"

static void add_key(n2_text *out, const char *key, double value) {
    n2_text_add(out, ", \"%s\": ", key);
    n2_text_add_number(out, value);
}

static void add_numbers(n2_text *out, const char *key, const double *x, size_t n) {
    n2_text_add(out, ", \"%s\": [", key);
    for (size_t i = 0; i < n; i++) {
        n2_text_add(out, i ? ", " : "");
        n2_text_add_number(out, x[i]);
    }
    n2_text_add(out, "]");
}

static void add_counts(n2_text *out, const char *key, const size_t *x, size_t n) {
    n2_text_add(out, ", \"%s\": [", key);
    for (size_t i = 0; i < n; i++) n2_text_add(out, "%s%zu", i ? ", " : "", x[i]);
    n2_text_add(out, "]");
}

static void add_parts(n2_text *out, const n2_anomaly_run *r) {
    n2_text_add(out, ", \"parts\": {");
    for (size_t p = 0; p < r->n_parts; p++) {
        n2_text_add(out, "%s", p ? ", " : "");
        n2_text_add_json_string(out, r->parts[p].name);
        n2_text_add(out, ": ");
        n2_text_add_number(out, r->parts[p].auprc);
    }
    n2_text_add(out, "}");
}

/* A step and its AUPRC, in turns. */
static void add_checks(n2_text *out, const n2_anomaly_run *r) {
    add_key(out, "best", n2_anomaly_best(r));
    n2_text_add(out, ", \"checks\": [");
    for (size_t i = 0; i < r->n_checks; i++) {
        n2_text_add(out, "%s%.0f, ", i ? ", " : "", r->checks[i].step);
        n2_text_add_number(out, r->checks[i].auprc);
    }
    n2_text_add(out, "]");
}

static void add_settings(n2_text *out, const n2_anomaly_study *s, const n2_anomaly_method *m) {
    n2_anomaly_setting settings[N2_ANOMALY_SETTINGS];
    n2_anomaly_settings(&s->effort, settings);
    add_key(out, "subset", (double)s->effort.subset);
    for (size_t i = 0; m->seeded && i < N2_ANOMALY_SETTINGS; i++)
        add_key(out, settings[i].key, settings[i].value);
}

static void add_run(n2_text *out, const n2_anomaly_study *s, size_t i) {
    const n2_anomaly_run *r = &s->runs[i];
    const n2_anomaly_method *m = s->methods[i / s->n_seeds % s->n_methods];
    n2_text_add(out, "{\"digit\": %d, \"method\": \"%s\"", s->digits[i / s->n_seeds / s->n_methods],
                m->name);
    n2_text_add(out, ", \"seed\": %llu", (unsigned long long)r->seed);
    add_key(out, "auprc", r->auprc);
    add_key(out, "auroc", r->auroc);
    n2_text_add(out, ", \"seconds\": %.3f", r->seconds);
    add_settings(out, s, m);
    if (r->n_checks) add_checks(out, r);
    if (r->device) {
        n2_text_add(out, ", \"device\": ");
        n2_text_add_json_string(out, r->device);
    }
    if (r->n_parts) add_parts(out, r);
    if (!r->failed) {
        add_numbers(out, "precision", r->precision, N2_ANOMALY_CURVE);
        add_counts(out, "odd", r->odd, r->n_odd);
        add_counts(out, "normal", r->normal, r->n_normal);
    }
    n2_text_add(out, "}");
}

static void add_rows(n2_text *out, const n2_anomaly_study *s) {
    const char *separator = "";
    n2_text_add(out, "\"rows\": [");
    for (size_t i = 0; i < n2_anomaly_runs(s); i++) {
        if (!s->runs[i].done) continue;
        n2_text_add(out, "%s\n    ", separator);
        add_run(out, s, i);
        separator = ",";
    }
    n2_text_add(out, "\n  ],\n  ");
}

static void add_digits(n2_text *out, const n2_anomaly_study *s) {
    n2_text_add(out, "\"digits\": [");
    for (size_t d = 0; d < s->n_digits; d++) {
        n2_text_add(out, "%s\n    {\"digit\": %d, \"train\": %zu, \"normal\": %zu, \"odd\": %zu",
                    d ? "," : "", s->digits[d], s->counts[d].n_train, s->counts[d].n_normal,
                    s->counts[d].n_odd);
        add_key(out, "prevalence", n2_anomaly_prevalence(s, d));
        n2_text_add(out, "}");
    }
    n2_text_add(out, "\n  ],\n  ");
}

static void add_summaries(n2_text *out, const n2_anomaly_study *s) {
    const char *separator = "";
    n2_text_add(out, "\"summary\": [");
    for (size_t i = 0; i < s->n_digits * s->n_methods; i++) {
        const size_t d = i / s->n_methods, m = i % s->n_methods;
        const n2_anomaly_summary sum = n2_anomaly_summarise(s, d, m);
        if (!sum.done) continue;
        n2_text_add(out, "%s\n    {\"digit\": %d, \"method\": \"%s\", \"runs\": %zu, ", separator,
                    s->digits[d], s->methods[m]->name, sum.done);
        n2_text_add(out, "\"failed\": %zu", sum.failed);
        add_key(out, "auprc_mean", n2_tally_mean(&sum.auprc));
        add_key(out, "auprc_sd", n2_tally_spread(&sum.auprc));
        add_key(out, "auroc_mean", n2_tally_mean(&sum.auroc));
        add_key(out, "best_mean", n2_tally_mean(&sum.best));
        n2_text_add(out, "}");
        separator = ",";
    }
    n2_text_add(out, "\n  ],\n  ");
}

static void add_means(n2_text *out, const n2_anomaly_study *s) {
    n2_text_add(out, "\"means\": [");
    for (size_t m = 0; m < s->n_methods; m++) {
        n2_text_add(out, "%s\n    {\"method\": \"%s\"", m ? "," : "", s->methods[m]->name);
        add_key(out, "auprc", n2_anomaly_mean(s, m));
        n2_text_add(out, "}");
    }
    n2_text_add(out, "\n  ],\n  ");
}

static void add_published(n2_text *out, const n2_anomaly_study *s) {
    const char *separator = "";
    const n2_anomaly_published *p;
    n2_text_add(out, "\"published\": [");
    for (size_t i = 0; (p = n2_anomaly_published_at(i)); i++)
        for (size_t d = 0; d < s->n_digits; d++) {
            const int place = n2_anomaly_published_place(s->digits[d]);
            if (place < 0) continue;
            n2_text_add(out, "%s\n    {\"digit\": %d, \"method\": \"%s\"", separator, s->digits[d],
                        p->method);
            add_key(out, "auprc", p->auprc[place]);
            add_key(out, "sd", p->spread[place]);
            n2_text_add(out, ", \"same_protocol\": %s}", p->same_protocol ? "true" : "false");
            separator = ",";
        }
    n2_text_add(out, "%s]\n}\n", *separator ? "\n  " : "");
}

n2ce_status n2_anomaly_study_json(n2_text *out, const void *about, n2_arena *arena) {
    const n2_anomaly_study *s = about;
    (void)arena;
    n2_text_add(out, "{\"study\": \"anomaly\", \"version\": \"%s\", \"interrupted\": %s,\n  ",
                n2ce_version(), s->interrupted ? "true" : "false");
    n2_text_add(out, "\"options\": ");
    n2_options_json(s->options, out);
    n2_text_add(out, ",\n  ");
    add_digits(out, s);
    add_rows(out, s);
    add_summaries(out, s);
    add_means(out, s);
    add_published(out, s);
    return N2CE_OK;
}
