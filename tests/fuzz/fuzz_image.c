/* Fuzzes the readers of pictures. The input is tried as a file, behind the magic of each format,
 * and as changes to valid files. What is accepted must have the sizes that it says; what is not
 * gets a sentence.
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#include "require.h"

#include "image/image.h"
#include "io/json.h"

#include <stdlib.h>
#include <string.h>

static const unsigned char idx_gz[] = {
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x63, 0x60, 0xe0, 0x60,
    0x66, 0x60, 0x60, 0x60, 0x82, 0x62, 0x66, 0x06, 0x46, 0x26, 0x66, 0x16, 0x56, 0x36,
    0x76, 0x0e, 0x4e, 0x2e, 0x6e, 0x00, 0x78, 0x1e, 0x23, 0x84, 0x1c, 0x00, 0x00, 0x00};
static const unsigned char idx_xz[] = {
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x01, 0x03, 0x01,
    0x00, 0x21, 0x01, 0x0c, 0x03, 0xd9, 0xa6, 0x13, 0xe0, 0x00, 0x1b, 0x00, 0x13, 0x5d, 0x00, 0x00,
    0x00, 0x01, 0xd1, 0x4a, 0x86, 0xa4, 0x45, 0xb9, 0xc9, 0xef, 0x9f, 0x91, 0x16, 0xd7, 0x2a, 0x7f,
    0x40, 0x00, 0x00, 0x00, 0x78, 0x1e, 0x23, 0x84, 0x00, 0x01, 0x2b, 0x1c, 0x0d, 0x14, 0xf7, 0x42,
    0x90, 0x42, 0x99, 0x0d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a};
static const unsigned char palette_png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44,
    0x52, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x01, 0x01, 0x03, 0x00, 0x00, 0x00, 0x21,
    0x2e, 0x86, 0xf7, 0x00, 0x00, 0x00, 0x06, 0x50, 0x4c, 0x54, 0x45, 0x01, 0x02, 0x03, 0xfa,
    0xfb, 0xfc, 0xfd, 0x5e, 0xe6, 0xa3, 0x00, 0x00, 0x00, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78,
    0xda, 0x63, 0x58, 0x00, 0x00, 0x00, 0xa2, 0x00, 0xa1, 0x71, 0x05, 0xcb, 0x41, 0x00, 0x00,
    0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
static const unsigned char interlaced_png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44,
    0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x08, 0x00, 0x00, 0x00, 0x01, 0x20,
    0xda, 0x62, 0x6e, 0x00, 0x00, 0x00, 0x0f, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xe0,
    0x62, 0x10, 0x61, 0x90, 0xd3, 0x00, 0x00, 0x00, 0xf7, 0x00, 0x65, 0x26, 0x2e, 0x0e, 0x42,
    0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
static const unsigned char idx[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0,  0,
                                    0, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const unsigned char npy[] =
    "\x93NUMPY\x01\x00\x3d\x00{'descr': '|u1', 'fortran_order': False, "
    "'shape': (1,2,2,3)}\nabcdefghijkl";
static const unsigned char cifar10[3073]; /* one black picture of class 0 */

static const struct {
    const unsigned char *bytes;
    size_t n, magic; /* the first bytes are the magic */
} valid[] = {{idx, sizeof idx, 4},
             {npy, sizeof npy - 1, 8},
             {idx_gz, sizeof idx_gz, 10},
             {idx_xz, sizeof idx_xz, 6},
             {interlaced_png, sizeof interlaced_png, 16},
             {palette_png, sizeof palette_png, 16},
             {cifar10, sizeof cifar10, 1}};

enum { N_VALID = sizeof valid / sizeof valid[0] };

static bool try_file(const uint8_t *bytes, size_t n) {
    n2ce_ctx *ctx;
    n2_images *p;
    size_t sum = 0;
    REQUIRE(n2ce_ctx_new(&ctx, NULL) == N2CE_OK);
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

static void try_behind_magic(size_t k, const uint8_t *data, size_t size) {
    uint8_t *bytes = malloc(valid[k].magic + size);
    REQUIRE(bytes);
    memcpy(bytes, valid[k].bytes, valid[k].magic);
    if (size > 0) memcpy(bytes + valid[k].magic, data, size);
    try_file(bytes, valid[k].magic + size);
    free(bytes);
}

/* A valid file with some of its bytes replaced: the input is places and bytes. */
static void try_edits(size_t k, const uint8_t *data, size_t size) {
    uint8_t *bytes = malloc(valid[k].n);
    REQUIRE(bytes);
    memcpy(bytes, valid[k].bytes, valid[k].n);
    for (size_t i = 0; i + 1 < size; i += 2) bytes[data[i] % valid[k].n] = data[i + 1];
    try_file(bytes, valid[k].n);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_file(data, size);
    REQUIRE(try_file(cifar10, sizeof cifar10));
    for (size_t k = 0; k < N_VALID; k++) {
        try_behind_magic(k, data, size);
        try_edits(k, data, size);
    }
    return 0;
}

#ifdef FUZZ_REPLAY
#include "replay.h"

/* A valid file but the last, which is large, with up to three bytes changed, sometimes cut. The two
 * that need no library must be accepted as they are. */
static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room) {
    const size_t k = next_random(state) % (N_VALID - 1), n = valid[k].n;
    REQUIRE(n <= room && (k > 1 || try_file(valid[k].bytes, n)));
    memcpy(buffer, valid[k].bytes, n);
    for (uint32_t left = next_random(state) % 4; left > 0; left--)
        buffer[next_random(state) % n] = (uint8_t)next_random(state);
    return next_random(state) % 8 ? n : next_random(state) % n;
}

#endif
