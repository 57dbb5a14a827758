#include "copies.h"

#include "base/numerics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double BETWEEN = 3, BY_NATURE = 20; /* times as frequent as that */
static const double VARIED = 0.05;               /* of the rows: values of a column, or rows */
static const double GRID = 20;                   /* places of a grid, for each value */
static const double FEWEST = 5;                  /* pairs of equal rows */

int n2_compare_rows(const void *a, const void *b) {
    const n2_whole_row *p = a, *q = b;
    for (size_t k = 0; k < p->d; k++)
        if (p->x[k] != q->x[k]) return p->x[k] < q->x[k] ? -1 : 1;
    return 0;
}

static int by_numbers_and_place(const void *a, const void *b) {
    const n2_whole_row *p = a, *q = b;
    const int order = n2_compare_rows(a, b);
    if (order) return order;
    if (p->sample != q->sample) return p->sample < q->sample ? -1 : 1;
    return p->at < q->at ? -1 : 1;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double pairs_of(double n) { return 0.5 * n * (n - 1); }

/* ---- what columns make of it ------------------------------------------------------------------
 */

n2_column_look n2_look_at_column(const double *sorted, size_t n) {
    n2_column_look out = {0, 0, false};
    double least = N2_INFINITY, equal = 0;
    for (size_t i = 0, end; i < n; i = end, out.distinct++) {
        for (end = i + 1; end < n && sorted[end] == sorted[i];) end++;
        equal += pairs_of((double)(end - i));
        if (end < n) least = fmin(least, sorted[end] - sorted[i]);
    }
    out.alike = equal / pairs_of((double)n);
    out.grid = sorted[n - 1] - sorted[0] < GRID * out.distinct * least;
    return out;
}

bool n2_hardly_equal(double equal, double by_nature, size_t d, bool varied, bool grid) {
    if (!varied || equal < FEWEST) return false;
    return d > 1 ? equal > BY_NATURE * by_nature : !grid;
}

/* Whether a sample's rows could hardly repeat so often by themselves. */
static bool hardly_repeats(const double *x, size_t n, size_t d, double repeated, double *sorted) {
    double by_nature = pairs_of((double)n);
    bool varied = false, grid = false;
    for (size_t c = 0; c < d; c++) {
        for (size_t i = 0; i < n; i++) sorted[i] = x[i * d + c];
        qsort(sorted, n, sizeof *sorted, ascending);
        const n2_column_look look = n2_look_at_column(sorted, n);
        varied = varied || look.distinct > VARIED * (double)n;
        by_nature *= look.alike;
        grid = look.grid;
    }
    return n2_hardly_equal(repeated, by_nature, d, varied, grid);
}

/* ---- rows -------------------------------------------------------------------------------------
 */

/* Pairs of equal rows in each sample and between them, rows that differ, and the most often one row
 * stands in a sample. */
typedef struct repeats {
    double within[2], between, most, distinct;
} repeats;

static repeats count_repeats(const n2_whole_row *row, size_t n) {
    repeats r = {{0, 0}, 0, 0, 0};
    for (size_t i = 0, end; i < n; i = end) {
        double count[2] = {0, 0};
        for (end = i; end < n && n2_compare_rows(&row[end], &row[i]) == 0; end++)
            count[row[end].sample]++;
        for (int s = 0; s < 2; s++) r.within[s] += pairs_of(count[s]);
        r.between += count[0] * count[1];
        r.most = fmax(r.most, fmax(count[0], count[1]));
        r.distinct++;
    }
    return r;
}

static bool often_within(const repeats *r, const size_t n[2]) {
    const double a = (double)n[0], b = (double)n[1], equal = r->within[0] + r->within[1];
    const double within = equal / (pairs_of(a) + pairs_of(b)), between = r->between / (a * b);
    const bool special = r->most > fmax(10, 0.05 * fmin(a, b));
    return equal >= FEWEST && within > BETWEEN * between && r->distinct >= VARIED * (a + b) &&
           !special;
}

/* Sorted rows: the first of equal ones of a sample stays, keep[sample][row]. */
static void mark_first(const n2_whole_row *row, size_t n, bool *keep[2]) {
    for (size_t i = 0; i < n; i++)
        keep[row[i].sample][row[i].at] = i == 0 || row[i].sample != row[i - 1].sample ||
                                         n2_compare_rows(&row[i], &row[i - 1]) != 0;
}

static size_t drop_rows(double *x, size_t n, size_t d, const bool *keep) {
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        if (keep[i]) memmove(x + d * left++, x + d * i, d * sizeof *x);
    return left;
}

static bool are_copies(const repeats *r, double *const rows[2], const size_t n[2], size_t d,
                       double *sorted) {
    if (n[0] < 2 || n[1] < 2 || !often_within(r, n)) return false;
    return hardly_repeats(rows[0], n[0], d, r->within[0], sorted) ||
           hardly_repeats(rows[1], n[1], d, r->within[1], sorted);
}

n2ce_status n2_copies_drop(n2ce_ctx *ctx, double *rows[2], size_t n[2], size_t d, size_t *dropped) {
    const size_t all = n[0] + n[1];
    *dropped = 0;
    n2_whole_row *row = n2_alloc(ctx, all, sizeof *row);
    bool *marks = n2_alloc(ctx, all, sizeof *marks);
    double *sorted = n2_alloc(ctx, all, sizeof *sorted);
    const bool enough = row && marks && sorted;
    if (enough) {
        bool *keep[2] = {marks, marks + n[0]};
        for (size_t i = 0; i < all; i++) {
            const size_t s = i >= n[0], at = i - s * n[0];
            row[i] = (n2_whole_row){rows[s] + at * d, d, at, s};
        }
        qsort(row, all, sizeof *row, by_numbers_and_place);
        const repeats r = count_repeats(row, all);
        const bool copies = are_copies(&r, rows, n, d, sorted);
        if (copies) mark_first(row, all, keep);
        for (size_t s = 0; s < 2 && copies; s++) n[s] = drop_rows(rows[s], n[s], d, keep[s]);
        *dropped = all - n[0] - n[1];
    }
    n2_free(ctx, row);
    n2_free(ctx, marks);
    n2_free(ctx, sorted);
    return enough ? N2CE_OK : N2CE_ENOMEM;
}
