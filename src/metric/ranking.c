#include "ranking.h"

#include <math.h>
#include <stdlib.h>

typedef struct ranked {
    double score;
    size_t row;
    bool odd;
} ranked;

/* The largest first; equal ones as they came. */
static int by_score(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static n2ce_status sort_scores(n2ce_ctx *ctx, const double *scores, const unsigned char *is_odd,
                               size_t n, ranked **out) {
    *out = n2_alloc(ctx, n, sizeof **out);
    if (!*out) return N2CE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (isnan(scores[i])) {
            n2_free(ctx, *out);
            return n2_fail(ctx, N2CE_EDATA, "The score of row %zu is not a number.", i);
        }
        (*out)[i] = (ranked){scores[i], i, is_odd[i] != 0};
    }
    qsort(*out, n, sizeof **out, by_score);
    return N2CE_OK;
}

static n2ce_status count_odd(n2ce_ctx *ctx, const unsigned char *is_odd, size_t n, size_t *odd) {
    *odd = 0;
    for (size_t i = 0; i < n; i++) *odd += is_odd[i] != 0;
    if (*odd > 0 && *odd < n) return N2CE_OK;
    return n2_fail(ctx, N2CE_EINVAL,
                   "%zu of %zu rows are odd: a ranking needs odd rows and normal ones.", *odd, n);
}

/* Rows seen so far, after all of one score. */
typedef struct seen {
    size_t odd, normal;
} seen;

static double precision_of(seen s) { return (double)s.odd / (double)(s.odd + s.normal); }

/* Adds the rows from `at` on that have one score; returns where the next begin. */
static size_t see_ties(const ranked *rows, size_t n, size_t at, seen *s) {
    const double score = rows[at].score;
    for (; at < n && rows[at].score == score; at++) {
        s->odd += rows[at].odd;
        s->normal += !rows[at].odd;
    }
    return at;
}

static void measure(const ranked *rows, n2_rank_areas *out) {
    const double odd = (double)out->odd, normal = (double)(out->n - out->odd);
    double before = 1;
    seen last = {0, 0};
    for (size_t at = 0; at < out->n;) {
        seen now = last;
        at = see_ties(rows, out->n, at, &now);
        const double precision = precision_of(now), found = (double)(now.odd - last.odd);
        out->auprc += found / odd * (precision + before) / 2;
        out->auroc += (double)(now.normal - last.normal) / normal *
                      ((double)last.odd + (double)now.odd) / (2 * odd);
        before = precision;
        last = now;
    }
}

n2ce_status n2_rank_scores(n2ce_ctx *ctx, const double *scores, const unsigned char *is_odd,
                           size_t n, n2_rank_areas *out) {
    ranked *rows;
    *out = (n2_rank_areas){.n = n};
    N2_TRY(count_odd(ctx, is_odd, n, &out->odd));
    N2_TRY(sort_scores(ctx, scores, is_odd, n, &rows));
    out->prevalence = (double)out->odd / (double)n;
    measure(rows, out);
    n2_free(ctx, rows);
    return N2CE_OK;
}

n2ce_status n2_precision_at_recall(n2ce_ctx *ctx, const double *scores, const unsigned char *is_odd,
                                   size_t n, size_t points, double *precision) {
    ranked *rows;
    size_t odd, k = 1;
    seen s = {0, 0};
    N2_TRY(count_odd(ctx, is_odd, n, &odd));
    N2_TRY(sort_scores(ctx, scores, is_odd, n, &rows));
    precision[0] = 1;
    for (size_t at = 0; at < n && k < points;) {
        at = see_ties(rows, n, at, &s);
        while (k < points && s.odd * (points - 1) >= k * odd) precision[k++] = precision_of(s);
    }
    n2_free(ctx, rows);
    return N2CE_OK;
}

n2ce_status n2_largest_scores(n2ce_ctx *ctx, const double *scores, const unsigned char *is_odd,
                              size_t n, n2_row_kind kind, size_t count, size_t *largest,
                              size_t *found) {
    ranked *rows;
    N2_TRY(sort_scores(ctx, scores, is_odd, n, &rows));
    *found = 0;
    for (size_t i = 0; i < n && *found < count; i++)
        if (kind == N2_RANKED_ANY || rows[i].odd == (kind == N2_RANKED_ODD))
            largest[(*found)++] = rows[i].row;
    n2_free(ctx, rows);
    return N2CE_OK;
}
