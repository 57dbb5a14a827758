/* The study of offline optimisation as tables, text and JSON. */
#include "base/numerics.h"
#include "bbo_published.h"
#include "bbo_study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char n2_bbo_caveat[] =
    "How to read it: max and median are over the Q proposals of a run, mean +- standard deviation "
    "over seeds. Compare with random and top-offline first: on TFBind8 and TFBind10 most published "
    "maxima are at the level of chance, so the median says more; on Superconductor the oracle is a "
    "forest fitted to 1,000 rows, drawn anew for every seed, which scores the best designs offline "
    "higher than their labels; on Branin chance beats several published methods. The baselines are "
    "this program's own with the published hyper-parameters (docs/bbo.md says where they differ).";

const char n2_bbo_gaps[] =
    "Not all methods were run on all tasks: their mean ranks do not compare.";

/* ---- summaries ------------------------------------------------------------------------------- */

n2_bbo_summary n2_bbo_summarise(const n2_bbo_study *s, size_t task, size_t method) {
    n2_bbo_summary sum = {0};
    for (size_t k = 0; k < s->n_seeds; k++) {
        const n2_bbo_run *r = n2_bbo_run_at(s, task, method, k);
        if (!r->done) continue;
        sum.done++;
        sum.failed += r->failed;
        if (r->failed) continue;
        n2_tally_add(&sum.max, r->max);
        n2_tally_add(&sum.median, r->median);
        n2_tally_add(&sum.unmoved_max, r->unmoved_max);
        n2_tally_add(&sum.unmoved_median, r->unmoved_median);
        n2_tally_add(&sum.inside, r->inside);
        n2_tally_add(&sum.distinct, (double)r->distinct);
        n2_tally_add(&sum.seconds, r->seconds);
    }
    return sum;
}

/* The mean over seeds; -inf: all runs failed; NaN: there was none. */
static double value_of(const n2_bbo_study *s, size_t task, size_t method, int percentile) {
    const n2_bbo_summary sum = n2_bbo_summarise(s, task, method);
    const n2_tally *t = percentile == 100 ? &sum.max : &sum.median;
    return t->n > 0 || sum.done == 0 ? n2_tally_mean(t) : -N2_INFINITY;
}

/* Whether a method has its place among others, of which one is `other`. */
static bool is_rival(const n2_listed_method *m, const n2_listed_method *other) {
    if (m == other || other->variant_of) return false;
    return !m->variant_of || strcmp(m->variant_of, other->method->name) != 0;
}

double n2_bbo_rank(const n2_bbo_study *s, size_t task, size_t method, int percentile) {
    const double own = value_of(s, task, method, percentile);
    double rank = 1;
    if (isnan(own)) return N2_NAN;
    for (size_t m = 0; m < s->n_methods; m++) {
        if (!is_rival(s->methods[method], s->methods[m])) continue;
        const double other = value_of(s, task, m, percentile);
        rank += other > own ? 1 : other == own ? 0.5 : 0;
    }
    return rank;
}

double n2_bbo_mean_rank(const n2_bbo_study *s, size_t method, int percentile, size_t *n) {
    n2_tally mean = {0};
    for (size_t t = 0; t < s->n_tasks; t++)
        n2_tally_add(&mean, n2_bbo_rank(s, t, method, percentile));
    if (n) *n = mean.n;
    return n2_tally_mean(&mean);
}

/* Whether not all methods were run on the same number of tasks. */
static bool has_gaps(const n2_bbo_study *s) {
    size_t first, n;
    n2_bbo_mean_rank(s, 0, 100, &first);
    for (size_t m = 1; m < s->n_methods; m++) {
        n2_bbo_mean_rank(s, m, 100, &n);
        if (n != first) return true;
    }
    return false;
}

void n2_bbo_scale_text(const n2_bbo_study *s, char text[256]) {
    size_t least = SIZE_MAX, most = 1;
    for (size_t i = 0; i < n2_bbo_runs(s); i++) {
        const n2_bbo_run *r = &s->runs[i];
        if (!r->done || !s->methods[i / s->n_seeds % s->n_methods]->with) continue;
        if (r->scale < least) least = r->scale;
        if (r->scale > most) most = r->scale;
    }
    text[0] = '\0';
    if (most > 1)
        snprintf(text, 256,
                 "Networks and training are not %sthose of the paper: --scale %zu divides widths "
                 "and steps by %zu (not below %d and %d).",
                 least < most ? "always " : "", most, most, N2_LEAST_WIDTH, N2_LEAST_STEPS);
}

/* ---- sheets ---------------------------------------------------------------------------------- */

/* Cells of a sheet, added row by row. Errors are sticky. */
typedef struct sheet_writer {
    n2_arena *arena;
    const char **cells;
    size_t n;
    bool failed;
} sheet_writer;

static void put(sheet_writer *w, const char *text) {
    const char *copy = w->failed ? NULL : n2_arena_strdup(w->arena, text);
    if (copy)
        w->cells[w->n++] = copy;
    else
        w->failed = true;
}

static void put_all(sheet_writer *w, const char *const *texts, size_t n) {
    for (size_t i = 0; i < n; i++) put(w, texts[i]);
}

static void put_spread(sheet_writer *w, const n2_tally *t, const char *mark) {
    char number[32], about[32], cell[96];
    const double spread = n2_tally_spread(t);
    snprintf(about, sizeof about, fabs(spread) < 1e4 ? "%.3f" : "%.1e", spread);
    if (isfinite(spread))
        snprintf(cell, sizeof cell, "%s%s +- %s", mark, n2_sheet_number(n2_tally_mean(t), number),
                 about);
    else
        snprintf(cell, sizeof cell, "%s%s", mark, n2_sheet_number(n2_tally_mean(t), number));
    put(w, t->n ? cell : "");
}

static void put_published(sheet_writer *w, const n2_bbo_published *p) {
    char cell[64] = "";
    if (p && isfinite(p->spread))
        snprintf(cell, sizeof cell, "%.3f +- %.3f", p->value, p->spread);
    else if (p)
        snprintf(cell, sizeof cell, "%.3f", p->value);
    put(w, cell);
}

static void put_number(sheet_writer *w, double x, const char *format) {
    char cell[64] = "";
    if (isfinite(x)) snprintf(cell, sizeof cell, format, x);
    put(w, cell);
}

/* Whether some design was moved to the bounds and has a value where it was. */
static bool has_moved(const n2_bbo_study *s, size_t task) {
    for (size_t m = 0; m < s->n_methods; m++) {
        const n2_bbo_summary sum = n2_bbo_summarise(s, task, m);
        if (sum.unmoved_max.n > 0 && n2_tally_mean(&sum.inside) < 1) return true;
    }
    return false;
}

static const char *mark_of(const n2_bbo_study *s, size_t task, size_t m, int percentile) {
    const double own = value_of(s, task, m, percentile);
    bool best = isfinite(own) && s->n_methods > 1;
    for (size_t k = 0; k < s->n_methods; k++)
        if (k != m && value_of(s, task, k, percentile) >= own) best = false;
    return best ? "*" : "";
}

static void put_method(sheet_writer *w, const n2_bbo_study *s, size_t task, size_t m, bool moved) {
    const n2_bbo_summary sum = n2_bbo_summarise(s, task, m);
    const char *t = s->tasks[task]->name, *name = s->methods[m]->method->name;
    const size_t q = s->queries[task];
    char label[192], some[80] = "";
    if (sum.done < s->n_seeds)
        snprintf(some, sizeof some, " (%zu of %zu seeds)", sum.done, s->n_seeds);
    snprintf(label, sizeof label, "%s%s%s", name, some, sum.failed ? " (failed)" : "");
    put(w, label);
    put_spread(w, &sum.max, mark_of(s, task, m, 100));
    put_published(w, n2_bbo_published_find(t, name, q, 100));
    put_spread(w, &sum.median, mark_of(s, task, m, 50));
    put_published(w, n2_bbo_published_find(t, name, q, 50));
    if (moved) {
        put_spread(w, &sum.unmoved_max, "");
        put_spread(w, &sum.unmoved_median, "");
    }
    put_number(w, n2_tally_mean(&sum.distinct), "%.0f");
    put_number(w, n2_tally_mean(&sum.inside), "%.3f");
    put_number(w, n2_tally_mean(&sum.seconds), "%.1f");
}

n2ce_status n2_bbo_task_sheet(const n2_bbo_study *s, size_t task, n2_arena *arena, n2_sheet *out) {
    static const char *const first[] = {"method", "max", "paper", "median", "paper"};
    static const char *const unmoved[] = {"max unmoved", "median unmoved"};
    static const char *const last[] = {"distinct", "inside", "seconds"};
    const bool moved = has_moved(s, task);
    const size_t columns = moved ? 10 : 8;
    sheet_writer w = {.arena = arena};
    *out = (n2_sheet){NULL, 0, 0};
    w.cells = n2_arena_alloc(arena, (s->n_methods + 1) * columns, sizeof(*w.cells));
    if (!w.cells) return N2CE_ENOMEM;
    put_all(&w, first, 5);
    if (moved) put_all(&w, unmoved, 2);
    put_all(&w, last, 3);
    for (size_t m = 0; m < s->n_methods; m++)
        if (n2_bbo_summarise(s, task, m).done) put_method(&w, s, task, m, moved);
    if (w.failed) return N2CE_ENOMEM;
    if (w.n > columns) *out = (n2_sheet){w.cells, w.n / columns, columns};
    return N2CE_OK;
}

n2ce_status n2_bbo_rank_sheet(const n2_bbo_study *s, n2_arena *arena, n2_sheet *out) {
    static const char *const header[] = {"method", "mean rank of max", "of median", "of both",
                                         "tasks"};
    sheet_writer w = {.arena = arena};
    *out = (n2_sheet){NULL, 0, 0};
    w.cells = n2_arena_alloc(arena, (s->n_methods + 1) * 5, sizeof(*w.cells));
    if (!w.cells) return N2CE_ENOMEM;
    put_all(&w, header, 5);
    for (size_t m = 0; m < s->n_methods; m++) {
        size_t n;
        const double max = n2_bbo_mean_rank(s, m, 100, &n),
                     median = n2_bbo_mean_rank(s, m, 50, NULL);
        put(&w, s->methods[m]->method->name);
        put_number(&w, max, "%.1f");
        put_number(&w, median, "%.1f");
        put_number(&w, (max + median) / 2, "%.2f");
        put_number(&w, (double)n, "%.0f");
    }
    if (w.failed) return N2CE_ENOMEM;
    *out = (n2_sheet){w.cells, w.n / 5, 5};
    return N2CE_OK;
}

/* ---- terminal -------------------------------------------------------------------------------- */

static bool was_started(const n2_bbo_study *s, size_t task) {
    for (size_t i = 0; i < s->n_methods * s->n_seeds; i++)
        if (n2_bbo_run_at(s, task, 0, 0)[i].done) return true;
    return false;
}

static bool has_method(const n2_bbo_study *s, const char *name) {
    for (size_t m = 0; m < s->n_methods; m++)
        if (strcmp(s->methods[m]->method->name, name) == 0) return true;
    return false;
}

/* "bonet -1.790, n2ce -0.410": what the paper prints of methods that were not run. */
static void add_others(n2_text *out, const n2_bbo_study *s, size_t task, int percentile) {
    const char *separator = percentile == 100 ? "In the paper, max: " : "In the paper, median: ";
    const n2_bbo_published *p;
    n2_text line = n2_text_new(out->ctx);
    for (size_t i = 0; (p = n2_bbo_published_at(i)); i++) {
        if (p->percentile != percentile || p->queries != s->queries[task] ||
            strcmp(p->task, s->tasks[task]->name) != 0 || has_method(s, p->method))
            continue;
        n2_text_add(&line, "%s%s %.3f", separator, p->method, p->value);
        separator = ", ";
    }
    out->failed |= line.failed;
    if (line.length) n2_text_wrapped(out, line.data);
    n2_text_free(&line);
}

static n2ce_status add_task(n2_text *out, const n2_bbo_study *s, size_t task, n2_arena *arena) {
    const n2_design_task *t = s->tasks[task];
    n2_tally best = {0};
    n2_sheet sheet;
    char number[32];
    N2_TRY(n2_bbo_task_sheet(s, task, arena, &sheet));
    for (size_t k = 0; k < s->n_seeds; k++)
        n2_tally_add(&best, s->offline_best[task * s->n_seeds + k]);
    n2_text_add(out, "%s: %s; %zu rows offline, the best %s; Q = %zu, %zu seed%s\n\n", t->name,
                t->summary, s->offline_rows[task], n2_sheet_number(n2_tally_mean(&best), number),
                s->queries[task], s->n_seeds, s->n_seeds == 1 ? "" : "s");
    n2_sheet_add(out, &sheet);
    n2_text_add(out, "\n");
    add_others(out, s, task, 100);
    add_others(out, s, task, 50);
    n2_text_add(out, "\n");
    return N2CE_OK;
}

static n2ce_status add_text(n2_text *out, const void *about, n2_arena *arena) {
    const n2_bbo_study *s = about;
    char scale[256];
    n2_sheet ranks;
    for (size_t t = 0; t < s->n_tasks; t++)
        if (was_started(s, t)) N2_TRY(add_task(out, s, t, arena));
    N2_TRY(n2_bbo_rank_sheet(s, arena, &ranks));
    if (s->n_tasks > 1) {
        n2_sheet_add(out, &ranks);
        n2_text_add(out, "\n");
        if (has_gaps(s)) n2_text_add(out, "%s\n\n", n2_bbo_gaps);
    }
    if (s->interrupted)
        n2_text_add(out, "Interrupted after %zu of %zu runs.\n\n", s->n_done, n2_bbo_runs(s));
    n2_bbo_scale_text(s, scale);
    if (*scale) {
        n2_text_wrapped(out, scale);
        n2_text_add(out, "\n");
    }
    n2_text_wrapped(out, n2_bbo_caveat);
    return N2CE_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

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

static n2ce_status add_json(n2_text *out, const void *about, n2_arena *arena) {
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
    add_offline(out, s);
    add_summaries(out, s);
    add_ranks(out, s);
    add_published(out, s);
    return N2CE_OK;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static n2ce_status add_brief(n2_text *out, const void *about, n2_arena *arena) {
    const n2_bbo_study *s = about;
    (void)arena;
    for (size_t i = 0; i < n2_bbo_runs(s); i++) {
        char number[32];
        if (s->runs[i].done && i / s->n_seeds % s->n_methods < s->n_asked)
            n2_text_add(out, "%s\n", n2_format_number(s->runs[i].max, number));
    }
    return N2CE_OK;
}

static n2ce_status add_kept(n2_text *out, const void *about, n2_arena *arena) {
    const n2_bbo_study *s = about;
    (void)arena;
    n2_text_add(out, "%zu of %zu runs\n", s->n_done, n2_bbo_runs(s));
    return N2CE_OK;
}

n2ce_status n2_bbo_study_show(n2ce_ctx *ctx, const n2_bbo_study *study, n2ce_answer *answer) {
    N2_TRY(n2_form_write(ctx, study, add_text, &answer->text));
    N2_TRY(n2_form_write(ctx, study, add_json, &answer->json));
    N2_TRY(n2_form_write(ctx, study, add_brief, &answer->brief));
    N2_TRY(n2_form_write(ctx, study, add_kept, &answer->kept));
    return n2_bbo_study_page(ctx, study, &answer->html);
}
