/* Encoder and decoder of pictures: sizes, initial values, numbers on the fast backend. */
#include "contexts.h"
#include "fast_backend.h"
#include "model/image_net.h"
#include "ref/ref.h"
#include "rewrite/rewrites.h"

#include <stdlib.h>

static n2_store *new_store(n2ce_ctx *ctx, size_t bytes) {
    n2_store *store;
    assert_int_equal(n2_store_new(ctx, bytes, &store), N2CE_OK);
    return store;
}

/* Of the networks that were published: decoders of their widths, encoders of width 64 and heads. */
static void networks_have_the_published_sizes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t nz, width, decoder, encoder;
    } rows[] = {{"mnist", 8, 128, 10891265, 7491984},
                {"svhn", 100, 64, 3447683, 11351752},
                {"cifar", 128, 128, 18883075, 11409152},
                {"celeba", 100, 128, 12656515, 15547592}};
    n2ce_ctx *ctx = new_ctx(1);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        n2_store *store = new_store(ctx, sizeof(float));
        n2_parameters encoder = n2_parameters_new(store, 0), decoder = n2_parameters_new(store, 0);
        const n2_image_spec *spec = n2_image_spec_named(rows[i].name);
        n2_image_encoder_new(&encoder, spec, 64, 1024, rows[i].nz);
        n2_image_decoder_new(&decoder, spec, rows[i].width, rows[i].nz);
        assert_false(encoder.failed || decoder.failed);
        assert_int_equal(n2_parameters_count(&encoder), rows[i].encoder);
        assert_int_equal(n2_parameters_count(&decoder), rows[i].decoder);
        n2_store_free(store);
    }
    assert_null(n2_image_spec_named("lsun"));
    n2ce_ctx_free(ctx);
}

/* Sides go down to one pixel, and up again to those of the data. */
static void shapes_are_those_of_the_data(void **state) {
    (void)state;
    static const char *const names[] = {"mnist", "svhn", "cifar", "celeba", "celeba-hq"};
    n2ce_ctx *ctx = new_ctx(1);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        n2_store *store = new_store(ctx, sizeof(float));
        n2_graph *g = n2_graph_new(store);
        n2_parameters p = n2_parameters_new(store, 0);
        const n2_image_spec *spec = n2_image_spec_named(names[i]);
        const n2_image_encoder encoder = n2_image_encoder_new(&p, spec, 1, 5, 3);
        const n2_image_decoder decoder = n2_image_decoder_new(&p, spec, 1, 3);
        const n2_shape pictures = n2_dims(2, spec->side, spec->side, spec->channels);
        n2_node mean, logvar;
        n2_image_encode(g, &encoder, n2g_randn(g, pictures), &mean, &logvar);
        const n2_node made = n2_image_decode(g, &decoder, mean);
        assert_int_equal(n2_graph_status(g), N2CE_OK);
        assert_true(n2_same_shape(n2_shape_at(g, mean), n2_dims(2, 3)));
        assert_true(n2_same_shape(n2_shape_at(g, logvar), n2_dims(2, 3)));
        assert_true(n2_same_shape(n2_shape_at(g, made), pictures));
        n2_graph_free(g);
        n2_store_free(store);
    }
    n2ce_ctx_free(ctx);
}

static double largest_of(const n2_store *store, const char *name) {
    const n2_tensor *t = n2_store_find(store, name);
    assert_non_null(t);
    double largest = 0;
    for (int64_t i = 0; i < n2_elements(t->shape); i++)
        largest = fmax(largest, fabs(((const double *)t->data)[i]));
    return largest;
}

/* U(-b, b), b = 1/sqrt(fan_in): 3 x 3 x 3 of the first convolution; 4 x 4 x 8 channels out of the
 * decoder's first layer. Norms are the identity. */
static void initial_values_are_pytorchs(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_store *store = new_store(ctx, sizeof(double));
    n2_parameters p = n2_parameters_new(store, 3);
    n2_image_encoder_new(&p, n2_image_spec_named("svhn"), 16, 8, 4);
    n2_image_decoder_new(&p, n2_image_spec_named("svhn"), 1, 100);
    const double encoder = 1 / sqrt(27.0), decoder = 1 / sqrt(128.0);
    const double first = largest_of(store, "enc.0.weight"),
                 made = largest_of(store, "dec.0.weight");
    assert_true(first <= encoder && first > 0.95 * encoder);
    assert_true(made <= decoder && made > 0.95 * decoder);
    assert_true(largest_of(store, "dec.0.bias") <= decoder);
    assert_true(largest_of(store, "enc.1.weight") == 1 && largest_of(store, "enc.1.bias") == 0);
    n2_store_free(store);
    n2ce_ctx_free(ctx);
}

/* Loss of a small autoencoder and the norm of its gradient. */
static void losses_on(const n2_backend *backend, n2ce_ctx *ctx, const char *name, double out[2]) {
    n2_store *store = new_store(ctx, backend->bytes);
    n2_graph *g = n2_graph_new(store);
    n2_parameters p = n2_parameters_new(store, 7);
    const n2_image_spec *spec = n2_image_spec_named(name);
    const n2_image_encoder encoder = n2_image_encoder_new(&p, spec, 3, 5, 4);
    const n2_image_decoder decoder = n2_image_decoder_new(&p, spec, 2, 4);
    const n2_node x = n2g_randu(g, n2_dims(3, spec->side, spec->side, spec->channels));
    n2_node mean, logvar, norm;
    n2_image_encode(g, &encoder, x, &mean, &logvar);
    const n2_node z = n2g_reparameterise(g, mean, logvar, n2g_randn(g, n2_dims(3, 4)));
    const n2_node miss = n2g_sub(g, n2_image_decode(g, &decoder, z), x);
    const n2_node loss =
        n2g_add(g, n2g_total(g, n2g_mul(g, miss, miss)), n2g_gaussian_kl(g, mean, logvar));
    const n2_optimiser sgd = N2_OPTIMISER_DEFAULTS;
    n2_minimise(g, &sgd, "vae", &p, loss, &norm);
    n2_plan *plan;
    const n2_node outputs[] = {loss, norm};
    assert_int_equal(n2_plan_compile(g, backend, outputs, 2, &plan), N2CE_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(n2_plan_run(plan), N2CE_OK);
    for (size_t k = 0; k < 2; k++) out[k] = n2_plan_scalar(plan, k);
    n2_plan_free(plan);
    n2_graph_free(g);
    n2_store_free(store);
}

static void three_steps_agree_with_the_reference(void **state) {
    (void)state;
    static const char *const names[] = {"mnist", "svhn"};
    n2ce_ctx *ctx = new_ctx(2);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        double exact[2], fast[2];
        losses_on(n2_ref_backend(), ctx, names[i], exact);
        losses_on(fast_backend(), is_cuda() ? *gpu_ctx() : ctx, names[i], fast);
        for (int k = 0; k < 2; k++) assert_close(fast[k], exact[k], fast_tolerance(1e-4, 1e-2), 0);
    }
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_have_the_published_sizes),
        cmocka_unit_test(shapes_are_those_of_the_data),
        cmocka_unit_test(initial_values_are_pytorchs),
        cmocka_unit_test(three_steps_agree_with_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
