/* test: do two samples have one distribution? */
#include "base/numerics.h"
#include "ratio/permutation.h"
#include "ratio/two_sample.h"
#include "ratio_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const n2ce_option test_options[] = {
    {"num", 'n', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE",
     "samples of one distribution: CSV or NPY, - for standard input"},
    {"den", 'd', N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE", "samples of the other"},
    N2_COLUMNS_OPTION,
    {"permutations", 0, N2CE_OPTION_COUNT, "999", 9, 1e7, NULL, "N", "permutations of the labels"},
    N2_SAMPLE_OPTIONS,
    N2_FIT_OPTIONS,
    N2_REPORT_OPTION,
    N2_FORCE_OPTION,
    {0},
};

/* What the statistic is if labels are permuted, and a histogram of what was drawn. */
typedef struct null_distribution {
    n2_null exact;
    n2_bins bins;
    n2_histogram drawn;
} null_distribution;

static void add_drawn(void *user, double mean) {
    null_distribution *d = user;
    n2_histogram_add(&d->drawn, &d->bins, mean);
}

static null_distribution null_of(const double *score, size_t n, size_t all) {
    const n2_null e = n2_null_of(score, n, all);
    return (null_distribution){
        .exact = e, .bins = n2_bins_between(e.mean - 4.5 * e.spread, e.mean + 4.5 * e.spread, 40)};
}

typedef struct test_result {
    double p;                   /* the answer */
    n2_two_sample of_all;       /* seven statistics of rows as they are */
    bool both;                  /* p combines them with the learned ratio's */
    double learned_p, accuracy; /* of held-out rows by the ratio that was learnt from the others;
                                   accuracy: share on the right side, both samples alike */
    size_t n[2];                /* num, den: held out */
    null_distribution null;
    n2_judgement verdict; /* of the ratio */
} test_result;

/* Scores of held-out rows, bounded so that no single one decides. */
static n2ce_status judge(n2_session *s, double *const rows[2], test_result *t) {
    const size_t n = t->n[0], all = n + t->n[1], sizes[2] = {t->n[1], n};
    double *f = n2_alloc(s->ctx, all, sizeof *f);
    if (!f) return N2CE_ENOMEM;
    n2ce_status status = n2_ratio_score(s->ratio, rows[0], n, f);
    if (status == N2CE_OK) status = n2_ratio_score(s->ratio, rows[1], all - n, f + n);
    if (status == N2CE_OK && s->report)
        n2_report_show(s->report, (const double *[]){f + n, f}, sizes);
    if (status == N2CE_OK) {
        t->accuracy = n2_balanced_accuracy(f, n, all);
        for (size_t i = 0; i < all; i++) f[i] = tanh(0.5 * f[i]);
        t->null = null_of(f, n, all);
        t->learned_p =
            n2_permutation_p(f, n, all, (size_t)n2_options_count(s->options, "permutations"),
                             s->fit.seed, add_drawn, &t->null);
    }
    n2_free(s->ctx, f);
    return status;
}

/* ---- the p-value ---- */

/* Rows a side from which on the learned ratio has a say: with fewer, statistics of all rows see
 * more than a ratio that is learnt from half of them. */
enum { MANY_ROWS = 3000 };

/* Of two p-values that have nothing to do with one another, of the better one: the learned ratio's
 * needs to be half as large. Exact, for P(min(p, 2q) <= t) = 1 - (1 - t)(1 - t/2). */
static double combine(double p, double learned) {
    const double t = fmin(fmin(p, 2 * learned), 1);
    return 1 - (1 - t) * (1 - t / 2);
}

/* Rows of the two samples as they are; of many rows those that the ratio is learnt from, so that
 * what it says of the others is independent of it. */
static n2ce_status ask_all_rows(n2_session *s, test_result *t) {
    size_t *levels;
    N2_TRY(n2_session_levels(s, &levels));
    t->both = s->num->rows >= MANY_ROWS && s->den->rows >= MANY_ROWS;
    const size_t part = t->both ? 2 : 1;
    const n2_two_sample_data data = {.num = s->num->x,
                                     .den = s->den->x,
                                     .n_num = s->num->rows / part,
                                     .n_den = s->den->rows / part,
                                     .d = s->num->cols,
                                     .levels = levels};
    const n2ce_status status =
        n2_two_sample_test(s->ctx, &data, (size_t)n2_options_count(s->options, "permutations"),
                           s->fit.seed, &t->of_all);
    n2_free(s->ctx, levels);
    return status;
}

static const char *finding(const test_result *t) {
    return t->p < 0.05 ? "the samples differ at the 5 % level"
                       : "no difference found at the 5 % level";
}

/* ---- the page ---- */

/* Farther out than this many spreads the observed value is drawn at the edge. */
static const double FAR = 25;

static void add_null(const void *about, n2_text *page) {
    const test_result *t = about;
    const null_distribution *d = &t->null;
    double x[N2_MOST_STEPS], y[N2_MOST_STEPS], zero[N2_MOST_STEPS] = {0}, top = 0;
    const size_t n = n2_histogram_steps(&d->drawn, &d->bins, x, y);
    for (size_t i = 0; i < n; i++) top = fmax(top, y[i]);
    const double away =
        d->exact.spread > 0 ? (d->exact.observed - d->exact.mean) / d->exact.spread : 0;
    const double at = fabs(away) > FAR ? d->exact.mean + copysign(FAR * d->exact.spread, away)
                                       : d->exact.observed;
    const double mark[2] = {at, at}, height[2] = {0, top};
    char observed[120];
    snprintf(observed, sizeof observed, "observed: %.4g, %.1f standard deviations away%s",
             d->exact.observed, away, fabs(away) > FAR ? " (beyond the edge)" : "");
    const n2_series series[] = {
        {.label = "permuted labels", .x = x, .y = y, .n = n, .low = zero, .high = y, .colour = -1},
        {.label = observed, .x = mark, .y = height, .n = 2, .colour = 1}};
    const n2_plot plot = {.title = "The statistic under permuted labels",
                          .x_label = "mean score of rows labelled num",
                          .y_label = "density of permutations",
                          .series = series,
                          .n_series = 2};
    n2_page_section(page, "The test");
    n2_page_figure(page, &plot,
                   "The score of a row is tanh(f/2), f its log ratio by a fit to the other half of "
                   "the rows. If the distributions are the same, the observed mean is one like "
                   "those of permuted labels. This is the learned ratio alone; the p-value at the "
                   "top is that of "
                   "statistics of the rows as they are and, with many rows, of both.");
}

static n2ce_status write_page(const n2_session *s, const test_result *t, n2ce_answer *answer) {
    char title[200], p[32], accuracy[32], rows[96], verdict[96];
    snprintf(title, sizeof title, "Do %.70s and %.70s have one distribution?",
             n2_report_sample(s, 1), n2_report_sample(s, 0));
    snprintf(p, sizeof p, "%.4g", t->p);
    snprintf(accuracy, sizeof accuracy, "%.4f", t->accuracy);
    snprintf(rows, sizeof rows, "0.5 is chance; on %zu and %zu rows", t->n[0], t->n[1]);
    snprintf(verdict, sizeof verdict, "%s", finding(t));
    const n2_page_number numbers[] = {
        {"p-value of the two-sample test", p, NULL, "small: the distributions differ"},
        {"accuracy of telling rows apart", accuracy, NULL, rows}};
    const n2_report_front front = {.verb = "test",
                                   .title = title,
                                   .numbers = numbers,
                                   .n_numbers = 2,
                                   .verdict = verdict,
                                   .more = add_null,
                                   .about = t};
    return n2_report_page(s, &front, answer);
}

/* ---- text and JSON ---- */

static void add_null_json(const null_distribution *d, n2_text *json) {
    const n2_histogram *const drawn[1] = {&d->drawn};
    const char *const names[1] = {"permutations"};
    n2_text_add(json, ", \"null\": {\"observed\": ");
    n2_text_add_number(json, d->exact.observed);
    n2_text_add(json, ", \"mean\": ");
    n2_text_add_number(json, d->exact.mean);
    n2_text_add(json, ", \"spread\": ");
    n2_text_add_number(json, d->exact.spread);
    n2_text_add(json, ", \"histogram\": ");
    n2_report_json_bins(json, &d->bins, drawn, names, 1);
    n2_text_add(json, "}");
}

static void add_statistics_json(const n2_session *s, const test_result *t, n2_text *json) {
    n2_text_add(json, ", \"statistics\": {");
    for (size_t k = 0; k < N2_TS_STATISTICS; k++) {
        n2_text_add(json, "\"%s\": ", n2_two_sample_names[k]);
        n2_text_add_number(json, t->of_all.each[k]);
        n2_text_add(json, ", ");
    }
    n2_text_add(json, "\"all\": ");
    n2_text_add_number(json, t->of_all.p);
    n2_text_add(json, ", \"learned\": ");
    n2_text_add_number(json, t->learned_p);
    n2_text_add(json, "}, \"copies\": %zu", s->copies);
}

static void note_test(const n2_session *s, const test_result *t) {
    const n2ce_test_result result = {.p = t->p,
                                     .accuracy = t->accuracy,
                                     .permutations =
                                         (size_t)n2_options_count(s->options, "permutations"),
                                     .n_num = t->n[0],
                                     .n_den = t->n[1],
                                     .trusted = t->verdict.trust == N2_TRUSTED};
    n2_note_test(s->answer, &result);
    n2_note_number(s->answer, "p", t->p);
    n2_note_number(s->answer, "accuracy", t->accuracy);
    n2_note_number(s->answer, "permutations", (double)result.permutations);
}

static void write_test(const n2_session *s, const test_result *t, n2_writer *w) {
    n2_text_add(&w->text, "two-sample test        p = %.4g   (%s)\n", t->p, finding(t));
    n2_text_add(&w->text, "most telling           %s, p = %.4g by itself\n",
                n2_two_sample_names[t->of_all.best], t->of_all.each[t->of_all.best]);
    n2_text_add(&w->text, "held-out accuracy      %.4f   (0.5 is chance; %zu and %zu rows)\n",
                t->accuracy, t->n[0], t->n[1]);
    n2_text_add(&w->text, "chosen     ");
    n2_session_say(s, &w->text);
    n2_text_add(&w->json, "{\"p\": ");
    n2_text_add_number(&w->json, t->p);
    n2_text_add(&w->json, ", \"accuracy\": ");
    n2_text_add_number(&w->json, t->accuracy);
    add_statistics_json(s, t, &w->json);
    n2_text_add(&w->json, ", \"permutations\": %llu, \"verdict\": \"%s\"",
                (unsigned long long)n2_options_count(s->options, "permutations"),
                n2_trust_name(t->verdict.trust));
    if (s->report) {
        n2_report_json(s, &w->json);
        add_null_json(&t->null, &w->json);
        n2_text_add(&w->json, "}");
    }
    n2_text_add(&w->json, ", ");
    n2_session_json(s, &w->json);
    n2_text_add(&w->json, "}\n");
    n2_text_add_number(&w->brief, t->p);
    n2_text_add(&w->brief, "\n");
    n2_text_add(&w->kept, "nothing\n");
}

/* The critic is fitted on one half of each sample; on the other half labels can be
 * exchanged if the distributions are the same, which makes its p-value exact. */
static n2ce_status learn(n2_session *s, test_result *t) {
    double *rows[2] = {NULL, NULL};
    if (!t->both && n2_options_has_word(s->options, "critic", "auto"))
        s->fit.parts = N2_PARTS_QUADRATIC; /* it is asked for the accuracy alone */
    n2ce_status status = n2_table_cut(s->num, s->num->rows / 2, &rows[0], &t->n[0]);
    if (status == N2CE_OK) status = n2_table_cut(s->den, s->den->rows / 2, &rows[1], &t->n[1]);
    if (status == N2CE_OK) status = n2_session_fit(s);
    if (status == N2CE_OK) status = judge(s, rows, t);
    n2_free(s->ctx, rows[0]);
    n2_free(s->ctx, rows[1]);
    return status;
}

static n2ce_status test_session(n2_session *s, const n2ce_matrix *data, n2ce_answer *answer) {
    test_result t = {.p = 1};
    N2_TRY(n2_session_read_num_den(s, "test", data));
    N2_TRY(n2_table_shuffle(s->num, s->fit.seed, 11));
    N2_TRY(n2_table_shuffle(s->den, s->fit.seed, 12));
    N2_TRY(ask_all_rows(s, &t));
    N2_TRY(learn(s, &t));
    t.p = t.both ? combine(t.of_all.p, t.learned_p) : t.of_all.p;
    n2_quality q;
    const n2_estimate kl = n2_estimate_kl(&s->scores, &s->record, &q);
    t.verdict = n2_judge(s, N2_JUDGED_KL, kl, &q, n2_normal_quantile(0.975));
    n2_writer w = n2_writer_new(s->ctx);
    note_test(s, &t);
    write_test(s, &t, &w);
    N2_TRY(n2_writer_take(&w, answer));
    return write_page(s, &t, answer);
}

static n2ce_status run_test(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                            n2ce_answer *answer) {
    return n2_session_run(ctx, o, data, answer, test_session);
}

const n2ce_task n2_test_task = {
    .name = "test",
    .summary = "do two samples have one distribution? A p-value",
    .description =
        "Permutes the labels of the rows. Seven statistics look for differences of different "
        "kinds\n"
        "(energy distance, a kernel, second moments, nearest neighbours, single columns, their\n"
        "spreads, pairs of columns), and p is that of the best of them, corrected for the choice. "
        "With\n"
        "3000 rows a side and more a ratio learnt from one half of the rows is asked about the "
        "other\n"
        "half, too. If the distributions are the same, p is uniform, whatever the ratio is like.\n",
    .examples = "n2ce test --num monday.csv --den friday.csv\n"
                "n2ce test --num a.npy --den b.npy --quiet\n",
    .page = "test.html",
    .data = "test.json",
    .options = test_options,
    .run_on = run_test,
    .matrices = 2,
};
