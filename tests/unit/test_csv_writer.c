/* Facts about writing CSV: every number in its place, whatever the number of threads. */
#include "contexts.h"
#include "failing_alloc.h"

#include "base/text.h"
#include "io/csv_writer.h"
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 300000 };

static double *numbers;
static char folder[] = "/tmp/n2ce-test-XXXXXX", path[64];

static int set_up(void **state) {
    (void)state;
    numbers = malloc(MOST * sizeof *numbers);
    if (!numbers || !mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/rows.csv", folder);
    for (size_t i = 0; i < MOST; i++) numbers[i] = sin((double)i) * pow(10, (double)(i % 40) - 20);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    free(numbers);
    return rmdir(folder); /* fails if anything was left behind */
}

/* Number by number. */
static n2_text expected_text(n2ce_ctx *ctx, size_t rows, size_t cols) {
    n2_text text = n2_text_new(ctx);
    char number[N2_NUMBER_ROOM];
    n2_text_add(&text, "head\n");
    for (size_t i = 0; i < rows * cols; i++)
        n2_text_add(&text, "%s%s", n2_format_number(numbers[i], number),
                    (i + 1) % cols ? "," : "\n");
    return text;
}

static void assert_written(int threads, size_t rows, size_t cols) {
    n2ce_ctx *ctx = new_ctx(threads);
    n2_text expected = expected_text(ctx, rows, cols), found = n2_text_new(ctx);
    assert_int_equal(n2_csv_write(ctx, path, "head\n", numbers, rows, cols, true), N2CE_OK);
    assert_int_equal(n2_file_read(ctx, path, &found), N2CE_OK);
    assert_int_equal(found.length, expected.length);
    assert_memory_equal(found.data, expected.data, expected.length);
    n2_text_free(&expected);
    n2_text_free(&found);
    n2ce_ctx_free(ctx);
    unlink(path);
}

/* No rows, one number, blocks that are full or not, and more than are written at a time. */
static void every_number_is_in_its_place(void **state) {
    (void)state;
    static const size_t sizes[][2] = {{0, 3},    {1, 1},    {4096, 1},   {4097, 1},
                                      {100, 82}, {3, 8192}, {1, 262144}, {99999, 3}};
    for (int threads = 1; threads <= 7; threads += 3)
        for (size_t i = 0; i < COUNT_OF(sizes); i++)
            assert_written(threads, sizes[i][0], sizes[i][1]);
}

static void numbers_that_are_not_finite_have_names(void **state) {
    (void)state;
    const double before[2] = {numbers[0], numbers[1]};
    numbers[0] = (double)INFINITY;
    numbers[1] = (double)-INFINITY;
    assert_written(1, 2, 2);
    memcpy(numbers, before, sizeof before);
}

/* Whichever allocation fails: all of the file, or none. */
static void running_out_of_memory_leaves_no_file(void **state) {
    (void)state;
    bool succeeded = false;
    for (size_t n = 0; !succeeded; n++) {
        assert_true(n < 20);
        failing_alloc memory = failing_alloc_new(NEVER, false);
        const n2ce_ctx_options options = failing_alloc_options(&memory, 2);
        n2ce_ctx *ctx;
        struct stat info;
        assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
        memory.fail_at = memory.calls + n;
        const n2ce_status status = n2_csv_write(ctx, path, "", numbers, 1000, 2, true);
        succeeded = status == N2CE_OK;
        if (!succeeded) assert_int_equal(status, N2CE_ENOMEM);
        assert_int_equal(stat(path, &info) == 0, succeeded);
        n2ce_ctx_free(ctx);
        assert_int_equal(memory.live, 0);
    }
    unlink(path);
}

static void a_place_that_is_not_there_is_an_error(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    assert_int_equal(n2_csv_write(ctx, "/proc/n2ce/a", "", numbers, 1, 1, true), N2CE_EIO);
    assert_non_null(strstr(n2ce_errmsg(ctx), "/proc/n2ce/a"));
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_in_its_place),
        cmocka_unit_test(numbers_that_are_not_finite_have_names),
        cmocka_unit_test(running_out_of_memory_leaves_no_file),
        cmocka_unit_test(a_place_that_is_not_there_is_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
