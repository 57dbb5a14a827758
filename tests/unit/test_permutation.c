/* Facts about the permutation test: small cases that can be counted, and its null distribution. */
#include "close.h"

#include "ratio/permutation.h"

#include <math.h>

typedef struct moments {
    double n, sum, squares;
} moments;

static void add(void *user, double mean) {
    moments *m = user;
    m->n++;
    m->sum += mean;
    m->squares += mean * mean;
}

/* One row of four is drawn first in a quarter of the permutations. */
static void p_is_the_share_of_permutations(void **state) {
    (void)state;
    double best[] = {1, 0, 0, 0}, worst[] = {0, 1, 1, 1}, equal[] = {0.3, 0.3, 0.3, 0.3};
    assert_close(n2_permutation_p(best, 1, 4, 100000, 1, NULL, NULL), 0.25, 0, 0.006);
    assert_close(n2_permutation_p(worst, 1, 4, 1000, 1, NULL, NULL), 1, 0, 0);
    assert_close(n2_permutation_p(equal, 2, 4, 1000, 1, NULL, NULL), 1, 0, 0);
}

/* Pairs of 1, 2, 3, 4: six sums, of which 7 is the largest and 5 comes twice. */
static void larger_sums_count_and_equal_ones_too(void **state) {
    (void)state;
    double most[] = {4, 3, 2, 1}, middle[] = {4, 1, 2, 3};
    assert_close(n2_permutation_p(most, 2, 4, 100000, 2, NULL, NULL), 1.0 / 6, 0, 0.006);
    assert_close(n2_permutation_p(middle, 2, 4, 100000, 2, NULL, NULL), 4.0 / 6, 0, 0.006);
}

static void the_null_has_the_mean_and_spread_of_what_is_drawn(void **state) {
    (void)state;
    double score[] = {3, -1, 0.5, 2, 2, -4, 1, 0};
    enum { ALL = sizeof score / sizeof score[0], DRAWN = 3 };
    const n2_null null = n2_null_of(score, DRAWN, ALL);
    moments m = {0, 0, 0};
    assert_close(null.observed, 2.5 / 3, 1e-15, 0);
    assert_close(null.mean, 3.5 / 8, 1e-15, 0);
    n2_permutation_p(score, DRAWN, ALL, 200000, 3, add, &m);
    const double mean = m.sum / m.n, spread = sqrt(m.squares / m.n - mean * mean);
    assert_close(m.n, 200000, 0, 0);
    assert_close(mean, null.mean, 0, 5 * null.spread / sqrt(m.n));
    assert_close(spread, null.spread, 0.01, 0);
}

static void both_samples_count_alike_in_the_accuracy(void **state) {
    (void)state;
    const double f[] = {1, -1, /* others: */ -1, -1, -1, 1, 0, -2};
    assert_close(n2_balanced_accuracy(f, 2, 8), 0.5 * (0.5 + 4.5 / 6), 1e-15, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p_is_the_share_of_permutations),
        cmocka_unit_test(larger_sums_count_and_equal_ones_too),
        cmocka_unit_test(the_null_has_the_mean_and_spread_of_what_is_drawn),
        cmocka_unit_test(both_samples_count_alike_in_the_accuracy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
