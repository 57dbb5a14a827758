/* Facts about the pictures of studies. */
#include "contexts.h"
#include "files.h"

#include "study/images_study.h"

#include <stdlib.h>
#include <unistd.h>

enum { RECORD = 1 + 3 * 32 * 32, PICTURES = 90 };

/* A batch of CIFAR-10 whose pictures are as bright as their class says. */
static void write_batch(const char *path) {
    static unsigned char bytes[PICTURES * RECORD];
    for (size_t i = 0; i < PICTURES; i++) {
        memset(bytes + i * RECORD, (int)(20 * (i % 10)), RECORD);
        bytes[i * RECORD] = (unsigned char)(i % 10);
    }
    write_bytes(path, bytes, sizeof bytes);
}

static n2_images_set read_set(n2ce_ctx *ctx, const char *path, const char *subset) {
    n2ce_options *o;
    n2_images_set set;
    assert_int_equal(n2ce_options_new(ctx, n2ce_task_options(n2ce_task_find("study distill")), &o),
                     N2CE_OK);
    assert_int_equal(n2ce_options_set(o, "images", path), N2CE_OK);
    assert_int_equal(n2ce_options_set(o, "subset", subset), N2CE_OK);
    assert_int_equal(n2_images_set_read(ctx, o, &set), N2CE_OK);
    n2ce_options_free(o);
    return set;
}

static void a_subset_keeps_its_labels(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    char path[] = "/tmp/n2ce-test-XXXXXX";
    close(mkstemp(path));
    write_batch(path);
    n2_images_set set = read_set(ctx, path, "45");
    assert_int_equal(set.train->n, 45);
    for (size_t i = 0; i < 45; i++) {
        assert_int_equal(set.train->pixels[i * (RECORD - 1)], 20 * (2 * i % 10));
        assert_int_equal(set.train->labels[i], 2 * i % 10);
    }
    n2_images_set_free(&set);
    remove(path);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_subset_keeps_its_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
