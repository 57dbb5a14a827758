/* Explicit fits of codes: known distributions are found again. */
#include "contexts.h"

#include "base/random.h"
#include "lebm/prior_fit.h"

#include <stdlib.h>
#include <string.h>

enum { N = 6000, D = 3 };

/* Posteriors with means N(m, S), S = diag(4, 1, .25) with a correlation of 0.6 between the first
 * two, and variances 0.09: together N(m, S + 0.09 I). */
static void a_gaussian_has_the_moments_of_all_posteriors(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    static float codes[N * 2 * D], eps[N * D];
    n2_fill_normal((n2_stream){1, 9, 0}, 0, N * D, eps);
    for (size_t i = 0; i < N; i++) {
        const double a = (double)eps[i * D], b = (double)eps[i * D + 1];
        codes[i * 2 * D] = (float)(1 + 2 * a);
        codes[i * 2 * D + 1] = (float)(-2 + 0.6 * a + 0.8 * b);
        codes[i * 2 * D + 2] = 0.5f * eps[i * D + 2];
        for (size_t k = 0; k < D; k++) codes[i * 2 * D + D + k] = (float)log(0.09);
    }
    n2_code_mixture m;
    static double z[N * D];
    double mean[D] = {0}, square[D] = {0}, cross = 0;
    assert_int_equal(n2_code_gaussian_fit(ctx, codes, N, D, &m), N2CE_OK);
    assert_int_equal(n2_code_mixture_sample(ctx, &m, N, 3, z), N2CE_OK);
    for (size_t i = 0; i < N * D; i++) mean[i % D] += z[i] / N;
    for (size_t i = 0; i < N * D; i++) square[i % D] += pow(z[i] - mean[i % D], 2) / N;
    for (size_t i = 0; i < N; i++) cross += (z[i * D] - mean[0]) * (z[i * D + 1] - mean[1]) / N;
    const double means[] = {1, -2, 0}, squares[] = {4.09, 1.09, 0.34};
    for (size_t k = 0; k < D; k++) {
        assert_close(mean[k], means[k], 0, 0.1);
        assert_close(square[k], squares[k], 0.08, 0);
    }
    assert_close(cross, 1.2, 0.08, 0);
    /* E ln p / N(0, I) under p: KL = (tr S + |m|^2 - d - ln det S) / 2 */
    double nats;
    const double det = (4.09 * 1.09 - 1.44) * 0.34;
    assert_int_equal(n2_code_mixture_gain(ctx, &m, z, N, &nats), N2CE_OK);
    assert_close(nats, (4.09 + 1.09 + 0.34 + 5 - 3 - log(det)) / 2, 0.05, 0);
    n2_code_mixture_free(ctx, &m);
    n2ce_ctx_free(ctx);
}

/* Three Gaussians, of weights .5, .3, .2 and widths of their own. */
static void draw_three(double *z) {
    static float eps[N * 2];
    static const double centre[3][2] = {{0, 0}, {6, 1}, {-3, 5}}, width[] = {1, 0.5, 0.7};
    n2_fill_normal((n2_stream){2, 9, 0}, 0, N * 2, eps);
    for (size_t i = 0; i < N; i++) {
        const size_t c = i % 10 < 5 ? 0 : i % 10 < 8 ? 1 : 2;
        for (size_t k = 0; k < 2; k++)
            z[i * 2 + k] = centre[c][k] + width[c] * (double)eps[i * 2 + k];
    }
}

static void a_mixture_finds_its_components(void **state) {
    (void)state;
    static double z[N * 2];
    const double truth[3][5] = {{.2, -3, 5, .7, .7}, {.5, 0, 0, 1, 1}, {.3, 6, 1, .5, .5}};
    draw_three(z);
    for (uint64_t seed = 0; seed < 5; seed++) {
        n2ce_ctx *ctx = new_ctx(2);
        n2_code_mixture m;
        assert_int_equal(n2_code_mixture_fit(ctx, z, N, 2, 3, seed, &m), N2CE_OK);
        for (size_t t = 0; t < 3; t++) {
            size_t best = 0;
            for (size_t c = 0; c < 3; c++)
                if (fabs(m.mean[2 * c] - truth[t][1]) < fabs(m.mean[2 * best] - truth[t][1]))
                    best = c;
            assert_close(m.weight[best], truth[t][0], 0, 0.02);
            assert_close(m.mean[2 * best], truth[t][1], 0, 0.1);
            assert_close(m.mean[2 * best + 1], truth[t][2], 0, 0.1);
            assert_close(m.factor[4 * best], truth[t][3], 0.06, 0);
            assert_close(m.factor[4 * best + 2], 0, 0, 0.06);
            assert_close(m.factor[4 * best + 3], truth[t][4], 0.06, 0);
        }
        n2_code_mixture_free(ctx, &m);
        n2ce_ctx_free(ctx);
    }
}

static void any_number_of_threads_gives_the_same_mixture(void **state) {
    (void)state;
    static double z[N * 2];
    n2_code_mixture m[2];
    n2ce_ctx *ctx[2];
    draw_three(z);
    for (int i = 0; i < 2; i++) {
        ctx[i] = new_ctx(i ? 3 : 1);
        assert_int_equal(n2_code_mixture_fit(ctx[i], z, N, 2, 4, 1, &m[i]), N2CE_OK);
    }
    assert_memory_equal(m[0].factor, m[1].factor, 16 * sizeof(double));
    assert_memory_equal(m[0].mean, m[1].mean, 8 * sizeof(double));
    for (int i = 0; i < 2; i++) {
        n2_code_mixture_free(ctx[i], &m[i]);
        n2ce_ctx_free(ctx[i]);
    }
}

static void bad_codes_are_refused(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_code_mixture m;
    double z[20] = {0};
    float codes[8] = {0};
    assert_int_equal(n2_code_mixture_fit(ctx, z, 10, 2, 6, 0, &m), N2CE_EINVAL);
    z[3] = (double)NAN;
    assert_int_equal(n2_code_mixture_fit(ctx, z, 10, 2, 2, 0, &m), N2CE_EDATA);
    codes[0] = NAN;
    assert_int_equal(n2_code_gaussian_fit(ctx, codes, 2, 2, &m), N2CE_EDATA);
    assert_int_equal(n2_code_gaussian_fit(ctx, codes, 1, 2, &m), N2CE_EDATA);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gaussian_has_the_moments_of_all_posteriors),
        cmocka_unit_test(a_mixture_finds_its_components),
        cmocka_unit_test(any_number_of_threads_gives_the_same_mixture),
        cmocka_unit_test(bad_codes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
