/* Fuzzes checkpoints. The input is tried as a file, and as changes to a valid one: bytes that are
 * replaced, and where it ends. What is refused changes nothing and is told in a sentence; what is
 * accepted, such as another blank between two words, has the numbers and the note of the valid one.
 *
 *     clang -fsanitize=fuzzer,address,undefined ...     a libFuzzer program
 *     cc -DFUZZ_REPLAY ...                              a plain one: see main() */
#define _GNU_SOURCE
#include "memory_file.h"

#include "engine/plan.h"
#include "io/json.h"
#include "nn/nn.h"
#include "ref/ref.h"
#include "rewrite/rewrites.h"

#include <stdlib.h>
#include <string.h>

static const char NOTE[] = "M=1\n\n0 3 ";

static n2ce_ctx *ctx;
static n2_store *store;
static n2_plan *plan;
static n2_tensor *w;
static char *valid;
static size_t valid_bytes;

static void read_valid(const char *path) {
    FILE *file = fopen(path, "rb");
    REQUIRE(file && (valid = malloc(1 << 16)));
    valid_bytes = fread(valid, 1, 1 << 16, file);
    fclose(file);
    REQUIRE(valid_bytes > 100);
}

/* A store of two tensors, a plan that adds one to the other, and their checkpoint. */
static void set_up(void) {
    char path[] = "/tmp/fuzz_checkpoint_XXXXXX", file[sizeof path + 8];
    REQUIRE(n2ce_ctx_new(&ctx, NULL) == N2CE_OK && mkdtemp(path));
    REQUIRE(n2_store_new(ctx, sizeof(double), &store) == N2CE_OK);
    w = n2_store_add(store, "w", n2_dims(3, 2));
    n2_graph *g = n2_graph_new(store);
    n2g_assign(g, w, n2g_affine(g, n2g_read(g, w), 1, 1));
    REQUIRE(n2_plan_compile(g, n2_ref_backend(), NULL, 0, &plan) == N2CE_OK);
    n2_graph_free(g);
    snprintf(file, sizeof file, "%s/state", path);
    REQUIRE(n2_checkpoint_save_noted(store, plan, NOTE, file) == N2CE_OK);
    read_valid(file);
    unlink(file);
    rmdir(path);
}

static void load(const void *bytes, size_t n) {
    static memory_file file;
    const char *path = in_memory(&file, bytes, n);
    const bool same = n == valid_bytes && memcmp(bytes, valid, n) == 0;
    double before[6];
    n2_text note = n2_text_new(ctx);
    char device[N2_DEVICE_NAME];
    memcpy(before, w->data, sizeof before);
    const n2ce_status status = n2_checkpoint_load(store, plan, path);
    REQUIRE(status == N2CE_OK || (status == N2CE_EDATA && !same));
    if (status != N2CE_OK) REQUIRE(n2_is_utf8(n2ce_errmsg(ctx)));
    REQUIRE(memcmp(before, w->data, sizeof before) == 0); /* the valid one has the same */
    const n2ce_status noted = n2_checkpoint_note(ctx, path, &note);
    if (status == N2CE_OK)
        REQUIRE(noted == N2CE_OK && note.length == strlen(NOTE) &&
                !memcmp(note.data, NOTE, note.length));
    (void)n2_checkpoint_device(ctx, path, device);
    (void)n2_is_checkpoint(ctx, path);
    n2_text_free(&note);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static char changed[1 << 16];
    if (!ctx) set_up();
    load(bytes, n);
    memcpy(changed, valid, valid_bytes);
    for (size_t i = 0; i + 2 < n && i < 48; i += 3)
        changed[((size_t)bytes[i] << 8 | bytes[i + 1]) % valid_bytes] = (char)bytes[i + 2];
    load(changed, valid_bytes);
    if (n > 1) load(changed, ((size_t)bytes[0] << 8 | bytes[1]) % (valid_bytes + 1));
    return 0;
}

#ifdef FUZZ_REPLAY
#include "replay.h"

static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room) {
    const size_t n = next_random(state) % (room < 60 ? room : 60);
    for (size_t i = 0; i < n; i++) buffer[i] = (uint8_t)next_random(state);
    return n;
}
#endif
