#include "bundle.h"

#include "file.h"

#include <stdio.h>
#include <string.h>

/* ---- gathering ----------------------------------------------------------- */

n2_bundle n2_bundle_new(n2ce_ctx *ctx) { return (n2_bundle){.arena = n2_arena_new(ctx)}; }

void n2_bundle_free(n2_bundle *b) {
    n2_free(b->arena.ctx, b->tensors);
    n2_arena_free(&b->arena);
}

static bool make_room(n2_bundle *b) {
    if (b->n < b->room) return true;
    const size_t room = b->room ? 2 * b->room : 32;
    n2_st_tensor *grown = n2_realloc(b->arena.ctx, b->tensors, room, sizeof *grown);
    if (!grown) return false;
    b->tensors = grown;
    b->room = room;
    return true;
}

void n2_bundle_put(n2_bundle *b, const char *name, n2_st_dtype type, int rank, const int64_t *shape,
                   const void *data) {
    const char *own = n2_arena_strdup(&b->arena, name);
    b->failed = b->failed || !own || rank > N2_ST_RANK_MAX || !make_room(b);
    if (b->failed) return;
    n2_st_tensor *t = &b->tensors[b->n++];
    *t = (n2_st_tensor){.name = own, .dtype = type, .rank = rank, .data = data};
    memcpy(t->shape, shape, (size_t)rank * sizeof *shape);
    t->bytes = n2_st_dtype_bytes(type);
    for (int i = 0; i < rank; i++) t->bytes *= (size_t)shape[i];
}

void n2_bundle_put_doubles(n2_bundle *b, const char *name, size_t rows, size_t cols,
                           const double *x) {
    const int64_t shape[] = {(int64_t)rows, (int64_t)cols};
    n2_bundle_put(b, name, N2_ST_F64, cols ? 2 : 1, shape, x);
}

double *n2_bundle_room(n2_bundle *b, size_t n) {
    double *x = n2_arena_alloc(&b->arena, n, sizeof *x);
    b->failed = b->failed || !x;
    return x;
}

void n2_bundle_note(n2_bundle *b, const char *key, const char *value) {
    const n2_st_pair pair = {n2_arena_strdup(&b->arena, key), n2_arena_strdup(&b->arena, value)};
    b->failed = b->failed || !pair.key || !pair.value || b->n_notes == N2_BUNDLE_NOTES;
    if (!b->failed) b->notes[b->n_notes++] = pair;
}

/* ---- check sum ----------------------------------------------------------- */

/* FNV-1a of 64 bits: any flipped bit changes it. */
static uint64_t mix(uint64_t h, const void *bytes, size_t n) {
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++) h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}

static uint64_t mix_tensor(uint64_t h, const n2_st_tensor *t) {
    const char *type = n2_st_dtype_name(t->dtype);
    h = mix(mix(h, t->name, strlen(t->name) + 1), type, strlen(type) + 1);
    h = mix(h, t->shape, (size_t)t->rank * sizeof t->shape[0]);
    return mix(h, t->data, t->bytes);
}

static const uint64_t FNV_START = 0xcbf29ce484222325u;

/* The sum does not depend on the order of tensors in the file. */
static uint64_t sum_of(const n2_st_tensor *tensor, uint64_t so_far) {
    return so_far + mix_tensor(FNV_START, tensor);
}

static uint64_t sum_of_pair(const n2_st_pair *p, uint64_t so_far) {
    return so_far + mix(mix(FNV_START, p->key, strlen(p->key) + 1), p->value, strlen(p->value) + 1);
}

static void write_sum(uint64_t sum, char out[N2_CHECKSUM_ROOM]) {
    snprintf(out, N2_CHECKSUM_ROOM, "%016llx", (unsigned long long)sum);
}

void n2_checksum(const n2_st_tensor *tensors, size_t n, const n2_st_pair *pairs, size_t n_pairs,
                 char out[N2_CHECKSUM_ROOM]) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n_pairs; i++)
        if (strcmp(pairs[i].key, "checksum") != 0) sum = sum_of_pair(&pairs[i], sum);
    for (size_t i = 0; i < n; i++) sum = sum_of(&tensors[i], sum);
    write_sum(sum, out);
}

bool n2_checksum_fits(const n2_st_file *f) {
    const char *found = n2_st_metadata(f, "checksum");
    char expected[N2_CHECKSUM_ROOM];
    uint64_t sum = 0;
    for (size_t i = 0; i < n2_st_count(f); i++) sum = sum_of(n2_st_at(f, i), sum);
    for (size_t i = 0; i < n2_st_metadata_count(f); i++) {
        const n2_st_pair *p = n2_st_metadata_at(f, i);
        if (strcmp(p->key, "checksum") != 0) sum = sum_of_pair(p, sum);
    }
    write_sum(sum, expected);
    return found && strcmp(found, expected) == 0;
}

/* ---- files --------------------------------------------------------------- */

n2ce_status n2_bundle_write(n2_bundle *b, const char *format, const char *path, bool overwrite) {
    n2ce_ctx *ctx = b->arena.ctx;
    char text[N2_CHECKSUM_ROOM];
    if (!overwrite) N2_TRY(n2_file_check_absent(ctx, path));
    n2_bundle_note(b, "format", format);
    n2_bundle_note(b, "version", n2ce_version());
    if (b->failed) return N2CE_ENOMEM;
    n2_checksum(b->tensors, b->n, b->notes, b->n_notes, text);
    n2_bundle_note(b, "checksum", text);
    if (b->failed) return N2CE_ENOMEM;
    return n2_st_put(ctx, path, b->tensors, b->n, b->notes, b->n_notes,
                     overwrite ? n2_file_write : n2_file_create);
}

n2ce_status n2_bundle_damaged(n2ce_ctx *ctx, const char *path, const char *what) {
    return n2_fail(ctx, N2CE_EDATA,
                   "%s: %s. The file is damaged, or was written by another version of n2ce.", path,
                   what);
}

n2ce_status n2_bundle_check(n2ce_ctx *ctx, const char *path, const n2_st_file *f,
                            const char *format, const char *wanted) {
    const char *found = n2_st_metadata(f, "format");
    if (!found || strncmp(found, "n2ce ", 5) != 0)
        return n2_fail(ctx, N2CE_EDATA, "%s is a safetensors file, but not %s", path, wanted);
    if (strcmp(found, format) != 0)
        return n2_fail(ctx, N2CE_EDATA, "%s has the format \"%.40s\"; this version reads \"%s\".",
                       path, found, format);
    return n2_checksum_fits(f) ? N2CE_OK
                               : n2_bundle_damaged(ctx, path, "the check sum does not fit");
}

bool n2_bundle_can_hold(const n2_st_file *f, double numbers) {
    double bytes = 0;
    for (size_t i = 0; i < n2_st_count(f); i++) bytes += (double)n2_st_at(f, i)->bytes;
    return 2 * numbers <= bytes;
}

n2ce_status n2_bundle_take(n2ce_ctx *ctx, const n2_st_file *f, const char *name, size_t n,
                           double **out) {
    const n2_st_tensor *t = n2_st_find(f, name);
    if (!t || n2_st_elements(t) != n) return N2CE_EDATA;
    *out = n2_alloc(ctx, n, sizeof **out);
    return *out ? n2_st_to_f64(ctx, t, *out, n) : N2CE_ENOMEM;
}
