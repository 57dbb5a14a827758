#include "detector.h"

#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the parts' average. */
static const double WEIGHTS[N2_PARTS_COUNT] = {1, 1, 0.5};

enum { FOLDS = 5, FEW_ROWS = 100, SCORE_BLOCK = 2048 };

/* Streams of random numbers, nobody else's. */
enum { DEALING = 0x64650011, DRAWS };

void n2_detector_free(n2_detector *d) {
    if (!d) return;
    for (size_t c = 0; d->names && c < d->cols; c++) n2_free(d->ctx, d->names[c]);
    n2_free(d->ctx, d->names);
    n2_free(d->ctx, d->categorical);
    n2_levels_free(d->levels);
    n2_free(d->ctx, d->n_levels);
    n2_equal_rows_free(d->equal);
    n2_free(d->ctx, d->rows);
    for (size_t k = 0; k < N2_DETECT_FOLDS; k++) n2_expert_free(d->expert[k]);
    for (size_t p = 0; p < N2_PARTS_COUNT; p++) n2_tail_free(d->ctx, &d->tail[p]);
    n2_free(d->ctx, d->parts);
    n2_free(d->ctx, d->held);
    n2_free(d->ctx, d->sorted);
    n2_free(d->ctx, d);
}

/* ---- dealing ------------------------------------------------------------- */

size_t n2_detect_fold(uint64_t seed, uint64_t i, size_t folds) {
    size_t deck[N2_DETECT_FOLDS];
    const uint64_t hand = i / folds * folds;
    for (size_t k = 0; k < folds; k++) deck[k] = k;
    for (size_t k = folds - 1; k > 0; k--) {
        const size_t j = n2_random_below((n2_stream){seed, DEALING, 0}, hand + k, k + 1);
        const size_t card = deck[k];
        deck[k] = deck[j];
        deck[j] = card;
    }
    return deck[i - hand];
}

/* Rows fold by fold, in their order within each; number[i] is what decides the fold of row i. */
static n2ce_status deal(n2_detector *d, const n2_table *normal, const size_t *number) {
    size_t at = 0;
    d->rows = n2_alloc(d->ctx, normal->rows * d->cols, sizeof *d->rows);
    if (!d->rows) return N2CE_ENOMEM;
    d->n = normal->rows;
    for (size_t k = 0; k < d->folds; k++) {
        d->begin[k] = at;
        for (size_t i = 0; i < normal->rows; i++) {
            if (n2_detect_fold(d->seed, number ? number[i] : i, d->folds) != k) continue;
            memcpy(d->rows + at++ * d->cols, normal->x + i * d->cols, d->cols * sizeof *d->rows);
        }
    }
    d->begin[d->folds] = at;
    return N2CE_OK;
}

static void choose_folds(n2_detector *d, size_t wanted, size_t rows) {
    d->folds = wanted ? wanted : rows < FEW_ROWS ? 2 * FOLDS : FOLDS;
}

static void tell_copies(const n2_detector *d, const n2_equal_rows *e) {
    n2_log(d->ctx, N2CE_LOG_WARNING,
           "%zu of the rows that are learnt from are copies of others, for values hardly repeat: "
           "copies are held out together, since new rows are none.",
           e->n - e->groups);
}

/* Copies go by the number of their group. */
static n2ce_status deal_rows(n2_detector *d, const n2_table *normal, const size_t *origin,
                             size_t folds) {
    n2_equal_rows *e;
    bool copies = false;
    N2_TRY(n2_equal_rows_new(d->ctx, normal->x, normal->rows, d->cols, &e));
    n2ce_status status = n2_equal_rows_are_copies(e, d->n_levels, &copies);
    choose_folds(d, folds, copies ? e->groups : normal->rows);
    if (status == N2CE_OK && copies) tell_copies(d, e);
    if (status == N2CE_OK) status = deal(d, normal, copies ? e->group : origin);
    n2_equal_rows_free(e);
    return status;
}

/* Whether there were copies is seen by the rows alone, so a file need not say it. */
static n2ce_status find_copies(n2_detector *d) {
    bool copies;
    N2_TRY(n2_equal_rows_new(d->ctx, d->rows, d->n, d->cols, &d->equal));
    N2_TRY(n2_equal_rows_are_copies(d->equal, d->n_levels, &copies));
    if (copies) return N2CE_OK;
    n2_equal_rows_free(d->equal);
    d->equal = NULL;
    return N2CE_OK;
}

/* ---- columns ------------------------------------------------------------- */

static n2ce_status copy_columns(n2_detector *d, const n2_table *t, const n2_levels *levels) {
    d->names = n2_alloc(d->ctx, t->cols, sizeof *d->names);
    d->categorical = n2_alloc(d->ctx, t->cols, sizeof *d->categorical);
    d->n_levels = n2_alloc(d->ctx, t->cols, sizeof *d->n_levels);
    if (!d->names || !d->categorical || !d->n_levels) return N2CE_ENOMEM;
    d->cols = t->cols;
    N2_TRY(n2_levels_copy(d->ctx, levels, &d->levels));
    for (size_t c = 0; c < t->cols; c++) {
        d->names[c] = n2_alloc(d->ctx, strlen(t->names[c]) + 1, 1);
        if (!d->names[c]) return N2CE_ENOMEM;
        strcpy(d->names[c], t->names[c]);
        d->categorical[c] = t->categorical[c];
        if (t->categorical[c]) d->n_levels[c] = n2_levels_count(d->levels, d->names[c]);
    }
    return N2CE_OK;
}

/* ---- learning ------------------------------------------------------------ */

typedef struct teacher {
    n2_detector *d;
    size_t fold;
} teacher;

static void tell_progress(void *user, double share) {
    const teacher *t = user;
    n2_progress(t->d->ctx, (double)t->fold + share, (double)t->d->folds);
}

n2ce_status n2_detector_teach(n2_detector *d, size_t fold, bool network, n2_device_choice *choice) {
    teacher t = {d, fold};
    const n2_normal_rows rows = {d->rows, d->n, d->cols, d->n_levels};
    const size_t held[2] = {d->begin[fold], d->begin[fold + 1]};
    const n2_critic_listener listener = {tell_progress, &t};
    const n2_learned_options ratio = {.seed = d->seed + 1000003u * (fold + 1),
                                      .network = network,
                                      .choice = choice,
                                      .listener = &listener};
    tell_progress(&t, 0);
    return n2_expert_new(d->ctx, &rows, held, d->weight[N2_PART_RATIO] > 0 ? &ratio : NULL,
                         &d->expert[fold]);
}

static double combine(const n2_detector *d, const double *parts) {
    double sum = 0, weights = 0;
    for (size_t p = 0; p < N2_PARTS_COUNT; p++) {
        if (!(d->weight[p] > 0)) continue;
        sum += d->weight[p] * n2_tail_at(&d->tail[p], parts[p]);
        weights += d->weight[p];
    }
    return sum / weights;
}

static n2ce_status make_tails(n2_detector *d) {
    double *one = n2_alloc(d->ctx, d->n, sizeof *one);
    n2ce_status status = one ? N2CE_OK : N2CE_ENOMEM;
    for (size_t p = 0; p < N2_PARTS_COUNT && status == N2CE_OK; p++) {
        for (size_t i = 0; i < d->n; i++) one[i] = d->parts[i * N2_PARTS_COUNT + p];
        status = n2_tail_new(d->ctx, one, d->n, &d->tail[p]);
    }
    n2_free(d->ctx, one);
    return status;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

n2ce_status n2_detector_calibrate(n2_detector *d) {
    d->held = n2_alloc(d->ctx, d->n, sizeof *d->held);
    d->sorted = n2_alloc(d->ctx, d->n, sizeof *d->sorted);
    if (!d->held || !d->sorted) return N2CE_ENOMEM;
    N2_TRY(find_copies(d));
    N2_TRY(make_tails(d));
    for (size_t i = 0; i < d->n; i++)
        d->sorted[i] = d->held[i] = combine(d, d->parts + i * N2_PARTS_COUNT);
    qsort(d->sorted, d->n, sizeof *d->sorted, ascending);
    return N2CE_OK;
}

static n2ce_status teach_all(n2_detector *d, const n2_detect_options *o) {
    d->parts = n2_alloc(d->ctx, d->n * N2_PARTS_COUNT, sizeof *d->parts);
    if (!d->parts) return N2CE_ENOMEM;
    for (size_t k = 0; k < d->folds; k++) {
        const size_t first = d->begin[k], n = d->begin[k + 1] - first;
        N2_TRY(n2_detector_teach(d, k, true, o->choice));
        N2_TRY(n2_expert_score(d->expert[k], d->rows + first * d->cols, n,
                               d->parts + first * N2_PARTS_COUNT));
    }
    return n2_detector_calibrate(d);
}

static void set_weights(n2_detector *d, const n2_detect_options *o) {
    bool any = false;
    for (size_t p = 0; p < N2_PARTS_COUNT; p++) any |= o->use[p];
    for (size_t p = 0; p < N2_PARTS_COUNT; p++) d->weight[p] = !any || o->use[p] ? WEIGHTS[p] : 0;
}

n2ce_status n2_detector_fit(n2ce_ctx *ctx, const n2_table *normal, const n2_levels *levels,
                            const size_t *origin, const n2_detect_options *o, n2_detector **out) {
    *out = NULL;
    if (normal->rows < N2_DETECT_LEAST_ROWS)
        return n2_fail(ctx, N2CE_EDATA,
                       "There %s %zu normal row%s; at least %d are needed to tell what is normal.",
                       normal->rows == 1 ? "is" : "are", normal->rows, normal->rows == 1 ? "" : "s",
                       N2_DETECT_LEAST_ROWS);
    n2_detector *d = n2_alloc(ctx, 1, sizeof *d);
    if (!d) return N2CE_ENOMEM;
    d->ctx = ctx;
    d->seed = o->seed;
    set_weights(d, o);
    n2ce_status status = copy_columns(d, normal, levels);
    if (status == N2CE_OK) status = deal_rows(d, normal, origin, o->folds);
    if (status == N2CE_OK) status = teach_all(d, o);
    if (status == N2CE_OK)
        *out = d;
    else
        n2_detector_free(d);
    return status;
}

/* ---- rows ---------------------------------------------------------------- */

static n2ce_status score_block(n2_detector *d, const double *rows, size_t n, double *parts,
                               double *score, double *by_fold) {
    memset(score, 0, n * sizeof *score);
    for (size_t k = 0; k < d->folds; k++) {
        N2_TRY(n2_expert_score(d->expert[k], rows, n, parts));
        for (size_t i = 0; i < n; i++) {
            const double s = combine(d, parts + i * N2_PARTS_COUNT);
            score[i] += s / (double)d->folds;
            if (by_fold) by_fold[i * d->folds + k] = s;
        }
    }
    return N2CE_OK;
}

n2ce_status n2_detector_score(n2_detector *d, const double *rows, size_t n, double *score,
                              double *by_fold) {
    double *parts = n2_alloc(d->ctx, SCORE_BLOCK * N2_PARTS_COUNT, sizeof *parts);
    n2ce_status status = parts ? N2CE_OK : N2CE_ENOMEM;
    for (size_t i = 0; i < n && status == N2CE_OK; i += SCORE_BLOCK)
        status = score_block(d, rows + i * d->cols, n - i < SCORE_BLOCK ? n - i : SCORE_BLOCK,
                             parts, score + i, by_fold ? by_fold + i * d->folds : NULL);
    n2_free(d->ctx, parts);
    return status;
}

n2ce_status n2_detector_score_by(n2_detector *d, size_t fold, const double *rows, size_t n,
                                 double *score) {
    double *parts = n2_alloc(d->ctx, n * N2_PARTS_COUNT, sizeof *parts);
    n2ce_status status = parts ? N2CE_OK : N2CE_ENOMEM;
    if (status == N2CE_OK) status = n2_expert_score(d->expert[fold], rows, n, parts);
    for (size_t i = 0; i < n && status == N2CE_OK; i++)
        score[i] = combine(d, parts + i * N2_PARTS_COUNT);
    n2_free(d->ctx, parts);
    return status;
}

size_t n2_detector_fold(const n2_detector *d, const double *row, uint64_t i) {
    const size_t at = d->equal ? n2_equal_rows_find(d->equal, row) : SIZE_MAX;
    if (at == SIZE_MAX) return n2_detect_fold(d->seed, i, d->folds);
    size_t fold = 0;
    while (at >= d->begin[fold + 1]) fold++;
    return fold;
}

static size_t fold_of(const n2_detector *d, const n2_own_rows *own, size_t i) {
    return n2_detector_fold(d, own->x + i * d->cols, own->number ? own->number[i] : own->first + i);
}

/* The rows of one fold among n, by its expert. x: room for all of them; theirs: for their scores.
 */
static n2ce_status score_fold(n2_detector *d, size_t fold, const n2_own_rows *own, double *x,
                              double *theirs, double *score) {
    size_t mine = 0, at = 0;
    for (size_t i = 0; i < own->n; i++)
        if (fold_of(d, own, i) == fold)
            memcpy(x + mine++ * d->cols, own->x + i * d->cols, d->cols * sizeof *x);
    N2_TRY(n2_detector_score_by(d, fold, x, mine, theirs));
    for (size_t i = 0; i < own->n; i++)
        if (fold_of(d, own, i) == fold) score[i] = theirs[at++];
    return N2CE_OK;
}

n2ce_status n2_detector_score_own(n2_detector *d, const n2_own_rows *own, double *score) {
    double *x = n2_alloc(d->ctx, own->n * d->cols, sizeof *x);
    double *theirs = n2_alloc(d->ctx, own->n, sizeof *theirs);
    n2ce_status status = x && theirs ? N2CE_OK : N2CE_ENOMEM;
    for (size_t k = 0; k < d->folds && status == N2CE_OK; k++)
        status = score_fold(d, k, own, x, theirs, score);
    n2_free(d->ctx, x);
    n2_free(d->ctx, theirs);
    return status;
}

/* How often a normal row is there, in the mean. */
static size_t copies_of_each(const n2_detector *d) {
    return d->equal ? (d->n + d->equal->groups / 2) / d->equal->groups : 1;
}

size_t n2_detector_rank(const n2_detector *d, const double *row, const double *by_fold,
                        uint64_t i) {
    float draw;
    n2_fill_uniform((n2_stream){d->seed, DRAWS, 0}, i, 1, &draw);
    const double score = by_fold[n2_detector_fold(d, row, i)];
    return n2_rank_of_copies(d->sorted, d->n, score, (double)draw, copies_of_each(d));
}

size_t n2_detector_ranks(const n2_detector *d) { return d->n + copies_of_each(d); }

/* ---- files --------------------------------------------------------------- */

static n2ce_status reader_options(const n2_detector *d, n2_header header, char **names,
                                  char **categorical, n2_table_options *out) {
    N2_TRY(n2_columns_quote(d->ctx, d->names, NULL, d->cols, names));
    N2_TRY(n2_columns_quote(d->ctx, d->names, d->categorical, d->cols, categorical));
    *out = (n2_table_options){.header = header,
                              .names = d->names,
                              .columns = *names,
                              .categorical = *categorical,
                              .levels = d->levels,
                              .keep_missing = true};
    return N2CE_OK;
}

/* Columns that are not there are the data's fault, not the user's. */
static n2ce_status blame_columns(const n2_detector *d, const char *label, n2ce_status status) {
    char why[500];
    if (status != N2CE_EINVAL) return status;
    snprintf(why, sizeof why, "%s", n2ce_errmsg(d->ctx));
    return n2_fail(d->ctx, N2CE_EDATA, "%s has other columns than the normal rows. %s", label, why);
}

n2ce_status n2_detector_open_rows(const n2_detector *d, const char *path, n2_header header,
                                  n2_reader **out) {
    char *names = NULL, *categorical = NULL;
    n2_table_options o;
    *out = NULL;
    n2ce_status status = reader_options(d, header, &names, &categorical, &o);
    if (status == N2CE_OK) status = n2_reader_open(d->ctx, path, &o, out);
    n2_free(d->ctx, names);
    n2_free(d->ctx, categorical);
    return blame_columns(d, path, status);
}

n2ce_status n2_detector_open_matrix(const n2_detector *d, const n2ce_matrix *m, n2_reader **out) {
    char *names = NULL, *categorical = NULL;
    n2_table_options o;
    *out = NULL;
    if (m->cols != d->cols)
        return n2_fail(d->ctx, N2CE_EINVAL, "The rows have %zu columns; the normal rows have %zu.",
                       m->cols, d->cols);
    n2ce_status status = reader_options(d, N2_HEADER_AUTO, &names, &categorical, &o);
    if (status == N2CE_OK) status = n2_reader_of_matrix(d->ctx, m, "the rows", &o, out);
    n2_free(d->ctx, names);
    n2_free(d->ctx, categorical);
    return status;
}
