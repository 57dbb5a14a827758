/* Facts about rankings, neighbours and principal components. */
#include "contexts.h"
#include "failing_alloc.h"

#include "metric/neighbours.h"
#include "metric/principal.h"
#include "metric/ranking.h"

#include <math.h>
#include <string.h>

static n2_rank_areas rank(const double *scores, const unsigned char *odd, size_t n) {
    n2ce_ctx *ctx = new_ctx(1);
    n2_rank_areas r;
    assert_int_equal(n2_rank_scores(ctx, scores, odd, n, &r), N2CE_OK);
    n2ce_ctx_free(ctx);
    return r;
}

static void assert_near(double x, double y) { assert_true(fabs(x - y) < 1e-12); }

static void the_best_ranking_has_areas_of_one(void **state) {
    (void)state;
    const n2_rank_areas r = rank((double[]){5, 4, 3, 2, 1}, (unsigned char[]){1, 1, 0, 0, 0}, 5);
    assert_near(r.auprc, 1);
    assert_near(r.auroc, 1);
    assert_near(r.prevalence, 0.4);
}

/* odd, normal, odd: precisions 1, 1/2, 2/3 at recalls 1/2, 1/2, 1. Trapezoids have 1/2 and
 * (1/2 + 2/3) / 4; the average precision would be 1/2 + 1/3. */
static void the_area_is_made_of_trapezoids(void **state) {
    (void)state;
    const n2_rank_areas r = rank((double[]){3, 2, 1}, (unsigned char[]){1, 0, 1}, 3);
    assert_near(r.auprc, 0.5 + (0.5 + 2.0 / 3) / 4);
    assert_near(r.auroc, 0.5);
}

/* One score for all: a single trapezoid from precision 1 to the prevalence, and no order. */
static void equal_scores_are_seen_at_once(void **state) {
    (void)state;
    const n2_rank_areas r = rank((double[]){7, 7, 7, 7}, (unsigned char[]){1, 0, 0, 0}, 4);
    assert_near(r.auprc, (1 + 0.25) / 2);
    assert_near(r.auroc, 0.5);
    const unsigned char mixed[2][4] = {{1, 0, 1, 0}, {0, 1, 0, 1}};
    const double ties[4] = {2, 2, 1, 1};
    assert_near(rank(ties, mixed[0], 4).auprc, rank(ties, mixed[1], 4).auprc);
}

static void what_turns_the_order_turns_auroc(void **state) {
    (void)state;
    double x[64], minus[64];
    unsigned char odd[64];
    for (size_t i = 0; i < 64; i++) {
        x[i] = (double)(i * 37 % 64 / 2);
        minus[i] = -x[i];
        odd[i] = i % 3 == 0;
    }
    assert_near(rank(x, odd, 64).auroc + rank(minus, odd, 64).auroc, 1);
    double grown[64]; /* only the order counts */
    for (size_t i = 0; i < 64; i++) grown[i] = exp(x[i] / 10);
    assert_near(rank(x, odd, 64).auprc, rank(grown, odd, 64).auprc);
}

static void rankings_need_both_kinds_and_numbers(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_rank_areas r;
    const double bad[2] = {1, (double)NAN};
    assert_int_equal(n2_rank_scores(ctx, bad, (unsigned char[]){1, 1}, 2, &r), N2CE_EINVAL);
    assert_int_equal(n2_rank_scores(ctx, bad, (unsigned char[]){0, 0}, 2, &r), N2CE_EINVAL);
    assert_int_equal(n2_rank_scores(ctx, bad, (unsigned char[]){1, 0}, 2, &r), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(ctx), "row 1"));
    n2ce_ctx_free(ctx);
}

static void precision_is_read_where_recall_is_reached(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double p[5];
    const double scores[6] = {6, 5, 4, 3, 2, 1};
    const unsigned char odd[6] = {1, 0, 1, 0, 1, 1};
    assert_int_equal(n2_precision_at_recall(ctx, scores, odd, 6, 5, p), N2CE_OK);
    const double expected[5] = {1, 1, 2.0 / 3, 3.0 / 5, 4.0 / 6};
    for (size_t i = 0; i < 5; i++) assert_near(p[i], expected[i]);
    n2ce_ctx_free(ctx);
}

static void the_largest_of_a_kind_come_first(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    const double scores[5] = {1, 9, 3, 9, 5};
    const unsigned char odd[5] = {1, 0, 1, 0, 1};
    size_t rows[5], n;
    assert_int_equal(n2_largest_scores(ctx, scores, odd, 5, N2_RANKED_ANY, 3, rows, &n), N2CE_OK);
    assert_int_equal(n, 3);
    assert_true(rows[0] == 1 && rows[1] == 3 && rows[2] == 4);
    assert_int_equal(n2_largest_scores(ctx, scores, odd, 5, N2_RANKED_ODD, 5, rows, &n), N2CE_OK);
    assert_int_equal(n, 3);
    assert_true(rows[0] == 4 && rows[1] == 2 && rows[2] == 0);
    n2ce_ctx_free(ctx);
}

/* Points at 0, 1, 3, 7, 15 ... of a line. */
static void neighbours_on_a_line(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads += 2) {
        n2ce_ctx *ctx = new_ctx(threads);
        n2_arena arena = n2_arena_new(ctx);
        const float line[5] = {0, 1, 3, 7, 15}, at[2] = {7, 2};
        const n2_feature_rows points = {5, 1, line}, asked = {2, 1, at};
        n2_packed_rows p, q;
        double squares[10];
        assert_int_equal(n2_pack_rows(&arena, &points, 5, &p), N2CE_OK);
        assert_int_equal(n2_pack_rows(&arena, &asked, 2, &q), N2CE_OK);
        assert_int_equal(n2_nearest_squares(ctx, &q, &p, 2, squares), N2CE_OK);
        assert_true(squares[0] == 0 && squares[1] == 16 && squares[2] == 1 && squares[3] == 1);
        assert_int_equal(n2_nearest_squares(ctx, &p, &p, 1, squares), N2CE_OK);
        const double own[5] = {1, 1, 4, 16, 64};
        for (size_t i = 0; i < 5; i++) assert_near(squares[i], own[i]);
        n2_arena_free(&arena);
        n2ce_ctx_free(ctx);
    }
}

/* Rows that come in turns of ten: every tenth part of those taken is of each kind. */
static void all_kinds_are_among_those_taken(void **state) {
    (void)state;
    enum { N = 5000, TAKEN = 1000, KINDS = 10 };
    n2ce_ctx *ctx = new_ctx(1);
    n2_arena arena = n2_arena_new(ctx);
    static float kind[N];
    size_t count[KINDS] = {0};
    n2_packed_rows p;
    for (size_t i = 0; i < N; i++) kind[i] = (float)(i % KINDS);
    assert_int_equal(n2_pack_rows(&arena, &(n2_feature_rows){N, 1, kind}, TAKEN, &p), N2CE_OK);
    for (size_t i = 0; i < TAKEN; i++) count[(size_t)lround(sqrt(p.squares[i]))]++;
    for (size_t k = 0; k < KINDS; k++) assert_in_range(count[k], 95, 105);
    n2_arena_free(&arena);
    n2ce_ctx_free(ctx);
}

/* A plane in five dimensions: two components leave nothing out, and lengths are kept. */
static void principal_components_of_a_plane(void **state) {
    (void)state;
    enum { N = 40, D = 5 };
    n2ce_ctx *ctx = new_ctx(2);
    n2_arena arena = n2_arena_new(ctx);
    float x[N * D], z[N * 2];
    double left[N];
    for (size_t i = 0; i < N; i++) {
        const float a = 10 * sinf((float)i), b = cosf(3 * (float)i);
        const float row[D] = {1 + a, 2 + b, 3 - a, 4 - b, 5};
        memcpy(x + i * D, row, sizeof row);
    }
    const n2_feature_rows rows = {N, D, x};
    n2_principal p;
    assert_int_equal(n2_principal_learn(&arena, &rows, 2, &p), N2CE_OK);
    assert_true(p.variance[0] > p.variance[1] && p.variance[1] > 0);
    assert_int_equal(n2_principal_project(ctx, &p, &rows, z, left), N2CE_OK);
    for (size_t i = 0; i < N; i++) assert_true(fabs(left[i]) < 1e-9);
    for (size_t c = 0; c < 2; c++) { /* coordinates have the variance that is said */
        double sum = 0;
        for (size_t i = 0; i < N; i++) sum += (double)z[2 * i + c] * (double)z[2 * i + c];
        assert_true(fabs(sum / (N - 1) - p.variance[c]) < 1e-4 * p.variance[c]);
    }
    n2_arena_free(&arena);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_ranking_has_areas_of_one),
        cmocka_unit_test(the_area_is_made_of_trapezoids),
        cmocka_unit_test(equal_scores_are_seen_at_once),
        cmocka_unit_test(what_turns_the_order_turns_auroc),
        cmocka_unit_test(rankings_need_both_kinds_and_numbers),
        cmocka_unit_test(precision_is_read_where_recall_is_reached),
        cmocka_unit_test(the_largest_of_a_kind_come_first),
        cmocka_unit_test(neighbours_on_a_line),
        cmocka_unit_test(all_kinds_are_among_those_taken),
        cmocka_unit_test(principal_components_of_a_plane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
