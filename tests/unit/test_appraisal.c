/* Facts about what is said of proposals before they are tried: distances, promises, back-tests. */
#include "close.h"

#include "design/design_space.h"
#include "optimize/appraisal.h"

#include <math.h>
#include <string.h>

enum { ROWS = 20, COLUMNS = 3 };

/* Designs (i, 0, i mod 2) of value i, the first column from 0 to 20, the last a category. */
typedef struct fixture {
    n2ce_ctx *ctx;
    n2_factor factor[COLUMNS];
    double x[ROWS * COLUMNS], y[ROWS];
    n2_designs designs;
} fixture;

static int set_up(void **state) {
    static fixture f;
    *state = &f;
    f = (fixture){.factor = {{.kind = N2_CONTINUOUS, .low = 0, .high = 20},
                             {.kind = N2_CONTINUOUS, .low = 1, .high = 1},
                             {.kind = N2_CATEGORY, .levels = 2}}};
    for (int i = 0; i < ROWS; i++) {
        f.x[i * COLUMNS] = f.y[i] = i;
        f.x[i * COLUMNS + 2] = i % 2;
    }
    f.designs = (n2_designs){{f.factor, COLUMNS}, ROWS, f.x, f.y};
    return n2ce_ctx_new(&f.ctx, NULL) == N2CE_OK ? 0 : -1;
}

static int tear_down(void **state) {
    n2ce_ctx_free(((fixture *)*state)->ctx);
    return 0;
}

static void distances_are_root_mean_squares_in_ranges(void **state) {
    const fixture *f = *state;
    const double from[] = {3, 0, 1, 3.5, 9, 1, -20, 0, 0, 30, 0, 0};
    const double expected[] = {0, sqrt(0.025 * 0.025 / 3), sqrt(1.0 / 3),
                               sqrt((0.55 * 0.55 + 1) / 3)};
    double distance[4];
    size_t nearest[4];
    n2_space_nearest(&f->designs.space, from, 3, f->x, ROWS, false, distance, nearest);
    n2_space_nearest(&f->designs.space, from + 9, 1, f->x + 19 * COLUMNS, 1, false, distance + 3,
                     nearest + 3);
    for (size_t i = 0; i < 4; i++) assert_close(distance[i], expected[i], 1e-15, 0);
    assert_int_equal(nearest[0], 3);
    assert_int_equal(nearest[1], 3);
    assert_int_equal(nearest[2], 0);
}

static void the_best_are_hidden_and_the_others_stay_in_order(void **state) {
    const fixture *f = *state;
    n2_backtest b;
    assert_int_equal(n2_backtest_begin(f->ctx, &f->designs, 25, &b), N2CE_OK);
    assert_int_equal(b.hidden, 5);
    assert_int_equal(b.visible.rows, 15);
    assert_memory_equal(b.visible.y, f->y, 15 * sizeof *f->y);
    assert_memory_equal(b.visible.x, f->x, 15 * COLUMNS * sizeof *f->x);
    for (size_t i = 0; i < ROWS; i++) assert_int_equal(b.order[i], ROWS - 1 - i);
    n2_backtest_end(&b);
}

/* Proposals that are the hidden designs are what a back-test hopes for. */
static void proposals_that_were_hidden_are_recognised(void **state) {
    const fixture *f = *state;
    double x[5 * COLUMNS], predicted[5] = {20, 19, 18, 3, 2};
    const n2_proposals p = {.rows = 5, .x = x, .predicted = predicted};
    n2_backtest b;
    n2_appraisal a;
    memcpy(x, f->x + 15 * COLUMNS, sizeof x);
    assert_int_equal(n2_backtest_begin(f->ctx, &f->designs, 25, &b), N2CE_OK);
    assert_int_equal(n2_appraise(&b, &p, 14, &a), N2CE_OK);
    assert_close(a.hidden_share, 1, 0, 0);
    assert_close(a.above, 0.6, 1e-15, 0);
    assert_close(a.neighbours.best, 19, 0, 0);
    assert_close(a.neighbours.median, 17, 0, 0);
    assert_close(a.visible.best, 14, 0, 0);
    assert_close(a.visible.median, 12, 0, 0);
    assert_close(a.truth.best, 19, 0, 0);
    assert_close(a.truth.median, 17, 0, 0);
    for (size_t i = 0; i < a.n_usual; i++)
        assert_close(a.usual[i], sqrt(0.1 * 0.1 / 3), 1e-15,
                     0);                /* two further, of the same level */
    assert_close(a.far, 0.6, 1e-15, 0); /* 17, 18 and 19 are more than two beyond 13 and 14 */
    n2_appraisal_free(&a);
    n2_backtest_end(&b);
}

static void without_a_test_nothing_is_hidden(void **state) {
    const fixture *f = *state;
    double x[COLUMNS] = {5, 0, 1}, predicted = 5;
    const n2_proposals p = {.rows = 1, .x = x, .predicted = &predicted};
    n2_backtest b;
    n2_appraisal a;
    assert_int_equal(n2_backtest_begin(f->ctx, &f->designs, 0, &b), N2CE_OK);
    assert_int_equal(b.visible.rows, ROWS);
    assert_int_equal(n2_appraise(&b, &p, 19, &a), N2CE_OK);
    assert_close(a.distance[0] + a.far + a.above + a.hidden_share, 0, 0, 0);
    n2_appraisal_free(&a);
    n2_backtest_end(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(distances_are_root_mean_squares_in_ranges),
        TEST(the_best_are_hidden_and_the_others_stay_in_order),
        TEST(proposals_that_were_hidden_are_recognised),
        TEST(without_a_test_nothing_is_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
