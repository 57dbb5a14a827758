/* Fuzzes the NPY reader. The input is tried as a file, as a header and elements without the magic,
 * and as changes to a valid file; each mapped, and streamed in pieces. What is accepted must have
 * the size that it says, and must not depend on how it is read.
 *
 * libFuzzer: -max_len=512
 * traced: io
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#include "one_thread.h"

#include "io/json.h"
#include "io/npy.h"
#include "io/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* The first columns of all rows, to memory that the caller frees; NULL if the file is refused. */
static double *read_array(n2ce_ctx *ctx, const uint8_t *bytes, size_t n, size_t chunk,
                          size_t *values) {
    static const size_t columns[] = {0, 1, 2};
    n2_input in = n2_input_memory(ctx, "fuzz", bytes, n);
    n2_npy *npy;
    double *x = NULL;
    size_t rows = 0;
    in.chunk = chunk;
    n2ce_status status = n2_npy_open(ctx, &in, &npy);
    REQUIRE((status == N2CE_OK) == (npy != NULL));
    const size_t cols = npy ? least(n2_npy_cols(npy), 3) : 0;
    for (size_t got = 1; status == N2CE_OK && got > 0; rows += got) {
        x = realloc(x, (rows + 2) * 3 * sizeof *x);
        REQUIRE(x);
        status = n2_npy_next(npy, columns, cols, x + rows * cols, chunk ? chunk % 2 + 1 : 2, &got);
        if (cols == 0) break;
    }
    REQUIRE(status == N2CE_OK || status == N2CE_EDATA);
    if (status == N2CE_OK && cols > 0) REQUIRE(rows == n2_npy_rows(npy) && rows <= n);
    if (status != N2CE_OK)
        REQUIRE(strncmp(n2ce_errmsg(ctx), "fuzz: ", 6) == 0 && n2_is_utf8(n2ce_errmsg(ctx)));
    *values = rows * cols;
    n2_npy_close(npy);
    n2_input_close(&in);
    if (status == N2CE_OK && *values > 0) return x;
    free(x);
    return NULL;
}

/* Through the front door: accepted if it was above, and all numbers are finite. */
static void read_table(n2ce_ctx *ctx, const uint8_t *bytes, size_t n, bool accepted) {
    n2_reader *r;
    double x[64];
    size_t got = 1;
    n2ce_status status = n2_reader_parse(ctx, "fuzz", bytes, n, NULL, &r);
    REQUIRE(status == N2CE_OK || status == N2CE_EDATA);
    if (n2_is_npy(bytes, n)) REQUIRE((status == N2CE_OK) == accepted);
    while (r && status == N2CE_OK && got > 0 && n2_reader_cols(r) <= 64)
        status = n2_reader_next(r, x, 64 / n2_reader_cols(r), &got);
    REQUIRE(status == N2CE_OK || status == N2CE_EDATA);
    n2_reader_close(r);
}

static void try_file(const uint8_t *bytes, size_t n) {
    n2ce_ctx *ctx = one_thread();
    size_t values, again;
    double *x = read_array(ctx, bytes, n, 0, &values);
    for (size_t chunk = 1; chunk < 4; chunk++) {
        double *y = read_array(ctx, bytes, n, chunk, &again);
        REQUIRE((x != NULL) == (y != NULL));
        REQUIRE(!x || (values == again && memcmp(x, y, values * sizeof *x) == 0));
        free(y);
    }
    read_table(ctx, bytes, n, x != NULL);
    free(x);
    n2ce_ctx_free(ctx);
}

static const char valid[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n"
                            "1234abcd5678efghABCD9012";

/* A header that ends at the first newline, and elements: adds magic, version and size. */
static void try_header(const uint8_t *data, size_t size) {
    const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;
    const size_t header = newline ? (size_t)(newline - data) + 1 : size;
    uint8_t *bytes = malloc(12 + size);
    REQUIRE(bytes);
    memcpy(bytes, "\x93NUMPY\x02\x00", 8);
    for (size_t i = 0; i < 4; i++) bytes[8 + i] = (uint8_t)(header >> (8 * i));
    if (size > 0) memcpy(bytes + 12, data, size);
    try_file(bytes, 12 + size);
    free(bytes);
}

/* The valid file with some of its bytes replaced: the input is places and bytes. */
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

/* The valid file, a few of its bytes replaced by pieces of others. */
static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room) {
    static const char *const pieces[] = {"{",   "}",   "(",    ")",    ",",   ":",     "'",
                                         "\"",  "0",   "1",    "6,",   " ",   "True ", "<f8",
                                         ">f8", "|u1", "<i2",  "|O",   "[",   "descr", "shape",
                                         "\n",  "L",   "9999", "\xc3", "), ", "1, 6"};
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
