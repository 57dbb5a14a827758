#include "blame.h"

#include "io/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TRIED = 64 };

/* Of the score, what a column must be worth to be named. */
static const double LEAST = 0.05;

/* The normal row nearest to a row, of those that an expert has seen: all but its fold. */
static n2ce_status find_nearest(const n2_detector *d, size_t fold, const double *row,
                                const double **out) {
    const n2_expert *e = d->expert[fold];
    size_t at = 0;
    double *x = n2_alloc(d->ctx, n2_column_map_width(e->map), sizeof *x);
    n2ce_status status = x ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_column_map_apply(e->map, N2_VIEW_PLAIN, row, 1, x);
    if (status == N2CE_OK) status = n2_near_rows_nearest(e->near[N2_VIEW_PLAIN], x, &at);
    n2_free(d->ctx, x);
    if (at >= d->begin[fold]) at += d->begin[fold + 1] - d->begin[fold];
    *out = d->rows + at * d->cols;
    return status;
}

typedef struct suspect {
    size_t column;
    double weight;
} suspect;

static int heaviest_first(const void *a, const void *b) {
    const suspect *x = a, *y = b;
    if (x->weight < y->weight) return 1;
    if (x->weight > y->weight) return -1;
    return (x->column > y->column) - (x->column < y->column);
}

/* Columns in which two rows differ, in the order of how far; returns how many. */
static size_t find_suspects(const n2_detector *d, size_t fold, const double *row,
                            const double *usual, suspect *out) {
    size_t n = 0;
    for (size_t c = 0; c < d->cols; c++) {
        if (row[c] == usual[c] || (isnan(row[c]) && isnan(usual[c]))) continue;
        const double step = n2_column_map_step(d->expert[fold]->map, c, row[c], usual[c]);
        out[n++] = (suspect){c, step};
    }
    qsort(out, n, sizeof *out, heaviest_first);
    return n < TRIED ? n : TRIED;
}

/* The row itself, and then with each suspect's value as usual. */
static n2ce_status score_without(n2_detector *d, size_t fold, const double *row,
                                 const double *usual, const suspect *s, size_t n, double *score) {
    double *x = n2_alloc(d->ctx, (n + 1) * d->cols, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    for (size_t i = 0; i <= n; i++) memcpy(x + i * d->cols, row, d->cols * sizeof *x);
    for (size_t i = 0; i < n; i++) x[(i + 1) * d->cols + s[i].column] = usual[s[i].column];
    const n2ce_status status = n2_detector_score_by(d, fold, x, n + 1, score);
    n2_free(d->ctx, x);
    return status;
}

/* ---- gaps ---- */

static bool is_missing(const n2_detector *d, size_t c, double x) {
    double number;
    if (isnan(x) || d->n_levels[c] == 0) return isnan(x) && d->n_levels[c] == 0;
    const char *text = n2_levels_text(d->levels, d->names[c], (size_t)x);
    return n2_value_parse(text, strlen(text), &number) == N2_VALUE_MISSING;
}

/* The nearest row of one with a gap may have the gap, too, and would not say that it is odd. So a
 * gap has the value of the row that is nearest when it is filled in. usual, filled: cols numbers;
 * the first is the nearest row. */
static n2ce_status fill_gaps(const n2_detector *d, size_t fold, const double *row, double *usual,
                             double *filled) {
    const double *other;
    bool any = false;
    for (size_t c = 0; c < d->cols; c++) {
        const bool both = is_missing(d, c, row[c]) && is_missing(d, c, usual[c]);
        filled[c] = both ? n2_column_map_usual(d->expert[fold]->map, c) : row[c];
        any |= both;
    }
    if (!any) return N2CE_OK;
    N2_TRY(find_nearest(d, fold, filled, &other));
    for (size_t c = 0; c < d->cols; c++)
        if (is_missing(d, c, row[c]) && is_missing(d, c, usual[c])) usual[c] = other[c];
    return N2CE_OK;
}

/* What each column of a row would usually be: room for 2 x cols numbers. */
static n2ce_status find_usual(const n2_detector *d, size_t fold, const double *row, double *usual) {
    const double *nearest;
    N2_TRY(find_nearest(d, fold, row, &nearest));
    memcpy(usual, nearest, d->cols * sizeof *usual);
    return fill_gaps(d, fold, row, usual, usual + d->cols);
}

static n2ce_status judge(n2_detector *d, size_t fold, const double *row, suspect *s, double *usual,
                         n2_blame *out) {
    double score[TRIED + 1];
    N2_TRY(find_usual(d, fold, row, usual));
    const size_t n = find_suspects(d, fold, row, usual, s);
    N2_TRY(score_without(d, fold, row, usual, s, n, score));
    for (size_t i = 0; i < n; i++) s[i].weight = score[0] - score[i + 1];
    qsort(s, n, sizeof *s, heaviest_first);
    for (size_t i = 0; i < n && i < N2_BLAMED && s[i].weight > LEAST * score[0]; i++) {
        out->column[i] = s[i].column;
        out->loss[i] = s[i].weight;
        out->usual[i] = usual[s[i].column];
        out->n = i + 1;
    }
    return N2CE_OK;
}

n2ce_status n2_blame_of(n2_detector *d, size_t fold, const double *row, n2_blame *out) {
    *out = (n2_blame){0};
    suspect *s = n2_alloc(d->ctx, d->cols, sizeof *s);
    double *usual = n2_alloc(d->ctx, 2 * d->cols, sizeof *usual);
    const n2ce_status status = s && usual ? judge(d, fold, row, s, usual, out) : N2CE_ENOMEM;
    n2_free(d->ctx, s);
    n2_free(d->ctx, usual);
    return status;
}
