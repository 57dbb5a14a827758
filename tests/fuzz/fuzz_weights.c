/* Fuzzes the list of a network's weights. The input is tried as a list, and as changes to a valid
 * one. What is accepted is inside the file.
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    char changed[sizeof valid];
    n2ce_ctx *ctx;
    REQUIRE(n2ce_ctx_new(&ctx, NULL) == N2CE_OK);
    read_list(ctx, (const char *)bytes, n);
    memcpy(changed, valid, sizeof valid);
    for (size_t i = 0; i + 1 < n && i < 16; i += 2)
        changed[bytes[i] % (sizeof valid - 1)] = (char)bytes[i + 1];
    read_list(ctx, changed, sizeof valid - 1);
    n2ce_ctx_free(ctx);
    return 0;
}

#ifdef FUZZ_REPLAY
#include "replay.h"

/* The valid list, a few of its bytes replaced by pieces of others. */
static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room) {
    static const char *const pieces[] = {"x", " ", "\n", "0",    "9999",
                                         "#", "-", "1x", "\xc3", " 4 "};
    const size_t n = sizeof valid - 1;
    REQUIRE(n <= room);
    memcpy(buffer, valid, n);
    for (uint32_t left = next_random(state) % 4; left > 0; left--) {
        const char *piece = pieces[next_random(state) % (sizeof pieces / sizeof pieces[0])];
        const size_t at = next_random(state) % n, length = strlen(piece);
        memcpy(buffer + at, piece, length < n - at ? length : n - at);
    }
    return next_random(state) % 8 ? n : next_random(state) % n;
}

#endif
