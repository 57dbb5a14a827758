/* detect: where normal rows come from. */
#include "detect_session.h"

#include "detect/detector_file.h"
#include "detect/trim.h"

#include <math.h>
#include <string.h>

static size_t most_rows(const n2ce_options *o) {
    const double x = n2ce_options_number(o, "max-rows");
    return isnan(x) ? N2_DETECT_ROWS : (size_t)x;
}

n2_table_options n2_detect_table_options(const n2ce_options *o, n2_levels *levels) {
    return (n2_table_options){.header = n2_header_of(o),
                              .columns = n2ce_options_get(o, "columns"),
                              .categorical = n2ce_options_get(o, "categorical"),
                              .find_texts = true,
                              .levels = levels,
                              .keep_missing = true,
                              .max_rows = most_rows(o),
                              .seed = n2_options_count(o, "seed")};
}

n2_detect_options n2_detect_options_of(const n2ce_options *options, n2_device_choice *choice) {
    static const char *const names[] = {"near", "margins", "ratio"};
    n2_detect_options o = {.seed = n2_options_count(options, "seed"), .choice = choice};
    for (size_t p = 0; p < N2_PARTS_COUNT; p++)
        o.use[p] = n2_options_has_word(options, "parts", names[p]);
    return o;
}

static n2ce_status learn_from(n2_detect_session *s, const n2_table *t, const n2_levels *levels) {
    const n2_detect_options o = n2_detect_options_of(s->options, &s->choice);
    s->normal_seen = t->seen;
    return n2_detector_fit(s->ctx, t, levels, t->origin, &o, &s->detector);
}

/* ---- rows that are judged by one another --------------------------------- */

/* Of sorted scores: how slowly they rise from one share of the rows to another, as the mean of the
 * exponential through both. */
static double rise(const double *at, size_t n, double from, double to) {
    const double low = at[(size_t)((double)n * from)], high = at[(size_t)((double)n * to)];
    return (high - low) / log((1 - from) / (1 - to));
}

/* Without rows that are known to be normal there is no conformal p-value. p-values of the upper
 * tenth follow an exponential through two quantiles of the scores, of 50 and 90 or of 80 and 95 %:
 * the slower one, since tails may be heavier than what is below them. But no tail of normal rows is
 * so much heavier than their middle as scores are where odd rows begin: if these are a twentieth or
 * a tenth of all, what is below them is gone on from. */
static n2ce_status measure_bulk(n2_detect_session *s, const n2_own_rows *all, double *score) {
    static const double HEAVIEST = 5;
    N2_TRY(n2_detector_score_own(s->detector, all, score));
    N2_TRY(n2_tail_new(s->ctx, score, all->n, &s->bulk));
    const double *at = s->bulk.sorted;
    const size_t n = all->n;
    const double middle = rise(at, n, 0.5, 0.8), most = HEAVIEST * middle;
    double slow = fmax(rise(at, n, 0.5, 0.9), rise(at, n, 0.8, 0.95));
    const bool before = middle > 0 && rise(at, n, 0.8, 0.9) > most && n >= 10;
    if (before) s->bulk.last = n * 4 / 5 - 1;
    if (middle > 0 && slow > most) slow = before ? middle : rise(at, n, 0.5, 0.9);
    if (slow > 0) s->bulk.mean = slow;
    return N2CE_OK;
}

/* Learns from the rows that are least likely to be odd, with their numbers; measures all. */
static n2ce_status learn_from_bulk(n2_detect_session *s, n2_table *t, const n2_levels *levels) {
    double *all = n2_alloc(s->ctx, t->rows * t->cols, sizeof *all);
    double *score = n2_alloc(s->ctx, t->rows, sizeof *score);
    size_t *number = n2_alloc(s->ctx, t->rows, sizeof *number);
    const size_t n = t->rows;
    n2ce_status status = all && score && number ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) {
        memcpy(all, t->x, n * t->cols * sizeof *all);
        for (size_t i = 0; i < n; i++) number[i] = t->origin ? t->origin[i] : i;
        status = n2_trim(s->ctx, t, levels);
    }
    if (status == N2CE_OK) status = learn_from(s, t, levels);
    const n2_own_rows own = {.x = all, .n = n, .number = number};
    if (status == N2CE_OK) status = measure_bulk(s, &own, score);
    n2_free(s->ctx, all);
    n2_free(s->ctx, score);
    n2_free(s->ctx, number);
    return status;
}

/* ---- files --------------------------------------------------------------- */

static n2ce_status learn_from_file(n2_detect_session *s, const char *path) {
    n2_levels *levels = NULL;
    n2_table *t = NULL;
    n2ce_status status = n2_levels_new(s->ctx, &levels);
    if (status == N2CE_OK) {
        const n2_table_options o = n2_detect_table_options(s->options, levels);
        status = n2_table_read(s->ctx, path, &o, &t);
    }
    if (status == N2CE_OK)
        status = s->own ? learn_from_bulk(s, t, levels) : learn_from(s, t, levels);
    n2_table_free(t);
    n2_levels_free(levels);
    return status;
}

n2ce_status n2_detect_learn(n2_detect_session *s) {
    const char *normal = n2ce_options_get(s->options, "normal");
    const char *model = n2ce_options_get(s->options, "model");
    if (normal && model)
        return n2_fail(s->ctx, N2CE_EINVAL,
                       "--normal learns and --model uses what was learnt; give one of the two.");
    if (model) return n2_detector_load(s->ctx, model, &s->choice, &s->detector);
    s->own = !normal;
    return learn_from_file(s, normal ? normal : s->rows);
}
