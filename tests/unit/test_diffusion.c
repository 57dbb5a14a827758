/* Diffusion of codes: its schedule, single steps in closed form, gradients, and a sampler that
 * learns to repeat Langevin dynamics. */
#include "contexts.h"
#include "stores.h"

#include "base/random.h"
#include "cpu/cpu.h"
#include "lebm/damc.h"
#include "ref/ref.h"
#include "rewrite/rewrites.h"
#include "sampler/langevin.h"
#include "train/train.h"

#include <math.h>
#include <string.h>

/* ---- the schedule ---------------------------------------------------------------------------- */

static void the_schedule_has_the_published_ends(void **state) {
    (void)state;
    assert_close(n2_diffusion_log_snr(0), 9.8, 1e-12, 0);
    assert_close(n2_diffusion_log_snr(1), -5.1, 1e-12, 0);
    assert_close(sin(n2_diffusion_angle(0)), 0.0074, 0, 5e-5);
    assert_close(cos(n2_diffusion_angle(1)), 0.0778, 0, 5e-5);
    for (int i = 0; i <= 10; i++) { /* signal^2 is the logistic function of lambda */
        const double u = i / 10.0, c = cos(n2_diffusion_angle(u));
        assert_close(c * c, 1 / (1 + exp(-n2_diffusion_log_snr(u))), 1e-12, 0);
    }
}

/* ---- the network ----------------------------------------------------------------------------- */

static void the_published_network_has_its_size(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_store *store;
    assert_int_equal(n2_store_new(ctx, sizeof(float), &store), N2CE_OK);
    n2_parameters p = n2_parameters_to_count(store);
    n2_damc_net_new(&p, 8, 128, 1024);
    assert_close((double)n2_parameters_count(&p), 2.84e6, 0, 0.005e6);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

enum { ROWS = 6, NZ = 4, WIDTH = 8, EMBEDDING = 5 };

typedef struct bench {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_parameters parameters;
    n2_damc_net net;
    n2_tensor *z, *embedding, *u, *eps;
} bench;

static n2_tensor *drawn(n2_store *store, const char *name, n2_shape shape, uint32_t stream) {
    n2_tensor *t = n2_store_add(store, name, shape);
    double values[256];
    float draws[256];
    assert_non_null(t);
    n2_fill_normal((n2_stream){5, stream, 0}, 0, (size_t)n2_elements(shape), draws);
    for (int64_t i = 0; i < n2_elements(shape); i++) values[i] = (double)draws[i];
    n2_tensor_set(store, t, values);
    return t;
}

static bench new_bench(void) {
    bench b = {.ctx = new_ctx(1)};
    assert_int_equal(n2_store_new(b.ctx, sizeof(double), &b.store), N2CE_OK);
    b.parameters = n2_parameters_new(b.store, 3);
    b.net = n2_damc_net_new(&b.parameters, NZ, WIDTH, EMBEDDING);
    assert_false(b.parameters.failed);
    b.z = drawn(b.store, "z", n2_dims(ROWS, NZ), 1);
    b.embedding = drawn(b.store, "embedding", n2_dims(ROWS, EMBEDDING), 2);
    b.eps = drawn(b.store, "eps", n2_dims(ROWS, NZ), 3);
    b.u = n2_store_add(b.store, "u", n2_dims(ROWS));
    n2_tensor_set(b.store, b.u, (double[ROWS]){0, 0.1, 0.3, 0.5, 0.8, 1});
    return b;
}

static void free_bench(bench *b) {
    n2_store_free(b->store);
    n2ce_ctx_free(b->ctx);
}

static void run_once(const bench *b, n2_graph *g, const n2_node *out, size_t n, double *values[]) {
    n2_plan *plan;
    if (n2_plan_compile(g, n2_ref_backend(), out, n, &plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(b->ctx));
    assert_int_equal(n2_plan_run(plan), N2CE_OK);
    for (size_t i = 0; i < n; i++) n2_plan_get(plan, i, values[i]);
    n2_plan_free(plan);
    n2_graph_free(g);
}

static n2_node loss_of(n2_graph *g, const bench *b) {
    return n2_diffusion_loss(g, &b->net, n2g_read(g, b->z), n2g_read(g, b->embedding),
                             n2g_read(g, b->u), n2g_read(g, b->eps));
}

static void clear(const bench *b, const n2_layer *layer) {
    double zeros[256] = {0};
    n2_tensor_set(b->store, layer->weight, zeros);
    if (layer->bias) n2_tensor_set(b->store, layer->bias, zeros);
}

/* What is learnt is the rest: a last layer of zeros leaves the noisy code as the estimate. */
static void the_network_adds_to_its_input(void **state) {
    (void)state;
    bench b = new_bench();
    const n2_gated_layer *last = &b.net.up[N2_DAMC_LEVELS - 1];
    clear(&b, &last->linear);
    clear(&b, &last->shift);
    clear(&b, &last->skip);
    n2_graph *g = n2_graph_new(b.store);
    const n2_node angle = n2_diffusion_angles(g, n2g_read(g, b.u));
    const n2_node y =
        n2_damc_net_apply(g, &b.net, n2g_read(g, b.z), angle, n2g_read(g, b.embedding));
    double out[ROWS * NZ], z[ROWS * NZ];
    run_once(&b, g, &y, 1, (double *[]){out});
    n2_tensor_get(b.store, b.z, z);
    for (int i = 0; i < ROWS * NZ; i++) assert_close(out[i], z[i], 1e-14, 0);
    /* and then the loss is that of (1 - sin) eps - cos z */
    const n2_node loss = loss_of(g = n2_graph_new(b.store), &b);
    double value, expected = 0, eps[ROWS * NZ], u[ROWS];
    run_once(&b, g, &loss, 1, (double *[]){&value});
    n2_tensor_get(b.store, b.eps, eps);
    n2_tensor_get(b.store, b.u, u);
    for (int i = 0; i < ROWS * NZ; i++) {
        const double theta = n2_diffusion_angle(u[i / NZ]);
        const double miss = (1 - sin(theta)) * eps[i] - cos(theta) * z[i];
        expected += 0.5 * miss * miss / ROWS;
    }
    assert_close(value, expected, 1e-12, 0);
    free_bench(&b);
}

/* Differences of the loss, of one number of every parameter. */
static void gradients_are_those_of_differences(void **state) {
    (void)state;
    bench b = new_bench();
    const double h = 1e-5;
    for (size_t i = 0; i < b.parameters.n; i++) {
        n2_tensor *t = b.parameters.list[i];
        const size_t n = (size_t)n2_elements(t->shape), at = n / 2;
        double *values = values_of(b.store, t), grad[4096], side[2];
        n2_graph *g = n2_graph_new(b.store);
        const n2_node w = n2g_read(g, t);
        n2_node d;
        n2g_grad(g, loss_of(g, &b), &w, 1, &d);
        assert_true(n <= 4096);
        run_once(&b, g, &d, 1, (double *[]){grad});
        for (int k = 0; k < 2; k++) {
            const double before = values[at];
            values[at] += k ? h : -h;
            n2_tensor_set(b.store, t, values);
            const n2_node loss = loss_of(g = n2_graph_new(b.store), &b);
            run_once(&b, g, &loss, 1, (double *[]){&side[k]});
            values[at] = before;
        }
        n2_tensor_set(b.store, t, values);
        assert_close((side[1] - side[0]) / (2 * h), grad[at], 1e-5, 1e-7);
        free(values);
    }
    free_bench(&b);
}

/* ---- steps ----------------------------------------------------------------------------------- */

enum { MANY = 4000 };

/* One step of MANY equal codes z = 1, by a network that takes them for noise: z(0) is estimated as
 * (1 - sin) / cos. */
static void step_from(double left, double *mean, double *sd) {
    bench b = new_bench();
    const n2_gated_layer *last = &b.net.up[N2_DAMC_LEVELS - 1];
    clear(&b, &last->linear);
    clear(&b, &last->shift);
    clear(&b, &last->skip);
    const n2_diffusion_chain chain = n2_diffusion_chain_new(b.store, "chain", MANY, NZ);
    double *z = values_of(b.store, chain.z);
    for (int i = 0; i < MANY * NZ; i++) z[i] = 1;
    n2_tensor_set(b.store, chain.z, z);
    n2_tensor_set(b.store, chain.left, &left);
    n2_graph *g = n2_graph_new(b.store);
    const n2_node zero = n2g_broadcast(g, n2g_constant(g, 0), n2_dims(MANY, EMBEDDING));
    n2_diffusion_step(g, &chain, &b.net, zero);
    run_once(&b, g, NULL, 0, NULL);
    n2_tensor_get(b.store, chain.z, z);
    double sum = 0, squares = 0, after;
    for (int i = 0; i < MANY * NZ; i++) sum += z[i] / (MANY * NZ);
    for (int i = 0; i < MANY * NZ; i++) squares += (z[i] - sum) * (z[i] - sum) / (MANY * NZ);
    n2_tensor_get(b.store, chain.left, &after);
    assert_true(after == left - 1);
    *mean = sum;
    *sd = sqrt(squares);
    free(z);
    free_bench(&b);
}

static void steps_have_the_mean_and_variance_they_should(void **state) {
    (void)state;
    for (int place = 99; place > 0; place -= 49) {
        const double lt = n2_diffusion_log_snr(place / 99.0);
        const double ls = n2_diffusion_log_snr((place - 1) / 99.0), r = exp(lt - ls);
        const double clean = sqrt(1 + exp(-lt)) * (1 - 1 / sqrt(1 + exp(lt)));
        const double mean =
            r * sqrt((1 + exp(-lt)) / (1 + exp(-ls))) + (1 - r) * sqrt(1 / (1 + exp(-ls))) * clean;
        const double sd = sqrt((1 - r) / (1 + exp(lt)));
        double m, s;
        step_from(place + 1, &m, &s);
        assert_close(s, sd, 0.03, 0);
        assert_close(m, mean, 0, 4 * sd / sqrt(MANY * NZ) + 1e-12);
    }
}

static void the_last_step_leaves_the_estimate(void **state) {
    (void)state;
    const double theta = n2_diffusion_angle(0);
    double mean, sd;
    step_from(1, &mean, &sd);
    assert_close(mean, (1 - sin(theta)) / cos(theta), 1e-12, 0);
    assert_true(sd < 1e-12);
}

/* ---- a sampler learns what Langevin dynamics does -------------------------------------------- */

/* DAMC's toy: codes on the two arms of a pinwheel, a random network as the decoder, noise of 0.25.
 * The sampler sees x, draws z, Langevin dynamics on ln p(x, z) improves it, and the sampler
 * learns from that. */
enum { TOY_BATCH = 128, TOY_TEST = 256, TOY_WIDTH = 16, TOY_EMBEDDING = 16, TOY_POINTS = 4096 };
static const double TOY_NOISE = 0.25, TOY_STEPS = 250, TOY_LEARNS = 6 * 250;

typedef struct toy {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_parameters fixed, parameters;
    n2_mlp decoder, embed, slow_embed;
    n2_damc_net net, slow;
    n2_tensor *points, *x, *embedding;
    n2_diffusion_chain chain;
} toy;

/* Two arms, radial sd 0.3, tangential 0.1, turned by 0.25 a unit of radius' logarithm. */
static void fill_pinwheel(float *z, size_t n) {
    n2_fill_normal((n2_stream){11, 1, 0}, 0, 2 * n, z);
    for (size_t i = 0; i < n; i++) {
        const double radial = 0.3 * (double)z[2 * i] + 1, across = 0.1 * (double)z[2 * i + 1];
        const double turn = 3.14159265358979 * (double)(i % 2) + 0.25 * exp(radial);
        z[2 * i] = (float)(2 * (cos(turn) * radial - sin(turn) * across));
        z[2 * i + 1] = (float)(2 * (sin(turn) * radial + cos(turn) * across));
    }
}

static void randomise_decoder(const toy *t) {
    for (size_t i = 0; i < t->fixed.n; i++) {
        const n2_tensor *p = t->fixed.list[i];
        float *w = p->data;
        const bool bias = p->shape.rank == 1;
        n2_fill_normal((n2_stream){12, (uint32_t)i, 0}, 0, (size_t)n2_elements(p->shape), w);
        for (int64_t k = 0; k < n2_elements(p->shape); k++) w[k] *= bias ? 0.1f : 0.4f;
    }
}

static toy new_toy(void) {
    toy t = {.ctx = new_ctx(2)};
    assert_int_equal(n2_store_new(t.ctx, sizeof(float), &t.store), N2CE_OK);
    t.fixed = n2_parameters_new(t.store, 1);
    t.parameters = n2_parameters_new(t.store, 2);
    t.decoder = n2_mlp_new(&t.fixed, "decoder", (int64_t[]){2, 32, 32, 32, 2}, 5, 0);
    t.embed = n2_mlp_new(&t.parameters, "embed", (int64_t[]){2, 32, TOY_EMBEDDING}, 3, 0.2);
    t.net = n2_damc_net_new(&t.parameters, 2, TOY_WIDTH, TOY_EMBEDDING);
    assert_int_equal(n2_averages_add(&t.parameters), N2CE_OK);
    assert_int_equal(n2_averaged_mlp(t.store, &t.embed, &t.slow_embed), N2CE_OK);
    t.slow = n2_averaged_damc_net(t.store, &t.net);
    t.points = n2_store_add(t.store, "points", n2_dims(TOY_POINTS, 2));
    t.x = n2_store_add(t.store, "x", n2_dims(TOY_BATCH, 2));
    t.embedding = n2_store_add(t.store, "embedding", n2_dims(TOY_BATCH, TOY_EMBEDDING));
    t.chain = n2_diffusion_chain_new(t.store, "chain", TOY_BATCH, 2);
    randomise_decoder(&t);
    fill_pinwheel(t.points->data, TOY_POINTS);
    return t;
}

static n2_node observe(n2_graph *g, const toy *t, int64_t n) {
    const n2_node pick = n2g_randint(g, n2_dims(n), TOY_POINTS);
    const n2_node z = n2g_gather(g, n2g_read(g, t->points), pick);
    const n2_node noise = n2g_scale(g, n2g_randn(g, n2_dims(n, 2)), TOY_NOISE);
    return n2g_add(g, n2_mlp_apply(g, &t->decoder, z), noise);
}

typedef struct toy_posterior {
    const toy *t;
    n2_tensor *x;
} toy_posterior;

static n2_node squares(n2_graph *g, n2_node x) { return n2g_sum(g, n2g_mul(g, x, x), n2_axis(1)); }

static n2_node misfit(n2_graph *g, const toy *t, n2_tensor *x, n2_node z) {
    return squares(g, n2g_sub(g, n2g_read(g, x), n2_mlp_apply(g, &t->decoder, z)));
}

static n2_node log_posterior(n2_graph *g, n2_node z, const void *model) {
    const toy_posterior *p = model;
    const n2_node fit = n2g_scale(g, misfit(g, p->t, p->x, z), -0.5 / (TOY_NOISE * TOY_NOISE));
    return n2g_add(g, fit, n2g_scale(g, squares(g, z), -0.5));
}

static n2ce_status build_begin(void *user, n2_graph *g, n2_outputs *out) {
    const toy *t = user;
    const n2_node x = observe(g, t, TOY_BATCH);
    (void)out;
    n2g_assign(g, t->embedding, n2_mlp_apply(g, &t->slow_embed, x));
    n2g_assign(g, t->x, x);
    n2_diffusion_begin(g, &t->chain);
    return N2CE_OK;
}

static n2ce_status build_draw(void *user, n2_graph *g, n2_outputs *out) {
    const toy *t = user;
    (void)out;
    n2_diffusion_step(g, &t->chain, &t->slow, n2g_read(g, t->embedding));
    return N2CE_OK;
}

static n2ce_status build_move(void *user, n2_graph *g, n2_outputs *out) {
    const toy *t = user;
    const toy_posterior p = {t, t->x};
    (void)out;
    n2_langevin_step(g, t->chain.z, log_posterior, &p, 0.1, false);
    return N2CE_OK;
}

static n2ce_status build_learn(void *user, n2_graph *g, n2_outputs *out) {
    const toy *t = user;
    const n2_node e = n2_mlp_apply(g, &t->embed, n2g_read(g, t->x));
    const n2_node loss =
        n2_diffusion_loss(g, &t->net, n2g_read(g, t->chain.z), e, N2_NONE, N2_NONE);
    const n2_optimiser adam = {.adam = {0.5, 0.999, 1e-8, 0},
                               .rate = 3e-3,
                               .clip = 100,
                               .schedule = n2_schedule_cosine,
                               .schedule_arg = &TOY_LEARNS};
    (void)out;
    n2_minimise(g, &adam, "adam", &t->parameters, loss, NULL);
    return N2CE_OK;
}

static n2ce_status build_slow(void *user, n2_graph *g, n2_outputs *out) {
    const toy *t = user;
    (void)out;
    for (size_t i = 0; i < t->parameters.n; i++)
        n2_average(g, n2_average_of(t->store, t->parameters.list[i]), t->parameters.list[i], 0.9);
    return N2CE_OK;
}

static void train_toy(toy *t, uint64_t steps) {
    const n2_phase phase = {.build = build_slow,
                            .steps = steps,
                            .seed = 1,
                            .inner = {{build_begin, 1, 2, 1},
                                      {build_draw, N2_DIFFUSION_STEPS, 3, 1},
                                      {build_move, 20, 4, 1},
                                      {build_learn, 6, 5, 1}}};
    const n2_trainer trainer = {.store = t->store, .user = t, .phases = &phase, .n_phases = 1};
    n2_phase_record record;
    assert_int_equal(n2_train(&trainer, &record), N2CE_OK);
}

static void run_plan(n2_graph *g, uint64_t seed, uint64_t times, n2_node out, double *value) {
    n2_plan *plan;
    assert_int_equal(n2_plan_compile(g, n2_cpu_backend(), &out, value ? 1 : 0, &plan), N2CE_OK);
    n2_plan_seed(plan, seed, 0);
    assert_int_equal(n2_plan_run_many(plan, times), N2CE_OK);
    if (value) *value = n2_plan_scalar(plan, 0);
    n2_plan_free(plan);
    n2_graph_free(g);
}

static double mean_misfit(const toy *t, n2_tensor *x, n2_tensor *z) {
    n2_graph *g = n2_graph_new(t->store);
    double value;
    const n2_node all = n2g_mean(g, misfit(g, t, x, n2g_read(g, z)), N2_ALL_AXES);
    run_plan(g, 1, 1, n2g_total(g, all), &value);
    return value;
}

static void the_sampler_learns_langevin_dynamics(void **state) {
    (void)state;
    toy t = new_toy();
    n2_tensor *x = n2_store_add(t.store, "test.x", n2_dims(TOY_TEST, 2));
    n2_tensor *e = n2_store_add(t.store, "test.embedding", n2_dims(TOY_TEST, TOY_EMBEDDING));
    const n2_diffusion_chain drawn_codes = n2_diffusion_chain_new(t.store, "test", TOY_TEST, 2);
    const n2_diffusion_chain moved = n2_diffusion_chain_new(t.store, "moved", TOY_TEST, 2);
    const toy_posterior p = {&t, x};
    train_toy(&t, (uint64_t)TOY_STEPS);
    n2_graph *g = n2_graph_new(t.store);
    const n2_node seen = observe(g, &t, TOY_TEST);
    n2g_assign(g, x, seen);
    n2g_assign(g, e, n2_mlp_apply(g, &t.embed, seen));
    n2_diffusion_begin(g, &drawn_codes);
    n2_diffusion_begin(g, &moved);
    run_plan(g, 7, 1, N2_NONE, NULL);
    const double noise = mean_misfit(&t, x, moved.z);
    g = n2_graph_new(t.store);
    n2_diffusion_step(g, &drawn_codes, &t.net, n2g_read(g, e));
    run_plan(g, 8, N2_DIFFUSION_STEPS, N2_NONE, NULL);
    g = n2_graph_new(t.store);
    n2_langevin_step(g, moved.z, log_posterior, &p, 0.1, false);
    run_plan(g, 9, 1000, N2_NONE, NULL);
    const double by_sampler = mean_misfit(&t, x, drawn_codes.z);
    const double by_dynamics = mean_misfit(&t, x, moved.z);
    print_message("misfit: of noise %.3f, of the sampler %.3f, of 1000 steps %.3f\n", noise,
                  by_sampler, by_dynamics);
    assert_true(by_dynamics < 0.3 * noise);
    assert_true(by_sampler < 1.5 * by_dynamics && by_sampler > 0.6 * by_dynamics);
    n2_store_free(t.store);
    n2ce_ctx_free(t.ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_schedule_has_the_published_ends),
        cmocka_unit_test(the_published_network_has_its_size),
        cmocka_unit_test(the_network_adds_to_its_input),
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(steps_have_the_mean_and_variance_they_should),
        cmocka_unit_test(the_last_step_leaves_the_estimate),
        cmocka_unit_test(the_sampler_learns_langevin_dynamics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
