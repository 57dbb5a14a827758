/* Facts about the objective: identities between its members, gradients, limits. */
#include "logits.h"

#include "base/numerics.h"

#include <stdlib.h>
#include <string.h>

/* ---- values ----------------------------------------------------------------------- */

/* With f = 0 everywhere the loss is ln(1+M) + M ln(1+1/M), whatever the samples. */
static void loss_of_a_blind_critic(void **state) {
    (void)state;
    static const double rows[][2] = {
        {1, 1.386294}, {10, 3.350997}, {100, 5.610154}, {1000, 7.908255}};
    static const double zeros[9] = {0};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const n2ce_objective o = objective_of(N2CE_FAMILY_N2CE, rows[i][0]);
        assert_close(loss_of(&o, zeros, 9, zeros, 4), rows[i][1], 0, 5e-7);
    }
    for (size_t i = 0; i < COUNT_OF(magnitudes); i++) {
        const n2ce_objective o = objective_of(N2CE_FAMILY_N2CE, magnitudes[i]);
        const double closed = log1p(magnitudes[i]) + magnitudes[i] * log1p(1 / magnitudes[i]);
        assert_close(loss_of(&o, zeros, 3, zeros, 3), closed, 4 * eps, 0);
        assert_close(loss_of(&o, zeros, 1, zeros, 2), n2ce_bound_cap(magnitudes[i]), 4 * eps, 0);
    }
}

static double mean_ld(const double *f, size_t n, long double (*term)(long double)) {
    long double sum = 0;
    for (size_t i = 0; i < n; i++) sum += term((long double)f[i]);
    return (double)(sum / (long double)n);
}

static long double minus_log_sigmoid(long double f) { return -logl(1 / (1 + expl(-f))); }
static long double minus_log_other(long double f) { return -logl(1 - 1 / (1 + expl(-f))); }

/* M = 1 is textbook NCE: cross-entropy of a balanced classifier. */
static void magnitude_one_is_textbook_nce(void **state) {
    (void)state;
    for (uint32_t s = 0; s < 20; s++) {
        problem p = make_problem(N2CE_FAMILY_N2CE, 1, s);
        const double expected =
            mean_ld(p.num, NUM, minus_log_sigmoid) + mean_ld(p.den, DEN, minus_log_other);
        assert_close(solve(&p), expected, 1e-14, 0);
        for (size_t i = 0; i < NUM; i++)
            assert_close(p.grad_num[i], -n2_sigmoid(-p.num[i]) / NUM, 1e-14, 0);
        for (size_t i = 0; i < DEN; i++)
            assert_close(p.grad_den[i], n2_sigmoid(p.den[i]) / DEN, 1e-14, 0);
    }
}

/* NWJ is -mean f + mean e^f, and M plays no part in it. */
static void nwj_is_its_formula(void **state) {
    (void)state;
    problem p = make_problem(N2CE_FAMILY_NWJ, 1, 3);
    double expected = 0;
    for (size_t i = 0; i < NUM; i++) expected -= p.num[i] / NUM;
    for (size_t i = 0; i < DEN; i++) expected += exp(p.den[i]) / DEN;
    assert_close(solve(&p), expected, 1e-14, 0);
    const double ignored[] = {0, -5, 1e300, N2_NAN};
    for (size_t i = 0; i < COUNT_OF(ignored); i++) {
        p.objective.magnitude = ignored[i];
        assert_close(solve(&p), expected, 1e-14, 0);
    }
}

/* Re-weighting the noise side only: the data side is that of M = 1. */
static void neg_reweight_mixes_two_magnitudes(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT_OF(magnitudes); k++) {
        const double m = magnitudes[k];
        problem p = make_problem(N2CE_FAMILY_NEG_REWEIGHT, m, 4);
        double expected = 0;
        for (size_t i = 0; i < NUM; i++) expected += log1p(exp(-p.num[i])) / NUM;
        for (size_t i = 0; i < DEN; i++) expected += m * log1p(exp(p.den[i]) / m) / DEN;
        assert_close(solve(&p), expected, 1e-13, 0);
    }
}

/* As M grows, N2CE minus ln M becomes NWJ, in value and in gradient. */
static void the_limit_of_n2ce_is_nwj(void **state) {
    (void)state;
    for (uint32_t s = 0; s < 20; s++) {
        problem n2ce = make_problem(N2CE_FAMILY_N2CE, 1e12, s);
        problem nwj = make_problem(N2CE_FAMILY_NWJ, 1, s);
        assert_close(solve(&n2ce) - log(1e12), solve(&nwj), 1e-8, 1e-8);
        for (size_t i = 0; i < NUM; i++) assert_close(n2ce.grad_num[i], nwj.grad_num[i], 1e-8, 0);
        for (size_t i = 0; i < DEN; i++) assert_close(n2ce.grad_den[i], nwj.grad_den[i], 1e-8, 0);
    }
}

/* The loss divided by M + 1 is sbi's NRE-C with K = 1 and gamma = 1/M. */
static void the_loss_is_nre_c_times_one_plus_m(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT_OF(magnitudes); k++) {
        const double m = magnitudes[k], gamma = 1 / m;
        problem p = make_problem(N2CE_FAMILY_N2CE, m, 5);
        double joint = 0, marginal = 0;
        for (size_t i = 0; i < NUM; i++) {
            const double scores[] = {0, log(gamma) + p.num[i]};
            joint += (scores[1] - n2_logsumexp(scores, 2)) / NUM;
        }
        for (size_t i = 0; i < DEN; i++) {
            const double scores[] = {0, log(gamma) + p.den[i]};
            marginal += (0 - n2_logsumexp(scores, 2)) / DEN;
        }
        const double nre_c = -(marginal / (1 + gamma) + joint * gamma / (1 + gamma));
        assert_close(solve(&p) / (m + 1), nre_c, 1e-9, 4 * eps);
    }
}

/* ---- symmetries -------------------------------------------------------------------- */

/* At M = 1, swapping the sides and the sign of f changes nothing. */
static void nce_is_symmetric(void **state) {
    (void)state;
    problem p = make_problem(N2CE_FAMILY_N2CE, 1, 6);
    double minus_num[NUM], minus_den[DEN];
    for (size_t i = 0; i < NUM; i++) minus_num[i] = -p.num[i];
    for (size_t i = 0; i < DEN; i++) minus_den[i] = -p.den[i];
    assert_close(loss_of(&p.objective, minus_den, DEN, minus_num, NUM), solve(&p), 4 * eps, 0);
    p.objective.magnitude = 2;
    const double swapped = loss_of(&p.objective, minus_den, DEN, minus_num, NUM);
    assert_true(fabs(swapped - solve(&p)) > 1e-3); /* and only at M = 1 */
}

/* The order of samples does not matter; repeating each of them does not either. */
static void the_order_of_samples_does_not_matter(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT_OF(families); k++) {
        problem p = make_problem(families[k], 10, 7);
        double num[2 * NUM], den[2 * DEN];
        for (size_t i = 0; i < NUM; i++) num[i] = num[2 * NUM - 1 - i] = p.num[(3 * i + 2) % NUM];
        for (size_t i = 0; i < DEN; i++) den[i] = den[2 * DEN - 1 - i] = p.den[(2 * i + 1) % DEN];
        const double loss = solve(&p);
        assert_close(loss_of(&p.objective, num, NUM, den, DEN), loss, 2 * eps, 0);
        assert_close(loss_of(&p.objective, num, 2 * NUM, den, 2 * DEN), loss, 2 * eps, 0);
        assert_close(loss_of(&p.objective, num, 2 * NUM, p.den, DEN), loss, 2 * eps, 0);
    }
}

/* The same numbers in single precision give the same loss and rounded gradients. */
static void single_precision_is_double_inside(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT_OF(families); k++) {
        problem p = make_problem(families[k], 10, 8);
        float num[NUM], den[DEN], grad_num[NUM], grad_den[DEN];
        for (size_t i = 0; i < NUM; i++) p.num[i] = (double)(num[i] = (float)p.num[i]);
        for (size_t i = 0; i < DEN; i++) p.den[i] = (double)(den[i] = (float)p.den[i]);
        const n2ce_logits_f32 logits = {num, NUM, den, DEN, grad_num, grad_den};
        double loss = N2_NAN;
        assert_int_equal(n2ce_loss_f32(NULL, &p.objective, &logits, &loss, NULL), N2CE_OK);
        assert_close(loss, solve(&p), 0, 0);
        for (size_t i = 0; i < NUM; i++) assert_true(grad_num[i] == (float)p.grad_num[i]);
        for (size_t i = 0; i < DEN; i++) assert_true(grad_den[i] == (float)p.grad_den[i]);
    }
}

/* ---- gradients ---------------------------------------------------------------------- */

/* Central difference of the loss in one of its logits. */
static double difference(problem *p, double *logit) {
    const double h = 1e-5, kept = *logit;
    *logit = kept + h;
    const double above = solve(p);
    *logit = kept - h;
    const double below = solve(p);
    *logit = kept;
    return (above - below) / (2 * h);
}

static void check_gradient(problem p) {
    problem shifted = p;
    solve(&p);
    for (size_t i = 0; i < NUM; i++)
        assert_close(p.grad_num[i], difference(&shifted, &shifted.num[i]), 1e-6, 1e-8);
    for (size_t i = 0; i < DEN; i++)
        assert_close(p.grad_den[i], difference(&shifted, &shifted.den[i]), 1e-6, 1e-8);
}

/* The gradient is the slope of the loss: every family, with and without stages and lambda. */
static void gradients_are_slopes_of_the_loss(void **state) {
    (void)state;
    for (size_t f = 0; f < COUNT_OF(families); f++)
        for (size_t k = 0; k < COUNT_OF(magnitudes); k++) {
            problem p = make_problem(families[f], magnitudes[k], (uint32_t)k);
            check_gradient(p);
            p.objective.regularisation = 0.37;
            check_gradient(p);
            add_stages(&p);
            check_gradient(p);
            p.objective.regularisation = 0;
            check_gradient(p);
        }
}

/* The gradient is the documented weight: -M/(M+r)/n and M r/(M+r)/n. */
static void gradients_are_the_documented_weights(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT_OF(magnitudes); k++) {
        const double m = magnitudes[k];
        problem p = make_problem(N2CE_FAMILY_N2CE, m, 9);
        solve(&p);
        for (size_t i = 0; i < NUM; i++)
            assert_close(p.grad_num[i], -m / (m + exp(p.num[i])) / NUM, 1e-14, 0);
        for (size_t i = 0; i < DEN; i++)
            assert_close(p.grad_den[i], m / (m / exp(p.den[i]) + 1) / DEN, 1e-14, 0);
    }
}

/* Regularisation adds lambda mean f^2 on each side, and 2 lambda f / n to the gradient. */
static void regularisation_adds_a_parabola(void **state) {
    (void)state;
    const double lambda = 0.25;
    for (size_t k = 0; k < COUNT_OF(families); k++) {
        problem plain = make_problem(families[k], 10, 10), p = plain;
        p.objective.regularisation = lambda;
        double expected = solve(&plain);
        for (size_t i = 0; i < NUM; i++) expected += lambda * p.num[i] * p.num[i] / NUM;
        for (size_t i = 0; i < DEN; i++) expected += lambda * p.den[i] * p.den[i] / DEN;
        assert_close(solve(&p), expected, 1e-14, 0);
        for (size_t i = 0; i < NUM; i++)
            assert_close(p.grad_num[i] - plain.grad_num[i], 2 * lambda * p.num[i] / NUM, 0, 1e-14);
        for (size_t i = 0; i < DEN; i++)
            assert_close(p.grad_den[i] - plain.grad_den[i], 2 * lambda * p.den[i] / DEN, 0, 1e-13);
    }
}

/* A stage's weight multiplies its terms; equal weights of 1 are no stages at all. */
static void stages_weigh_their_terms(void **state) {
    (void)state;
    static const double ones[3] = {1, 1, 1};
    problem plain = make_problem(N2CE_FAMILY_N2CE, 10, 11), p = plain;
    const double loss = solve(&plain);
    add_stages(&p);
    p.objective.stage_weights = ones;
    assert_close(solve(&p), loss, 0, 0);
    assert_memory_equal(p.grad_num, plain.grad_num, sizeof p.grad_num);
    p.objective.stage_weights = stage_weights;
    double expected = 0;
    for (size_t i = 0; i < NUM; i++)
        expected += stage_weights[stage_num[i]] * n2_shifted_softplus(p.num[i], 10) / NUM;
    for (size_t i = 0; i < DEN; i++)
        expected += stage_weights[stage_den[i]] * n2_scaled_softplus(p.den[i], 10) / DEN;
    assert_close(solve(&p), expected, 1e-14, 0);
    for (size_t i = 0; i < NUM; i++)
        assert_close(p.grad_num[i], stage_weights[stage_num[i]] * plain.grad_num[i], 1e-14, 0);
}

/* Either gradient may be left out; the loss and the other one do not change. */
static void gradients_are_optional(void **state) {
    (void)state;
    problem p = make_problem(N2CE_FAMILY_N2CE, 10, 12);
    const double loss = solve(&p);
    double grad_num[NUM], grad_den[DEN], again = 0;
    n2ce_logits_f64 logits = {p.num, NUM, p.den, DEN, grad_num, NULL};
    assert_int_equal(n2ce_loss_f64(NULL, &p.objective, &logits, &again, NULL), N2CE_OK);
    assert_close(again, loss, 0, 0);
    assert_memory_equal(grad_num, p.grad_num, sizeof grad_num);
    logits.grad_num = NULL;
    logits.grad_den = grad_den;
    assert_int_equal(n2ce_loss_f64(NULL, &p.objective, &logits, &again, NULL), N2CE_OK);
    assert_memory_equal(grad_den, p.grad_den, sizeof grad_den);
}

/* ---- extremes ------------------------------------------------------------------------- */

typedef struct pair {
    double loss, grad_num, grad_den;
} pair;

static pair solve_pair(n2ce_family family, double m, double f_num, double f_den) {
    const n2ce_objective o = objective_of(family, m);
    pair p = {N2_NAN, N2_NAN, N2_NAN};
    const n2ce_logits_f64 logits = {&f_num, 1, &f_den, 1, &p.grad_num, &p.grad_den};
    assert_int_equal(n2ce_loss_f64(NULL, &o, &logits, &p.loss, NULL), N2CE_OK);
    return p;
}

/* Logits of +-1e4: the loss is linear in them and the gradient is 0 or at its limit. */
static void extreme_logits_reach_the_asymptotes(void **state) {
    (void)state;
    const double big = 1e4;
    for (size_t k = 0; k < COUNT_OF(magnitudes); k++) {
        const double m = magnitudes[k];
        const pair right = solve_pair(N2CE_FAMILY_N2CE, m, big, -big);
        assert_close(right.loss, 0, 0, 0);
        assert_close(right.grad_num, 0, 0, 0);
        assert_close(right.grad_den, 0, 0, 0);
        const pair wrong = solve_pair(N2CE_FAMILY_N2CE, m, -big, big);
        assert_close(wrong.loss, (big + log(m)) + m * (big - log(m)), 4 * eps, 0);
        assert_close(wrong.grad_num, -1, 0, 0);
        assert_close(wrong.grad_den, m, 2 * eps, 0);
        const pair ablation = solve_pair(N2CE_FAMILY_NEG_REWEIGHT, m, -big, big);
        assert_close(ablation.loss, big + m * (big - log(m)), 4 * eps, 0);
    }
}

/* Logits of any finite size give a finite gradient. */
static void gradients_are_finite_for_every_logit(void **state) {
    (void)state;
    static const double sizes[] = {1e-300, 1, 36, 709, 710, 745, 1e4, 1e100, 1e300};
    for (size_t k = 0; k < COUNT_OF(magnitudes); k++)
        for (size_t i = 0; i < COUNT_OF(sizes); i++)
            for (int sign = -1; sign <= 1; sign += 2) {
                const double m = magnitudes[k], f = sign * sizes[i];
                if (m * fabs(f) > 1e300) continue; /* the loss itself overflows */
                const pair p = solve_pair(N2CE_FAMILY_N2CE, m, f, f);
                assert_true(isfinite(p.loss) && p.loss >= 0);
                assert_true(p.grad_num <= 0 && p.grad_num >= -1);
                assert_true(p.grad_den >= 0 && p.grad_den <= m * (1 + eps));
            }
}

/* r = M is where both weights are half of their limits, for every M that is accepted. */
static void weights_are_half_where_the_ratio_is_m(void **state) {
    (void)state;
    static const double accepted[] = {1, 10, 1e6, 1e12, 1e100, 1e290, 1e300, 1e306};
    for (size_t k = 0; k < COUNT_OF(accepted); k++) {
        const double m = accepted[k];
        const pair p = solve_pair(N2CE_FAMILY_N2CE, m, log(m), log(m));
        assert_close(p.grad_num, -0.5, 1e-12, 0);
        assert_close(p.grad_den, m / 2, 1e-12, 0);
        const pair above = solve_pair(N2CE_FAMILY_N2CE, m, log(m) + 20, log(m) + 20);
        assert_close(above.grad_num, -1 / (1 + exp(20)), 1e-12, 0);
        assert_close(above.grad_den, m / (1 + exp(-20)), 1e-12, 0);
    }
}

/* NWJ overflows for f > 709: N2CE_ERANGE, infinities written, a message. */
static void nwj_overflow_is_reported_and_written(void **state) {
    (void)state;
    n2ce_ctx *ctx = NULL;
    assert_int_equal(n2ce_ctx_new(&ctx, NULL), N2CE_OK);
    const n2ce_objective o = objective_of(N2CE_FAMILY_NWJ, 1);
    const double num[] = {1, 2}, den[] = {0, 710};
    double grad_num[2] = {9, 9}, grad_den[2] = {9, 9}, loss = 9;
    const n2ce_logits_f64 logits = {num, 2, den, 2, grad_num, grad_den};
    n2ce_diagnostics d;
    assert_int_equal(n2ce_loss_f64(ctx, &o, &logits, &loss, &d), N2CE_ERANGE);
    assert_close(loss, N2_INFINITY, 0, 0);
    assert_close(grad_num[0], -0.5, 0, 0);
    assert_close(grad_den[0], 0.5, 0, 0);
    assert_close(grad_den[1], N2_INFINITY, 0, 0);
    assert_close(d.kl_bound, -N2_INFINITY, 0, 0);
    assert_close(d.mean_num, 1.5, 0, 0);
    assert_true(strlen(n2ce_errmsg(ctx)) > 0);
    n2ce_ctx_free(ctx);
}

/* Single-precision gradients overflow earlier, for f > 88, while the loss still fits. */
static void single_precision_gradients_overflow_earlier(void **state) {
    (void)state;
    const n2ce_objective o = objective_of(N2CE_FAMILY_NWJ, 1);
    const float num[] = {1}, den[] = {90};
    float grad_num[1] = {9}, grad_den[1] = {9};
    double loss = 9;
    const n2ce_logits_f32 logits = {num, 1, den, 1, grad_num, grad_den};
    assert_int_equal(n2ce_loss_f32(NULL, &o, &logits, &loss, NULL), N2CE_ERANGE);
    assert_close(loss, exp(90) - 1, 1e-14, 0);
    assert_true(isinf(grad_den[0]) && grad_den[0] > 0);
    assert_true(grad_num[0] == -1.0f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_of_a_blind_critic),
        cmocka_unit_test(magnitude_one_is_textbook_nce),
        cmocka_unit_test(nwj_is_its_formula),
        cmocka_unit_test(neg_reweight_mixes_two_magnitudes),
        cmocka_unit_test(the_limit_of_n2ce_is_nwj),
        cmocka_unit_test(the_loss_is_nre_c_times_one_plus_m),
        cmocka_unit_test(nce_is_symmetric),
        cmocka_unit_test(the_order_of_samples_does_not_matter),
        cmocka_unit_test(single_precision_is_double_inside),
        cmocka_unit_test(gradients_are_slopes_of_the_loss),
        cmocka_unit_test(gradients_are_the_documented_weights),
        cmocka_unit_test(regularisation_adds_a_parabola),
        cmocka_unit_test(stages_weigh_their_terms),
        cmocka_unit_test(gradients_are_optional),
        cmocka_unit_test(extreme_logits_reach_the_asymptotes),
        cmocka_unit_test(gradients_are_finite_for_every_logit),
        cmocka_unit_test(weights_are_half_where_the_ratio_is_m),
        cmocka_unit_test(nwj_overflow_is_reported_and_written),
        cmocka_unit_test(single_precision_gradients_overflow_earlier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
