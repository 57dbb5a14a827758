/* The study of offline optimisation as JSON. */
#include "bbo_published.h"
#include "bbo_study.h"

#include <math.h>
#include <string.h>

static void add_key(n2_text *out, const char *key, double value) {
    n2_text_add(out, ", \"%s\": ", key);
    n2_text_add_number(out, value);
}

/* Q as the options have it; 0: they do not say. */
static size_t stated_queries(const n2_bbo_study *s, size_t t) {
    const double q = n2ce_options_number(s->options, "queries");
    if (n2_options_is_auto(s->options, "queries")) return s->tasks[t]->queries;
    return q > 0 ? (size_t)q : 0;
}

/* What of a run is not as the options say. */
static void add_exceptions(n2_text *out, const n2_bbo_study *s, size_t t, size_t m,
                           const n2_bbo_run *r) {
    if (s->queries[t] != stated_queries(s, t))
        n2_text_add(out, ", \"queries\": %zu", s->queries[t]);
    if (s->methods[m]->with && r->scale != n2_options_count(s->options, "scale"))
        n2_text_add(out, ", \"scale\": %zu", r->scale);
    if (!r->device) return;
    n2_text_add(out, ", \"device\": ");
    n2_text_add_json_string(out, r->device);
}

static void add_names(n2_text *out, const n2_bbo_study *s, size_t t, size_t m) {
    n2_text_add(out, "{\"task\": \"%s\", \"method\": \"%s\"", s->tasks[t]->name,
                s->methods[m]->method->name);
}

static void add_run(n2_text *out, const n2_bbo_study *s, size_t t, size_t m, const n2_bbo_run *r) {
    add_names(out, s, t, m);
    n2_text_add(out, ", \"seed\": %llu", (unsigned long long)r->seed);
    add_key(out, "max", r->max);
    add_key(out, "median", r->median);
    n2_text_add(out, ", \"distinct\": %zu", r->distinct);
    add_key(out, "inside", r->inside);
    n2_text_add(out, ", \"seconds\": %.3f", r->seconds);
    add_exceptions(out, s, t, m, r);
    n2_text_add(out, "}");
}

/* As proposed: with the values that designs have beyond the bounds. */
static void add_unmoved(n2_text *out, const n2_bbo_study *s, size_t t, size_t m,
                        const n2_bbo_run *r) {
    add_names(out, s, t, m);
    n2_text_add(out, ", \"seed\": %llu", (unsigned long long)r->seed);
    add_key(out, "max", r->unmoved_max);
    add_key(out, "median", r->unmoved_median);
    add_exceptions(out, s, t, m, r);
    n2_text_add(out, "}");
}

typedef void run_writer(n2_text *out, const n2_bbo_study *s, size_t t, size_t m,
                        const n2_bbo_run *r);

/* Runs of methods [first, end), in the order of tasks, methods, seeds. */
static void add_list(n2_text *out, const n2_bbo_study *s, const char *key, size_t first, size_t end,
                     run_writer *write) {
    const char *separator = "";
    n2_text_add(out, "\"%s\": [", key);
    for (size_t i = 0; i < n2_bbo_runs(s); i++) {
        const size_t t = i / s->n_seeds / s->n_methods, m = i / s->n_seeds % s->n_methods;
        if (!s->runs[i].done || m < first || m >= end) continue;
        if (write == add_unmoved && !isfinite(s->runs[i].unmoved_max)) continue;
        n2_text_add(out, "%s\n    ", separator);
        write(out, s, t, m, &s->runs[i]);
        separator = ",";
    }
    n2_text_add(out, "%s],\n  ", *separator ? "\n  " : "");
}

static void add_offline(n2_text *out, const n2_bbo_study *s) {
    const char *separator = "";
    n2_text_add(out, "\"offline\": [");
    for (size_t i = 0; i < s->n_tasks * s->n_seeds; i++) {
        const size_t t = i / s->n_seeds;
        const bool again = t > 0 && s->tasks[t - 1] == s->tasks[t];
        if (!isfinite(s->offline_best[i]) || again) continue;
        n2_text_add(out, "%s\n    {\"task\": \"%s\", \"seed\": %llu", separator, s->tasks[t]->name,
                    (unsigned long long)(s->first_seed + i % s->n_seeds));
        n2_text_add(out, ", \"rows\": %zu", s->offline_rows[t]);
        add_key(out, "best", s->offline_best[i]);
        n2_text_add(out, "}");
        separator = ",";
    }
    n2_text_add(out, "%s],\n  ", *separator ? "\n  " : "");
}

/* Where proposals and draws are, for the pictures of a later answer. */
static void add_points(n2_text *out, const n2_bbo_study *s, size_t i, const n2_bbo_points *p,
                       bool drawn, const char **separator) {
    const size_t t = i / s->n_seeds / s->n_methods, m = i / s->n_seeds % s->n_methods;
    if (!s->runs[i].done || !p->x) return;
    n2_text_add(out, "%s\n    ", *separator);
    add_names(out, s, t, m);
    n2_text_add(out, ", \"seed\": %llu", (unsigned long long)s->runs[i].seed);
    add_exceptions(out, s, t, m, &s->runs[i]);
    n2_text_add(out, ", \"drawn\": %d, \"x\": [", drawn);
    for (size_t k = 0; k < 2 * p->n; k++) {
        n2_text_add(out, k ? ", " : "");
        n2_text_add_number(out, p->x[k]);
    }
    n2_text_add(out, "]}");
    *separator = ",";
}

static void add_samples(n2_text *out, const n2_bbo_study *s) {
    const char *separator = "";
    n2_text_add(out, "\"samples\": [");
    for (size_t i = 0; i < s->n_tasks * s->n_methods; i++) {
        const size_t k = n2_bbo_pictured(s, i / s->n_methods, i % s->n_methods);
        const n2_bbo_run *r = &s->runs[i * s->n_seeds + k];
        add_points(out, s, i * s->n_seeds + k, &r->proposed, false, &separator);
        add_points(out, s, i * s->n_seeds + k, &r->drawn, true, &separator);
    }
    n2_text_add(out, "%s],\n  ", *separator ? "\n  " : "");
}

static void add_aim(n2_text *out, const n2_bbo_study *s, size_t t, size_t m, const n2_bbo_run *r,
                    const n2_bbo_aim *a) {
    add_names(out, s, t, m);
    n2_text_add(out, ", \"seed\": %llu", (unsigned long long)r->seed);
    add_key(out, "scaled", a->scaled);
    add_key(out, "target", a->target);
    add_key(out, "mean", a->mean);
    add_key(out, "sd", a->sd);
    add_key(out, "low", a->low);
    add_key(out, "high", a->high);
    add_exceptions(out, s, t, m, r);
    n2_text_add(out, "}");
}

static void add_targets(n2_text *out, const n2_bbo_study *s) {
    const char *separator = "";
    n2_text_add(out, "\"targets\": [");
    for (size_t i = 0; i < n2_bbo_runs(s); i++)
        for (size_t k = 0; s->runs[i].done && k < s->runs[i].n_aims; k++) {
            const size_t t = i / s->n_seeds / s->n_methods, m = i / s->n_seeds % s->n_methods;
            n2_text_add(out, "%s\n    ", separator);
            add_aim(out, s, t, m, &s->runs[i], &s->runs[i].aims[k]);
            separator = ",";
        }
    n2_text_add(out, "%s],\n  ", *separator ? "\n  " : "");
}

static void add_summaries(n2_text *out, const n2_bbo_study *s) {
    const char *separator = "";
    n2_text_add(out, "\"summary\": [");
    for (size_t i = 0; i < s->n_tasks * s->n_methods; i++) {
        const size_t t = i / s->n_methods, m = i % s->n_methods;
        const n2_bbo_summary sum = n2_bbo_summarise(s, t, m);
        if (!sum.done) continue;
        n2_text_add(out, "%s\n    ", separator);
        add_names(out, s, t, m);
        n2_text_add(out, ", \"queries\": %zu", s->queries[t]);
        n2_text_add(out, ", \"runs\": %zu, \"failed\": %zu", sum.done, sum.failed);
        add_key(out, "max_mean", n2_tally_mean(&sum.max));
        add_key(out, "max_sd", n2_tally_spread(&sum.max));
        add_key(out, "median_mean", n2_tally_mean(&sum.median));
        add_key(out, "median_sd", n2_tally_spread(&sum.median));
        add_key(out, "rank_max", n2_bbo_rank(s, t, m, 100));
        add_key(out, "rank_median", n2_bbo_rank(s, t, m, 50));
        n2_text_add(out, "}");
        separator = ",";
    }
    n2_text_add(out, "\n  ],\n  ");
}

static void add_ranks(n2_text *out, const n2_bbo_study *s) {
    n2_text_add(out, "\"mean_ranks\": [");
    for (size_t m = 0; m < s->n_methods; m++) {
        size_t n;
        const double max = n2_bbo_mean_rank(s, m, 100, &n),
                     median = n2_bbo_mean_rank(s, m, 50, NULL);
        n2_text_add(out, "%s\n    {\"method\": \"%s\"", m ? "," : "", s->methods[m]->method->name);
        add_key(out, "max", max);
        add_key(out, "median", median);
        add_key(out, "both", (max + median) / 2);
        n2_text_add(out, ", \"tasks\": %zu}", n);
    }
    n2_text_add(out, "\n  ],\n  ");
}

static bool has_task(const n2_bbo_study *s, const char *name) {
    for (size_t t = 0; t < s->n_tasks; t++)
        if (strcmp(s->tasks[t]->name, name) == 0) return true;
    return false;
}

static void add_published(n2_text *out, const n2_bbo_study *s) {
    const char *separator = "";
    const n2_bbo_published *p;
    n2_text_add(out, "\"published\": [");
    for (size_t i = 0; (p = n2_bbo_published_at(i)); i++) {
        if (!has_task(s, p->task)) continue;
        n2_text_add(out, "%s\n    {\"task\": \"%s\", \"method\": \"%s\", \"queries\": %zu",
                    separator, p->task, p->method, p->queries);
        n2_text_add(out, ", \"percentile\": %d", p->percentile);
        add_key(out, "value", p->value);
        add_key(out, "sd", p->spread);
        n2_text_add(out, "}");
        separator = ",";
    }
    n2_text_add(out, "%s]\n}\n", *separator ? "\n  " : "");
}

n2ce_status n2_bbo_study_json(n2_text *out, const void *about, n2_arena *arena) {
    const n2_bbo_study *s = about;
    (void)arena;
    n2_text_add(out, "{\"study\": \"bbo\", \"version\": \"%s\", \"interrupted\": %s,\n  ",
                n2ce_version(), s->interrupted ? "true" : "false");
    n2_text_add(out, "\"options\": ");
    n2_options_json(s->options, out);
    n2_text_add(out, ",\n  ");
    add_list(out, s, "rows", 0, s->n_asked, add_run);
    add_list(out, s, "trivial", s->n_asked, s->n_methods, add_run);
    add_list(out, s, "unmoved", 0, s->n_methods, add_unmoved);
    add_targets(out, s);
    add_offline(out, s);
    add_samples(out, s);
    add_summaries(out, s);
    add_ranks(out, s);
    add_published(out, s);
    return N2CE_OK;
}
