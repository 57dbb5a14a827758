/* The study of ratio estimators as tables, text and JSON. */
#include "base/numerics.h"
#include "published.h"
#include "ratio_study.h"
#include "report/text_table.h"
#include "task/task.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char n2_study_caveat[] =
    "How to read it: on Gaussian problems (sanity, tre, shifted-2d, correlated-normal, mutinfo, "
    "gaussian-mi, the multinormal tasks of bmi) the quadratic part of n2ce is exact by "
    "construction, up to sampling error. Where n2ce is good there, that shows the closed form, not "
    "the objective. What is learned is seen in n2ce-net, the network alone, and on problems that "
    "are not Gaussian: bmi's additive noise, Student, spiral, Swiss roll. The baselines are this "
    "program's own, with one set of training defaults and no tuning by problem; what others have "
    "published for theirs stands beside them.";

const char n2_study_legend[] =
    "Estimates are means +- standard deviations over seeds, in nats; \"zero\" is the guess 0, "
    "whose "
    "error is the truth. \"!\": at least one fit failed, or is not trusted by its own account.";

/* ---- groups ---------------------------------------------------------------------------------- */

const char *n2_study_group_text(const char *group) {
    static const char *const texts[][2] = {
        {"bmi", "mutual information, tasks of Czyz et al. 2023, columns rescaled"},
        {"gaussian-mi", "mutual information of d/2 correlated pairs (Rhodes et al. 2020)"},
        {"mutinfo", "mutual information of d x d dimensions, 2 nats each"},
        {"correlated-normal", "mutual information of a bivariate normal"},
        {"tre", "KL of one-dimensional normals far apart, or of far different widths"},
        {"shifted-2d", "KL of N((4,4), I) from N(0, I) (Choi et al. 2022)"},
        {"sanity", "KL of N(a, I) from N(0, I), the targets of n2ce study gaussian"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(texts[i][0], group) == 0) return texts[i][1];
    return "";
}

size_t n2_study_group_end(const n2_ratio_study *s, size_t first) {
    size_t end = first;
    while (end < s->n_problems && strcmp(s->problems[end]->group, s->problems[first]->group) == 0)
        end++;
    return end;
}

/* ---- summaries ------------------------------------------------------------------------------- */

static const n2_study_fit *fit_at(const n2_ratio_study *s, size_t p, size_t m, size_t seed) {
    return &s->fits[(p * s->n_methods + m) * s->n_seeds + seed];
}

n2_study_summary n2_study_summarise(const n2_ratio_study *s, size_t first, size_t end,
                                    size_t method) {
    n2_study_summary sum = {0};
    n2_tally estimate = {0}, error = {0}, relative = {0}, mse = {0}, seconds = {0};
    for (size_t i = first * s->n_seeds; i < end * s->n_seeds; i++) {
        const n2_study_fit *f = fit_at(s, i / s->n_seeds, method, i % s->n_seeds);
        if (!f->done) continue;
        const double truth = s->problems[i / s->n_seeds]->truth;
        sum.done++;
        sum.failed += f->failed;
        sum.doubtful += !f->failed && !f->trusted;
        n2_tally_add(&estimate, f->estimate);
        n2_tally_add(&error, fabs(f->estimate - truth));
        n2_tally_add(&relative, fabs(f->estimate - truth) / truth);
        n2_tally_add(&mse, f->log_ratio_mse);
        n2_tally_add(&seconds, f->seconds);
    }
    sum.mean = n2_tally_mean(&estimate);
    sum.spread = n2_tally_spread(&estimate);
    sum.error = n2_tally_mean(&error);
    sum.relative = n2_tally_mean(&relative);
    sum.mse = n2_tally_mean(&mse);
    sum.seconds = n2_tally_mean(&seconds);
    return sum;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Cells of a table, added row by row. Errors are sticky. */
typedef struct table_writer {
    const n2_ratio_study *study;
    n2_arena *arena;
    n2_study_table which;
    const char **cells;
    size_t n, columns;
    bool failed;
} table_writer;

static void put(table_writer *w, const char *text) {
    const char *copy = w->failed ? NULL : n2_arena_strdup(w->arena, text);
    if (copy)
        w->cells[w->n++] = copy;
    else
        w->failed = true;
}

static void put_value(table_writer *w, double x) {
    char number[32];
    put(w, n2_text_table_number(x, number));
}

/* Where the error is the least, among the methods and the guess 0; n_methods stands for that. */
static size_t best_method(const n2_ratio_study *s, size_t p, n2_study_table which) {
    size_t best = s->n_methods;
    double least = which == N2_STUDY_ESTIMATES ? s->problems[p]->truth : N2_INFINITY;
    for (size_t m = 0; m < s->n_methods; m++) {
        const n2_study_summary sum = n2_study_summarise(s, p, p + 1, m);
        const double error = which == N2_STUDY_ESTIMATES ? sum.error : sum.mse;
        if (!(error < least) || sum.failed) continue;
        least = error;
        best = m;
    }
    return best;
}

static void put_summary(table_writer *w, const n2_study_summary *sum, bool best) {
    char cell[96], number[32], text[64] = "";
    if (w->which == N2_STUDY_MSE && isfinite(sum->mse))
        snprintf(text, sizeof text, "%.3g", sum->mse);
    else if (w->which == N2_STUDY_ESTIMATES && isfinite(sum->spread))
        snprintf(text, sizeof text, "%s +- %.2g", n2_text_table_number(sum->mean, number),
                 sum->spread);
    else if (w->which == N2_STUDY_ESTIMATES)
        snprintf(text, sizeof text, "%s", n2_text_table_number(sum->mean, number));
    snprintf(cell, sizeof cell, "%s%s%s", best ? "*" : "", text,
             sum->failed || sum->doubtful ? "!" : "");
    put(w, sum->done && sum->failed == sum->done ? "failed!" : cell);
}

static void put_problem(table_writer *w, size_t p) {
    const n2_ratio_study *s = w->study;
    const size_t best = best_method(s, p, w->which);
    put(w, s->problems[p]->name);
    if (w->which == N2_STUDY_ESTIMATES) {
        put_value(w, s->problems[p]->truth);
        put(w, best == s->n_methods ? "*0" : "0");
    }
    for (size_t m = 0; m < s->n_methods; m++) {
        const n2_study_summary sum = n2_study_summarise(s, p, p + 1, m);
        put_summary(w, &sum, m == best);
    }
    put(w, "");
}

/* With as many digits as were published. */
static void format_published(const n2_published *p, char buffer[64]) {
    char number[32] = "", spread[24] = "";
    if (p && isfinite(p->spread)) snprintf(spread, sizeof spread, " +- %.2g", p->spread);
    snprintf(buffer, 64, "%s%s", p ? n2_format_number(p->value, number) : "", spread);
}

static bool has_method(const n2_ratio_study *s, const char *name) {
    for (size_t m = 0; m < s->n_methods; m++)
        if (strcmp(s->methods[m]->name, name) == 0) return true;
    return false;
}

/* "ksg 0.05, weighted-knn 0.02": what was published of methods without a column. */
static void put_others(table_writer *w, const char *problem, n2_published_kind kind) {
    char all[256] = "";
    const n2_published *p;
    for (size_t i = 0; (p = n2_published_at(i)); i++) {
        if (p->kind != kind || strcmp(p->problem, problem) != 0 || has_method(w->study, p->method))
            continue;
        char number[64];
        const size_t n = strlen(all);
        format_published(p, number);
        snprintf(all + n, sizeof all - n, "%s%s %s", n ? ", " : "", p->method, number);
    }
    put(w, all);
}

static bool is_published(const char *problem, n2_published_kind kind) {
    const n2_published *p;
    for (size_t i = 0; (p = n2_published_at(i)); i++)
        if (p->kind == kind && strcmp(p->problem, problem) == 0) return true;
    return false;
}

static void put_published(table_writer *w, size_t p, n2_published_kind kind) {
    const n2_ratio_study *s = w->study;
    const char *problem = s->problems[p]->name;
    if (!is_published(problem, kind)) return;
    put(w, kind == N2_PUBLISHED_ERROR ? "  published |error|" : "  published");
    for (int i = 0; i < (w->which == N2_STUDY_ESTIMATES ? 2 : 0); i++) put(w, "");
    for (size_t m = 0; m < s->n_methods; m++) {
        char cell[64];
        format_published(n2_published_find(problem, s->methods[m]->name, kind), cell);
        put(w, cell);
    }
    put_others(w, problem, kind);
}

/* ---- below the problems ---- */

typedef enum foot { FOOT_ERROR, FOOT_RELATIVE, FOOT_DOUBTFUL, FOOT_FAILED, FOOT_SECONDS } foot;

static double baseline(const n2_ratio_study *s, size_t first, size_t end, foot which) {
    n2_tally truth = {0};
    for (size_t p = first; p < end; p++)
        if (fit_at(s, p, 0, 0)->done) n2_tally_add(&truth, s->problems[p]->truth);
    return which == FOOT_ERROR ? n2_tally_mean(&truth) : which == FOOT_RELATIVE ? 1 : N2_NAN;
}

static void put_count(table_writer *w, size_t count, size_t of) {
    char cell[48];
    snprintf(cell, sizeof cell, "%zu of %zu", count, of);
    put(w, of ? cell : "");
}

static void put_foot(table_writer *w, size_t first, size_t end, foot which) {
    static const char *const names[] = {"mean |error|", "mean |error| / truth", "not trusted",
                                        "failed", "mean seconds"};
    const n2_ratio_study *s = w->study;
    put(w, names[which]);
    put(w, "");
    put_value(w, baseline(s, first, end, which));
    for (size_t m = 0; m < s->n_methods; m++) {
        const n2_study_summary sum = n2_study_summarise(s, first, end, m);
        if (which == FOOT_DOUBTFUL || which == FOOT_FAILED)
            put_count(w, which == FOOT_FAILED ? sum.failed : sum.doubtful, sum.done);
        else
            put_value(w, which == FOOT_ERROR      ? sum.error
                         : which == FOOT_RELATIVE ? sum.relative
                                                  : sum.seconds);
    }
    put(w, "");
}

static void put_feet(table_writer *w, size_t first, size_t end) {
    size_t failed = 0, doubtful = 0;
    for (size_t m = 0; m < w->study->n_methods; m++) {
        const n2_study_summary sum = n2_study_summarise(w->study, first, end, m);
        failed += sum.failed;
        doubtful += sum.doubtful;
    }
    put_foot(w, first, end, FOOT_ERROR);
    put_foot(w, first, end, FOOT_RELATIVE);
    if (doubtful) put_foot(w, first, end, FOOT_DOUBTFUL);
    if (failed) put_foot(w, first, end, FOOT_FAILED);
    put_foot(w, first, end, FOOT_SECONDS);
}

/* ---- whole tables ---- */

static void put_header(table_writer *w) {
    put(w, "problem");
    if (w->which == N2_STUDY_ESTIMATES) {
        put(w, "truth");
        put(w, "zero");
    }
    for (size_t m = 0; m < w->study->n_methods; m++) put(w, w->study->methods[m]->name);
    put(w, "published too");
}

static bool was_started(const n2_ratio_study *s, size_t p) { return fit_at(s, p, 0, 0)->done; }

static bool has_mse(const n2_ratio_study *s, size_t p) {
    for (size_t m = 0; m < s->n_methods; m++)
        if (isfinite(n2_study_summarise(s, p, p + 1, m).mse)) return true;
    return false;
}

/* The last column goes where nothing stands in it. */
static void drop_empty_column(n2_text_table *table) {
    const size_t columns = table->n_columns;
    for (size_t i = 1; i < table->n_rows; i++)
        if (*table->cells[i * columns + columns - 1]) return;
    for (size_t i = 0; i < table->n_rows; i++)
        memmove(&table->cells[i * (columns - 1)], &table->cells[i * columns],
                (columns - 1) * sizeof *table->cells);
    table->n_columns--;
}

n2ce_status n2_study_table_make(const n2_ratio_study *s, size_t first, size_t end,
                                n2_study_table which, n2_arena *arena, n2_text_table *out) {
    const bool estimates = which == N2_STUDY_ESTIMATES;
    const size_t columns = s->n_methods + (estimates ? 4 : 2);
    table_writer w = {.study = s, .arena = arena, .which = which, .columns = columns};
    *out = (n2_text_table){NULL, 0, 0};
    w.cells = n2_arena_alloc(arena, (3 * (end - first) + 6) * columns, sizeof(*w.cells));
    if (!w.cells) return N2CE_ENOMEM;
    put_header(&w);
    for (size_t p = first; p < end; p++) {
        if (estimates ? !was_started(s, p) : !has_mse(s, p)) continue;
        put_problem(&w, p);
        if (estimates) put_published(&w, p, N2_PUBLISHED_ESTIMATE);
        put_published(&w, p, estimates ? N2_PUBLISHED_ERROR : N2_PUBLISHED_MSE);
    }
    if (w.n == columns) return w.failed ? N2CE_ENOMEM : N2CE_OK; /* nothing but the header */
    if (estimates) put_feet(&w, first, end);
    if (w.failed) return N2CE_ENOMEM;
    *out = (n2_text_table){w.cells, w.n / columns, columns};
    drop_empty_column(out);
    return N2CE_OK;
}

/* ---- terminal -------------------------------------------------------------------------------- */

static n2ce_status add_group(n2_text *out, const n2_ratio_study *s, size_t first, size_t end,
                             n2_arena *arena) {
    const n2_problem *p = s->problems[first];
    n2_text_table table;
    N2_TRY(n2_study_table_make(s, first, end, N2_STUDY_ESTIMATES, arena, &table));
    if (!table.n_rows) return N2CE_OK;
    n2_text_add(out, "%s: %s; %zu rows%s, %zu seed%s\n\n", p->group, n2_study_group_text(p->group),
                s->rows ? s->rows : p->n, p->kind == N2_PROBLEM_KL ? " a side" : "", s->n_seeds,
                s->n_seeds == 1 ? "" : "s");
    n2_text_table_add(out, &table);
    n2_text_add(out, "\n");
    N2_TRY(n2_study_table_make(s, first, end, N2_STUDY_MSE, arena, &table));
    if (!table.n_rows) return N2CE_OK;
    n2_text_add(out, "mean squared error of the log ratio at fresh rows of the numerator\n\n");
    n2_text_table_add(out, &table);
    n2_text_add(out, "\n");
    return N2CE_OK;
}

static n2ce_status add_text(n2_text *out, const void *about, n2_arena *arena) {
    const n2_ratio_study *s = about;
    for (size_t p = 0; p < s->n_problems; p = n2_study_group_end(s, p))
        N2_TRY(add_group(out, s, p, n2_study_group_end(s, p), arena));
    if (s->interrupted)
        n2_text_add(
            out,
            "Interrupted after %zu of %zu fits: the means of the methods are over different "
            "problems.\n\n",
            s->n_done, n2_study_fits(s));
    n2_text_wrapped(out, n2_study_legend);
    n2_text_add(out, "A star marks the smallest error of a row.\n\n");
    n2_text_wrapped(out, n2_study_caveat);
    return N2CE_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void add_json_number(n2_text *out, const char *key, double value) {
    n2_text_add(out, ", \"%s\": ", key);
    n2_text_add_number(out, value);
}

static void add_json_row(n2_text *out, const n2_problem *p, const n2_study_method *m,
                         const n2_study_fit *f) {
    n2_text_add(out, "{\"task\": \"%s\", \"method\": \"%s\", \"seed\": %llu", p->name, m->name,
                (unsigned long long)f->seed);
    add_json_number(out, "truth", p->truth);
    add_json_number(out, "estimate", f->estimate);
    add_json_number(out, "lo", f->lo);
    add_json_number(out, "hi", f->hi);
    n2_text_add(out, ", \"device\": \"%s\", \"seconds\": %.3f", f->device, f->seconds);
    add_json_number(out, "log_ratio_mse", f->log_ratio_mse);
    n2_text_add(out, ", \"trusted\": %s}", f->trusted ? "true" : "false");
}

static void add_json_rows(n2_text *out, const n2_ratio_study *s) {
    const char *separator = "";
    n2_text_add(out, "\"rows\": [");
    for (size_t i = 0; i < n2_study_fits(s); i++) {
        const size_t cell = i / s->n_seeds;
        if (!s->fits[i].done) continue;
        n2_text_add(out, "%s\n    ", separator);
        add_json_row(out, s->problems[cell / s->n_methods], s->methods[cell % s->n_methods],
                     &s->fits[i]);
        separator = ",";
    }
    n2_text_add(out, "\n  ]");
}

static bool has_problem(const n2_ratio_study *s, const char *name) {
    for (size_t p = 0; p < s->n_problems; p++)
        if (strcmp(s->problems[p]->name, name) == 0) return true;
    return false;
}

static void add_json_published(n2_text *out, const n2_ratio_study *s) {
    const char *separator = "";
    const n2_published *p;
    n2_text_add(out, "\"published\": [");
    for (size_t i = 0; (p = n2_published_at(i)); i++) {
        if (!has_problem(s, p->problem)) continue;
        n2_text_add(out, "%s\n    {\"task\": \"%s\", \"method\": \"%s\", \"kind\": \"%s\"",
                    separator, p->problem, p->method, n2_published_kind_name(p->kind));
        add_json_number(out, "value", p->value);
        add_json_number(out, "spread", p->spread);
        n2_text_add(out, ", \"source\": \"%s\"}", p->source);
        separator = ",";
    }
    n2_text_add(out, "%s]", *separator ? "\n  " : "");
}

static n2ce_status add_json(n2_text *out, const void *about, n2_arena *arena) {
    const n2_ratio_study *s = about;
    (void)arena;
    n2_text_add(out, "{\"study\": \"ratio\", \"version\": \"%s\", \"interrupted\": %s,\n  ",
                n2ce_version(), s->interrupted ? "true" : "false");
    n2_text_add(out, "\"options\": ");
    n2_options_json(s->options, out);
    n2_text_add(out, ",\n  ");
    add_json_rows(out, s);
    n2_text_add(out, ",\n  ");
    add_json_published(out, s);
    n2_text_add(out, "\n}\n");
    return N2CE_OK;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static n2ce_status add_brief(n2_text *out, const void *about, n2_arena *arena) {
    const n2_ratio_study *s = about;
    (void)arena;
    for (size_t i = 0; i < n2_study_fits(s); i++) {
        char number[32];
        if (s->fits[i].done)
            n2_text_add(out, "%s\n", n2_format_number(s->fits[i].estimate, number));
    }
    return N2CE_OK;
}

static n2ce_status add_kept(n2_text *out, const void *about, n2_arena *arena) {
    const n2_ratio_study *s = about;
    (void)arena;
    n2_text_add(out, "%zu of %zu fits\n", s->n_done, n2_study_fits(s));
    return N2CE_OK;
}

n2ce_status n2_ratio_study_show(n2ce_ctx *ctx, const n2_ratio_study *study, n2ce_answer *answer) {
    N2_TRY(n2_form_write(ctx, study, add_text, &answer->text));
    N2_TRY(n2_form_write(ctx, study, add_json, &answer->json));
    N2_TRY(n2_form_write(ctx, study, add_brief, &answer->brief));
    N2_TRY(n2_form_write(ctx, study, add_kept, &answer->kept));
    return n2_ratio_study_page(ctx, study, &answer->html);
}
