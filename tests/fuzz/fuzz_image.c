/* Fuzzes the readers of pictures. The input is tried as a file, behind the magic of each format,
 * and as changes to valid files. What is accepted must have the sizes that it says; what is not
 * gets a sentence.
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#include "known_images.h"
#include "require.h"

#include "image/image.h"
#include "io/json.h"

#include <stdlib.h>
#include <string.h>

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
