/* Facts about the study of anomalies: its split, and runs that are taken over. */
#include "contexts.h"
#include "files.h"

#include "study/anomaly_split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* ---- the study, on pictures that look a little like MNIST --------------------------------------
 */

enum { TRAIN = 240, TEST = 60, SIDE = 28 };

/* Big-endian counts, then bytes: bars whose height is the label's. */
static void write_part(const char *folder, const char *part, size_t n) {
    static unsigned char bytes[16 + TRAIN * SIDE * SIDE];
    char path[256];
    const unsigned char head[16] = {0, 0, 8, 3,    0, 0, 0, (unsigned char)n,
                                    0, 0, 0, SIDE, 0, 0, 0, SIDE};
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, head, 16);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 10 * SIDE; k++)
            bytes[16 + i * SIDE * SIDE + (i % 10) * 40 + k] = (unsigned char)(100 + (i + k) % 156);
    snprintf(path, sizeof path, "%s/images/mnist/%s-images-idx3-ubyte", folder, part);
    write_bytes(path, bytes, 16 + n * SIDE * SIDE);
    const unsigned char labels[8] = {0, 0, 8, 1, 0, 0, 0, (unsigned char)n};
    memcpy(bytes, labels, 8);
    for (size_t i = 0; i < n; i++) bytes[8 + i] = (unsigned char)(i % 10);
    snprintf(path, sizeof path, "%s/images/mnist/%s-labels-idx1-ubyte", folder, part);
    write_bytes(path, bytes, 8 + n);
}

static void make_data(char folder[64]) {
    char path[128];
    strcpy(folder, "/tmp/n2ce_anomaly_XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/images", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/images/mnist", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    write_part(folder, "train", TRAIN);
    write_part(folder, "t10k", TEST);
}

static void remove_data(const char *folder) {
    static const char *const names[] = {"kept.json",
                                        "images/mnist/train-images-idx3-ubyte",
                                        "images/mnist/train-labels-idx1-ubyte",
                                        "images/mnist/t10k-images-idx3-ubyte",
                                        "images/mnist/t10k-labels-idx1-ubyte",
                                        "images/mnist",
                                        "images",
                                        ""};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
}

/* The answer to "study anomaly" with these options, names and values in turns. */
static n2ce_answer *study(n2ce_ctx *ctx, const char *const *options) {
    const n2ce_task *task = n2ce_task_find("study anomaly");
    n2ce_options *o;
    n2ce_answer *answer;
    assert_non_null(task);
    assert_int_equal(n2ce_options_new(ctx, n2ce_task_options(task), &o), N2CE_OK);
    for (; options[0]; options += 2)
        assert_int_equal(n2ce_options_set(o, options[0], options[1]), N2CE_OK);
    if (n2ce_task_run(ctx, task, o, &answer) != N2CE_OK) fail_msg("%s", n2ce_errmsg(ctx));
    n2ce_options_free(o);
    return answer;
}

/* From the list of rows on: without the options, which differ. */
static const char *rows_of(const n2ce_answer *answer) {
    const char *rows = strstr(n2ce_answer_json(answer), "\"rows\"");
    assert_non_null(rows);
    return rows;
}

/* Some methods run; an answer that takes all over is the same to the byte, its
 * seconds included, and shows the same page. */
static void an_answer_can_be_taken_over(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(2);
    char folder[64], kept[128];
    make_data(folder);
    snprintf(kept, sizeof kept, "%s/kept.json", folder);
    const char *const options[] = {
        "data",   folder, "digits",  "3", "methods", "knn,vae,default,damc-mle",
        "width",  "2",    "steps",   "2", "seeds",   "2",
        "checks", "1",    "members", "1", "device",  "cpu",
        NULL,     NULL,   NULL};
    n2ce_answer *first = study(ctx, options);
    write_bytes(kept, n2ce_answer_json(first), strlen(n2ce_answer_json(first)));
    const char *again[sizeof options / sizeof options[0] + 2];
    memcpy(again, options, sizeof options);
    again[18] = "reuse";
    again[19] = kept;
    again[20] = NULL;
    n2ce_answer *second = study(ctx, again);
    assert_string_equal(rows_of(first), rows_of(second));
    assert_string_equal(n2ce_answer_page(first), n2ce_answer_page(second));
    assert_non_null(strstr(n2ce_answer_page(first), "data:image/png;base64,"));
    n2ce_answer_free(first);
    n2ce_answer_free(second);
    remove_data(folder);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_permutation_is_numpys),
        cmocka_unit_test(train_and_test_share_no_picture),
        cmocka_unit_test(the_split_of_mnist_has_its_counts),
        cmocka_unit_test(a_folder_must_be_named),
        cmocka_unit_test(an_answer_can_be_taken_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
