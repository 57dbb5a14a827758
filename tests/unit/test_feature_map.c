/* Facts about features: what estimators see instead of columns. */
#include "failing_alloc.h"
#include "samples.h"

#include "base/numerics.h"
#include "ratio/feature_map.h"

enum { N = 2000 };

static n2_features *learn(n2ce_ctx *ctx, const n2_table *a, const n2_table *b, const size_t *levels,
                          n2_scaling scaling) {
    n2_features *f;
    assert_int_equal(n2_features_new(ctx, a, b, levels, scaling, &f), N2CE_OK);
    return f;
}

/* Features of one column on either side; b may be NULL. */
static n2_features *learn_column(n2ce_ctx *ctx, const double *a, size_t n_a, const double *b,
                                 size_t n_b, n2_scaling scaling) {
    n2_table *num = new_table(ctx, a, n_a, 1), *den = b ? new_table(ctx, b, n_b, 1) : NULL;
    n2_features *f = learn(ctx, num, den, NULL, scaling);
    n2_table_free(num);
    n2_table_free(den);
    return f;
}

/* ---- standardised ---- */

/* Mean 0 and variance 1 of the mixture in which both samples weigh the same, whatever
 * their sizes. */
static void columns_are_standardised(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double *a = normals(N, 100, 3, 1), *b = normals(N / 10, 110, 1, 2);
    n2_features *f = learn_column(ctx, a, N, b, N / 10, N2_SCALING_LINEAR);
    assert_int_equal(f->width, 1);
    assert_int_equal(f->column[0].kind, N2_FEATURE_LINEAR);
    n2_features_apply(f, a, N, a);
    n2_features_apply(f, b, N / 10, b);
    const double ma = mean_of(a, N), mb = mean_of(b, N / 10);
    assert_close(ma + mb, 0, 0, 1e-12);
    assert_close(0.5 * (variance_of(a, N) + variance_of(b, N / 10)) + 0.25 * (ma - mb) * (ma - mb),
                 1, 1e-12, 0);
    n2_features_free(f);
    free(a);
    free(b);
    n2ce_ctx_free(ctx);
}

/* Neither units nor origins matter, from 1e-30 to 1e30. */
static void units_do_not_matter(void **state) {
    (void)state;
    static const double units[] = {1e-30, 3, 1e30};
    n2ce_ctx *ctx = new_ctx(1);
    double *x = normals(N, 0, 1, 1), *y = new_doubles(N), *f = new_doubles(N);
    n2_features *plain = learn_column(ctx, x, N, NULL, 0, N2_SCALING_AUTO);
    n2_features_apply(plain, x, N, f);
    for (size_t k = 0; k < COUNT_OF(units); k++) {
        for (size_t i = 0; i < N; i++) y[i] = units[k] * (x[i] + 5);
        n2_features *scaled = learn_column(ctx, y, N, NULL, 0, N2_SCALING_AUTO);
        n2_features_apply(scaled, y, N, y);
        for (size_t i = 0; i < N; i++) assert_close(y[i], f[i], 1e-9, 1e-9);
        n2_features_free(scaled);
    }
    n2_features_free(plain);
    free(x);
    free(y);
    free(f);
    n2ce_ctx_free(ctx);
}

/* ---- normal margins ---- */

/* Whatever the column was, its feature is nearly a standard normal. */
static void mapped_columns_are_nearly_normal(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double *u = uniforms(N, 3);
    for (size_t i = 0; i < N; i++) u[i] = -log(u[i]); /* exponential: skewness 2 */
    n2_features *f = learn_column(ctx, u, N, NULL, 0, N2_SCALING_NORMAL);
    assert_int_equal(f->column[0].kind, N2_FEATURE_NORMAL);
    n2_features_apply(f, u, N, u);
    double third = 0, fourth = 0;
    for (size_t i = 0; i < N; i++) {
        third += u[i] * u[i] * u[i] / N;
        fourth += u[i] * u[i] * u[i] * u[i] / N;
    }
    assert_close(mean_of(u, N), 0, 0, 1e-9);
    assert_close(variance_of(u, N), 1, 1e-9, 0);
    assert_close(third, 0, 0, 0.1);
    assert_close(fourth, 3, 0.1, 0);
    n2_features_free(f);
    free(u);
    n2ce_ctx_free(ctx);
}

static double cube(double x) { return x * x * x; }
static double identity(double x) { return x; }

/* A monotone map of the column hardly changes its feature, but in the outermost tails. */
static void monotone_maps_do_not_matter(void **state) {
    (void)state;
    static double (*const maps[])(double) = {identity, exp, sinh, cube};
    n2ce_ctx *ctx = new_ctx(1);
    double *x = normals(N, 0, 1, 4), *first = new_doubles(N), *y = new_doubles(N);
    for (size_t k = 0; k < COUNT_OF(maps); k++) {
        for (size_t i = 0; i < N; i++) y[i] = maps[k](x[i]);
        n2_features *f = learn_column(ctx, y, N, NULL, 0, N2_SCALING_NORMAL);
        assert_int_equal(f->column[0].kind, N2_FEATURE_NORMAL);
        n2_features_apply(f, y, N, y);
        for (size_t i = 0; i < N; i++) {
            if (k == 0) first[i] = y[i];
            assert_close(y[i], first[i], 0, fabs(x[i]) < 2 ? 0.05 : 0.2);
        }
        n2_features_free(f);
    }
    free(x);
    free(first);
    free(y);
    n2ce_ctx_free(ctx);
}

/* The map goes up everywhere, beyond the sample too, so it can be undone. */
static void maps_are_strictly_increasing(void **state) {
    (void)state;
    enum { POINTS = 4001 };
    n2ce_ctx *ctx = new_ctx(1);
    double *x = normals(N, 0, 1, 5), grid[POINTS], out[POINTS];
    for (size_t i = 0; i < N; i++) x[i] = cube(x[i]);
    n2_features *f = learn_column(ctx, x, N, NULL, 0, N2_SCALING_NORMAL);
    for (size_t i = 0; i < POINTS; i++) grid[i] = -100 + 0.05 * (double)i;
    n2_features_apply(f, grid, POINTS, out);
    for (size_t i = 1; i < POINTS; i++) assert_true(out[i] > out[i - 1]);
    n2_features_free(f);
    free(x);
    n2ce_ctx_free(ctx);
}

/* Student's t with 2 degrees of freedom, by its quantiles. */
static double *heavy(size_t n, uint32_t stream) {
    double *u = uniforms(n, stream);
    for (size_t i = 0; i < n; i++) u[i] = (2 * u[i] - 1) / sqrt(2 * u[i] * (1 - u[i]) + 1e-12);
    return u;
}

/* Left to itself it maps what is far from normal on both sides, and only that. */
static void heavy_tails_are_mapped_and_normals_are_not(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double *t = heavy(N, 6), *s = heavy(N, 7), *z = normals(N, 0, 1, 8), *w = normals(N, 1, 2, 9);
    n2_features *tails = learn_column(ctx, t, N, s, N, N2_SCALING_AUTO);
    n2_features *plain = learn_column(ctx, z, N, w, N, N2_SCALING_AUTO);
    n2_features *linear = learn_column(ctx, t, N, s, N, N2_SCALING_LINEAR);
    assert_int_equal(tails->column[0].kind, N2_FEATURE_NORMAL);
    assert_int_equal(plain->column[0].kind, N2_FEATURE_LINEAR);
    assert_int_equal(linear->column[0].kind, N2_FEATURE_LINEAR);
    n2_features_free(tails);
    n2_features_free(plain);
    n2_features_free(linear);
    free(t);
    free(s);
    free(z);
    free(w);
    n2ce_ctx_free(ctx);
}

/* Two normals far apart have two peaks together, but each is normal: mapping the mixture
 * would spoil both. */
static void two_normals_far_apart_are_not_mapped(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double *a = normals(N, -10, 1, 10), *b = normals(N, 10, 1, 11);
    n2_features *f = learn_column(ctx, a, N, b, N, N2_SCALING_AUTO);
    assert_int_equal(f->column[0].kind, N2_FEATURE_LINEAR);
    n2_features_free(f);
    free(a);
    free(b);
    n2ce_ctx_free(ctx);
}

/* One value of 1e30 among normals: with the map it is one row, without it is all rows. */
static void one_huge_value_is_mapped(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double *x = normals(N, 0, 1, 12);
    x[17] = 1e30;
    n2_features *f = learn_column(ctx, x, N, NULL, 0, N2_SCALING_AUTO);
    assert_int_equal(f->column[0].kind, N2_FEATURE_NORMAL);
    n2_features_apply(f, x, N, x);
    assert_true(x[17] > 3 && x[17] < 5);
    assert_true(variance_of(x, 17) > 0.3);
    n2_features_free(f);
    free(x);
    n2ce_ctx_free(ctx);
}

/* It does not matter which row it is in, and whether the map has seen that row: beyond the knots
 * the map levels off. */
static void a_huge_value_is_the_largest_and_no_more(void **state) {
    (void)state;
    enum { ROWS = 120, OTHERS = 100 };
    n2ce_ctx *ctx = new_ctx(1);
    for (size_t at = 0; at < ROWS; at++) {
        double *x = normals(ROWS, 0, 1, 5), *y = normals(OTHERS, 0, 1, 6), out[ROWS];
        const double sign = at % 2 ? 1 : -1;
        x[at] = sign * 1e30;
        n2_features *f = learn_column(ctx, x, ROWS, y, OTHERS, N2_SCALING_AUTO);
        assert_int_equal(f->column[0].kind, N2_FEATURE_NORMAL);
        n2_features_apply(f, x, ROWS, out);
        for (size_t i = 0; i < ROWS; i++) assert_true(fabs(out[i]) < 5);
        for (size_t i = 0; i < ROWS; i++) assert_true(sign * out[i] <= sign * out[at]);
        n2_features_free(f);
        free(x);
        free(y);
    }
    n2ce_ctx_free(ctx);
}

/* Few rows, or few distinct values, have no margins to speak of: standardised, also if
 * asked otherwise. */
static void few_rows_or_values_are_not_mapped(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double *x = heavy(N, 13);
    n2_features *few = learn_column(ctx, x, 30, NULL, 0, N2_SCALING_NORMAL);
    assert_int_equal(few->column[0].kind, N2_FEATURE_LINEAR);
    for (size_t i = 0; i < N; i++) x[i] = (double)(i % 5);
    n2_features *counts = learn_column(ctx, x, N, NULL, 0, N2_SCALING_NORMAL);
    assert_int_equal(counts->column[0].kind, N2_FEATURE_LINEAR);
    n2_features_free(few);
    n2_features_free(counts);
    free(x);
    n2ce_ctx_free(ctx);
}

/* ---- levels and constants ---- */

/* Columns: a number, a constant, levels 0 to 2. */
static n2_table *mixed_table(n2ce_ctx *ctx, n2_levels *levels, double shift) {
    double x[12 * 3];
    for (size_t i = 0; i < 12; i++) {
        x[3 * i] = shift + (double)i;
        x[3 * i + 1] = 7;
        x[3 * i + 2] = (double)(i % 3);
    }
    const n2ce_matrix m = matrix(x, 12, 3);
    const n2_table_options o = {.categorical = "2", .levels = levels};
    n2_table *t;
    assert_int_equal(n2_table_of_matrix(ctx, &m, "test", &o, &t), N2CE_OK);
    return t;
}

/* Levels become columns of 0 and 1, all but the first; a constant becomes nothing. */
static void levels_are_switches_and_constants_are_left_out(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_levels *texts;
    assert_int_equal(n2_levels_new(ctx, &texts), N2CE_OK);
    n2_table *a = mixed_table(ctx, texts, 0), *b = mixed_table(ctx, texts, 4);
    const size_t levels[] = {0, 0, 3};
    n2_features *f = learn(ctx, a, b, levels, N2_SCALING_AUTO);
    assert_int_equal(f->cols, 3);
    assert_int_equal(f->width, 3);
    assert_int_equal(n2_features_width(f, 0), 0);
    assert_int_equal(n2_features_width(f, 1), 1);
    assert_int_equal(n2_features_width(f, 2), 1);
    assert_int_equal(f->column[1].kind, N2_FEATURE_CONSTANT);
    double out[12 * 3];
    n2_features_apply(f, a->x, 12, out);
    for (size_t i = 0; i < 12; i++) {
        assert_close(out[3 * i + 1], i % 3 == 1, 0, 0);
        assert_close(out[3 * i + 2], i % 3 == 2, 0, 0);
    }
    n2_features_free(f);
    n2_table_free(a);
    n2_table_free(b);
    n2_levels_free(texts);
    n2ce_ctx_free(ctx);
}

/* What is constant in one sample but not in the other is not left out. */
static void one_sided_constants_stay(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double *x = normals(50, 0, 1, 14), same[50], other[50];
    for (size_t i = 0; i < 50; i++) {
        same[i] = 3;
        other[i] = 4;
    }
    n2_features *f = learn_column(ctx, same, 50, x, 50, N2_SCALING_AUTO);
    n2_features *g = learn_column(ctx, same, 50, other, 50, N2_SCALING_AUTO);
    n2_features *h = learn_column(ctx, same, 50, same, 50, N2_SCALING_AUTO);
    assert_int_equal(f->width, 1);
    assert_int_equal(g->width, 1);
    assert_int_equal(h->width, 0);
    n2_features_free(f);
    n2_features_free(g);
    n2_features_free(h);
    free(x);
    n2ce_ctx_free(ctx);
}

/* ---- many columns ---- */

static void assert_same_feature(const n2_feature *f, const n2_feature *g) {
    assert_int_equal(f->kind, g->kind);
    assert_int_equal(f->n_knots, g->n_knots);
    assert_close(f->mean, g->mean, 0, 0);
    assert_close(f->scale, g->scale, 0, 0);
    for (size_t k = 0; k < f->n_knots; k++) {
        assert_close(f->knot[k], g->knot[k], 0, 0);
        assert_close(f->normal[k], g->normal[k], 0, 0);
    }
}

/* Column c of rows x cols numbers. */
static double *column(const double *x, size_t rows, size_t cols, size_t c) {
    double *out = new_doubles(rows);
    for (size_t i = 0; i < rows; i++) out[i] = x[i * cols + c];
    return out;
}

/* Every column is learned as if it were alone, to the last bit. */
static void columns_do_not_depend_on_their_neighbours(void **state) {
    (void)state;
    enum { COLS = 83, ROWS = 300, OTHERS = 431 };
    n2ce_ctx *ctx = new_ctx(3);
    double *x = normals(ROWS * COLS, 1, 2, 16), *y = heavy(OTHERS * COLS, 17);
    for (size_t i = 0; i < ROWS * COLS; i++) x[i] = i % 3 ? x[i] : cube(x[i]);
    for (size_t i = 0; i < ROWS; i++) x[i * COLS + 40] = 7;
    n2_table *a = new_table(ctx, x, ROWS, COLS), *b = new_table(ctx, y, OTHERS, COLS);
    n2_features *one = learn(ctx, a, NULL, NULL, N2_SCALING_AUTO);
    n2_features *two = learn(ctx, a, b, NULL, N2_SCALING_AUTO);
    for (size_t c = 0; c < COLS; c++) {
        double *u = column(x, ROWS, COLS, c), *v = column(y, OTHERS, COLS, c);
        n2_features *f = learn_column(ctx, u, ROWS, NULL, 0, N2_SCALING_AUTO);
        n2_features *g = learn_column(ctx, u, ROWS, v, OTHERS, N2_SCALING_AUTO);
        assert_same_feature(&one->column[c], &f->column[0]);
        assert_same_feature(&two->column[c], &g->column[0]);
        n2_features_free(f);
        n2_features_free(g);
        free(u);
        free(v);
    }
    n2_features_free(one);
    n2_features_free(two);
    n2_table_free(a);
    n2_table_free(b);
    free(x);
    free(y);
    n2ce_ctx_free(ctx);
}

/* Values that differ in their last digits only, but for a few that are far away. */
static void knots_are_quantiles_of_values_close_together(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double *x = normals(N, 0, 1, 18);
    for (size_t i = 0; i < N; i++) x[i] = 1e6 + 1e-6 * x[i];
    x[3] = 1e30;
    x[4] = -1e30;
    n2_features *f = learn_column(ctx, x, N, NULL, 0, N2_SCALING_NORMAL);
    const n2_feature *g = &f->column[0];
    assert_int_equal(g->kind, N2_FEATURE_NORMAL);
    for (size_t k = 0; k < g->n_knots; k++) {
        size_t below = 0;
        for (size_t i = 0; i < N; i++) below += x[i] <= g->knot[k];
        assert_close((double)below, N * n2_normal_cdf(g->normal[k]), 0, 3); /* some are equal */
    }
    n2_features_free(f);
    free(x);
    n2ce_ctx_free(ctx);
}

/* ---- memory ---- */

static void every_failed_allocation_is_an_error(void **state) {
    (void)state;
    double *x = heavy(400, 15);
    n2ce_status status = N2CE_ENOMEM;
    n2ce_ctx *plain = new_ctx(1);
    n2_table *t = new_table(plain, x, 200, 2);
    size_t n = 1; /* 0 is the context's own */
    for (; status != N2CE_OK; n++) {
        failing_alloc memory = failing_alloc_new(n, false);
        const n2ce_ctx_options options = failing_alloc_options(&memory, 1);
        n2ce_ctx *ctx;
        n2_features *f = (n2_features *)1;
        assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
        status = n2_features_new(ctx, t, t, NULL, N2_SCALING_NORMAL, &f);
        assert_int_equal(status, memory.calls > n ? N2CE_ENOMEM : N2CE_OK);
        assert_true((status == N2CE_OK) == (f != NULL));
        n2_features_free(f);
        n2ce_ctx_free(ctx);
        assert_int_equal(memory.live, 0);
    }
    assert_true(n > 5);
    n2_table_free(t);
    n2ce_ctx_free(plain);
    free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_standardised),
        cmocka_unit_test(units_do_not_matter),
        cmocka_unit_test(mapped_columns_are_nearly_normal),
        cmocka_unit_test(monotone_maps_do_not_matter),
        cmocka_unit_test(maps_are_strictly_increasing),
        cmocka_unit_test(heavy_tails_are_mapped_and_normals_are_not),
        cmocka_unit_test(two_normals_far_apart_are_not_mapped),
        cmocka_unit_test(one_huge_value_is_mapped),
        cmocka_unit_test(a_huge_value_is_the_largest_and_no_more),
        cmocka_unit_test(few_rows_or_values_are_not_mapped),
        cmocka_unit_test(levels_are_switches_and_constants_are_left_out),
        cmocka_unit_test(one_sided_constants_stay),
        cmocka_unit_test(columns_do_not_depend_on_their_neighbours),
        cmocka_unit_test(knots_are_quantiles_of_values_close_together),
        cmocka_unit_test(every_failed_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
