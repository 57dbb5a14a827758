/* detect: every row gets a score and a rank; when all have one, flags. */
#include "detect_session.h"

#include "base/numerics.h"
#include "comm/comm.h"
#include "detect_write.h"

#include <stdlib.h>
#include <string.h>

enum { READ_ROWS = 2048, OWN_RANKS = 1000000 };

/* ---- preparing ----------------------------------------------------------- */

static n2ce_status prepare(n2_detect_session *s) {
    const n2_detector *d = s->detector;
    const size_t n[1] = {d->n};
    s->ranks.ranks = s->own ? OWN_RANKS : n2_detector_ranks(d);
    s->ranks.count = n2_alloc(s->ctx, s->ranks.ranks + 1, sizeof *s->ranks.count);
    s->most_worst = (size_t)n2_options_count(s->options, "worst");
    s->worst = n2_alloc(s->ctx, s->most_worst + 1, sizeof *s->worst);
    if (!s->ranks.count || !s->worst) return N2CE_ENOMEM;
    s->bins = n2_bins_for((const double *const[]){d->held}, n, 1);
    s->bins = n2_bins_between(s->bins.low, s->bins.low + 2 * (double)s->bins.n * s->bins.width, 40);
    s->histogram[0] = n2_histogram_of(&s->bins, d->held, d->n);
    return N2CE_OK;
}

/* ---- the worst rows ------------------------------------------------------ */

static bool is_worse(const n2_odd_row *a, const n2_odd_row *b) {
    return a->score > b->score || (a->score == b->score && a->row < b->row);
}

/* Kept in their order; the one that falls off leaves its memory to the next. */
static n2ce_status consider(n2_detect_session *s, const n2_odd_row *row, const double *values) {
    const size_t cols = s->detector->cols;
    size_t at = s->n_worst;
    if (at == s->most_worst && (at == 0 || !is_worse(row, &s->worst[at - 1]))) return N2CE_OK;
    n2_odd_row new = *row;
    new.values = s->worst[s->most_worst].values;
    if (!new.values) new.values = n2_alloc(s->ctx, cols, sizeof *values);
    if (!new.values) return N2CE_ENOMEM;
    memcpy(new.values, values, cols * sizeof *values);
    s->worst[s->most_worst].values = NULL;
    for (; at > 0 && is_worse(row, &s->worst[at - 1]); at--) s->worst[at] = s->worst[at - 1];
    s->worst[at] = new;
    s->n_worst += s->n_worst < s->most_worst;
    return N2CE_OK;
}

static n2ce_status blame_worst(n2_detect_session *s) {
    n2_detector *d = s->detector;
    for (size_t i = 0; i < s->n_worst; i++) {
        n2_odd_row *w = &s->worst[i];
        const size_t fold = s->own ? n2_detector_fold(d, w->values, w->row) : 0;
        N2_TRY(n2_blame_of(d, fold, w->values, &w->blame));
    }
    return N2CE_OK;
}

/* ---- rows ---------------------------------------------------------------- */

/* A block for each rank; all ranks read all of them. */
typedef struct block {
    double *x, *score, *by_fold;
    size_t n;
} block;

static size_t rank_of(const n2_detect_session *s, const block *b, size_t i, uint64_t row) {
    n2_detector *d = s->detector;
    if (!s->own) return n2_detector_rank(d, b->x + i * d->cols, b->by_fold + i * d->folds, row);
    const double p = exp(-n2_tail_at(&s->bulk, b->score[i]));
    return (size_t)ceil(fmax(p * OWN_RANKS, 1));
}

static n2ce_status take_row(n2_detect_session *s, const block *b, size_t i) {
    const uint64_t row = s->judged++;
    const size_t rank = rank_of(s, b, i, row);
    const n2_odd_row found = {
        .row = row, .score = b->score[i], .p = (double)rank / (double)s->ranks.ranks};
    const n2_spooled spooled = {found.score, rank};
    s->ranks.count[rank]++;
    n2_histogram_add(&s->histogram[1], &s->bins, found.score);
    if (s->spooling) n2_new_file_add(&s->spool, (const char *)&spooled, sizeof spooled);
    return consider(s, &found, b->x + i * s->detector->cols);
}

static n2ce_status score_rows(n2_detect_session *s, const block *b, size_t first, size_t n) {
    n2_detector *d = s->detector;
    const double *x = b->x + first * d->cols;
    const n2_own_rows own = {.x = x, .n = n, .first = s->judged + first};
    if (s->own) return n2_detector_score_own(d, &own, b->score + first);
    return n2_detector_score(d, x, n, b->score + first, b->by_fold + first * d->folds);
}

/* Where the rows of rank r begin, in numbers of so many a row. */
static void find_shares(n2ce_ctx *ctx, size_t n, size_t numbers, size_t *begin) {
    const size_t ranks = (size_t)n2_ranks(ctx);
    for (size_t r = 0; r <= ranks; r++) {
        const size_t row = r * READ_ROWS < n ? r * READ_ROWS : n;
        begin[r] = row * numbers * sizeof(double);
    }
}

/* Each rank scores some of the rows, and all have the scores. */
static n2ce_status share_scores(n2_detect_session *s, const block *b) {
    enum { MOST = 1024 };
    size_t begin[MOST + 1];
    if (n2_ranks(s->ctx) == 1) return score_rows(s, b, 0, b->n);
    if (n2_ranks(s->ctx) > MOST) return n2_fail(s->ctx, N2CE_EINVAL, "More than %d ranks.", MOST);
    const size_t rank = (size_t)n2_rank(s->ctx);
    find_shares(s->ctx, b->n, 1, begin);
    const size_t first = begin[rank] / sizeof(double), end = begin[rank + 1] / sizeof(double);
    n2_comm_alone(s->ctx);
    const n2ce_status status = first < end ? score_rows(s, b, first, end - first) : N2CE_OK;
    n2_comm_together(s->ctx);
    N2_TRY(status);
    N2_TRY(n2_comm_gather(s->ctx, b->score, begin));
    if (s->own) return N2CE_OK;
    find_shares(s->ctx, b->n, s->detector->folds, begin);
    return n2_comm_gather(s->ctx, b->by_fold, begin);
}

static n2ce_status judge_block(n2_detect_session *s, block *b) {
    N2_TRY(share_scores(s, b));
    for (size_t i = 0; i < b->n; i++) N2_TRY(take_row(s, b, i));
    return N2CE_OK;
}

static n2ce_status judge_all(n2_detect_session *s, n2_reader *r) {
    const n2_detector *d = s->detector;
    const size_t rows = READ_ROWS * (size_t)n2_ranks(s->ctx);
    block b = {.x = n2_alloc(s->ctx, rows * d->cols, sizeof *b.x),
               .score = n2_alloc(s->ctx, rows, sizeof *b.score),
               .by_fold = n2_alloc(s->ctx, rows * d->folds, sizeof *b.by_fold),
               .n = 1};
    n2ce_status status = b.x && b.score && b.by_fold ? N2CE_OK : N2CE_ENOMEM;
    while (status == N2CE_OK && b.n > 0) {
        status = n2_reader_next(r, b.x, rows, &b.n);
        if (status == N2CE_OK && b.n > 0) status = judge_block(s, &b);
    }
    n2_free(s->ctx, b.x);
    n2_free(s->ctx, b.score);
    n2_free(s->ctx, b.by_fold);
    return status;
}

static void count_flagged(n2_detect_session *s) {
    const double fdr = n2ce_options_number(s->options, "fdr");
    s->ranks.flagged = n2_flagged_rank(s->ranks.count, s->ranks.ranks, fdr);
    for (size_t i = 1; i <= s->ranks.flagged; i++) s->n_flagged += s->ranks.count[i];
}

n2ce_status n2_detect_judge(n2_detect_session *s) {
    const char *output = n2ce_options_get(s->options, "output");
    n2_reader *r;
    N2_TRY(prepare(s));
    if (output) N2_TRY(n2_spool_begin(s, output));
    N2_TRY(n2_detector_open_rows(s->detector, s->rows, n2_header_of(s->options), &r));
    const n2ce_status status = judge_all(s, r);
    n2_reader_close(r);
    N2_TRY(status);
    count_flagged(s);
    N2_TRY(blame_worst(s));
    return output ? n2_detect_write(s, output) : N2CE_OK;
}

void n2_detect_close(n2_detect_session *s) {
    n2_opening_end(&s->opening);
    n2_detector_free(s->detector);
    n2_tail_free(s->ctx, &s->bulk);
    n2_free(s->ctx, s->ranks.count);
    for (size_t i = 0; s->worst && i <= s->most_worst; i++) n2_free(s->ctx, s->worst[i].values);
    n2_free(s->ctx, s->worst);
    n2_spool_end(s);
}
