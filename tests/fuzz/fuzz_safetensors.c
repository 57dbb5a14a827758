/* Fuzzes the safetensors reader. The input is tried as a file, as a header and a buffer
 * without the size, and as changes to a valid file. What is accepted must be consistent, and must
 * survive writing and reading.
 *
 * libFuzzer: -max_len=512
 * traced: io
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#include "io/safetensors.h"
#include "one_thread.h"

#include "io/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads every element. */
static void convert(n2ce_ctx *ctx, const n2_st_tensor *t) {
    const size_t n = n2_st_elements(t);
    double *wide = malloc((n + 1) * sizeof *wide);
    float *narrow = malloc((n + 1) * sizeof *narrow);
    REQUIRE(wide && narrow);
    const n2ce_status expected = t->dtype == N2_ST_BOOL ? N2CE_EDATA : N2CE_OK;
    REQUIRE(n2_st_to_f64(ctx, t, wide, n) == expected);
    REQUIRE(n2_st_to_f32(ctx, t, narrow, n) == expected);
    REQUIRE(n2_st_to_f64(ctx, t, wide, n + 1) == N2CE_EDATA);
    free(wide);
    free(narrow);
}

/* The tensors fill the end of the bytes, one after the other, and are found by name. */
static void check_tensors(n2ce_ctx *ctx, const n2_st_file *file, const uint8_t *bytes, size_t n) {
    const uint8_t *at = bytes + n;
    for (size_t i = n2_st_count(file); i-- > 0;) {
        const n2_st_tensor *t = n2_st_at(file, i);
        at -= t->bytes;
        REQUIRE(t->data == at && at >= bytes + 8);
        REQUIRE(n2_st_find(file, t->name) == t && n2_is_utf8(t->name));
        REQUIRE(t->rank >= 0 && t->rank <= N2_ST_RANK_MAX);
        size_t product = n2_st_dtype_bytes(t->dtype);
        for (int k = 0; k < t->rank; k++) product *= (size_t)t->shape[k];
        REQUIRE(product == t->bytes);
        convert(ctx, t);
    }
    for (size_t i = 0; i < n2_st_metadata_count(file); i++) {
        const n2_st_pair *pair = n2_st_metadata_at(file, i);
        REQUIRE(n2_st_metadata(file, pair->key) == pair->value && n2_is_utf8(pair->value));
    }
}

static void check_same(const n2_st_file *a, const n2_st_file *b) {
    REQUIRE(n2_st_count(a) == n2_st_count(b));
    for (size_t i = 0; i < n2_st_count(a); i++) {
        const n2_st_tensor *x = n2_st_at(a, i), *y = n2_st_find(b, x->name);
        REQUIRE(y && x->dtype == y->dtype && x->rank == y->rank && x->bytes == y->bytes);
        REQUIRE(memcmp(x->shape, y->shape, sizeof x->shape) == 0);
        REQUIRE(x->bytes == 0 || memcmp(x->data, y->data, x->bytes) == 0);
    }
    REQUIRE(n2_st_metadata_count(a) == n2_st_metadata_count(b));
    for (size_t i = 0; i < n2_st_metadata_count(a); i++) {
        const n2_st_pair *x = n2_st_metadata_at(a, i), *y = n2_st_metadata_at(b, i);
        REQUIRE(strcmp(x->key, y->key) == 0 && strcmp(x->value, y->value) == 0);
    }
}

/* Writing what was read, and reading that, gives the same. */
static void round_trip(n2ce_ctx *ctx, const n2_st_file *file) {
    const size_t n = n2_st_count(file);
    n2_st_tensor *tensors = malloc((n + 1) * sizeof *tensors);
    REQUIRE(tensors);
    for (size_t i = 0; i < n; i++) tensors[i] = *n2_st_at(file, i);
    char *bytes;
    size_t size;
    n2_st_file *again;
    REQUIRE(n2_st_encode(ctx, tensors, n, n2_st_metadata_at(file, 0), n2_st_metadata_count(file),
                         &bytes, &size) == N2CE_OK);
    REQUIRE(n2_st_parse(ctx, "again", bytes, size, &again) == N2CE_OK);
    check_same(file, again);
    n2_st_close(again);
    n2_free(ctx, bytes);
    free(tensors);
}

static void try_file(const uint8_t *bytes, size_t n) {
    n2ce_ctx *ctx = one_thread();
    n2_st_file *file;
    const n2ce_status status = n2_st_parse(ctx, "fuzz", bytes, n, &file);
    REQUIRE(status == N2CE_OK || status == N2CE_EDATA);
    REQUIRE((status == N2CE_OK) == (file != NULL));
    if (status == N2CE_OK) {
        check_tensors(ctx, file, bytes, n);
        round_trip(ctx, file);
    } else {
        REQUIRE(strncmp(n2ce_errmsg(ctx), "fuzz: ", 6) == 0 && n2_is_utf8(n2ce_errmsg(ctx)));
    }
    n2_st_close(file);
    n2ce_ctx_free(ctx);
}

static const char valid[] =
    "{\"__metadata__\":{\"a\":\"\\u00e9\",\"b\":\"\"},\"w\":{\"dtype\":\"F16\",\"shape\":[2,1],"
    "\"data_offsets\":[0,4]},\"\\ud83d\\ude42\":{\"dtype\":\"U8\",\"shape\":[],\"x\":[{}],"
    "\"data_offsets\":[4,5]}}\n12345";

/* A header that ends at the first newline, and a buffer: adds the size and tries them. */
static void try_header(const uint8_t *data, size_t size) {
    const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;
    const size_t header = newline ? (size_t)(newline - data) + 1 : size;
    uint8_t *bytes = malloc(8 + size);
    REQUIRE(bytes);
    for (size_t i = 0; i < 8; i++) bytes[i] = (uint8_t)((uint64_t)header >> (8 * i));
    if (size > 0) memcpy(bytes + 8, data, size);
    try_file(bytes, 8 + size);
    free(bytes);
}

/* The valid header with some of its bytes replaced: the input is places and bytes. */
static void try_edits(const uint8_t *data, size_t size) {
    uint8_t edited[sizeof valid - 1];
    memcpy(edited, valid, sizeof edited);
    for (size_t i = 0; i + 1 < size; i += 2) edited[data[i] % sizeof edited] = data[i + 1];
    try_header(edited, sizeof edited);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_file(data, size);
    try_header(data, size);
    try_edits(data, size);
    return 0;
}

#ifdef FUZZ_REPLAY
#include "replay.h"

/* A valid header, a few of its bytes replaced by pieces of others, and a buffer. */
static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room) {
    static const char *const pieces[] = {"{",    "}",    "[",   "]",      ",",     ":",   "\"",
                                         "\\",   "0",    "1",   "-",      "e",     ".",   " ",
                                         "null", "\\ud", "F64", "\\u000", "shape", "\n",  "9999",
                                         "4",    "BOOL", "w",   "\xc3",   "\xa9",  "true"};
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
