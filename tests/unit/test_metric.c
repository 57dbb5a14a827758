/* Facts about distances of sets: closed forms, numbers of NumPy, points by hand. */
#include "contexts.h"
#include "failing_alloc.h"

#include "metric/set_distance.h"

#include <math.h>
#include <string.h>

/* n rows of d numbers that look random: the same as in tools/make_metric_goldens.py. */
static void fill_points(float *x, size_t n, size_t d, size_t phase, float scale) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < d; k++)
            x[i * d + k] =
                scale * ((float)((i * i * 7 + i * k * 13 + k * k * 3 + phase) % 101) / 101.0f);
}

static n2_frechet distance_of(n2ce_ctx *ctx, size_t d, double *ma, double *a, double *mb,
                              double *b) {
    const n2_gaussian_fit one = {d, ma, a}, other = {d, mb, b};
    n2_frechet f, back;
    assert_int_equal(n2_frechet_distance(ctx, &one, &other, &f), N2CE_OK);
    assert_int_equal(n2_frechet_distance(ctx, &other, &one, &back), N2CE_OK);
    assert_true(fabs(f.distance - back.distance) <= 1e-9 * (1 + f.distance));
    return f;
}

static void frechet_distances_have_closed_forms(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double zero[2] = {0, 0}, moved[2] = {3, -4};
    double a[4] = {4, 0, 0, 25}, b[4] = {1, 0, 0, 9};
    assert_true(fabs(distance_of(ctx, 2, zero, a, moved, b).distance - (25 + 1 + 4)) < 1e-12);
    assert_true(distance_of(ctx, 2, zero, a, zero, a).distance < 1e-12);
    /* 2 x 2: tr (A^1/2 B A^1/2)^1/2 = sqrt(tr AB + 2 sqrt(det A det B)) */
    double c[4] = {2, 1, 1, 3}, e[4] = {5, -2, -2, 1};
    const double product = 2 * 5 - 2 - 2 + 3, root = sqrt(product + 2 * sqrt(5.0 * 1));
    assert_true(fabs(distance_of(ctx, 2, zero, c, zero, e).distance - (5 + 6 - 2 * root)) < 1e-12);
    n2ce_ctx_free(ctx);
}

static void covariances_need_not_have_full_rank(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double zero[2] = {0, 0}, a[4] = {4, 0, 0, 0}, b[4] = {1, 0, 0, 9}, none[4] = {0};
    const n2_frechet f = distance_of(ctx, 2, zero, a, zero, b);
    assert_true(fabs(f.distance - 10) < 1e-12);
    assert_int_equal(f.rank_a, 1);
    assert_int_equal(f.rank_b, 2);
    const n2_frechet point = distance_of(ctx, 2, zero, none, zero, b);
    assert_true(fabs(point.distance - 10) < 1e-12);
    assert_int_equal(point.rank_a, 0);
    double bad[4] = {(double)NAN, 0, 0, 1};
    const n2_gaussian_fit one = {2, zero, bad}, other = {2, zero, b};
    n2_frechet out;
    assert_int_equal(n2_frechet_distance(ctx, &one, &other, &out), N2CE_EDATA);
    n2ce_ctx_free(ctx);
}

static n2_frechet distance_of_rows(n2ce_ctx *ctx, n2_feature_rows a, n2_feature_rows b) {
    n2_gaussian_fit of_a, of_b;
    n2_frechet f;
    assert_int_equal(n2_gaussian_fit_rows(ctx, &a, &of_a), N2CE_OK);
    assert_int_equal(n2_gaussian_fit_rows(ctx, &b, &of_b), N2CE_OK);
    assert_int_equal(n2_frechet_distance(ctx, &of_a, &of_b, &f), N2CE_OK);
    n2_gaussian_fit_free(ctx, &of_a);
    n2_gaussian_fit_free(ctx, &of_b);
    return f;
}

static void frechet_distances_of_rows_are_numpys(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    float a[200], b[200];
    fill_points(a, 40, 5, 0, 1);
    fill_points(b, 30, 5, 17, 1.25f);
    n2_frechet f = distance_of_rows(ctx, (n2_feature_rows){40, 5, a}, (n2_feature_rows){30, 5, b});
    assert_true(fabs(f.distance - 0.167288956236244) < 1e-6);
    /* fewer rows than columns */
    fill_points(a, 4, 9, 0, 1);
    fill_points(b, 6, 9, 17, 1);
    f = distance_of_rows(ctx, (n2_feature_rows){4, 9, a}, (n2_feature_rows){6, 9, b});
    assert_true(fabs(f.distance - 1.06296080476994) < 1e-6);
    assert_int_equal(f.rank_a, 3);
    assert_int_equal(f.rank_b, 5);
    n2ce_ctx_free(ctx);
}

/* 1,100 rows of 13 numbers about 1e4, given in pieces, against sums over deviations. */
static void moments_of_rows_that_pass_by(void **state) {
    (void)state;
    enum { N = 1100, D = 13 };
    static float x[N * D];
    n2ce_ctx *ctx = new_ctx(3);
    double mean[D], covariance[D * D], want[D] = {0};
    fill_points(x, N, D, 3, 1);
    for (size_t i = 0; i < N * D; i++) x[i] += 1e4f;
    n2_running_moments *m;
    assert_int_equal(n2_running_moments_new(ctx, D, &m), N2CE_OK);
    assert_int_equal(n2_running_moments_add(m, x, 1), N2CE_OK);
    assert_int_equal(n2_running_moments_add(m, x + D, 700), N2CE_OK);
    assert_int_equal(n2_running_moments_add(m, x + 701 * D, N - 701), N2CE_OK);
    n2_running_moments_get(m, mean, covariance);
    for (size_t i = 0; i < N * D; i++) want[i % D] += (double)x[i] / N;
    for (size_t i = 0; i < D; i++) {
        assert_true(fabs(mean[i] - want[i]) < 1e-8);
        for (size_t j = 0; j < D; j++) {
            double sum = 0;
            for (size_t r = 0; r < N; r++)
                sum += ((double)x[r * D + i] - want[i]) * ((double)x[r * D + j] - want[j]);
            assert_true(fabs(covariance[i * D + j] - sum / (N - 1)) < 1e-9);
        }
    }
    x[5] = NAN;
    assert_int_equal(n2_running_moments_add(m, x, 1), N2CE_EDATA);
    n2_running_moments_free(m);
    n2ce_ctx_free(ctx);
}

static void kid_is_unbiased(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    float a[200], b[200];
    n2_kid kid;
    fill_points(a, 40, 5, 0, 1);
    fill_points(b, 30, 5, 17, 1.25f);
    const n2_feature_rows of_a = {40, 5, a}, of_b = {30, 5, b};
    assert_int_equal(n2_kid_distance(ctx, &of_a, &of_b, 1, &kid), N2CE_OK);
    assert_int_equal(kid.subset, 15);
    /* over all pairs of rows NumPy has this: what subsets give in the mean */
    assert_true(fabs(kid.mean - 0.133865627066) < 4 * kid.spread / sqrt((double)kid.subsets));
    assert_true(kid.spread > 0 && kid.spread < 0.1);
    /* rows that are all the same: k(u,u) + k(v,v) - 2 k(u,v), u = (1,1), v = (2,0) */
    for (size_t i = 0; i < 8; i++) {
        a[2 * i] = a[2 * i + 1] = 1;
        b[2 * i] = 2;
        b[2 * i + 1] = 0;
    }
    const n2_feature_rows u = {8, 2, a}, v = {8, 2, b};
    assert_int_equal(n2_kid_distance(ctx, &u, &v, 1, &kid), N2CE_OK);
    assert_true(fabs(kid.mean - (8 + 27 - 2 * 8)) < 1e-12);
    assert_true(kid.spread < 1e-12);
    const n2_feature_rows few = {3, 2, a};
    assert_int_equal(n2_kid_distance(ctx, &u, &few, 1, &kid), N2CE_EINVAL);
    n2ce_ctx_free(ctx);
}

static void precision_and_recall_by_hand(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    const float real[] = {0, 1, 2, 3}, made[] = {0.5f, 3.9f, 10, 10.5f};
    const n2_feature_rows r = {4, 1, real}, m = {4, 1, made};
    n2_precision_recall out;
    assert_int_equal(n2_precision_and_recall(ctx, &r, &m, 1, &out), N2CE_OK);
    assert_true(out.precision == 0.5 && out.recall == 1); /* balls of 1; of 3.4, 3.4, .5, .5 */
    assert_int_equal(n2_precision_and_recall(ctx, &m, &r, 1, &out), N2CE_OK);
    assert_true(out.precision == 1 && out.recall == 0.5);
    assert_int_equal(n2_precision_and_recall(ctx, &r, &m, 4, &out), N2CE_EINVAL);
    assert_int_equal(n2_precision_and_recall(ctx, &r, &m, 0, &out), N2CE_EINVAL);
    /* copies are at distance 0 of one another, and inside balls of radius 0 */
    const float twice[] = {0.1f, 0.7f, 0.1f, 0.7f}, other[] = {0.1f, 0.7f, 5, 5, 5, 6};
    const n2_feature_rows t = {2, 2, twice}, o = {3, 2, other};
    assert_int_equal(n2_precision_and_recall(ctx, &t, &o, 1, &out), N2CE_OK);
    assert_true(fabs(out.precision - 1.0 / 3) < 1e-15 && out.recall == 1);
    n2ce_ctx_free(ctx);
}

static void precision_and_recall_are_numpys(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    float a[200], b[200];
    fill_points(a, 40, 5, 0, 1);
    fill_points(b, 30, 5, 17, 1.25f);
    const n2_feature_rows r = {40, 5, a}, m = {30, 5, b};
    n2_precision_recall out;
    assert_int_equal(n2_precision_and_recall(ctx, &r, &m, 3, &out), N2CE_OK);
    assert_true(fabs(out.precision - 0.8) < 1e-12 && out.recall == 1);
    n2ce_ctx_free(ctx);
}

static void class_scores_count_classes(void **state) {
    (void)state;
    double sure[60 * 5] = {0}, same[60 * 5];
    for (size_t i = 0; i < 60; i++) sure[i * 5 + i % 5] = 1;
    for (size_t i = 0; i < 60 * 5; i++) same[i] = 0.2;
    n2_class_score s = n2_class_score_of(sure, 60, 5);
    assert_int_equal(s.splits, 6);
    assert_true(fabs(s.mean - 5) < 1e-12 && s.spread < 1e-12);
    s = n2_class_score_of(same, 60, 5);
    assert_true(fabs(s.mean - 1) < 1e-12);
    assert_int_equal(n2_class_score_of(sure, 9, 5).splits, 1);
}

static void any_number_of_threads_gives_the_same_bytes(void **state) {
    (void)state;
    enum { N = 300, D = 19 };
    static float a[N * D], b[N * D];
    n2_set_distance one[2] = {0}, many[2] = {0};
    for (int threads = 1; threads <= 7; threads += 3) {
        n2ce_ctx *ctx = new_ctx(threads);
        fill_points(a, N, D, 0, 1);
        fill_points(b, N, D, 40, 1.1f);
        const n2_feature_rows real = {N, D, a}, made = {N, D, b};
        n2_set_distance *out = threads == 1 ? one : many;
        assert_int_equal(n2_set_distance_of(ctx, &real, &made, 3, 5, &out[0]), N2CE_OK);
        assert_int_equal(n2_set_floor(ctx, a, N, D, 3, 5, &out[1]), N2CE_OK);
        if (threads > 1) assert_memory_equal(one, many, sizeof one);
        n2ce_ctx_free(ctx);
    }
    assert_true(one[1].frechet.distance < one[0].frechet.distance);
}

static n2ce_status whole_life(failing_alloc *memory) {
    const n2ce_ctx_options options = failing_alloc_options(memory, 2);
    float a[200], b[200];
    n2_set_distance out[2];
    n2ce_ctx *ctx;
    n2ce_status status = n2ce_ctx_new(&ctx, &options);
    if (status != N2CE_OK) return status;
    fill_points(a, 40, 5, 0, 1);
    fill_points(b, 40, 5, 17, 1);
    const n2_feature_rows real = {40, 5, a}, made = {40, 5, b};
    status = n2_set_distance_of(ctx, &real, &made, 3, 1, &out[0]);
    if (status == N2CE_OK) status = n2_set_floor(ctx, a, 40, 5, 3, 1, &out[1]);
    n2ce_ctx_free(ctx);
    return status;
}

static void running_out_of_memory_is_told(void **state) {
    (void)state;
    assert_true(live_without_memory(whole_life, 0) > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frechet_distances_have_closed_forms),
        cmocka_unit_test(covariances_need_not_have_full_rank),
        cmocka_unit_test(frechet_distances_of_rows_are_numpys),
        cmocka_unit_test(moments_of_rows_that_pass_by),
        cmocka_unit_test(kid_is_unbiased),
        cmocka_unit_test(precision_and_recall_by_hand),
        cmocka_unit_test(precision_and_recall_are_numpys),
        cmocka_unit_test(class_scores_count_classes),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bytes),
        cmocka_unit_test(running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
