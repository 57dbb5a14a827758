/* Fuzzes the readers of pictures. The input is tried as a file, behind the magic of each format,
 * and as changes to valid files. What is accepted must have the sizes that it says; what is not
 * gets a sentence. In the end standard error is told how many files of each format were tried.
 *
 * libFuzzer: -max_len=512
 * traced: image
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#include "known_images.h"
#include "one_thread.h"

#include "image/image.h"
#include "io/json.h"

#include <stdlib.h>
#include <string.h>

static const unsigned char npy[] =
    "\x93NUMPY\x01\x00\x3d\x00{'descr': '|u1', 'fortran_order': False, "
    "'shape': (1,2,2,3)}\nabcdefghijkl";
static const unsigned char cifar10[2 * 3073]; /* two black pictures of class 0 */

static struct {
    const char *format;
    const unsigned char *bytes;
    size_t n, magic;        /* the first bytes are the magic */
    size_t tried, accepted; /* files so far */
} valid[] = {{"IDX", idx, sizeof idx, 4, 0, 0},
             {"NPY", npy, sizeof npy - 1, 8, 0, 0},
             {"gzip", idx_gz, sizeof idx_gz, 10, 0, 0},
             {"xz", idx_xz, sizeof idx_xz, 6, 0, 0},
             {"PNG", interlaced_png, sizeof interlaced_png, 16, 0, 0},
             {"PNG with a palette", palette_png, sizeof palette_png, 16, 0, 0},
             {"CIFAR-10", cifar10, sizeof cifar10, 1, 0, 0}};

enum { N_VALID = sizeof valid / sizeof valid[0], PNG_MAGIC = 8, PNG_AROUND = 12 };

static bool try_file(const uint8_t *bytes, size_t n) {
    n2ce_ctx *ctx = one_thread();
    n2_images *p;
    size_t sum = 0;
    const n2ce_status status = n2_images_parse(ctx, "fuzz", bytes, n, &p);
    REQUIRE(status == N2CE_OK || status == N2CE_EDATA);
    REQUIRE((status == N2CE_OK) == (p != NULL));
    if (p) {
        const size_t all = p->n * p->height * p->width * p->channels;
        REQUIRE(all > 0 && (p->channels == 1 || p->channels == 3));
        for (size_t i = 0; i < all; i++) sum += p->pixels[i];
        for (size_t i = 0; p->labels && i < p->n; i++) REQUIRE(p->labels[i] < 10);
        REQUIRE(sum <= 255 * all);
    } else {
        REQUIRE(strncmp(n2ce_errmsg(ctx), "fuzz", 4) == 0 && n2_is_utf8(n2ce_errmsg(ctx)));
    }
    n2_images_free(p);
    n2ce_ctx_free(ctx);
    return status == N2CE_OK;
}

/* ---- check sums of a PNG, so that changes reach what is behind them ------------------------ */

static uint32_t crc32_of(const uint8_t *bytes, size_t n) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void mend_png(uint8_t *bytes, size_t n) {
    size_t at = PNG_MAGIC;
    while (n >= PNG_AROUND && at <= n - PNG_AROUND) {
        uint8_t *chunk = bytes + at;
        const size_t length =
            (size_t)chunk[0] << 24 | (size_t)chunk[1] << 16 | (size_t)chunk[2] << 8 | chunk[3];
        if (length > n - at - PNG_AROUND) return;
        const uint32_t crc = crc32_of(chunk + 4, length + 4);
        for (int k = 0; k < 4; k++) chunk[8 + length + (size_t)k] = (uint8_t)(crc >> (24 - 8 * k));
        at += PNG_AROUND + length;
    }
}

/* ---- files out of an input ---------------------------------------------------------------- */

static void try_as(size_t k, uint8_t *bytes, size_t n) {
    valid[k].tried++;
    valid[k].accepted += try_file(bytes, n);
}

static void try_behind_magic(size_t k, const uint8_t *data, size_t size) {
    uint8_t *bytes = malloc(valid[k].magic + size);
    REQUIRE(bytes);
    memcpy(bytes, valid[k].bytes, valid[k].magic);
    if (size > 0) memcpy(bytes + valid[k].magic, data, size);
    try_as(k, bytes, valid[k].magic + size);
    free(bytes);
}

/* A valid file with some of its bytes replaced: the input is places and bytes. If the first byte
 * is even a PNG's check sums are put right; of every eighth file the end is missing. */
static void try_edits(size_t k, const uint8_t *data, size_t size) {
    const size_t first = size > 0 ? data[0] : 0, n = valid[k].n;
    uint8_t *bytes = malloc(n);
    REQUIRE(bytes);
    memcpy(bytes, valid[k].bytes, n);
    for (size_t i = 1; i + 2 < size; i += 3)
        bytes[((size_t)data[i] << 8 | data[i + 1]) % n] = data[i + 2];
    if (first % 2 == 0 && memcmp(bytes, "\x89PNG", 4) == 0) mend_png(bytes, n);
    try_as(k, bytes, first % 8 == 1 ? n - (first / 8 + 1) % n : n);
    free(bytes);
}

static void tell(void) {
    for (size_t k = 0; k < N_VALID; k++)
        fprintf(stderr, "%-20s%9zu files, %9zu of them accepted\n", valid[k].format, valid[k].tried,
                valid[k].accepted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool begun;
    if (!begun) atexit(tell);
    begun = true;
    try_file(data, size);
    for (size_t k = 0; k < N_VALID; k++) {
        try_behind_magic(k, data, size);
        try_edits(k, data, size);
    }
    return 0;
}

#ifdef FUZZ_REPLAY
#include "replay.h"

/* A valid file but the last, which is large, with up to three bytes changed, sometimes cut; or
 * changes to any. Those that need no library must be accepted as they are. */
static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room) {
    const size_t k = next_random(state) % (N_VALID - 1), n = valid[k].n;
    REQUIRE(n <= room && try_file(cifar10, sizeof cifar10));
    REQUIRE(k > 1 || try_file(valid[k].bytes, n));
    if (next_random(state) % 2) {
        const size_t edits = 1 + 3 * (next_random(state) % 8);
        for (size_t i = 0; i < edits; i++) buffer[i] = (uint8_t)next_random(state);
        return edits;
    }
    memcpy(buffer, valid[k].bytes, n);
    for (uint32_t left = next_random(state) % 4; left > 0; left--)
        buffer[next_random(state) % n] = (uint8_t)next_random(state);
    return next_random(state) % 8 ? n : next_random(state) % n;
}

#endif
