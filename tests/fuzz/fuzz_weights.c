/* Fuzzes the list of a network's weights. The input is tried as a list, and as changes to a valid
 * one. What is accepted is inside the file.
 *
 * libFuzzer: -max_len=512
 * traced: metric
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#include "require.h"

#include "io/json.h"
#include "metric/weights_file.h"

#include <string.h>

enum { FILE_BYTES = 5000 };

static void read_list(n2ce_ctx *ctx, const char *bytes, size_t n) {
    n2_weights_array *array;
    size_t count = 0;
    n2_text list = n2_text_new(ctx);
    n2_text_add_raw(&list, bytes, n);
    const n2ce_status status =
        n2_weights_parse_list(ctx, "fuzz", &list, FILE_BYTES, &array, &count);
    REQUIRE(status == N2CE_OK || status == N2CE_EDATA);
    REQUIRE((status == N2CE_OK) == (array != NULL));
    for (size_t i = 0; status == N2CE_OK && i < count; i++) {
        size_t product = 1;
        for (int k = 0; k < array[i].rank; k++) product *= array[i].dim[k];
        REQUIRE(product == array[i].count && array[i].offset % 4 == 0);
        REQUIRE(array[i].offset + 4 * array[i].count <= FILE_BYTES);
        REQUIRE(memchr(array[i].name, '\0', sizeof array[i].name));
    }
    if (status != N2CE_OK)
        REQUIRE(strncmp(n2ce_errmsg(ctx), "fuzz: ", 6) == 0 && n2_is_utf8(n2ce_errmsg(ctx)));
    n2_free(ctx, array);
    n2_text_free(&list);
}

static const char valid[] = "# name shape offset count\nconv1.weight 16x3x3x3 0 432\n"
                            "bn1.weight 16 1728 16\nlinear.weight 10x64 1792 640\n";

static const char *const pieces[] = {"x", " ", "\n", "0", "9999", "#", "-", "1x", "\xc3", " 4 "};

#include "fuzz_list.h"
