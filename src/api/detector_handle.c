/* n2ce_detector: what "detect" learns, kept to judge rows, to be saved and loaded. */
#include "base/options.h"
#include "detect/detector_file.h"
#include "task/detect_session.h"

struct n2ce_detector {
    n2ce_ctx *ctx;
    n2_device_choice choice;
    n2_detector *detector;
    char *json;
};

void n2ce_detector_free(n2ce_detector *d) {
    if (!d) return;
    n2_detector_free(d->detector);
    n2_free(d->ctx, d->json);
    n2_free(d->ctx, d);
}

const char *n2ce_detector_json(const n2ce_detector *d) { return d ? d->json : NULL; }

static n2ce_status describe(n2ce_detector *d) {
    const n2_detector *inner = d->detector;
    n2_text text = n2_text_new(d->ctx);
    n2_text_add(&text, "{\"columns\": [");
    for (size_t c = 0; c < inner->cols; c++) {
        if (c) n2_text_add(&text, ", ");
        n2_text_add_json_string(&text, inner->names[c]);
    }
    n2_text_add(&text,
                "], \"normal\": %zu, \"folds\": %zu, \"device\": \"%s\", \"version\": \"%s\"}",
                inner->n, inner->folds, n2_choice_name(&d->choice), n2ce_version());
    return n2_text_take(&text, &d->json);
}

/* Frees what failed, and says so with *out. */
static n2ce_status finish(n2ce_detector *d, n2ce_status status, n2ce_detector **out) {
    if (status == N2CE_OK) status = describe(d);
    n2_cancel_reset(d->ctx);
    if (status != N2CE_OK) n2ce_detector_free(d);
    *out = status == N2CE_OK ? d : NULL;
    return status;
}

static n2ce_status new_detector(n2ce_ctx *ctx, n2ce_detector **out) {
    n2ce_detector *d = *out = n2_alloc(ctx, 1, sizeof *d);
    if (!d) return N2CE_ENOMEM;
    d->ctx = ctx;
    return N2CE_OK;
}

/* ---- fitting ------------------------------------------------------------- */

static n2ce_status fit_table(n2ce_detector *d, const n2ce_options *options,
                             const n2ce_matrix *normal, n2_levels *levels) {
    n2_table *t;
    const n2_table_options how = n2_detect_table_options(options, levels);
    const n2_detect_options o = n2_detect_options_of(options, &d->choice);
    N2_TRY(n2_table_of_matrix(d->ctx, normal, "the normal rows", &how, &t));
    const n2ce_status status = n2_detector_fit(d->ctx, t, levels, t->origin, &o, &d->detector);
    n2_table_free(t);
    return status;
}

static n2ce_status fit(n2ce_detector *d, const n2ce_options *options, const n2ce_matrix *normal) {
    n2_levels *levels;
    N2_TRY(n2_options_check_table(d->ctx, options, n2ce_task_options(n2ce_task_find("detect"))));
    N2_TRY(n2_choice_of_options(d->ctx, options, &d->choice));
    N2_TRY(n2_levels_new(d->ctx, &levels));
    const n2ce_status status = fit_table(d, options, normal, levels);
    n2_levels_free(levels);
    return status;
}

static n2ce_status fit_with_defaults(n2ce_detector *d, const n2ce_matrix *normal) {
    n2ce_options *defaults;
    N2_TRY(n2ce_options_new(d->ctx, n2ce_task_options(n2ce_task_find("detect")), &defaults));
    const n2ce_status status = fit(d, defaults, normal);
    n2ce_options_free(defaults);
    return status;
}

n2ce_status n2ce_detector_fit(n2ce_ctx *ctx, const n2ce_options *options, const n2ce_matrix *normal,
                              n2ce_detector **out) {
    if (!ctx || !normal || !out) return n2_fail(ctx, N2CE_EINVAL, N2_NULL_ARGUMENT);
    n2ce_detector *d;
    *out = NULL;
    N2_TRY(new_detector(ctx, &d));
    const n2_c_locale scope = n2_c_locale_enter();
    const n2ce_status status = options ? fit(d, options, normal) : fit_with_defaults(d, normal);
    n2_c_locale_leave(scope);
    return finish(d, status, out);
}

n2ce_status n2ce_detector_name(n2ce_detector *d, const char *const *names) {
    if (!d || !names) return n2_fail(d ? d->ctx : NULL, N2CE_EINVAL, N2_NULL_ARGUMENT);
    n2_detector *inner = d->detector;
    N2_TRY(n2_columns_rename(d->ctx, names, inner->cols, inner->names, &inner->levels));
    n2_free(d->ctx, d->json);
    d->json = NULL;
    return describe(d);
}

/* ---- judging ------------------------------------------------------------- */

enum { ROWS = 2048 };

/* Rows that come block by block, and where what is said of them goes. */
typedef struct judging {
    n2_detector *d;
    n2_reader *rows;
    double *x, *score, *by_fold;
    bool fitted; /* they are those that it was fitted to */
    size_t first, done;
    double *scores, *p_values;
} judging;

static n2ce_status judge_block(judging *j, size_t n) {
    n2_detector *d = j->d;
    const n2_own_rows own = {.x = j->x, .n = n, .first = j->done};
    if (j->fitted) return n2_detector_score_own(d, &own, j->scores + j->done);
    N2_TRY(n2_detector_score(d, j->x, n, j->score, j->by_fold));
    for (size_t i = 0; i < n; i++) {
        const size_t at = j->done + i;
        if (j->scores) j->scores[at] = j->score[i];
        if (j->p_values)
            j->p_values[at] = (double)n2_detector_rank(d, j->x + i * d->cols,
                                                       j->by_fold + i * d->folds, j->first + at) /
                              (double)n2_detector_ranks(d);
    }
    return N2CE_OK;
}

static n2ce_status judge_all(judging *j) {
    for (size_t n = 1; n > 0; j->done += n) {
        N2_TRY(n2_reader_next(j->rows, j->x, ROWS, &n));
        if (n > 0) N2_TRY(judge_block(j, n));
    }
    return N2CE_OK;
}

static n2ce_status judge(n2ce_detector *d, const n2ce_matrix *rows, judging *j) {
    if (rows->rows == 0) return N2CE_OK;
    j->d = d->detector;
    N2_TRY(n2_detector_open_matrix(j->d, rows, &j->rows));
    j->x = n2_alloc(d->ctx, ROWS * j->d->cols, sizeof *j->x);
    j->score = n2_alloc(d->ctx, ROWS, sizeof *j->score);
    j->by_fold = n2_alloc(d->ctx, ROWS * j->d->folds, sizeof *j->by_fold);
    n2ce_status status = j->x && j->score && j->by_fold ? judge_all(j) : N2CE_ENOMEM;
    n2_free(d->ctx, j->x);
    n2_free(d->ctx, j->score);
    n2_free(d->ctx, j->by_fold);
    n2_reader_close(j->rows);
    n2_cancel_reset(d->ctx);
    return status;
}

n2ce_status n2ce_detector_score(n2ce_detector *d, const n2ce_matrix *rows, size_t first,
                                double *scores, double *p_values) {
    if (!d || !rows) return n2_fail(d ? d->ctx : NULL, N2CE_EINVAL, N2_NULL_ARGUMENT);
    judging j = {.first = first, .scores = scores, .p_values = p_values};
    return judge(d, rows, &j);
}

n2ce_status n2ce_detector_score_fitted(n2ce_detector *d, const n2ce_matrix *normal,
                                       double *scores) {
    if (!d || !normal || !scores) return n2_fail(d ? d->ctx : NULL, N2CE_EINVAL, N2_NULL_ARGUMENT);
    if (normal->rows < d->detector->n)
        return n2_fail(d->ctx, N2CE_EINVAL,
                       "There are %zu rows, and the detector learnt from %zu: it takes all that it "
                       "was fitted to, in their order.",
                       normal->rows, d->detector->n);
    judging j = {.fitted = true, .scores = scores};
    return judge(d, normal, &j);
}

/* ---- files --------------------------------------------------------------- */

n2ce_status n2ce_detector_save(const n2ce_detector *d, const char *path, bool overwrite) {
    if (!d || !path) return n2_fail(d ? d->ctx : NULL, N2CE_EINVAL, N2_NULL_ARGUMENT);
    return n2_detector_save(d->detector, path, overwrite);
}

n2ce_status n2ce_detector_load(n2ce_ctx *ctx, const char *path, n2ce_detector **out) {
    if (!ctx || !path || !out) return n2_fail(ctx, N2CE_EINVAL, N2_NULL_ARGUMENT);
    n2ce_detector *d;
    *out = NULL;
    N2_TRY(new_detector(ctx, &d));
    return finish(d, n2_detector_load(ctx, path, NULL, &d->detector), out);
}
