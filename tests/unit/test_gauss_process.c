/* Facts about the Gaussian process of values. */
#include "base/random.h"
#include "contexts.h"
#include "optimize/gauss_process.h"

#include <math.h>

enum { ROWS = 120, COLS = 3, DRAWS = 8 };

/* A smooth function of the first two columns. */
static void make_rows(uint64_t seed, float *x, float *y) {
    n2_fill_uniform((n2_stream){seed, 1, 0}, 0, ROWS * COLS, x);
    for (size_t i = 0; i < ROWS; i++) {
        float *row = x + i * COLS;
        for (size_t c = 0; c < COLS; c++) row[c] = 2 * row[c] - 1;
        y[i] = sinf(2 * row[0]) + row[1] * row[1] - 0.3f;
    }
}

typedef struct learnt {
    n2ce_ctx *ctx;
    n2_gauss_process *p;
    float x[ROWS * COLS], y[ROWS];
} learnt;

static void learn(learnt *l) {
    l->ctx = new_ctx(2);
    make_rows(1, l->x, l->y);
    assert_int_equal(n2_gauss_process_fit(l->ctx, l->x, l->y, ROWS, COLS, NULL, &l->p), N2CE_OK);
    assert_int_equal(n2_gauss_process_draw(l->p, 1, DRAWS), N2CE_OK);
}

static void forget(learnt *l) {
    n2_gauss_process_free(l->p);
    n2ce_ctx_free(l->ctx);
}

static void it_learns_what_is_smooth(void **state) {
    (void)state;
    static learnt l;
    float x[ROWS * COLS], y[ROWS];
    double said[ROWS], error = 0;
    learn(&l);
    make_rows(2, x, y);
    assert_int_equal(n2_gauss_process_ask(l.p, x, ROWS, said, NULL), N2CE_OK);
    for (size_t i = 0; i < ROWS; i++) error += fabs(said[i] - (double)y[i]) / ROWS;
    assert_true(error < 0.05);
    forget(&l);
}

static double spread(const double *apart) {
    double square = 0;
    for (size_t e = 0; e < DRAWS; e++) square += apart[e] * apart[e] / DRAWS;
    return sqrt(square);
}

/* Draws go through what is known, and apart where nothing is; their mean is the process's. */
static void draws_know_what_is_known(void **state) {
    (void)state;
    static learnt l;
    const float far[COLS] = {6, -6, 6};
    double said[ROWS], apart[ROWS * DRAWS], near = 0, away[DRAWS];
    learn(&l);
    assert_int_equal(n2_gauss_process_ask(l.p, l.x, ROWS, said, apart), N2CE_OK);
    for (size_t i = 0; i < ROWS; i++) {
        double sum = 0;
        for (size_t e = 0; e < DRAWS; e++) sum += apart[i * DRAWS + e];
        assert_true(fabs(sum) < 1e-9);
        near += spread(apart + i * DRAWS) / ROWS;
    }
    assert_true(near > 0 && near < 0.1);
    assert_int_equal(n2_gauss_process_ask(l.p, far, 1, said, away), N2CE_OK);
    assert_true(spread(away) > 5 * near);
    forget(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_learns_what_is_smooth),
        cmocka_unit_test(draws_know_what_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
