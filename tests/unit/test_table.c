/* Facts about samples in files and in memory: what CSV and NPY say is what is read, what cannot be
 * used is named with its place, and memory does not grow with the file. */
#include "tables.h"

#include "base/text.h"
#include "io/csv.h"
#include "io/npy.h"

#include <locale.h>
#include <sys/stat.h>

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

/* Missing values that are kept: a number is NaN, a category has a level of its own, and where
 * levels are frozen an unknown one is NaN. What is infinite, or a text, is refused as ever. */
static void missing_values_can_be_kept(void **state) {
    const fixture *f = *state;
    n2_table_options o = {.levels = f->levels, .find_texts = true, .keep_missing = true};
    n2_table *t = read_text(f, "a,b\n1,red\n,NA\n3,red\n?,\n", &o);
    assert_int_equal(t->rows, 4);
    assert_int_equal(t->dropped, 0);
    assert_true(t->x[0] == 1 && isnan(t->x[2]) && t->x[4] == 3 && isnan(t->x[6]));
    assert_true(t->x[1] == 0 && t->x[3] == 1 && t->x[5] == 0 && t->x[7] == 2);
    assert_string_equal(n2_levels_text(f->levels, "b", 1), "NA");
    n2_table_free(t);
    n2_levels_freeze(f->levels);
    o.categorical = "b";
    t = read_text(f, "a,b\n1,blue\n2,NA\n", &o);
    assert_true(isnan(t->x[1]) && t->x[3] == 1);
    n2_table_free(t);
    assert_refused_as(f, "a,b\ninf,red\n", &o, N2CE_EDATA, "\"inf\" is infinite");
}

/* A column holds what its first value is that is there; missing ones before it are a level then, as
 * those behind it. */
static void a_missing_value_does_not_tell_what_a_column_holds(void **state) {
    const fixture *f = *state;
    static const size_t part_bytes[] = {0, 1, 16};
    for (size_t i = 0; i < sizeof part_bytes / sizeof part_bytes[0]; i++) {
        n2_levels *levels;
        assert_int_equal(n2_levels_new(f->ctx, &levels), N2CE_OK);
        const n2_table_options o = {
            .levels = levels, .find_texts = true, .keep_missing = true, .csv_part = part_bytes[i]};
        n2_table *t = read_text(f, "a,b,c,d\n?,,1,\n,?,2,\nNA,x,3,\nu,y,,NA\n?,,5,\n", &o);
        const bool categorical[] = {true, true, false, false};
        assert_memory_equal(t->categorical, categorical, sizeof categorical);
        static const char *const texts[5][2] = {
            {"?", ""}, {"?", ""}, {"?", "x"}, {"u", "y"}, {"?", ""}};
        for (size_t row = 0; row < 5; row++)
            for (size_t c = 0; c < 2; c++) {
                const char *text = n2_levels_text(levels, t->names[c], (size_t)t->x[row * 4 + c]);
                assert_string_equal(text, texts[row][c]);
            }
        assert_true(t->x[2] == 1 && isnan(t->x[3 * 4 + 2]) && isnan(t->x[3 * 4 + 3]));
        n2_table_free(t);
        assert_refused_as(f, "a,b\n,1\n2,2\nx,3\n", &o, N2CE_EDATA, "line 4|\"x\" is not a number");
        assert_refused_as(f, "e,b\n,1\nx,2\n3,3\n", &o, N2CE_EDATA, "line 3|\"x\" is not a number");
        n2_levels_free(levels);
    }
}

/* The number of each row of a random subset, in the order of the file. */
static void a_subset_knows_where_its_rows_were(void **state) {
    const fixture *f = *state;
    const n2_table_options o = {.max_rows = 4, .seed = 3};
    n2_table *t = read_text(f, "a\n0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", &o);
    assert_int_equal(t->rows, 4);
    for (size_t i = 0; i < 4; i++) assert_true(t->x[i] == (double)t->origin[i]);
    n2_table_free(t);
    t = read_text(f, "a\n0\n1\n", &o);
    assert_null(t->origin);
    n2_table_free(t);
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
/* ---- columns that hold categories ------------------------------------------------------- */

/* Which columns of a CSV file hold categories is found while it is read, whatever way its bytes
 * arrive and on however many threads. */
static void assert_categories(const fixture *f, const char *csv, const char *columns,
                              const char *given, const char *expected) {
    static const size_t part_bytes[] = {0, 1, 16};
    for (size_t i = 0; i < sizeof part_bytes / sizeof part_bytes[0]; i++) {
        n2_levels *levels;
        assert_int_equal(n2_levels_new(f->ctx, &levels), N2CE_OK);
        n2_table *t = read_text(f, csv,
                                &(n2_table_options){.columns = columns,
                                                    .categorical = given,
                                                    .find_texts = true,
                                                    .levels = levels,
                                                    .drop_missing = true,
                                                    .csv_part = part_bytes[i]});
        char found[200] = "";
        for (size_t c = 0; c < t->cols; c++) {
            assert_int_equal(t->categorical[c], n2_levels_count(levels, t->names[c]) > 0);
            if (!t->categorical[c]) continue;
            strcat(found, *found ? "|" : "");
            strcat(found, t->names[c]);
        }
        assert_string_equal(found, expected);
        n2_table_free(t);
        n2_levels_free(levels);
    }
}

static void columns_without_a_number_are_categories(void **state) {
    const fixture *f = *state;
    const char *mixed = "# note\na,b,\"c, \"\"d\"\"\",e\n1,red,x,2\n,blue,,oops\n";
    assert_categories(f, mixed, "", "", "b|c, \"d\"");
    assert_categories(f, mixed, "", "a", "a|b|c, \"d\"");
    assert_categories(f, mixed, "a,b", "", "b");
    assert_categories(f, "1,red\n2,blue\n", "", "", "1");
    assert_categories(f, "a,b\n1,2\n", "", "", "");
    assert_categories(f, "a,b\n,6\nNA,x\n1,red\n2,blue\n3,red\n,5\n", "", "", "b");
}

/* A row that is left out tells nothing; all others must have texts, or numbers, in a column. */
static void a_column_with_texts_and_numbers_is_refused_where_it_has_a_text(void **state) {
    const fixture *f = *state;
    const n2_table_options o = {.find_texts = true, .levels = f->levels, .csv_part = 1};
    assert_refused_as(f, "a,b\n1,2\n3,x\n", &o, N2CE_EDATA, "line 3, column 2 (\"b\"): \"x\" is");
    assert_refused_as(f, "a,b\n1,x\n3,y\n5,z\n7,8\n9,9\n", &o, N2CE_EDATA,
                      "line 2, column 2 (\"b\"): \"x\" is not a number");
    assert_refused_as(f, "a,b\n1,x\n3,inf\n", &o, N2CE_EDATA, "line 2|\"x\" is not a number");
    assert_refused_as(f, "a,b\n,x\n3,y\n", &o, N2CE_EDATA, "line 2, column 1|is missing");
    assert_refused_as(f, "a,b\n,NA\n", &o, N2CE_EDATA, "line 2|is missing");
    assert_refused_as(f, "", &o, N2CE_EDATA, "is empty");
    const n2_table_options then = {
        .columns = "a", .then = "b", .find_texts = true, .levels = f->levels};
    assert_refused_as(f, "a,b\nred,high\n", &then, N2CE_EDATA, "\"high\" is not a number");
    const n2_table_options unknown = {
        .categorical = "zzz", .find_texts = true, .levels = f->levels};
    assert_refused_as(f, "a,b\n1,2\n", &unknown, N2CE_EINVAL, "--categorical|zzz");
    const n2_table_options without = {.find_texts = true};
    assert_refused_as(f, "a,b\n1,2\n", &without, N2CE_EINVAL, "need levels");
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
        TEST(a_column_with_texts_and_numbers_is_refused_where_it_has_a_text),
        TEST(columns_are_names_numbers_and_ranges),
        TEST(columns_that_make_no_sense_are_refused),
        TEST(only_kept_columns_are_looked_at),
        TEST(rows_with_missing_values_can_be_dropped),
        TEST(missing_values_can_be_kept),
        TEST(a_missing_value_does_not_tell_what_a_column_holds),
        TEST(a_subset_knows_where_its_rows_were),
        TEST(levels_are_numbered_as_they_come),
        TEST(frozen_levels_refuse_what_they_do_not_know),
        TEST(categorical_columns_must_be_kept_and_need_levels),
        TEST(many_levels_are_found_again_and_too_many_refused),
        TEST(numbers_can_be_categories),
        TEST(a_subset_keeps_rows_whole_and_in_order),
        TEST(a_subset_is_uniform),
    };
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
