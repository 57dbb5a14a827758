/* Facts about samples in files and in memory: what CSV and NPY say is what is read, what cannot be
 * used is named with its place, and memory does not grow with the file. */
#include "close.h"
#include "failing_alloc.h"
#include "resident.h"

#include "base/text.h"
#include "io/csv.h"
#include "io/json.h"
#include "io/npy.h"
#include "io/table.h"
#include "io/text_columns.h"

#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- fixture ---------------------------------------------------------------------------- */

typedef struct fixture {
    n2ce_ctx *ctx;
    n2_levels *levels;
    char folder[64], path[128];
} fixture;

static int set_up(void **state) {
    static fixture f;
    strcpy(f.folder, "/tmp/n2ce-test-XXXXXX");
    *state = &f;
    if (!mkdtemp(f.folder)) return -1;
    snprintf(f.path, sizeof f.path, "%s/x.csv", f.folder);
    if (n2ce_ctx_new(&f.ctx, NULL) != N2CE_OK) return -1;
    return n2_levels_new(f.ctx, &f.levels) == N2CE_OK ? 0 : -1;
}

static int tear_down(void **state) {
    fixture *f = *state;
    n2_levels_free(f->levels);
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

static void write_text(const char *path, const char *text) {
    write_bytes(path, text, strlen(text));
}

static void assert_message(const n2ce_ctx *ctx, const char *fragment) {
    if (strstr(n2ce_errmsg(ctx), fragment)) return;
    print_error("\"%s\" is not in \"%s\"\n", fragment, n2ce_errmsg(ctx));
    fail();
}

static void assert_ok(const n2ce_ctx *ctx, n2ce_status status) {
    if (status != N2CE_OK) print_error("%s: %s\n", n2ce_status_name(status), n2ce_errmsg(ctx));
    assert_int_equal(status, N2CE_OK);
}

/* The table of a text. */
static n2_table *read_text(const fixture *f, const char *text, const n2_table_options *o) {
    n2_table *t;
    write_text(f->path, text);
    assert_ok(f->ctx, n2_table_read(f->ctx, f->path, o, &t));
    return t;
}

/* The text is refused, and the message contains the fragments, which are separated by '|'. */
static void assert_refused_as(const fixture *f, const char *text, const n2_table_options *o,
                              n2ce_status status, const char *fragments) {
    n2_table *t;
    char copy[400];
    write_text(f->path, text);
    assert_int_equal(n2_table_read(f->ctx, f->path, o, &t), status);
    assert_null(t);
    assert_true(n2_is_utf8(n2ce_errmsg(f->ctx)));
    snprintf(copy, sizeof copy, "%s", fragments);
    for (char *part = strtok(copy, "|"); part; part = strtok(NULL, "|"))
        assert_message(f->ctx, part);
}

static void assert_refused(const fixture *f, const char *text, const char *fragments) {
    assert_refused_as(f, text, NULL, N2CE_EDATA, fragments);
}

static void assert_values(const n2_table *t, size_t rows, size_t cols, const double *x) {
    assert_int_equal(t->rows, rows);
    assert_int_equal(t->cols, cols);
    for (size_t i = 0; i < rows * cols; i++) assert_close(t->x[i], x[i], 0, 0);
}

/* ---- numbers ---------------------------------------------------------------------------- */

static n2_value value_of(const char *text, double *number) {
    const n2_c_locale scope = n2_c_locale_enter();
    const n2_value value = n2_value_parse(text, strlen(text), number);
    n2_c_locale_leave(scope);
    return value;
}

static void texts_are_numbers_missing_infinite_or_neither(void **state) {
    (void)state;
    static const char *const texts[][20] = {
        [N2_VALUE_NUMBER] = {"0", "-1.5", "+1", " 2\t", "1.", ".5", "1e3", "1E-3", "00012", "-0",
                             "1e-999", "0e999999999999", "123456789012345678901234567890"},
        [N2_VALUE_MISSING] = {"", "  ", "NA", "na", "N/A", "nan", "NaN", "-nan", "null", "None",
                              "NULL", "?", "-", ".", " . "},
        [N2_VALUE_INFINITE] = {"inf", "-Inf", "+INFINITY", "1e999", "-1e400"},
        [N2_VALUE_TEXT] = {"0x10", "1.5x", "1 2", "1e", "1e+", "--1", "+-1", "1,5", "e5", "+",
                           "1.2.3", "nano", "infinite", "1f", "0b1", "\xef\xbc\x91", "1_000", "-."},
    };
    for (int kind = 0; kind <= N2_VALUE_TEXT; kind++)
        for (size_t i = 0; i < COUNT_OF(texts[kind]) && texts[kind][i]; i++) {
            double number;
            if (value_of(texts[kind][i], &number) == (n2_value)kind) continue;
            print_error("\"%s\" is not of kind %d\n", texts[kind][i], kind);
            fail();
        }
}

/* The same bits as strtod, for decimals of 1 to 19 digits with the point and the exponent anywhere.
 */
static void decimals_are_rounded_to_the_nearest_double(void **state) {
    (void)state;
    uint64_t random = 1;
    for (int i = 0; i < 200000; i++) {
        char text[64];
        uint64_t limit = 10;
        random = random * 6364136223846793005u + 1442695040888963407u;
        for (uint64_t k = random >> 32; k % 19 > 0; k--) limit *= 10;
        snprintf(text, sizeof text, "-%llu", (unsigned long long)((random >> 1) % limit));
        const size_t point = 1 + (random >> 50) % strlen(text);
        memmove(text + point + 1, text + point, strlen(text + point) + 1);
        text[point] = '.';
        if (i % 2) snprintf(text + strlen(text), 8, "e%d", (int)(random >> 40 & 63) - 32);
        double number;
        assert_int_equal(value_of(text, &number), N2_VALUE_NUMBER);
        if (number == strtod(text, NULL)) continue;
        print_error("%s reads as %.17g\n", text, number);
        fail();
    }
}

static void halfway_cases_and_signed_zero_are_exact(void **state) {
    (void)state;
    double number;
    assert_int_equal(value_of("9007199254740993", &number), N2_VALUE_NUMBER);
    assert_true(number == 9007199254740992.0);
    value_of("9007199254740993.00000000000000000000001", &number);
    assert_true(number == 9007199254740994.0);
    value_of("1e22", &number);
    assert_true(number == 1e22);
    value_of("8.5e-23", &number);
    assert_true(number == 8.5e-23);
    value_of("4.9406564584124654e-324", &number);
    assert_true(number == 4.9406564584124654e-324);
    value_of("-0.0", &number);
    assert_true(number == 0 && signbit(number));
}

static void the_decimal_point_is_a_point_in_every_locale(void **state) {
    const fixture *f = *state;
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"};
    for (size_t i = 0; i < COUNT_OF(locales) && !setlocale(LC_NUMERIC, locales[i]); i++) continue;
    n2_table *t = read_text(f, "1.5,0.12345678901234567\n", NULL);
    setlocale(LC_NUMERIC, "C");
    assert_values(t, 1, 2, (double[]){1.5, 0.12345678901234567});
    n2_table_free(t);
}

/* ---- CSV -------------------------------------------------------------------------------- */

/* Each of these is the matrix 1 2 / 3 4. */
static void the_same_table_can_be_written_in_many_ways(void **state) {
    const fixture *f = *state;
    static const char *const texts[] = {
        "1,2\n3,4\n",
        "1,2\n3,4",
        "1,2\r\n3,4\r\n",
        "1,2\r\n3,4",
        "a,b\n1,2\n3,4\n",
        "\xef\xbb\xbf"
        "a,b\n1,2\n3,4\n",
        "\xef\xbb\xbf"
        "1,2\n3,4\n",
        "# made by hand, \"with care\n#,,\n\n1,2\n3,4\n",
        "\n  \n1,2\n\r\n\n3,4\n\n\n",
        "1\t2\n3\t4\n",
        "1;2\n3;4\n",
        "a\tb\r\n1\t2\r\n3\t4\r\n",
        "\"a;x\"\t\"b;y\"\n1\t2\n3\t4\n",
        " 1 , +2.0\n3e0\t,\"4\"\n",
        "\"a, \"\"quoted\"\"\",\"b\nover two lines\"\n\"1\",\"2\"\n\"3\" , \"4\"\n",
        "a,b\n1,2\n3,4\n ",
        "a,\n1,2\n3,4\n",
        "a,5\" pipe\n1,2\n3,4\n",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        n2_table *t = read_text(f, texts[i], NULL);
        assert_values(t, 2, 2, (double[]){1, 2, 3, 4});
        assert_int_equal(t->seen, 2);
        assert_int_equal(t->dropped, 0);
        n2_table_free(t);
    }
}

static void columns_are_named_by_the_header_or_by_number(void **state) {
    const fixture *f = *state;
    n2_table *t = read_text(f, "\"a, \"\"quoted\"\"\", b , \n1,2,3\n", NULL);
    assert_string_equal(t->names[0], "a, \"quoted\"");
    assert_string_equal(t->names[1], "b");
    assert_string_equal(t->names[2], "2"); /* the header has no name for it */
    n2_table_free(t);
    t = read_text(f, "1,2,3\n", &(n2_table_options){.columns = "2,0"});
    assert_string_equal(t->names[0], "2");
    assert_string_equal(t->names[1], "0");
    assert_values(t, 1, 2, (double[]){3, 1});
    n2_table_free(t);
}

/* A first row with a number, or with nothing but missing values, is no header. */
static void a_header_has_texts_and_no_numbers(void **state) {
    const fixture *f = *state;
    n2_table_options o = {.categorical = "0", .levels = f->levels};
    n2_table *t = read_text(f, "red,1\nblue,2\n", &o);
    assert_values(t, 2, 2, (double[]){0, 1, 1, 2});
    n2_table_free(t);
    o = (n2_table_options){.drop_missing = true};
    t = read_text(f, "NA,?\n3,4\n", &o);
    assert_values(t, 1, 2, (double[]){3, 4});
    assert_int_equal(t->dropped, 1);
    assert_string_equal(t->names[1], "1");
    n2_table_free(t);
    t = read_text(f, "a,nan\n3,4\n", NULL);
    assert_string_equal(t->names[1], "nan");
    n2_table_free(t);
}

static void what_is_wrong_with_a_value_is_said_with_its_place(void **state) {
    const fixture *f = *state;
    assert_refused(f, "a,b,temp\n1,2,3\n\n4,5,NA\n",
                   "x.csv, line 4, column 3 (\"temp\"): the value is missing. Drop such rows with "
                   "--drop-missing, or leave the column out with --columns.");
    assert_refused(f, "a,\"b\nc\"\n1,2\n3,\n", "line 4, column 2 (\"b?c\"): the value is missing");
    assert_refused(f, "1,2\n3,n/a!\n",
                   "line 2, column 2 (number 1 for --columns): \"n/a!\" is not a number.|"
                   "--columns|--categorical");
    assert_refused(f, "a\n1\n-inf\n", "line 3, column 1 (\"a\"): \"-inf\" is infinite.");
    assert_refused(f, "a\n1e999\n", "\"1e999\" is infinite.");
    assert_refused(f, "1,0x10\n", "\"0x10\" is not a number");
    assert_refused(f, "1\n\"\"\n", "line 2, column 1|the value is missing");
    assert_refused(f, "# one\n1\n# two\n", "line 3|\"# two\" is not a number");
}

static void texts_in_messages_are_short_and_harmless(void **state) {
    const fixture *f = *state;
    assert_refused(f, "1\n\x1b[31mred\x07\n", "\"?[31mred?\" is not");
    assert_refused(f, "1\nred\xff\n", "\"red?\" is not");
    assert_refused(f, "1\nr\xc2\x9bm\n", "\"r??m\" is not"); /* a control character of two bytes */
    assert_refused(f, "1\nabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\n",
                   "\"abcdefghijklmnopqrstuvwxyzabcdefghijklmn...\" is not");
    assert_refused(f, "1\nabcdefghijklmnopqrstuvwxyzabcdefghijklm\xc3\xa9o\n",
                   "\"abcdefghijklmnopqrstuvwxyzabcdefghijklm...\" is not");
}

static void what_is_wrong_with_a_file_is_said(void **state) {
    const fixture *f = *state;
    assert_refused(f, "", "x.csv is empty");
    assert_refused(f, "\n\n# nothing\n", "x.csv is empty");
    assert_refused(f, "\xef\xbb\xbf", "x.csv is empty");
    assert_refused(f, "a,b\n", "a header and no rows");
    assert_refused(f, "a,b,a\n1,2,3\n", "line 1: columns 1 and 3 are both named \"a\"");
    assert_refused(f, "a,b\n1,2\n3,4,5\n",
                   "x.csv, line 3: 3 fields found, and 2 expected as in line 1");
    assert_refused(f, "1,2\n\n3\n", "line 3: 1 field found, and 2 expected");
    assert_refused(f, "a\n1\n\"2\n3\n", "line 3: a quote opens here and is not closed");
    assert_refused(f, "a,b\n\"1\"2,3\n", "line 2: \"2\" comes after the closing quote of field 1");
    assert_refused(f,
                   "\xff\xfe"
                   "1\n",
                   "UTF-16");
    assert_refused(f, "\x1f\x8b\x08...", "compressed with gzip");
    assert_refused(f, "PK\x03\x04...", "zip archive");
    assert_refused(f,
                   "gr\xf6\xdf"
                   "e,b\n1,2\n",
                   "column 1: the name is not UTF-8");
}

static void bytes_that_are_no_text_are_refused(void **state) {
    const fixture *f = *state;
    n2_table *t;
    write_bytes(f->path, "a\0b\n1\n", 6);
    assert_int_equal(n2_table_read(f->ctx, f->path, NULL, &t), N2CE_EDATA);
    assert_message(f->ctx, "line 1: there is a NUL byte");
    write_bytes(f->path, "1\n2\0\n", 5);
    assert_int_equal(n2_table_read(f->ctx, f->path, NULL, &t), N2CE_EDATA);
    assert_message(f->ctx, "line 2, column 1");
    n2_table_options o = {.categorical = "1", .levels = f->levels};
    write_bytes(f->path, "1,a\0b\n", 6);
    assert_int_equal(n2_table_read(f->ctx, f->path, &o, &t), N2CE_EDATA);
    write_bytes(f->path, "1,a\n1,a\0b\n", 10);
    assert_int_equal(n2_table_read(f->ctx, f->path, &o, &t), N2CE_EDATA);
    assert_message(f->ctx, "line 2, column 2");
}

static void what_cannot_be_opened_is_an_io_error(void **state) {
    const fixture *f = *state;
    n2_table *t;
    assert_int_equal(n2_table_read(f->ctx, f->folder, NULL, &t), N2CE_EIO);
    assert_message(f->ctx, "is a folder");
    assert_int_equal(n2_table_read(f->ctx, "/nowhere/x.csv", NULL, &t), N2CE_EIO);
    assert_message(f->ctx, "/nowhere/x.csv: could not be read: No such file");
    assert_null(t);
    if (geteuid() == 0) return; /* root may read everything */
    write_text(f->path, "1\n");
    chmod(f->path, 0);
    assert_int_equal(n2_table_read(f->ctx, f->path, NULL, &t), N2CE_EIO);
    assert_message(f->ctx, "Permission denied");
}

/* Whatever way the bytes arrive, the rows are the same. */
static void rows_do_not_depend_on_how_bytes_arrive(void **state) {
    n2ce_ctx *ctx = ((const fixture *)*state)->ctx;
    static const char text[] =
        "\xef\xbb\xbf# c\r\n\r\n a ,\"b\"\"\r\n\"\"\", \"c\" \r\n1,\"2\",3\r\n";
    static const char *const expected[] = {"a", "b\"\r\n\"", "c", "1", "2", "3"};
    for (size_t chunk = 0; chunk < sizeof text; chunk++) {
        n2_input in = n2_input_memory(ctx, "text", text, sizeof text - 1);
        n2_csv *csv;
        const n2_csv_field *fields;
        size_t n, i = 0;
        in.chunk = chunk;
        assert_ok(ctx, n2_csv_open(ctx, &in, 0, &csv));
        while (assert_ok(ctx, n2_csv_next(csv, &fields, &n)), fields) {
            assert_int_equal(n, 3);
            assert_int_equal(n2_csv_line(csv), i == 0 ? 3 : 5);
            for (size_t k = 0; k < n; k++, i++) {
                assert_int_equal(fields[k].n, strlen(expected[i]));
                assert_memory_equal(fields[k].text, expected[i], fields[k].n);
            }
        }
        assert_int_equal(i, 6);
        n2_csv_close(csv);
        n2_input_close(&in);
    }
    n2_csv_close(NULL);
}

/* A row longer than the buffer, after others, with fields that move with it. */
static void a_long_row_is_read(void **state) {
    const fixture *f = *state;
    enum { COLUMNS = 200000, ROWS = 3 };
    n2_text text = n2_text_new(f->ctx);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < COLUMNS; k++)
            n2_text_add(&text, "%d%c", i * k, k < COLUMNS - 1 ? ',' : '\n');
    n2_table *t = read_text(f, text.data, NULL);
    n2_text_free(&text);
    assert_int_equal(t->rows, ROWS);
    assert_int_equal(t->cols, COLUMNS);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < COLUMNS; k++)
            assert_true(t->x[(size_t)i * COLUMNS + (size_t)k] == i * k);
    n2_table_free(t);
}

static void a_row_without_end_is_refused(void **state) {
    const fixture *f = *state;
    n2_table *t;
    assert_int_equal(n2_table_read(f->ctx, "/dev/zero", NULL, &t), N2CE_EDATA);
    assert_message(f->ctx, "/dev/zero, line 1: the row is longer than 64 MiB");
    char *commas = malloc(N2_CSV_FIELDS_MAX + 1);
    assert_non_null(commas);
    memset(commas, ',', N2_CSV_FIELDS_MAX);
    commas[N2_CSV_FIELDS_MAX] = '\0';
    assert_refused(f, commas, "line 1: the row has more than 1048576 fields");
    free(commas);
}

/* ---- columns ---------------------------------------------------------------------------- */

static void columns_are_names_numbers_and_ranges(void **state) {
    n2ce_ctx *ctx = ((const fixture *)*state)->ctx;
    static char *const names[] = {"temp", "1", "a,b", "0-1", "say \"x\"", "5"};
    static const struct {
        const char *text;
        size_t n, expected[6];
    } cases[] = {
        {"temp", 1, {0}},
        {"0", 1, {0}},
        {"1", 1, {1}},
        {"5", 1, {5}},
        {" 2 , temp ", 2, {2, 0}},
        {"\"a,b\",0", 2, {2, 0}},
        {"0-1", 1, {3}}, /* a name, which wins */
        {"2-4", 3, {2, 3, 4}},
        {"0-5", 6, {0, 1, 2, 3, 4, 5}},
        {"\"say \"\"x\"\"\"", 1, {4}},
        {"", 0, {0}},
        {"3-3", 1, {3}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t *columns, n;
        assert_ok(ctx, n2_columns_parse(ctx, cases[i].text, names, 6, &columns, &n));
        assert_int_equal(n, cases[i].n);
        assert_memory_equal(columns, cases[i].expected, n * sizeof *columns);
        n2_free(ctx, columns);
    }
}

static void columns_that_make_no_sense_are_refused(void **state) {
    n2ce_ctx *ctx = ((const fixture *)*state)->ctx;
    static char *const names[] = {"temp", "pressure", "wind"};
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"presure", "\"presure\" is not the name of a column; did you mean \"pressure\"?"},
        {"humidity", "\"humidity\" is not the name of a column, nor"},
        {"3", "\"3\" is beyond the last column: they are 0 to 2"},
        {"0-99999999999999999999999", "beyond the last column"},
        {"2-1", "\"2-1\" ends before it begins"},
        {"temp,wind,0", "\"0\" names a column that was named already"},
        {"0-1,1-2", "\"1-2\" names a column that was named already"},
        {"temp,,wind", "missing between commas"},
        {"temp,", "missing between commas"},
        {",", "missing between commas"},
        {" ", "missing between commas"},
        {"\"temp", "no closing one"},
        {"\"temp\"x", "neither a comma nor the end"},
        {"\"0\"", "\"0\" is not the name of a column"},
        {"-1", "\"-1\" is not the name"},
        {"1-", "\"1-\" is not the name"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t *columns, n;
        assert_int_equal(n2_columns_parse(ctx, cases[i].text, names, 3, &columns, &n), N2CE_EINVAL);
        assert_null(columns);
        assert_message(ctx, cases[i].message);
    }
}

static void only_kept_columns_are_looked_at(void **state) {
    const fixture *f = *state;
    n2_table_options o = {.columns = "b,0"};
    n2_table *t = read_text(f, "a,b,c\n1,2,\n3,4,inf\n5,6,hello\n", &o);
    assert_values(t, 3, 2, (double[]){2, 1, 4, 3, 6, 5});
    assert_string_equal(t->names[0], "b");
    assert_string_equal(t->names[1], "a");
    n2_table_free(t);
    assert_refused_as(f, "alpha,beta\n1,2\n", &(n2_table_options){.columns = "aplha"}, N2CE_EINVAL,
                      "x.csv, --columns: \"aplha\"|did you mean \"alpha\"?");
}

/* ---- missing values --------------------------------------------------------------------- */

static void rows_with_missing_values_can_be_dropped(void **state) {
    const fixture *f = *state;
    n2_table_options o = {.drop_missing = true};
    n2_table *t = read_text(f, "a,b\n1,2\n,3\n4,NA\n5,6\n?,.\n", &o);
    assert_values(t, 2, 2, (double[]){1, 2, 5, 6});
    assert_int_equal(t->seen, 5);
    assert_int_equal(t->dropped, 3);
    n2_table_free(t);
    o.columns = "a";
    t = read_text(f, "a,b\n1,2\n,3\n4,NA\n", &o);
    assert_values(t, 2, 1, (double[]){1, 4});
    n2_table_free(t);
    o.columns = "";
    assert_refused_as(f, "a,b\n1,\n,2\n", &o, N2CE_EDATA, "2 of 2 rows have missing values");
    assert_refused_as(f, "a,b\n1,x\n", &o, N2CE_EDATA, "\"x\" is not a number");
}

/* ---- categories ------------------------------------------------------------------------- */

static void levels_are_numbered_as_they_come(void **state) {
    const fixture *f = *state;
    n2_table_options o = {.categorical = "colour", .levels = f->levels, .drop_missing = true};
    n2_table *t = read_text(f, "x,colour\n1,red\n2, \"light, blue\"\nNA,green\n3,red\n", &o);
    assert_values(t, 3, 2, (double[]){1, 0, 2, 1, 3, 0});
    assert_false(t->categorical[0]);
    assert_true(t->categorical[1]);
    n2_table_free(t);
    assert_int_equal(n2_levels_columns(f->levels), 1);
    assert_string_equal(n2_levels_column(f->levels, 0), "colour");
    assert_null(n2_levels_column(f->levels, 1));
    assert_int_equal(n2_levels_count(f->levels, "colour"), 2); /* green was dropped */
    assert_int_equal(n2_levels_count(f->levels, "x"), 0);
    assert_string_equal(n2_levels_text(f->levels, "colour", 1), "light, blue");
    assert_null(n2_levels_text(f->levels, "colour", 2));
    assert_null(n2_levels_text(f->levels, "x", 0));
    t = read_text(f, "colour,y\nred,1\nmauve,2\n", &o); /* another file, another order */
    assert_values(t, 2, 2, (double[]){0, 1, 2, 2});
    n2_table_free(t);
}

static void frozen_levels_refuse_what_they_do_not_know(void **state) {
    const fixture *f = *state;
    size_t code = 9;
    n2_table_options o = {.categorical = "colour", .levels = f->levels};
    assert_ok(f->ctx, n2_levels_add(f->levels, "colour", "red", &code));
    assert_int_equal(code, 0);
    assert_ok(f->ctx, n2_levels_add(f->levels, "colour", "blue", &code));
    assert_ok(f->ctx, n2_levels_add(f->levels, "colour", "blue", &code));
    assert_int_equal(code, 1);
    n2_levels_freeze(f->levels);
    n2_table *t = read_text(f, "x,colour\n1,blue\n", &o);
    assert_values(t, 1, 2, (double[]){1, 1});
    n2_table_free(t);
    assert_refused_as(f, "x,colour\n1,blue\n2,mauve\n", &o, N2CE_EDATA,
                      "x.csv, line 3, column 2 (\"colour\"): \"mauve\" is not a known category|"
                      "Known are: \"red\", \"blue\".");
    o.categorical = "x";
    assert_refused_as(f, "x,colour\n1,blue\n", &o, N2CE_EDATA, "--categorical: column \"x\"");
    assert_int_equal(n2_levels_add(f->levels, "colour", "pink", &code), N2CE_EDATA);
}

static void categorical_columns_must_be_kept_and_need_levels(void **state) {
    const fixture *f = *state;
    n2_table_options o = {.columns = "x", .categorical = "colour", .levels = f->levels};
    assert_refused_as(f, "x,colour\n1,red\n", &o, N2CE_EINVAL,
                      "--categorical: column \"colour\" is not among --columns");
    o.columns = NULL;
    o.levels = NULL;
    assert_refused_as(f, "x,colour\n1,red\n", &o, N2CE_EINVAL, "need levels");
    o.levels = f->levels;
    assert_refused_as(f, "x,colour\n1,NA\n", &o, N2CE_EDATA, "(\"colour\"): the value is missing");
    assert_refused_as(f, "x,colour\n1,r\xf6t\n", &o, N2CE_EDATA, "line 2|\"r?t\" is not UTF-8");
    o.categorical = "color";
    assert_refused_as(f, "x,colour\n1,red\n", &o, N2CE_EINVAL,
                      "--categorical: \"color\"|did you mean \"colour\"?");
}

static void many_levels_are_found_again_and_too_many_refused(void **state) {
    const fixture *f = *state;
    char text[32];
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < N2_LEVELS_MAX; i++) {
            size_t code;
            snprintf(text, sizeof text, "level %zu", i);
            assert_int_equal(n2_levels_add(f->levels, "id", text, &code), N2CE_OK);
            assert_int_equal(code, i);
        }
    size_t code;
    assert_int_equal(n2_levels_add(f->levels, "id", "one more", &code), N2CE_EDATA);
    assert_message(f->ctx, "too many");
    n2_levels_freeze(f->levels);
    assert_int_equal(n2_levels_add(f->levels, "id", "one more", &code), N2CE_EDATA);
    assert_message(f->ctx, "and 65524 more");
}

/* A number is the same category in CSV and in memory. */
static void numbers_can_be_categories(void **state) {
    const fixture *f = *state;
    static const double x[] = {2, 0.5, -1, 0.25, 2, 1.5};
    const n2ce_matrix m = {.data = x, .type = N2CE_F64, .rows = 3, .cols = 2};
    n2_table_options o = {.categorical = "0", .levels = f->levels};
    n2_table *t;
    assert_ok(f->ctx, n2_table_of_matrix(f->ctx, &m, "memory", &o, &t));
    assert_values(t, 3, 2, (double[]){0, 0.5, 1, 0.25, 0, 1.5});
    n2_table_free(t);
    t = read_text(f, "-1,0\n2,0\n", &o);
    assert_values(t, 2, 2, (double[]){1, 0, 0, 0});
    n2_table_free(t);
    n2_levels_freeze(f->levels);
    const n2ce_matrix other = {.data = x + 1, .type = N2CE_F64, .rows = 1, .cols = 2};
    assert_int_equal(n2_table_of_matrix(f->ctx, &other, "memory", &o, &t), N2CE_EDATA);
    assert_message(f->ctx, "memory, row 0, column 0 (zero-based): \"0.5\" is not a known category");
}

/* ---- samples of rows -------------------------------------------------------------------- */

static n2_table *sample(const fixture *f, size_t rows, uint64_t seed) {
    n2_table *t;
    const n2_table_options o = {.max_rows = rows, .seed = seed};
    assert_ok(f->ctx, n2_table_read(f->ctx, f->path, &o, &t));
    return t;
}

static void write_count(const fixture *f, int n) {
    FILE *file = fopen(f->path, "wb");
    assert_non_null(file);
    for (int i = 0; i < n; i++) fprintf(file, "%d,%d\n", i, -i);
    assert_int_equal(fclose(file), 0);
}

static void a_subset_keeps_rows_whole_and_in_order(void **state) {
    const fixture *f = *state;
    write_count(f, 50000);
    n2_table *t = sample(f, 1000, 7), *again = sample(f, 1000, 7), *other = sample(f, 1000, 8);
    assert_int_equal(t->rows, 1000);
    assert_int_equal(t->seen, 50000);
    for (size_t i = 0; i < t->rows; i++) {
        assert_true(t->x[2 * i] == -t->x[2 * i + 1]);
        assert_true(i == 0 || t->x[2 * i] > t->x[2 * i - 2]);
    }
    assert_memory_equal(t->x, again->x, 2000 * sizeof *t->x);
    assert_memory_not_equal(t->x, other->x, 2000 * sizeof *t->x);
    assert_true(t->x[2 * 999] > 49000); /* 1 - 0.98^1000 */
    n2_table_free(t);
    n2_table_free(again);
    n2_table_free(other);
    t = sample(f, 50000, 7);
    assert_int_equal(t->rows, 50000);
    assert_true(t->x[2 * 49999] == 49999);
    n2_table_free(t);
    t = sample(f, SIZE_MAX - 1, 7);
    assert_int_equal(t->rows, 50000);
    n2_table_free(t);
}

/* Every row is kept equally often: a chi-squared of 39 degrees of freedom. */
static void a_subset_is_uniform(void **state) {
    const fixture *f = *state;
    enum { ROWS = 40, KEPT = 5, SEEDS = 4000 };
    double counts[ROWS] = {0}, chi2 = 0;
    const double expected = (double)SEEDS * KEPT / ROWS;
    write_count(f, ROWS);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        n2_table *t = sample(f, KEPT, seed);
        for (size_t i = 0; i < KEPT; i++) counts[(size_t)t->x[2 * i]]++;
        n2_table_free(t);
    }
    for (int i = 0; i < ROWS; i++) chi2 += pow(counts[i] - expected, 2) / expected;
    assert_true(chi2 < 75); /* one in 2000; the seeds are fixed */
    assert_true(chi2 > 12);
}

/* ---- NPY -------------------------------------------------------------------------------- */

/* A file of version `major` with a header and n bytes. */
static size_t make_npy(unsigned char *out, int major, const char *header, const void *data,
                       size_t n) {
    const size_t length = strlen(header), fixed = major == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (unsigned char)major;
    out[7] = 0;
    for (size_t i = 8; i < fixed; i++) out[i] = (unsigned char)(length >> 8 * (i - 8));
    memcpy(out + fixed, header, length);
    if (n > 0) memcpy(out + fixed + length, data, n);
    return fixed + length + n;
}

static void write_npy(const char *path, const char *header, const void *data, size_t n) {
    unsigned char bytes[2048];
    assert_true(strlen(header) + n < sizeof bytes - 16);
    write_bytes(path, bytes, make_npy(bytes, 1, header, data, n));
}

#define HEADER(descr, fortran, shape) \
    "{'descr': '" descr "', 'fortran_order': " fortran ", 'shape': " shape ", }  \n"

static n2_table *read_npy(const fixture *f, const char *header, const void *data, size_t n) {
    n2_table *t;
    write_npy(f->path, header, data, n);
    assert_ok(f->ctx, n2_table_read(f->ctx, f->path, NULL, &t));
    return t;
}

static const double six[] = {1, 2, 3, 4, 5, 6};

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
        assert_ok(f->ctx, n2_npy_write(f->ctx, f->path, six, n));
        assert_int_equal(stat(f->path, &info), 0);
        assert_int_equal(info.st_size, 128 + 8 * n);
        assert_ok(f->ctx, n2_table_read(f->ctx, f->path, NULL, &t));
        assert_values(t, n, 1, six);
        n2_table_free(t);
    }
    assert_ok(f->ctx, n2_npy_write(f->ctx, f->path, NULL, 0));
    assert_int_equal(n2_npy_write(f->ctx, "/nowhere/x.npy", six, 6), N2CE_EIO);
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

/* ---- streams ---------------------------------------------------------------------------- */

/* Blocks of any size give the rows of the table. */
static void a_reader_gives_the_rows_of_the_table(void **state) {
    const fixture *f = *state;
    const n2_table_options o = {.drop_missing = true};
    n2_table *t = read_text(f, "a,b\n1,2\nNA,3\n,4\n5,6\n7,8\n9,\n", &o);
    for (size_t block = 1; block < 5; block++) {
        n2_reader *r;
        size_t n, rows = 0;
        double x[8];
        assert_ok(f->ctx, n2_reader_open(f->ctx, f->path, &o, &r));
        assert_int_equal(n2_reader_cols(r), 2);
        assert_string_equal(n2_reader_name(r, 1), "b");
        assert_null(n2_reader_name(r, 2));
        while (assert_ok(f->ctx, n2_reader_next(r, x, block, &n)), n > 0) {
            assert_memory_equal(x, t->x + rows * 2, n * 2 * sizeof *x);
            rows += n;
        }
        assert_ok(f->ctx, n2_reader_next(r, x, block, &n)); /* it stays at the end */
        assert_int_equal(n, 0);
        assert_int_equal(rows, t->rows);
        assert_int_equal(n2_reader_seen(r), t->seen);
        assert_int_equal(n2_reader_dropped(r), t->dropped);
        n2_reader_close(r);
    }
    n2_table_free(t);
    n2_reader_close(NULL);
}

/* A child writes the bytes, slowly if asked to; the descriptor to read them from. */
static int pipe_of(const void *bytes, size_t n, bool slowly) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60); /* not forever, if nobody reads */
        const char *p = bytes;
        for (size_t step = slowly ? 5 : 1 << 16; n > 0;) {
            const ssize_t written = write(ends[1], p, step < n ? step : n);
            if (written <= 0) _exit(1);
            p += written;
            n -= (size_t)written;
        }
        _exit(0);
    }
    close(ends[1]);
    return ends[0];
}

static n2ce_status read_pipe(const fixture *f, const void *bytes, size_t n, n2_table **t) {
    char path[32];
    const int end = pipe_of(bytes, n, true);
    snprintf(path, sizeof path, "/dev/fd/%d", end);
    const n2ce_status status = n2_table_read(f->ctx, path, NULL, t);
    close(end);
    wait(NULL);
    return status;
}

static void a_pipe_is_as_good_as_a_file(void **state) {
    const fixture *f = *state;
    unsigned char bytes[256];
    n2_table *t;
    assert_ok(f->ctx, read_pipe(f, "a,b\n1,2\n3,4\n5,6\n", 16, &t));
    assert_values(t, 3, 2, six);
    n2_table_free(t);
    size_t n = make_npy(bytes, 1, HEADER("<f8", "False", "(3, 2)"), six, sizeof six);
    assert_ok(f->ctx, read_pipe(f, bytes, n, &t));
    assert_values(t, 3, 2, six);
    n2_table_free(t);
    assert_int_equal(read_pipe(f, bytes, n - 1, &t), N2CE_EDATA);
    assert_message(f->ctx, "are 48 bytes, and 47 follow the header");
    assert_int_equal(read_pipe(f, bytes, n + 1, &t), N2CE_EDATA);
    assert_message(f->ctx, "are 48 bytes, and at least 49 follow the header");
    n = make_npy(bytes, 1, HEADER("<f8", "True", "(3, 2)"), six, sizeof six);
    assert_ok(f->ctx, read_pipe(f, bytes, n, &t));
    assert_values(t, 3, 2, (double[]){1, 4, 2, 5, 3, 6});
    n2_table_free(t);
    assert_int_equal(read_pipe(f, bytes, n - 1, &t), N2CE_EDATA);
    assert_message(f->ctx, "and 47 follow");
    assert_int_equal(read_pipe(f, bytes, n + 1, &t), N2CE_EDATA);
    assert_message(f->ctx, "and at least 49 follow");
}

/* However the bytes of an array arrive. */
static void arrays_do_not_depend_on_how_bytes_arrive(void **state) {
    n2ce_ctx *ctx = ((const fixture *)*state)->ctx;
    static const size_t columns[] = {1, 0};
    unsigned char bytes[256];
    for (size_t chunk = 0; chunk < 64; chunk++) {
        const char *header =
            chunk % 2 ? HEADER("<f8", "False", "(3, 2)") : HEADER("<f8", "True", "(3, 2)");
        const size_t n = make_npy(bytes, 1, header, six, sizeof six);
        n2_input in = n2_input_memory(ctx, "bytes", bytes, n);
        n2_npy *npy;
        double x[6];
        size_t rows;
        in.chunk = chunk;
        assert_ok(ctx, n2_npy_open(ctx, &in, &npy));
        assert_ok(ctx, n2_npy_next(npy, columns, 2, x, 2, &rows));
        assert_int_equal(rows, 2);
        assert_ok(ctx, n2_npy_next(npy, columns, 2, x + 4, 2, &rows));
        assert_int_equal(rows, 1);
        for (size_t i = 0; i < 6; i++) {
            const size_t row = i / 2, column = columns[i % 2];
            assert_true(x[i] == six[chunk % 2 ? 2 * row + column : row + 3 * column]);
        }
        n2_npy_close(npy);
        n2_input_close(&in);
    }
}

/* What a header promises is not allocated before it comes. */
static void a_pipe_that_promises_too_much_costs_nothing(void **state) {
    const fixture *f = *state;
    unsigned char bytes[256];
    n2_table *t;
    for (int fortran = 0; fortran < 2; fortran++) {
        const char *header = fortran ? HEADER("<f8", "True", "(9999999999999, 4)")
                                     : HEADER("<f8", "False", "(9999999999999, 4)");
        const size_t n = make_npy(bytes, 1, header, six, sizeof six);
        assert_int_equal(read_pipe(f, bytes, n, &t), N2CE_EDATA);
        assert_message(f->ctx, "and 48 follow the header");
    }
}

/* Standard input from a descriptor, for as long as the test takes. */
static n2_table *read_standard_input(const fixture *f, int from) {
    n2_table *t;
    const int saved = dup(STDIN_FILENO);
    assert_true(dup2(from, STDIN_FILENO) >= 0);
    const n2ce_status status = n2_table_read(f->ctx, "-", NULL, &t);
    if (saved >= 0) {
        dup2(saved, STDIN_FILENO);
        close(saved);
    }
    close(from);
    assert_ok(f->ctx, status);
    return t;
}

static void a_minus_is_standard_input(void **state) {
    const fixture *f = *state;
    n2_table *t = read_standard_input(f, pipe_of("1,2\n3,4\n5,6\n", 12, false));
    wait(NULL);
    assert_values(t, 3, 2, six);
    n2_table_free(t);
    write_npy(f->path, HEADER("<f8", "False", "(3, 2)"), six, sizeof six);
    t = read_standard_input(f, open(f->path, O_RDONLY));
    assert_values(t, 3, 2, six);
    n2_table_free(t);
}

static void problems_of_standard_input_are_called_so(void **state) {
    const fixture *f = *state;
    n2_table *t;
    const int saved = dup(STDIN_FILENO), empty = open("/dev/null", O_RDONLY);
    assert_true(dup2(empty, STDIN_FILENO) >= 0);
    assert_int_equal(n2_table_read(f->ctx, "-", NULL, &t), N2CE_EDATA);
    assert_message(f->ctx, "standard input is empty");
    if (saved >= 0) {
        dup2(saved, STDIN_FILENO);
        close(saved);
    }
    close(empty);
}

static void reading_stops_when_asked(void **state) {
    const fixture *f = *state;
    n2_table *t;
    n2_reader *r;
    double x[2];
    size_t n;
    write_text(f->path, "1,2\n3,4\n");
    assert_ok(f->ctx, n2_reader_open(f->ctx, f->path, NULL, &r));
    n2ce_ctx_cancel(f->ctx);
    assert_int_equal(n2_reader_next(r, x, 1, &n), N2CE_ECANCELED);
    n2_reader_close(r);
    assert_int_equal(n2_table_read(f->ctx, f->path, NULL, &t), N2CE_ECANCELED);
    assert_null(t);
    const n2ce_matrix m = {six, N2CE_F64, 3, 2, 0, 0};
    assert_int_equal(n2_table_of_matrix(f->ctx, &m, "m", NULL, &t), N2CE_ECANCELED);
    n2_cancel_reset(f->ctx);
}

/* ---- memory ----------------------------------------------------------------------------- */

/* The most memory that reading a file of zeros takes, above what was there before. */
static double memory_to_read(const fixture *f, const char *header, size_t data_bytes) {
    enum { ROWS = 512, COLS = 16 };
    static double x[ROWS * COLS];
    n2_reader *r;
    size_t n, rows = 0;
    write_npy(f->path, header, NULL, 0);
    assert_int_equal(truncate(f->path, (off_t)(10 + strlen(header) + data_bytes)), 0);
    const double before = resident_bytes();
    double most = before;
    assert_ok(f->ctx, n2_reader_open(f->ctx, f->path, NULL, &r));
    while (assert_ok(f->ctx, n2_reader_next(r, x, ROWS, &n)), n > 0) {
        if (rows / 65536 < (rows + n) / 65536) most = fmax(most, resident_bytes());
        rows += n;
    }
    n2_reader_close(r);
    assert_int_equal(rows * COLS * 4, data_bytes);
    return most - before;
}

static void memory_does_not_grow_with_the_file(void **state) {
    const fixture *f = *state;
    const size_t bytes = (size_t)1 << 26;
    assert_true(memory_to_read(f, HEADER("<f4", "False", "(1048576, 16)"), bytes) < 20 << 20);
    assert_true(memory_to_read(f, HEADER("<f4", "True", "(1048576, 16)"), bytes) < 20 << 20);
}

/* ---- out of memory ---------------------------------------------------------------------- */

typedef n2ce_status work_fn(n2ce_ctx *ctx, const char *path);

/* Everything a table can need. */
static n2ce_status read_everything(n2ce_ctx *ctx, const char *path) {
    n2_levels *levels;
    n2_table *t = NULL;
    N2_TRY(n2_levels_new(ctx, &levels));
    const n2_table_options o = {.columns = "y,\"c\",0",
                                .categorical = "c",
                                .levels = levels,
                                .drop_missing = true,
                                .max_rows = 4,
                                .seed = 1};
    const n2ce_status status = n2_table_read(ctx, path, &o, &t);
    assert_true((status == N2CE_OK) == (t != NULL));
    n2_table_free(t);
    n2_levels_free(levels);
    return status;
}

static n2ce_status read_plainly(n2ce_ctx *ctx, const char *path) {
    n2_table *t;
    const n2ce_status status = n2_table_read(ctx, path, NULL, &t);
    assert_true((status == N2CE_OK) == (t != NULL));
    n2_table_free(t);
    return status;
}

/* A pipe: it has no place to map. */
static n2ce_status read_fifo(n2ce_ctx *ctx, const char *path) {
    char pipe_path[32];
    unsigned char bytes[256];
    size_t n = 0;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    const int end = pipe_of(bytes, n, false);
    snprintf(pipe_path, sizeof pipe_path, "/dev/fd/%d", end);
    const n2ce_status status = read_plainly(ctx, pipe_path);
    close(end);
    wait(NULL);
    return status;
}

static n2ce_status read_matrix(n2ce_ctx *ctx, const char *path) {
    (void)path;
    const n2ce_matrix m = {six, N2CE_F64, 3, 2, 0, 0};
    n2_table *t;
    const n2ce_status status = n2_table_of_matrix(ctx, &m, "m", NULL, &t);
    n2_table_free(t);
    return status;
}

static n2ce_status write_array(n2ce_ctx *ctx, const char *path) {
    return n2_npy_write(ctx, path, six, 6);
}

/* The levels that are refused are listed, which takes memory, too. */
static n2ce_status refuse_a_level(n2ce_ctx *ctx, const char *path) {
    (void)path;
    n2_levels *levels;
    size_t code;
    N2_TRY(n2_levels_new(ctx, &levels));
    n2ce_status status = n2_levels_add(levels, "c", "red", &code);
    n2_levels_freeze(levels);
    if (status == N2CE_OK) status = n2_levels_add(levels, "c", "blue", &code);
    n2_levels_free(levels);
    return status == N2CE_EDATA ? N2CE_OK : status;
}

/* Fails the n-th allocation, for every n, until none fails. */
static void fail_everywhere(const fixture *f, work_fn *work, bool and_after) {
    for (size_t n = 1;; n++) {
        failing_alloc memory = failing_alloc_new(n, and_after); /* 0 is the context itself */
        const n2ce_ctx_options options = failing_alloc_options(&memory, 1);
        n2ce_ctx *ctx;
        assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
        const n2ce_status status = work(ctx, f->path);
        if (status != N2CE_OK) {
            assert_int_equal(status, N2CE_ENOMEM);
            assert_message(ctx, "Out of memory");
        }
        assert_int_equal(memory.live, 1);
        n2ce_ctx_free(ctx);
        assert_int_equal(memory.live, 0);
        if (status != N2CE_OK) continue;
        assert_true(n > 2 || work == write_array);
        return;
    }
}

static void running_out_of_memory_leaks_nothing(void **state) {
    const fixture *f = *state;
    n2_text text = n2_text_new(f->ctx);
    n2_text_add(&text, "x,y,c,");
    for (int i = 0; i < 80; i++) n2_text_add(&text, "column %d%s", i, i < 79 ? "," : "\n");
    for (int row = 0; row < 40; row++)
        for (int i = 0; i < 83; i++) n2_text_add(&text, "%d%s", row + i, i < 82 ? "," : "\n");
    n2_text_add(&text, "1,2,\"");
    for (int i = 0; i < 600000; i++) n2_text_add_raw(&text, "l", 1); /* longer than the buffer */
    n2_text_add(&text, "\"");
    for (int i = 0; i < 80; i++) n2_text_add(&text, ",1");
    write_text(f->path, text.data);
    n2_text_free(&text);
    fail_everywhere(f, read_everything, false);
    fail_everywhere(f, read_everything, true);
    write_npy(f->path, HEADER("<f8", "True", "(3, 2)"), six, sizeof six);
    fail_everywhere(f, read_plainly, false);
    fail_everywhere(f, read_fifo, false);
    write_npy(f->path, HEADER("<f8", "False", "(3, 2)"), six, sizeof six);
    fail_everywhere(f, read_fifo, false);
    fail_everywhere(f, read_matrix, false);
    fail_everywhere(f, refuse_a_level, false);
    fail_everywhere(f, write_array, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- columns that hold categories ------------------------------------------------------- */

static void assert_categories(const fixture *f, const char *csv, const char *columns,
                              const char *given, const char *expected) {
    n2_text list = n2_text_new(f->ctx);
    char *found;
    write_text(f->path, csv);
    assert_int_equal(n2_text_columns(f->ctx, f->path, columns, given, &list), N2CE_OK);
    assert_int_equal(n2_text_take(&list, &found), N2CE_OK);
    assert_string_equal(found ? found : "", expected);
    n2_free(f->ctx, found);
    n2_text_free(&list);
}

static void columns_without_a_number_are_categories(void **state) {
    const fixture *f = *state;
    const char *mixed = "# note\na,b,\"c, \"\"d\"\"\",e\n1,red,x,2\n,blue,,oops\n";
    assert_categories(f, mixed, "", "", "\"b\",\"c, \"\"d\"\"\"");
    assert_categories(f, mixed, "", "a", "\"a\",\"b\",\"c, \"\"d\"\"\"");
    assert_categories(f, mixed, "a,b", "", "\"b\"");
    assert_categories(f, "1,red\n2,blue\n", "", "", "1");
    assert_categories(f, "a,b\n1,2\n", "", "", "");
    assert_categories(f, "a,b\n,NA\n", "", "", ""); /* nothing but missing values */
    assert_categories(f, "", "", "a", "a");
    unlink(f->path);
    n2_text none = n2_text_new(f->ctx);
    assert_int_equal(n2_text_columns(f->ctx, f->path, "", "x", &none), N2CE_OK);
    n2_text_free(&none);
    write_text(f->path, mixed);
    assert_int_equal(n2_text_columns(f->ctx, f->path, "", "zzz", &none), N2CE_EINVAL);
    n2_text_free(&none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(texts_are_numbers_missing_infinite_or_neither),
        TEST(decimals_are_rounded_to_the_nearest_double),
        TEST(halfway_cases_and_signed_zero_are_exact),
        TEST(the_decimal_point_is_a_point_in_every_locale),
        TEST(the_same_table_can_be_written_in_many_ways),
        TEST(columns_are_named_by_the_header_or_by_number),
        TEST(a_header_has_texts_and_no_numbers),
        TEST(what_is_wrong_with_a_value_is_said_with_its_place),
        TEST(texts_in_messages_are_short_and_harmless),
        TEST(what_is_wrong_with_a_file_is_said),
        TEST(bytes_that_are_no_text_are_refused),
        TEST(what_cannot_be_opened_is_an_io_error),
        TEST(rows_do_not_depend_on_how_bytes_arrive),
        TEST(a_long_row_is_read),
        TEST(a_row_without_end_is_refused),
        TEST(columns_without_a_number_are_categories),
        TEST(columns_are_names_numbers_and_ranges),
        TEST(columns_that_make_no_sense_are_refused),
        TEST(only_kept_columns_are_looked_at),
        TEST(rows_with_missing_values_can_be_dropped),
        TEST(levels_are_numbered_as_they_come),
        TEST(frozen_levels_refuse_what_they_do_not_know),
        TEST(categorical_columns_must_be_kept_and_need_levels),
        TEST(many_levels_are_found_again_and_too_many_refused),
        TEST(numbers_can_be_categories),
        TEST(a_subset_keeps_rows_whole_and_in_order),
        TEST(a_subset_is_uniform),
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
        TEST(a_reader_gives_the_rows_of_the_table),
        TEST(a_pipe_is_as_good_as_a_file),
        TEST(arrays_do_not_depend_on_how_bytes_arrive),
        TEST(a_pipe_that_promises_too_much_costs_nothing),
        TEST(a_minus_is_standard_input),
        TEST(problems_of_standard_input_are_called_so),
        TEST(reading_stops_when_asked),
        TEST(memory_does_not_grow_with_the_file),
        TEST(running_out_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
