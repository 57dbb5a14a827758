/* Facts about the calibration of scores. */
#include "samples.h"

#include "ratio/reliability.h"

#include <math.h>

enum { N = 4000 };

/* Scores `times` the true log ratio of N(1, 1) to N(0, 1), x - 1/2, at rows of both. */
static n2_reliability of_scores(double times) {
    n2ce_ctx *ctx = new_ctx(1);
    n2_reliability r;
    double *f[2] = {normals(N, 0, 1, 1), normals(N, 1, 1, 2)};
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < N; i++) f[side][i] = times * (f[side][i] - 0.5);
    const n2_scores s = {.ctx = ctx, .n = {N, N}, .f = {f[0], f[1]}, .influence = f[0]};
    assert_int_equal(n2_reliability_of(&s, &r), N2CE_OK);
    for (size_t side = 0; side < 2; side++) free(f[side]);
    n2ce_ctx_free(ctx);
    return r;
}

static void true_scores_are_reliable(void **state) {
    (void)state;
    const n2_reliability r = of_scores(1);
    double num = 0, den = 0;
    assert_int_equal(r.bins, N2_RELIABILITY_BINS);
    assert_true(fabs(r.mean_weight.value - 1) < 4 * r.mean_weight.error);
    for (size_t k = 0; k < r.bins; k++) {
        assert_true(fabs(r.bin[k].observed - r.bin[k].predicted) < 4 * r.bin[k].error);
        num += r.bin[k].num;
        den += r.bin[k].den;
    }
    assert_true(num == N && den == N);
    assert_true(n2_reliability_gap(&r) < 0.1);
}

static void bold_scores_are_not(void **state) {
    (void)state;
    const n2_reliability r = of_scores(3);
    assert_true(r.mean_weight.value > 1.5);
    assert_true(r.bin[0].predicted < r.bin[0].observed - 4 * r.bin[0].error);
    assert_true(n2_reliability_gap(&r) > 0.5);
}

/* Scores that are all the same make one bin. */
static void equal_scores_are_one_bin(void **state) {
    (void)state;
    const n2_reliability r = of_scores(0);
    assert_int_equal(r.bins, 2); /* the first is below all, and empty */
    assert_true(r.bin[1].num == N && r.bin[1].den == N);
    assert_true(fabs(r.bin[1].predicted) < 1e-12 && fabs(r.bin[1].observed) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(true_scores_are_reliable),
        cmocka_unit_test(bold_scores_are_not),
        cmocka_unit_test(equal_scores_are_one_bin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
