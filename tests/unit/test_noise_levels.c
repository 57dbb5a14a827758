/* Levels of noise, and the steps of samplers between them: numbers of the publications. */
#include "close.h"

#include "diffusion/noise_levels.h"

/* EDM's 18 levels. */
static void levels_of_heun(void **state) {
    (void)state;
    static const double sigma[] = {80,     57.586, 40.786, 28.375, 19.353, 12.910, 8.4009,
                                   5.3152, 3.2568, 1.9233, 1.0882, .5853,  .2964,  .1395,
                                   .0599,  .0229,  .0075,  .0020,  0};
    for (size_t i = 0; i < COUNT_OF(sigma); i++)
        assert_close(n2_karras_sigma(i, 18), sigma[i], 1e-4, 6e-5);
}

static void levels_of_sid(void **state) {
    (void)state;
    assert_close(n2_sid_sigma(0), 0.002, 1e-12, 0);
    assert_close(n2_sid_sigma(0.1), 0.0167, 5e-3, 0);
    assert_close(n2_sid_sigma(0.3), 0.318, 5e-3, 0);
    assert_close(n2_sid_sigma(0.5), 2.515, 5e-4, 0);
    assert_close(n2_sid_sigma(0.7), 12.38, 5e-4, 0);
    assert_close(n2_sid_sigma(N2_SID_SHARE), 24.41, 5e-4, 0);
}

static void ancestral_steps(void **state) {
    (void)state;
    static const double sigma[] = {80,     42.415, 21.109, 9.7232, 4.0661, 1.50174,
                                   .46998, .11664, .02044, .002,   0};
    static const double up[] = {35.963, 18.309, 8.6303, 3.6935, 1.39557,
                                .44637, .11299, .02012, .00199, 0};
    const n2_sampling how = {.kind = N2_SAMPLER_ANCESTRAL, .steps = 10};
    for (size_t i = 0; i < 10; i++) {
        const n2_denoise_step s = n2_sampling_step(&how, i);
        assert_close(s.sigma, sigma[i], 3e-4, 0);
        assert_close(s.next, sigma[i + 1], 3e-4, 0);
        assert_close(s.noise, up[i], 3e-4, 5e-6);
        /* what is left of the noise, and what is added, are that of the next level */
        const double kept = s.keep * s.sigma;
        assert_close(kept * kept + s.noise * s.noise, s.next * s.next, 1e-9, 0);
    }
    assert_close(n2_sampling_start(&how), 80, 0, 0);
}

static void rows_of_fastdpm(void **state) {
    (void)state;
    static const double variance[] = {.748225, .5929,   .455625, .3364,   .235225,
                                      .1521,   .087025, .04,     .011025, 1e-4};
    static const double row[10][4] = {
        {616.734, 1.992938, -1.506928, .837239}, {493.982, 1.567290, -0.970206, .717704},
        {394.076, 1.355348, -0.691730, .598730}, {308.868, 1.227572, -0.521499, .484738},
        {234.858, 1.143492, -0.406433, .377342}, {170.300, 1.085995, -0.320801, .276534},
        {114.363, 1.046575, -0.249465, .181899}, {66.865, 1.020621, -0.181347, .093701},
        {28.293, 1.005559, -0.105113, .009955},  {0, 1.000050, -0.010001, .001}};
    for (size_t i = 0; i < 10; i++) {
        const n2_fastdpm_row r = n2_fastdpm(i, 10);
        assert_close(r.variance, variance[i], 1e-9, 0);
        assert_close(r.time, row[i][0], 0, 2e-3);
        assert_close(r.x_factor, row[i][1], 0, 1e-6);
        assert_close(r.eps_factor, row[i][2], 0, 1e-6);
        assert_close(r.sigma, row[i][3], 0, 1e-6);
    }
    assert_close(n2_fastdpm(0, 10).before, 0.0208, 0, 5e-5);
    assert_close(n2_fastdpm(9, 10).after, 1, 0, 0);
}

/* Where the clamp does not bind, the product is that of DDPM's 1000 steps. */
static void many_steps_of_fastdpm_end_where_ddpm_does(void **state) {
    (void)state;
    assert_close(n2_fastdpm(0, 50).before, 4.04e-5, 5e-3, 0);
    assert_close(n2_fastdpm(0, 50).time, 999, 0, 1e-3);
}

/* The same step, of x = x_vp / sqrt(a), with eps = (x - D) / sigma. */
static void a_step_of_fastdpm_in_both_scales(void **state) {
    (void)state;
    const n2_sampling how = {.kind = N2_SAMPLER_FASTDPM, .steps = 10};
    const double x = 1.7, d = -0.3, z = 0.6;
    for (size_t i = 0; i < 9; i++) {
        const n2_fastdpm_row r = n2_fastdpm(i, 10);
        const n2_denoise_step s = n2_sampling_step(&how, i);
        const double eps = (x - d) / s.sigma;
        const double next = r.x_factor * sqrt(r.before) * x + r.eps_factor * eps + r.sigma * z;
        assert_close(s.keep * x + s.take * d + s.noise * z, next / sqrt(r.after), 1e-12, 0);
    }
}

/* Heun's churn brings the noise to sigma (1 + gamma), within EDM's levels alone. */
static void churn_adds_noise(void **state) {
    (void)state;
    const n2_sampling how = {.kind = N2_SAMPLER_HEUN, .steps = 256, .churn = 40};
    const double gamma = 40.0 / 256;
    const n2_denoise_step high = n2_sampling_step(&how, 0), middle = n2_sampling_step(&how, 128);
    assert_close(high.noise, 0, 0, 0);
    assert_close(middle.sigma, n2_karras_sigma(128, 256) * (1 + gamma), 1e-12, 0);
    assert_close(middle.noise / 1.003,
                 n2_karras_sigma(128, 256) * sqrt((1 + gamma) * (1 + gamma) - 1), 1e-12, 0);
    const n2_sampling still = {.kind = N2_SAMPLER_HEUN, .steps = 18};
    for (size_t i = 0; i < 18; i++) assert_close(n2_sampling_step(&still, i).noise, 0, 0, 0);
}

/* The variance that 18 steps make of N(0, variance), for which D is known, as a share of it. */
static double variance_made(double variance, double early) {
    const n2_sampling how = {.kind = N2_SAMPLER_HEUN, .steps = 18, .early = early};
    double x = n2_sampling_start(&how);
    for (size_t i = 0; i < how.steps; i++) {
        const n2_denoise_step s = n2_sampling_step(&how, i);
        const double shrunk = variance / (variance + s.sigma * s.sigma);
        const double u = (s.keep + s.take * shrunk) * x;
        const double left = s.middle / (variance + s.middle * s.middle); /* (u - D) / (u middle) */
        x = s.next > 0 ? x + s.first * (u - x) + s.rest * left * u : u;
    }
    return x * x / variance;
}

/* EDM's algorithm 3, computed beside: of Heun's rule, of the midpoint's, and between them. */
static void an_early_second_look_is_more_exact(void **state) {
    (void)state;
    static const double rows[][4] = {
        /* variance, made by Heun, with a second look at 0.6, at 0.5 of the step */
        {10, 1.063, 1.006, .994},
        {1, 1.091, 1.009, .993},
        {.1, 1.131, 1.011, .989},
        {.01, 1.188, 1.012, .982},
        {.001, 1.270, 1.009, .969}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_close(variance_made(rows[i][0], 0), rows[i][1], 0, 6e-4);
        assert_close(variance_made(rows[i][0], 0.4), rows[i][2], 0, 6e-4);
        assert_close(variance_made(rows[i][0], 0.5), rows[i][3], 0, 6e-4);
    }
}

static void costs_of_time(void **state) {
    (void)state;
    static const double cost[] = {.0113, .0294, .0718, .1497, .2311,
                                  .2311, .1497, .0718, .0294, .0113};
    double sum = 0;
    for (size_t t = 0; t < 10; t++) {
        assert_close(n2_dxmi_time_cost(t, 10), cost[t], 0, 5e-5);
        sum += n2_dxmi_time_cost(t, 10);
    }
    assert_close(sum, .987, 0, 5e-4);
}

static void noise_that_dxmi_begins_with(void **state) {
    (void)state;
    const n2_sampling how = {.kind = N2_SAMPLER_ANCESTRAL, .steps = 10};
    assert_close(exp(n2_few_steps_log_sigma(&how, 0)), 35.963, 1e-4, 0);
    assert_close(exp(n2_few_steps_log_sigma(&how, 8)), .00199, 5e-3, 0);
    assert_close(exp(n2_few_steps_log_sigma(&how, 9)), 1e-4, 1e-12, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_of_heun),
        cmocka_unit_test(levels_of_sid),
        cmocka_unit_test(ancestral_steps),
        cmocka_unit_test(rows_of_fastdpm),
        cmocka_unit_test(many_steps_of_fastdpm_end_where_ddpm_does),
        cmocka_unit_test(a_step_of_fastdpm_in_both_scales),
        cmocka_unit_test(churn_adds_noise),
        cmocka_unit_test(an_early_second_look_is_more_exact),
        cmocka_unit_test(costs_of_time),
        cmocka_unit_test(noise_that_dxmi_begins_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
