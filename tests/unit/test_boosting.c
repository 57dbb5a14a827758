/* Facts about boosted trees. */
#include "base/random.h"
#include "contexts.h"
#include "ratio/boosting.h"

#include <string.h>

enum { ROWS = 1000, COLS = 4 };

/* y = 10 x0 + 3 [x1 > .5], two columns of noise. */
static void make_rows(double *x, double *y, uint32_t stream) {
    for (size_t i = 0; i < ROWS * COLS; i++) {
        float u;
        n2_fill_uniform((n2_stream){1, stream, 0}, i, 1, &u);
        x[i] = (double)u;
    }
    for (size_t i = 0; i < ROWS; i++) y[i] = 10 * x[i * COLS] + 3 * (x[i * COLS + 1] > 0.5);
}

static void fit_and_ask(int threads, const double *x, const double *y, const double *at,
                        double *guess) {
    n2ce_ctx *ctx = new_ctx(threads);
    n2_boosting *b;
    assert_int_equal(n2_boosting_fit(ctx, &(n2_boosting_options){.loss = N2_BOOSTING_SQUARES}, x, y,
                                     ROWS, COLS, &b),
                     N2CE_OK);
    n2_boosting_predict(b, at, ROWS, guess);
    n2_boosting_free(b);
    n2ce_ctx_free(ctx);
}

/* scikit-learn's, on three draws of rows of the same kind, is off by 0.03 to 0.05 on average. */
static void boosted_trees_learn(void **state) {
    (void)state;
    static double x[ROWS * COLS], y[ROWS], fresh[ROWS * COLS], truth[ROWS], guess[ROWS];
    double error = 0;
    make_rows(x, y, 1);
    make_rows(fresh, truth, 2);
    fit_and_ask(1, x, y, fresh, guess);
    for (size_t i = 0; i < ROWS; i++) error += fabs(guess[i] - truth[i]) / ROWS;
    assert_true(error < 0.07);
}

static void predictions_do_not_depend_on_threads(void **state) {
    (void)state;
    static double x[ROWS * COLS], y[ROWS], one[ROWS], three[ROWS];
    make_rows(x, y, 1);
    fit_and_ask(1, x, y, x, one);
    fit_and_ask(3, x, y, x, three);
    assert_memory_equal(one, three, sizeof one);
}

/* Fewer rows than two leaves need: the mean. */
static void few_rows_have_their_mean(void **state) {
    (void)state;
    const double x[3] = {1, 2, 3}, y[3] = {1, 2, 6};
    double guess;
    n2ce_ctx *ctx = new_ctx(1);
    n2_boosting *b;
    assert_int_equal(
        n2_boosting_fit(ctx, &(n2_boosting_options){.loss = N2_BOOSTING_SQUARES}, x, y, 3, 1, &b),
        N2CE_OK);
    n2_boosting_predict(b, x, 1, &guess);
    assert_close(guess, 3, 0, 1e-12);
    n2_boosting_free(b);
    n2ce_ctx_free(ctx);
}

/* Of a column with five values, each with odds of its own, from -2 to 2: their logarithms come out
 * within what 200 rows of a value leave open. */
static void logistic_trees_learn_log_odds(void **state) {
    (void)state;
    static double x[ROWS], label[ROWS];
    double odds[5];
    const double values[5] = {0, 1, 2, 3, 4};
    n2ce_ctx *ctx = new_ctx(1);
    n2_boosting *b;
    for (size_t i = 0; i < ROWS; i++) {
        float u;
        n2_fill_uniform((n2_stream){1, 4, 0}, i, 1, &u);
        x[i] = (double)(i % 5);
        label[i] = log((double)u / (1 - (double)u)) < x[i] - 2;
    }
    assert_int_equal(n2_boosting_fit(ctx, &(n2_boosting_options){.loss = N2_BOOSTING_LOGISTIC}, x,
                                     label, ROWS, 1, &b),
                     N2CE_OK);
    n2_boosting_predict(b, values, 5, odds);
    for (size_t k = 0; k < 5; k++) assert_close(odds[k], values[k] - 2, 0, 0.6);
    n2_boosting_free(b);
    n2ce_ctx_free(ctx);
}

/* Labels that follow the sign of x0 x1, nine times in ten; x2 is the label itself. */
static void make_signs(double *x, double *label) {
    for (size_t i = 0; i < ROWS; i++) {
        float u[3];
        n2_fill_uniform((n2_stream){1, 5, 0}, 3 * i, 3, u);
        for (size_t k = 0; k < 2; k++) x[3 * i + k] = (floor(100 * (double)u[k]) - 49.5) / 100;
        label[i] = x[3 * i + 2] = (x[3 * i] * x[3 * i + 1] > 0) == ((double)u[2] < 0.9);
    }
}

/* A column that may not be looked at tells nothing, and the others what they know. */
static void trees_look_where_they_may(void **state) {
    (void)state;
    static double x[ROWS * 3], label[ROWS];
    static const bool two[] = {true, true, false};
    const double at[] = {0.25, 0.25, 0, 0.25, 0.25, 1, -0.25, 0.25, 1};
    double odds[3];
    n2ce_ctx *ctx = new_ctx(1);
    n2_boosting *b;
    make_signs(x, label);
    const n2_boosting_options o = {
        .loss = N2_BOOSTING_LOGISTIC, .trees = 40, .leaves = 8, .looked_at = two};
    assert_int_equal(n2_boosting_fit(ctx, &o, x, label, ROWS, 3, &b), N2CE_OK);
    n2_boosting_predict(b, at, 3, odds);
    assert_true(odds[0] == odds[1]);
    assert_close(odds[0], log(9), 0, 0.9);
    assert_close(odds[2], -log(9), 0, 0.9);
    n2_boosting_free(b);
    n2ce_ctx_free(ctx);
}

/* Rows that count twice are as good as rows that stand there twice. */
static void weights_are_copies(void **state) {
    (void)state;
    static double x[ROWS * 3], label[ROWS], weight[ROWS / 2], one[ROWS], two[ROWS];
    n2ce_ctx *ctx = new_ctx(1);
    n2_boosting *b;
    make_signs(x, label);
    memcpy(x + 3 * (ROWS / 2), x, 3 * (ROWS / 2) * sizeof *x);
    memcpy(label + ROWS / 2, label, ROWS / 2 * sizeof *label);
    for (size_t i = 0; i < ROWS / 2; i++) weight[i] = 2;
    n2_boosting_options o = {.loss = N2_BOOSTING_LOGISTIC, .trees = 20, .least_rows = 40};
    assert_int_equal(n2_boosting_fit(ctx, &o, x, label, ROWS, 3, &b), N2CE_OK);
    n2_boosting_predict(b, x, ROWS, one);
    n2_boosting_free(b);
    o.weight = weight;
    o.least_rows = 20;
    assert_int_equal(n2_boosting_fit(ctx, &o, x, label, ROWS / 2, 3, &b), N2CE_OK);
    n2_boosting_predict(b, x, ROWS, two);
    n2_boosting_free(b);
    for (size_t i = 0; i < ROWS; i++) assert_close(one[i], two[i] - two[0] + one[0], 0, 1e-9);
    n2ce_ctx_free(ctx);
}

/* Trees on top of the true log odds have next to nothing to say; after a few steps as much as after
 * all of them by parts. */
static void trees_begin_at_an_offset(void **state) {
    (void)state;
    static double x[ROWS * 3], label[ROWS], offset[ROWS], one[ROWS], two[ROWS];
    static const bool first[] = {true, true, false};
    double mean = 0;
    n2ce_ctx *ctx = new_ctx(1);
    n2_boosting *b;
    make_signs(x, label);
    for (size_t i = 0; i < ROWS; i++) offset[i] = (x[3 * i] * x[3 * i + 1] > 0 ? 1 : -1) * log(9);
    const n2_boosting_options o = {.loss = N2_BOOSTING_LOGISTIC,
                                   .trees = 10,
                                   .leaves = 4,
                                   .looked_at = first,
                                   .offset = offset};
    assert_int_equal(n2_boosting_fit(ctx, &o, x, label, ROWS, 3, &b), N2CE_OK);
    n2_boosting_predict(b, x, ROWS, one);
    n2_boosting_add(b, 0, 4, x, ROWS, two);
    n2_boosting_add(b, 4, 10, x, ROWS, two);
    for (size_t i = 0; i < ROWS; i++) mean += fabs(one[i]) / ROWS;
    assert_memory_equal(one, two, sizeof one);
    assert_true(mean < 0.5);
    n2_boosting_free(b);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boosted_trees_learn),
        cmocka_unit_test(predictions_do_not_depend_on_threads),
        cmocka_unit_test(trees_look_where_they_may),
        cmocka_unit_test(weights_are_copies),
        cmocka_unit_test(trees_begin_at_an_offset),
        cmocka_unit_test(few_rows_have_their_mean),
        cmocka_unit_test(logistic_trees_learn_log_odds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
