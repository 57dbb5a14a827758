/* Facts about the objective: identities between its members, gradients, limits, diagnostics. */
#include "close.h"

#include "base/numerics.h"
#include "base/random.h"
#include "n2ce.h"

#include <stdlib.h>
#include <string.h>

static const double eps = DBL_EPSILON;

static const double magnitudes[] = {1, 1.5, 10, 100, 1000, 1e6, 1e12};

static const n2ce_family families[] = {N2CE_FAMILY_N2CE, N2CE_FAMILY_NWJ, N2CE_FAMILY_NEG_REWEIGHT};

enum { NUM = 7, DEN = 5 };

/* Logits of both sides with room for their gradients. */
typedef struct problem {
    n2ce_objective objective;
    double num[NUM], den[DEN], grad_num[NUM], grad_den[DEN];
} problem;

static problem make_problem(n2ce_family family, double magnitude, uint32_t stream) {
    problem p = {.objective = N2CE_OBJECTIVE_INIT};
    p.objective.family = family;
    p.objective.magnitude = magnitude;
    float z[NUM + DEN];
    n2_fill_normal((n2_stream){1, stream, 0}, 0, NUM + DEN, z);
    for (size_t i = 0; i < NUM; i++) p.num[i] = 2 * (double)z[i] + 0.5;
    for (size_t i = 0; i < DEN; i++) p.den[i] = 2 * (double)z[NUM + i] - 0.5;
    return p;
}

static double solve(problem *p) {
    const n2ce_logits_f64 logits = {p->num, NUM, p->den, DEN, p->grad_num, p->grad_den};
    double loss = N2_NAN;
    assert_int_equal(n2ce_loss_f64(NULL, &p->objective, &logits, &loss, NULL), N2CE_OK);
    return loss;
}

static double loss_of(const n2ce_objective *o, const double *num, size_t n_num, const double *den,
                      size_t n_den) {
    const n2ce_logits_f64 logits = {num, n_num, den, n_den, NULL, NULL};
    double loss = N2_NAN;
    assert_int_equal(n2ce_loss_f64(NULL, o, &logits, &loss, NULL), N2CE_OK);
    return loss;
}

static n2ce_objective objective_of(n2ce_family family, double magnitude) {
    n2ce_objective o = N2CE_OBJECTIVE_INIT;
    o.family = family;
    o.magnitude = magnitude;
    return o;
}

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

static const uint32_t stage_num[NUM] = {0, 1, 2, 0, 1, 2, 2}, stage_den[DEN] = {2, 1, 0, 1, 2};
static const double stage_weights[3] = {0.3, 0, 2.5};

static void add_stages(problem *p) {
    p->objective.n_stages = 3;
    p->objective.stage_weights = stage_weights;
    p->objective.stage_num = stage_num;
    p->objective.stage_den = stage_den;
}

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
