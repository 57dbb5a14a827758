/* Doubles as decimals and decimals as doubles, both exactly rounded.
 *
 * Independent of the locale, and of how printf and strtod are made. */
#ifndef N2_DECIMAL_H
#define N2_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct n2_decimal {
    uint64_t digits;
    int exponent; /* the number is digits 10^exponent */
} n2_decimal;

/* The decimal of the fewest digits that is nearer to |value| than to any other
 * double, so that it reads back the same; of several the nearest one, and of two
 * that are as near the even one. No zeros at the end. The value is finite and not 0. */
n2_decimal n2_decimal_shortest(double value);

/* The double nearest to a decimal, of two that are as near the even one. False, and
 * nothing in *value, where that would take more than a few products of 64 bits: very
 * close to the middle between two doubles, or beyond the normal doubles
 * (2.2e-308 to 1.8e308). strtod knows then. */
bool n2_decimal_nearest(n2_decimal d, double *value);

#endif
