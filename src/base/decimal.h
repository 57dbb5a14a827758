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

/* The same for digits and a power of ten that both are doubles, as they mostly are: one operation
 * rounds once (W. D. Clinger, 1990). */
static inline bool n2_decimal_easy(n2_decimal d, double *value) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (d.digits > (uint64_t)1 << 53 || d.exponent < -22 || d.exponent > 22) return false;
    const double digits = (double)(int64_t)d.digits; /* as unsigned it takes longer */
    *value = d.exponent < 0 ? digits / tens[-d.exponent] : digits * tens[d.exponent];
    return true;
}

#endif
