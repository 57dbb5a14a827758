/* Facts about random forests. */
#include "base/random.h"
#include "contexts.h"
#include "design/forest.h"

#include <math.h>
#include <string.h>

enum { ROWS = 300, COLS = 5 };

/* y = 10 x0 + x1, three columns of noise. */
static void make_rows(double *x, double *y, uint64_t seed) {
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t c = 0; c < COLS; c++) {
            float u;
            n2_fill_uniform((n2_stream){seed, 1, 0}, i * COLS + c, 1, &u);
            x[i * COLS + c] = (double)u;
        }
        y[i] = 10 * x[i * COLS] + x[i * COLS + 1];
    }
}

static void fit(int threads, const double *x, const double *y, size_t trees, size_t depth,
                n2ce_ctx **ctx, n2_forest **forest) {
    *ctx = new_ctx(threads);
    const n2_forest_options o = {trees, depth, 7};
    assert_int_equal(n2_forest_fit(*ctx, x, y, ROWS, COLS, &o, forest), N2CE_OK);
}

static void a_forest_learns_what_matters(void **state) {
    (void)state;
    double x[ROWS * COLS], y[ROWS], fresh[ROWS * COLS], truth[ROWS], guess[ROWS];
    n2ce_ctx *ctx;
    n2_forest *forest;
    make_rows(x, y, 1);
    make_rows(fresh, truth, 2);
    fit(2, x, y, 50, 100, &ctx, &forest);
    assert_int_equal(n2_forest_predict(forest, fresh, ROWS, guess), N2CE_OK);
    double error = 0;
    for (size_t i = 0; i < ROWS; i++) error += fabs(guess[i] - truth[i]) / ROWS;
    assert_true(error < 0.25); /* of a range of 11 */
    n2_forest_free(forest);
    n2ce_ctx_free(ctx);
}

static void predictions_do_not_depend_on_threads(void **state) {
    (void)state;
    double x[ROWS * COLS], y[ROWS], guess[3][ROWS];
    make_rows(x, y, 1);
    for (int threads = 1; threads <= 3; threads++) {
        n2ce_ctx *ctx;
        n2_forest *forest;
        fit(threads, x, y, 9, 100, &ctx, &forest);
        assert_int_equal(n2_forest_predict(forest, x, ROWS, guess[threads - 1]), N2CE_OK);
        n2_forest_free(forest);
        n2ce_ctx_free(ctx);
    }
    assert_memory_equal(guess[0], guess[1], sizeof guess[0]);
    assert_memory_equal(guess[0], guess[2], sizeof guess[0]);
}

/* A tree of one level is two means, and of none the mean of its sample. */
static void depth_limits_the_leaves(void **state) {
    (void)state;
    double x[ROWS * COLS], y[ROWS];
    make_rows(x, y, 1);
    for (size_t depth = 0; depth < 4; depth++) {
        n2ce_ctx *ctx;
        n2_forest *forest;
        fit(1, x, y, 1, depth, &ctx, &forest);
        assert_int_equal(n2_forest_nodes(forest), (2u << depth) - 1);
        n2_forest_free(forest);
        n2ce_ctx_free(ctx);
    }
}

/* Beyond the rows nothing changes: the box of the rows loses no score. */
static void a_forest_is_constant_beyond_its_rows(void **state) {
    (void)state;
    double x[ROWS * COLS], y[ROWS], far[ROWS * COLS], near[ROWS * COLS], a[ROWS], b[ROWS];
    double low[COLS], high[COLS];
    n2ce_ctx *ctx;
    n2_forest *forest;
    make_rows(x, y, 1);
    fit(2, x, y, 20, 100, &ctx, &forest);
    for (size_t c = 0; c < COLS; c++) low[c] = high[c] = x[c];
    for (size_t i = 0; i < ROWS * COLS; i++) {
        low[i % COLS] = fmin(low[i % COLS], x[i]);
        high[i % COLS] = fmax(high[i % COLS], x[i]);
    }
    for (size_t i = 0; i < ROWS * COLS; i++) {
        far[i] = 5 * x[ROWS * COLS - 1 - i] - 2;
        near[i] = fmax(low[i % COLS], fmin(high[i % COLS], far[i]));
    }
    assert_int_equal(n2_forest_predict(forest, far, ROWS, a), N2CE_OK);
    assert_int_equal(n2_forest_predict(forest, near, ROWS, b), N2CE_OK);
    assert_memory_equal(a, b, sizeof a);
    n2_forest_free(forest);
    n2ce_ctx_free(ctx);
}

/* Between numbers next to each other, or what is none, there is nothing to part them by. */
static void what_cannot_be_parted_stays_together(void **state) {
    enum { FEW = 8, TREES = 5, DEPTH = 64 };
    static const double pairs[][2] = {{-5e-324, 0},
                                      {-(double)INFINITY, (double)INFINITY},
                                      {1, (double)NAN},
                                      {(double)NAN, (double)NAN}};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(pairs); k++) {
        double x[FEW], y[FEW], guess[FEW];
        n2ce_ctx *ctx = new_ctx(1);
        n2_forest *forest;
        for (size_t i = 0; i < FEW; i++) {
            x[i] = pairs[k][i % 2];
            y[i] = (double)i;
        }
        const n2_forest_options o = {TREES, DEPTH, 7};
        assert_int_equal(n2_forest_fit(ctx, x, y, FEW, 1, &o, &forest), N2CE_OK);
        assert_true(n2_forest_nodes(forest) < TREES * 2 * FEW);
        assert_int_equal(n2_forest_predict(forest, x, FEW, guess), N2CE_OK);
        for (size_t i = 0; i < FEW; i++) assert_true(guess[i] >= 0 && guess[i] < FEW);
        n2_forest_free(forest);
        n2ce_ctx_free(ctx);
    }
}

static void a_forest_of_nothing_is_refused(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    const n2_forest_options o = {10, 10, 0};
    n2_forest *forest = (n2_forest *)1;
    const double x = 1;
    assert_int_equal(n2_forest_fit(ctx, &x, &x, 0, 1, &o, &forest), N2CE_EINVAL);
    assert_null(forest);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forest_learns_what_matters),
        cmocka_unit_test(predictions_do_not_depend_on_threads),
        cmocka_unit_test(depth_limits_the_leaves),
        cmocka_unit_test(a_forest_is_constant_beyond_its_rows),
        cmocka_unit_test(what_cannot_be_parted_stays_together),
        cmocka_unit_test(a_forest_of_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
