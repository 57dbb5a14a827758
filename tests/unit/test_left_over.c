/* Facts about what products of columns tell beside a log ratio. */
#include "samples.h"

#include "ratio/left_over.h"

#include <math.h>

enum { N = 2000, D = 6 };

typedef struct both {
    double *x[2], *f[2];
} both;

/* Normal columns, in the numerator the first two of correlation rho. */
static both draw(double rho) {
    both b;
    for (uint32_t side = 0; side < 2; side++) {
        b.x[side] = normals(N * D, 0, 1, 51 + side);
        b.f[side] = new_doubles(N);
    }
    for (size_t i = 0; i < N; i++) {
        double *x = b.x[1] + i * D;
        x[1] = rho * x[0] + sqrt(1 - rho * rho) * x[1];
    }
    return b;
}

static void both_free(both *b) {
    for (size_t side = 0; side < 2; side++) {
        free(b->x[side]);
        free(b->f[side]);
    }
}

static double left_over(const both *b, size_t dx) {
    n2ce_ctx *ctx = new_ctx(2);
    const n2_opinion_rows of = {{{b->x[0], N, D}, {b->x[1], N, D}}, {b->f[0], b->f[1]}};
    double found;
    assert_int_equal(n2_left_over(ctx, &of, dx, &found), N2CE_OK);
    n2ce_ctx_free(ctx);
    return found;
}

/* Where the ratio knows nothing it is what a product of two columns tells, rho^2 / 4 nats of the
 * loss for a small correlation; where it is right, nothing. */
static void a_product_that_is_missing_is_found(void **state) {
    (void)state;
    const double rho = 0.3;
    both b = draw(rho);
    assert_close(left_over(&b, 0), rho * rho / 4, 0.4, 0);
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < N; i++) {
            const double x = b.x[side][i * D], y = b.x[side][i * D + 1];
            const double square = (x * x - 2 * rho * x * y + y * y) / (1 - rho * rho);
            b.f[side][i] = -0.5 * (square - x * x - y * y) - 0.5 * log(1 - rho * rho);
        }
    assert_true(left_over(&b, 0) == 0);
    both_free(&b);
}

/* The sign of y follows that of x_0 inside of a circle, and the opposite of it outside: on average
 * they have nothing in common. */
static void what_turns_with_the_distance_is_found(void **state) {
    (void)state;
    enum { X = 2 };
    both b = draw(0);
    for (size_t i = 0; i < N; i++) {
        double *x = b.x[1] + i * D;
        const double inside = x[0] * x[0] + x[1] * x[1] < 3.36 ? 1 : -1;
        if (i % 4 > 0) x[X] = copysign(x[X], inside * x[0]);
    }
    for (size_t i = 0; i < N; i++) /* x of a row with y of the next */
        for (size_t j = 0; j < D; j++)
            b.x[0][i * D + j] = b.x[1][(j < X ? i : (i + 1) % N) * D + j];
    const double found = left_over(&b, X);
    if (!(found > 0.01)) print_error("%g nats\n", found);
    assert_true(found > 0.01);
    for (size_t i = 0; i < N; i++) b.x[1][i * D + X] = b.x[1][(i + 7) % N * D + X + 1];
    assert_true(left_over(&b, X) == 0);
    both_free(&b);
}

static void what_is_alike_has_nothing_left(void **state) {
    (void)state;
    both b = draw(0);
    assert_true(left_over(&b, 0) == 0);
    both_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_that_is_missing_is_found),
        cmocka_unit_test(what_turns_with_the_distance_is_found),
        cmocka_unit_test(what_is_alike_has_nothing_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
