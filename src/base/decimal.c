/* Both ways need products with powers of ten, of which a table has the leading 128 bits. It is
 * made at first use, exactly: that takes less than its text would, and 0.1 ms.
 *
 * Shortest decimals are found in the manner of Schubfach (R. Giulietti, 2020), nearest doubles in
 * that of Eisel and Lemire (D. Lemire, Software: Practice and Experience 51, 2021). */
#include "decimal.h"

#include <pthread.h>
#include <string.h>

__extension__ typedef unsigned __int128 uint128;

/* ---- powers of ten ------------------------------------------------------------------------ */

/* All that shortest decimals of doubles and normal doubles of 64-bit digits need. */
enum { LOWEST = -326, HIGHEST = 324 };

/* The leading bits of a power of ten, cut off: it is (high 2^64 + low + less than 1) 2^exponent,
 * with the highest bit set. */
typedef struct power {
    uint64_t high, low;
    int exponent;
} power;

static power powers[HIGHEST - LOWEST + 1];

enum { LIMBS = 38 }; /* of 32 bits, the lowest first: room for 10^324 2^128, and 2^1215 */

static void times_ten(uint32_t x[LIMBS]) {
    uint64_t carry = 0;
    for (int i = 0; i < LIMBS; i++) {
        carry += (uint64_t)x[i] * 10;
        x[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

/* What is cut off never matters: cut tenths of cut tenths are cut hundredths. */
static void tenth(uint32_t x[LIMBS]) {
    uint64_t rest = 0;
    for (int i = LIMBS; i-- > 0;) {
        rest = rest << 32 | x[i];
        x[i] = (uint32_t)(rest / 10);
        rest %= 10;
    }
}

/* Of x 2^-scale; x is at least 2^128. */
static power leading_bits(const uint32_t x[LIMBS], int scale) {
    int top = LIMBS - 1;
    while (x[top] == 0) top--;
    const int zeros = __builtin_clz(x[top]);
    uint128 bits = 0;
    for (int i = 0; i < 4; i++) bits = bits << 32 | x[top - i];
    bits = bits << zeros | (uint64_t)x[top - 4] << zeros >> 32;
    return (power){(uint64_t)(bits >> 64), (uint64_t)bits, 32 * (top - 3) - zeros - scale};
}

static void make_powers(void) {
    enum { UP = 128, DOWN = 32 * LIMBS - 1 };
    uint32_t up[LIMBS] = {[UP / 32] = 1}, down[LIMBS] = {[DOWN / 32] = 1u << DOWN % 32};
    for (int n = 0; n <= HIGHEST; n++, times_ten(up)) powers[n - LOWEST] = leading_bits(up, UP);
    for (int n = -1; n >= LOWEST; n--) {
        tenth(down);
        powers[n - LOWEST] = leading_bits(down, DOWN);
    }
}

static const power *power_of_ten(int n) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_powers);
    return &powers[n - LOWEST];
}

/* x 10^n 2^-(64 + exponent), or less by less than 2. */
static uint128 times_power(uint64_t x, const power *p) {
    return (uint128)x * p->high + (uint64_t)((uint128)x * p->low >> 64);
}

/* ---- the shortest decimal ----------------------------------------------------------------- */

/* A double's neighbourhood, all of which reads back as that double: from low/4 to high/4 in units
 * of 10^exponent, with the double at value/4. All three are rounded to odd: what is behind the
 * point is cut off, and the last bit set if that was not 0. So comparisons with even numbers are
 * exact. The ends belong to it if the double is even; if not, they are moved inwards. */
typedef struct neighbourhood {
    uint64_t low, value, high;
    int exponent;
} neighbourhood;

/* x = c 10^n 2^-(128 + exponent of the power), rounded to odd. The product has 64 bits behind the
 * point and is too small by less than 2 of the last, so with 1 of those added it is 0 or 1 of them
 * above a whole x. Other x are not mistaken for that: for each c and n that doubles lead to, x is
 * an even number or more than 2^-63 away from one (found with continued fractions for all 2046
 * exponents; the closest is 2^-62.5). */
static uint64_t rounded_to_odd(uint64_t c, const power *p) {
    const uint128 product = times_power(c, p) + 1;
    return (uint64_t)(product >> 64) | ((uint64_t)product > 1);
}

/* floor(log10(2^n)) or floor(log10(3/4 2^n)), for n from -1074 to 971. */
static int decimal_exponent(int n, bool three_quarters) {
    return (n * 315653 - three_quarters * 131008) >> 20;
}

/* The unit is the largest power of ten that is not longer than the neighbourhood. Below a power of
 * two doubles are twice as dense, so the neighbourhood is shorter on that side. */
static neighbourhood neighbourhood_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int field = (int)(bits >> 52 & 0x7ff), binary = (field ? field : 1) - 1075;
    const uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    const uint64_t mantissa = fraction | (uint64_t)(field > 0) << 52, odd = mantissa & 1;
    const bool uneven = fraction == 0 && field > 1;
    const int exponent = decimal_exponent(binary, uneven);
    const power *p = power_of_ten(-exponent);
    const int shift = binary + p->exponent + 128; /* 1 to 4 */
    return (neighbourhood){
        .low = rounded_to_odd((4 * mantissa - (uneven ? 1 : 2)) << shift, p) + odd,
        .value = rounded_to_odd(4 * mantissa << shift, p),
        .high = rounded_to_odd((4 * mantissa + 2) << shift, p) - odd,
        .exponent = exponent,
    };
}

/* Whether one of two neighbours, and not the other, is within; *found is that one. */
static bool only_one(const neighbourhood *n, uint64_t below, uint64_t unit, uint64_t *found) {
    const bool has_below = 4 * unit * below >= n->low;
    const bool has_above = 4 * unit * (below + 1) <= n->high;
    *found = below + has_above;
    return has_below != has_above;
}

/* Of multiples of ten units at most one is in the neighbourhood, of units at least one. */
n2_decimal n2_decimal_shortest(double value) {
    const neighbourhood n = neighbourhood_of(value);
    n2_decimal d = {0, n.exponent};
    const uint64_t below = n.value / 4;
    if (only_one(&n, below / 10, 10, &d.digits)) {
        for (d.exponent++; d.digits % 10 == 0; d.exponent++) d.digits /= 10;
    } else if (!only_one(&n, below, 1, &d.digits)) {
        const uint64_t middle = 4 * below + 2;
        d.digits = below + (n.value > middle || (n.value == middle && below % 2));
    }
    return d;
}

/* ---- the nearest double ------------------------------------------------------------------- */

/* The product is too small by less than 2, which matters next to the middle of two doubles only:
 * next to a double itself both sides round to it. */
bool n2_decimal_nearest(n2_decimal d, double *value) {
    if (n2_decimal_easy(d, value)) return true;
    if (d.digits == 0) *value = 0;
    if (d.digits == 0 || d.exponent < LOWEST || d.exponent > HIGHEST) return d.digits == 0;
    const power *p = power_of_ten(d.exponent);
    const int zeros = __builtin_clzll(d.digits);
    const uint128 product = times_power(d.digits << zeros, p); /* of 127 or 128 bits */
    const int length = 127 + (int)(product >> 127), cut = length - 53;
    const int exponent = length - 1 + 64 + p->exponent - zeros; /* of the leading bit */
    const uint128 half = (uint128)1 << (cut - 1), rest = product & (2 * half - 1);
    if (exponent < -1022 || exponent > 1023 || rest == half || rest == half - 1) return false;
    const uint64_t mantissa = (uint64_t)(product >> cut) + (rest > half);
    const uint64_t bits = ((uint64_t)(exponent + 1022) << 52) + mantissa; /* it has bit 52 */
    memcpy(value, &bits, sizeof bits);
    return true;
}
