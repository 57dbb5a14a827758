/* Facts about careless callers in C: NULL, sizes such as -1, options of another task. */
#include "samples.h"

#include <math.h>
#include <string.h>

enum { ROWS = 60, COLS = 2 };

typedef struct fixture {
    n2ce_ctx *ctx;
    const n2ce_task *task;
    n2ce_options *options, *others;
    double *x;
    n2ce_matrix two[2];
    n2ce_answer *answer;
    n2ce_model *model;
} fixture;

static int set_up(void **state) {
    static fixture f;
    f.ctx = NULL;
    f.task = n2ce_task_find("fit");
    assert_int_equal(n2ce_ctx_new(&f.ctx, NULL), N2CE_OK);
    assert_int_equal(n2ce_options_new(f.ctx, n2ce_task_options(f.task), &f.options), N2CE_OK);
    assert_int_equal(n2ce_options_set(f.options, "critic", "quadratic"), N2CE_OK);
    assert_int_equal(n2ce_options_new(f.ctx, n2ce_task_options(n2ce_task_find("mi")), &f.others),
                     N2CE_OK);
    f.x = normals((size_t)2 * ROWS * COLS, 0, 1, 1);
    f.two[0] = matrix(f.x, ROWS, COLS);
    f.two[1] = matrix(f.x + (size_t)ROWS * COLS, ROWS, COLS);
    assert_int_equal(n2ce_task_run_on(f.ctx, f.task, f.options, f.two, 2, &f.answer), N2CE_OK);
    f.model = n2ce_answer_take_model(f.answer);
    assert_non_null(f.model);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    n2ce_model_free(f->model);
    n2ce_answer_free(f->answer);
    n2ce_options_free(f->options);
    n2ce_options_free(f->others);
    n2ce_ctx_free(f->ctx);
    free(f->x);
    return 0;
}

#define REFUSED(call) assert_int_equal(call, N2CE_EINVAL)

static void tasks_and_options(void **state) {
    const fixture *f = *state;
    n2ce_options *o;
    n2ce_answer *a;
    REFUSED(n2ce_options_new(NULL, n2ce_task_options(f->task), &o));
    REFUSED(n2ce_options_new(f->ctx, NULL, &o));
    REFUSED(n2ce_options_new(f->ctx, n2ce_task_options(f->task), NULL));
    REFUSED(n2ce_options_set(NULL, "M", "1"));
    REFUSED(n2ce_options_set(f->options, NULL, "1"));
    REFUSED(n2ce_options_set(f->options, "M", NULL));
    assert_non_null(strstr(n2ce_errmsg(f->ctx), "NULL"));
    assert_null(n2ce_options_get(NULL, "M"));
    assert_null(n2ce_options_get(f->options, NULL));
    assert_true(isnan(n2ce_options_number(NULL, "M")));
    assert_null(n2ce_option_find(NULL, "M"));
    assert_null(n2ce_option_find(n2ce_task_options(f->task), NULL));
    assert_null(n2ce_nearest_word(NULL, NULL, 0));
    assert_null(n2ce_task_find(NULL));
    assert_null(n2ce_task_name(NULL));
    assert_null(n2ce_task_operands(NULL));
    REFUSED(n2ce_task_run(NULL, f->task, f->options, &a));
    REFUSED(n2ce_task_run(f->ctx, NULL, f->options, &a));
    REFUSED(n2ce_task_run(f->ctx, f->task, NULL, &a));
    REFUSED(n2ce_task_run(f->ctx, f->task, f->options, NULL));
    REFUSED(n2ce_task_run_on(f->ctx, f->task, NULL, f->two, 2, &a));
    REFUSED(n2ce_task_run_on(f->ctx, f->task, f->options, f->two, SIZE_MAX, &a));
    REFUSED(n2ce_task_run_on(f->ctx, f->task, f->others, f->two, 2, &a));
    assert_non_null(strstr(n2ce_errmsg(f->ctx), "another task"));
    n2ce_ctx_cancel(NULL);
}

static void answers_and_models(void **state) {
    const fixture *f = *state;
    n2ce_model *m;
    double out[ROWS];
    assert_true(isnan(n2ce_answer_number(NULL, "kl")));
    assert_true(isnan(n2ce_answer_number(f->answer, NULL)));
    assert_null(n2ce_answer_estimate(NULL, "kl"));
    assert_null(n2ce_answer_test(NULL));
    assert_null(n2ce_answer_text(NULL));
    assert_null(n2ce_answer_json(NULL));
    assert_null(n2ce_answer_take_model(NULL));
    REFUSED(n2ce_report_check(f->ctx, NULL, "x", false));
    REFUSED(n2ce_report_write(f->ctx, NULL, "x", false));
    REFUSED(n2ce_report_write(f->ctx, f->answer, NULL, false));
    REFUSED(n2ce_model_load(NULL, "x", &m));
    REFUSED(n2ce_model_load(f->ctx, NULL, &m));
    REFUSED(n2ce_model_load(f->ctx, "x", NULL));
    REFUSED(n2ce_model_save(NULL, "x", false));
    REFUSED(n2ce_model_save(f->model, NULL, false));
    REFUSED(n2ce_model_score(NULL, f->two, out));
    REFUSED(n2ce_model_score(f->model, NULL, out));
    REFUSED(n2ce_model_score(f->model, f->two, NULL));
    static const char *const twice[] = {"a", "a"}, *const empty[] = {"a", ""};
    REFUSED(n2ce_model_name(NULL, twice));
    REFUSED(n2ce_model_name(f->model, NULL));
    REFUSED(n2ce_model_name(f->model, twice));
    REFUSED(n2ce_model_name(f->model, empty));
    assert_int_equal(n2ce_model_columns(NULL), 0);
    assert_null(n2ce_model_column(NULL, 0));
    assert_null(n2ce_model_column(f->model, SIZE_MAX));
    assert_null(n2ce_model_json(NULL));
    n2ce_model_free(NULL);
}

static void optimizers_detectors_and_pictures(void **state) {
    const fixture *f = *state;
    n2ce_optimizer *o;
    n2ce_detector *d;
    n2ce_images *i;
    const n2ce_proposals *p;
    double out[ROWS];
    size_t size[4] = {1, 1, 1, 1};
    REFUSED(n2ce_optimizer_fit(NULL, NULL, f->two, f->two, &o));
    REFUSED(n2ce_optimizer_fit(f->ctx, NULL, NULL, f->two, &o));
    REFUSED(n2ce_optimizer_fit(f->ctx, NULL, f->two, f->two, NULL));
    REFUSED(n2ce_optimizer_fit(f->ctx, f->others, f->two, f->two, &o));
    REFUSED(n2ce_optimizer_propose(NULL, 3, &p));
    REFUSED(n2ce_optimizer_name(NULL, NULL, NULL, NULL));
    REFUSED(n2ce_optimizer_save(NULL, "x", false));
    REFUSED(n2ce_optimizer_load(f->ctx, NULL, &o));
    assert_null(n2ce_optimizer_json(NULL));
    REFUSED(n2ce_detector_fit(f->ctx, NULL, NULL, &d));
    REFUSED(n2ce_detector_fit(f->ctx, f->others, f->two, &d));
    REFUSED(n2ce_detector_name(NULL, NULL));
    REFUSED(n2ce_detector_score(NULL, f->two, 0, out, out));
    REFUSED(n2ce_detector_score_fitted(NULL, f->two, out));
    REFUSED(n2ce_detector_save(NULL, "x", false));
    REFUSED(n2ce_detector_load(NULL, "x", &d));
    assert_null(n2ce_detector_json(NULL));
    REFUSED(n2ce_images_read(f->ctx, "x", NULL));
    REFUSED(n2ce_images_read(NULL, "x", &i));
    REFUSED(n2ce_images_write_sheet(NULL, 1, 1, "x", false));
    assert_null(n2ce_images_pixels(NULL));
    assert_null(n2ce_images_labels(NULL));
    n2ce_images_size(NULL, size);
    assert_int_equal(size[0], 0);
}

/* Sizes that no memory has are refused before anything is read. */
static void sizes_beyond_memory(void **state) {
    const fixture *f = *state;
    static const size_t sizes[] = {SIZE_MAX, (size_t)1 << 62, (size_t)1 << 60, SIZE_MAX / 16};
    double out[1];
    n2ce_answer *a;
    n2ce_detector *d;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        n2ce_matrix two[2] = {f->two[0], f->two[1]}, *m = &two[0];
        m->rows = sizes[i];
        REFUSED(n2ce_model_score(f->model, m, out));
        assert_non_null(strstr(n2ce_errmsg(f->ctx), "any memory"));
        REFUSED(n2ce_task_run_on(f->ctx, f->task, f->options, two, 2, &a));
        REFUSED(n2ce_detector_fit(f->ctx, NULL, m, &d));
        *m = f->two[0];
        m->cols = sizes[i];
        REFUSED(n2ce_model_score(f->model, m, out));
        REFUSED(n2ce_task_run_on(f->ctx, f->task, f->options, two, 2, &a));
        *m = f->two[0];
        m->row_stride = (ptrdiff_t)(sizes[i] / 2);
        m->col_stride = 8;
        if (i > 0) REFUSED(n2ce_model_score(f->model, m, out));
    }
    REFUSED(n2ce_path_discrete(f->ctx, out, out, SIZE_MAX, 1, out));
    REFUSED(n2ce_path_discrete(f->ctx, NULL, out, 1, 1, out));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tasks_and_options, set_up, tear_down),
        cmocka_unit_test_setup_teardown(answers_and_models, set_up, tear_down),
        cmocka_unit_test_setup_teardown(optimizers_detectors_and_pictures, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sizes_beyond_memory, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
