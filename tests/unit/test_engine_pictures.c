/* Facts about pictures in n2ce_engine.h: its ops by hand, its layers by training them. */
#include "engine_bench.h"

#include <string.h>

static n2ce_node tensor_of(bench *b, const char *name, n2ce_shape shape, const double *values) {
    n2ce_tensor *t = n2ce_store_add(b->store, name, shape);
    assert_non_null(t);
    assert_int_equal(n2ce_tensor_set(b->store, t, values), N2CE_OK);
    return n2ce_read(b->g, t);
}

/* Pictures of 1 2 / 3 4 and 5 6 / 7 8, against numbers worked out by hand. */
static void ops_of_pictures_are_what_they_are_called(void **state) {
    (void)state;
    bench b = open_bench(1);
    n2ce_graph *g = b.g;
    const double pixels[] = {1, 2, 3, 4, 5, 6, 7, 8}, ones[] = {1, 1, 1, 1}, two = 2, seven = 7;
    const n2ce_node x = tensor_of(&b, "x", n2ce_dims(2, 2, 2, 1), pixels);
    const n2ce_node k = tensor_of(&b, "k", n2ce_dims(2, 2, 1, 1), ones);
    const n2ce_node scale = tensor_of(&b, "scale", n2ce_dims(1), &two);
    const n2ce_node shift = tensor_of(&b, "shift", n2ce_dims(1), &seven);
    const n2ce_window below = {1, 1, 0, 1, 0, 0}; /* zeros on one side alone */
    const n2ce_node sums = n2ce_conv2d(g, x, k, below);
    const n2ce_node spread =
        n2ce_conv2d_transposed(g, n2ce_avg_pool2(g, x), k, 2, 2, N2CE_WINDOW(2, 0));
    const n2ce_node norm = n2ce_norm(g, x, scale, shift, 1, 1e-9, N2CE_NO_ACTIVATION);
    const n2ce_node qkv =
        n2ce_reshape(g, n2ce_concat(g, n2ce_concat(g, x, x, 3), x, 3), n2ce_dims(2, 4, 3));
    const n2ce_node zeros = n2ce_scale(g, qkv, 0);
    const n2ce_node out[] = {sums,
                             spread,
                             n2ce_upsample2(g, x),
                             norm,
                             n2ce_attention(g, qkv, 1),
                             n2ce_attention(g, zeros, 1),
                             n2ce_dropout(g, x, 0.5),
                             n2ce_norm(g, x, N2CE_NONE, N2CE_NONE, 1, 1e-9, N2CE_ACTIVATION_LRELU)};
    double y[8][32];
    compile(&b, out, COUNT_OF(out));
    assert_true(n2ce_plan_bytes(b.plan) > 0);
    run(&b, 1);
    for (size_t i = 0; i < COUNT_OF(out); i++) n2ce_plan_get(b.plan, i, y[i]);
    const double of_sums[] = {10, 7, 26, 15}, of_spread[] = {2.5, 6.5}, r = sqrt(1.25);
    for (int i = 0; i < 4; i++) assert_close(y[0][i], of_sums[i], 0, 1e-6);
    for (int i = 0; i < 8; i++) {
        const double normal = (i % 4 - 1.5) / r;
        assert_close(y[1][i], of_spread[i / 4], 0, 1e-6);
        assert_close(y[3][i], 2 * normal + 7, 0, 1e-5);
        assert_true(y[4][i] > pixels[i / 4 * 4] && y[4][i] < pixels[i / 4 * 4 + 3]);
        assert_close(y[5][i], 0, 0, 0);
        assert_true(y[6][i] == 0 || fabs(y[6][i] - 2 * pixels[i]) < 1e-5);
        assert_close(y[7][i], normal > 0 ? normal : 0.2 * normal, 0, 1e-5);
    }
    assert_close(y[2][5], 1, 0, 0); /* row 1 of 1 1 2 2 / 1 1 2 2 / 3 3 4 4 / 3 3 4 4 */
    assert_close(y[2][14], 4, 0, 0);
    close_bench(&b);
}

/* The way down and up again, trained a little: shapes are as PyTorch has them, the loss falls. */
static void layers_of_pictures_are_trained(void **state) {
    (void)state;
    bench b = open_bench(2);
    n2ce_graph *g = b.g;
    n2ce_parameters *p = n2ce_parameters_new(b.store, 3);
    n2ce_conv_layer *down = n2ce_conv_layer_new(p, "down", 3, 8, 4, 2, 1);
    n2ce_norm_layer *norm = n2ce_norm_layer_new(p, "norm", 8, 4, 1e-5);
    n2ce_conv_layer *up = n2ce_deconv_layer_new(p, "up", 8, 3, 4, 2, 1);
    const n2ce_node x = n2ce_sin(g, n2ce_normal(g, n2ce_dims(16, 8, 8, 3)));
    const n2ce_node h =
        n2ce_norm_layer_apply(g, norm, n2ce_conv_layer_apply(g, down, x), N2CE_ACTIVATION_SILU);
    const n2ce_node y = n2ce_conv_layer_apply(g, up, h);
    assert_int_equal(n2ce_node_shape(g, h).dim[1], 4);
    assert_int_equal(n2ce_node_shape(g, y).dim[1], 8);
    const n2ce_node d = n2ce_sub(g, y, x);
    const n2ce_node loss = n2ce_mean(g, n2ce_mul(g, d, d), N2CE_ALL_AXES);
    n2ce_adam adam = N2CE_ADAM_INIT;
    adam.rate = 1e-2;
    n2ce_minimise(g, &adam, "adam", p, loss, NULL);
    compile(&b, &loss, 1);
    run(&b, 1);
    const double first = n2ce_plan_scalar(b.plan, 0);
    run(&b, 100);
    assert_true(n2ce_plan_scalar(b.plan, 0) < 0.6 * first);
    assert_int_equal(n2ce_parameters_n(p), 6);
    assert_non_null(n2ce_store_find(b.store, "up.weight"));
    assert_null(n2ce_conv_layer_new(p, "none", 3, 8, 0, 1, 0));
    assert_non_null(strstr(n2ce_errmsg(b.ctx), "a kernel of 0"));
    assert_null(n2ce_norm_layer_new(p, "uneven", 8, 3, 1e-5));
    assert_non_null(strstr(n2ce_errmsg(b.ctx), "8 channels in 3 groups"));
    close_bench(&b);
}

static void layers_that_are_not_there_are_told(void **state) {
    (void)state;
    bench b = open_bench(1);
    const n2ce_node x = n2ce_normal(b.g, n2ce_dims(2, 4, 4, 3));
    n2ce_conv_layer_apply(b.g, NULL, x);
    assert_int_equal(n2ce_graph_status(b.g), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(b.ctx), "test_engine_pictures.c:"));
    assert_non_null(strstr(n2ce_errmsg(b.ctx), "the layer is NULL"));
    close_bench(&b);
    b = open_bench(1);
    n2ce_norm(b.g, n2ce_normal(b.g, n2ce_dims(2, 4, 4, 3)), N2CE_NONE, N2CE_NONE, 3, 1e-5,
              (n2ce_activation)9);
    assert_int_equal(n2ce_graph_status(b.g), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(b.ctx), "9 is none of n2ce_activation"));
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_of_pictures_are_what_they_are_called),
        cmocka_unit_test(layers_of_pictures_are_trained),
        cmocka_unit_test(layers_that_are_not_there_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
