/* Layers and networks of pictures: sizes, initial values, files in PyTorch's order, training. What
 * they compute is held against PyTorch in test_golden_pictures.c. */
#include "contexts.h"
#include "failing_alloc.h"
#include "fast_backend.h"
#include "files.h"
#include "ref/ref.h"
#include "stores.h"

#include "io/safetensors.h"
#include "model/edm.h"
#include "model/energy_net.h"
#include "rewrite/rewrites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static n2_store *new_store(n2ce_ctx *ctx, size_t bytes) {
    n2_store *store;
    assert_int_equal(n2_store_new(ctx, bytes, &store), N2CE_OK);
    return store;
}

/* ---- sizes ------------------------------------------------------------------- */

static int64_t unet_size(n2ce_ctx *ctx, const n2_unet_spec *spec) {
    n2_store *store = new_store(ctx, sizeof(float));
    n2_parameters p = n2_parameters_to_count(store);
    n2_unet_new(&p, "", spec);
    assert_false(p.failed);
    const int64_t n = n2_parameters_count(&p);
    n2_store_free(store);
    return n;
}

static int64_t energy_size(n2ce_ctx *ctx, int64_t nh) {
    n2_store *store = new_store(ctx, sizeof(float));
    n2_parameters p = n2_parameters_to_count(store);
    n2_energy_net_new(&p, "", 3, nh);
    const int64_t n = n2_parameters_count(&p);
    n2_store_free(store);
    return n;
}

static void networks_have_the_sizes_of_the_literature(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_unet_spec told = n2_unet_ddpmpp_cifar10;
    told.labels = 10;
    assert_int_equal(unet_size(ctx, &n2_unet_ddpmpp_cifar10), 55733891);
    assert_int_equal(unet_size(ctx, &told), 55735299);
    assert_int_equal(unet_size(ctx, &n2_unet_ddpm_cifar10), 35746307);
    assert_int_equal(unet_size(ctx, &n2_unet_adm_imagenet64), 295899267);
    assert_int_equal(unet_size(ctx, &n2_unet_s), 6990467);
    assert_int_equal(energy_size(ctx, 128), 5134595);
    assert_int_equal(energy_size(ctx, 64), 1285251);
    n2ce_ctx_free(ctx);
}

/* ---- initial values ------------------------------------------------------------ */

typedef struct moments {
    double mean, square, largest;
} moments;

static moments moments_of(const n2_tensor *t) {
    const double *x = t->data, n = (double)n2_elements(t->shape);
    moments m = {0};
    for (int64_t i = 0; i < n2_elements(t->shape); i++) {
        m.mean += x[i] / n;
        m.square += x[i] * x[i] / n;
        m.largest = fmax(m.largest, fabs(x[i]));
    }
    return m;
}

static void assert_uniform(const n2_tensor *t, double bound) {
    const moments m = moments_of(t);
    assert_true(m.largest <= bound * (1 + 1e-6) && m.largest > 0.99 * bound);
    assert_close(m.mean, 0, 0, 5 * bound / sqrt(3 * (double)n2_elements(t->shape)));
    assert_close(m.square, bound * bound / 3, 0.05, 0);
}

static void assert_normal(const n2_tensor *t, double sd) {
    const moments m = moments_of(t);
    assert_true(m.largest > 3 * sd);
    assert_close(m.mean, 0, 0, 5 * sd / sqrt((double)n2_elements(t->shape)));
    assert_close(m.square, sd * sd, 0.05, 0);
}

/* in 20, out 30, k 3: fan_in 180, fan_out 270; the other way round for a transposed one. */
static void kernels_are_drawn_as_asked_for(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_store *store = new_store(ctx, sizeof(double));
    n2_parameters p = n2_parameters_new(store, 7);
    const n2_conv_shape s = {.in = 20, .out = 30, .kernel = 3, .stride = 1, .padding = 1};
    n2_conv_layer c = n2_conv_layer_new(&p, "a", s, N2_INIT_DEFAULT);
    assert_uniform(c.weight, 1 / sqrt(180));
    assert_true(moments_of(c.bias).largest > 0.8 / sqrt(180));
    assert_true(moments_of(c.bias).largest <= 1 / sqrt(180));
    c = n2_deconv_layer_new(&p, "b", s, N2_INIT_DEFAULT);
    assert_uniform(c.weight, 1 / sqrt(270));
    c = n2_conv_layer_new(&p, "c", s, (n2_init){N2_INIT_XAVIER_UNIFORM, 0.5, 0});
    assert_uniform(c.weight, 0.5 * sqrt(6.0 / 450));
    assert_close(moments_of(c.bias).largest, 0, 0, 0);
    c = n2_conv_layer_new(&p, "d", s, (n2_init){N2_INIT_XAVIER_NORMAL, 2, 1});
    assert_normal(c.weight, 2 * sqrt(2.0 / 450));
    c = n2_conv_layer_new(&p, "e", s, (n2_init){N2_INIT_KAIMING_UNIFORM, 1, 0});
    assert_uniform(c.weight, sqrt(3.0 / 180));
    c = n2_conv_layer_new(&p, "f", s, (n2_init){N2_INIT_KAIMING_NORMAL, 1, 0});
    assert_normal(c.weight, sqrt(1.0 / 180));
    const n2_waves w = n2_fourier_new(&p, "g", 4000, 16);
    assert_normal(w.frequencies, 16);
    assert_false(p.failed);
    assert_int_equal(p.n, 12);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

/* ---- embeddings ------------------------------------------------------------------ */

/* What a plan makes of a node, on ref; the caller frees it. */
static double *values_of_node(n2_graph *g, n2_node x) {
    n2_plan *plan;
    double *values = calloc((size_t)n2_elements(n2_shape_at(g, x)) + 1, sizeof *values);
    assert_non_null(values);
    assert_int_equal(n2_plan_compile(g, n2_ref_backend(), &x, 1, &plan), N2CE_OK);
    assert_int_equal(n2_plan_run(plan), N2CE_OK);
    n2_plan_get(plan, 0, values);
    n2_plan_free(plan);
    return values;
}

static void waves_have_the_frequencies_of_their_networks(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_store *store = new_store(ctx, sizeof(double));
    n2_parameters p = n2_parameters_new(store, 7);
    const n2_waves waves[] = {n2_waves_new(&p, "ddpm", 8, N2_WAVES_SINE_FIRST),
                              n2_waves_new(&p, "adm", 8, N2_WAVES_COSINE_FIRST),
                              n2_fourier_new(&p, "fourier", 8, 16)};
    n2_graph *g = n2_graph_new(store);
    n2_tensor *t = n2_store_add(store, "t", n2_dims(3));
    n2_tensor_set(store, t, (double[]){0, 1.5, 617.25});
    for (int k = 0; k < 3; k++) {
        double *x = values_of_node(g, n2_waves_apply(g, &waves[k], n2g_read(g, t)));
        for (int i = 0; i < 3 * 4; i++) {
            const double last = k ? 4 : 3, f = ((double *)waves[k].frequencies->data)[i % 4];
            const double rate = k < 2 ? pow(10000, -(i % 4) / last) : 2 * acos(-1) * f;
            const double angle = ((double *)t->data)[i / 4] * rate;
            const double sine = x[8 * (i / 4) + i % 4 + (k ? 4 : 0)];
            assert_close(sine, sin(angle), 0, 1e-11);
            assert_close(x[8 * (i / 4) + i % 4 + (k ? 0 : 4)], cos(angle), 0, 1e-11);
        }
        free(x);
    }
    n2_graph_free(g);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

/* ---- files in PyTorch's order ------------------------------------------------------ */

typedef struct few_layers {
    n2_conv_layer conv, deconv, bare;
    n2_norm_layer norm;
    n2_layer linear;
} few_layers;

static few_layers few_layers_new(n2_parameters *p) {
    few_layers l;
    const n2_init d = N2_INIT_DEFAULT;
    l.conv = n2_conv_layer_new(
        p, "conv", (n2_conv_shape){.in = 3, .out = 6, .kernel = 3, .stride = 2, .padding = 1}, d);
    l.norm = n2_norm_layer_new(p, "norm", 6, 3, 1e-5);
    l.deconv = n2_deconv_layer_new(
        p, "deconv", (n2_conv_shape){.in = 6, .out = 4, .kernel = 4, .stride = 2, .padding = 1}, d);
    l.bare = n2_conv_layer_new(
        p, "bare", (n2_conv_shape){.in = 4, .out = 5, .kernel = 1, .stride = 1, .no_bias = true},
        d);
    l.linear = n2_layer_new(p, "linear", 5, 2);
    assert_false(p->failed);
    return l;
}

static n2_node apply_few(n2_graph *g, const few_layers *l, n2_node x) {
    x = n2_conv_layer_bare(g, &l->conv, x);
    x = n2_norm_layer_apply(g, &l->norm, x, n2g_read(g, l->conv.bias), N2_ACT_LRELU);
    x = n2_conv_layer_apply(g, &l->bare, n2_deconv_layer_apply(g, &l->deconv, x));
    const n2_node sum = n2g_sum(g, x, n2_axis(1) | n2_axis(2));
    return n2_layer_apply(g, &l->linear, n2g_reshape(g, sum, n2_dims(2, 5)));
}

/* Numbers of the formula of tools/make_picture_goldens.py, for the name "y". */
static void set_pictures(const n2_store *store, n2_tensor *t) {
    const size_t n = (size_t)n2_elements(t->shape);
    double *values = calloc(n, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < n; i++) {
        uint32_t x = (2166136261u ^ 'y') * 16777619u + (uint32_t)i * 0x9E3779B9u;
        x = (x ^ x >> 16) * 0x85EBCA6Bu;
        x = (x ^ x >> 13) * 0xC2B2AE35u;
        values[i] = (double)((x ^ x >> 16) >> 8) / 8388608 - 1;
    }
    n2_tensor_set(store, t, values);
    free(values);
}

/* The file is one that the Python package safetensors wrote, of a module's state dict. */
static void parameters_are_exchanged_with_pytorch(void **state) {
    (void)state;
    static const char golden[] = N2CE_GOLDEN_DIR "/layers.safetensors";
    char path[] = "/tmp/n2ce-test-layers-XXXXXX";
    n2ce_ctx *ctx = new_ctx(1);
    n2_store *store = new_store(ctx, sizeof(double));
    n2_parameters p = n2_parameters_new(store, 7);
    const few_layers layers = few_layers_new(&p);
    if (n2_parameters_load(&p, golden) != N2CE_OK) fail_msg("%s", n2ce_errmsg(ctx));
    n2_graph *g = n2_graph_new(store);
    n2_tensor *x = n2_store_add(store, "x", n2_dims(2, 7, 7, 3));
    set_pictures(store, x);
    double *y = values_of_node(g, apply_few(g, &layers, n2g_read(g, x))), expected[4];
    n2_st_file *theirs, *ours;
    assert_int_equal(n2_st_open(ctx, golden, &theirs), N2CE_OK);
    assert_int_equal(n2_st_to_f64(ctx, n2_st_find(theirs, "y"), expected, 4), N2CE_OK);
    for (int i = 0; i < 4; i++) assert_close(y[i], expected[i], 0, 1e-6 * fabs(expected[0]));
    assert_true(close(mkstemp(path)) == 0);
    assert_int_equal(n2_parameters_save(&p, path), N2CE_OK);
    assert_int_equal(n2_st_open(ctx, path, &ours), N2CE_OK);
    assert_int_equal(n2_st_count(ours), n2_st_count(theirs) - 1);
    for (size_t k = 0; k < p.n; k++) {
        const n2_st_tensor *a = n2_st_find(ours, p.list[k]->name);
        const n2_st_tensor *b = n2_st_find(theirs, p.list[k]->name);
        double u[400], v[400];
        assert_int_equal(a->rank, b->rank);
        assert_memory_equal(a->shape, b->shape, sizeof a->shape);
        assert_int_equal(n2_st_to_f64(ctx, a, u, n2_st_elements(a)), N2CE_OK);
        assert_int_equal(n2_st_to_f64(ctx, b, v, n2_st_elements(b)), N2CE_OK);
        assert_memory_equal(u, v, n2_st_elements(a) * sizeof *u);
    }
    free(y);
    unlink(path);
    n2_st_close(ours);
    n2_st_close(theirs);
    n2_graph_free(g);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

/* A kernel that PyTorch would not have so is refused, and nothing is changed. */
static void kernels_of_another_shape_are_refused(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_store *store = new_store(ctx, sizeof(float));
    n2_parameters p = n2_parameters_new(store, 7);
    const n2_conv_shape s = {.in = 6, .out = 3, .kernel = 3, .stride = 1, .padding = 1};
    const n2_conv_layer conv = n2_conv_layer_new(&p, "conv", s, N2_INIT_DEFAULT);
    const float first = *(float *)conv.weight->data;
    assert_int_equal(n2_parameters_load(&p, N2CE_GOLDEN_DIR "/layers.safetensors"), N2CE_EDATA);
    assert_message(ctx, "\"conv.weight\" is not [3 x 6 x 3 x 3]");
    assert_true(first == *(float *)conv.weight->data);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

/* ---- training ------------------------------------------------------------------------ */

static const n2_unet_spec tiny = {.kind = N2_UNET_DDPMPP,
                                  .channels = 3,
                                  .base = 8,
                                  .multiples = {1, 2},
                                  .levels = 2,
                                  .blocks = 1,
                                  .attention = 1 << 1,
                                  .augment = 2,
                                  .dropout = 0.1};

typedef struct training {
    n2_store *store;
    n2_parameters p;
    n2_graph *g;
    n2_plan *plan;
} training;

/* Pictures are two colours; a step is EDM's. */
static training training_new(n2ce_ctx *ctx, const n2_backend *backend) {
    training t = {.store = new_store(ctx, backend->bytes)};
    t.p = n2_parameters_new(t.store, 3);
    const n2_unet net = n2_unet_new(&t.p, "score.", &tiny);
    assert_false(t.p.failed);
    t.g = n2_graph_new(t.store);
    n2_graph *g = t.g;
    const n2_edm edm = N2_EDM_DEFAULTS;
    const n2_shape shape = n2_dims(8, 4, 4, 3);
    const n2_node colour = n2g_reshape(g, n2g_row_index(g, 8, 1, 2), n2_dims(8, 1, 1, 1));
    const n2_node augment = n2g_broadcast(g, n2g_constant(g, 0), n2_dims(8, 2));
    const n2_unet_input in = {.x = n2g_broadcast(g, n2g_affine(g, colour, 1, -0.5), shape),
                              .level = n2_edm_sigmas(g, &edm, 8),
                              .augment = augment,
                              .training = true};
    const n2_node loss = n2_edm_loss(g, &edm, &net, &in, n2g_randn(g, shape));
    n2_optimiser adam = N2_OPTIMISER_DEFAULTS;
    adam.rate = 3e-3;
    n2_minimise(g, &adam, "adam", &t.p, loss, NULL);
    if (n2_plan_compile(g, backend, &loss, 1, &t.plan) != N2CE_OK) fail_msg("%s", n2ce_errmsg(ctx));
    return t;
}

static void training_free(training *t) {
    n2_plan_free(t->plan);
    n2_graph_free(t->g);
    n2_store_free(t->store);
}

static double mean_loss(const training *t, int steps) {
    double sum = 0;
    for (int i = 0; i < steps; i++) {
        assert_int_equal(n2_plan_run(t->plan), N2CE_OK);
        sum += n2_plan_scalar(t->plan, 0) / steps;
    }
    return sum;
}

static void a_unet_learns_to_denoise(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    training t = training_new(ctx, n2_cpu_backend());
    const double first = mean_loss(&t, 5);
    assert_int_equal(n2_plan_run_many(t.plan, 400), N2CE_OK);
    const double later = mean_loss(&t, 20);
    if (later > 0.4 * first) print_error("%g after %g\n", later, first);
    assert_true(later < 0.4 * first);
    training_free(&t);
    n2ce_ctx_free(ctx);
}

/* One thread or three; stopped and resumed, or not: kernels and their moments go through the file
 * in another order. */
static void the_same_bytes_whatever_happens(void **state) {
    (void)state;
    char path[] = "/tmp/n2ce-test-unet-XXXXXX";
    n2ce_ctx *one = new_ctx(1), *three = new_ctx(3);
    training a = training_new(one, n2_cpu_backend()), b = training_new(three, n2_cpu_backend());
    training c = training_new(three, n2_cpu_backend());
    assert_int_equal(n2_plan_run_many(a.plan, 4), N2CE_OK);
    assert_int_equal(n2_plan_run_many(b.plan, 2), N2CE_OK);
    assert_true(close(mkstemp(path)) == 0);
    assert_int_equal(n2_checkpoint_save(b.store, b.plan, path), N2CE_OK);
    assert_int_equal(n2_checkpoint_load(c.store, c.plan, path), N2CE_OK);
    assert_int_equal(n2_plan_run_many(b.plan, 2), N2CE_OK);
    assert_int_equal(n2_plan_run_many(c.plan, 2), N2CE_OK);
    assert_same_tensors(a.store, b.store);
    assert_same_tensors(a.store, c.store);
    unlink(path);
    training_free(&a);
    training_free(&b);
    training_free(&c);
    n2ce_ctx_free(one);
    n2ce_ctx_free(three);
}

/* ---- memory ------------------------------------------------------------------------------ */

/* A network that is made, built, trained, saved and loaded; and a transposed convolution. */
static n2ce_status live(n2_store *store, n2_graph *g, n2_plan **plan, const char *path) {
    n2_parameters p = n2_parameters_new(store, 3);
    const n2_unet net = n2_unet_new(&p, "", &tiny);
    const n2_conv_shape s = {.in = 3, .out = 3, .kernel = 3, .stride = 1, .padding = 1};
    const n2_conv_layer deconv = n2_deconv_layer_new(&p, "deconv", s, N2_INIT_DEFAULT);
    const n2_unet_input in = {.x = n2g_randn(g, n2_dims(1, 2, 2, 3)),
                              .level = n2g_randu(g, n2_dims(1))};
    const n2_node y = n2_deconv_layer_apply(g, &deconv, n2_unet_apply(g, &net, &in));
    const n2_node loss = n2g_total(g, n2g_mul(g, y, y));
    n2_minimise(g, &(n2_optimiser)N2_OPTIMISER_DEFAULTS, "adam", &p, loss, NULL);
    if (p.failed) return N2CE_ENOMEM;
    N2_TRY(n2_plan_compile(g, n2_cpu_backend(), &loss, 1, plan));
    N2_TRY(n2_plan_run(*plan));
    N2_TRY(n2_checkpoint_save(store, *plan, path));
    N2_TRY(n2_checkpoint_load(store, *plan, path));
    N2_TRY(n2_parameters_load(&p, path));
    return n2_parameters_save(&p, path);
}

static n2ce_status whole_life(failing_alloc *memory, const char *path) {
    const n2ce_ctx_options options = failing_alloc_options(memory, 1);
    n2ce_ctx *ctx = NULL;
    n2_store *store = NULL;
    n2_graph *g = NULL;
    n2_plan *plan = NULL;
    n2ce_status status = n2ce_ctx_new(&ctx, &options);
    if (status == N2CE_OK) status = n2_store_new(ctx, sizeof(float), &store);
    if (status == N2CE_OK && !(g = n2_graph_new(store))) status = N2CE_ENOMEM;
    if (status == N2CE_OK) status = live(store, g, &plan, path);
    if (ctx && status != N2CE_OK) assert_message(ctx, "memory");
    n2_plan_free(plan);
    n2_graph_free(g);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
    return status;
}

/* Every 7th allocation in turn, as the table of all would take long: out of memory, and no leak. */
static void a_failed_allocation_is_an_error(void **state) {
    (void)state;
    char path[] = "/tmp/n2ce-test-memory-XXXXXX";
    assert_true(close(mkstemp(path)) == 0);
    n2ce_status status = N2CE_ENOMEM;
    for (size_t n = 0; status != N2CE_OK; n += 7) {
        failing_alloc memory = failing_alloc_new(n, n % 2);
        status = whole_life(&memory, path);
        assert_int_equal(status, memory.calls > n ? N2CE_ENOMEM : N2CE_OK);
        assert_int_equal(memory.live, 0);
    }
    unlink(path);
}

/* ---- mistakes -------------------------------------------------------------------------- */

static void mistakes_are_told(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_store *store = new_store(ctx, sizeof(float));
    n2_parameters p = n2_parameters_new(store, 1);
    n2_unet_spec wrong = tiny;
    wrong.blocks = 40;
    n2_unet_new(&p, "wrong.", &wrong);
    assert_true(p.failed);
    assert_message(ctx, "too many blocks");
    p = n2_parameters_new(store, 1);
    const n2_unet net = n2_unet_new(&p, "", &tiny);
    n2_graph *g = n2_graph_new(store);
    const n2_unet_input odd = {.x = n2g_randn(g, n2_dims(2, 5, 5, 3)),
                               .level = n2g_randu(g, n2_dims(2))};
    const n2_node y = n2_unet_apply(g, &net, &odd);
    assert_int_equal(y.id, 0);
    assert_int_equal(n2_graph_status(g), N2CE_EINVAL);
    assert_message(ctx, "avg_pool2: height or width of [2 x 5 x 5 x 8] is odd");
    assert_message(ctx, "test_picture_nets.c");
    n2_graph_free(g);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_have_the_sizes_of_the_literature),
        cmocka_unit_test(kernels_are_drawn_as_asked_for),
        cmocka_unit_test(waves_have_the_frequencies_of_their_networks),
        cmocka_unit_test(parameters_are_exchanged_with_pytorch),
        cmocka_unit_test(kernels_of_another_shape_are_refused),
        cmocka_unit_test(a_unet_learns_to_denoise),
        cmocka_unit_test(the_same_bytes_whatever_happens),
        cmocka_unit_test(a_failed_allocation_is_an_error),
        cmocka_unit_test(mistakes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
