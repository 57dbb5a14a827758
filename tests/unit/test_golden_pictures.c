/* Networks of pictures against PyTorch: what tools/make_picture_goldens.py computed in double
 * precision, computed again by the engine on both backends. Inputs and parameters are made here by
 * the formula that is used there. Errors are relative to the largest number of a tensor.
 *
 * ref agrees to 1e-6 (golden numbers are rounded to float), cpu to 1e-4, a GPU to 1e-4 with
 * products in float32 and to 0.02 with tf32. */
#include "close.h"
#include "fast_backend.h"
#include "ref/ref.h"

#include "io/safetensors.h"
#include "lebm/lebm.h"
#include "model/edm.h"
#include "model/energy_net.h"
#include "model/image_net.h"
#include "rewrite/rewrites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef N2CE_GOLDEN_DIR
#define N2CE_GOLDEN_DIR "tests/golden"
#endif

enum { STEPS = 3, SAMPLES = 14, ROW = SAMPLES + 2 };

/* ---- numbers by a formula ------------------------------------------------------ */

/* Numbers in [-1, 1), each a function of the name, with a letter behind it, and of its place. */
static double number(const char *name, const char *letter, size_t place) {
    uint32_t x = 2166136261u;
    for (const char *c = name; *c; c++) x = (x ^ (unsigned char)*c) * 16777619u;
    for (const char *c = letter; *c; c++) x = (x ^ (unsigned char)*c) * 16777619u;
    x += (uint32_t)place * 0x9E3779B9u;
    x = (x ^ x >> 16) * 0x85EBCA6Bu;
    x = (x ^ x >> 13) * 0xC2B2AE35u;
    x ^= x >> 16;
    return (double)(x >> 8) / 8388608 - 1;
}

static double *doubles(size_t n) {
    double *p = calloc(n + 1, sizeof *p);
    assert_non_null(p);
    return p;
}

/* The place in PyTorch's order of element i: kernels are [rows, columns, in, out] in memory and
 * [out, in, rows, columns] there. */
static size_t place_in_file(const n2_tensor *t, size_t i) {
    if (!t->is_kernel) return i;
    const size_t in = (size_t)t->shape.dim[2], out = (size_t)t->shape.dim[3];
    const size_t area = (size_t)(t->shape.dim[0] * t->shape.dim[1]);
    return (i % out * in + i / out % in) * area + i / (in * out);
}

/* Weights have variance 1 / fan_in, biases and a norm's scale are 0 and 1, give or take 0.1. */
static double parameter_value(const n2_tensor *t, size_t place) {
    const double u = number(t->name, "", place), n = (double)n2_elements(t->shape);
    const double first = (double)t->shape.dim[t->is_kernel ? 3 : 0];
    if (t->shape.rank > 1) return sqrt(3 * first / n) * u;
    const char *kind = strrchr(t->name, '.');
    return strcmp(kind ? kind : "", ".weight") == 0 ? 1 + 0.1 * u : 0.1 * u;
}

static void set_parameters(const n2_parameters *p) {
    for (size_t k = 0; k < p->n; k++) {
        n2_tensor *t = p->list[k];
        const size_t n = (size_t)n2_elements(t->shape);
        double *values = doubles(n);
        for (size_t i = 0; i < n; i++)
            values[i] = (double)(float)parameter_value(t, place_in_file(t, i));
        n2_tensor_set(p->store, t, values);
        free(values);
    }
}

/* ---- a golden file and a graph beside it ---------------------------------------- */

typedef struct golden {
    n2ce_ctx *ctx;
    n2_st_file *file;
    const n2_backend *backend;
    n2_store *store;
    n2_parameters p;
    n2_graph *g;
    n2_plan *plan;
    double tolerance;
    const char *name;
    double *worst; /* error so far, of the largest number of its tensor */
} golden;

/* What a backend may be wrong by. A number near zero may come out on the other side of a LeakyReLU,
 * which changes a gradient by a jump; SiLU has none. PyTorch's autocast to bf16 is wrong by 0.12 of
 * the largest gradient of unet_ddpmpp, and by 0.1 of unet_s. */
static double tolerance(bool jumps) {
    static const struct {
        const char *device;
        double smooth, jumps;
    } rows[] = {{"cuda-tf32", 0.02, 0.02}, {"cuda-half", 0.03, 0.3}, {"cuda-bf16", 0.12, 0.4}};
    const char *device = getenv("N2CE_TEST_DEVICE");
    for (size_t i = 0; device && i < COUNT_OF(rows); i++)
        if (strcmp(device, rows[i].device) == 0) return jumps ? rows[i].jumps : rows[i].smooth;
    return 1e-4;
}

static golden open_golden(const char *name, int backend, bool jumps) {
    golden d = {.backend = backend ? fast_backend() : n2_ref_backend(),
                .tolerance = backend ? tolerance(jumps) : 1e-6,
                .name = name,
                .worst = doubles(1)};
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = 2;
    char path[512];
    snprintf(path, sizeof path, "%s/%s.safetensors", N2CE_GOLDEN_DIR, name);
    assert_int_equal(n2ce_ctx_new(&d.ctx, &options), N2CE_OK);
    if (n2_st_open(d.ctx, path, &d.file) != N2CE_OK) fail_msg("%s", n2ce_errmsg(d.ctx));
    assert_int_equal(n2_store_new(d.ctx, d.backend->bytes, &d.store), N2CE_OK);
    d.p = n2_parameters_new(d.store, 1);
    d.g = n2_graph_new(d.store);
    assert_non_null(d.g);
    return d;
}

static void close_golden(golden *d) {
    print_message("%s, %s: %.1e of the largest\n", d->name, d->backend->name, *d->worst);
    free(d->worst);
    n2_plan_free(d->plan);
    n2_graph_free(d->g);
    n2_store_free(d->store);
    n2_st_close(d->file);
    n2ce_ctx_free(d->ctx);
}

static double *golden_values(const golden *d, const char *name, size_t n) {
    const n2_st_tensor *t = n2_st_find(d->file, name);
    if (!t) fail_msg("the golden file has no tensor %s", name);
    assert_int_equal(n2_st_elements(t), n);
    double *values = doubles(n);
    assert_int_equal(n2_st_to_f64(d->ctx, t, values, n), N2CE_OK);
    return values;
}

static double largest_of(const double *x, size_t n) {
    double largest = 0;
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(x[i]));
    return largest;
}

static void compare(const golden *d, const char *what, const double *found, const double *expected,
                    size_t n, double scale) {
    for (size_t i = 0; i < n; i++) {
        *d->worst = fmax(*d->worst, fabs(found[i] - expected[i]) / scale);
        if (!is_close(found[i], expected[i], 0, d->tolerance * scale))
            print_error("%s: %s, number %zu, %.2g of the largest\n", d->backend->name, what, i,
                        fabs(found[i] - expected[i]) / scale);
        assert_close(found[i], expected[i], 0, d->tolerance * scale);
    }
}

static void compare_output(const golden *d, size_t k, n2_node node, const char *name) {
    const size_t n = (size_t)n2_elements(n2_shape_at(d->g, node));
    double *found = doubles(n), *expected = golden_values(d, name, n);
    n2_plan_get(d->plan, k, found);
    compare(d, name, found, expected, n, largest_of(expected, n));
    free(found);
    free(expected);
}

/* ---- rows of 16 numbers of each parameter ---------------------------------------- */

/* The largest number, the product with numbers of the formula, and 14 elements. */
static void fill_row(const n2_tensor *t, const double *values, double row[ROW]) {
    const size_t n = (size_t)n2_elements(t->shape);
    double *x = doubles(n);
    for (size_t i = 0; i < n; i++) x[place_in_file(t, i)] = values[i];
    row[0] = largest_of(x, n);
    row[1] = 0;
    for (size_t i = 0; i < n; i++) row[1] += x[i] * number(t->name, "*", i) / sqrt((double)n);
    for (size_t i = 0; i < SAMPLES; i++)
        row[2 + i] = x[(size_t)((number(t->name, "@", i) + 1) / 2 * (double)n)];
    free(x);
}

/* `first`: the output that is the first parameter's; or the parameters themselves. Numbers that are
 * zero but for rounding, as gradients of biases before a norm may be, are held against 1/1000 of
 * the largest of all. */
static void compare_rows(const golden *d, const char *name, bool outputs, size_t first) {
    const size_t n = d->p.n;
    double *expected = golden_values(d, name, n * ROW);
    const double least = 1e-3 * largest_of(expected, n * ROW);
    for (size_t k = 0; k < n; k++) {
        const n2_tensor *t = d->p.list[k];
        double row[ROW], *values = doubles((size_t)n2_elements(t->shape));
        if (outputs)
            n2_plan_get(d->plan, first + k, values);
        else
            n2_tensor_get(d->store, t, values);
        fill_row(t, values, row);
        compare(d, t->name, row, expected + k * ROW, ROW, fmax(least, expected[k * ROW]));
        free(values);
    }
    free(expected);
}

static void check_sizes(const golden *d) {
    double *sizes = golden_values(d, "sizes", d->p.n);
    for (size_t k = 0; k < d->p.n; k++)
        assert_close(sizes[k], (double)n2_elements(d->p.list[k]->shape), 0, 0);
    free(sizes);
}

/* ---- training ---------------------------------------------------------------------- */

/* What is compared beside gradients. */
enum { MOST_OUTPUTS = 4 };
typedef struct outputs {
    n2_node node[MOST_OUTPUTS];
    const char *name[MOST_OUTPUTS];
    size_t n;
} outputs;

/* The first step's outputs and gradients, the losses of three steps of Adam, and where the
 * parameters end. Adam's eps is 1e-2: gradients that are zero but for rounding move nothing. */
static void check_training(golden *d, n2_node loss, const outputs *o) {
    const size_t n = d->p.n, before = 1 + o->n;
    n2_node *x = calloc(2 * n + before, sizeof *x), *out = x + n;
    assert_non_null(x);
    for (size_t k = 0; k < n; k++) x[k] = n2g_read(d->g, d->p.list[k]);
    n2g_grad(d->g, loss, x, n, out + before);
    out[0] = loss;
    for (size_t k = 0; k < o->n; k++) out[1 + k] = o->node[k];
    const n2_optimiser adam = {.adam = {0.9, 0.999, 1e-2, 0}, .rate = 1e-3};
    n2_minimise(d->g, &adam, "adam", &d->p, loss, NULL);
    if (n2_plan_compile(d->g, d->backend, out, n + before, &d->plan) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(d->ctx));
    double losses[STEPS], *expected = golden_values(d, "losses", STEPS);
    for (int step = 0; step < STEPS; step++) {
        if (n2_plan_run(d->plan) != N2CE_OK) fail_msg("%s", n2ce_errmsg(d->ctx));
        losses[step] = n2_plan_scalar(d->plan, 0);
        if (step) continue;
        for (size_t k = 0; k < o->n; k++) compare_output(d, k + 1, o->node[k], o->name[k]);
        compare_rows(d, "grad", true, before);
    }
    compare(d, "losses", losses, expected, STEPS, expected[0]);
    compare_rows(d, "after", false, 0);
    free(expected);
    free(x);
}

static n2_node input(golden *d, const char *name, n2_shape shape, double factor, double shift) {
    n2_tensor *t = n2_store_add(d->store, name, shape);
    const size_t n = (size_t)n2_elements(shape);
    double *values = doubles(n);
    assert_non_null(t);
    for (size_t i = 0; i < n; i++)
        values[i] = (double)(float)(shift + factor * number(name, "", i));
    n2_tensor_set(d->store, t, values);
    free(values);
    return n2g_read(d->g, t);
}

/* Row i is of class i modulo the classes. */
static n2_node classes(golden *d, int64_t n, int64_t labels) {
    n2_tensor *t = n2_store_add(d->store, "labels", n2_dims(n, labels));
    double *values = doubles((size_t)(n * labels));
    for (int64_t i = 0; i < n; i++) values[i * labels + i % labels] = 1;
    n2_tensor_set(d->store, t, values);
    free(values);
    return n2g_read(d->g, t);
}

/* ---- networks ------------------------------------------------------------------------ */

static void check_unet(const char *file, const n2_unet_spec *spec, int64_t n, int64_t size,
                       int backend) {
    golden d = open_golden(file, backend, false);
    const n2_shape shape = n2_dims(n, size, size, 3);
    const n2_unet net = n2_unet_new(&d.p, "", spec);
    const n2_edm edm = N2_EDM_DEFAULTS;
    assert_false(d.p.failed);
    set_parameters(&d.p);
    check_sizes(&d);
    n2_unet_input in = {.x = input(&d, "y", shape, 1, 0),
                        .level = input(&d, "sigma", n2_dims(n), 0.75, 0.8)};
    if (spec->labels) in.labels = classes(&d, n, spec->labels);
    if (spec->augment) in.augment = input(&d, "augment", n2_dims(n, spec->augment), 1, 0);
    const n2_node noise = input(&d, "noise", shape, 1, 0);
    const n2_node loss = n2_edm_loss(d.g, &edm, &net, &in, noise);
    const n2_node sigma = n2g_reshape(d.g, in.level, n2_dims(n, 1, 1, 1));
    in.x = n2g_add(d.g, in.x, n2g_mul(d.g, sigma, noise));
    const n2_node denoised = n2_edm_denoise(d.g, &edm, &net, &in);
    const n2_node weighted = n2g_mul(d.g, input(&d, "weight", shape, 1, 0), denoised);
    n2_node gradient;
    n2g_grad(d.g, n2g_total(d.g, weighted), &in.x, 1, &gradient);
    check_training(&d, loss, &(outputs){{denoised, gradient}, {"denoised", "grad.x"}, 2});
    close_golden(&d);
}

/* The network of the benchmarks, 6,990,467 parameters. */
static void unet_s_learns_as_in_pytorch(void **state) {
    (void)state;
    if (is_emulated()) skip();
    for (int backend = 0; backend < 2; backend++) check_unet("unet_s", &n2_unet_s, 2, 8, backend);
}

static void unets_learn_as_in_pytorch(void **state) {
    (void)state;
    static const n2_unet_spec ddpmpp = {.kind = N2_UNET_DDPMPP,
                                        .channels = 3,
                                        .base = 16,
                                        .multiples = {1, 2},
                                        .levels = 2,
                                        .blocks = 2,
                                        .attention = 1 << 1,
                                        .labels = 4,
                                        .augment = 9};
    n2_unet_spec ddpm = ddpmpp, adm = ddpmpp;
    ddpm.kind = N2_UNET_DDPM;
    adm.kind = N2_UNET_ADM;
    adm.base = 64;
    adm.blocks = ddpm.blocks = 1;
    adm.labels = 5;
    adm.augment = ddpm.augment = ddpm.labels = 0;
    for (int backend = 0; backend < 2; backend++) {
        check_unet("unet_ddpmpp", &ddpmpp, 3, 8, backend);
        check_unet("unet_ddpm", &ddpm, 3, 8, backend);
        check_unet("unet_adm", &adm, 2, 4, backend);
    }
}

static void the_energy_network_learns_as_in_pytorch(void **state) {
    (void)state;
    for (int backend = 0; backend < 2; backend++) {
        golden d = open_golden("energy_net", backend, true);
        const n2_energy_net net = n2_energy_net_new(&d.p, "", 3, 8);
        assert_false(d.p.failed);
        set_parameters(&d.p);
        check_sizes(&d);
        const n2_node x = input(&d, "y", n2_dims(3, 16, 16, 3), 1, 0);
        const n2_node energy = n2_energy_net_apply(d.g, &net, x);
        const n2_node loss = n2g_mean(d.g, n2g_mul(d.g, energy, energy), N2_ALL_AXES);
        n2_node gradient;
        n2g_grad(d.g, n2g_total(d.g, energy), &x, 1, &gradient);
        check_training(&d, n2g_total(d.g, loss),
                       &(outputs){{energy, gradient}, {"energy", "grad.x"}, 2});
        close_golden(&d);
    }
}

static void check_coder(const char *file, const char *spec, int backend) {
    enum { N = 3, NZ = 5 };
    golden d = open_golden(file, backend, true);
    const n2_image_spec *s = n2_image_spec_named(spec);
    const n2_image_encoder encoder = n2_image_encoder_new(&d.p, s, 4, 16, NZ);
    const n2_image_decoder decoder = n2_image_decoder_new(&d.p, s, 4, NZ);
    assert_false(d.p.failed);
    set_parameters(&d.p);
    check_sizes(&d);
    const n2_node x = input(&d, "y", n2_dims(N, s->side, s->side, s->channels), 1, 0);
    n2_node mean, logvar, gradient;
    n2_image_encode(d.g, &encoder, x, &mean, &logvar);
    const n2_node eps = input(&d, "noise", n2_dims(N, NZ), 1, 0);
    const n2_node picture =
        n2_image_decode(d.g, &decoder, n2g_reparameterise(d.g, mean, logvar, eps));
    const n2_node error = n2g_sub(d.g, x, picture);
    const n2_node square = n2g_scale(d.g, n2g_total(d.g, n2g_mul(d.g, error, error)), 5.0 / N);
    const n2_node loss = n2g_add(d.g, square, n2g_gaussian_kl(d.g, mean, logvar));
    n2g_grad(d.g, loss, &x, 1, &gradient);
    check_training(
        &d, loss,
        &(outputs){{mean, logvar, picture, gradient}, {"mean", "logvar", "picture", "grad.x"}, 4});
    close_golden(&d);
}

static void encoders_and_decoders_learn_as_in_pytorch(void **state) {
    (void)state;
    for (int backend = 0; backend < 2; backend++) {
        check_coder("coder_svhn", "svhn", backend);
        check_coder("coder_mnist", "mnist", backend);
    }
}

/* Both losses of a joint step, of numbers that are given instead of drawn. */
static void a_latent_model_learns_as_in_pytorch(void **state) {
    (void)state;
    enum { N = 3, NZ = 5, M = 4 };
    static const double variances[] = {0, 0.69175489, 0.92238785, 1};
    const n2_image_spec *s = n2_image_spec_named("svhn");
    for (int backend = 0; backend < 2; backend++) {
        golden d = open_golden("lebm", backend, true);
        n2_lebm_nets net = {.encoder = n2_image_encoder_new(&d.p, s, 4, 16, NZ)};
        net.decoder = n2_image_decoder_new(&d.p, s, 4, NZ);
        net.prior.spec.kind = N2_PRIOR_N2CE;
        net.prior.net = n2_ratio_net_new(&d.p, NZ, 16, 3, 3);
        assert_false(d.p.failed);
        set_parameters(&d.p);
        check_sizes(&d);
        const n2_node x = input(&d, "y", n2_dims(N, 32, 32, 3), 1, 0);
        const n2_node eps = input(&d, "noise", n2_dims(N, NZ), 1, 0);
        const n2_ratio_draws draws = {n2g_row_index(d.g, N, 1, 3),
                                      input(&d, "num", n2_dims(N, NZ), 1, 0),
                                      input(&d, "den", n2_dims(N * M, NZ), 1, 0)};
        const n2_ratio_task task = {.net = &net.prior.net,
                                    .waymarks = n2_waymarks_new(d.store, "waymarks", variances, 4),
                                    .times = M,
                                    .magnitude = M,
                                    .draws = &draws};
        n2_lebm_batch b;
        n2_lebm_bound bound;
        n2_lebm_encode(d.g, &b, &net.encoder, x, eps);
        const n2_node critic = n2_ratio_loss(d.g, &task, n2g_detach(d.g, b.z));
        n2_lebm_bound_of(d.g, &bound, &net.decoder, &net.prior, &b, 5);
        check_training(&d, n2g_add(d.g, critic, bound.loss),
                       &(outputs){{critic, bound.loss}, {"critic", "coding"}, 2});
        close_golden(&d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unets_learn_as_in_pytorch),
        cmocka_unit_test(the_energy_network_learns_as_in_pytorch),
        cmocka_unit_test(encoders_and_decoders_learn_as_in_pytorch),
        cmocka_unit_test(a_latent_model_learns_as_in_pytorch),
        cmocka_unit_test(unet_s_learns_as_in_pytorch),
    };
    printf("backend: %s\n", fast_backend()->name);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
