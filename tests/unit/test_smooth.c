/* Facts about the smooth part of a log ratio, and about weighing parts. */
#include "contexts.h"

#include "base/numerics.h"
#include "base/random.h"
#include "ratio/blend.h"
#include "ratio/smooth.h"
#include "ratio/smooth_file.h"

#include <stdio.h>
#include <string.h>

enum { N = 400 };

/* Two columns, the second of which says nothing: the numerator's first is a mixture of N(-1.5,
 * .5^2) and N(1.5, .5^2), the denominator's is N(0, 1.6^2). */
typedef struct bumps {
    double x[2][2 * N], base[2][N];
} bumps;

static void draw_bumps(bumps *b, uint32_t stream) {
    float z[4 * N];
    n2_fill_normal((n2_stream){.seed = 3, .stream = stream}, 0, 4 * N, z);
    for (size_t i = 0; i < N; i++) {
        b->x[1][2 * i] = (i % 2 ? 1.5 : -1.5) + 0.5 * (double)z[i];
        b->x[0][2 * i] = 1.6 * (double)z[N + i];
        b->x[1][2 * i + 1] = (double)z[2 * N + i];
        b->x[0][2 * i + 1] = (double)z[3 * N + i];
        b->base[0][i] = b->base[1][i] = 0;
    }
}

static n2_smooth_rows rows_of(const bumps *b) {
    return (n2_smooth_rows){{b->x[0], b->x[1]}, {b->base[0], b->base[1]}, {N, N}};
}

static double true_log_ratio(double x) {
    const double a = (x - 1.5) / 0.5, b = (x + 1.5) / 0.5, c = x / 1.6;
    return log(0.5 * exp(-0.5 * a * a) + 0.5 * exp(-0.5 * b * b)) - log(0.5) + 0.5 * c * c +
           log(1.6);
}

static n2_smooth_path path_of(const double *scale, const bumps *train, const bumps *held) {
    return (n2_smooth_path){.d = 2,
                            .scale = scale,
                            .centres = 100,
                            .first = 4,
                            .n = 2,
                            .newton = 10,
                            .enough = 1e-3,
                            .train = rows_of(train),
                            .held = rows_of(held)};
}

static void a_mixture_is_found(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    static bumps train, held;
    const double scale[2] = {1.5, 0.05};
    draw_bumps(&train, 0);
    draw_bumps(&held, 1);
    n2_smooth_path path = path_of(scale, &train, &held);
    assert_int_equal(n2_smooth_paths(ctx, &path, 1, true), N2CE_OK);
    double f[N] = {0}, square = 0, truth[2][N];
    const double *const t[2] = {truth[0], truth[1]};
    assert_int_equal(n2_smooth_add(path.fit[1], held.x[1], N, f), N2CE_OK);
    for (size_t i = 0; i < N; i++) {
        for (size_t side = 0; side < 2; side++)
            truth[side][i] = true_log_ratio(held.x[side][2 * i]);
        square += (f[i] - truth[1][i]) * (f[i] - truth[1][i]) / N;
    }
    assert_true(sqrt(square) < 0.4);
    const double best = n2_smooth_loss(t, path.held.n);
    assert_true(path.loss[1] > best - 0.01 && path.loss[1] < best + 0.03);
    for (size_t i = 0; i < 2; i++) n2_smooth_free(path.fit[i]);
    n2ce_ctx_free(ctx);
}

static void a_column_without_a_say_gets_a_small_scale(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    static bumps half[2];
    double scale[2];
    n2_smooth_choice found = {.scale = scale};
    for (uint32_t k = 0; k < 2; k++) draw_bumps(&half[k], k);
    const n2_smooth_rows train[2] = {rows_of(&half[0]), rows_of(&half[1])};
    const n2_smooth_rows held[2] = {rows_of(&half[1]), rows_of(&half[0])};
    assert_int_equal(n2_smooth_search(ctx, 2, 0, train, held, &found), N2CE_OK);
    assert_true(scale[0] > 3 * scale[1]);
    assert_true(found.loss < 2 * log(2) - 0.1);
    n2ce_ctx_free(ctx);
}

/* Six columns, each of which tells a little, the same in all. */
enum { MANY = 6 };

typedef struct columns {
    double x[2][MANY * N], base[2][N];
} columns;

static void draw_columns(columns *c, uint32_t stream) {
    float z[3 * MANY * N];
    n2_fill_normal((n2_stream){.seed = 9, .stream = stream}, 0, 3 * MANY * N, z);
    for (size_t i = 0; i < MANY * N; i++) {
        c->x[0][i] = (double)z[i];
        c->x[1][i] = 0.7 * (double)z[MANY * N + i] + (z[2 * MANY * N + i] > 0 ? 0.7 : -0.7);
    }
    memset(c->base, 0, sizeof c->base);
}

static void what_single_columns_say_is_found(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    static columns half[2];
    n2_smooth_rows train[2];
    double scale[MANY];
    n2_smooth_choice found = {.scale = scale};
    for (uint32_t k = 0; k < 2; k++) {
        draw_columns(&half[k], k);
        train[k] = (n2_smooth_rows){
            {half[k].x[0], half[k].x[1]}, {half[k].base[0], half[k].base[1]}, {N, N}};
    }
    const n2_smooth_rows held[2] = {train[1], train[0]};
    assert_int_equal(n2_smooth_search(ctx, MANY, 0, train, held, &found), N2CE_OK);
    assert_true(found.singles.share > 0);
    n2ce_ctx_free(ctx);
}

/* Of x and y the kernel is a product of two means over columns. */
static void single_columns_are_read_back(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_smooth *s, *again;
    n2_st_file *file;
    const double x[3] = {0.1, -0.2, 0.4};
    double f[2] = {0, 0};
    assert_int_equal(n2_smooth_new(ctx, 3, 1, NULL, &s), N2CE_OK);
    s->scale[0] = s->scale[1] = s->scale[2] = s->weight[0] = 1;
    s->singles = (n2_smooth_singles){1, 2, 1};
    assert_int_equal(n2_smooth_add(s, x, 1, &f[0]), N2CE_OK);
    const double of_y = 0.5 / (1 + 2 * 0.04) + 0.5 / (1 + 2 * 0.16);
    assert_true(fabs(f[0] - of_y / (1 + 2 * 0.01)) < 1e-12);
    n2_bundle b = n2_bundle_new(ctx);
    assert_int_equal(n2_smooth_put(&b, s, 0), N2CE_OK);
    assert_int_equal(n2_bundle_write(&b, "smooth test", "smooth_test.safetensors", true), N2CE_OK);
    n2_bundle_free(&b);
    assert_int_equal(n2_st_open(ctx, "smooth_test.safetensors", &file), N2CE_OK);
    assert_int_equal(n2_smooth_take(ctx, file, 0, 3, NULL, &again), N2CE_OK);
    assert_int_equal(n2_smooth_add(again, x, 1, &f[1]), N2CE_OK);
    assert_true(f[0] == f[1]);
    n2_st_close(file);
    remove("smooth_test.safetensors");
    n2_smooth_free(s);
    n2_smooth_free(again);
    n2ce_ctx_free(ctx);
}

static void threads_do_not_matter(void **state) {
    (void)state;
    static bumps half[2];
    double scale[2][2], loss[2];
    for (uint32_t k = 0; k < 2; k++) draw_bumps(&half[k], k);
    const n2_smooth_rows train[2] = {rows_of(&half[0]), rows_of(&half[1])};
    const n2_smooth_rows held[2] = {rows_of(&half[1]), rows_of(&half[0])};
    for (size_t k = 0; k < 2; k++) {
        n2ce_ctx *ctx = new_ctx(k ? 3 : 1);
        n2_smooth_choice found = {.scale = scale[k]};
        assert_int_equal(n2_smooth_search(ctx, 2, 0, train, held, &found), N2CE_OK);
        loss[k] = found.loss;
        n2ce_ctx_free(ctx);
    }
    assert_memory_equal(scale[0], scale[1], sizeof scale[0]);
    assert_memory_equal(&loss[0], &loss[1], sizeof loss[0]);
}

/* Rows whose log ratio is known: the numerator is N(1, 1), the denominator N(0, 1), f = x - 1/2. */
typedef struct shifted {
    double right[2][N], bold[2][N], noise[2][N], none[2][N];
} shifted;

static n2_blend_rows draw_shifted(shifted *s) {
    float z[4 * N];
    n2_fill_normal((n2_stream){.seed = 5}, 0, 4 * N, z);
    n2_blend_rows rows = {.n = {N, N}, .independent = {N, N}};
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < N; i++) {
            s->right[side][i] = (double)z[side * N + i] + (double)side - 0.5;
            s->bold[side][i] = 3 * s->right[side][i];
            s->noise[side][i] = (double)z[(2 + side) * N + i];
            s->none[side][i] = 0;
        }
    return rows;
}

static void a_part_that_is_too_bold_is_shrunk(void **state) {
    (void)state;
    static shifted s;
    n2_blend_rows rows = draw_shifted(&s);
    for (size_t side = 0; side < 2; side++) {
        rows.part[side][0] = s.none[side];
        rows.part[side][1] = s.bold[side];
        rows.part[side][2] = s.noise[side];
    }
    const n2_blend none = {{1, 0, 0}, 0}, b = n2_blend_fit(&rows, false);
    assert_true(fabs(b.weight[1] - 1.0 / 3) < 0.06);
    assert_true(b.weight[2] >= 0 && b.weight[2] < 0.15);
    const n2_gain gain = n2_blend_gain(&rows, &none, &b);
    assert_true(gain.value > 2 * gain.error);
}

static void the_base_keeps_its_weight_unless_asked(void **state) {
    (void)state;
    static shifted s;
    n2_blend_rows rows = draw_shifted(&s);
    for (size_t side = 0; side < 2; side++) rows.part[side][0] = s.bold[side];
    assert_true(n2_blend_fit(&rows, false).weight[0] == 1);
    assert_true(fabs(n2_blend_fit(&rows, true).weight[0] - 1.0 / 3) < 0.06);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mixture_is_found),
        cmocka_unit_test(a_column_without_a_say_gets_a_small_scale),
        cmocka_unit_test(what_single_columns_say_is_found),
        cmocka_unit_test(single_columns_are_read_back),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(a_part_that_is_too_bold_is_shrunk),
        cmocka_unit_test(the_base_keeps_its_weight_unless_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
