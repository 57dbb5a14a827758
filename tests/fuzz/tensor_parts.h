/* The tensors and texts of a safetensors file, taken apart to be changed and put together again
 * under a check sum that fits: damage that a check sum does not find. */
#ifndef TENSOR_PARTS_H
#define TENSOR_PARTS_H

#include "require.h"

#include "io/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TENSORS = 128 };

/* Of a loop over bytes libFuzzer learns nothing. */
#ifdef __clang__
#define NOT_TRACED __attribute__((noinline, no_sanitize("coverage")))
#else
#define NOT_TRACED
#endif

/* FNV-1a of 64 bits, as docs of the format and bundle.c have it. */
NOT_TRACED static uint64_t mix(uint64_t h, const void *data, size_t n) {
    const uint8_t *b = data;
    for (size_t i = 0; i < n; i++) h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}

static const uint64_t START = 0xcbf29ce484222325u;

typedef struct st_parts {
    n2_st_tensor tensors[MOST_TENSORS];
    size_t n;
    n2_st_pair pairs[8];
    size_t n_pairs;
    char *texts[8];
    char *data[MOST_TENSORS];    /* copies of those that are changed: own() */
    uint64_t sums[MOST_TENSORS]; /* of those that are not */
    char sum[32];
} st_parts;

static char *copy(const void *data, size_t n) {
    char *c = calloc(n + 1, 1);
    REQUIRE(c);
    if (n > 0) memcpy(c, data, n);
    return c;
}

static uint64_t sum_of_tensor(const n2_st_tensor *t) {
    const char *type = n2_st_dtype_name(t->dtype);
    const uint64_t h = mix(mix(START, t->name, strlen(t->name) + 1), type, strlen(type) + 1);
    return mix(mix(h, t->shape, (size_t)t->rank * sizeof t->shape[0]), t->data, t->bytes);
}

/* Sums of the tensors of a valid file, worked out once. */
static const uint64_t *sums_of(const n2_st_file *file) {
    enum { FILES = 8 };
    static struct {
        const n2_st_file *file;
        uint64_t sum[MOST_TENSORS];
    } known[FILES];
    size_t k = 0;
    while (known[k].file && known[k].file != file) k++;
    REQUIRE(k + 1 < FILES);
    for (size_t i = 0; !known[k].file && i < n2_st_count(file); i++)
        known[k].sum[i] = sum_of_tensor(n2_st_at(file, i));
    known[k].file = file;
    return known[k].sum;
}

static void take_apart(const n2_st_file *file, st_parts *p) {
    *p = (st_parts){.n = n2_st_count(file), .n_pairs = n2_st_metadata_count(file)};
    REQUIRE(p->n <= MOST_TENSORS && p->n_pairs <= 8);
    memcpy(p->sums, sums_of(file), p->n * sizeof p->sums[0]);
    for (size_t i = 0; i < p->n; i++) p->tensors[i] = *n2_st_at(file, i);
    for (size_t i = 0; i < p->n_pairs; i++) {
        p->pairs[i] = *n2_st_metadata_at(file, i);
        p->texts[i] = copy(p->pairs[i].value, strlen(p->pairs[i].value));
        p->pairs[i].value = p->texts[i];
    }
}

/* The bytes of a tensor, to be changed. */
static char *own(st_parts *p, size_t i) {
    n2_st_tensor *t = &p->tensors[i];
    if (!p->data[i]) t->data = p->data[i] = copy(t->data, t->bytes);
    return p->data[i];
}

static void parts_free(st_parts *p) {
    for (size_t i = 0; i < MOST_TENSORS; i++) free(p->data[i]);
    for (size_t i = 0; i < 8; i++) free(p->texts[i]);
}

static void fix_sum(st_parts *p) {
    uint64_t h = 0;
    for (size_t i = 0; i < p->n; i++) h += p->data[i] ? sum_of_tensor(&p->tensors[i]) : p->sums[i];
    for (size_t i = 0; i < p->n_pairs; i++) {
        const n2_st_pair *pair = &p->pairs[i];
        if (strcmp(pair->key, "checksum") != 0)
            h += mix(mix(START, pair->key, strlen(pair->key) + 1), pair->value,
                     strlen(pair->value) + 1);
    }
    snprintf(p->sum, sizeof p->sum, "%016llx", (unsigned long long)h);
    for (size_t i = 0; i < p->n_pairs; i++)
        if (strcmp(p->pairs[i].key, "checksum") == 0) p->pairs[i].value = p->sum;
}

static const double specials[] = {0,
                                  1,
                                  -1,
                                  2,
                                  3,
                                  0.5,
                                  4,
                                  1e-9,
                                  65536,
                                  65537,
                                  1e300,
                                  -1e300,
                                  (double)NAN,
                                  5,
                                  100,
                                  1e18,
                                  (double)INFINITY};

/* Sets number `at` of a tensor of doubles or floats. */
static void set_number(const n2_st_tensor *t, char *data, size_t at, double x) {
    const size_t n = n2_st_elements(t);
    const float narrow = (float)x;
    if (n == 0) return;
    if (t->dtype == N2_ST_F64) memcpy(data + at % n * sizeof x, &x, sizeof x);
    if (t->dtype == N2_ST_F32) memcpy(data + at % n * sizeof narrow, &narrow, sizeof narrow);
}

static inline size_t find_text(const st_parts *p, const char *key) {
    for (size_t i = 0; i < p->n_pairs; i++)
        if (strcmp(p->pairs[i].key, key) == 0) return i;
    return 0;
}

/* As a tensor of one dimension and n elements, zeros at the end if it had fewer. */
static void resize(st_parts *p, size_t i, size_t n) {
    n2_st_tensor *t = &p->tensors[i];
    char *data = calloc(n + 1, 8);
    REQUIRE(data);
    const size_t wanted = n * n2_st_dtype_bytes(t->dtype);
    if (t->bytes > 0 && wanted > 0) memcpy(data, t->data, t->bytes < wanted ? t->bytes : wanted);
    free(p->data[i]);
    t->data = p->data[i] = data;
    t->bytes = wanted;
    t->rank = 1;
    t->shape[0] = (int64_t)n;
}

static void drop(st_parts *p, size_t i) {
    free(p->data[i]);
    for (p->n--; i < p->n; i++) {
        p->tensors[i] = p->tensors[i + 1];
        p->data[i] = p->data[i + 1];
        p->sums[i] = p->sums[i + 1];
    }
    p->data[p->n] = NULL;
}

/* What two bytes say about one tensor: it goes, has another size, or another number. */
static void edit_tensor(st_parts *p, uint8_t how, uint8_t which, uint8_t what) {
    const size_t i = which % p->n;
    if (how == 0 && p->n > 1) drop(p, i);
    if (how == 1) resize(p, i, what);
    if (how == 2)
        set_number(&p->tensors[i], own(p, i), what,
                   specials[what % (sizeof specials / sizeof specials[0])]);
}

/* The file that these are the parts of; NULL where a text is no UTF-8 any more. Free it with
 * n2_free. */
static char *put_together(n2ce_ctx *ctx, st_parts *p, size_t *n) {
    char *encoded = NULL;
    fix_sum(p);
    (void)n2_st_encode(ctx, p->tensors, p->n, p->pairs, p->n_pairs, &encoded, n);
    return encoded;
}

#endif
