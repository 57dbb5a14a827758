#include "two_sample_rows.h"

#include "base/numerics.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 1500, MOST_LEVELS = 32, ORDER_STREAM = 21 };

/* ---- one column ---- */

typedef struct ranked {
    double x;
    size_t row;
} ranked;

static int by_value(const void *a, const void *b) {
    const ranked *p = a, *q = b;
    return p->x < q->x ? -1 : p->x > q->x ? 1 : p->row < q->row ? -1 : p->row > q->row;
}

/* Normal quantiles of the ranks; rows with one value share the mean rank. */
static void give_normal_margin(ranked *r, size_t n, double *z, size_t step) {
    qsort(r, n, sizeof *r, by_value);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && r[end].x == r[i].x;) end++;
        const double rank = 0.5 * (double)(i + end) / (double)n;
        for (size_t k = i; k < end; k++) z[r[k].row * step] = n2_normal_quantile(rank);
    }
}

/* 1 where the code is this level, seen from its mean in units of its spread. */
static void indicate(const ranked *r, size_t n, double level, double *z, size_t step) {
    double share = 0;
    for (size_t i = 0; i < n; i++) share += r[i].x == level;
    share /= (double)n;
    const double spread = sqrt(share * (1 - share));
    for (size_t i = 0; i < n; i++)
        z[r[i].row * step] = spread > 0 ? ((r[i].x == level) - share) / spread : 0;
}

/* ---- all of them ---- */

static size_t levels_of(const n2_two_sample_data *data, size_t c) {
    const size_t n = data->levels ? data->levels[c] : 0;
    return n > MOST_LEVELS ? 0 : n;
}

static size_t count_columns(const n2_two_sample_data *data) {
    size_t d = 0;
    for (size_t c = 0; c < data->d; c++) d += levels_of(data, c) ? levels_of(data, c) : 1;
    return d;
}

/* Where each row goes: a permutation, so that ties are not broken by labels. */
static void shuffle(size_t *place, size_t n, uint64_t seed) {
    const n2_stream s = {seed, ORDER_STREAM, 0};
    for (size_t i = 0; i < n; i++) place[i] = i;
    for (size_t i = 0; i < n; i++) {
        const size_t k = i + n2_random_below(s, i, n - i), kept = place[i];
        place[i] = place[k];
        place[k] = kept;
    }
}

static void fill_columns(const n2_two_sample_data *data, const size_t used[2], const size_t *place,
                         ranked *r, n2_ts_rows *out) {
    size_t to = 0;
    for (size_t c = 0; c < data->d; c++) {
        for (size_t i = 0; i < out->n; i++) {
            const double *row =
                i < used[1] ? data->num + i * data->d : data->den + (i - used[1]) * data->d;
            r[i] = (ranked){row[c], place[i]};
        }
        const size_t levels = levels_of(data, c);
        for (size_t k = 0; k < levels; k++) indicate(r, out->n, (double)k, out->z + to + k, out->d);
        if (!levels) give_normal_margin(r, out->n, out->z + to, out->d);
        to += levels ? levels : 1;
    }
    for (size_t i = 0; i < out->n; i++) out->num[place[i]] = i < used[1];
}

n2ce_status n2_ts_rows_new(n2ce_ctx *ctx, const n2_two_sample_data *data, uint64_t seed,
                           n2_ts_rows *out, size_t used[2]) {
    used[1] = data->n_num < MOST_ROWS ? data->n_num : MOST_ROWS;
    used[0] = data->n_den < MOST_ROWS ? data->n_den : MOST_ROWS;
    *out = (n2_ts_rows){.n = used[0] + used[1], .d = count_columns(data)};
    size_t *place = n2_alloc(ctx, out->n, sizeof *place);
    ranked *r = n2_alloc(ctx, out->n, sizeof *r);
    out->z = n2_alloc(ctx, out->n * out->d, sizeof *out->z);
    out->num = n2_alloc(ctx, out->n, sizeof *out->num);
    const bool enough = place && r && out->z && out->num;
    if (enough) {
        shuffle(place, out->n, seed);
        fill_columns(data, used, place, r, out);
    }
    n2_free(ctx, place);
    n2_free(ctx, r);
    return enough ? N2CE_OK : N2CE_ENOMEM;
}

/* ---- rows that stand there several times ---- */

typedef struct whole_row {
    const double *x;
    size_t d, at, sample;
} whole_row;

static int by_numbers(const void *a, const void *b) {
    const whole_row *p = a, *q = b;
    for (size_t k = 0; k < p->d; k++)
        if (p->x[k] != q->x[k]) return p->x[k] < q->x[k] ? -1 : 1;
    return 0;
}

static int by_numbers_and_place(const void *a, const void *b) {
    const whole_row *p = a, *q = b;
    const int order = by_numbers(a, b);
    if (order) return order;
    if (p->sample != q->sample) return p->sample < q->sample ? -1 : 1;
    return p->at < q->at ? -1 : 1;
}

/* Pairs of equal rows, rows that differ, and the most often one row stands in a sample. */
typedef struct repeats {
    double within, between, most;
    size_t distinct;
} repeats;

static repeats count_repeats(const whole_row *row, size_t n) {
    repeats r = {0, 0, 0, 0};
    for (size_t i = 0, end; i < n; i = end) {
        double count[2] = {0, 0};
        for (end = i; end < n && by_numbers(&row[end], &row[i]) == 0; end++)
            count[row[end].sample]++;
        for (int s = 0; s < 2; s++) r.within += 0.5 * count[s] * (count[s] - 1);
        r.between += count[0] * count[1];
        r.most = fmax(r.most, fmax(count[0], count[1]));
        r.distinct++;
    }
    return r;
}

static bool are_copies(const repeats *r, const size_t n[2]) {
    const double a = (double)n[0], b = (double)n[1];
    const double within = r->within / (0.5 * (a * (a - 1) + b * (b - 1)));
    const double between = r->between / (a * b);
    const bool special = r->most > fmax(10, 0.05 * fmin(a, b)); /* zeros, say: no copies */
    return r->within >= 5 && within > 3 * between && (double)r->distinct >= (a + b) / 20 &&
           !special;
}

/* The first of equal rows of a sample stays: keep[sample][row]. */
static void mark_first(const whole_row *row, size_t n, bool *keep[2]) {
    for (size_t i = 0; i < n; i++)
        keep[row[i].sample][row[i].at] =
            i == 0 || row[i].sample != row[i - 1].sample || by_numbers(&row[i], &row[i - 1]) != 0;
}

static size_t drop_rows(double *x, size_t n, size_t d, const bool *keep) {
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        if (keep[i]) memmove(x + d * left++, x + d * i, d * sizeof *x);
    return left;
}

n2ce_status n2_two_sample_distinct(n2ce_ctx *ctx, double *rows[2], size_t n[2], size_t d,
                                   size_t *dropped) {
    const size_t all = n[0] + n[1];
    *dropped = 0;
    whole_row *row = n2_alloc(ctx, all, sizeof *row);
    bool *marks = n2_alloc(ctx, all, sizeof *marks);
    if (row && marks) {
        bool *keep[2] = {marks, marks + n[0]};
        for (size_t i = 0; i < all; i++) {
            const size_t s = i >= n[0], at = i - s * n[0];
            row[i] = (whole_row){rows[s] + at * d, d, at, s};
        }
        qsort(row, all, sizeof *row, by_numbers_and_place);
        const repeats r = count_repeats(row, all);
        const bool copies = n[0] > 1 && n[1] > 1 && are_copies(&r, n);
        if (copies) mark_first(row, all, keep);
        for (size_t s = 0; s < 2 && copies; s++) n[s] = drop_rows(rows[s], n[s], d, keep[s]);
        *dropped = all - n[0] - n[1];
    }
    const bool enough = row && marks;
    n2_free(ctx, row);
    n2_free(ctx, marks);
    return enough ? N2CE_OK : N2CE_ENOMEM;
}
