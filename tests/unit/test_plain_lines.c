/* Lines of numbers that are read in one go have the numbers that fields have; what is odd is seen.
 */
#include "base/isa.h"
#include "base/numerics.h"
#include "base/random.h"
#include "base/text.h"
#include "io/csv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const size_t ALL[] = {1, 2, 3};
static const n2_plain_lines THREE = {',', 3, 3, ALL};

static bool look(const n2_plain_lines *p, const char *text, size_t *lines) {
    const size_t n = strlen(text), half = n / 2;
    n2_plain_sight once = {.as = p}, twice = {.as = p};
    size_t again;
    n2_plain_see(&once, text, n);
    n2_plain_see(&twice, text, half);
    n2_plain_see(&twice, text + half, n - half);
    const bool plain = n2_plain_seen(&once, lines);
    assert_true(n2_plain_seen(&twice, &again) == plain);
    assert_true(!plain || again == *lines);
    return plain;
}

static void plain_lines_are_counted(void **state) {
    (void)state;
    size_t n;
    assert_true(look(&THREE, "1,2,3\n-4.5,+.5,6e-7\r\n7.,8E9,-0", &n));
    assert_int_equal(n, 3);
    assert_true(look(&THREE, "", &n));
    assert_int_equal(n, 0);
    char many[6 * 300 + 1] = "";
    for (int i = 0; i < 300; i++) strcat(many, "1,2,3\n");
    assert_true(look(&THREE, many, &n));
    assert_int_equal(n, 300);
}

/* Wherever it is in a block of bytes. */
static void what_is_odd_is_seen(void **state) {
    (void)state;
    static const char *const odd[] = {
        "1,2\n",     "1,2,3,4\n",   "1,,3\n",    "1,2,\n",  ",2,3\n",   "\n",
        "1,2,x\n",   "1,\"2\",3\n", "1, 2,3\n",  "1,-,3\n", "1,2,.\n",  "+,2,3\n",
        "1,2,NaN\n", "1,2,inf\n",   "1,2,3\n\n", "\r\n",    "1,2,3#\n", "1,2/3,4\n"};
    char text[400];
    size_t n;
    for (size_t k = 0; k < sizeof odd / sizeof odd[0]; k++)
        for (int before = 0; before < 50; before++) {
            text[0] = '\0';
            for (int i = 0; i < before; i++) strcat(text, "1,2,3\n");
            strcat(text, odd[k]);
            assert_false(look(&THREE, text, &n));
        }
    static const char *const open[] = {"1,2,", "1,2,-", "1,2,.", "1,2,\r", "1,2,-\r", "1,2"};
    for (size_t k = 0; k < sizeof open / sizeof open[0]; k++) {
        assert_false(look(&THREE, open[k], &n));
        snprintf(text, sizeof text, "1,2,3\n%s", open[k]);
        assert_false(look(&THREE, text, &n));
    }
}

static void check_number(const char *text) {
    static const size_t place[] = {1};
    const n2_plain_lines one = {',', 1, 1, place};
    double x = N2_NAN, y = N2_NAN;
    char line[80], padded[100];
    snprintf(line, sizeof line, "%s\n", text);
    snprintf(padded, sizeof padded, "%s\n000000000000", text); /* with room to look ahead */
    const n2_value kind = n2_value_parse(text, strlen(text), &y);
    if (n2_plain_read(&one, line, line + strlen(line), &x)) {
        assert_int_equal(kind, N2_VALUE_NUMBER);
        assert_memory_equal(&x, &y, sizeof x);
    }
    if (n2_plain_read(&one, padded, padded + strlen(padded), &x)) {
        assert_int_equal(kind, N2_VALUE_NUMBER);
        assert_memory_equal(&x, &y, sizeof x);
    }
}

static void numbers_are_those_of_fields(void **state) {
    (void)state;
    static const char *const some[] = {"0",
                                       "-0",
                                       "1.",
                                       ".5",
                                       "-.5",
                                       "+7",
                                       "123456789",
                                       "12345678",
                                       "1234567",
                                       "1e5",
                                       "1E-5",
                                       "1.5e+3",
                                       "1e400",
                                       "1e-400",
                                       "9999999999999999999",
                                       "99999999999999999999",
                                       "0.1",
                                       "1.7976931348623157e308",
                                       "2.2250738585072014e-308",
                                       "4.9e-324",
                                       "9007199254740993",
                                       "1e",
                                       "1e+",
                                       "1.2.3",
                                       "--1",
                                       "1-2",
                                       "",
                                       "-",
                                       ".",
                                       "e5",
                                       "00000000000000000000001",
                                       "0.30000000000000004",
                                       "123456.789012345",
                                       "1e0005",
                                       "3.14159265358979323846"};
    const n2_c_locale scope = n2_c_locale_enter();
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) check_number(some[i]);
    for (uint64_t i = 0; i < 200000; i++) {
        const n2_stream s = {9, 4, 0};
        char text[64];
        const int digits = (int)n2_random_below(s, 3 * i, 18);
        const double size = pow(10, (double)n2_random_below(s, 3 * i + 1, 40) - 20);
        const double x = ((double)n2_random_below(s, 3 * i + 2, SIZE_MAX) / 0x1p63 - 1) * size;
        snprintf(text, sizeof text, i % 3 ? "%.*g" : "%.*f", digits, x);
        if (strlen(text) < 60) check_number(text);
    }
    n2_c_locale_leave(scope);
}

/* ---- many lines ---- */

N2_ISA_TABLE(n2_read_rows_fn, n2_read_rows);
N2_ISA_TABLE(n2_skip_lines_fn, n2_skip_lines);

enum { COLS = 7, LINES = 300, ROOM = 1 << 16 };

static uint64_t dice;
static size_t roll(size_t n) { return n2_random_below((n2_stream){11, 4, 0}, dice++, n); }

/* Numbers as they are written here and there, and once in a while something else. */
static size_t put_field(char *to, size_t rarity) {
    static const char *const odd[] = {"",   "-",     ".",  "x",   "1.2.3",
                                      "1e", "\"1\"", " 1", "nan", "1-2"};
    static const char *const formats[] = {"%.0f", "%.1f", "%.6f",  "%.9f",  "%+.3f", "%.17g",
                                          "%.6e", "%g",   "%.18e", "%.15g", "%.25f", "%.12g"};
    const double x = ((double)roll((size_t)1 << 53) / 0x1p52 - 1) * pow(10, (double)roll(8) - 4);
    if (roll(rarity) == 0) return (size_t)sprintf(to, "%s", odd[roll(sizeof odd / sizeof odd[0])]);
    return (size_t)sprintf(to, formats[roll(sizeof formats / sizeof formats[0])], x);
}

static size_t put_lines(char *text, size_t lines, size_t rarity) {
    size_t n = 0;
    for (size_t i = 0; i < lines; i++) {
        const size_t fields = roll(rarity) ? COLS : COLS - 1 + 2 * roll(2);
        for (size_t f = 0; f < fields; f++) {
            n += put_field(text + n, rarity);
            text[n++] = ',';
        }
        n += (size_t)sprintf(text + n - 1, roll(3) ? "\n" : "\r\n") - 1;
    }
    return n;
}

/* The same lines one by one, which n2_value_parse agrees with. */
static size_t one_by_one(const n2_plain_lines *l, const char *text, size_t n, size_t most,
                         double *x, size_t *used) {
    size_t rows = 0;
    const char *at = text, *end = text + n;
    while (end > text && end[-1] != '\n') end--;
    for (const char *next; rows < most && at < end; rows++, at = next)
        if (!(next = n2_plain_read(l, at, end, x + rows * l->cols))) break;
    *used = (size_t)(at - text);
    return rows;
}

static void check_lines(n2_read_rows_fn *read, const n2_plain_lines *l, const char *text, size_t n,
                        size_t most) {
    static double x[LINES * COLS], y[LINES * COLS];
    size_t used, wanted;
    memset(x, 0, sizeof x);
    memset(y, 0, sizeof y);
    const size_t rows = one_by_one(l, text, n, most, y, &wanted);
    assert_int_equal(read(l, text, n, most, x, &used), rows);
    assert_int_equal(used, wanted);
    assert_memory_equal(x, y, rows * l->cols * sizeof *x);
}

static bool runs_here(int isa) { return isa <= (int)n2_isa_current(); }

static void lines_are_read_together(void **state) {
    (void)state;
    static const size_t all[] = {1, 2, 3, 4, 5, 6, 7}, some[] = {0, 3, 0, 1, 2, 0, 0};
    const n2_plain_lines lines[] = {{',', COLS, COLS, all}, {',', COLS, 3, some}};
    static char text[ROOM + 64];
    const n2_c_locale scope = n2_c_locale_enter();
    for (int round = 0; round < 400; round++) {
        const size_t n = put_lines(text, 1 + roll(LINES / 2), round % 4 ? 100000 : 500);
        assert_true(n < ROOM);
        const size_t from = roll(n), most = roll(2) ? LINES : 1 + roll(20);
        const char *line = n2_plain_skip(text + from, text + n, 1);
        for (int isa = 0; isa < N2_ISA_COUNT; isa++) {
            if (!runs_here(isa)) continue;
            for (size_t k = 0; k < 2; k++) {
                check_lines(n2_read_rows_table[isa], &lines[k], text, n - roll(3), most);
                check_lines(n2_read_rows_table[isa], &lines[k], line, (size_t)(text + n - line),
                            most);
            }
        }
    }
    n2_c_locale_leave(scope);
}

/* Few fields and very many. */
static void lines_of_any_length_are_read(void **state) {
    (void)state;
    static size_t place[N2_PLAIN_FIELDS_MAX + 9];
    static double x[3 * (N2_PLAIN_FIELDS_MAX + 9)];
    static char text[16 * (N2_PLAIN_FIELDS_MAX + 9)];
    for (size_t f = 0; f < N2_PLAIN_FIELDS_MAX + 9; f++) place[f] = f + 1;
    const size_t widths[] = {1, 2, 63, 64, 65, 511, 513, 2047, 2048, 2049, 2056};
    for (size_t k = 0; k < sizeof widths / sizeof widths[0]; k++) {
        const size_t cols = widths[k];
        const n2_plain_lines l = {',', cols, cols, place};
        size_t n = 0;
        for (size_t i = 0; i < 3 * cols; i++)
            n += (size_t)sprintf(text + n, "%zu%c", i % 1000, (i + 1) % cols ? ',' : '\n');
        const char *at = text;
        assert_int_equal(n2_plain_rows(&l, &at, text + n, 9, x), 3);
        assert_ptr_equal(at, text + n);
        for (size_t i = 0; i < 3 * cols; i++) assert_true(x[i] == (double)(i % 1000));
    }
}

/* Seconds of a processor for many looks at n bytes of lines that are no numbers. */
static double look_in_vain(const char *text, size_t n) {
    static const size_t place[] = {1};
    const n2_plain_lines one = {',', 1, 1, place};
    double x[600];
    const clock_t start = clock();
    for (int i = 0; i < 100000; i++) {
        const char *at = text;
        assert_int_equal(n2_plain_rows(&one, &at, text + n, 600, x), 0);
    }
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/* Who reads such lines asks for each of them again: what is behind it is not looked at each time.
 */
static void little_is_looked_at_in_vain(void **state) {
    (void)state;
    enum { SOME = 8, MANY = 600 };
    static char text[10 * MANY + 1];
    for (int i = 0; i < MANY; i++) strcat(text, " 1.23456\n");
    const double some = look_in_vain(text, 9 * SOME), many = look_in_vain(text, 9 * MANY);
    assert_true(many < 8 * some + 0.02);
}

static void lines_are_skipped(void **state) {
    (void)state;
    static char text[5000];
    size_t place[600], lines = 0;
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = roll(10) ? 'x' : '\n';
        if (text[i] == '\n' && lines < 600) place[lines++] = i + 1;
    }
    for (int isa = 0; isa < N2_ISA_COUNT; isa++) {
        if (!runs_here(isa)) continue;
        assert_int_equal(n2_skip_lines_table[isa](text, sizeof text, 0), 0);
        for (size_t i = 0; i < lines; i++)
            assert_int_equal(n2_skip_lines_table[isa](text, sizeof text, i + 1), place[i]);
        assert_int_equal(n2_skip_lines_table[isa](text, sizeof text, 5000), sizeof text);
        assert_int_equal(n2_skip_lines_table[isa](text, place[4], 6), place[4]);
    }
}

static void columns_are_put_in_their_places(void **state) {
    (void)state;
    static const size_t place[] = {2, 0, 1};
    const n2_plain_lines two = {';', 3, 2, place};
    const char *text = "1;some text;3\r\n4;;6", *end = text + strlen(text);
    double x[2];
    const char *next = n2_plain_read(&two, text, end, x);
    assert_non_null(next);
    assert_true(x[0] == 3 && x[1] == 1);
    assert_ptr_equal(next, n2_plain_skip(text, end, 1));
    assert_ptr_equal(n2_plain_read(&two, next, end, x), end);
    assert_true(x[0] == 6 && x[1] == 4);
    assert_ptr_equal(n2_plain_skip(text, end, 5), end);
    const char *quoted = "1;\"a;b\";3\n", *open = "1;2", *more = "1;2;3;4\n";
    assert_null(n2_plain_read(&two, quoted, quoted + strlen(quoted), x));
    assert_null(n2_plain_read(&two, open, open + strlen(open), x));
    assert_null(n2_plain_read(&two, more, more + strlen(more), x));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_lines_are_counted),
        cmocka_unit_test(what_is_odd_is_seen),
        cmocka_unit_test(numbers_are_those_of_fields),
        cmocka_unit_test(columns_are_put_in_their_places),
        cmocka_unit_test(lines_are_read_together),
        cmocka_unit_test(lines_of_any_length_are_read),
        cmocka_unit_test(little_is_looked_at_in_vain),
        cmocka_unit_test(lines_are_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
