/* Losses of SiD, SiDA and DxMI: what they are minimal at, and their gradients, in double; rates. */
#include "contexts.h"
#include "stores.h"

#include "diffusion/dxmi_loss.h"
#include "diffusion/picture_tensors.h"
#include "diffusion/sid_loss.h"
#include "ref/ref.h"
#include "rewrite/rewrites.h"

typedef struct bench {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_graph *g;
    n2_plan *plan;
} bench;

static bench begin(void) {
    bench b = {.ctx = new_ctx(1)};
    assert_int_equal(n2_store_new(b.ctx, sizeof(double), &b.store), N2CE_OK);
    b.g = n2_graph_new(b.store);
    assert_non_null(b.g);
    return b;
}

static void compile(bench *b, const n2_node *out, size_t n) {
    if (n2_plan_compile(b->g, n2_ref_backend(), out, n, &b->plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(b->ctx));
}

static void end(bench *b) {
    n2_plan_free(b->plan);
    n2_graph_free(b->g);
    n2_store_free(b->store);
    n2ce_ctx_free(b->ctx);
}

/* ---- critics ---- */

/* Values of two free numbers, on real and on made pictures, at the least loss. */
static void settle(const n2_critic *critic, bool energy, double *real, double *made) {
    bench b = begin();
    n2_parameters p = n2_parameters_new(b.store, 0);
    n2_tensor *x = n2_parameter_of(&p, "real", n2_dims(1), 0);
    n2_tensor *y = n2_parameter_of(&p, "made", n2_dims(1), 0);
    const n2_node r = n2g_read(b.g, x), m = n2g_read(b.g, y);
    const n2_node loss =
        energy ? n2_energy_loss(b.g, critic, r, m) : n2_critic_loss(b.g, critic, r, m);
    n2_node dx[2];
    const n2_node both[] = {r, m};
    n2g_grad(b.g, loss, both, 2, dx);
    n2g_assign(b.g, x, n2g_sub(b.g, r, n2g_scale(b.g, dx[0], 0.2)));
    n2g_assign(b.g, y, n2g_sub(b.g, m, n2g_scale(b.g, dx[1], 0.2)));
    compile(&b, NULL, 0);
    assert_int_equal(n2_plan_run_many(b.plan, 2000), N2CE_OK);
    n2_tensor_get(b.store, x, real);
    n2_tensor_get(b.store, y, made);
    end(&b);
}

static void fixed_points_of_regularised_critics(void **state) {
    (void)state;
    static const double rows[][4] = {
        /* lambda, M, real, made */
        {1.5, 1, .154, -.154},   {1.5, 10, .294, -.243},  {1.5, 50, .324, -.254},
        {1.5, 100, .329, -.256}, {1.5, 200, .331, -.257}, {1.5, 1e9, .333, -.258},
        {.75, 1, .286, -.286},   {.5, 1, .401, -.401},    {.5, 10, .816, -.547},
        {.5, 50, .951, -.563},   {.5, 100, .974, -.565},  {.25, 1, .675, -.675},
        {.4, 1, .478, -.478},    {.4, 50, 1.174, -.647},  {.4, 100, 1.209, -.649}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const n2_critic critic = {.magnitude = rows[i][1], .lambda = rows[i][0]};
        double real, made;
        settle(&critic, false, &real, &made);
        assert_close(real, rows[i][2], 0, 6e-4);
        assert_close(made, rows[i][3], 0, 6e-4);
        settle(&critic, true, &real, &made); /* an energy is minus a log ratio */
        assert_close(real, -rows[i][2], 0, 6e-4);
        assert_close(made, -rows[i][3], 0, 6e-4);
    }
}

/* The controls: M = 1 with a lambda that makes the gap of rewards that of M = 100, and of M = 50.
 */
static void controls_have_the_gap_of_what_they_control(void **state) {
    (void)state;
    static const double pairs[][4] = {{.73, 1, 1.5, 100}, {.21, 1, .5, 50}};
    for (size_t i = 0; i < 2; i++) {
        double real[2], made[2];
        for (size_t k = 0; k < 2; k++)
            settle(&(n2_critic){.lambda = pairs[i][2 * k], .magnitude = pairs[i][2 * k + 1]}, false,
                   &real[k], &made[k]);
        assert_close(real[0] - made[0], real[1] - made[1], 0.02, 0);
    }
}

static void contrastive_divergence_ends_at_a_half(void **state) {
    (void)state;
    double real, made;
    settle(&(n2_critic){.published = true}, true, &real, &made);
    assert_close(real, -.5, 0, 1e-9);
    assert_close(made, .5, 0, 1e-9);
}

/* ln(1 + M) + M ln(1 + 1/M) */
static void loss_of_a_blind_critic(void **state) {
    (void)state;
    static const double rows[][2] = {
        {1, 1.386294}, {10, 3.350997}, {50, 4.921957}, {100, 5.610154}, {200, 6.300813}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bench b = begin();
        const n2_node zero = n2g_broadcast(b.g, n2g_constant(b.g, 0), n2_dims(7, 4, 4, 1));
        const n2_critic critic = {.magnitude = rows[i][0], .lambda = 0.5};
        const n2_node loss = n2_critic_loss(b.g, &critic, zero, zero);
        compile(&b, &loss, 1);
        assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
        assert_close(n2_plan_scalar(b.plan, 0), rows[i][1], 0, 5e-7);
        end(&b);
    }
}

/* ---- SiD ---- */

/* The smallest U-Nets: a level, a block. */
static const n2_unet_spec tiny = {.kind = N2_UNET_DDPMPP,
                                  .channels = 1,
                                  .base = 8,
                                  .multiples = {1, 1},
                                  .levels = 2,
                                  .blocks = 1};
enum { N = 3, SIDE = 4 };

typedef struct sid {
    bench b;
    n2_score_net teacher, fake, generator;
    n2_tensor *z, *noise, *sigma, *scale;
    n2_node loss, logits;
} sid;

/* Networks whose last layers are not nearly zero, as they begin. */
static n2_score_net new_net(n2_store *store, const char *name, uint64_t seed) {
    n2_score_net net;
    assert_int_equal(n2_score_net_new(store, name, &tiny, seed, &net), N2CE_OK);
    for (size_t i = 0; i < net.parameters.n; i++) {
        double *x = net.parameters.list[i]->data;
        const int64_t n = n2_elements(net.parameters.list[i]->shape);
        for (int64_t k = 0; k < n; k++)
            x[k] += 0.2 * sin(1.0 + (double)(seed * 31 + i * 7) + (double)k);
    }
    return net;
}

static n2_tensor *filled(n2_store *store, const char *name, n2_shape shape, double phase) {
    n2_tensor *t = n2_store_add(store, name, shape);
    assert_non_null(t);
    for (int64_t i = 0; i < n2_elements(shape); i++)
        ((double *)t->data)[i] = 1.3 * sin(phase + 2.1 * (double)i);
    return t;
}

/* L of a batch with given noise; a fake score of seed 1 is the teacher. `scale` stays what it is
 * where a gradient is taken. */
static void build_sid(sid *s, uint64_t fake_seed, double alpha) {
    const n2_edm edm = N2_EDM_DEFAULTS;
    const n2_shape shape = n2_dims(N, SIDE, SIDE, 1);
    n2_graph *g;
    s->b = begin();
    g = s->b.g;
    s->teacher = new_net(s->b.store, "teacher.", 1);
    s->fake = new_net(s->b.store, "fake.", fake_seed);
    if (fake_seed == 1) assert_int_equal(n2_score_net_copy(&s->fake, &s->teacher), N2CE_OK);
    s->generator = new_net(s->b.store, "generator.", 3);
    s->z = filled(s->b.store, "z", shape, 0.1);
    s->noise = filled(s->b.store, "noise", shape, 0.7);
    s->sigma = n2_store_add(s->b.store, "sigma", n2_dims(N));
    s->scale = n2_store_add(s->b.store, "scale", n2_dims(N, 1, 1, 1));
    for (int i = 0; i < N; i++) {
        ((double *)s->sigma->data)[i] = 0.3 + 0.8 * i;
        ((double *)s->scale->data)[i] = 0.5 + i;
    }
    const n2_node y =
        n2_generate(g, &edm, &s->generator.unet, n2g_read(g, s->z), N2_NONE, 2.5, true);
    const n2_node sigma = n2g_reshape(g, n2g_read(g, s->sigma), n2_dims(N, 1, 1, 1));
    n2_node bottom = N2_NONE;
    n2_unet_input in = {.x = n2g_add(g, y, n2g_mul(g, sigma, n2g_read(g, s->noise))),
                        .level = n2g_read(g, s->sigma)};
    const n2_node a = n2_edm_denoise(g, &edm, &s->teacher.unet, &in);
    in.bottom = &bottom;
    const n2_node d = n2_edm_denoise(g, &edm, &s->fake.unet, &in);
    s->loss = n2_sid_loss(g, a, d, y, n2g_read(g, s->scale), alpha);
    s->logits = n2_logit_map(g, bottom);
}

/* The gradients by all parameters of the generator as outputs after the loss. */
static void compile_sid(sid *s, n2_node loss) {
    enum { MOST = 128 };
    const n2_parameters *p = &s->generator.parameters;
    n2_node x[MOST], out[MOST + 1] = {loss};
    assert_true(p->n <= MOST);
    for (size_t i = 0; i < p->n; i++) x[i] = n2g_read(s->b.g, p->list[i]);
    n2g_grad(s->b.g, loss, x, p->n, out + 1);
    compile(&s->b, out, p->n + 1);
    assert_int_equal(n2_plan_run(s->b.plan), N2CE_OK);
}

static double gradient_at(const sid *s, size_t parameter, size_t k) {
    double *all = values_of(s->b.store, s->generator.parameters.list[parameter]);
    n2_plan_get(s->b.plan, parameter + 1, all);
    const double x = all[k];
    free(all);
    return x;
}

/* A fake score that is the teacher: nothing to learn, exactly. */
static void equal_networks_have_no_loss_and_no_gradient(void **state) {
    (void)state;
    sid s;
    build_sid(&s, 1, 1.2);
    compile_sid(&s, s.loss);
    assert_true(n2_plan_scalar(s.b.plan, 0) == 0);
    for (size_t i = 0; i < s.generator.parameters.n; i++) assert_true(gradient_at(&s, i, 0) == 0);
    end(&s.b);
}

static double loss_after(const sid *s, double *x, double value) {
    *x = value;
    assert_int_equal(n2_plan_run(s->b.plan), N2CE_OK);
    return n2_plan_scalar(s->b.plan, 0);
}

/* By central differences, of the first and the last number of every parameter. */
static void check_gradient(sid *s, n2_node loss) {
    static const double H = 1e-5;
    compile_sid(s, loss);
    double size = 0;
    for (size_t i = 0; i < s->generator.parameters.n; i += 3) {
        const n2_tensor *t = s->generator.parameters.list[i];
        const size_t last = (size_t)n2_elements(t->shape) - 1;
        double *x = (double *)t->data + last;
        const double value = *x;
        loss_after(s, x, value);
        const double gradient = gradient_at(s, i, last);
        const double slope = (loss_after(s, x, value + H) - loss_after(s, x, value - H)) / (2 * H);
        loss_after(s, x, value);
        assert_close(gradient, slope, 1e-5, 1e-6);
        size = fmax(size, fabs(slope));
    }
    assert_true(size > 1e-3);
}

static void gradient_of_sid_goes_through_both_networks(void **state) {
    (void)state;
    sid s;
    build_sid(&s, 2, 1.2);
    check_gradient(&s, s.loss);
    end(&s.b);
}

static void gradient_of_the_discriminator_reaches_the_generator(void **state) {
    (void)state;
    sid s;
    build_sid(&s, 2, 1.2);
    check_gradient(&s, n2_adversarial_loss(s.b.g, s.logits, n2g_read(s.b.g, s.scale), 1e5));
    end(&s.b);
}

/* 1 / the mean distance of a picture from what the teacher makes of it, and never more than 1e5. */
static void scales_of_pictures(void **state) {
    (void)state;
    bench b = begin();
    n2_tensor *y = n2_store_add(b.store, "y", n2_dims(2, 2, 2, 1));
    n2_tensor *a = n2_store_add(b.store, "a", n2_dims(2, 2, 2, 1));
    const double made[] = {1, -1, 2, 0, 0, 0, 0, 0};
    double scale[2];
    n2_tensor_set(b.store, y, made);
    const n2_node out = n2_sid_scale(b.g, n2g_read(b.g, y), n2g_read(b.g, a));
    compile(&b, &out, 1);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    n2_plan_get(b.plan, 0, scale);
    assert_close(scale[0], 1, 1e-12, 0);
    assert_close(scale[1], 1e5, 1e-9, 0);
    end(&b);
}

/* ---- rates ---- */

static double rate_at(double step, n2_rate_course course) {
    bench b = begin();
    double factor;
    const n2_node out = n2_rate_factor(b.g, n2g_constant(b.g, step), &course);
    compile(&b, &out, 1);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    n2_plan_get(b.plan, 0, &factor);
    end(&b);
    return factor;
}

static void rates_rise_and_fall(void **state) {
    (void)state;
    const n2_rate_course course = {.steps = 100, .ramp = 10, .fall = 50}, still = {.steps = 100};
    static const double rows[][2] = {{1, .1}, {10, 1}, {51, 1}, {76, .5}, {100, .02}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_close(rate_at(rows[i][0], course), rows[i][1], 1e-12, 0);
        assert_close(rate_at(rows[i][0], still), 1, 1e-12, 0);
    }
}

/* ---- DxMI ---- */

static void velocity_follows_the_pictures(void **state) {
    (void)state;
    bench b = begin();
    n2_tensor *x = filled(b.store, "x", n2_dims(2, 2, 2, 1), 0);
    n2_tensor *y = filled(b.store, "y", n2_dims(2, 2, 2, 1), 1);
    n2_tensor *s2 = n2_store_add(b.store, "s2", n2_dims(1));
    *(double *)s2->data = 3;
    double m = 0;
    for (int i = 0; i < 8; i++) {
        const double way = ((double *)y->data)[i] - ((double *)x->data)[i];
        m += way * way / 8;
    }
    const n2_node to = n2g_read(b.g, y), from = n2g_read(b.g, x);
    const n2_node s = n2g_broadcast(b.g, n2g_constant(b.g, 2), n2_dims(2, 1, 1, 1));
    const n2_node out[] = {n2_adapt_velocity(b.g, n2g_read(b.g, s2), from, to),
                           n2_mean_of(b.g, n2_velocity(b.g, from, to, s))};
    compile(&b, out, 2);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    assert_close(n2_plan_scalar(b.plan, 0), .99 * 3 + .01 * m, 1e-12, 0);
    assert_close(n2_plan_scalar(b.plan, 1), m / 4, 1e-12, 0);
    end(&b);
}

/* V(x) learns, V of the next state does not. */
static void values_follow_the_next_state(void **state) {
    (void)state;
    bench b = begin();
    n2_parameters p = n2_parameters_new(b.store, 0);
    const n2_node now = n2g_read(b.g, n2_parameter_of(&p, "now", n2_dims(4, 1), 0.5));
    const n2_node next = n2g_read(b.g, n2_parameter_of(&p, "next", n2_dims(4, 1), 0.2));
    const n2_node loss = n2_temporal_loss(b.g, now, next, n2g_constant(b.g, 0.1));
    n2_node out[3] = {loss}, dx[2];
    double by_now[4], by_next[4];
    const n2_node both[] = {now, next};
    n2g_grad(b.g, loss, both, 2, dx);
    out[1] = dx[0];
    out[2] = dx[1];
    compile(&b, out, 3);
    assert_int_equal(n2_plan_run(b.plan), N2CE_OK);
    n2_plan_get(b.plan, 1, by_now);
    n2_plan_get(b.plan, 2, by_next);
    assert_close(n2_plan_scalar(b.plan, 0), 0.04, 1e-6, 0);
    assert_close(by_now[2], 2 * 0.2 / 4, 1e-6, 0);
    assert_true(by_next[2] == 0);
    end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_points_of_regularised_critics),
        cmocka_unit_test(controls_have_the_gap_of_what_they_control),
        cmocka_unit_test(contrastive_divergence_ends_at_a_half),
        cmocka_unit_test(loss_of_a_blind_critic),
        cmocka_unit_test(equal_networks_have_no_loss_and_no_gradient),
        cmocka_unit_test(gradient_of_sid_goes_through_both_networks),
        cmocka_unit_test(gradient_of_the_discriminator_reaches_the_generator),
        cmocka_unit_test(scales_of_pictures),
        cmocka_unit_test(rates_rise_and_fall),
        cmocka_unit_test(velocity_follows_the_pictures),
        cmocka_unit_test(values_follow_the_next_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
