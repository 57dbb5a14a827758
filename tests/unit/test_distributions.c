/* Facts about digamma, the normal distribution and Student's t. The tables were made with 40
 * digits (mpmath). */
#include "close.h"

#include "base/numerics.h"

static const double pi = 3.14159265358979324;
static const double euler_gamma = 0.57721566490153286;

typedef struct pair {
    double x, y;
} pair;

static void digamma_is_what_40_digits_say(void **state) {
    (void)state;
    const pair known[] = {
        {1e-05, -100000.577199215673},
        {0.5, -1.96351002602142348},
        {1.25, -0.227453533376265408},
        {1.4616321449683622, -9.24126552172942752e-17}, /* beside the root */
        {1.5, 0.0364899739785765206},
        {2, 0.422784335098467139},
        {7.5, 1.94675748424608679},
        {1000, 6.90725519564881205},
    };
    for (size_t i = 0; i < COUNT_OF(known); i++)
        assert_close(n2_digamma(known[i].x), known[i].y, 1e-14, 0);
    assert_close(n2_digamma(1), -euler_gamma, 1e-14, 0);
}

/* psi(x + 1) = psi(x) + 1/x, across every border between methods. */
static void digamma_obeys_its_recurrence(void **state) {
    (void)state;
    for (double x = 0.03125; x < 14; x += 0.03125)
        assert_close(n2_digamma(x + 1), n2_digamma(x) + 1 / x, 4e-15, 4e-15 / x);
}

static void digamma_at_the_ends(void **state) {
    (void)state;
    assert_close(n2_digamma(N2_INFINITY), N2_INFINITY, 0, 0);
    assert_close(n2_digamma(1e300), log(1e300), 1e-15, 0);
    assert_close(n2_digamma(1e-300), -1e300, 1e-15, 0);
    assert_close(n2_digamma(0), N2_NAN, 0, 0);
    assert_close(n2_digamma(-0.5), N2_NAN, 0, 0);
    assert_close(n2_digamma(N2_NAN), N2_NAN, 0, 0);
}

static void normal_quantile_is_what_40_digits_say(void **state) {
    (void)state;
    const pair known[] = {
        {1e-307, -37.4793325643215766}, {1e-300, -37.0470962993611992},
        {1e-100, -21.2734535609653243}, {1e-09, -5.99780701500768686},
        {0.001, -3.09023230616781354},  {0.025, -1.95996398454005421},
        {0.3, -0.524400512708040816},   {0.49999, -0.0000250662827489600085},
    };
    for (size_t i = 0; i < COUNT_OF(known); i++)
        assert_close(n2_normal_quantile(known[i].x), known[i].y, 2e-16, 1e-14);
}

static void normal_quantile_inverts_the_cdf(void **state) {
    (void)state;
    for (double p = 1. / 512; p < 1; p += 1. / 512) {
        assert_close(n2_normal_cdf(n2_normal_quantile(p)), p, 1e-15, 0);
        assert_close(n2_normal_quantile(p), -n2_normal_quantile(1 - p), 0, 1e-16);
    }
    assert_close(n2_normal_quantile(0.5), 0, 0, 1e-16);
}

static void normal_quantile_at_the_ends(void **state) {
    (void)state;
    assert_close(n2_normal_quantile(0), -N2_INFINITY, 0, 0);
    assert_close(n2_normal_quantile(1), N2_INFINITY, 0, 0);
    assert_true(isfinite(n2_normal_quantile(4.9e-324)));
    assert_close(n2_normal_quantile(-0.1), N2_NAN, 0, 0);
    assert_close(n2_normal_quantile(1.1), N2_NAN, 0, 0);
    assert_close(n2_normal_quantile(N2_NAN), N2_NAN, 0, 0);
    assert_close(n2_normal_cdf(0), 0.5, 0, 0);
    assert_close(n2_normal_cdf(-N2_INFINITY), 0, 0, 0);
    assert_close(n2_normal_cdf(N2_INFINITY), 1, 0, 0);
}

static void student_quantile_is_what_40_digits_say(void **state) {
    (void)state;
    const struct {
        double p, dof, t;
    } known[] = {
        {1e-05, 0.5, -1028491156.31633984}, {0.025, 3, -3.18244630528370952},
        {0.4, 4.5, -0.26875183554217514},   {1e-12, 10, -40.5320961786625966},
        {0.005, 30, -2.74999565356722532},  {0.025, 1000.5, -1.96233789245934846},
        {0.001, 5e5, -3.09024860650461095}, {1e-09, 2e6, -5.9978347352491881},
    };
    for (size_t i = 0; i < COUNT_OF(known); i++)
        assert_close(n2_student_quantile(known[i].p, known[i].dof), known[i].t, 1e-11, 0);
}

/* One degree of freedom is the Cauchy distribution, two have a closed form, infinitely many
 * are normal. */
static void student_has_closed_forms(void **state) {
    (void)state;
    for (double p = 1. / 128; p < 1; p += 1. / 128) {
        const double c = 2 * p - 1;
        assert_close(n2_student_quantile(p, 1), tan(pi * (p - 0.5)), 1e-12, 1e-15);
        assert_close(n2_student_quantile(p, 2), c * sqrt(2 / (1 - c * c)), 1e-12, 1e-15);
        assert_close(n2_student_quantile(p, N2_INFINITY), n2_normal_quantile(p), 0, 0);
        assert_close(n2_student_quantile(p, 1e9), n2_normal_quantile(p), 1e-8, 0);
    }
}

/* More degrees of freedom, lighter tails; also where the method changes. */
static void student_quantile_falls_with_dof(void **state) {
    (void)state;
    const double dof[] = {0.1, 0.5, 1, 3, 11, 23.9, 24.1, 1e3, 1e5, 1e6, 1.001e6, 1e8};
    for (size_t i = 0; i + 1 < COUNT_OF(dof); i++) {
        const double heavy = n2_student_quantile(0.975, dof[i]);
        const double light = n2_student_quantile(0.975, dof[i + 1]);
        assert_true(heavy > light);
        assert_close(n2_student_quantile(0.025, dof[i]), -heavy, 1e-12, 0);
    }
}

static void student_quantile_at_the_ends(void **state) {
    (void)state;
    assert_close(n2_student_quantile(0.5, 3), 0, 0, 0);
    assert_close(n2_student_quantile(0, 3), -N2_INFINITY, 0, 0);
    assert_close(n2_student_quantile(1, 3), N2_INFINITY, 0, 0);
    assert_close(n2_student_quantile(0, 1e8), -N2_INFINITY, 0, 0);
    assert_close(n2_student_quantile(1e-300, 0.01), -N2_INFINITY, 0, 0); /* beyond DBL_MAX */
    assert_close(n2_student_quantile(0.3, 0), N2_NAN, 0, 0);
    assert_close(n2_student_quantile(0.3, -1), N2_NAN, 0, 0);
    assert_close(n2_student_quantile(2, 3), N2_NAN, 0, 0);
    assert_close(n2_student_quantile(0.3, N2_NAN), N2_NAN, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digamma_is_what_40_digits_say),
        cmocka_unit_test(digamma_obeys_its_recurrence),
        cmocka_unit_test(digamma_at_the_ends),
        cmocka_unit_test(normal_quantile_is_what_40_digits_say),
        cmocka_unit_test(normal_quantile_inverts_the_cdf),
        cmocka_unit_test(normal_quantile_at_the_ends),
        cmocka_unit_test(student_quantile_is_what_40_digits_say),
        cmocka_unit_test(student_has_closed_forms),
        cmocka_unit_test(student_quantile_falls_with_dof),
        cmocka_unit_test(student_quantile_at_the_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
