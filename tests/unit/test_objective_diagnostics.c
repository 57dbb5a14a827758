/* Facts about what the objective refuses, and what it says of logits. */
#include "logits.h"

#include "base/numerics.h"

#include <stdlib.h>
#include <string.h>

/* ---- refusals -------------------------------------------------------------------------- */

static void check_bad_logit(n2ce_ctx *ctx, bool in_num, size_t at, double value) {
    problem p = make_problem(N2CE_FAMILY_N2CE, 10, 13);
    for (size_t i = 0; i < NUM; i++) p.grad_num[i] = 77;
    for (size_t i = 0; i < DEN; i++) p.grad_den[i] = 77;
    const problem before = p;
    double loss = 77;
    n2ce_diagnostics d;
    memset(&d, 0x55, sizeof d);
    const n2ce_diagnostics d_before = d;
    (in_num ? p.num : p.den)[at] = value;
    const n2ce_logits_f64 logits = {p.num, NUM, p.den, DEN, p.grad_num, p.grad_den};
    assert_int_equal(n2ce_loss_f64(ctx, &p.objective, &logits, &loss, &d), N2CE_ENAN);
    assert_close(loss, 77, 0, 0);
    assert_memory_equal(&d, &d_before, sizeof d);
    assert_memory_equal(p.grad_num, before.grad_num, sizeof p.grad_num);
    assert_memory_equal(p.grad_den, before.grad_den, sizeof p.grad_den);
    assert_non_null(strstr(n2ce_errmsg(ctx), in_num ? "numerator" : "denominator"));
    char index[8] = {' ', (char)('0' + at), ' ', '\0'};
    assert_non_null(strstr(n2ce_errmsg(ctx), index));
}

/* A NaN or infinite logit is refused, its side and place are named, nothing is written. */
static void bad_logits_are_named_and_nothing_is_written(void **state) {
    (void)state;
    n2ce_ctx *ctx = NULL;
    assert_int_equal(n2ce_ctx_new(&ctx, NULL), N2CE_OK);
    const double bad[] = {N2_NAN, N2_INFINITY, -N2_INFINITY};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        check_bad_logit(ctx, true, 0, bad[i]);
        check_bad_logit(ctx, true, NUM - 1, bad[i]);
        check_bad_logit(ctx, false, 0, bad[i]);
        check_bad_logit(ctx, false, DEN - 1, bad[i]);
    }
    n2ce_ctx_free(ctx);
}

static void assert_refused(const n2ce_objective *o, const n2ce_logits_f64 *logits, double *loss) {
    n2ce_ctx *ctx = NULL;
    assert_int_equal(n2ce_ctx_new(&ctx, NULL), N2CE_OK);
    assert_int_equal(n2ce_loss_f64(ctx, o, logits, loss, NULL), N2CE_EINVAL);
    assert_true(strlen(n2ce_errmsg(ctx)) > 0);
    if (loss) assert_close(*loss, 77, 0, 0);
    n2ce_ctx_free(ctx);
    assert_int_equal(n2ce_loss_f64(NULL, o, logits, loss, NULL), N2CE_EINVAL);
}

/* Missing arguments and empty samples. */
static void missing_arguments_are_refused(void **state) {
    (void)state;
    const n2ce_objective o = N2CE_OBJECTIVE_INIT;
    const double f[2] = {0, 1};
    double loss = 77;
    const n2ce_logits_f64 good = {f, 2, f, 2, NULL, NULL};
    assert_refused(NULL, &good, &loss);
    assert_refused(&o, NULL, &loss);
    assert_refused(&o, &good, NULL);
    assert_refused(&o, &(n2ce_logits_f64){f, 0, f, 2, NULL, NULL}, &loss);
    assert_refused(&o, &(n2ce_logits_f64){f, 2, f, 0, NULL, NULL}, &loss);
    assert_refused(&o, &(n2ce_logits_f64){NULL, 2, f, 2, NULL, NULL}, &loss);
    assert_refused(&o, &(n2ce_logits_f64){f, 2, NULL, 2, NULL, NULL}, &loss);
    const float g[1] = {0};
    const n2ce_logits_f32 empty = {g, 1, g, 0, NULL, NULL};
    assert_int_equal(n2ce_loss_f32(NULL, &o, &empty, &loss, NULL), N2CE_EINVAL);
    assert_int_equal(n2ce_loss_f32(NULL, NULL, &empty, &loss, NULL), N2CE_EINVAL);
    assert_int_equal(n2ce_loss_f32(NULL, &o, NULL, &loss, NULL), N2CE_EINVAL);
}

static void assert_objective_refused(n2ce_objective o) {
    static const double num[NUM] = {0}, den[DEN] = {0};
    double loss = 77;
    const n2ce_logits_f64 logits = {num, NUM, den, DEN, NULL, NULL};
    assert_refused(&o, &logits, &loss);
}

/* Wrong numbers in the objective. */
static void wrong_objectives_are_refused(void **state) {
    (void)state;
    const double bad_m[] = {0.999, 0, -1, N2_NAN, N2_INFINITY, -N2_INFINITY};
    for (size_t i = 0; i < COUNT_OF(bad_m); i++) {
        assert_objective_refused(objective_of(N2CE_FAMILY_N2CE, bad_m[i]));
        assert_objective_refused(objective_of(N2CE_FAMILY_NEG_REWEIGHT, bad_m[i]));
    }
    const double bad_lambda[] = {-1e-300, N2_NAN, N2_INFINITY};
    for (size_t i = 0; i < COUNT_OF(bad_lambda); i++) {
        n2ce_objective o = N2CE_OBJECTIVE_INIT;
        o.regularisation = bad_lambda[i];
        assert_objective_refused(o);
    }
    assert_objective_refused(objective_of((n2ce_family)3, 1));
    assert_objective_refused(objective_of((n2ce_family)-1, 1));
    n2ce_objective o = N2CE_OBJECTIVE_INIT;
    o.struct_size--;
    assert_objective_refused(o);
    o.struct_size = 0;
    assert_objective_refused(o);
}

static n2ce_objective staged(const double *weights, const uint32_t *num, const uint32_t *den) {
    n2ce_objective o = N2CE_OBJECTIVE_INIT;
    o.n_stages = 3;
    o.stage_weights = weights;
    o.stage_num = num;
    o.stage_den = den;
    return o;
}

/* Stages without weights or indices, bad weights, and indices out of range. */
static void wrong_stages_are_refused(void **state) {
    (void)state;
    static const uint32_t num_beyond[NUM] = {0, 0, 0, 3},
                          den_beyond[DEN] = {0, 0, 0, 0, UINT32_MAX};
    const double bad[3][3] = {{1, -1, 1}, {N2_NAN, 1, 1}, {1, 1, N2_INFINITY}};
    assert_objective_refused(staged(NULL, stage_num, stage_den));
    assert_objective_refused(staged(stage_weights, NULL, stage_den));
    assert_objective_refused(staged(stage_weights, stage_num, NULL));
    assert_objective_refused(staged(stage_weights, num_beyond, stage_den));
    assert_objective_refused(staged(stage_weights, stage_num, den_beyond));
    for (size_t i = 0; i < 3; i++) assert_objective_refused(staged(bad[i], stage_num, stage_den));
}

/* ---- diagnostics ------------------------------------------------------------------------ */

static n2ce_diagnostics diagnose(const n2ce_objective *o, const double *num, size_t n_num,
                                 const double *den, size_t n_den) {
    const n2ce_logits_f64 logits = {num, n_num, den, n_den, NULL, NULL};
    double loss;
    n2ce_diagnostics d;
    assert_int_equal(n2ce_loss_f64(NULL, o, &logits, &loss, &d), N2CE_OK);
    return d;
}

/* True log ratios of N(d,1) against N(0,1) at samples of both. */
static void gaussian_logits(double d, size_t n, double *num, double *den) {
    float *z = malloc(2 * n * sizeof *z);
    assert_non_null(z);
    n2_fill_normal((n2_stream){5, 5, 5}, 0, 2 * n, z);
    for (size_t i = 0; i < n; i++) {
        num[i] = d * (d + (double)z[i]) - d * d / 2;
        den[i] = d * (double)z[n + i] - d * d / 2;
    }
    free(z);
}

/* With the true ratio of two Gaussians the bounds approach the M-path, JS and KL. */
static void bounds_of_the_true_ratio_approach_the_truth(void **state) {
    (void)state;
    enum { N = 200000 };
    static double num[N], den[N];
    gaussian_logits(1, N, num, den);
    static const double ms[] = {1, 10, 100, 1e4};
    for (size_t k = 0; k < COUNT_OF(ms); k++) {
        const n2ce_objective o = objective_of(N2CE_FAMILY_N2CE, ms[k]);
        const n2ce_diagnostics d = diagnose(&o, num, N, den, N);
        assert_close(d.kl_bound, n2ce_path_gaussian(1, ms[k]), 0, 0.02);
        assert_close(d.kl_cap, n2ce_bound_cap(ms[k]), 0, 0);
        assert_close(d.js_bound, n2ce_path_gaussian(1, 1) / 2, 0, 0.01);
        assert_close(d.js_cap, log(2), 0, 0);
        assert_close(d.mean_num, 0.5, 0, 5 / sqrt(N));
        assert_close(d.mean_den, -0.5, 0, 5 / sqrt(N));
    }
    const n2ce_objective nwj = objective_of(N2CE_FAMILY_NWJ, 1);
    const n2ce_diagnostics d = diagnose(&nwj, num, N, den, N);
    assert_close(d.kl_bound, 0.5, 0, 0.02);
    assert_close(d.kl_cap, N2_INFINITY, 0, 0);
}

/* The bound is the cap minus the plain loss; lambda, stages and the ablation play no part. */
static void the_bound_is_the_cap_minus_the_loss(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT_OF(magnitudes); k++) {
        problem p = make_problem(N2CE_FAMILY_N2CE, magnitudes[k], 14);
        const double loss = solve(&p), cap = n2ce_bound_cap(magnitudes[k]);
        const n2ce_diagnostics plain = diagnose(&p.objective, p.num, NUM, p.den, DEN);
        assert_close(plain.kl_bound, cap - loss, 0, 8 * eps * (cap + loss));
        p.objective.regularisation = 3;
        add_stages(&p);
        const n2ce_diagnostics dressed = diagnose(&p.objective, p.num, NUM, p.den, DEN);
        assert_memory_equal(&plain, &dressed, sizeof plain);
        p.objective.family = N2CE_FAMILY_NEG_REWEIGHT;
        const n2ce_diagnostics ablation = diagnose(&p.objective, p.num, NUM, p.den, DEN);
        assert_memory_equal(&plain, &ablation, sizeof plain);
        p.objective = objective_of(N2CE_FAMILY_N2CE, 1);
        assert_close(plain.js_bound, log(2) - solve(&p) / 2, 0, 1e-14);
    }
}

/* No bound exceeds its cap, even for a perfect separation; a blind critic's bounds are 0. */
static void bounds_stay_below_their_caps(void **state) {
    (void)state;
    static const double high[3] = {1e4, 1e4, 1e4}, low[3] = {-1e4, -1e4, -1e4}, zero[3] = {0};
    for (size_t k = 0; k < COUNT_OF(magnitudes); k++) {
        const n2ce_objective o = objective_of(N2CE_FAMILY_N2CE, magnitudes[k]);
        const n2ce_diagnostics best = diagnose(&o, high, 3, low, 3);
        assert_close(best.kl_bound, best.kl_cap, 4 * eps, 0);
        assert_close(best.js_bound, log(2), 4 * eps, 0);
        const n2ce_diagnostics blind = diagnose(&o, zero, 3, zero, 3);
        assert_close(blind.kl_bound, 0, 0, 8 * eps * blind.kl_cap);
        assert_close(blind.js_bound, 0, 0, 4 * eps);
        const n2ce_diagnostics worst = diagnose(&o, low, 3, high, 3);
        assert_true(worst.kl_bound < 0 && worst.js_bound < 0);
    }
}

/* The effective number of noise samples: n at f = 0, 1 when one decides, between otherwise. */
static void effective_samples_are_between_one_and_n(void **state) {
    (void)state;
    static const double zeros[50] = {0}, num[1] = {0};
    for (size_t f = 0; f < COUNT_OF(families); f++)
        for (size_t k = 0; k < COUNT_OF(magnitudes); k++) {
            const n2ce_objective o = objective_of(families[f], magnitudes[k]);
            double den[50] = {0};
            assert_close(diagnose(&o, num, 1, zeros, 50).ess_den, 50, 1e-13, 0);
            den[7] = -600;
            assert_close(diagnose(&o, num, 1, den, 50).ess_den, 49, 1e-13, 0);
            for (size_t i = 0; i < 50; i++) den[i] = i == 9 ? 0 : -600 - (double)i;
            assert_close(diagnose(&o, num, 1, den, 50).ess_den, 1, 1e-13, 0);
            for (size_t i = 0; i < 50; i++) den[i] = 0.3 * (double)i - 5;
            const double ess = diagnose(&o, num, 1, den, 50).ess_den;
            assert_true(ess >= 1 && ess <= 50);
        }
}

/* It is (sum w)^2 / sum w^2 with w = M r / (M + r). */
static void effective_samples_are_the_formula(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT_OF(magnitudes); k++) {
        const double m = magnitudes[k];
        problem p = make_problem(N2CE_FAMILY_N2CE, m, 15);
        double sum = 0, squares = 0;
        for (size_t i = 0; i < DEN; i++) {
            const double w = m / (1 + m / exp(p.den[i]));
            sum += w;
            squares += w * w;
        }
        const n2ce_diagnostics d = diagnose(&p.objective, p.num, NUM, p.den, DEN);
        assert_close(d.ess_den, sum * sum / squares, 1e-11, 0);
    }
}

/* Saturated is the share of samples whose ratio exceeds M; NWJ never saturates. */
static void saturation_is_the_share_beyond_m(void **state) {
    (void)state;
    const double num[] = {0, 1, 2.2, 2.4, 1e4}, den[] = {-1, 2.4, -1e4, 0};
    n2ce_objective o = objective_of(N2CE_FAMILY_N2CE, 10); /* ln 10 = 2.303 */
    n2ce_diagnostics d = diagnose(&o, num, 5, den, 4);
    assert_close(d.saturated_num, 2.0 / 5, 1e-15, 0);
    assert_close(d.saturated_den, 1.0 / 4, 1e-15, 0);
    o.magnitude = 1;
    d = diagnose(&o, num, 5, den, 4);
    assert_close(d.saturated_num, 4.0 / 5, 1e-15, 0);
    const double tame[] = {0, 700};
    o.family = N2CE_FAMILY_NWJ;
    d = diagnose(&o, num, 5, tame, 2);
    assert_close(d.saturated_num, 0, 0, 0);
    assert_close(d.saturated_den, 0, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_logits_are_named_and_nothing_is_written),
        cmocka_unit_test(missing_arguments_are_refused),
        cmocka_unit_test(wrong_objectives_are_refused),
        cmocka_unit_test(wrong_stages_are_refused),
        cmocka_unit_test(bounds_of_the_true_ratio_approach_the_truth),
        cmocka_unit_test(the_bound_is_the_cap_minus_the_loss),
        cmocka_unit_test(bounds_stay_below_their_caps),
        cmocka_unit_test(effective_samples_are_between_one_and_n),
        cmocka_unit_test(effective_samples_are_the_formula),
        cmocka_unit_test(saturation_is_the_share_beyond_m),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
