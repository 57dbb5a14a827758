/* Facts about features of pictures: a network from a file is PyTorch's, bad files are refused. */
#include "contexts.h"
#include "failing_alloc.h"
#include "feature_pictures.h"
#include "files.h"

#include "io/file.h"
#include "metric/feature_net.h"
#include "metric/patch_features.h"
#include "metric/picture_rgb.h"
#include "metric/weights_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TINY N2CE_GOLDEN_DIR "/tiny_resnet"

/* 130 pictures are more than a batch; the first ones are compared. */
static void features_are_pytorchs(void **state) {
    (void)state;
    static const double features[3][8] = {{0.0669920053, 1.21288798, 0.839986824, 1.27951825,
                                           4.86657209, 0.874170035, 1.31643941, 0.126360185},
                                          {0.0561126639, 1.00374223, 1.11336729, 1.1884819,
                                           4.86277614, 0.782866232, 1.22358502, 0.112980542},
                                          {0.0570362508, 1.02258778, 0.670981207, 1.18468703,
                                           4.66648232, 0.784314167, 1.11228449, 0.124141988}};
    static const double classes[3][3] = {{0.992434567, 7.9909051e-07, 0.00756463421},
                                         {0.997588978, 4.78923592e-07, 0.00241054341},
                                         {0.990262887, 1.50628177e-06, 0.00973560658}};
    float x[130 * 8], once[3 * 8];
    double p[130 * 3], p_once[3 * 3];
    n2ce_ctx *ctx = new_ctx(2);
    n2_feature_net *net;
    n2_device_choice choice = {0};
    assert_int_equal(n2_feature_net_open(ctx, TINY ".f32", &net), N2CE_OK);
    assert_int_equal(n2_feature_net_width(net), 8);
    assert_int_equal(n2_feature_net_classes(net), 3);
    n2_images *many = make_pictures(ctx, 130, 32), *few = make_pictures(ctx, 3, 32);
    assert_int_equal(n2_feature_net_apply(net, many, &choice, x, p), N2CE_OK);
    assert_int_equal(n2_feature_net_apply(net, few, &choice, once, p_once), N2CE_OK);
    for (size_t i = 0; i < 3 * 8; i++) assert_near((double)x[i], features[i / 8][i % 8]);
    for (size_t i = 0; i < 3 * 3; i++) assert_near(p[i], classes[i / 3][i % 3]);
    assert_memory_equal(x, once, sizeof once);
    assert_memory_equal(p, p_once, sizeof p_once);
    n2_images_free(many);
    n2_images_free(few);
    n2_feature_net_free(net);
    n2ce_ctx_free(ctx);
}

/* The first eight features of two pictures, and the class that they are taken for. */
static void resnet20_is_pytorchs(void **state) {
    (void)state;
    static const double features[2][8] = {{0.101526504, 0.612875014, 1.42782994, 0.581401902,
                                           0.233138274, 0.156626173, 1.11663027, 1.83887684},
                                          {0.106012669, 0.555211596, 1.34102887, 0.596685396,
                                           0.177770882, 0.115483345, 1.61347064, 1.89949583}};
    const char *folder = getenv("N2CE_FEATURE_NETS");
    char path[4096];
    float x[2 * 64];
    double p[2 * 10];
    if (!folder) {
        print_message("ResNet-20 is not tested: N2CE_FEATURE_NETS does not say in which folder "
                      "cifar10_resnet20.f32 is.\n");
        skip();
    }
    n2ce_ctx *ctx = new_ctx(2);
    n2_feature_net *net;
    n2_device_choice choice = {0};
    snprintf(path, sizeof path, "%s/cifar10_resnet20.f32", folder);
    assert_int_equal(n2_feature_net_open(ctx, path, &net), N2CE_OK);
    n2_images *pictures = make_pictures(ctx, 2, 32);
    assert_int_equal(n2_feature_net_apply(net, pictures, &choice, x, p), N2CE_OK);
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < 8; k++) assert_near((double)x[i * 64 + k], features[i][k]);
        assert_near(p[i * 10 + 9], i ? 0.99239613 : 0.989664111);
    }
    n2_images_free(pictures);
    n2_feature_net_free(net);
    n2ce_ctx_free(ctx);
}

/* What the processor says, on a GPU; skipped where there is none. */
static void a_gpu_says_the_same(void **state) {
    (void)state;
    const n2_precision exact = {.strict = true};
    n2_device_choice gpu, cpu = {0};
    n2_feature_net *net;
    float x[2][3 * 8];
    double p[2][3 * 3];
    n2ce_ctx *ctx = new_ctx(2);
    if (n2_choice_of_word(ctx, "cuda", exact, &gpu) == N2CE_EDEVICE) {
        print_message("No GPU is tested: %s\n", n2ce_errmsg(ctx));
        n2ce_ctx_free(ctx);
        skip();
    }
    assert_int_equal(n2_feature_net_open(ctx, TINY ".f32", &net), N2CE_OK);
    for (int small = 0; small < 2; small++) { /* as they are, and enlarged */
        n2_images *pictures = make_pictures(ctx, 3, small ? 15 : 32);
        assert_int_equal(n2_feature_net_apply(net, pictures, &gpu, x[0], p[0]), N2CE_OK);
        assert_string_not_equal(n2_choice_name(&gpu), "cpu");
        assert_int_equal(n2_feature_net_apply(net, pictures, &cpu, x[1], p[1]), N2CE_OK);
        for (size_t i = 0; i < 3 * 8; i++) assert_near((double)x[0][i], (double)x[1][i]);
        for (size_t i = 0; i < 3 * 3; i++) assert_near(p[0][i], p[1][i]);
        n2_images_free(pictures);
    }
    n2_feature_net_free(net);
    n2ce_ctx_free(ctx);
}

static void lists_that_are_none_are_refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {{"conv1.weight\n", "no shape"},
                                         {" 3 0 3\n", "no name"},
                                         {"\xff 3 0 3\n", "no name"},
                                         {"a\xc3 3 0 3\n", "no shape"},
                                         {"a 0x3 0 0\n", "no shape"},
                                         {"a 2x2x2x2x2 0 32\n", "no shape"},
                                         {"a 1099511627776x1099511627776 0 1\n", "no shape"},
                                         {"a 99999999999999999999 0 1\n", "no shape"},
                                         {"a 3 0\n", "two whole numbers"},
                                         {"a 3 0 3 7\n", "two whole numbers"},
                                         {"a 3 -4 3\n", "two whole numbers"},
                                         {"a 2x2 0 3\n", "product of its shape"},
                                         {"a 11 0 11\n", "not inside"},
                                         {"a 1 40 1\n", "not inside"},
                                         {"a 1 44 1\n", "not inside"},
                                         {"a 1 2 1\n", "not inside"},
                                         {"# fine\na 3 0 3\n\na 1 0 1\n", "occurs twice"}};
    n2ce_ctx *ctx = new_ctx(1);
    n2_weights_array *array;
    size_t n;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        n2_text list = n2_text_new(ctx);
        n2_text_add(&list, "%s", bad[i][0]);
        assert_int_equal(n2_weights_parse_list(ctx, "list", &list, 40, &array, &n), N2CE_EDATA);
        assert_message(ctx, bad[i][1]);
        assert_null(array);
        n2_text_free(&list);
    }
    n2_text list = n2_text_new(ctx);
    n2_text_add(&list, "a 2x5 0 10\nb 1 36 1");
    assert_int_equal(n2_weights_parse_list(ctx, "list", &list, 40, &array, &n), N2CE_OK);
    assert_int_equal(n, 2);
    assert_int_equal(array[1].offset, 36);
    n2_free(ctx, array);
    n2_text_add_raw(&list, "\0", 1);
    assert_int_equal(n2_weights_parse_list(ctx, "list", &list, 40, &array, &n), N2CE_EDATA);
    n2_text_free(&list);
    n2ce_ctx_free(ctx);
}

/* The tiny network with its list changed from `from` on, or number `number` replaced. */
static void refuse(n2ce_ctx *ctx, const char *from, const char *to, long number, float value,
                   const char *message) {
    n2_text weights = n2_text_new(ctx);
    char path[2][64]; /* several processes may be at it in one folder */
    snprintf(path[0], sizeof path[0], "test_feature_net_%ld.f32", (long)getpid());
    snprintf(path[1], sizeof path[1], "test_feature_net_%ld_manifest.txt", (long)getpid());
    assert_int_equal(n2_file_read(ctx, TINY ".f32", &weights), N2CE_OK);
    if (number >= 0) memcpy(weights.data + 4 * number, &value, sizeof value);
    write_bytes(path[0], weights.data, weights.length);
    write_changed(ctx, TINY "_manifest.txt", from, to, path[1]);
    assert_no_network(ctx, path[0], message);
    n2_text_free(&weights);
    for (int i = 0; i < 2; i++) remove(path[i]);
}

static void networks_that_are_none_are_refused(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_feature_net *net;
    refuse(ctx, "conv1.weight 2x3", "conv7.weight 2x3", -1, 0, "conv1.weight has 0 kernels");
    refuse(ctx, "conv1.weight 2x3", "conv1.weight 6x1", -1, 0, "another shape");
    refuse(ctx, "bn1.bias 2 ", "bn9.bias 2 ", -1, 0, "bn1.bias is not there");
    refuse(ctx, "layer2.0.conv1", "layer7.0.conv1", -1, 0, "layer2 has 0 blocks");
    refuse(ctx, "linear.bias 3 ", "linear.bios 3 ", -1, 0, "linear.bias is not there");
    refuse(ctx, NULL, "extra 1 0 1\n", -1, 0, "another network");
    refuse(ctx, NULL, "", 7, NAN, "number 7 of conv1.weight is not finite");
    refuse(ctx, NULL, "", 54 + 6, -1, "is negative"); /* conv1, three of the norm, its variance */
    assert_int_equal(n2_feature_net_open(ctx, "weights.pt", &net), N2CE_EDATA);
    assert_message(ctx, ".f32");
    assert_int_equal(n2_feature_net_open(ctx, "not_there.f32", &net), N2CE_EIO);
    n2ce_ctx_free(ctx);
}

/* As it is at 32 x 32; flat stays flat, and means stay, at any other size. */
static void pictures_of_any_size_become_rgb(void **state) {
    (void)state;
    static const size_t sizes[][2] = {{1, 1}, {28, 28}, {31, 64}, {100, 7}};
    n2ce_ctx *ctx = new_ctx(1);
    float rgb[N2_RGB_NUMBERS];
    n2_images *p = make_pictures(ctx, 2, 32);
    n2_picture_rgb(p, 1, N2_RGB_SIDE, rgb);
    for (size_t i = 0; i < N2_RGB_NUMBERS; i++)
        assert_true(fabsf(rgb[i] - (float)p->pixels[N2_RGB_NUMBERS + i] / 255.0f) < 1e-6f);
    n2_images_free(p);
    for (size_t k = 0; k < COUNT_OF(sizes); k++) {
        assert_int_equal(n2_images_new(ctx, 1, sizes[k][0], sizes[k][1], 1, &p), N2CE_OK);
        memset(p->pixels, 51, sizes[k][0] * sizes[k][1]);
        n2_picture_rgb(p, 0, N2_RGB_SIDE, rgb);
        for (size_t i = 0; i < N2_RGB_NUMBERS; i++) assert_true(fabsf(rgb[i] - 0.2f) < 1e-6f);
        n2_images_free(p);
    }
    n2ce_ctx_free(ctx);
}

/* What a graph makes of lines' weights is what n2_picture_rgb makes. */
static void weights_of_lines_are_those_of_pictures(void **state) {
    (void)state;
    enum { HEIGHT = 7, WIDTH = 20, SIDE = 32 };
    n2ce_ctx *ctx = new_ctx(1);
    n2_images *p;
    float rgb[N2_RGB_NUMBERS], plain[HEIGHT * WIDTH * 3];
    float rows[HEIGHT * SIDE], columns[WIDTH * SIDE];
    assert_int_equal(n2_images_new(ctx, 1, HEIGHT, WIDTH, 3, &p), N2CE_OK);
    for (size_t i = 0; i < COUNT_OF(plain); i++) p->pixels[i] = (unsigned char)(i * i % 251);
    n2_picture_rgb(p, 0, SIDE, rgb);
    n2_picture_rgb_plain(p, 0, plain);
    n2_picture_line_weights(HEIGHT, SIDE, rows);
    n2_picture_line_weights(WIDTH, SIDE, columns);
    for (size_t i = 0; i < N2_RGB_NUMBERS; i++) {
        const size_t row = i / (3 * SIDE), column = i / 3 % SIDE;
        double sum = 0;
        for (size_t k = 0; k < HEIGHT * WIDTH; k++)
            sum += (double)rows[k / WIDTH * SIDE + row] *
                   (double)columns[k % WIDTH * SIDE + column] * (double)plain[3 * k + i % 3];
        assert_near((double)rgb[i], sum);
    }
    n2_images_free(p);
    n2ce_ctx_free(ctx);
}

/* Layout has mean 0 and spread 1 over the pictures it was learnt from; what has none is 0. */
static void patches_are_in_units_of_their_spread(void **state) {
    (void)state;
    enum { N = 60, D = N2_PATCH_FEATURES };
    static float x[N * D];
    n2ce_ctx *ctx = new_ctx(2);
    n2_images *p = make_pictures(ctx, N, 32);
    n2_patch_basis *basis;
    assert_int_equal(n2_patch_basis_learn(ctx, p, &basis), N2CE_OK);
    assert_int_equal(n2_patch_features(basis, p, x), N2CE_OK);
    for (size_t k = 0; k < N2_PATCH_COMPONENTS; k++) {
        double mean = 0, squares = 0;
        for (size_t i = 0; i < N; i++) mean += (double)x[i * D + k] / N;
        for (size_t i = 0; i < N; i++) squares += pow((double)x[i * D + k] - mean, 2) / (N - 1);
        assert_true(fabs(mean) < 1e-4 && fabs(squares - 1) < 1e-3);
    }
    n2_patch_basis_free(basis);
    memset(p->pixels, 9, N * 32 * 32 * 3);
    assert_int_equal(n2_patch_basis_learn(ctx, p, &basis), N2CE_OK);
    assert_int_equal(n2_patch_features(basis, p, x), N2CE_OK);
    for (size_t i = 0; i < N * D; i++) assert_true(x[i] == 0);
    n2_patch_basis_free(basis);
    n2_images_free(p);
    n2ce_ctx_free(ctx);
}

/* A network is opened and pictures are described, by it or by patches. */
static n2ce_status whole_life(failing_alloc *memory, bool by_network) {
    static float x[2 * N2_PATCH_FEATURES];
    static double p[2 * 3];
    const n2ce_ctx_options options = failing_alloc_options(memory, 1);
    n2_device_choice choice = {0};
    n2_images *pictures = NULL;
    n2_feature_net *net = NULL;
    n2_patch_basis *basis = NULL;
    n2ce_ctx *ctx;
    n2ce_status status = n2ce_ctx_new(&ctx, &options);
    if (status != N2CE_OK) return status;
    status = n2_images_new(ctx, 2, 9, 9, 1, &pictures);
    if (status == N2CE_OK && by_network) status = n2_feature_net_open(ctx, TINY ".f32", &net);
    if (status == N2CE_OK && by_network)
        status = n2_feature_net_apply(net, pictures, &choice, x, p);
    if (status == N2CE_OK && !by_network) status = n2_patch_basis_learn(ctx, pictures, &basis);
    if (status == N2CE_OK && !by_network) status = n2_patch_features(basis, pictures, x);
    n2_feature_net_free(net);
    n2_patch_basis_free(basis);
    n2_images_free(pictures);
    n2ce_ctx_free(ctx);
    return status;
}

static void running_out_of_memory_is_told(void **state) {
    (void)state;
    for (int by_network = 0; by_network < 2; by_network++) {
        n2ce_status status = N2CE_ENOMEM;
        size_t n = 0;
        for (; status != N2CE_OK; n++) {
            assert_true(n < 5000);
            failing_alloc memory = failing_alloc_new(n, false);
            status = whole_life(&memory, by_network);
            assert_int_equal(status, memory.calls > n ? N2CE_ENOMEM : N2CE_OK);
            assert_int_equal(memory.live, 0);
        }
        assert_true(n > 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_are_pytorchs),
        cmocka_unit_test(resnet20_is_pytorchs),
        cmocka_unit_test(a_gpu_says_the_same),
        cmocka_unit_test(lists_that_are_none_are_refused),
        cmocka_unit_test(networks_that_are_none_are_refused),
        cmocka_unit_test(pictures_of_any_size_become_rgb),
        cmocka_unit_test(weights_of_lines_are_those_of_pictures),
        cmocka_unit_test(patches_are_in_units_of_their_spread),
        cmocka_unit_test(running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
