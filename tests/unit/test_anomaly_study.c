/* Facts about the study of anomalies: its split, and runs that are taken over. */
#include "contexts.h"

#include "study/anomaly_split.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void the_permutation_is_numpys(void **state) {
    (void)state;
    const size_t expected[10] = {8, 1, 5, 0, 7, 2, 9, 4, 3, 6};
    size_t order[10];
    n2_legacy_permutation(42, 10, order);
    assert_memory_equal(order, expected, sizeof order);
    n2_legacy_permutation(42, 1, order);
    assert_int_equal(order[0], 0);
}

/* Ten pictures of each digit, told apart by their only pixel. */
static n2_images *small_set(n2ce_ctx *ctx) {
    n2_images *p;
    assert_int_equal(n2_images_new(ctx, 100, 1, 1, 1, &p), N2CE_OK);
    p->labels = n2_alloc(ctx, 100, 1);
    for (size_t i = 0; i < 100; i++) {
        p->pixels[i] = (unsigned char)i;
        p->labels[i] = (unsigned char)(i % 10);
    }
    return p;
}

static void train_and_test_share_no_picture(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_arena arena = n2_arena_new(ctx);
    n2_images *p = small_set(ctx);
    n2_anomaly_split s;
    int seen[100] = {0};
    assert_int_equal(n2_anomaly_split_of(&arena, p, 3, &s), N2CE_OK);
    assert_int_equal(s.n_train, 72);
    assert_int_equal(s.n_normal, 18);
    assert_int_equal(s.n_test, 28);
    for (size_t i = 0; i < s.n_train; i++) seen[s.train[i]]++;
    for (size_t i = 0; i < s.n_test; i++) seen[s.test[i]]++;
    for (size_t i = 0; i < 100; i++) assert_int_equal(seen[i], 1);
    for (size_t i = 0; i < s.n_train; i++) assert_int_not_equal(p->labels[s.train[i]], 3);
    for (size_t i = 0; i < s.n_test; i++) assert_int_equal(s.is_odd[i], p->labels[s.test[i]] == 3);
    n2_feature_rows rows;
    assert_int_equal(n2_anomaly_rows(&arena, p, s.test, s.n_test, &rows), N2CE_OK);
    assert_true(rows.x[0] == (float)s.test[0] / 127.5f - 1);
    assert_int_equal(n2_anomaly_split_of(&arena, p, 12, &s), N2CE_EINVAL);
    n2_images_free(p);
    n2_arena_free(&arena);
    n2ce_ctx_free(ctx);
}

/* The counts of the data set itself, where it is: N2CE_DATA names the folder. */
static void the_split_of_mnist_has_its_counts(void **state) {
    (void)state;
    static const size_t counts[][4] = {{1, 49698, 12425, 7877},
                                       {4, 50540, 12636, 6824},
                                       {5, 50949, 12738, 6313},
                                       {7, 50165, 12542, 7293},
                                       {9, 50433, 12609, 6958}};
    const char *folder = getenv("N2CE_DATA");
    char path[512];
    snprintf(path, sizeof path, "%s/images/mnist/train-images-idx3-ubyte.gz", folder ? folder : "");
    if (!folder || access(path, R_OK) != 0) {
        print_message("MNIST is not read: N2CE_DATA does not say where images/mnist is.\n");
        skip();
    }
    n2ce_ctx *ctx = new_ctx(1);
    n2_images *p;
    assert_int_equal(n2_anomaly_read(ctx, folder, &p), N2CE_OK);
    assert_int_equal(p->n, 70000);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        n2_arena arena = n2_arena_new(ctx);
        n2_anomaly_split s;
        assert_int_equal(n2_anomaly_split_of(&arena, p, (int)counts[i][0], &s), N2CE_OK);
        assert_int_equal(s.n_train, counts[i][1]);
        assert_int_equal(s.n_normal, counts[i][2]);
        assert_int_equal(s.n_test - s.n_normal, counts[i][3]);
        n2_arena_free(&arena);
    }
    n2_images_free(p);
    n2ce_ctx_free(ctx);
}

static void a_folder_must_be_named(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    n2_images *p;
    assert_int_equal(n2_anomaly_read(ctx, NULL, &p), N2CE_EINVAL);
    assert_int_equal(n2_anomaly_read(ctx, "/nowhere", &p), N2CE_EIO);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_permutation_is_numpys),
        cmocka_unit_test(train_and_test_share_no_picture),
        cmocka_unit_test(the_split_of_mnist_has_its_counts),
        cmocka_unit_test(a_folder_must_be_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
