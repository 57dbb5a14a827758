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
