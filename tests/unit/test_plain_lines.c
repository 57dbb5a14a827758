/* Lines of numbers that are read in one go have the numbers that fields have; what is odd is seen.
 */
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
    assert_false(look(&THREE, "1,2,", &n));
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
