/* A safetensors file with everything in it, and a folder to put it in.
 * tests/check_safetensors.py describes the same file in Python. */
#ifndef TEST_KNOWN_TENSORS_H
#define TEST_KNOWN_TENSORS_H

#include "close.h"
#include "files.h"

#include "io/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the known file --------------------------------------------------------------------- */

static const n2_st_pair known_metadata[] = {
    {"note", "na\xc3\xafve \"quoted\" \\ \n\t\x01 \xf0\x9f\x99\x82"},
    {"format", "pt"},
    {"", ""},
};

enum { MAX_TENSORS = 32, ROOM = 128 };

typedef struct known {
    n2_st_tensor tensors[MAX_TENSORS];
    char names[MAX_TENSORS][32];
    unsigned char data[MAX_TENSORS][ROOM];
    size_t n;
} known;

static inline void put_bytes(unsigned char *p, uint64_t bits, size_t n) {
    for (size_t i = 0; i < n; i++) p[i] = (unsigned char)(bits >> (8 * i));
}

/* The bits of a small multiple of 1/2 as a half-precision number. */
static inline uint64_t half_bits(double value) {
    int exponent;
    const double fraction = frexp(fabs(value), &exponent);
    const uint64_t sign = value < 0 ? 0x8000 : 0;
    return value == 0 ? 0
                      : sign | (uint64_t)(exponent + 14) << 10 | ((int)(fraction * 2048) & 1023);
}

static inline void put_value(n2_st_dtype dtype, double value, unsigned char *p) {
    const float single = (float)value;
    uint32_t single_bits;
    memcpy(&single_bits, &single, sizeof single);
    const size_t bytes = n2_st_dtype_bytes(dtype);
    if (dtype == N2_ST_F64)
        memcpy(p, &value, sizeof value);
    else if (dtype == N2_ST_F32)
        put_bytes(p, single_bits, bytes);
    else if (dtype == N2_ST_BF16)
        put_bytes(p, single_bits >> 16, bytes);
    else if (dtype == N2_ST_F16)
        put_bytes(p, half_bits(value), bytes);
    else
        put_bytes(p, (uint64_t)(int64_t)value, bytes);
}

/* Element i of every tensor of a type: in steps of 1/2 from -1, of 1 from -2, or of 1 from 0. */
static inline double known_value(n2_st_dtype dtype, size_t i) {
    if (dtype <= N2_ST_BF16) return (double)i / 2 - 1;
    if (dtype <= N2_ST_I8) return (double)i - 2;
    return dtype == N2_ST_BOOL ? (double)(i % 2) : (double)i;
}

static inline void add_known(known *k, const char *name, n2_st_dtype dtype, int rank,
                             const int64_t *shape) {
    assert_true(k->n < MAX_TENSORS);
    n2_st_tensor *t = &k->tensors[k->n];
    *t = (n2_st_tensor){.dtype = dtype, .rank = rank, .data = k->data[k->n]};
    t->name = strcpy(k->names[k->n], name);
    size_t elements = 1;
    for (int i = 0; i < rank; i++) elements *= (size_t)(t->shape[i] = shape[i]);
    t->bytes = elements * n2_st_dtype_bytes(dtype);
    assert_true(t->bytes <= ROOM);
    for (size_t i = 0; i < elements; i++)
        put_value(dtype, known_value(dtype, i), k->data[k->n] + i * n2_st_dtype_bytes(dtype));
    k->n++;
}

/* Every dtype, every rank, empty arrays, and names that need care. */
static const known *the_known(void) {
    static known k;
    if (k.n > 0) return &k;
    static const int64_t two_three[] = {2, 3}, alternating[] = {1, 2, 1, 2, 1, 2, 1, 2};
    static const int64_t none[] = {0}, none_inside[] = {2, 0, 3};
    for (int i = 0; i < N2_ST_DTYPES; i++)
        add_known(&k, n2_st_dtype_name((n2_st_dtype)i), (n2_st_dtype)i, 2, two_three);
    for (int rank = 0; rank <= N2_ST_RANK_MAX; rank++) {
        char name[24];
        snprintf(name, sizeof name, "rank/%d", rank);
        add_known(&k, name, N2_ST_F32, rank, alternating);
    }
    add_known(&k, "empty/1", N2_ST_F64, 1, none);
    add_known(&k, "empty/3", N2_ST_U8, 3, none_inside);
    add_known(&k, "na\xc3\xafve \xe9\x87\x8d\xe3\x81\xbf \xf0\x9f\x99\x82", N2_ST_I16, 2,
              two_three);
    add_known(&k, "\" \\ / \b\f\n\r\t \x01 \x7f", N2_ST_U8, 2, two_three);
    add_known(&k, "", N2_ST_U8, 2, two_three);
    return &k;
}

static inline bool same_tensor(const n2_st_tensor *a, const n2_st_tensor *b) {
    return strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->rank == b->rank &&
           a->bytes == b->bytes && memcmp(a->shape, b->shape, sizeof a->shape) == 0 &&
           (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
}

static inline bool holds_known(const n2_st_file *file) {
    const known *k = the_known();
    bool same = n2_st_count(file) == k->n && n2_st_metadata_count(file) == COUNT_OF(known_metadata);
    for (size_t i = 0; i < k->n; i++) {
        const n2_st_tensor *t = n2_st_find(file, k->tensors[i].name);
        if (t && same_tensor(t, &k->tensors[i])) continue;
        print_error("tensor \"%s\" is %s\n", k->tensors[i].name, t ? "different" : "missing");
        same = false;
    }
    for (size_t i = 0; i < COUNT_OF(known_metadata); i++) {
        const char *value = n2_st_metadata(file, known_metadata[i].key);
        if (value && strcmp(value, known_metadata[i].value) == 0) continue;
        print_error("metadata \"%s\" is not as it should be\n", known_metadata[i].key);
        same = false;
    }
    return same;
}

static inline n2ce_status write_known(n2ce_ctx *ctx, const char *path) {
    const known *k = the_known();
    return n2_st_write(ctx, path, k->tensors, k->n, known_metadata, COUNT_OF(known_metadata));
}

static inline n2ce_status encode_known(n2ce_ctx *ctx, char **bytes, size_t *n) {
    const known *k = the_known();
    return n2_st_encode(ctx, k->tensors, k->n, known_metadata, COUNT_OF(known_metadata), bytes, n);
}

/* ---- fixture ---------------------------------------------------------------------------- */

typedef struct fixture {
    n2ce_ctx *ctx;
    char folder[64], path[128];
} fixture;

static inline int set_up(void **state) {
    static fixture f;
    strcpy(f.folder, "/tmp/n2ce-test-XXXXXX");
    *state = &f;
    if (!mkdtemp(f.folder)) return -1;
    snprintf(f.path, sizeof f.path, "%s/a.safetensors", f.folder);
    return n2ce_ctx_new(&f.ctx, NULL) == N2CE_OK ? 0 : -1;
}

static inline int tear_down(void **state) {
    fixture *f = *state;
    n2ce_ctx_free(f->ctx);
    unlink(f->path);
    return rmdir(f->folder); /* fails if anything else was left */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
