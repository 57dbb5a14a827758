/* A target for files of what was trained. The input is tried as a file, and as changes to the
 * tensors and texts of a valid one under a check sum that fits; its first byte says of which kind,
 * and how. What is refused is so in a sentence. */
#ifndef TRAINED_FILE_H
#define TRAINED_FILE_H

#include "memory_file.h"
#include "one_thread.h"
#include "tensor_parts.h"

#include "io/json.h"

typedef struct kind {
    /* Writes a valid file; its reader, and use of what was read. */
    void (*save)(n2ce_ctx *ctx, const char *path);
    n2ce_status (*load)(n2ce_ctx *ctx, const char *path);
    char *bytes; /* of a valid file, kept; NULL: not made yet */
    n2_st_file *file;
} kind;

static void make(kind *k) {
    static n2ce_ctx *ctx;
    char folder[] = "/dev/shm/fuzz_trained_XXXXXX", path[64];
    if (!ctx) ctx = one_thread();
    REQUIRE(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    k->save(ctx, path);
    FILE *file = fopen(path, "rb");
    REQUIRE(file && (k->bytes = malloc(1 << 20)));
    const size_t n = fread(k->bytes, 1, 1 << 20, file);
    fclose(file);
    REQUIRE(n2_st_parse(ctx, "valid", k->bytes, n, &k->file) == N2CE_OK);
    unlink(path);
    rmdir(folder);
}

static n2ce_status load(const kind *k, const void *bytes, size_t n) {
    static memory_file file;
    n2ce_ctx *ctx = one_thread();
    const n2ce_status status = k->load(ctx, in_memory(&file, bytes, n));
    REQUIRE(status == N2CE_OK || status == N2CE_EDATA);
    if (status != N2CE_OK) REQUIRE(*n2ce_errmsg(ctx) && n2_is_utf8(n2ce_errmsg(ctx)));
    n2ce_ctx_free(ctx);
    return status;
}

/* ---- changes ------------------------------------------------------------------------------- */

/* Number `at` of a text is another one. */
static void change_number(st_parts *p, size_t i, size_t at, size_t which) {
    static const char *const numbers[] = {"-1",    "0",       "1",    "2",   "3",  "7",
                                          "65536", "1000000", "1e99", "0.5", "64", "256"};
    char *text = p->texts[i], *begin = text, *changed = calloc(strlen(text) + 16, 1);
    REQUIRE(changed);
    for (at %= 40; at > 0 && strchr(begin, ':'); at--) begin = strchr(begin, ':') + 1;
    memcpy(changed, text, (size_t)(begin - text));
    strcat(changed, numbers[which % (sizeof numbers / sizeof numbers[0])]);
    strcat(changed, begin + strcspn(begin, ",}]"));
    free(text);
    p->pairs[i].value = p->texts[i] = changed;
}

static void change(st_parts *p, const uint8_t e[3]) {
    const size_t i = e[1] % p->n_pairs, n = strlen(p->texts[i]);
    if (e[0] % 5 == 0) change_number(p, i, e[1] / p->n_pairs, e[2]);
    if (e[0] % 5 == 1 && n > 0) p->texts[i][e[2] % n] = (char)(' ' + e[0] / 5 + e[1] / 8);
    if (e[0] % 5 > 1) edit_tensor(p, e[0] % 5 - 2, e[1], e[2]);
}

static void try_parts(const kind *k, const uint8_t *bytes, size_t n) {
    n2ce_ctx *ctx = one_thread();
    st_parts p;
    size_t length;
    take_apart(k->file, &p);
    for (size_t i = 0; i + 2 < n && i < 12; i += 3) change(&p, bytes + i);
    char *encoded = put_together(ctx, &p, &length);
    const n2ce_status status = encoded ? load(k, encoded, length) : N2CE_EDATA;
    if (n < 3) REQUIRE(status == N2CE_OK);
    n2_free(ctx, encoded);
    parts_free(&p);
    n2ce_ctx_free(ctx);
}

/* Seven of eight inputs are changes. */
static void try_input(kind *kinds, size_t n_kinds, const uint8_t *bytes, size_t n) {
    kind *k = &kinds[(n ? bytes[0] : 0) % n_kinds];
    if (!k->file) make(k);
    const size_t skip = n > 0;
    if (n && bytes[0] / n_kinds % 8 == 1)
        (void)load(k, bytes + skip, n - skip);
    else
        try_parts(k, bytes + skip, n - skip);
}

#ifdef FUZZ_REPLAY
#include "replay.h"

/* Which kind, and up to three changes. */
static size_t random_input(uint32_t *state, uint8_t *buffer, size_t room) {
    const size_t n = 1 + 3 * (next_random(state) % 4);
    REQUIRE(n <= room);
    for (size_t i = 0; i < n; i++) buffer[i] = (uint8_t)next_random(state);
    return n;
}
#endif

#endif
