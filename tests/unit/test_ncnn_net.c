/* Facts about feature networks in ncnn's format: what NumPy computes layer by layer, bad files are
 * refused with a sentence. */
#include "failing_alloc.h"
#include "feature_pictures.h"
#include "files.h"

#include "io/file.h"
#include "metric/feature_net.h"
#include "metric/ncnn_layers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TINY N2CE_GOLDEN_DIR "/tiny_ncnn"

/* A fire module, a window over the edge of 4 pixels, 33 pictures: more than two batches or less
 * than one. */
static void features_are_numpys(void **state) {
    (void)state;
    static const double features[3][6] = {
        {0, 4.25451346, 7.39407481, 14.0266944, 10.8117108, 11.8602374},
        {0, 3.53396665, 6.10455439, 11.5953506, 9.93944502, 11.9508033},
        {0, 3.41839621, 5.89772473, 13.8094446, 8.82571041, 11.3386307}};
    static const double classes[3][2] = {{1.40764584e-05, 0.999985924},
                                         {3.05277205e-05, 0.999969472},
                                         {0.000113403894, 0.999886595}};
    float x[33 * 6];
    double p[33 * 5];
    n2ce_ctx *ctx = new_ctx(2);
    n2_feature_net *net;
    n2_device_choice choice = {0};
    assert_int_equal(n2_feature_net_open(ctx, TINY "_fp16.bin", &net), N2CE_OK);
    assert_int_equal(n2_feature_net_width(net), 6);
    assert_int_equal(n2_feature_net_classes(net), 5);
    n2_images *pictures = make_pictures(ctx, 33, 19);
    assert_int_equal(n2_feature_net_apply(net, pictures, &choice, x, p), N2CE_OK);
    for (size_t i = 0; i < 3 * 6; i++) assert_near((double)x[i], features[i / 6][i % 6]);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 2; k++) assert_near(p[i * 5 + 1 + k], classes[i][k]);
    n2_images_free(pictures);
    n2_feature_net_free(net);
    n2ce_ctx_free(ctx);
}

/* 33 pictures of the network's size, whose rows (or columns) are all alike. */
static n2_images *stretch(n2ce_ctx *ctx, const n2_images *thin, size_t side) {
    n2_images *wide;
    assert_int_equal(n2_images_new(ctx, thin->n, side, side, 3, &wide), N2CE_OK);
    for (size_t i = 0; i < thin->n * side * side * 3; i++) {
        const size_t picture = i / (side * side * 3), row = i / (side * 3) % side;
        const size_t column = i / 3 % side, c = i % 3;
        const size_t y = thin->height == 1 ? 0 : row, x = thin->width == 1 ? 0 : column;
        wide->pixels[i] = thin->pixels[((picture * thin->height + y) * thin->width + x) * 3 + c];
    }
    return wide;
}

/* Lines of one pixel, lying, standing, and single pixels, are enlarged by the network's graph. */
static void small_pictures_are_enlarged(void **state) {
    (void)state;
    enum { SIDE = 19, N = 33 };
    static const size_t sizes[3][2] = {{1, SIDE}, {SIDE, 1}, {1, 1}};
    n2ce_ctx *ctx = new_ctx(2);
    n2_feature_net *net;
    n2_device_choice choice = {0};
    assert_int_equal(n2_feature_net_open(ctx, TINY "_fp16.bin", &net), N2CE_OK);
    for (size_t k = 0; k < 3; k++) {
        n2_images *thin, *source = make_pictures(ctx, N, SIDE);
        float x[2][N * 6];
        double p[2][N * 5];
        assert_int_equal(n2_images_new(ctx, N, sizes[k][0], sizes[k][1], 3, &thin), N2CE_OK);
        memcpy(thin->pixels, source->pixels, N * sizes[k][0] * sizes[k][1] * 3);
        n2_images *wide = stretch(ctx, thin, SIDE);
        assert_int_equal(n2_feature_net_apply(net, thin, &choice, x[0], p[0]), N2CE_OK);
        assert_int_equal(n2_feature_net_apply(net, wide, &choice, x[1], p[1]), N2CE_OK);
        for (size_t i = 0; i < N * 6; i++) assert_near((double)x[0][i], (double)x[1][i]);
        for (size_t i = 0; i < N * 5; i++) assert_near(p[0][i], p[1][i]);
        n2_images_free(thin);
        n2_images_free(wide);
        n2_images_free(source);
    }
    n2_feature_net_free(net);
    n2ce_ctx_free(ctx);
}

static void squeezenet_is_numpys(void **state) {
    (void)state;
    static const double features[2][8] = {{0.482762979, 0, 0, 0, 0, 0, 0.927460544, 0},
                                          {0.130446985, 0, 0, 0, 0, 0, 0.639952163, 0}};
    const char *folder = getenv("N2CE_FEATURE_NETS");
    static float x[2 * 512];
    static double p[2 * 1000];
    char path[4096];
    if (!folder) {
        print_message("SqueezeNet is not tested: N2CE_FEATURE_NETS does not say in which folder "
                      "squeezenet_v1.1_ncnn_fp16.bin is.\n");
        skip();
    }
    n2ce_ctx *ctx = new_ctx(2);
    n2_feature_net *net;
    n2_device_choice choice = {0};
    snprintf(path, sizeof path, "%s/squeezenet_v1.1_ncnn_fp16.bin", folder);
    assert_int_equal(n2_feature_net_open(ctx, path, &net), N2CE_OK);
    assert_int_equal(n2_feature_net_width(net), 512);
    assert_int_equal(n2_feature_net_classes(net), 1000);
    n2_images *pictures = make_pictures(ctx, 2, 227);
    assert_int_equal(n2_feature_net_apply(net, pictures, &choice, x, p), N2CE_OK);
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 8; k++) assert_near((double)x[i * 512 + k], features[i][k]);
    assert_near(p[815], 0.359217551);
    assert_near(p[1000 + 545], 0.375670344);
    n2_images_free(pictures);
    n2_feature_net_free(net);
    n2ce_ctx_free(ctx);
}

static void lists_that_are_none_are_refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"", "no whole number"},
        {"7767518\n1 1\n", "no whole number"},
        {"7767517 1\n1 1\n", "the line goes on"},
        {"7767517\n0 1\n", "no whole number"},
        {"7767517\n1 1\n", "no type and no name"},
        {"7767517\n1 1\nInput data 0 1\n", "has no name"},
        {"7767517\n1 1\nInput data -1 1 data\n", "no whole number"},
        {"7767517\n1 1\nInput data 0 9 data\n", "no whole number"},
        {"7767517\n1 1\nInput data 1 1 data data\n", "no line before makes"},
        {"7767517\n1 1\nInput data 0 2 data data\n", "one that is taken"},
        {"7767517\n1 1\nInput data 0 1 data 3\n", "no \"=\""},
        {"7767517\n1 1\nInput data 0 1 data a=3\n", "has no number"},
        {"7767517\n1 1\nInput data 0 1 data 0=8\nInput more 0 1 more\n", "more lines"}};
    n2ce_ctx *ctx = new_ctx(1);
    n2_ncnn_layers layers;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        n2_text text = n2_text_new(ctx);
        n2_text_add(&text, "%s", bad[i][0]);
        assert_int_equal(n2_ncnn_parse(ctx, "net.param", &text, &layers), N2CE_EDATA);
        assert_message(ctx, bad[i][1]);
        assert_null(layers.layer);
        n2_text_free(&text);
    }
    n2ce_ctx_free(ctx);
}

/* The tiny network with its list changed, or `cut` bytes less of its weights. */
static void refuse(n2ce_ctx *ctx, const char *from, const char *to, size_t cut,
                   const char *message) {
    n2_text weights = n2_text_new(ctx);
    char path[2][64]; /* several processes may be at it in one folder */
    snprintf(path[0], sizeof path[0], "test_ncnn_net_%ld.bin", (long)getpid());
    snprintf(path[1], sizeof path[1], "test_ncnn_net_%ld.param", (long)getpid());
    assert_int_equal(n2_file_read(ctx, TINY "_fp16.bin", &weights), N2CE_OK);
    write_bytes(path[0], weights.data, weights.length - cut);
    write_changed(ctx, TINY ".param", from, to, path[1]);
    assert_no_network(ctx, path[0], message);
    n2_text_free(&weights);
    for (int i = 0; i < 2; i++) remove(path[i]);
}

static void networks_that_are_none_are_refused(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_feature_net *net;
    refuse(ctx, "Convolution three", "Deconvolution three", 0, "no known type");
    refuse(ctx, "0=19 1=19", "0=19 1=18", 0, "square RGB");
    refuse(ctx, "6=108", "6=109", 0, "does not fit");
    refuse(ctx, "4=1 5=1 6=54", "5=1 6=54", 0, "differs in size");
    refuse(ctx, "1=3 3=2", "1=3 3=9", 0, "not supported");
    refuse(ctx, "5=1 6=108 9=1", "5=1 6=108", 0, "another activation");
    refuse(ctx, "pool1 1=3", "pool1 1=2", 0, "neither the maximum");
    refuse(ctx, "Softmax", "Split", 0, "does not end in probabilities");
    refuse(ctx, "Softmax", "Softmax", 4, "ends before");
    assert_int_equal(n2_feature_net_open(ctx, "not_there.bin", &net), N2CE_EIO);
    n2ce_ctx_free(ctx);
}

static n2ce_status whole_life(failing_alloc *memory) {
    float x[2 * 6];
    double p[2 * 5];
    const n2ce_ctx_options options = failing_alloc_options(memory, 1);
    n2_device_choice choice = {0};
    n2_images *pictures = NULL;
    n2_feature_net *net = NULL;
    n2ce_ctx *ctx;
    n2ce_status status = n2ce_ctx_new(&ctx, &options);
    if (status != N2CE_OK) return status;
    status = n2_images_new(ctx, 2, 9, 9, 1, &pictures);
    if (status == N2CE_OK) status = n2_feature_net_open(ctx, TINY "_fp16.bin", &net);
    if (status == N2CE_OK) status = n2_feature_net_apply(net, pictures, &choice, x, p);
    n2_feature_net_free(net);
    n2_images_free(pictures);
    n2ce_ctx_free(ctx);
    return status;
}

static void running_out_of_memory_is_told(void **state) {
    (void)state;
    assert_true(live_without_memory(whole_life, 0) > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_are_numpys),
        cmocka_unit_test(small_pictures_are_enlarged),
        cmocka_unit_test(squeezenet_is_numpys),
        cmocka_unit_test(lists_that_are_none_are_refused),
        cmocka_unit_test(networks_that_are_none_are_refused),
        cmocka_unit_test(running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
