/* The study of offline optimisation as tables and text. */
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
        if (!s->tasks[t]->variant_of) n2_tally_add(&mean, n2_bbo_rank(s, t, method, percentile));
    if (n) *n = mean.n;
    return n2_tally_mean(&mean);
}

static size_t ranked_tasks(const n2_bbo_study *s) {
    size_t n = 0;
    for (size_t t = 0; t < s->n_tasks; t++) n += s->tasks[t]->variant_of == NULL;
    return n;
}

bool n2_bbo_has_gaps(const n2_bbo_study *s) {
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

/* ---- tables ---------------------------------------------------------------------------------- */

static void put_spread(n2_cells *w, const n2_tally *t, const char *mark) {
    char number[32], about[32], cell[96];
    const double spread = n2_tally_spread(t);
    snprintf(about, sizeof about, fabs(spread) < 1e4 ? "%.3f" : "%.1e", spread);
    if (isfinite(spread))
        snprintf(cell, sizeof cell, "%s%s +- %s", mark,
                 n2_text_table_number(n2_tally_mean(t), number), about);
    else
        snprintf(cell, sizeof cell, "%s%s", mark, n2_text_table_number(n2_tally_mean(t), number));
    n2_cells_put(w, t->n ? cell : "");
}

static void put_published(n2_cells *w, const n2_bbo_published *p) {
    char cell[64] = "";
    if (p && isfinite(p->spread))
        snprintf(cell, sizeof cell, "%.3f +- %.3f", p->value, p->spread);
    else if (p)
        snprintf(cell, sizeof cell, "%.3f", p->value);
    n2_cells_put(w, cell);
}

static void put_number(n2_cells *w, double x, const char *format) {
    char cell[64] = "";
    if (isfinite(x)) snprintf(cell, sizeof cell, format, x);
    n2_cells_put(w, cell);
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

static void put_method(n2_cells *w, const n2_bbo_study *s, size_t task, size_t m, bool moved) {
    const n2_bbo_summary sum = n2_bbo_summarise(s, task, m);
    const char *t = s->tasks[task]->name, *name = s->methods[m]->method->name;
    const size_t q = s->queries[task];
    char label[192], some[80] = "";
    if (sum.done < s->n_seeds)
        snprintf(some, sizeof some, " (%zu of %zu seeds)", sum.done, s->n_seeds);
    snprintf(label, sizeof label, "%s%s%s", name, some, sum.failed ? " (failed)" : "");
    n2_cells_put(w, label);
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

n2ce_status n2_bbo_task_table(const n2_bbo_study *s, size_t task, n2_arena *arena,
                              n2_text_table *out) {
    static const char *const first[] = {"method", "max", "paper", "median", "paper"};
    static const char *const unmoved[] = {"max unmoved", "median unmoved"};
    static const char *const last[] = {"distinct", "inside", "seconds"};
    const bool moved = has_moved(s, task);
    const size_t columns = moved ? 10 : 8;
    *out = (n2_text_table){NULL, 0, 0};
    n2_cells w = n2_cells_new(arena, (s->n_methods + 1) * columns);
    n2_cells_put_all(&w, first, 5);
    if (moved) n2_cells_put_all(&w, unmoved, 2);
    n2_cells_put_all(&w, last, 3);
    for (size_t m = 0; m < s->n_methods; m++)
        if (n2_bbo_summarise(s, task, m).done) put_method(&w, s, task, m, moved);
    return n2_cells_table(&w, columns, out);
}

n2ce_status n2_bbo_rank_table(const n2_bbo_study *s, n2_arena *arena, n2_text_table *out) {
    static const char *const header[] = {"method", "mean rank of max", "of median", "of both",
                                         "tasks"};
    *out = (n2_text_table){NULL, 0, 0};
    if (ranked_tasks(s) < 2) return N2CE_OK;
    n2_cells w = n2_cells_new(arena, (s->n_methods + 1) * 5);
    n2_cells_put_all(&w, header, 5);
    for (size_t m = 0; m < s->n_methods; m++) {
        size_t n;
        const double max = n2_bbo_mean_rank(s, m, 100, &n),
                     median = n2_bbo_mean_rank(s, m, 50, NULL);
        n2_cells_put(&w, s->methods[m]->method->name);
        put_number(&w, max, "%.1f");
        put_number(&w, median, "%.1f");
        put_number(&w, (max + median) / 2, "%.2f");
        put_number(&w, (double)n, "%.0f");
    }
    return n2_cells_table(&w, 5, out);
}

/* Whether a method has drawn designs for some value on a task. */
static bool has_aimed(const n2_bbo_study *s, size_t task, size_t m) {
    for (size_t k = 0; k < s->n_seeds; k++)
        if (n2_bbo_run_at(s, task, m, k)->n_aims > 0) return true;
    return false;
}

static void put_aim(n2_cells *w, const n2_bbo_aim *a) {
    char mean[32], low[32], high[32], cell[128];
    snprintf(cell, sizeof cell, "%s (%s to %s)", n2_text_table_number(a->mean, mean),
             n2_text_table_number(a->low, low), n2_text_table_number(a->high, high));
    n2_cells_put(w, isfinite(a->mean) ? cell : "");
}

/* The value for a scaled one, from the first method that drew for it. */
static void put_target(n2_cells *w, const n2_bbo_study *s, size_t task, double scaled) {
    n2_bbo_aim aim = {0};
    char number[32];
    put_number(w, scaled, "%g");
    for (size_t m = 0; m < s->n_methods; m++)
        if (n2_bbo_aim_mean(s, task, m, scaled, &aim)) break;
    n2_cells_put(w, n2_text_table_number(aim.target, number));
}

n2ce_status n2_bbo_aim_table(const n2_bbo_study *s, size_t task, n2_arena *arena,
                             n2_text_table *out) {
    double *scaled;
    size_t rows, columns = 2;
    *out = (n2_text_table){NULL, 0, 0};
    N2_TRY(n2_bbo_aim_values(s, task, arena, &scaled, &rows));
    if (rows == 0) return N2CE_OK;
    for (size_t m = 0; m < s->n_methods; m++) columns += has_aimed(s, task, m);
    n2_cells w = n2_cells_new(arena, (rows + 1) * columns);
    n2_cells_put(&w, "target");
    n2_cells_put(&w, "value");
    for (size_t m = 0; m < s->n_methods; m++)
        if (has_aimed(s, task, m)) n2_cells_put(&w, s->methods[m]->method->name);
    for (size_t i = 0; i < rows; i++) {
        put_target(&w, s, task, scaled[i]);
        for (size_t m = 0; m < s->n_methods; m++) {
            n2_bbo_aim aim;
            n2_bbo_aim_mean(s, task, m, scaled[i], &aim);
            if (has_aimed(s, task, m)) put_aim(&w, &aim);
        }
    }
    return n2_cells_table(&w, columns, out);
}

n2ce_status n2_bbo_query_table(const n2_bbo_study *s, size_t task, n2_arena *arena,
                               n2_text_table *out) {
    static const char *const header[] = {"method", "Q", "max", "paper", "median", "paper"};
    size_t end = task;
    *out = (n2_text_table){NULL, 0, 0};
    while (end < s->n_tasks && s->tasks[end] == s->tasks[task]) end++;
    if (end - task < 2 || (task > 0 && s->tasks[task - 1] == s->tasks[task])) return N2CE_OK;
    n2_cells w = n2_cells_new(arena, (s->n_methods * (end - task) + 1) * 6);
    n2_cells_put_all(&w, header, 6);
    for (size_t m = 0; m < s->n_methods; m++)
        for (size_t t = task; t < end; t++) {
            const n2_bbo_summary sum = n2_bbo_summarise(s, t, m);
            const char *name = s->methods[m]->method->name, *of = s->tasks[t]->name;
            if (!sum.done) continue;
            n2_cells_put(&w, name);
            put_number(&w, (double)s->queries[t], "%.0f");
            put_spread(&w, &sum.max, "");
            put_published(&w, n2_bbo_published_find(of, name, s->queries[t], 100));
            put_spread(&w, &sum.median, "");
            put_published(&w, n2_bbo_published_find(of, name, s->queries[t], 50));
        }
    return n2_cells_table(&w, 6, out);
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
    n2_text_table table;
    char number[32];
    N2_TRY(n2_bbo_task_table(s, task, arena, &table));
    for (size_t k = 0; k < s->n_seeds; k++)
        n2_tally_add(&best, s->offline_best[task * s->n_seeds + k]);
    n2_text_add(out, "%s: %s; %zu rows offline, the best %s; Q = %zu, %zu seed%s\n\n", t->name,
                t->summary, s->offline_rows[task],
                n2_text_table_number(n2_tally_mean(&best), number), s->queries[task], s->n_seeds,
                s->n_seeds == 1 ? "" : "s");
    n2_text_table_add(out, &table);
    n2_text_add(out, "\n");
    add_others(out, s, task, 100);
    add_others(out, s, task, 50);
    n2_text_add(out, "\n");
    N2_TRY(n2_bbo_aim_table(s, task, arena, &table));
    if (!table.n_rows) return N2CE_OK;
    n2_text_add(out,
                "%s: values of designs drawn for a value (0: the least, 1: the best offline), "
                "mean and 10th to 90th percentile\n\n",
                t->name);
    n2_text_table_add(out, &table);
    n2_text_add(out, "\n");
    return N2CE_OK;
}

static n2ce_status add_text(n2_text *out, const void *about, n2_arena *arena) {
    const n2_bbo_study *s = about;
    char scale[256];
    n2_text_table ranks;
    for (size_t t = 0; t < s->n_tasks; t++)
        if (was_started(s, t)) N2_TRY(add_task(out, s, t, arena));
    N2_TRY(n2_bbo_rank_table(s, arena, &ranks));
    if (ranks.n_rows) {
        n2_text_table_add(out, &ranks);
        n2_text_add(out, "\n");
        if (n2_bbo_has_gaps(s)) n2_text_add(out, "%s\n\n", n2_bbo_gaps);
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
    N2_TRY(n2_form_write(ctx, study, n2_bbo_study_json, &answer->json));
    N2_TRY(n2_form_write(ctx, study, add_brief, &answer->brief));
    N2_TRY(n2_form_write(ctx, study, add_kept, &answer->kept));
    return n2_bbo_study_page(ctx, study, &answer->html);
}
