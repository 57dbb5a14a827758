/* detect: the page of the report. */
#include "detect_session.h"

#include "base/arena.h"
#include "report/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLUE = 0, ORANGE = 1, NEUTRAL = -1 };
enum { POINTS = 200 }; /* of the plot of p-values */

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* ---- the front ----------------------------------------------------------- */

static void add_front(const n2_detect_session *s, n2_text *page) {
    const n2_detector *d = s->detector;
    char title[200], flagged[32], judged[32], note[120], about[160];
    snprintf(title, sizeof title, "Which rows of %.100s are odd", base_name(s->rows));
    snprintf(flagged, sizeof flagged, "%llu", (unsigned long long)s->n_flagged);
    snprintf(judged, sizeof judged, "%llu", (unsigned long long)s->judged);
    snprintf(note, sizeof note, "at a false discovery rate of %.40s",
             n2ce_options_get(s->options, "fdr"));
    snprintf(about, sizeof about,
             s->own ? "by the %zu least odd of them" : "by %zu rows that are known to be normal",
             d->n);
    const n2_page_number numbers[] = {{"rows flagged", flagged, NULL, note},
                                      {"rows judged", judged, NULL, about}};
    n2_page_begin(page, title, "n2ce detect");
    n2_page_numbers(page, numbers, 2);
}

/* ---- scores -------------------------------------------------------------- */

static void add_scores(const n2_detect_session *s, n2_text *page) {
    double x[2][N2_MOST_STEPS], y[2][N2_MOST_STEPS], zero[N2_MOST_STEPS] = {0};
    size_t n[2];
    for (size_t k = 0; k < 2; k++)
        n[k] = n2_histogram_steps(&s->histogram[k], &s->bins, x[k], y[k]);
    const n2_series series[] = {
        {.label = s->own ? "rows learnt from, held out" : "normal rows, held out",
         .x = x[0],
         .y = y[0],
         .n = n[0],
         .low = zero,
         .high = y[0],
         .colour = NEUTRAL},
        {.label = "rows judged", .x = x[1], .y = y[1], .n = n[1], .colour = ORANGE}};
    const n2_plot plot = {.title = "Scores",
                          .x_label = "score",
                          .y_label = "density",
                          .series = series,
                          .n_series = 2};
    char caption[400];
    snprintf(caption, sizeof caption,
             "How odd rows are: about the mean of -ln p over the parts of the score. %zu of the "
             "rows judged are beyond the right edge.",
             s->histogram[1].above);
    n2_page_figure(page, &plot, caption);
}

/* ---- p-values ------------------------------------------------------------ */

/* The share of rows with a p-value of at most p, for p from the least one to 1. */
static size_t curve_of(const n2_detect_session *s, double *p, double *share) {
    const n2_rank_counts *r = &s->ranks;
    const double least = 1 / (double)r->ranks;
    uint64_t so_far = 0;
    size_t rank = 0;
    for (size_t i = 0; i < POINTS; i++) {
        p[i] = pow(least, 1 - (double)i / (POINTS - 1));
        const size_t to = (size_t)fmin((double)r->ranks, floor(p[i] * (double)r->ranks + 1e-9));
        while (rank < to) so_far += r->count[++rank];
        share[i] = (double)so_far / (double)s->judged;
    }
    return POINTS;
}

static void add_p_values(const n2_detect_session *s, n2_text *page) {
    double p[POINTS], share[POINTS];
    const size_t n = curve_of(s, p, share);
    const double at = (double)s->ranks.flagged / (double)s->ranks.ranks;
    const double mark[2] = {at, at}, height[2] = {share[0] > 0 ? share[0] : p[0], 1};
    const n2_series series[] = {
        {.label = "rows judged", .x = p, .y = share, .n = n, .colour = ORANGE},
        {.label = "if all were normal", .x = p, .y = p, .n = n, .colour = NEUTRAL, .dashed = true},
        {.label = "flagged to the left", .x = mark, .y = height, .n = 2, .colour = BLUE}};
    const n2_plot plot = {.title = "p-values",
                          .x_label = "p",
                          .y_label = "share of rows with a p-value of at most p",
                          .x_log = true,
                          .y_log = true,
                          .series = series,
                          .n_series = s->ranks.flagged > 0 ? 3 : 2};
    n2_page_figure(page, &plot,
                   s->own ? "Nothing is known to be normal: p-values of the upper tenth are "
                            "extrapolated from the scores below."
                          : "Rows like the normal ones follow the dashed line; what rises above it "
                            "at the left is odd. A p-value is at least 1 / (normal rows + 1).");
}

/* ---- the worst rows ------------------------------------------------------ */

/* "column value (usual: value)", the worst columns first. */
static const char *reason_of(const n2_detect_session *s, const n2_odd_row *row, n2_arena *arena) {
    n2_text text = n2_text_new(s->ctx);
    for (size_t k = 0; k < row->blame.n; k++) {
        const size_t c = row->blame.column[k];
        n2_text_add(&text, "%s%s ", k ? ", " : "", s->detector->names[c]);
        n2_detect_value(s->detector, c, row->values[c], &text);
        n2_text_add(&text, " (usual: ");
        n2_detect_value(s->detector, c, row->blame.usual[k], &text);
        n2_text_add(&text, ")");
    }
    char *copy = n2_arena_strdup(arena, text.data ? text.data : "");
    n2_text_free(&text);
    return copy;
}

static const char *number_cell(n2_arena *arena, const char *format, double x) {
    char text[64];
    snprintf(text, sizeof text, format, x);
    return n2_arena_strdup(arena, text);
}

static n2ce_status add_worst(const n2_detect_session *s, n2_arena *arena, n2_text *page) {
    enum { COLUMNS = 4 };
    const size_t rows = s->n_worst + 1;
    const char **cells = n2_arena_alloc(arena, rows * COLUMNS, sizeof *cells);
    static const char *const header[COLUMNS] = {"what is odd about it", "row", "score", "p-value"};
    if (!cells) return N2CE_ENOMEM;
    memcpy(cells, header, sizeof header);
    for (size_t i = 0; i < s->n_worst; i++) {
        const n2_odd_row *row = &s->worst[i];
        const char **line = cells + (i + 1) * COLUMNS;
        line[0] = reason_of(s, row, arena);
        line[1] = number_cell(arena, "%.0f", (double)row->row);
        line[2] = number_cell(arena, "%.3f", row->score);
        line[3] = number_cell(arena, "%.3g", row->p);
        for (size_t k = 0; k < COLUMNS; k++)
            if (!line[k]) return N2CE_ENOMEM;
    }
    n2_page_section(page, "The oddest rows");
    n2_page_table(page, cells, rows, COLUMNS,
                  "Rows are counted from 0. A column is named if the score falls when its value is "
                  "replaced by that of the nearest normal row, which is in brackets; those that "
                  "matter most come first.");
    return N2CE_OK;
}

/* ---- what was learnt ----------------------------------------------------- */

static void add_facts(const n2_detect_session *s, n2_text *page) {
    const n2_detector *d = s->detector;
    size_t names = 0, networks = 0;
    for (size_t c = 0; c < d->cols; c++) names += d->categorical[c];
    for (size_t k = 0; k < d->folds; k++)
        networks += d->expert[k]->learned && d->expert[k]->learned->critic;
    n2_page_section(page, "What was learnt");
    n2_page_facts_begin(page);
    n2_page_fact(page, "rows", "%zu%s", d->n,
                 s->own                  ? ", the least odd ones"
                 : s->normal_seen > d->n ? ", a random subset"
                                         : "");
    n2_page_fact(page, "columns", "%zu, %zu of them names", d->cols, names);
    n2_page_fact(page, "parts", "%s", n2ce_options_get(s->options, "parts"));
    n2_page_fact(page, "experts", "%zu, each without a fold of the rows; %zu with a network",
                 d->folds, networks);
    n2_page_fact(page, "seed", "%llu", (unsigned long long)d->seed);
    n2_page_facts_end(page);
}

n2ce_status n2_detect_page(const n2_detect_session *s, n2ce_answer *answer) {
    n2_text page = n2_text_new(s->ctx);
    n2_arena arena = n2_arena_new(s->ctx);
    add_front(s, &page);
    n2_page_section(&page, "Scores and p-values");
    add_scores(s, &page);
    add_p_values(s, &page);
    n2ce_status status = s->n_worst > 0 ? add_worst(s, &arena, &page) : N2CE_OK;
    add_facts(s, &page);
    n2_page_end(&page, "n2ce detect");
    n2_arena_free(&arena);
    if (status == N2CE_OK) return n2_text_take(&page, &answer->html);
    n2_text_free(&page);
    return status;
}
