/* Facts about decimals: printf and strtod, which are exact and slow, say the same. */
#include "close.h"

#include "base/decimal.h"
#include "base/numerics.h"
#include "base/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next_random(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 29;
}

static double of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double by_strtod(n2_decimal d) {
    char text[40];
    snprintf(text, sizeof text, "%llue%d", (unsigned long long)d.digits, d.exponent);
    return strtod(text, NULL);
}

/* ---- the shortest decimal ----------------------------------------------------------------- */

/* printf's decimal of so many digits. */
static n2_decimal printed(double value, int digits) {
    char text[40], *end;
    snprintf(text, sizeof text, "%.*e", digits - 1, value);
    n2_decimal d = {0};
    for (end = text; *end != 'e'; end++)
        if (*end != '.') d.digits = d.digits * 10 + (uint64_t)(*end - '0');
    d.exponent = atoi(end + 1) - (digits - 1);
    return d;
}

/* The first of printf's that reads back. */
static n2_decimal shortest_printed(double value) {
    for (int digits = 1; digits < 17; digits++) {
        const n2_decimal d = printed(value, digits);
        if (by_strtod(d) == value) return d;
    }
    return printed(value, 17);
}

static bool is_power_of_two(double value) {
    int exponent;
    return frexp(value, &exponent) == 0.5;
}

/* printf gives the nearest decimal of so many digits. At powers of two, whose neighbours below are
 * closer, that may be another double while the second nearest, above, is not: then that is it. */
static void assert_shortest(double value) {
    const n2_decimal d = n2_decimal_shortest(value), p = shortest_printed(value);
    if (d.digits == p.digits && d.exponent == p.exponent) return;
    if (is_power_of_two(value) && by_strtod(d) == value && d.digits < p.digits) return;
    fail_msg("%.17g is %llue%d instead of %llue%d", value, (unsigned long long)d.digits, d.exponent,
             (unsigned long long)p.digits, p.exponent);
}

static void assert_shortest_around(double value) {
    assert_shortest(value);
    if (value < DBL_MAX) assert_shortest(nextafter(value, N2_INFINITY));
    if (value > of_bits(1)) assert_shortest(nextafter(value, 0));
}

static void shortest_decimals_are_what_printf_finds(void **state) {
    (void)state;
    for (int i = 0; i < 50000; i++) {
        const double value = of_bits(next_random() >> 1);
        if (isfinite(value)) assert_shortest(value);
        assert_shortest(of_bits((next_random() >> 12 >> next_random() % 52) + 1)); /* subnormal */
        assert_shortest((double)(next_random() >> next_random() % 64) + 1);
        assert_shortest((double)(next_random() % 1000000 + 1) / 1000);
    }
}

static void powers_and_their_neighbours_are_short(void **state) {
    (void)state;
    for (int n = -1074; n < 1024; n++) assert_shortest_around(ldexp(1, n));
    for (int n = -323; n <= 308; n++) assert_shortest_around(by_strtod((n2_decimal){1, n}));
    assert_shortest_around(DBL_MAX);
    assert_shortest_around(DBL_MIN);
}

/* Of all doubles these come closest to being a whole number of the units they are counted in,
 * or to being halfway, without being that. */
static void products_next_to_whole_numbers_are_not_mistaken(void **state) {
    (void)state;
    static const double hard[] = {0x1.3de005bd620dfp+216, 0x1.7c0747bd76fa1p-814,
                                  0x1.491daad0ba280p+531, 0x1.9b651584e8b20p+534,
                                  0x1.011f2d73116f4p+538, 0x1.4166f8cfd5cb1p+541,
                                  0x1.b7738011e75fep-54,  0x1.a999ddec72acap+600};
    for (size_t i = 0; i < COUNT_OF(hard); i++) assert_shortest_around(hard[i]);
}

/* The sign is not looked at; below a power of two there is a shorter one than printf's. */
static void some_decimals_are_known(void **state) {
    (void)state;
    static const struct {
        double value;
        n2_decimal d;
    } rows[] = {{0.1, {1, -1}},
                {-0.25, {25, -2}},
                {1e23, {1, 23}},
                {5e-324, {5, -324}},
                {DBL_MAX, {17976931348623157, 292}},
                {0x1p-24, {5960464477539063, -23}}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const n2_decimal d = n2_decimal_shortest(rows[i].value);
        assert_true(d.digits == rows[i].d.digits && d.exponent == rows[i].d.exponent);
    }
}

/* ---- the nearest double ------------------------------------------------------------------- */

/* The same bits as strtod's if there is an answer; returns whether there is. */
static bool assert_nearest(n2_decimal d) {
    const double expected = by_strtod(d);
    double value = -1;
    const bool sure = n2_decimal_nearest(d, &value);
    if (sure ? memcmp(&value, &expected, sizeof value) == 0 : value == -1) return sure;
    fail_msg("%llue%d reads as %.17g, not %.17g", (unsigned long long)d.digits, d.exponent, value,
             expected);
    return false;
}

static bool is_normal_range(double value) { return value >= DBL_MIN && value < DBL_MAX; }

/* A middle between doubles is m 2^k with an odd m of 54 bits: either 5^exponent divides m, or
 * 5^-exponent m divides the digits, which have 64 bits. */
static bool may_be_halfway(n2_decimal d) { return d.exponent >= -4 && d.exponent <= 23; }

/* Digits of every length with every exponent: there is an answer for all in the range. */
static void nearest_doubles_are_what_strtod_finds(void **state) {
    (void)state;
    for (int i = 0; i < 400000; i++) {
        const n2_decimal d = {next_random() >> next_random() % 64, i % 700 - 350};
        assert_true(assert_nearest(d) || may_be_halfway(d) || !is_normal_range(by_strtod(d)));
    }
}

/* What programs write with 15, 16, 17 or 19 digits comes back, without strtod. */
static void printed_doubles_come_back(void **state) {
    (void)state;
    static const int lengths[] = {15, 16, 17, 19};
    for (int i = 0; i < 100000; i++) {
        const double value = of_bits(next_random() >> 1);
        if (!is_normal_range(value)) continue;
        const n2_decimal d = printed(value, lengths[i % 4]), s = n2_decimal_shortest(value);
        assert_true(assert_nearest(d) || may_be_halfway(d));
        assert_true(assert_nearest(s) || may_be_halfway(s));
    }
}

/* The middle between two doubles, to 19 digits, and what is beside it. */
static void halfway_cases_are_exact_or_left_to_strtod(void **state) {
    (void)state;
    for (int i = 0; i < 50000; i++) {
        const double value = i % 2 ? of_bits(next_random() >> 1) : (double)(next_random() >> 6);
        if (!is_normal_range(value)) continue;
        const long double middle =
            ((long double)value + (long double)nextafter(value, N2_INFINITY)) / 2;
        char text[48], digits[24];
        snprintf(text, sizeof text, "%.18Le", middle);
        snprintf(digits, sizeof digits, "%c%.18s", text[0], text + 2);
        n2_decimal d = {strtoull(digits, NULL, 10) - 2, atoi(strchr(text, 'e') + 1) - 18};
        for (int k = 0; k < 5; k++, d.digits++) assert_nearest(d);
        for (d.digits /= 10; d.digits % 10 == 0; d.digits /= 10) d.exponent++;
        d.exponent++;
        assert_nearest(d);
    }
    assert_false(assert_nearest((n2_decimal){9007199254740993, 0}));
    assert_false(assert_nearest((n2_decimal){90071992547409930, -1}));
}

static void the_ends_of_the_range_are_right(void **state) {
    (void)state;
    double value = -1;
    assert_true(n2_decimal_nearest((n2_decimal){0, 99999}, &value));
    assert_true(value == 0 && !signbit(value));
    assert_true(assert_nearest((n2_decimal){17976931348623157, 292}));
    assert_true(assert_nearest((n2_decimal){1797693134862315807, 290}));
    assert_true(assert_nearest((n2_decimal){1797693134862315808, 290})); /* infinite */
    assert_true(assert_nearest((n2_decimal){22250738585072014, -324}));
    static const n2_decimal beyond[] = {
        {2, 308},  {1, 325},    {1, 100000}, {22250738585072009, -324},
        {5, -324}, {9, -326},   {1, -327},   {UINT64_MAX, -327},
        {1, -400}, {1, -100000}};
    for (size_t i = 0; i < COUNT_OF(beyond); i++) assert_false(assert_nearest(beyond[i]));
}

/* ---- threads ------------------------------------------------------------------------------ */

static void format_one(void *arg, size_t item, int worker) {
    (void)worker;
    n2_decimal *found = arg;
    found[item] = n2_decimal_shortest(1 / ((double)item + 3));
}

/* The first in the program to need the table, all at once. */
static void threads_may_begin_together(void **state) {
    (void)state;
    n2_decimal found[64];
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = 7;
    n2ce_ctx *ctx = NULL;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    assert_int_equal(n2_parallel_for(ctx, COUNT_OF(found), format_one, found), N2CE_OK);
    n2ce_ctx_free(ctx);
    for (size_t i = 0; i < COUNT_OF(found); i++)
        assert_true(by_strtod(found[i]) == 1 / ((double)i + 3));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_may_begin_together),
        cmocka_unit_test(shortest_decimals_are_what_printf_finds),
        cmocka_unit_test(powers_and_their_neighbours_are_short),
        cmocka_unit_test(products_next_to_whole_numbers_are_not_mistaken),
        cmocka_unit_test(some_decimals_are_known),
        cmocka_unit_test(nearest_doubles_are_what_strtod_finds),
        cmocka_unit_test(printed_doubles_come_back),
        cmocka_unit_test(halfway_cases_are_exact_or_left_to_strtod),
        cmocka_unit_test(the_ends_of_the_range_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
