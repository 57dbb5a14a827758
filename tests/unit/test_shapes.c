/* Facts about functions of columns, and about which columns have a say. */
#include "samples.h"

#include "base/numerics.h"
#include "base/random.h"
#include "ratio/screen.h"
#include "ratio/shapes_file.h"

#include <stdio.h>

enum { N = 1000 };

/* Two positive columns, lognormal; values of the second are whole numbers. */
static void draw_rows(double *x, size_t n, uint32_t seed) {
    double *z = normals(2 * n, 0, 1, seed);
    for (size_t i = 0; i < n; i++) {
        x[2 * i] = exp(z[2 * i]);
        x[2 * i + 1] = floor(fabs(4 * z[2 * i + 1]));
    }
    free(z);
}

typedef struct made {
    n2_features *features;
    double rows[2][2 * N]; /* features of den and num */
    double x[2][2 * N];
    n2_shapes *shapes;
} made;

static void make(n2ce_ctx *ctx, size_t dx, made *m) {
    for (uint32_t side = 0; side < 2; side++) draw_rows(m->x[side], N, side + 1);
    n2_table *num = new_table(ctx, m->x[1], N, 2), *den = new_table(ctx, m->x[0], N, 2);
    assert_int_equal(n2_features_new(ctx, num, den, NULL, N2_SCALING_AUTO, &m->features), N2CE_OK);
    for (size_t side = 0; side < 2; side++)
        assert_int_equal(n2_features_apply(m->features, m->x[side], N, m->rows[side]), N2CE_OK);
    assert_int_equal(
        n2_shapes_new(ctx, m->features, m->rows[1], N, m->rows[0], dx ? 0 : N, dx, &m->shapes),
        N2CE_OK);
    assert_non_null(m->shapes);
    n2_table_free(num);
    n2_table_free(den);
}

static void unmake(made *m) {
    n2_shapes_free(m->shapes);
    n2_features_free(m->features);
}

/* There and back, within the sample and, less exactly, beyond it. */
static void features_are_turned_back(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    static made m;
    make(ctx, 0, &m);
    const n2_feature *f = &m.features->column[0];
    assert_int_equal(f->kind, N2_FEATURE_NORMAL);
    for (size_t i = 0; i < N; i++) {
        const double x = m.x[0][2 * i];
        assert_true(fabs(n2_feature_back(f, m.rows[0][2 * i]) - x) < 1e-9 * (1 + x));
    }
    const double far[2] = {60, 1};
    double z[2];
    assert_int_equal(n2_features_apply(m.features, far, 1, z), N2CE_OK);
    assert_true(fabs(n2_feature_back(f, z[0]) - 60) < 1e-6);
    unmake(&m);
    n2ce_ctx_free(ctx);
}

/* Kinds are found, and functions are standardised; ln u is linear in ln x. */
static void columns_have_functions_of_their_kind(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    static made m;
    make(ctx, 0, &m);
    assert_int_equal(m.shapes->column[0].kind, N2_SHAPE_POSITIVE);
    assert_int_equal(m.shapes->column[1].kind, N2_SHAPE_COUNT);
    assert_int_equal(m.shapes->n, 8);
    double sum[8] = {0}, square[8] = {0}, h[8], first[8], second[8];
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < N; i++) {
            n2_shapes_at(m.shapes, m.rows[side] + 2 * i, h);
            for (size_t k = 0; k < 8; k++) {
                sum[k] += h[k] / (2 * N);
                square[k] += h[k] * h[k] / (2 * N);
            }
        }
    for (size_t k = 0; k < 8; k++) {
        assert_true(fabs(sum[k]) < 1e-9);
        assert_true(fabs(square[k] - 1) < 1e-9);
    }
    n2_shapes_at(m.shapes, m.rows[0], first);
    n2_shapes_at(m.shapes, m.rows[0] + 2, second);
    const double rise = (second[1] - first[1]) / (log(m.x[0][2]) - log(m.x[0][0]));
    assert_true(fabs(rise * m.shapes->scale[1] - 1) < 1e-6);
    unmake(&m);
    n2ce_ctx_free(ctx);
}

/* Of x and y there are products, too; what is read back is the same. */
static void functions_are_read_back(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    static made m;
    n2_shapes *again;
    n2_st_file *file;
    double h[2][24];
    make(ctx, 1, &m);
    assert_int_equal(m.shapes->n, 4 + 4 + 16);
    n2_bundle b = n2_bundle_new(ctx);
    n2_shapes_put(&b, m.shapes);
    assert_int_equal(n2_bundle_write(&b, "shapes test", "shapes_test.safetensors", true), N2CE_OK);
    n2_bundle_free(&b);
    assert_int_equal(n2_st_open(ctx, "shapes_test.safetensors", &file), N2CE_OK);
    assert_int_equal(n2_shapes_take(ctx, file, m.features, 1, &again), N2CE_OK);
    n2_shapes_at(m.shapes, m.rows[0], h[0]);
    n2_shapes_at(again, m.rows[0], h[1]);
    assert_memory_equal(h[0], h[1], sizeof h[0]);
    n2_st_close(file);
    remove("shapes_test.safetensors");
    n2_shapes_free(again);
    unmake(&m);
    n2ce_ctx_free(ctx);
}

enum { WALK = 5 };

/* Columns that add up steps: the numerator's go by Laplace's distribution, the denominator's are
 * normal with the same variance, and no column alone tells much. */
static void draw_walks(double *x, bool laplace, uint32_t seed) {
    double *z = normals(2 * N * WALK, 0, 1, seed);
    for (size_t i = 0; i < N * WALK; i++) {
        const double e = z[2 * i], sign = z[2 * i + 1] > 0 ? 1 : -1;
        const double tail = 0.5 * erfc(fabs(e) / sqrt(2.0)); /* uniform below a half */
        x[i] = laplace ? -sign * log(2 * tail) / sqrt(2.0) : e;
        if (i % WALK > 0) x[i] += 0.7 * x[i - 1];
    }
    free(z);
}

static void make_walks(n2ce_ctx *ctx, n2_features **features, double *const rows[2],
                       n2_shapes *shapes[2]) {
    for (uint32_t side = 0; side < 2; side++) draw_walks(rows[side], side, side + 20);
    n2_table *num = new_table(ctx, rows[1], N, WALK), *den = new_table(ctx, rows[0], N, WALK);
    assert_int_equal(n2_features_new(ctx, num, den, NULL, N2_SCALING_LINEAR, features), N2CE_OK);
    for (size_t side = 0; side < 2; side++)
        assert_int_equal(n2_features_apply(*features, rows[side], N, rows[side]), N2CE_OK);
    assert_int_equal(n2_shapes_new(ctx, *features, rows[1], N, rows[0], N, 0, &shapes[0]), N2CE_OK);
    assert_int_equal(n2_shapes_direct(shapes[0], *features, rows[1], N, rows[0], N, &shapes[1]),
                     N2CE_OK);
    n2_table_free(num);
    n2_table_free(den);
}

/* Each of the later steps is a direction: a column less a share of the one before it. */
static void directions_are_the_steps(void **state) {
    (void)state;
    static double den[N * WALK], num[N * WALK];
    double *const rows[2] = {den, num};
    n2ce_ctx *ctx = new_ctx(1);
    n2_features *features;
    n2_shapes *shapes[2];
    make_walks(ctx, &features, rows, shapes);
    assert_non_null(shapes[1]);
    assert_true(shapes[1]->directions >= 2);
    assert_int_equal(shapes[1]->n, shapes[0]->n + 4 * shapes[1]->directions);
    for (size_t k = 0; k < shapes[1]->directions; k++) {
        double largest = 0, all = 0;
        for (size_t j = 0; j < WALK; j++) {
            const double w = fabs(shapes[1]->turn[k * WALK + j]);
            all += w;
            if (j > 0) largest = fmax(largest, w + fabs(shapes[1]->turn[k * WALK + j - 1]));
        }
        assert_true(largest > 0.75 * all);
    }
    for (size_t k = 0; k < 2; k++) n2_shapes_free(shapes[k]);
    n2_features_free(features);
    n2ce_ctx_free(ctx);
}

static void directions_are_read_back(void **state) {
    (void)state;
    static double den[N * WALK], num[N * WALK], h[2][N2_MOST_SHAPES];
    double *const rows[2] = {den, num};
    n2ce_ctx *ctx = new_ctx(1);
    n2_features *features;
    n2_shapes *shapes[2], *again;
    n2_st_file *file;
    make_walks(ctx, &features, rows, shapes);
    n2_bundle b = n2_bundle_new(ctx);
    n2_shapes_put(&b, shapes[1]);
    assert_int_equal(n2_bundle_write(&b, "shapes test", "directions.safetensors", true), N2CE_OK);
    n2_bundle_free(&b);
    assert_int_equal(n2_st_open(ctx, "directions.safetensors", &file), N2CE_OK);
    assert_int_equal(n2_shapes_take(ctx, file, features, 0, &again), N2CE_OK);
    n2_shapes_at(shapes[1], num, h[0]);
    n2_shapes_at(again, num, h[1]);
    assert_memory_equal(h[0], h[1], shapes[1]->n * sizeof(double));
    n2_st_close(file);
    remove("directions.safetensors");
    n2_shapes_free(again);
    for (size_t k = 0; k < 2; k++) n2_shapes_free(shapes[k]);
    n2_features_free(features);
    n2ce_ctx_free(ctx);
}

enum { MANY = 12 };

/* The sign of one column is, in most of the numerator's rows, that of the product of two others. */
static void what_three_columns_say_together_is_found(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    double *x = normals(N * MANY, 0, 1, 11), *y = normals(N * MANY, 0, 1, 12);
    for (size_t i = 0; i < N; i++) {
        double *row = y + i * MANY;
        if (i % 4 > 0) row[9] = copysign(row[9], row[1] * row[6]);
    }
    const n2_smooth_rows rows = {{x, y}, {NULL, NULL}, {N, N}};
    bool active[MANY];
    size_t count;
    assert_int_equal(n2_screen_columns(ctx, &rows, MANY, 0, 8, active, &count), N2CE_OK);
    assert_int_equal(count, 3);
    assert_true(active[1] && active[6] && active[9]);
    free(x);
    free(y);
    n2ce_ctx_free(ctx);
}

/* y, the last column, is a product of the third and the eighth with noise. */
static void a_hidden_product_is_found(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    double *x = normals(N * MANY, 0, 1, 5), *pairs = calloc(N * MANY, sizeof *pairs);
    for (size_t i = 0; i < N; i++)
        x[i * MANY + MANY - 1] = x[i * MANY + 2] * x[i * MANY + 7] + 0.3 * x[i * MANY + MANY - 1];
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < MANY; j++)
            pairs[i * MANY + j] = x[(j + 1 == MANY ? (i + 1) % N : i) * MANY + j];
    const n2_smooth_rows rows = {{pairs, x}, {NULL, NULL}, {N, N}};
    bool active[MANY];
    size_t count;
    assert_int_equal(n2_screen_columns(ctx, &rows, MANY, MANY - 1, 8, active, &count), N2CE_OK);
    assert_int_equal(count, 3);
    assert_true(active[2] && active[7] && active[MANY - 1]);
    free(x);
    free(pairs);
    n2ce_ctx_free(ctx);
}

/* Of samples that do not differ nothing is found. */
static void noise_has_no_say(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    double *x = normals(N * MANY, 0, 1, 8), *y = normals(N * MANY, 0, 1, 9);
    const n2_smooth_rows rows = {{x, y}, {NULL, NULL}, {N, N}};
    bool active[MANY];
    size_t count;
    assert_int_equal(n2_screen_columns(ctx, &rows, MANY, 0, 8, active, &count), N2CE_OK);
    assert_int_equal(count, 0);
    for (size_t i = 0; i < N; i++) y[i * MANY + 4] *= 1.5;
    assert_int_equal(n2_screen_columns(ctx, &rows, MANY, 0, 8, active, &count), N2CE_OK);
    assert_int_equal(count, 1);
    assert_true(active[4]);
    free(x);
    free(y);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_are_turned_back),
        cmocka_unit_test(columns_have_functions_of_their_kind),
        cmocka_unit_test(functions_are_read_back),
        cmocka_unit_test(directions_are_the_steps),
        cmocka_unit_test(directions_are_read_back),
        cmocka_unit_test(a_hidden_product_is_found),
        cmocka_unit_test(what_three_columns_say_together_is_found),
        cmocka_unit_test(noise_has_no_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
