/* Samplers on densities whose answers are known. */
#include "close.h"
#include "cpu/cpu.h"

#include "engine/plan.h"
#include "rewrite/rewrites.h"
#include "sampler/svgd.h"

#include <stdlib.h>

typedef struct world {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
    n2_tensor *x;
} world;

static world new_world(int64_t n, int64_t d, double scale) {
    world w = {.plan = NULL};
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = 1;
    assert_int_equal(n2ce_ctx_new(&w.ctx, &options), N2CE_OK);
    assert_int_equal(n2_store_new(w.ctx, sizeof(float), &w.store), N2CE_OK);
    w.g = n2_graph_new(w.store);
    w.x = n2_store_add(w.store, "x", n2_dims(n, d));
    for (int64_t i = 0; i < n * d; i++) /* anything that is spread out */
        ((float *)w.x->data)[i] = (float)(scale * sin(12.9898 * (double)i + 1));
    return w;
}

static void run(world *w, n2_node out, uint64_t steps) {
    if (!w->plan)
        assert_int_equal(n2_plan_compile(w->g, n2_cpu_backend(), &out, 1, &w->plan), N2CE_OK);
    assert_int_equal(n2_plan_run_many(w->plan, steps), N2CE_OK);
}

static void free_world(world *w) {
    n2_plan_free(w->plan);
    n2_graph_free(w->g);
    n2_store_free(w->store);
    n2ce_ctx_free(w->ctx);
}

/* Mean and variance of all elements, over `rounds` looks that are `apart` steps apart. */
static void moments(world *w, n2_node out, int rounds, uint64_t apart, double *mean, double *var) {
    const int64_t n = n2_elements(w->x->shape);
    double sum = 0, square = 0;
    for (int r = 0; r < rounds; r++) {
        run(w, out, apart);
        for (int64_t i = 0; i < n; i++) {
            const double x = (double)((float *)w->x->data)[i];
            sum += x;
            square += x * x;
        }
    }
    *mean = sum / ((double)n * rounds);
    *var = square / ((double)n * rounds) - *mean * *mean;
}

static n2_node standard_normal(n2_graph *g, n2_node x, const void *model) {
    (void)model;
    return n2g_scale(g, n2g_sum(g, n2g_mul(g, x, x), n2_axis(1)), -0.5);
}

/* With f = 0 and s = 0.4 the paper's dynamics have variance 1 / (1 - s^2/4) = 1.0417. */
static void langevin_is_a_little_too_wide(void **state) {
    (void)state;
    world w = new_world(4096, 4, 1);
    const n2_node out = n2_langevin_step(w.g, w.x, standard_normal, NULL, 0.4, false);
    double mean, var;
    run(&w, out, 100);
    moments(&w, out, 20, 20, &mean, &var);
    assert_close(mean, 0, 0, 0.01);
    assert_close(var, 1.0417, 0.01, 0);
    free_world(&w);
}

/* Metropolis' test makes it exact, even with long steps. */
static void adjusted_langevin_is_exact(void **state) {
    (void)state;
    world w = new_world(4096, 2, 1);
    const n2_node out = n2_langevin_step(w.g, w.x, standard_normal, NULL, 1.2, true);
    double mean, var;
    run(&w, out, 100);
    moments(&w, out, 20, 20, &mean, &var);
    assert_close(mean, 0, 0, 0.015);
    assert_close(var, 1, 0.01, 0);
    free_world(&w);
}

/* 1/3 N(-2, 0.5^2) + 2/3 N(2, 0.5^2) in one dimension. */
static n2_node mixture(n2_graph *g, n2_node x, const void *model) {
    (void)model;
    const n2_node a = n2g_affine(g, x, 1, 2), b = n2g_affine(g, x, 1, -2);
    const n2_node pa = n2g_exp(g, n2g_scale(g, n2g_mul(g, a, a), -2));
    const n2_node pb = n2g_exp(g, n2g_scale(g, n2g_mul(g, b, b), -2));
    const n2_node p = n2g_add(g, n2g_scale(g, pa, 1 / 3.0), n2g_scale(g, pb, 2 / 3.0));
    return n2g_log(g, n2g_affine(g, p, 1, 1e-30));
}

static void langevin_moves_towards_the_data(void **state) {
    (void)state;
    world w = new_world(512, 1, 3);
    const n2_node out = n2_langevin_step(w.g, w.x, mixture, NULL, 0.2, false);
    run(&w, out, 400);
    int near = 0;
    for (int i = 0; i < 512; i++) near += fabs(fabs((double)((float *)w.x->data)[i]) - 2) < 1.5;
    assert_true(near > 500);
    free_world(&w);
}

/* Particles started between the modes take both, and have the right width within each. */
static void svgd_finds_both_modes(void **state) {
    (void)state;
    world w = new_world(200, 1, 2.5);
    const n2_node out = n2_svgd_step(w.g, "svgd", w.x, mixture, NULL, 0.05);
    run(&w, out, 1500);
    double sum[2] = {0, 0}, square[2] = {0, 0};
    int count[2] = {0, 0};
    for (int i = 0; i < 200; i++) {
        const double x = (double)((float *)w.x->data)[i];
        const int side = x > 0;
        count[side]++;
        sum[side] += x;
        square[side] += x * x;
    }
    assert_true(count[0] > 30 && count[1] > 60);
    for (int k = 0; k < 2; k++) {
        const double mean = sum[k] / count[k], var = square[k] / count[k] - mean * mean;
        assert_close(mean, k ? 2 : -2, 0, 0.15);
        assert_close(sqrt(var), 0.5, 0.3, 0);
    }
    free_world(&w);
}

/* A correlated Gaussian in two dimensions: mean (1, -1), variances 1, correlation 0.8. */
static n2_node tilted(n2_graph *g, n2_node x, const void *model) {
    (void)model;
    const n2_node a = n2g_affine(g, n2g_slice(g, x, 1, 0, 1), 1, -1);
    const n2_node b = n2g_affine(g, n2g_slice(g, x, 1, 1, 1), 1, 1);
    const n2_node squares = n2g_add(g, n2g_mul(g, a, a), n2g_mul(g, b, b));
    const n2_node cross = n2g_scale(g, n2g_mul(g, a, b), -1.6);
    return n2g_scale(g, n2g_add(g, squares, cross), -0.5 / 0.36);
}

static void svgd_has_the_moments_of_a_gaussian(void **state) {
    (void)state;
    world w = new_world(300, 2, 1.5);
    const n2_node out = n2_svgd_step(w.g, "svgd", w.x, tilted, NULL, 0.05);
    run(&w, out, 1500);
    double m[2] = {0, 0}, v[2] = {0, 0}, c = 0;
    const float *x = w.x->data;
    for (int i = 0; i < 600; i++) m[i % 2] += (double)x[i] / 300;
    for (int i = 0; i < 600; i++) v[i % 2] += pow((double)x[i] - m[i % 2], 2) / 300;
    for (int i = 0; i < 300; i++)
        c += ((double)x[2 * i] - m[0]) * ((double)x[2 * i + 1] - m[1]) / 300;
    assert_close(m[0], 1, 0, 0.05);
    assert_close(m[1], -1, 0, 0.05);
    assert_close(v[0], 1, 0.15, 0);
    assert_close(v[1], 1, 0.15, 0);
    assert_close(c / sqrt(v[0] * v[1]), 0.8, 0, 0.05);
    free_world(&w);
}

/* The kernel of one particle is 1, and nothing repels it: it climbs to the mean. */
static void one_particle_climbs(void **state) {
    (void)state;
    world w = new_world(1, 2, 1.5);
    const n2_node out = n2_svgd_step(w.g, "svgd", w.x, tilted, NULL, 0.05);
    run(&w, out, 1000);
    const float *x = w.x->data;
    assert_close((double)x[0], 1, 0, 1e-3);
    assert_close((double)x[1], -1, 0, 1e-3);
    free_world(&w);
}

/* Particles at one place have no median distance: nothing is divided by it, and they climb to the
 * mean, around which rounding sets them apart. */
static void particles_may_coincide(void **state) {
    (void)state;
    world w = new_world(8, 2, 1.5);
    float *x = w.x->data;
    for (int i = 2; i < 16; i++) x[i] = x[i % 2];
    const n2_node out = n2_svgd_step(w.g, "svgd", w.x, tilted, NULL, 0.05);
    run(&w, out, 300);
    for (int i = 0; i < 16; i++) assert_close((double)x[i], i % 2 ? -1 : 1, 0, 2.5);
    free_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(langevin_is_a_little_too_wide),
        cmocka_unit_test(adjusted_langevin_is_exact),
        cmocka_unit_test(langevin_moves_towards_the_data),
        cmocka_unit_test(svgd_finds_both_modes),
        cmocka_unit_test(svgd_has_the_moments_of_a_gaussian),
        cmocka_unit_test(one_particle_climbs),
        cmocka_unit_test(particles_may_coincide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
