#include "equal_rows.h"

#include "base/numerics.h"

#include <math.h>
#include <stdlib.h>

enum { FEWEST_PAIRS = 5, FEWEST_ROWS = 10 };
static const double SPECIAL = 0.05;          /* of all rows */
static const double VARIED = 0.25;           /* of the different rows: values of a column */
static const double GRID = 20;               /* places of a grid, for each value */
static const double BY_NATURE = 20;          /* times as often as independent columns repeat */
static const double EVEN = 0.5, DRAWN = 1.5; /* unevenness */

/* Missing values are equal, and beyond all others. */
static int compare_values(double a, double b) {
    if (isnan(a) || isnan(b)) return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
    return (a > b) - (a < b);
}

static int compare_rows(const double *a, const double *b, size_t cols) {
    for (size_t c = 0; c < cols; c++) {
        const int order = compare_values(a[c], b[c]);
        if (order) return order;
    }
    return 0;
}

/* ---- groups -------------------------------------------------------------- */

typedef struct place {
    const double *row;
    size_t cols, at;
} place;

static int by_row_and_number(const void *a, const void *b) {
    const place *p = a, *q = b;
    const int order = compare_rows(p->row, q->row, p->cols);
    return order ? order : (p->at > q->at) - (p->at < q->at);
}

static n2ce_status sort_rows(n2_equal_rows *e) {
    place *p = n2_alloc(e->ctx, e->n, sizeof *p);
    if (!p) return N2CE_ENOMEM;
    for (size_t i = 0; i < e->n; i++) p[i] = (place){e->x + i * e->cols, e->cols, i};
    qsort(p, e->n, sizeof *p, by_row_and_number);
    for (size_t i = 0; i < e->n; i++) e->order[i] = p[i].at;
    n2_free(e->ctx, p);
    return N2CE_OK;
}

static bool are_equal(const n2_equal_rows *e, size_t i, size_t j) {
    return compare_rows(e->x + i * e->cols, e->x + j * e->cols, e->cols) == 0;
}

/* Of each row the first that is equal to it, for now. */
static void find_first(n2_equal_rows *e) {
    for (size_t i = 0, end; i < e->n; i = end) {
        for (end = i; end < e->n && are_equal(e, e->order[i], e->order[end]); end++)
            e->group[e->order[end]] = e->order[i];
        const size_t alike = end - i;
        e->pairs += 0.5 * (double)alike * (double)(alike - 1);
        if (alike > e->largest) e->largest = alike;
    }
}

/* The first row of a group comes before the others, so that its number is known then. */
static void number_groups(n2_equal_rows *e) {
    for (size_t i = 0; i < e->n; i++)
        e->group[i] = e->group[i] == i ? e->groups++ : e->group[e->group[i]];
}

n2ce_status n2_equal_rows_new(n2ce_ctx *ctx, const double *x, size_t n, size_t cols,
                              n2_equal_rows **out) {
    n2_equal_rows *e = *out = n2_alloc(ctx, 1, sizeof *e);
    if (!e) return N2CE_ENOMEM;
    *e = (n2_equal_rows){.ctx = ctx, .x = x, .n = n, .cols = cols};
    e->order = n2_alloc(ctx, n, sizeof *e->order);
    e->group = n2_alloc(ctx, n, sizeof *e->group);
    const n2ce_status status = e->order && e->group ? sort_rows(e) : N2CE_ENOMEM;
    if (status == N2CE_OK) {
        find_first(e);
        number_groups(e);
        return N2CE_OK;
    }
    n2_equal_rows_free(e);
    *out = NULL;
    return status;
}

void n2_equal_rows_free(n2_equal_rows *e) {
    if (!e) return;
    n2_free(e->ctx, e->order);
    n2_free(e->ctx, e->group);
    n2_free(e->ctx, e);
}

size_t n2_equal_rows_find(const n2_equal_rows *e, const double *row) {
    size_t low = 0, high = e->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_rows(e->x + e->order[middle] * e->cols, row, e->cols) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == e->n || compare_rows(e->x + e->order[low] * e->cols, row, e->cols) != 0)
        return SIZE_MAX;
    return e->order[low];
}

/* ---- copies -------------------------------------------------------------- */

typedef struct column_look {
    double alike; /* the chance that two rows have the same value */
    double distinct;
    bool grid; /* values are neighbours on a grid, as whole numbers are */
} column_look;

static int ascending(const void *a, const void *b) {
    return compare_values(*(const double *)a, *(const double *)b);
}

static column_look look_at_column(const n2_equal_rows *e, size_t c, double *sorted) {
    column_look out = {0, 0, false};
    double least = N2_INFINITY, most = -N2_INFINITY;
    for (size_t i = 0; i < e->n; i++) sorted[i] = e->x[i * e->cols + c];
    qsort(sorted, e->n, sizeof *sorted, ascending);
    for (size_t i = 0, end; i < e->n; i = end, out.distinct++) {
        for (end = i; end < e->n && compare_values(sorted[end], sorted[i]) == 0;) end++;
        const double share = (double)(end - i) / (double)e->n;
        out.alike += share * share;
        if (isnan(sorted[i])) continue;
        most = sorted[i];
        if (end < e->n && !isnan(sorted[end])) least = fmin(least, sorted[end] - sorted[i]);
    }
    out.grid = !(most - sorted[0] >= GRID * out.distinct * least);
    return out;
}

/* Lambda of a Poisson distribution whose numbers other than 0 have this mean, by Newton's method.
 */
static double poisson_of(double mean) {
    double lambda = mean;
    for (int i = 0; i < 50; i++) {
        const double none = exp(-lambda), some = 1 - none;
        lambda -= (lambda / some - mean) / ((some - lambda * none) / (some * some));
    }
    return lambda;
}

/* The variance of how often rows are there, over its mean, by that of a Poisson distribution
 * without zeros: 1 of rows that are drawn and equally frequent, more if some are more frequent than
 * others, 0 if each is there as often. */
static double unevenness(const n2_equal_rows *e) {
    const double more = (double)e->n / (double)e->groups - 1, others = 2 * e->pairs / (double)e->n;
    return (others - more) / (poisson_of(1 + more) - more);
}

static bool judge_columns(const n2_equal_rows *e, const size_t *levels, double *sorted) {
    double by_nature = 0.5 * (double)e->n * (double)(e->n - 1);
    bool measured = false;
    for (size_t c = 0; c < e->cols; c++) {
        const column_look look = look_at_column(e, c, sorted);
        by_nature *= look.alike;
        measured |= !levels[c] && !look.grid && look.distinct >= VARIED * (double)e->groups;
    }
    const double uneven = unevenness(e);
    return (measured && uneven < DRAWN) || (e->pairs > BY_NATURE * by_nature && uneven < EVEN);
}

n2ce_status n2_equal_rows_are_copies(const n2_equal_rows *e, const size_t *levels, bool *copies) {
    const double special = fmax(FEWEST_ROWS, SPECIAL * (double)e->n);
    *copies = e->pairs >= FEWEST_PAIRS && e->groups >= FEWEST_ROWS && (double)e->largest <= special;
    if (!*copies) return N2CE_OK;
    double *sorted = n2_alloc(e->ctx, e->n, sizeof *sorted);
    if (!sorted) return N2CE_ENOMEM;
    *copies = judge_columns(e, levels, sorted);
    n2_free(e->ctx, sorted);
    return N2CE_OK;
}
