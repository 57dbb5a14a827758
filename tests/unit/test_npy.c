/* Facts about arrays: what NPY files and matrices in memory say is what is read, what cannot be
 * used is refused, and what is written is read back. */
#include "tables.h"

#include "io/npy.h"

#include <sys/stat.h>

static void every_header_that_numpy_would_read_is_read(void **state) {
    const fixture *f = *state;
    static const char *const headers[] = {
        HEADER("<f8", "False", "(3, 2)"),
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2)}",
        "{\"shape\":(3,2,),\"descr\":\"=f8\",\"fortran_order\":False}",
        " { 'fortran_order' : False , 'shape' : ( 3L , 2L ) , 'descr' : '|f8' , } \n",
    };
    for (int major = 1; major <= 3; major++)
        for (size_t i = 0; i < COUNT_OF(headers); i++) {
            unsigned char bytes[256];
            n2_table *t;
            write_bytes(f->path, bytes, make_npy(bytes, major, headers[i], six, sizeof six));
            assert_ok(f->ctx, n2_table_read(f->ctx, f->path, NULL, &t));
            assert_values(t, 3, 2, six);
            assert_string_equal(t->names[1], "1");
            assert_false(t->categorical[0]);
            n2_table_free(t);
        }
}

static void orders_and_dimensions_are_respected(void **state) {
    const fixture *f = *state;
    n2_table *t = read_npy(f, HEADER("<f8", "True", "(3, 2)"), six, sizeof six);
    assert_values(t, 3, 2, (double[]){1, 4, 2, 5, 3, 6});
    n2_table_free(t);
    t = read_npy(f, HEADER("<f8", "False", "(6,)"), six, sizeof six);
    assert_values(t, 6, 1, six);
    n2_table_free(t);
    t = read_npy(f, HEADER("<f8", "True", "(6,)"), six, sizeof six);
    assert_values(t, 6, 1, six);
    n2_table_free(t);
    write_npy(f->path, HEADER("<f8", "True", "(2, 3)"), six, sizeof six);
    const n2_table_options o = {.columns = "2,0"};
    assert_ok(f->ctx, n2_table_read(f->ctx, f->path, &o, &t));
    assert_values(t, 2, 2, (double[]){5, 1, 6, 2});
    assert_string_equal(t->names[0], "2");
    n2_table_free(t);
}

static void every_type_of_number_is_read(void **state) {
    const fixture *f = *state;
    static const struct {
        const char *header;
        const char *bytes;
        size_t n;
        double expected;
    } cases[] = {
        {HEADER("<f4", "False", "(1,)"), "\x00\x00\xc0\xbf", 4, -1.5},
        {HEADER(">f4", "False", "(1,)"), "\xbf\xc0\x00\x00", 4, -1.5},
        {HEADER(">f8", "False", "(1,)"), "\xbf\xf8\0\0\0\0\0\0", 8, -1.5},
        {HEADER("<i8", "False", "(1,)"), "\xfe\xff\xff\xff\xff\xff\xff\xff", 8, -2},
        {HEADER("<u8", "False", "(1,)"), "\xff\xff\xff\xff\xff\xff\xff\xff", 8,
         18446744073709551615.0},
        {HEADER("<i4", "False", "(1,)"), "\xfe\xff\xff\xff", 4, -2},
        {HEADER("=u4", "False", "(1,)"), "\xfe\xff\xff\xff", 4, 4294967294.0},
        {HEADER(">i4", "False", "(1,)"), "\xff\xff\xff\xfe", 4, -2},
        {HEADER("<i2", "False", "(1,)"), "\xfe\xff", 2, -2},
        {HEADER("<u2", "False", "(1,)"), "\xfe\xff", 2, 65534},
        {HEADER(">u2", "False", "(1,)"), "\xff\xfe", 2, 65534},
        {HEADER("|i1", "False", "(1,)"), "\xfe", 1, -2},
        {HEADER("<i1", "False", "(1,)"), "\xfe", 1, -2},
        {HEADER("|u1", "False", "(1,)"), "\xfe", 1, 254},
        {HEADER("|b1", "False", "(1,)"), "\x01", 1, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        n2_table *t = read_npy(f, cases[i].header, cases[i].bytes, cases[i].n);
        assert_values(t, 1, 1, &cases[i].expected);
        n2_table_free(t);
    }
}

static void arrays_that_cannot_be_used_are_refused(void **state) {
    const fixture *f = *state;
    static const struct {
        const char *header, *message;
    } cases[] = {
        {HEADER("<f8", "False", "()"), "the shape is (), 0 dimensions"},
        {HEADER("<f8", "False", "(1, 2, 3)"), "the shape is (1, 2, 3), 3 dimensions"},
        {HEADER("|O", "False", "(6,)"), "'|O' (Python objects)"},
        {HEADER("<U3", "False", "(6,)"), "'<U3' (texts)"},
        {HEADER("|S8", "False", "(6,)"), "'|S8' (texts)"},
        {HEADER("<c16", "False", "(6,)"), "'<c16' (complex)"},
        {HEADER("<M8[ns]", "False", "(6,)"), "'<M8[ns]' (dates)"},
        {HEADER("<f2", "False", "(6,)"), "'<f2' (floats of another size)"},
        {HEADER("f8", "False", "(6,)"), "'f8'"},
        {HEADER("<f8 ", "False", "(6,)"), "'<f8 '"},
        {HEADER("", "False", "(6,)"), "'' (unknown)"},
        {"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (6,)}", "structured dtype"},
        {HEADER("<f8", "False", "(5,)"),
         "5 rows of 1 columns of 8 bytes are 40 bytes, and 48 follow the header"},
        {HEADER("<f8", "False", "(4, 2)"), "are 64 bytes, and 48 follow the header"},
        {HEADER("<f8", "False", "(6, 0)"), "are 0 bytes, and 48 follow the header"},
        {HEADER("<f8", "False", "(4294967296, 4294967296)"), "more than 1048576 columns"},
        {HEADER("<f8", "False", "(4611686018427387904, 4)"), "more than memory can hold"},
        {HEADER("<f8", "False", "(99999999999999999999, 4)"), "a smaller number"},
        {HEADER("<f8", "False", "(-1, 4)"), "a whole number, and \"-1, 4)"},
        {HEADER("<f8", "False", "(6)"), "',' or ')'"},
        {HEADER("<f8", "False", "(6, 1"), "a whole number, and \"}"},
        {HEADER("<f8", "False", "[6]"), "'('"},
        {HEADER("<f8", "0", "(6,)"), "True or False"},
        {HEADER("<f8", "False", "(6,)") "x", "the end"},
        {"{'descr': '<f8', 'fortran_order': False, }", "lacks descr, fortran_order or shape"},
        {"{'descr': '<f8', 'descr': '<f8', 'shape': (6,)}", "each once"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (6,), 'x': 1}", "each once"},
        {"{'descr': '<f8' 'shape': (6,)}", "',' or '}'"},
        {"{'descr' '<f8'}", "':'"},
        {"{'descr': '<f8", "a text that ends"},
        {"{", "a quote"},
        {"", "'{'"},
        {"__import__('os')", "'{'"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        n2_table *t;
        write_npy(f->path, cases[i].header, six, sizeof six);
        assert_int_equal(n2_table_read(f->ctx, f->path, NULL, &t), N2CE_EDATA);
        assert_message(f->ctx, cases[i].message);
    }
}

static void an_array_without_values_is_refused(void **state) {
    const fixture *f = *state;
    n2_table *t;
    write_npy(f->path, HEADER("<f8", "False", "(0, 6)"), NULL, 0);
    assert_int_equal(n2_table_read(f->ctx, f->path, NULL, &t), N2CE_EDATA);
    assert_message(f->ctx, "x.csv has no values: 0 rows of 6 columns");
    write_npy(f->path, HEADER("<f8", "True", "(6, 0)"), NULL, 0);
    assert_int_equal(n2_table_read(f->ctx, f->path, NULL, &t), N2CE_EDATA);
    assert_message(f->ctx, "x.csv has no values: 6 rows of 0 columns");
}

/* Every beginning of a file is refused, from memory and as a pipe would give it. */
static void a_truncated_array_is_refused(void **state) {
    const fixture *f = *state;
    unsigned char bytes[256];
    const size_t n = make_npy(bytes, 2, HEADER("<f8", "False", "(3, 2)"), six, sizeof six);
    for (size_t cut = 6; cut <= n + 1; cut++) {
        n2_reader *r;
        const n2ce_status status = n2_reader_parse(f->ctx, "bytes", bytes, cut, NULL, &r);
        assert_int_equal(status, cut == n ? N2CE_OK : N2CE_EDATA);
        if (status != N2CE_OK) assert_message(f->ctx, "bytes: ");
        n2_reader_close(r);
    }
    bytes[6] = 4;
    n2_reader *r;
    assert_int_equal(n2_reader_parse(f->ctx, "bytes", bytes, n, NULL, &r), N2CE_EDATA);
    assert_message(f->ctx, "NPY version 4.0");
    memcpy(bytes + 6, "\x02\x00\xff\xff\xff\xff", 6);
    assert_int_equal(n2_reader_parse(f->ctx, "bytes", bytes, n, NULL, &r), N2CE_EDATA);
    assert_message(f->ctx, "said to be 4294967295 bytes");
}

static void values_that_are_not_finite_are_named_or_dropped(void **state) {
    const fixture *f = *state;
    const double x[] = {1, 2, (double)NAN, 4, 5, 6, 7, (double)-INFINITY};
    n2_table *t;
    write_npy(f->path, HEADER("<f8", "False", "(4, 2)"), x, sizeof x);
    assert_int_equal(n2_table_read(f->ctx, f->path, NULL, &t), N2CE_EDATA);
    assert_message(f->ctx, "x.csv, row 1, column 0 (zero-based): the value is missing (NaN).");
    n2_table_options o = {.drop_missing = true};
    assert_int_equal(n2_table_read(f->ctx, f->path, &o, &t), N2CE_EDATA);
    assert_message(f->ctx, "row 3, column 1 (zero-based): \"-inf\" is infinite.");
    o.columns = "0";
    assert_ok(f->ctx, n2_table_read(f->ctx, f->path, &o, &t));
    assert_values(t, 3, 1, (double[]){1, 5, 7});
    assert_int_equal(t->seen, 4);
    assert_int_equal(t->dropped, 1);
    n2_table_free(t);
}

static void what_is_written_is_read_back(void **state) {
    const fixture *f = *state;
    for (size_t n = 1; n <= 6; n += 5) {
        n2_table *t;
        struct stat info;
        assert_ok(f->ctx, n2_npy_write(f->ctx, f->path, six, n, true));
        assert_int_equal(stat(f->path, &info), 0);
        assert_int_equal(info.st_size, 128 + 8 * n);
        assert_ok(f->ctx, n2_table_read(f->ctx, f->path, NULL, &t));
        assert_values(t, n, 1, six);
        n2_table_free(t);
    }
    assert_ok(f->ctx, n2_npy_write(f->ctx, f->path, NULL, 0, true));
    assert_int_equal(n2_npy_write(f->ctx, "/nowhere/x.npy", six, 6, true), N2CE_EIO);
}

/* ---- matrices --------------------------------------------------------------------------- */

static void matrices_of_every_type_and_layout_are_read(void **state) {
    n2ce_ctx *ctx = ((const fixture *)*state)->ctx;
    static const float f32[] = {1, 2, 3, 4, 5, 6};
    static const int64_t i64[] = {1, 2, 3, 4, 5, 6};
    static const int32_t i32[] = {1, 2, 3, 4, 5, 6};
    static const uint8_t u8[] = {1, 2, 3, 4, 5, 6};
    const n2ce_matrix same[] = {
        {six, N2CE_F64, 3, 2, 0, 0}, {f32, N2CE_F32, 3, 2, 0, 0}, {i64, N2CE_I64, 3, 2, 16, 8},
        {i32, N2CE_I32, 3, 2, 8, 4}, {u8, N2CE_U8, 3, 2, 0, 0},
    };
    n2_table *t;
    for (size_t i = 0; i < COUNT_OF(same); i++) {
        assert_ok(ctx, n2_table_of_matrix(ctx, &same[i], "m", NULL, &t));
        assert_values(t, 3, 2, six);
        assert_string_equal(t->names[1], "1");
        n2_table_free(t);
    }
    const n2ce_matrix transposed = {six, N2CE_F64, 2, 3, 8, 16};
    assert_ok(ctx, n2_table_of_matrix(ctx, &transposed, "m", NULL, &t));
    assert_values(t, 2, 3, (double[]){1, 3, 5, 2, 4, 6});
    n2_table_free(t);
    const n2ce_matrix reversed = {six + 5, N2CE_F64, 3, 2, -16, -8};
    assert_ok(ctx, n2_table_of_matrix(ctx, &reversed, "m", NULL, &t));
    assert_values(t, 3, 2, (double[]){6, 5, 4, 3, 2, 1});
    n2_table_free(t);
}

static void a_matrix_that_cannot_be_read_is_refused(void **state) {
    n2ce_ctx *ctx = ((const fixture *)*state)->ctx;
    const double x[] = {1, (double)NAN};
    n2_table *t;
    const n2ce_matrix missing = {x, N2CE_F64, 2, 1, 0, 0}, unknown = {x, (n2ce_dtype)9, 2, 1, 0, 0};
    const n2ce_matrix none = {NULL, N2CE_F64, 2, 1, 0, 0}, empty = {x, N2CE_F64, 0, 1, 0, 0};
    assert_int_equal(n2_table_of_matrix(ctx, &missing, "data[0]", NULL, &t), N2CE_EDATA);
    assert_message(ctx, "data[0], row 1, column 0 (zero-based): the value is missing");
    assert_int_equal(n2_table_of_matrix(ctx, &unknown, "m", NULL, &t), N2CE_EINVAL);
    assert_int_equal(n2_table_of_matrix(ctx, &none, "m", NULL, &t), N2CE_EINVAL);
    assert_int_equal(n2_table_of_matrix(ctx, &empty, "m", NULL, &t), N2CE_EDATA);
    assert_message(ctx, "m has no values");
    const n2_table_options o = {.columns = "1"};
    assert_int_equal(n2_table_of_matrix(ctx, &missing, "m", &o, &t), N2CE_EINVAL);
    assert_null(t);
    n2_table_free(NULL);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_header_that_numpy_would_read_is_read),
        TEST(orders_and_dimensions_are_respected),
        TEST(every_type_of_number_is_read),
        TEST(arrays_that_cannot_be_used_are_refused),
        TEST(an_array_without_values_is_refused),
        TEST(a_truncated_array_is_refused),
        TEST(values_that_are_not_finite_are_named_or_dropped),
        TEST(what_is_written_is_read_back),
        TEST(matrices_of_every_type_and_layout_are_read),
        TEST(a_matrix_that_cannot_be_read_is_refused),
    };
    return cmocka_run_group_tests_name("npy", tests, NULL, NULL);
}
