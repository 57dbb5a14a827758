/* Facts about tails by a sample. */
#include "contexts.h"

#include "lebm/tail.h"

#include <math.h>

enum { N = 999 };

static n2_tail tail_of_ranks(n2_arena *arena) {
    double x[N];
    n2_tail t;
    for (size_t i = 0; i < N; i++) x[i] = (double)(i * 367 % N); /* 0 .. N - 1 in some order */
    assert_int_equal(n2_tail_of(arena, x, N, 1, &t), N2CE_OK);
    return t;
}

static void nats_are_those_of_the_share_above(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_arena arena = n2_arena_new(ctx);
    const n2_tail t = tail_of_ranks(&arena);
    assert_close(n2_tail_nats(&t, 499), log(2), 0, 2e-3);
    assert_close(n2_tail_nats(&t, 899), log(10), 0, 2e-2);
    assert_close(n2_tail_nats(&t, -5), 0, 0, 2e-3);
    assert_true(isnan(n2_tail_nats(&t, (double)NAN)));
    n2_arena_free(&arena);
    n2ce_ctx_free(ctx);
}

/* Also between the numbers of the sample, at the seam and far beyond the largest. */
static void nats_rise_without_end(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_arena arena = n2_arena_new(ctx);
    const n2_tail t = tail_of_ranks(&arena);
    double before = n2_tail_nats(&t, 0);
    for (double x = 0.25; x < 5000; x += 0.25) {
        const double now = n2_tail_nats(&t, x);
        assert_true(now > before && now - before < 0.1);
        before = now;
    }
    n2_arena_free(&arena);
    n2ce_ctx_free(ctx);
}

/* An exponential sample has an exponential tail: nats are x + a constant. */
static void exponential_tails_are_continued(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_arena arena = n2_arena_new(ctx);
    double x[N];
    n2_tail t;
    for (size_t i = 0; i < N; i++) x[i] = -log((double)(i + 1) / (N + 1));
    assert_int_equal(n2_tail_of(&arena, x, N, 1, &t), N2CE_OK);
    for (double at = 1; at < 20; at += 0.5) assert_close(n2_tail_nats(&t, at), at, 0.05, 0.01);
    n2_arena_free(&arena);
    n2ce_ctx_free(ctx);
}

static void samples_must_be_numbers(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_arena arena = n2_arena_new(ctx);
    double x[20] = {[7] = (double)INFINITY};
    n2_tail t;
    assert_int_equal(n2_tail_of(&arena, x, 20, 1, &t), N2CE_EDATA);
    x[7] = 0; /* all equal: nothing beyond can be told apart, and nothing is infinite */
    assert_int_equal(n2_tail_of(&arena, x, 20, 1, &t), N2CE_OK);
    assert_true(isfinite(n2_tail_nats(&t, 100)));
    n2_arena_free(&arena);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nats_are_those_of_the_share_above),
        cmocka_unit_test(nats_rise_without_end),
        cmocka_unit_test(exponential_tails_are_continued),
        cmocka_unit_test(samples_must_be_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
