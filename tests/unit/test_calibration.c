/* Facts about tails, conformal p-values and the false discovery rate. */
#include "contexts.h"
#include "failing_alloc.h"

#include "base/random.h"
#include "detect/calibration.h"

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of n + 1 exchangeable scores any may be the new one: over all of them, and evenly spaced draws,
 * every rank comes equally often, with ties or without. */
static void every_rank_is_equally_likely(void **state) {
    enum { N = 11, DRAWS = 5040 }; /* a multiple of every number of ties */
    static const double cases[3][N + 1] = {{5, 3, 8, 1, 9, 2, 7, 4, 6, 0, 11, 10},
                                           {1, 1, 1, 2, 2, 3, 3, 3, 3, 0, 0, 0},
                                           {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}};
    (void)state;
    for (size_t c = 0; c < 3; c++) {
        size_t count[N + 2] = {0};
        for (size_t new = 0; new <= N; new ++) {
            double others[N];
            for (size_t i = 0, k = 0; i <= N; i++)
                if (i != new) others[k++] = cases[c][i];
            qsort(others, N, sizeof others[0], ascending);
            for (size_t k = 0; k < DRAWS; k++) {
                const double draw = ((double)k + 0.5) / DRAWS;
                const size_t rank = n2_conformal_rank(others, N, cases[c][new], draw);
                assert_true(rank >= 1 && rank <= N + 1);
                count[rank]++;
            }
        }
        for (size_t rank = 1; rank <= N + 1; rank++) assert_int_equal(count[rank], DRAWS);
    }
}

static void the_oddest_row_has_the_least_p(void **state) {
    const double sorted[] = {1, 2, 3};
    (void)state;
    assert_int_equal(n2_conformal_rank(sorted, 3, 9, 1), 1);
    assert_int_equal(n2_conformal_rank(sorted, 3, 0, 1e-9), 4);
}

/* Benjamini and Hochberg's definition: the largest p that is at most q times its place among m. */
static size_t by_definition(const size_t *rank, size_t m, size_t ranks, double q) {
    size_t best = 0;
    for (size_t i = 0; i < m; i++) {
        size_t place = 0;
        for (size_t k = 0; k < m; k++) place += rank[k] <= rank[i];
        const bool below = (double)rank[i] * (double)m <= q * (double)place * (double)ranks;
        if (below && rank[i] > best) best = rank[i];
    }
    return best;
}

static void flags_are_those_of_benjamini_and_hochberg(void **state) {
    enum { M = 40, RANKS = 101 };
    (void)state;
    for (uint32_t trial = 0; trial < 200; trial++) {
        size_t rank[M];
        uint64_t count[RANKS + 1] = {0};
        for (size_t i = 0; i < M; i++) {
            const size_t most = i < trial % 20 ? 4 : RANKS;
            rank[i] = 1 + n2_random_below((n2_stream){1, 2, trial}, i, most);
            count[rank[i]]++;
        }
        for (double q = 0.05; q < 0.5; q *= 2) {
            /* ranks between two that occur flag the same rows */
            const size_t limit = n2_flagged_rank(count, RANKS, q);
            const size_t expected = by_definition(rank, M, RANKS, q);
            for (size_t i = 0; i < M; i++) assert_int_equal(rank[i] <= limit, rank[i] <= expected);
        }
    }
}

static void nothing_is_flagged_among_uniform_p(void **state) {
    uint64_t count[1001];
    (void)state;
    for (size_t i = 1; i <= 1000; i++) count[i] = 1;
    assert_int_equal(n2_flagged_rank(count, 1000, 0.5), 0);
    assert_int_equal(n2_flagged_rank(count, 1000, 1), 1000);
}

/* Minus the log of the tail of an exponential distribution is its argument, also far beyond what
 * was seen. */
static void the_tail_of_an_exponential(void **state) {
    enum { N = 2000 };
    double x[N];
    n2_tail t;
    n2ce_ctx *ctx = new_ctx(1);
    (void)state;
    for (size_t i = 0; i < N; i++) x[i] = -3 * log(((double)i + 0.5) / N); /* mean 3 */
    assert_int_equal(n2_tail_new(ctx, x, N, &t), N2CE_OK);
    for (double score = 1; score < 200; score *= 2)
        assert_close(n2_tail_at(&t, score), score / 3, 0.05, 0.01);
    for (double last = -1, score = -5; score < 50; score += 0.01) {
        assert_true(n2_tail_at(&t, score) >= last);
        last = n2_tail_at(&t, score);
    }
    n2_tail_free(ctx, &t);
    n2ce_ctx_free(ctx);
}

/* One score that is off by a million does not change what others come to. */
static void one_huge_score_moves_little(void **state) {
    enum { N = 200 };
    double x[N];
    n2_tail with, without;
    n2ce_ctx *ctx = new_ctx(1);
    (void)state;
    for (size_t i = 0; i < N; i++) x[i] = -log(((double)i + 0.5) / N);
    assert_int_equal(n2_tail_new(ctx, x, N, &without), N2CE_OK);
    x[0] = 1e6;
    assert_int_equal(n2_tail_new(ctx, x, N, &with), N2CE_OK);
    assert_close(n2_tail_at(&with, 20), n2_tail_at(&without, 20), 0.1, 0);
    n2_tail_free(ctx, &with);
    n2_tail_free(ctx, &without);
    n2ce_ctx_free(ctx);
}

static void scores_that_are_all_the_same(void **state) {
    const double x[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    n2_tail t;
    n2ce_ctx *ctx = new_ctx(1);
    (void)state;
    assert_int_equal(n2_tail_new(ctx, x, COUNT_OF(x), &t), N2CE_OK);
    assert_true(n2_tail_at(&t, 2) < 0.1);
    assert_true(isfinite(n2_tail_at(&t, 3)) && n2_tail_at(&t, 3) > n2_tail_at(&t, 2));
    n2_tail_free(ctx, &t);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_is_equally_likely),
        cmocka_unit_test(the_oddest_row_has_the_least_p),
        cmocka_unit_test(flags_are_those_of_benjamini_and_hochberg),
        cmocka_unit_test(nothing_is_flagged_among_uniform_p),
        cmocka_unit_test(the_tail_of_an_exponential),
        cmocka_unit_test(one_huge_score_moves_little),
        cmocka_unit_test(scores_that_are_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
