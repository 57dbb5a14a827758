/* The study of anomalies as tables and text. */
#include "anomaly_study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char n2_anomaly_caveat[] =
    "How to read it: AUPRC with the held-out digit as the positive class, mean +- standard "
    "deviation over seeds, of the last checkpoint; nothing was chosen by looking at the held-out "
    "digit. Chance achieves the share of odd pictures. Best is the largest AUPRC that any check "
    "during the training saw on these very pictures: it is chosen by the answer, and shown because "
    "published numbers most likely are. Rows in brackets are published: those of DAMC by the same "
    "split as far as can be told, those with a ! on other test sets, with 9 to 11 of 100 odd, and "
    "not comparable.";

/* ---- summaries ------------------------------------------------------------------------------- */

double n2_anomaly_best(const n2_anomaly_run *run) {
    double best = N2_NAN;
    for (size_t i = 0; i < run->n_checks; i++) best = fmax(best, run->checks[i].auprc);
    return best;
}

n2_anomaly_summary n2_anomaly_summarise(const n2_anomaly_study *s, size_t digit, size_t method) {
    n2_anomaly_summary sum = {0};
    for (size_t k = 0; k < s->n_seeds; k++) {
        const n2_anomaly_run *r = n2_anomaly_run_at(s, digit, method, k);
        if (!r->done) continue;
        sum.done++;
        sum.failed += r->failed;
        if (r->failed) continue;
        n2_tally_add(&sum.auprc, r->auprc);
        n2_tally_add(&sum.auroc, r->auroc);
        n2_tally_add(&sum.best, n2_anomaly_best(r));
        n2_tally_add(&sum.seconds, r->seconds);
        for (size_t p = 0; p < r->n_parts; p++) n2_tally_add(&sum.parts[p], r->parts[p].auprc);
    }
    return sum;
}

double n2_anomaly_prevalence(const n2_anomaly_study *s, size_t digit) {
    const double odd = (double)s->counts[digit].n_odd;
    return odd / (odd + (double)s->counts[digit].n_normal);
}

static n2_tally tally_of(const n2_anomaly_summary *sum, n2_anomaly_table which) {
    return which == N2_ANOMALY_LAST   ? sum->auprc
           : which == N2_ANOMALY_BEST ? sum->best
                                      : sum->auroc;
}

/* The mean over digits of a table's row; NaN unless all digits have a number. */
static double mean_of(const n2_anomaly_study *s, size_t method, n2_anomaly_table which) {
    double sum = 0;
    for (size_t d = 0; d < s->n_digits; d++) {
        const n2_anomaly_summary one = n2_anomaly_summarise(s, d, method);
        const n2_tally t = tally_of(&one, which);
        sum += n2_tally_mean(&t);
    }
    return sum / (double)s->n_digits;
}

double n2_anomaly_mean(const n2_anomaly_study *s, size_t method) {
    return mean_of(s, method, N2_ANOMALY_LAST);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void put_number(n2_cells *w, double x, const char *mark) {
    char cell[64] = "";
    if (isfinite(x)) snprintf(cell, sizeof cell, "%s%.3f", mark, x);
    n2_cells_put(w, cell);
}

static void put_tally(n2_cells *w, const n2_tally *t, const char *mark) {
    char cell[96];
    const double spread = n2_tally_spread(t);
    if (!isfinite(spread)) {
        put_number(w, n2_tally_mean(t), mark);
        return;
    }
    snprintf(cell, sizeof cell, "%s%.3f +- %.3f", mark, n2_tally_mean(t), spread);
    n2_cells_put(w, cell);
}

static const char *mark_of(const n2_anomaly_study *s, size_t digit, size_t method,
                           n2_anomaly_table which) {
    const n2_anomaly_summary own = n2_anomaly_summarise(s, digit, method);
    const n2_tally mine = tally_of(&own, which);
    for (size_t m = 0; m < s->n_methods; m++) {
        const n2_anomaly_summary sum = n2_anomaly_summarise(s, digit, m);
        const n2_tally t = tally_of(&sum, which);
        if (m != method && n2_tally_mean(&t) >= n2_tally_mean(&mine)) return "";
    }
    return s->n_methods > 1 && mine.n > 0 ? "*" : "";
}

static void put_header(n2_cells *w, const n2_anomaly_study *s) {
    char cell[32];
    n2_cells_put(w, "method");
    for (size_t d = 0; d < s->n_digits; d++) {
        snprintf(cell, sizeof cell, "digit %d", s->digits[d]);
        n2_cells_put(w, cell);
    }
    n2_cells_put(w, "mean");
    n2_cells_put(w, "seconds");
}

static void put_chance(n2_cells *w, const n2_anomaly_study *s, bool auroc) {
    double sum = 0;
    n2_cells_put(w, auroc ? "chance" : "share of odd");
    for (size_t d = 0; d < s->n_digits; d++) {
        const double chance = auroc ? 0.5 : n2_anomaly_prevalence(s, d);
        put_number(w, chance, "");
        sum += chance;
    }
    put_number(w, sum / (double)s->n_digits, "");
    n2_cells_put(w, "");
}

static void put_method(n2_cells *w, const n2_anomaly_study *s, size_t m, n2_anomaly_table which) {
    n2_tally seconds = {0};
    char cell[32] = "";
    n2_cells_put(w, s->methods[m]->name);
    for (size_t d = 0; d < s->n_digits; d++) {
        const n2_anomaly_summary sum = n2_anomaly_summarise(s, d, m);
        const n2_tally t = tally_of(&sum, which);
        put_tally(w, &t, mark_of(s, d, m, which));
        n2_tally_add(&seconds, n2_tally_mean(&sum.seconds));
    }
    put_number(w, mean_of(s, m, which), "");
    if (seconds.n) snprintf(cell, sizeof cell, "%.0f", n2_tally_mean(&seconds));
    n2_cells_put(w, cell);
}

static void put_published(n2_cells *w, const n2_anomaly_study *s, const n2_anomaly_published *p) {
    char cell[64];
    double sum = 0;
    snprintf(cell, sizeof cell, "(%s)%s", p->method, p->same_protocol ? "" : "!");
    n2_cells_put(w, cell);
    for (size_t d = 0; d < s->n_digits; d++) {
        const int place = n2_anomaly_published_place(s->digits[d]);
        cell[0] = '\0';
        if (place >= 0)
            snprintf(cell, sizeof cell, "%.3f +- %.3f", p->auprc[place], p->spread[place]);
        sum += place >= 0 ? p->auprc[place] : N2_NAN;
        n2_cells_put(w, cell);
    }
    put_number(w, sum / (double)s->n_digits, "");
    n2_cells_put(w, "");
}

/* Whether a method has a number in a table. */
static bool has_row(const n2_anomaly_study *s, size_t m, n2_anomaly_table which) {
    for (size_t d = 0; d < s->n_digits; d++) {
        const n2_anomaly_summary sum = n2_anomaly_summarise(s, d, m);
        if (tally_of(&sum, which).n > 0) return true;
    }
    return false;
}

n2ce_status n2_anomaly_table_of(const n2_anomaly_study *s, n2_anomaly_table which, n2_arena *arena,
                                n2_text_table *out) {
    const size_t columns = s->n_digits + 3, most = s->n_methods + 32;
    const n2_anomaly_published *p;
    n2_cells w = n2_cells_new(arena, most * columns);
    *out = (n2_text_table){NULL, 0, 0};
    put_header(&w, s);
    put_chance(&w, s, which == N2_ANOMALY_AUROC);
    const size_t before = w.n;
    for (size_t m = 0; m < s->n_methods; m++)
        if (has_row(s, m, which)) put_method(&w, s, m, which);
    if (w.n == before && !w.failed) return N2CE_OK;
    for (size_t i = 0; which == N2_ANOMALY_LAST && (p = n2_anomaly_published_at(i)); i++)
        put_published(&w, s, p);
    return n2_cells_table(&w, columns, out);
}

/* The names of a method's parts, from any of its runs; NULL: it has none. */
static const n2_anomaly_run *run_with_parts(const n2_anomaly_study *s, size_t m) {
    for (size_t i = 0; i < s->n_digits * s->n_seeds; i++) {
        const n2_anomaly_run *r = n2_anomaly_run_at(s, i / s->n_seeds, m, i % s->n_seeds);
        if (r->n_parts > 0) return r;
    }
    return NULL;
}

static void put_parts(n2_cells *w, const n2_anomaly_study *s, size_t m) {
    const n2_anomaly_run *named = run_with_parts(s, m);
    char cell[96];
    for (size_t p = 0; named && p < named->n_parts; p++) {
        snprintf(cell, sizeof cell, "%s: %s", s->methods[m]->name, named->parts[p].name);
        n2_cells_put(w, cell);
        for (size_t d = 0; d < s->n_digits; d++) {
            const n2_anomaly_summary sum = n2_anomaly_summarise(s, d, m);
            put_tally(w, &sum.parts[p], "");
        }
    }
}

n2ce_status n2_anomaly_parts_table(const n2_anomaly_study *s, n2_arena *arena, n2_text_table *out) {
    const size_t columns = s->n_digits + 1;
    n2_cells w = n2_cells_new(arena, (s->n_methods * N2_ANOMALY_PARTS + 1) * columns);
    char cell[32];
    n2_cells_put(&w, "part of the score");
    for (size_t d = 0; d < s->n_digits; d++) {
        snprintf(cell, sizeof cell, "digit %d", s->digits[d]);
        n2_cells_put(&w, cell);
    }
    for (size_t m = 0; m < s->n_methods; m++) put_parts(&w, s, m);
    return n2_cells_table(&w, columns, out);
}

/* ---- terminal -------------------------------------------------------------------------------- */

static n2ce_status add_table(n2_text *out, const char *title, const n2_text_table *table) {
    if (!table->n_rows) return N2CE_OK;
    n2_text_add(out, "%s\n\n", title);
    n2_text_table_add(out, table);
    n2_text_add(out, "\n");
    return N2CE_OK;
}

static n2ce_status add_text(n2_text *out, const void *about, n2_arena *arena) {
    const n2_anomaly_study *s = about;
    n2_text_table table;
    N2_TRY(n2_anomaly_table_of(s, N2_ANOMALY_LAST, arena, &table));
    N2_TRY(add_table(out, "AUPRC, last checkpoint", &table));
    N2_TRY(n2_anomaly_table_of(s, N2_ANOMALY_BEST, arena, &table));
    N2_TRY(add_table(out, "AUPRC, best checkpoint by the test pictures", &table));
    N2_TRY(n2_anomaly_parts_table(s, arena, &table));
    N2_TRY(add_table(out, "AUPRC of parts of the scores, last checkpoint", &table));
    if (s->interrupted) n2_text_add(out, "Interrupted after %zu runs.\n\n", s->n_done);
    n2_text_wrapped(out, n2_anomaly_caveat);
    return N2CE_OK;
}

static n2ce_status add_brief(n2_text *out, const void *about, n2_arena *arena) {
    const n2_anomaly_study *s = about;
    char number[32];
    (void)arena;
    for (size_t i = 0; i < n2_anomaly_runs(s); i++)
        if (s->runs[i].done) n2_text_add(out, "%s\n", n2_format_number(s->runs[i].auprc, number));
    return N2CE_OK;
}

static n2ce_status add_kept(n2_text *out, const void *about, n2_arena *arena) {
    const n2_anomaly_study *s = about;
    (void)arena;
    n2_text_add(out, "%zu runs\n", s->n_done);
    return N2CE_OK;
}

n2ce_status n2_anomaly_study_show(n2ce_ctx *ctx, const n2_anomaly_study *s, n2ce_answer *answer) {
    N2_TRY(n2_form_write(ctx, s, add_text, &answer->text));
    N2_TRY(n2_form_write(ctx, s, n2_anomaly_study_json, &answer->json));
    N2_TRY(n2_form_write(ctx, s, add_brief, &answer->brief));
    N2_TRY(n2_form_write(ctx, s, add_kept, &answer->kept));
    return n2_anomaly_study_page(ctx, s, &answer->html);
}
