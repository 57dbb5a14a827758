#include "data_facts.h"

#include "base/arena.h"
#include "base/linalg.h"
#include "copies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_ROWS = 5000,  /* a side: evenly spaced ones of more */
    MOST_COLUMNS = 64, /* whose dependence is looked at */
    FEW = 5,
    MANY = 10, /* rows that are no accident */
};

static const double ATOM = 0.02;       /* share of rows with one value */
static const double DEPENDENT = 1e-10; /* smallest eigenvalue of a correlation matrix */

/* Evenly spaced rows of a table. */
typedef struct sample {
    const n2_table *t;
    size_t n;
    double *sorted; /* room for a column */
} sample;

static const double *row_at(const sample *s, size_t i) {
    return s->t->x + i * s->t->rows / s->n * s->t->cols;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort_column(const sample *s, size_t c) {
    for (size_t i = 0; i < s->n; i++) s->sorted[i] = row_at(s, i)[c];
    qsort(s->sorted, s->n, sizeof *s->sorted, ascending);
}

/* ---- values of a column --------------------------------------------------- */

static bool holds(const sample *s, double value) {
    return bsearch(&value, s->sorted, s->n, sizeof value, ascending) != NULL;
}

/* Rows with the values next to those of rows begin .. end - 1, above or below: at most one value.
 */
static size_t next_to(const sample *s, size_t begin, size_t end, bool above) {
    size_t n = 0;
    const size_t at = above ? end : begin - 1;
    if (above ? end >= s->n : begin == 0) return 0;
    for (size_t i = at; i < s->n && s->sorted[i] == s->sorted[at]; i += above ? 1 : (size_t)-1) n++;
    return n;
}

/* Whether a value stands out of those around it, or there are only a few: of many whole numbers
 * that a sample has more or less of, the other will lack some. */
static bool stands_out(const sample *s, double distinct, size_t begin, size_t end) {
    enum { FEW_VALUES = 20, TIMES = 5 };
    const size_t around = next_to(s, begin, end, false) + next_to(s, begin, end, true);
    return distinct <= FEW_VALUES || 2 * (end - begin) > TIMES * around;
}

/* The most frequent value that the other sample does not have, and would, were it as frequent. */
static void find_atom(const sample *s, const sample *other, size_t c, n2_column_fact *out) {
    static const double CHANCE = 0.01;
    const double distinct = n2_look_at_column(s->sorted, s->n).distinct;
    for (size_t i = 0, end; i < s->n; i = end) {
        for (end = i; end < s->n && s->sorted[end] == s->sorted[i]; end++) {}
        const double share = (double)(end - i) / (double)s->n;
        const bool frequent = end - i >= MANY && share >= ATOM && share > out->share;
        const double by_chance = distinct * pow(1 - share, (double)other->n);
        if (frequent && by_chance < CHANCE && stands_out(s, distinct, i, end) &&
            !holds(other, s->sorted[i]))
            *out = (n2_column_fact){c, share, s->sorted[i]};
    }
}

/* The column with most rows more than `margin` widths beyond the other's range. */
static void find_beyond(const sample *s, const sample *other, size_t c, double margin,
                        n2_column_fact *out) {
    const double low = other->sorted[0], high = other->sorted[other->n - 1];
    const double by = margin * (high - low);
    size_t count = 0;
    for (size_t i = 0; i < s->n; i++) count += s->sorted[i] < low - by || s->sorted[i] > high + by;
    const double share = (double)count / (double)s->n;
    if (count >= FEW && share > out->share) *out = (n2_column_fact){c, share, high};
}

static void look_at_values(const sample s[2], n2_data_facts *out) {
    for (size_t c = 0; c < s[1].t->cols; c++) {
        if (s[1].t->categorical[c]) continue;
        for (size_t side = 0; side < 2; side++) sort_column(&s[side], c);
        for (size_t side = 0; side < 2; side++) {
            n2_column_fact far = {0};
            find_atom(&s[side], &s[!side], c, &out->atom[side]);
            find_beyond(&s[side], &s[!side], c, 0, &out->beyond[side]);
            find_beyond(&s[side], &s[!side], c, 1, &far);
            if (far.share < 0.5 && far.share > out->far[side].share) out->far[side] = far;
        }
    }
}

/* ---- columns that are functions of others ---------------------------------- */

/* Correlations of columns first .. end - 1 that vary, and how many do. */
static size_t correlate(const sample *s, size_t first, size_t end, double *mean, double *r) {
    size_t used[MOST_COLUMNS], k = 0;
    for (size_t c = first; c < end; c++) {
        double sum = 0, square = 0;
        for (size_t i = 0; i < s->n; i++) sum += row_at(s, i)[c] / (double)s->n;
        for (size_t i = 0; i < s->n; i++)
            square += (row_at(s, i)[c] - sum) * (row_at(s, i)[c] - sum);
        if (s->t->categorical[c] || !(square > 0)) continue;
        mean[2 * k] = sum;
        mean[2 * k + 1] = sqrt(square);
        used[k++] = c;
    }
    memset(r, 0, k * k * sizeof *r);
    for (size_t i = 0; i < s->n; i++)
        for (size_t a = 0; a < k; a++) {
            const double x = (row_at(s, i)[used[a]] - mean[2 * a]) / mean[2 * a + 1];
            for (size_t b = 0; b <= a; b++)
                r[a * k + b] += x * (row_at(s, i)[used[b]] - mean[2 * b]) / mean[2 * b + 1];
        }
    return k;
}

static bool is_dependent(const sample *s, size_t first, size_t end) {
    double mean[2 * MOST_COLUMNS], r[MOST_COLUMNS * MOST_COLUMNS], values[MOST_COLUMNS];
    if (end - first > MOST_COLUMNS || s->n < end - first + 3) return false;
    const size_t k = correlate(s, first, end, mean, r);
    return k > 1 && n2_symmetric_eigen(r, k, values, NULL) && values[0] < DEPENDENT;
}

static void look_at_columns(const sample s[2], size_t x_cols, n2_data_facts *out) {
    const size_t d = s[1].t->cols;
    const bool num = is_dependent(&s[1], 0, d);
    if (s[0].t) {
        const bool den = is_dependent(&s[0], 0, d);
        out->dependent[1] = num && !den;
        out->dependent[0] = den && !num;
    } else {
        out->determined = num && !is_dependent(&s[1], 0, x_cols) && !is_dependent(&s[1], x_cols, d);
    }
}

/* ---- rows ------------------------------------------------------------------ */

/* Rows that stand in both samples or twice in one, and pairs of such rows. */
typedef struct repeats {
    size_t shared, repeated;   /* rows of the numerator that the denominator has; of one sample */
    double between, within[2]; /* pairs */
} repeats;

static repeats count_repeats(const n2_whole_row *row, size_t n) {
    repeats r = {0};
    for (size_t i = 0, end; i < n; i = end) {
        size_t count[2] = {0, 0};
        for (end = i; end < n && n2_compare_rows(&row[end], &row[i]) == 0; end++)
            count[row[end].sample]++;
        for (size_t side = 0; side < 2; side++) {
            r.repeated += count[side] > 1 ? count[side] - 1 : 0;
            r.within[side] += 0.5 * (double)count[side] * ((double)count[side] - 1);
        }
        r.shared += count[0] > 0 ? count[1] : 0;
        r.between += (double)count[0] * (double)count[1];
    }
    return r;
}

/* Whether so many of a number of pairs of rows are equal that values which repeat are no reason. */
static bool are_strange(const sample *s, double equal, double pairs) {
    bool varied = false, grid = false;
    for (size_t c = 0; c < s->t->cols; c++) {
        sort_column(s, c);
        const n2_column_look look = n2_look_at_column(s->sorted, s->n);
        varied = varied || look.distinct > (double)s->n / 10;
        grid = look.grid;
        pairs *= look.alike;
    }
    return n2_hardly_equal(equal, pairs, s->t->cols, varied, grid);
}

/* Combinations of levels, for each row of the smaller sample. */
static double count_cells(const sample s[2], const n2_whole_row *row, size_t n) {
    const size_t fewest = s[0].t && s[0].n < s[1].n ? s[0].n : s[1].n;
    size_t cells = 1;
    for (size_t c = 0; c < s[1].t->cols; c++)
        if (!s[1].t->categorical[c]) return 0;
    for (size_t i = 1; i < n; i++) cells += n2_compare_rows(&row[i], &row[i - 1]) != 0;
    return (double)cells / (double)fewest;
}

static n2ce_status look_at_rows(const sample s[2], n2_arena *arena, n2_data_facts *out) {
    const size_t n = s[1].n + (s[0].t ? s[0].n : 0);
    n2_whole_row *row = n2_arena_alloc(arena, n, sizeof *row);
    size_t at = 0;
    if (!row) return N2CE_ENOMEM;
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < s[side].n && s[side].t; i++)
            row[at++] = (n2_whole_row){row_at(&s[side], i), s[side].t->cols, i, side};
    qsort(row, n, sizeof *row, n2_compare_rows);
    const repeats r = count_repeats(row, n);
    const double of[] = {(double)s[0].n, (double)s[1].n};
    out->cells = count_cells(s, row, n);
    if (r.shared >= FEW && are_strange(&s[1], r.between, of[0] * of[1])) out->shared = r.shared;
    if (!s[0].t && r.repeated >= FEW && are_strange(&s[1], r.within[1], 0.5 * of[1] * (of[1] - 1)))
        out->repeated = r.repeated;
    return N2CE_OK;
}

n2ce_status n2_data_facts_find(const n2_table *num, const n2_table *den, size_t x_cols,
                               n2_data_facts *out) {
    const n2_table *const tables[2] = {den, num};
    n2_arena arena = n2_arena_new(num->ctx);
    n2ce_status status = N2CE_OK;
    sample s[2] = {{0}};
    *out = (n2_data_facts){0};
    for (size_t side = 0; side < 2; side++) {
        if (!tables[side]) continue;
        s[side] = (sample){tables[side],
                           tables[side]->rows < MOST_ROWS ? tables[side]->rows : MOST_ROWS, NULL};
        s[side].sorted = n2_arena_alloc(&arena, s[side].n, sizeof(double));
        if (!s[side].sorted) status = N2CE_ENOMEM;
    }
    if (status == N2CE_OK) status = look_at_rows(s, &arena, out);
    if (status == N2CE_OK) look_at_columns(s, x_cols, out);
    if (status == N2CE_OK && den) look_at_values(s, out);
    n2_arena_free(&arena);
    return status;
}
