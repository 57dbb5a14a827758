/* Facts about rows that stand in a sample several times: copies of rows go, what repeats by nature
 * stays. */
#include "samples.h"

#include "ratio/copies.h"

#include <math.h>

/* Every row five times is every row once; whole numbers that repeat by chance stay. */
static void copies_are_no_evidence(void **state) {
    (void)state;
    enum { N = 40, D = 2, TIMES = 5 };
    double *once[2] = {normals(N * D, 0, 1, 7), normals(N * D, 0, 1, 8)}, *rows[2];
    size_t n[2] = {N * TIMES, N * TIMES}, dropped;
    n2ce_ctx *ctx = new_ctx(1);
    for (int s = 0; s < 2; s++) {
        rows[s] = malloc(N * D * TIMES * sizeof *rows[s]);
        assert_non_null(rows[s]);
        for (size_t t = 0; t < TIMES; t++)
            memcpy(rows[s] + t * N * D, once[s], N * D * sizeof(double));
    }
    assert_int_equal(n2_copies_drop(ctx, rows, n, D, &dropped), N2CE_OK);
    assert_int_equal(n[0], N);
    assert_int_equal(n[1], N);
    assert_int_equal(dropped, 2 * N * (TIMES - 1));
    for (int s = 0; s < 2; s++) assert_memory_equal(rows[s], once[s], N * D * sizeof(double));
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < N * D; i++) rows[s][i] = round(rows[s][i]);
    assert_int_equal(n2_copies_drop(ctx, rows, n, D, &dropped), N2CE_OK);
    assert_int_equal(dropped, 0);
    for (int s = 0; s < 2; s++) {
        free(rows[s]);
        free(once[s]);
    }
    n2ce_ctx_free(ctx);
}

/* How many of a pair's rows are taken for copies. */
static size_t copies_among(double *num, double *den, size_t n, size_t d) {
    double *rows[2] = {den, num};
    size_t left[2] = {n, n}, dropped;
    n2ce_ctx *ctx = new_ctx(1);
    assert_int_equal(n2_copies_drop(ctx, rows, left, d, &dropped), N2CE_OK);
    n2ce_ctx_free(ctx);
    free(num);
    free(den);
    return dropped;
}

/* Normals in steps of a grid. */
static double *rounded(size_t n, double mean, double sd, double step, uint32_t stream) {
    double *x = normals(n, mean, sd, stream);
    for (size_t i = 0; i < n; i++) x[i] = round(x[i] / step) * step;
    return x;
}

/* Counts of two samples so far apart that they share no row. */
static void counts_repeat_by_nature(void **state) {
    (void)state;
    for (size_t d = 1; d <= 2; d++)
        for (size_t n = 300; n <= 2400; n *= 2)
            assert_int_equal(
                copies_among(rounded(n * d, 30, 5, 1, 1), rounded(n * d, 60, 7, 1, 2), n, d), 0);
}

/* Chains of bits: each is like the one before in one sample, and unlike it in the other. */
static double *bits(size_t n, size_t d, double like, uint32_t stream) {
    double *x = uniforms(n * d, stream);
    for (size_t i = 0; i < n * d; i++)
        x[i] = i % d == 0 ? x[i] < 0.5 : x[i] < like ? x[i - 1] : 1 - x[i - 1];
    return x;
}

static void bits_repeat_by_nature(void **state) {
    (void)state;
    for (size_t d = 8; d <= 16; d += 4)
        assert_int_equal(copies_among(bits(1000, d, 0.8, 3), bits(1000, d, 0.2, 4), 1000, d), 0);
}

/* Numbers of two decimals, each row three times. */
static void rounded_copies_are_found(void **state) {
    (void)state;
    enum { N = 300, D = 3, TIMES = 3 };
    double *samples[2];
    for (uint32_t s = 0; s < 2; s++) {
        samples[s] = rounded(N * TIMES * D, s, 1, 0.01, 5 + s);
        for (size_t i = N * D; i < N * D * TIMES; i++) samples[s][i] = samples[s][i % (N * D)];
    }
    assert_int_equal(copies_among(samples[0], samples[1], N * TIMES, D), 2 * N * (TIMES - 1));
}

static void numbers_of_one_column_are_found(void **state) {
    (void)state;
    enum { N = 300 };
    double *samples[2] = {normals(2 * N, 0, 1, 7), normals(2 * N, 0, 1, 8)};
    memcpy(samples[0] + N, samples[0], N * sizeof(double));
    assert_int_equal(copies_among(samples[0], samples[1], 2 * N, 1), N);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_no_evidence),
        cmocka_unit_test(counts_repeat_by_nature),
        cmocka_unit_test(bits_repeat_by_nature),
        cmocka_unit_test(rounded_copies_are_found),
        cmocka_unit_test(numbers_of_one_column_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
