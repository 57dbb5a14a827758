/* Facts about safetensors files: nothing malformed gets in, and what others may write is read. */
#include "known_tensors.h"

#include "io/json.h"

#include <sys/stat.h>

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

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(nothing_malformed_gets_in),
        TEST(every_truncation_is_refused),
        TEST(a_header_may_not_be_larger_than_100_mb),
        TEST(what_others_may_write_is_read),
        TEST(what_is_not_a_file_is_not_opened),
        TEST(messages_stay_readable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
