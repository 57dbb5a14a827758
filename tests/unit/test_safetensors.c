/* Facts about safetensors files: what is written is read back, others read it too, and nothing
 * malformed gets in.
 *
 *     test_safetensors                  all the tests
 *     test_safetensors --write PATH     writes the known file
 *     test_safetensors --read PATH      exits with 0 if PATH holds what the known file does
 *
 * tests/check_safetensors.py describes the same known file in Python. */
#include "close.h"
#include "failing_alloc.h"

#include "io/json.h"
#include "io/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

static void put_bytes(unsigned char *p, uint64_t bits, size_t n) {
    for (size_t i = 0; i < n; i++) p[i] = (unsigned char)(bits >> (8 * i));
}

/* The bits of a small multiple of 1/2 as a half-precision number. */
static uint64_t half_bits(double value) {
    int exponent;
    const double fraction = frexp(fabs(value), &exponent);
    const uint64_t sign = value < 0 ? 0x8000 : 0;
    return value == 0 ? 0
                      : sign | (uint64_t)(exponent + 14) << 10 | ((int)(fraction * 2048) & 1023);
}

static void put_value(n2_st_dtype dtype, double value, unsigned char *p) {
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
static double known_value(n2_st_dtype dtype, size_t i) {
    if (dtype <= N2_ST_BF16) return (double)i / 2 - 1;
    if (dtype <= N2_ST_I8) return (double)i - 2;
    return dtype == N2_ST_BOOL ? (double)(i % 2) : (double)i;
}

static void add_known(known *k, const char *name, n2_st_dtype dtype, int rank,
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

static bool same_tensor(const n2_st_tensor *a, const n2_st_tensor *b) {
    return strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->rank == b->rank &&
           a->bytes == b->bytes && memcmp(a->shape, b->shape, sizeof a->shape) == 0 &&
           (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
}

static bool holds_known(const n2_st_file *file) {
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

static n2ce_status write_known(n2ce_ctx *ctx, const char *path) {
    const known *k = the_known();
    return n2_st_write(ctx, path, k->tensors, k->n, known_metadata, COUNT_OF(known_metadata));
}

static n2ce_status encode_known(n2ce_ctx *ctx, char **bytes, size_t *n) {
    const known *k = the_known();
    return n2_st_encode(ctx, k->tensors, k->n, known_metadata, COUNT_OF(known_metadata), bytes, n);
}

/* ---- fixture ---------------------------------------------------------------------------- */

typedef struct fixture {
    n2ce_ctx *ctx;
    char folder[64], path[128];
} fixture;

static int set_up(void **state) {
    static fixture f;
    strcpy(f.folder, "/tmp/n2ce-test-XXXXXX");
    *state = &f;
    if (!mkdtemp(f.folder)) return -1;
    snprintf(f.path, sizeof f.path, "%s/a.safetensors", f.folder);
    return n2ce_ctx_new(&f.ctx, NULL) == N2CE_OK ? 0 : -1;
}

static int tear_down(void **state) {
    fixture *f = *state;
    n2ce_ctx_free(f->ctx);
    unlink(f->path);
    return rmdir(f->folder); /* fails if anything else was left */
}

static void write_bytes(const char *path, const void *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void assert_message(const n2ce_ctx *ctx, const char *fragment) {
    if (strstr(n2ce_errmsg(ctx), fragment)) return;
    print_error("\"%s\" is not in \"%s\"\n", fragment, n2ce_errmsg(ctx));
    fail();
}

/* ---- round trips ------------------------------------------------------------------------ */

static void what_is_written_is_read_back(void **state) {
    const fixture *f = *state;
    n2_st_file *file;
    assert_int_equal(write_known(f->ctx, f->path), N2CE_OK);
    assert_int_equal(n2_st_open(f->ctx, f->path, &file), N2CE_OK);
    assert_true(holds_known(file));
    assert_null(n2_st_find(file, "no such tensor"));
    assert_null(n2_st_at(file, n2_st_count(file)));
    assert_null(n2_st_metadata(file, "no such key"));
    assert_null(n2_st_metadata_at(file, n2_st_metadata_count(file)));
    assert_string_equal(n2_st_metadata_at(file, 1)->key, "format");
    n2_st_close(file);
    n2_st_close(NULL);
}

static void a_file_without_tensors_is_a_file(void **state) {
    const fixture *f = *state;
    n2_st_file *file;
    assert_int_equal(n2_st_write(f->ctx, f->path, NULL, 0, NULL, 0), N2CE_OK);
    assert_int_equal(n2_st_open(f->ctx, f->path, &file), N2CE_OK);
    assert_int_equal(n2_st_count(file) + n2_st_metadata_count(file), 0);
    assert_null(n2_st_find(file, ""));
    assert_null(n2_st_metadata(file, ""));
    n2_st_close(file);
    assert_int_equal(n2_st_write(f->ctx, f->path, NULL, 0, known_metadata, 2), N2CE_OK);
    assert_int_equal(n2_st_open(f->ctx, f->path, &file), N2CE_OK);
    assert_string_equal(n2_st_metadata(file, "format"), "pt");
    n2_st_close(file);
}

/* A pipe cannot be mapped; it is read. */
static void a_pipe_is_read_to_its_end(void **state) {
    const fixture *f = *state;
    char *bytes;
    size_t n;
    n2_st_file *file;
    assert_int_equal(encode_known(f->ctx, &bytes, &n), N2CE_OK);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60); /* not forever, if nobody reads */
        FILE *pipe = fopen(f->path, "wb");
        _exit(pipe && fwrite(bytes, 1, n, pipe) == n && fclose(pipe) == 0 ? 0 : 1);
    }
    assert_int_equal(n2_st_open(f->ctx, f->path, &file), N2CE_OK);
    assert_true(holds_known(file));
    n2_st_close(file);
    n2_free(f->ctx, bytes);
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

/* The same tensors in any order give the same bytes, and reading and writing again too. */
static void the_same_input_gives_the_same_bytes(void **state) {
    const fixture *f = *state;
    const known *k = the_known();
    char *bytes[3];
    size_t n[3];
    n2_st_tensor reversed[MAX_TENSORS], again[MAX_TENSORS];
    n2_st_file *file;
    const n2_st_pair metadata[] = {known_metadata[1], known_metadata[2], known_metadata[0]};
    for (size_t i = 0; i < k->n; i++) reversed[i] = k->tensors[k->n - 1 - i];
    assert_int_equal(encode_known(f->ctx, &bytes[0], &n[0]), N2CE_OK);
    assert_int_equal(n2_st_encode(f->ctx, reversed, k->n, metadata, 3, &bytes[1], &n[1]), N2CE_OK);
    assert_int_equal(n2_st_parse(f->ctx, "bytes", bytes[0], n[0], &file), N2CE_OK);
    for (size_t i = 0; i < k->n; i++) again[i] = *n2_st_at(file, i);
    assert_int_equal(n2_st_encode(f->ctx, again, k->n, metadata, 3, &bytes[2], &n[2]), N2CE_OK);
    n2_st_close(file);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(n[i], n[0]);
        assert_memory_equal(bytes[i], bytes[0], n[0]);
    }
    for (int i = 0; i < 3; i++) n2_free(f->ctx, bytes[i]);
}

/* The buffer starts at a multiple of 64; tensors come by element size, then by name, and so each
 * is aligned for its elements. */
static void written_tensors_are_ordered_and_aligned(void **state) {
    const fixture *f = *state;
    char *bytes;
    size_t n;
    n2_st_file *file;
    assert_int_equal(encode_known(f->ctx, &bytes, &n), N2CE_OK);
    assert_int_equal(n2_st_parse(f->ctx, "bytes", bytes, n, &file), N2CE_OK);
    const char *start = n2_st_at(file, 0)->data;
    assert_int_equal((start - bytes) % 64, 0);
    assert_int_equal(start[-1] == '}' || start[-1] == ' ', 1);
    size_t offset = 0;
    for (size_t i = 0; i < n2_st_count(file); i++) {
        const n2_st_tensor *t = n2_st_at(file, i), *next = n2_st_at(file, i + 1);
        assert_ptr_equal(t->data, start + offset);
        assert_int_equal(offset % n2_st_dtype_bytes(t->dtype), 0);
        offset += t->bytes;
        if (!next) break;
        const size_t size = n2_st_dtype_bytes(t->dtype), next_size = n2_st_dtype_bytes(next->dtype);
        assert_true(size > next_size || (size == next_size && strcmp(t->name, next->name) < 0));
    }
    n2_st_close(file);
    n2_free(f->ctx, bytes);
}

/* ---- numbers ---------------------------------------------------------------------------- */

static void every_number_converts(void **state) {
    const fixture *f = *state;
    const known *k = the_known();
    for (size_t j = 0; j < k->n; j++) {
        const n2_st_tensor *t = &k->tensors[j];
        const size_t n = n2_st_elements(t);
        double wide[ROOM];
        float narrow[ROOM];
        if (t->dtype == N2_ST_BOOL) continue;
        assert_int_equal(n2_st_to_f64(f->ctx, t, wide, n), N2CE_OK);
        assert_int_equal(n2_st_to_f32(f->ctx, t, narrow, n), N2CE_OK);
        for (size_t i = 0; i < n; i++) {
            assert_close(wide[i], known_value(t->dtype, i), 0, 0);
            assert_close((double)narrow[i], known_value(t->dtype, i), 0, 0);
        }
    }
}

/* One number from its bits. */
static double convert(n2ce_ctx *ctx, n2_st_dtype dtype, uint64_t bits) {
    unsigned char bytes[9];
    double value;
    put_bytes(bytes + 1, bits, 8); /* not aligned, as in a stranger's file */
    const n2_st_tensor t = {.dtype = dtype, .data = bytes + 1, .bytes = n2_st_dtype_bytes(dtype)};
    assert_int_equal(n2_st_to_f64(ctx, &t, &value, 1), N2CE_OK);
    return value;
}

static void the_ends_of_each_type_convert(void **state) {
    n2ce_ctx *ctx = ((const fixture *)*state)->ctx;
    assert_close(convert(ctx, N2_ST_F16, 0x7bff), 65504, 0, 0);
    assert_close(convert(ctx, N2_ST_F16, 0x0001), ldexp(1, -24), 0, 0);
    assert_close(convert(ctx, N2_ST_F16, 0x83ff), -1023 * ldexp(1, -24), 0, 0);
    assert_close(convert(ctx, N2_ST_F16, 0x0400), ldexp(1, -14), 0, 0);
    assert_close(convert(ctx, N2_ST_F16, 0xfc00), -HUGE_VAL, 0, 0);
    assert_true(isnan(convert(ctx, N2_ST_F16, 0x7e00)));
    assert_true(signbit(convert(ctx, N2_ST_F16, 0x8000)));
    assert_close(convert(ctx, N2_ST_BF16, 0x3f80), 1, 0, 0);
    assert_close(convert(ctx, N2_ST_BF16, 0x7f80), HUGE_VAL, 0, 0);
    assert_true(isnan(convert(ctx, N2_ST_BF16, 0x7fc0)));
    assert_close(convert(ctx, N2_ST_BF16, 0x0001), ldexp(1, -133), 0, 0);
    assert_close(convert(ctx, N2_ST_I64, (uint64_t)INT64_MIN), -ldexp(1, 63), 0, 0);
    assert_close(convert(ctx, N2_ST_U64, UINT64_MAX), ldexp(1, 64), 0, 0);
    assert_close(convert(ctx, N2_ST_I32, 0x80000000), -ldexp(1, 31), 0, 0);
    assert_close(convert(ctx, N2_ST_U32, 0xffffffff), 4294967295.0, 0, 0);
    assert_close(convert(ctx, N2_ST_I16, 0x8000), -32768, 0, 0);
    assert_close(convert(ctx, N2_ST_U16, 0xffff), 65535, 0, 0);
    assert_close(convert(ctx, N2_ST_I8, 0x80), -128, 0, 0);
    assert_close(convert(ctx, N2_ST_U8, 0xff), 255, 0, 0);
}

static void what_is_no_number_does_not_convert(void **state) {
    const fixture *f = *state;
    float out[4];
    double wide[4];
    const unsigned char data[4] = {0, 1, 1, 0};
    n2_st_tensor t = {"mask", N2_ST_BOOL, 1, {4}, data, 4};
    assert_int_equal(n2_st_to_f32(f->ctx, &t, out, 4), N2CE_EDATA);
    assert_int_equal(n2_st_to_f64(f->ctx, &t, wide, 4), N2CE_EDATA);
    assert_message(f->ctx, "\"mask\" has dtype BOOL");
    t.dtype = N2_ST_U8;
    assert_int_equal(n2_st_to_f32(f->ctx, &t, out, 3), N2CE_EDATA);
    assert_message(f->ctx, "has 4 elements, and 3 are needed");
}

/* ---- malformed files -------------------------------------------------------------------- */

#define TENSOR(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}"
#define ONE(shape, offsets) "{" TENSOR("a", "U8", shape, offsets) "}"
#define AB(offsets_a, offsets_b) \
    "{" TENSOR("a", "U8", "2", offsets_a) "," TENSOR("b", "U8", "2", offsets_b) "}"
#define NEST8 "[[[[[[[["

/* A header with its true size, and zeros after it. Returns the number of bytes. */
static size_t build(const char *header, size_t n_zeros, char *bytes, size_t room) {
    const size_t n = strlen(header);
    assert_true(8 + n + n_zeros <= room);
    put_bytes((unsigned char *)bytes, n, 8);
    memcpy(bytes + 8, header, n);
    memset(bytes + 8 + n, 0, n_zeros);
    return 8 + n + n_zeros;
}

static const struct {
    const char *header;
    size_t n_zeros;
    const char *message;
} malformed[] = {
    {"", 0, "does not start with '{'"},
    {" {}", 0, "does not start with '{'"},
    {"[]", 0, "does not start with '{'"},
    {"{", 0, "has the end at byte 9"},
    {"{}x", 0, "has 'x' at byte 10, where the end should be"},
    {"{} {}", 0, "where the end should be"},
    {"{,}", 0, "where a string should be"},
    {ONE("1", "0,1") "}", 1, "where the end should be"},
    {"{" TENSOR("a", "U8", "1", "0,1") ",}", 1, "where a string should be"},
    {"{" TENSOR("a", "U8", "1", "0,1") " " TENSOR("b", "U8", "1", "1,2") "}", 2, "',' or '}'"},
    {"{\"a\" 1}", 0, "where ':' should be"},
    {"{\"a\":1}", 0, "where an object, '{' should be"},
    {"{\"a\":{}}", 0, "tensor \"a\" has no \"dtype\""},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", 0, "tensor \"a\" has no \"data_offsets\""},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, "two fields \"dtype\""},
    {"{\"a\":{\"shape\":[],\"sh\\u0061pe\":[]}}", 0, "two fields \"shape\""},
    {"{" TENSOR("a", "F8_E4M3", "1", "0,1") "}", 1, "dtype \"F8_E4M3\""},
    {"{" TENSOR("a", "f32", "1", "0,4") "}", 4, "dtype \"f32\""},
    {"{\"a\":{\"dtype\":5}}", 0, "where a string should be"},
    {ONE("1,1,1,1,1,1,1,1,1", "0,1"), 1, "more than 8 dimensions"},
    {ONE("-1", "0,1"), 1, "a whole number"},
    {ONE("1.0", "0,1"), 1, "a whole number"},
    {ONE("1e0", "0,1"), 1, "a whole number"},
    {ONE("01", "0,1"), 1, "a whole number"},
    {ONE("9223372036854775808", "0,1"), 1, "a whole number"},
    {ONE("4294967296,4294967296", "0,0"), 0, "more elements than memory can hold"},
    {ONE("4294967296,0,4294967296", "0,0"), 0, "more elements than memory can hold"},
    {"{" TENSOR("a", "F64", "1152921504606846976", "0,0") "}", 0, "more elements than"},
    {ONE("2", "0,1"), 1, "has 1 bytes, but its shape and dtype U8 need 2"},
    {ONE("", "0,0"), 0, "need 1"},
    {"{" TENSOR("a", "F32", "1", "0,3") "}", 3, "need 4"},
    {ONE("1", "0,2"), 1, "bytes 0 to 2 of 1"},
    {ONE("1", "1,0"), 1, "bytes 1 to 0 of 1"},
    {ONE("1", "9223372036854775806,9223372036854775807"), 1, "of 1"},
    {ONE("1", "1"), 1, "has 1 offsets"},
    {ONE("1", "0,1,1"), 1, "more than two offsets"},
    {ONE("1", ""), 1, "has 0 offsets"},
    {AB("0,2", "1,3"), 3, "tensor \"b\" starts at byte 1"},
    {AB("0,2", "0,2"), 2, "tensor \"b\" starts at byte 0"},
    {AB("0,2", "3,5"), 5, "tensor \"b\" starts at byte 3"},
    {AB("1,3", "3,5"), 5, "tensor \"a\" starts at byte 1"},
    {AB("0,2", "2,4"), 5, "the tensors are 4 bytes, but 5 follow"},
    {"{}", 1, "the tensors are 0 bytes, but 1 follow"},
    {"{" TENSOR("a", "U8", "1", "0,1") "," TENSOR("a", "U8", "1", "1,2") "}", 2,
     "\"a\" occurs twice"},
    {"{" TENSOR("a", "U8", "1", "0,1") "," TENSOR("\\u0061", "U8", "1", "1,2") "}", 2,
     "occurs twice"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "\"__metadata__\" occurs twice"},
    {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "key \"k\" occurs twice"},
    {"{\"__metadata__\":{\"k\":1}}", 0, "where a string should be"},
    {"{\"__metadata__\":{\"k\":null}}", 0, "where a string should be"},
    {"{\"__metadata__\":{\"k\":{}}}", 0, "where a string should be"},
    {"{\"__metadata__\":[]}", 0, "where an object, '{' should be"},
    {"{\"__metadata__\":null}", 0, "where an object, '{' should be"},
    {"{\"\\u0000\":{}}", 0, "a character other than NUL"},
    {"{\"\\ud800\":{}}", 0, "a whole surrogate pair"},
    {"{\"\\ud800\\u0041\":{}}", 0, "a whole surrogate pair"},
    {"{\"\\udc00\":{}}", 0, "a whole surrogate pair"},
    {"{\"\\u12g4\":{}}", 0, "a hexadecimal digit"},
    {"{\"\\x41\":{}}", 0, "one of the escapes"},
    {"{\"\n\":{}}", 0, "an escaped control character"},
    {"{\"\xff\":{}}", 0, "has byte 0xff at byte 10, where a character in UTF-8 should be"},
    {"{\"\xc0\x80\":{}}", 0, "a character in UTF-8"},
    {"{\"\xe0\x80\x80\":{}}", 0, "a character in UTF-8"},
    {"{\"\xed\xa0\x80\":{}}", 0, "a character in UTF-8"},
    {"{\"\xf4\x90\x80\x80\":{}}", 0, "a character in UTF-8"},
    {"{\"\xe9\x87\":{}}", 0, "a character in UTF-8"},
    {"{\"a", 0, "the closing quote"},
    {"{\"a\":{\"x\":" NEST8 NEST8 NEST8 NEST8 NEST8 NEST8 NEST8 NEST8 "[", 0, "nests less deeply"},
    {"{\"a\":{\"x\":tru}}", 0, "where a value should be"},
    {"{\"a\":{\"x\":-}}", 0, "where a digit should be"},
    {"{\"a\":{\"x\":01}}", 0, "',' or '}'"},
    {"{\"a\":{\"x\":1.}}", 0, "where a digit should be"},
    {"{\"a\":{\"x\":1e+}}", 0, "where a digit should be"},
    {"{\"a\":{\"x\":[1,]}}", 0, "where a value should be"},
    {"{\"a\":{\"x\":[1}}", 0, "',' or ']'"},
};

static void nothing_malformed_gets_in(void **state) {
    const fixture *f = *state;
    for (size_t i = 0; i < COUNT_OF(malformed); i++) {
        char bytes[512];
        const size_t n = build(malformed[i].header, malformed[i].n_zeros, bytes, sizeof bytes);
        n2_st_file *file = (n2_st_file *)1;
        const n2ce_status status = n2_st_parse(f->ctx, "my.safetensors", bytes, n, &file);
        if (status != N2CE_EDATA) print_error("%s\n", malformed[i].header);
        assert_int_equal(status, N2CE_EDATA);
        assert_null(file);
        assert_message(f->ctx, "my.safetensors: ");
        assert_message(f->ctx, malformed[i].message);
    }
}

/* A file that ends early is refused wherever it ends. */
static void every_truncation_is_refused(void **state) {
    const fixture *f = *state;
    char *bytes;
    size_t n;
    n2_st_file *file;
    assert_int_equal(encode_known(f->ctx, &bytes, &n), N2CE_OK);
    for (size_t i = 0; i < n; i++) {
        char *cut = malloc(i + 1); /* its own block, so that a sanitizer sees a byte too many */
        assert_non_null(cut);
        memcpy(cut, bytes, i);
        assert_int_equal(n2_st_parse(f->ctx, "cut", cut, i, &file), N2CE_EDATA);
        free(cut);
    }
    write_bytes(f->path, bytes, 5);
    assert_int_equal(n2_st_open(f->ctx, f->path, &file), N2CE_EDATA);
    assert_message(f->ctx, "5 bytes are too few");
    write_bytes(f->path, bytes, 100);
    assert_int_equal(n2_st_open(f->ctx, f->path, &file), N2CE_EDATA);
    assert_message(f->ctx, "but 92 follow");
    n2_free(f->ctx, bytes);
}

static void a_header_may_not_be_larger_than_100_mb(void **state) {
    const fixture *f = *state;
    char bytes[16] = {0};
    n2_st_file *file;
    put_bytes((unsigned char *)bytes, 100000001, 8);
    assert_int_equal(n2_st_parse(f->ctx, "large", bytes, sizeof bytes, &file), N2CE_EDATA);
    assert_message(f->ctx, "said to be 100000001 bytes, and the format allows 100000000");
    put_bytes((unsigned char *)bytes, UINT64_MAX, 8);
    assert_int_equal(n2_st_parse(f->ctx, "large", bytes, sizeof bytes, &file), N2CE_EDATA);
    put_bytes((unsigned char *)bytes, 100000000, 8);
    assert_int_equal(n2_st_parse(f->ctx, "large", bytes, sizeof bytes, &file), N2CE_EDATA);
    assert_message(f->ctx, "but 8 follow");
}

/* White space, unknown fields, escapes and any order of fields and tensors are all fine. */
static void what_others_may_write_is_read(void **state) {
    const fixture *f = *state;
    static const char header[] =
        "{ \"b\" : {\"x\":[{\"y\":[-0.5e+3, 1E2, true,false , null,{},[] ,\"\\n\"]},0], "
        "\"data_offsets\" :[ 1 , 3 ],\"shape\":[2\n],\"dtype\":\"\\u00558\"},\r\n\t"
        "\"\\ud83d\\uDE42\\/"
        "\\u00e9\\u91cd\":{\"shape\":[],\"dtype\":\"BOOL\",\"data_offsets\":[0,1]},"
        "\"z\":{\"shape\":[3,0],\"dtype\":\"F64\",\"data_offsets\":[1,1]},\"__metadata__\":{}}  "
        "\n ";
    char bytes[512];
    const size_t n = build(header, 3, bytes, sizeof bytes);
    n2_st_file *file;
    assert_int_equal(n2_st_parse(f->ctx, "other", bytes, n, &file), N2CE_OK);
    assert_int_equal(n2_st_count(file), 3);
    assert_string_equal(n2_st_at(file, 0)->name, "\xf0\x9f\x99\x82/\xc3\xa9\xe9\x87\x8d");
    assert_string_equal(n2_st_at(file, 1)->name, "z");
    assert_ptr_equal(n2_st_find(file, "b"), n2_st_at(file, 2));
    assert_int_equal(n2_st_at(file, 2)->dtype, N2_ST_U8);
    n2_st_close(file);
}

static void what_is_not_a_file_is_not_opened(void **state) {
    const fixture *f = *state;
    const char *const paths[] = {f->path, f->folder, "/dev/zero"};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        n2_st_file *file = (n2_st_file *)1;
        assert_int_equal(n2_st_open(f->ctx, paths[i], &file), N2CE_EIO);
        assert_null(file);
        assert_message(f->ctx, paths[i]);
    }
    n2_st_file *file;
    write_bytes(f->path, "", 0);
    assert_int_equal(n2_st_open(f->ctx, f->path, &file), N2CE_EDATA);
    assert_message(f->ctx, "0 bytes are too few");
}

/* A long name with characters of several bytes is cut between them. */
static void messages_stay_readable(void **state) {
    const fixture *f = *state;
    char header[512] = "{\"\\n", bytes[512];
    n2_st_file *file;
    for (int i = 0; i < 40; i++) strcat(header, "\xe9\x87\x8d");
    strcat(header, "\":{}}");
    const size_t n = build(header, 0, bytes, sizeof bytes);
    assert_int_equal(n2_st_parse(f->ctx, "long", bytes, n, &file), N2CE_EDATA);
    assert_message(f->ctx, "\"?\xe9\x87\x8d");
    assert_message(f->ctx, "\xe9\x87\x8d...\"");
    assert_true(n2_is_utf8(n2ce_errmsg(f->ctx)));
}

/* ---- the writer's own input ------------------------------------------------------------- */

static void what_cannot_be_read_is_not_written(void **state) {
    const fixture *f = *state;
    const float data[2] = {1, 2};
    const n2_st_tensor good = {"a", N2_ST_F32, 1, {2}, data, sizeof data};
    n2_st_tensor bad[10];
    for (size_t i = 0; i < COUNT_OF(bad); i++) bad[i] = good;
    bad[0].name = NULL;
    bad[1].name = "\xff";
    bad[2].name = "__metadata__";
    bad[3].dtype = N2_ST_DTYPES;
    bad[4].rank = -1;
    bad[5].rank = 9;
    bad[6].shape[0] = -2;
    bad[7].shape[0] = INT64_MAX;
    bad[8].bytes = 4;
    bad[9].data = NULL;
    const n2_st_tensor twice[2] = {good, good};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(n2_st_write(f->ctx, f->path, &bad[i], 1, NULL, 0), N2CE_EINVAL);
        assert_true(n2_is_utf8(n2ce_errmsg(f->ctx)));
    }
    assert_int_equal(n2_st_write(f->ctx, f->path, twice, 2, NULL, 0), N2CE_EINVAL);
    assert_message(f->ctx, "\"a\" occurs twice");
    n2_st_tensor huge[3]; /* each can be counted, all of them cannot; nobody looks at the data */
    for (int i = 0; i < 3; i++)
        huge[i] = (n2_st_tensor){&"abc" [i], N2_ST_I8, 1, {INT64_MAX }, data, INT64_MAX};
    assert_int_equal(n2_st_write(f->ctx, f->path, huge, 3, NULL, 0), N2CE_EINVAL);
    assert_message(f->ctx, "too large");
    const n2_st_pair pairs[][2] = {
        {{"k", "1"}, {"k", "2"}},   {{"k", NULL}, {"l", ""}},  {{NULL, ""}, {"l", ""}},
        {{"k", "\xff"}, {"l", ""}}, {{"\xff", ""}, {"l", ""}},
    };
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        assert_int_equal(n2_st_write(f->ctx, f->path, &good, 1, pairs[i], 2), N2CE_EINVAL);
    assert_int_equal(access(f->path, F_OK), -1);
    assert_int_equal(n2_st_write(f->ctx, "/nowhere/a", &good, 1, NULL, 0), N2CE_EIO);
}

/* ---- out of memory ---------------------------------------------------------------------- */

typedef n2ce_status action(n2ce_ctx *ctx, const fixture *f);

static n2ce_status action_open(n2ce_ctx *ctx, const fixture *f) {
    n2_st_file *file;
    const n2ce_status status = n2_st_open(ctx, f->path, &file);
    assert_true((status == N2CE_OK) == (file != NULL));
    n2_st_close(file);
    return status;
}

static n2ce_status action_parse(n2ce_ctx *ctx, const fixture *f) {
    static char bytes[8192];
    FILE *stream = fopen(f->path, "rb");
    assert_non_null(stream);
    const size_t n = fread(bytes, 1, sizeof bytes, stream);
    fclose(stream);
    n2_st_file *file;
    const n2ce_status status = n2_st_parse(ctx, "bytes", bytes, n, &file);
    assert_true((status == N2CE_OK) == (file != NULL));
    n2_st_close(file);
    return status;
}

static n2ce_status action_write(n2ce_ctx *ctx, const fixture *f) {
    return write_known(ctx, f->path);
}

/* The action with its n-th allocation failing, for every n until it succeeds. */
static void survive(const fixture *f, action *act, bool and_after) {
    n2ce_status status = N2CE_ENOMEM;
    for (size_t n = 1; status != N2CE_OK; n++) {
        failing_alloc memory = failing_alloc_new(n, and_after); /* 0 is the context itself */
        const n2ce_ctx_options options = failing_alloc_options(&memory, 1);
        n2ce_ctx *ctx;
        assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
        status = act(ctx, f);
        assert_true(status == N2CE_OK || status == N2CE_ENOMEM);
        if (status != N2CE_OK) assert_message(ctx, "Out of memory");
        assert_int_equal(memory.live, 1);
        n2ce_ctx_free(ctx);
        assert_int_equal(memory.live, 0);
        assert_true(n < 1000);
    }
}

static void running_out_of_memory_leaks_nothing(void **state) {
    const fixture *f = *state;
    action *const actions[] = {action_open, action_parse, action_write};
    assert_int_equal(write_known(f->ctx, f->path), N2CE_OK);
    for (size_t i = 0; i < COUNT_OF(actions); i++) {
        survive(f, actions[i], false);
        survive(f, actions[i], true);
    }
    write_bytes(f->path, "", 0); /* an empty file is read, not mapped */
    failing_alloc memory = failing_alloc_new(2, true);
    const n2ce_ctx_options options = failing_alloc_options(&memory, 1);
    n2ce_ctx *ctx;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    assert_int_equal(action_open(ctx, f), N2CE_ENOMEM);
    n2ce_ctx_free(ctx);
    assert_int_equal(memory.live, 0);
}

/* ---- main ------------------------------------------------------------------------------- */

static n2ce_status read_known(n2ce_ctx *ctx, const char *path, bool *same) {
    n2_st_file *file;
    const n2ce_status status = n2_st_open(ctx, path, &file);
    *same = status == N2CE_OK && holds_known(file);
    n2_st_close(file);
    return status;
}

/* --write PATH or --read PATH; the exit code. */
static int serve(const char *what, const char *path) {
    n2ce_ctx *ctx;
    bool same = true;
    if (n2ce_ctx_new(&ctx, NULL) != N2CE_OK) return 1;
    const n2ce_status status =
        strcmp(what, "--write") == 0 ? write_known(ctx, path) : read_known(ctx, path, &same);
    if (status != N2CE_OK) fprintf(stderr, "%s\n", n2ce_errmsg(ctx));
    n2ce_ctx_free(ctx);
    return status == N2CE_OK && same ? 0 : 1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_back),
        TEST(a_file_without_tensors_is_a_file),
        TEST(a_pipe_is_read_to_its_end),
        TEST(the_same_input_gives_the_same_bytes),
        TEST(written_tensors_are_ordered_and_aligned),
        TEST(every_number_converts),
        TEST(the_ends_of_each_type_convert),
        TEST(what_is_no_number_does_not_convert),
        TEST(nothing_malformed_gets_in),
        TEST(every_truncation_is_refused),
        TEST(a_header_may_not_be_larger_than_100_mb),
        TEST(what_others_may_write_is_read),
        TEST(what_is_not_a_file_is_not_opened),
        TEST(messages_stay_readable),
        TEST(what_cannot_be_read_is_not_written),
        TEST(running_out_of_memory_leaks_nothing),
    };
    if (argc == 3 && (strcmp(argv[1], "--write") == 0 || strcmp(argv[1], "--read") == 0))
        return serve(argv[1], argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
