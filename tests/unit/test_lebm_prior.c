/* Priors of codes: losses of known value, ratios of known distributions, chains that go to data. */
#include "contexts.h"

#include "base/random.h"
#include "cpu/cpu.h"
#include "lebm/lebm.h"
#include "rewrite/rewrites.h"
#include "train/train.h"

#include <string.h>

enum { CODES = 2048, BATCH = 256, CHAINS = 1024 };

typedef struct world {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_tensor *codes;
    n2_prior prior;
} world;

static world new_world(n2_prior_spec spec, int64_t nz) {
    world w = {.ctx = new_ctx(2)};
    assert_int_equal(n2_store_new(w.ctx, sizeof(float), &w.store), N2CE_OK);
    assert_int_equal(n2_prior_new(w.store, &spec, nz, 1, &w.prior), N2CE_OK);
    w.codes = n2_store_add(w.store, "codes", n2_dims(CODES, nz));
    assert_non_null(w.codes);
    return w;
}

static void free_world(world *w) {
    n2_store_free(w->store);
    n2ce_ctx_free(w->ctx);
}

/* N(mean, sd^2); every second code on the other side of 0 if there are two of them. */
static void draw_codes(world *w, double mean, double sd, bool two) {
    const size_t n = (size_t)n2_elements(w->codes->shape);
    float *z = w->codes->data;
    n2_fill_normal((n2_stream){3, 1, 0}, 0, n, z);
    for (size_t i = 0; i < n; i++)
        z[i] = (float)(sd * (double)z[i] + (two && i % 2 ? -mean : mean));
}

static n2ce_status build_step(void *user, n2_graph *g, n2_outputs *out) {
    world *w = user;
    const n2_node pick = n2g_randint(g, n2_dims(BATCH), CODES);
    const n2_node loss = n2_prior_loss(g, &w->prior, n2g_gather(g, n2g_read(g, w->codes), pick));
    const double rate = w->prior.spec.kind == N2_PRIOR_MLE ? 2e-4 : 2e-3;
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-8, 0}, .rate = rate, .clip = 100};
    n2_minimise(g, &adam, "prior", &w->prior.parameters, loss, NULL);
    n2_output(out, loss);
    return N2CE_OK;
}

static void learn(world *w, uint64_t steps) {
    const n2_phase phase = {.build = build_step, .steps = steps, .seed = 1};
    const n2_trainer t = {.store = w->store, .user = w, .phases = &phase, .n_phases = 1};
    n2_phase_record record;
    assert_int_equal(n2_train(&t, &record), N2CE_OK);
}

/* What a graph says of rows, once. */
typedef n2_node ask(n2_graph *g, const world *w, n2_node rows);

static void answer(const world *w, ask *question, n2_tensor *rows, uint64_t seed, double *out) {
    n2_graph *g = n2_graph_new(w->store);
    n2_plan *plan;
    const n2_node node = question(g, w, n2g_read(g, rows));
    assert_int_equal(n2_plan_compile(g, n2_cpu_backend(), &node, 1, &plan), N2CE_OK);
    n2_plan_seed(plan, seed, 0);
    assert_int_equal(n2_plan_run(plan), N2CE_OK);
    n2_plan_get(plan, 0, out);
    n2_plan_free(plan);
    n2_graph_free(g);
}

static n2_node ask_loss(n2_graph *g, const world *w, n2_node z) {
    return n2_prior_loss(g, &w->prior, z);
}
static n2_node ask_mean(n2_graph *g, const world *w, n2_node z) {
    return n2_prior_mean_ratio(g, &w->prior, z);
}
static n2_node ask_means(n2_graph *g, const world *w, n2_node z) {
    return n2_ratio_means(g, &w->prior.net, z);
}
static n2_node ask_density(n2_graph *g, const world *w, n2_node z) {
    return n2g_total(g, n2g_mean(g, n2_prior_log_density(g, z, &w->prior), N2_ALL_AXES));
}
static n2_node ask_chain(n2_graph *g, const world *w, n2_node z) {
    (void)z;
    const n2_node start = n2g_randn(g, n2_dims(CHAINS, w->prior.nz));
    return n2_prior_chain(g, &w->prior, start, 100, 0.4);
}

static n2_prior_spec small(n2_prior_kind kind, double magnitude, int64_t stages) {
    n2_prior_spec s = n2_prior_defaults();
    s.kind = kind;
    s.magnitude = magnitude;
    s.noise = 4;
    s.stages = stages;
    s.width = 32;
    return s;
}

static void blind(const world *w) {
    const n2_tensor *const last[] = {w->prior.net.out.weight, w->prior.net.out.bias};
    for (int i = 0; i < 2; i++)
        memset(last[i]->data, 0, (size_t)n2_elements(last[i]->shape) * sizeof(float));
}

/* With f = 0 the loss is ln(1 + M) + M ln(1 + 1/M), whatever the codes and the stages. */
static void a_blind_prior_has_the_known_loss(void **state) {
    (void)state;
    static const double known[][2] = {
        {1, 1.386294}, {10, 3.350997}, {100, 5.610154}, {1000, 7.908255}};
    for (size_t i = 0; i < COUNT_OF(known); i++)
        for (int64_t stages = 1; stages <= 3; stages += 2) {
            world w = new_world(small(N2_PRIOR_N2CE, known[i][0], stages), 3);
            double loss;
            draw_codes(&w, 1, 0.5, true);
            blind(&w);
            answer(&w, ask_loss, w.codes, 1, &loss);
            assert_close(loss, known[i][1], 2e-6, 0);
            free_world(&w);
        }
}

/* With f = 0 chains of steps s stay at a variance of 1 / (1 - s^2/4). */
static void chains_of_a_blind_prior_are_a_little_too_wide(void **state) {
    (void)state;
    world w = new_world(small(N2_PRIOR_N2CE, 1, 1), 8);
    static double z[CHAINS * 8];
    double square = 0;
    blind(&w);
    answer(&w, ask_chain, w.codes, 2, z);
    for (size_t i = 0; i < COUNT_OF(z); i++) square += z[i] * z[i] / COUNT_OF(z);
    assert_close(square, 1 / (1 - 0.04), 0.04, 0);
    free_world(&w);
}

/* Codes N(1, 0.5^2): the mean of ln q(z)/p0(z) over them is the divergence of the two, 0.818 nats.
 * The stages share it between them, and their sum is what the density has. */
static void stages_add_up_to_the_divergence(void **state) {
    (void)state;
    for (int64_t stages = 1; stages <= 3; stages += 2) {
        world w = new_world(small(N2_PRIOR_N2CE, 10, stages), 1);
        double sum, density, each[3], total = 0, norm = 0;
        draw_codes(&w, 1, 0.5, false);
        learn(&w, 600);
        answer(&w, ask_mean, w.codes, 1, &sum);
        answer(&w, ask_means, w.codes, 1, each);
        answer(&w, ask_density, w.codes, 1, &density);
        for (int64_t k = 0; k < stages; k++) total += each[k];
        for (int i = 0; i < CODES; i++) norm += pow((double)((float *)w.codes->data)[i], 2);
        assert_close(sum, 0.818, 0.15, 0);
        assert_close(total, sum, 1e-5, 1e-6);
        assert_close(density, sum - norm / CODES / 2, 1e-5, 1e-6);
        free_world(&w);
    }
}

static double share_near(const double *z, double mean) {
    double near = 0;
    for (size_t i = 0; i < CHAINS; i++) near += fabs(fabs(z[i]) - mean) < 0.6;
    return near / CHAINS;
}

/* Two modes at +-1.2 of width 0.4, near which are 48 % of N(0, 1): chains go there, not away. */
static void chains_move_towards_the_codes(void **state) {
    (void)state;
    const n2_prior_spec specs[] = {small(N2_PRIOR_N2CE, 1, 1), small(N2_PRIOR_N2CE, 100, 3),
                                   small(N2_PRIOR_MLE, 1, 1)};
    for (size_t i = 0; i < COUNT_OF(specs); i++) {
        n2_prior_spec spec = specs[i];
        spec.moves = 30;
        world w = new_world(spec, 1);
        double z[CHAINS];
        draw_codes(&w, 1.2, 0.4, true);
        learn(&w, spec.kind == N2_PRIOR_MLE ? 250 : 500);
        answer(&w, ask_chain, w.codes, 7, z);
        if (share_near(z, 1.2) < 0.6) fail_msg("prior %zu: %g near", i, share_near(z, 1.2));
        free_world(&w);
    }
}

static n2_node ask_ratio(n2_graph *g, const world *w, n2_node z) {
    return n2_prior_ratio(g, &w->prior, z);
}
static n2_node ask_there_and_back(n2_graph *g, const world *w, n2_node z) {
    return n2_prior_place(g, &w->prior, n2_prior_standardise(g, &w->prior, z));
}

/* f = 0 over the Gaussian of mean m and covariance L L': ln of its density less that of N(0, I), by
 * hand. Codes that are made rows of N(0, I) and codes again are what they were. */
static void a_fitted_prior_has_its_gaussian_before_it_learns(void **state) {
    (void)state;
    static const double mean[] = {1, -0.5}, factor[] = {0.8, 0, -0.3, 0.5};
    static double ratio[CODES], back[2 * CODES];
    n2_prior_spec spec = small(N2_PRIOR_N2CE, 10, 3);
    spec.fitted = true;
    world w = new_world(spec, 2);
    blind(&w);
    draw_codes(&w, 0.4, 1, false);
    assert_int_equal(n2_prior_set_base(w.store, &w.prior, mean, factor), N2CE_OK);
    answer(&w, ask_ratio, w.codes, 1, ratio);
    answer(&w, ask_there_and_back, w.codes, 1, back);
    for (size_t i = 0; i < CODES; i++) {
        const double x = (double)((float *)w.codes->data)[2 * i];
        const double y = (double)((float *)w.codes->data)[2 * i + 1];
        const double u = (x - 1) / 0.8, v = (y + 0.5 + 0.3 * u) / 0.5;
        assert_close(ratio[i], (x * x + y * y - u * u - v * v) / 2 - log(0.4), 1e-4, 1e-4);
        assert_close(back[2 * i], x, 1e-5, 1e-5);
        assert_close(back[2 * i + 1], y, 1e-5, 1e-5);
    }
    free_world(&w);
}

static void impossible_priors_are_refused(void **state) {
    (void)state;
    n2_prior_spec bad[] = {small(N2_PRIOR_N2CE, 0.5, 1), small(N2_PRIOR_N2CE, 10, 9),
                           small(N2_PRIOR_MLE, 10, 3)};
    n2ce_ctx *ctx = new_ctx(1);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        n2_store *store;
        n2_prior p;
        assert_int_equal(n2_store_new(ctx, sizeof(float), &store), N2CE_OK);
        assert_int_equal(n2_prior_new(store, &bad[i], 4, 0, &p), N2CE_EINVAL);
        assert_non_null(strstr(n2ce_errmsg(ctx), "A prior of codes needs"));
        n2_store_free(store);
    }
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_blind_prior_has_the_known_loss),
        cmocka_unit_test(chains_of_a_blind_prior_are_a_little_too_wide),
        cmocka_unit_test(stages_add_up_to_the_divergence),
        cmocka_unit_test(chains_move_towards_the_codes),
        cmocka_unit_test(a_fitted_prior_has_its_gaussian_before_it_learns),
        cmocka_unit_test(impossible_priors_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
