/* Facts about waymarks: their divergences are equal, however hard the Gaussians are. */
#include "samples.h"

#include "ratio/gauss.h"

enum { MOST_DIRECTIONS = 50, MOST_STAGES = 64, KINDS = 5 };

typedef struct problem {
    double lambda[MOST_DIRECTIONS], delta[MOST_DIRECTIONS];
    n2_gauss g;
} problem;

static void set_problem(problem *p, size_t d) {
    p->g = (n2_gauss){.d = d, .lambda = p->lambda, .delta = p->delta};
}

/* Gaussians whose variances are up to `spread` powers of ten above or below those of the other,
 * or on both sides, and means up to 10^reach apart; some differ by one of the two only. */
static void random_problem(problem *p, uint32_t stream) {
    double *u = uniforms(4 + 2 * MOST_DIRECTIONS, stream);
    const size_t d = stream % 3 == 0 ? 1 : 1 + (size_t)(u[0] * (MOST_DIRECTIONS - 1));
    const double spread = 12 * u[1], reach = 12 * u[2] - 6;
    const int kind = (int)(stream % KINDS);
    for (size_t i = 0; i < d; i++) {
        const double power = spread * (2 * u[4 + 2 * i] - 1);
        const double powers[KINDS] = {0, -fabs(power), fabs(power), power, power};
        p->lambda[i] = pow(10, powers[kind]);
        p->delta[i] = kind == 3 ? 0 : (2 * u[5 + 2 * i] - 1) * pow(10, reach);
    }
    set_problem(p, d);
    free(u);
}

/* How much the divergence changes when waymarks that are no ends move to the next number. */
static double grain(const n2_gauss *g, double from, double to) {
    const double kl = n2_gauss_waymark_kl(g, from, to);
    const double a = from > 0 ? n2_gauss_waymark_kl(g, nextafter(from, 1), to) - kl : 0;
    const double b = to < 1 ? n2_gauss_waymark_kl(g, from, nextafter(to, 0)) - kl : 0;
    return fabs(a) + fabs(b);
}

static void check_waymarks(const n2_gauss *g, size_t stages) {
    double alpha[MOST_STAGES + 1];
    n2_gauss_waymarks(g, stages, alpha);
    assert_true(alpha[0] == 1 && alpha[stages] == 0);
    const double first = n2_gauss_waymark_kl(g, alpha[stages], alpha[stages - 1]);
    assert_true(first > 0);
    for (size_t k = 0; k < stages; k++) {
        assert_true(alpha[k] > alpha[k + 1]);
        assert_close(n2_gauss_waymark_kl(g, alpha[k + 1], alpha[k]), first, 1e-9,
                     4 * grain(g, alpha[k + 1], alpha[k]));
    }
}

/* Variances 12 powers of ten to both sides, means up to 1e6 apart, one direction or many. */
static void stages_of_hard_problems_are_equal(void **state) {
    (void)state;
    enum { PROBLEMS = 300 };
    for (uint32_t i = 0; i < PROBLEMS; i++) {
        problem p;
        random_problem(&p, i);
        check_waymarks(&p.g, 1 + i * 37 % MOST_STAGES);
    }
}

/* All extremes at once. */
static void stages_of_extremes_are_equal(void **state) {
    (void)state;
    static const size_t stages[] = {1, 2, 3, 12, 64};
    static const double lambda[] = {1e-12, 1, 1e12, 1e-6}, delta[] = {1e6, 1e-6, 0, 1};
    for (size_t j = 0; j < COUNT_OF(stages); j++)
        for (size_t d = 1; d <= COUNT_OF(lambda); d++) {
            problem p;
            memcpy(p.lambda, lambda, sizeof lambda);
            memcpy(p.delta, delta, sizeof delta);
            set_problem(&p, d);
            check_waymarks(&p.g, stages[j]);
        }
}

/* Hardly a difference is divided as one that is large. */
static void stages_of_tiny_differences_are_equal(void **state) {
    (void)state;
    static const double sizes[] = {1e-3, 1e-5, 1e-7, 1e-9};
    for (size_t j = 0; j < COUNT_OF(sizes); j++) {
        problem p = {.lambda = {1, 1 + sizes[j], 1 - sizes[j]}, .delta = {0, sizes[j], 0}};
        set_problem(&p, 3);
        for (size_t stages = 1; stages <= MOST_STAGES; stages *= 4) check_waymarks(&p.g, stages);
    }
}

/* Where only means differ, they move by equal parts: sqrt(1 - alpha^2) = k / stages. */
static void means_move_by_equal_parts(void **state) {
    (void)state;
    static const double shifts[] = {1e-6, 1, 50, 1e6};
    double alpha[MOST_STAGES + 1];
    for (size_t j = 0; j < COUNT_OF(shifts); j++)
        for (size_t stages = 1; stages <= MOST_STAGES; stages++) {
            problem p = {.lambda = {1, 1}, .delta = {shifts[j], -0.3 * shifts[j]}};
            set_problem(&p, 2);
            n2_gauss_waymarks(&p.g, stages, alpha);
            for (size_t k = 0; k <= stages; k++) {
                const double part = (double)k / (double)stages;
                assert_close(alpha[k], sqrt((1 - part) * (1 + part)), 1e-12, 0);
            }
        }
}

/* Equal Gaussians have waymarks all the same, in order; so have those whose divergence is no
 * number. */
static void without_a_divergence_they_are_evenly_spaced(void **state) {
    (void)state;
    static const double deltas[] = {0, 1e-12, (double)INFINITY, (double)NAN};
    double alpha[6];
    for (size_t j = 0; j < COUNT_OF(deltas); j++) {
        problem p = {.lambda = {1, 1}, .delta = {deltas[j], 0}};
        set_problem(&p, 2);
        n2_gauss_waymarks(&p.g, 5, alpha);
        for (size_t k = 0; k <= 5; k++) assert_close(alpha[k], 1 - (double)k / 5, 1e-15, 0);
    }
}

/* Waymarks that numbers cannot tell from the noise are in order nevertheless. */
static void waymarks_beyond_rounding_are_in_order(void **state) {
    (void)state;
    static const double lambdas[] = {1e-28, 1e-20, 1e20, 1e40, 1e100};
    double alpha[MOST_STAGES + 1];
    for (size_t j = 0; j < COUNT_OF(lambdas); j++) {
        problem p = {.lambda = {lambdas[j], 1}, .delta = {1, 1}};
        set_problem(&p, 2);
        n2_gauss_waymarks(&p.g, MOST_STAGES, alpha);
        assert_true(alpha[0] == 1 && alpha[MOST_STAGES] == 0);
        for (size_t k = 0; k < MOST_STAGES; k++) assert_true(alpha[k] > alpha[k + 1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_of_hard_problems_are_equal),
        cmocka_unit_test(stages_of_extremes_are_equal),
        cmocka_unit_test(stages_of_tiny_differences_are_equal),
        cmocka_unit_test(means_move_by_equal_parts),
        cmocka_unit_test(without_a_divergence_they_are_evenly_spaced),
        cmocka_unit_test(waymarks_beyond_rounding_are_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
