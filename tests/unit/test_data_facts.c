/* Facts about what is found in samples before anything is fitted: values that one of them lacks,
 * rows that both have; and about what is none, because numbers repeat by nature. */
#include "samples.h"

#include "ratio/data_facts.h"

#include <math.h>

static double *whole(size_t n, double mean, double sd, uint32_t stream) {
    double *x = normals(n, mean, sd, stream);
    for (size_t i = 0; i < n; i++) x[i] = round(x[i]);
    return x;
}

/* Of a column each. */
static n2_data_facts facts_of(double *num, size_t n, double *den, size_t m) {
    n2ce_ctx *ctx = new_ctx(1);
    n2_table *a = new_table(ctx, num, n, 1), *b = new_table(ctx, den, m, 1);
    n2_data_facts out;
    assert_int_equal(n2_data_facts_find(a, b, 0, &out), N2CE_OK);
    n2_table_free(a);
    n2_table_free(b);
    n2ce_ctx_free(ctx);
    free(num);
    free(den);
    return out;
}

/* Fifty rows lack numbers that four of a hundred have, and a sample of larger ones the small ones.
 */
static void whole_numbers_that_a_sample_lacks_are_no_atoms(void **state) {
    (void)state;
    const n2_data_facts few = facts_of(whole(1000, 0, 10, 1), 1000, whole(50, 0, 10, 2), 50);
    assert_true(few.atom[0].share == 0 && few.atom[1].share == 0);
    const n2_data_facts apart = facts_of(whole(600, 25, 10, 3), 600, whole(600, 0, 10, 4), 600);
    assert_true(apart.atom[0].share == 0 && apart.atom[1].share == 0);
}

/* Half zeros among normals, and one face more of a die, are. */
static void atoms_are_found(void **state) {
    (void)state;
    double *zeros = normals(400, 0, 1, 5), *die = uniforms(400, 6), *other = uniforms(400, 7);
    for (size_t i = 0; i < 400; i++) {
        if (i % 2) zeros[i] = 0;
        die[i] = floor(6 * die[i]);
        other[i] = floor(5 * other[i]);
    }
    const n2_data_facts a = facts_of(zeros, 400, normals(400, 0, 1, 8), 400);
    assert_close(a.atom[1].share, 0.5, 1e-9, 0);
    const n2_data_facts b = facts_of(die, 400, other, 400);
    assert_true(b.atom[1].share > 0.1 && b.atom[1].value == 5);
}

/* Ages stand in both samples by nature; rows of one file in the other do not. */
static void rows_that_both_have(void **state) {
    (void)state;
    enum { N = 500 };
    assert_int_equal(facts_of(whole(N, 50, 20, 9), N, whole(N, 55, 20, 10), N).shared, 0);
    double *num = normals(N, 0, 1, 11), *den = normals(N, 0, 1, 12);
    memcpy(den, num, 20 * sizeof *den);
    assert_int_equal(facts_of(num, N, den, N).shared, 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_that_a_sample_lacks_are_no_atoms),
        cmocka_unit_test(atoms_are_found),
        cmocka_unit_test(rows_that_both_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
