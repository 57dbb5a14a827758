/* Closeness of floating-point numbers, and the errors of rounding to compare with. */
#ifndef TEST_CLOSE_H
#define TEST_CLOSE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdbool.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Within relative * |expected| + absolute; infinities and NaN equal themselves only. */
static inline bool is_close(double actual, double expected, double relative, double absolute) {
    if (isnan(expected)) return isnan(actual);
    if (isinf(expected) || isinf(actual)) return actual == expected;
    return fabs(actual - expected) <= relative * fabs(expected) + absolute;
}

static inline void assert_close_at(double actual, double expected, double relative, double absolute,
                                   const char *file, int line) {
    if (is_close(actual, expected, relative, absolute)) return;
    print_error("%.17g is not %.17g: off by %.3g, allowed %.3g\n", actual, expected,
                fabs(actual - expected), relative * fabs(expected) + absolute);
    _fail(file, line);
}

#define assert_close(actual, expected, relative, absolute) \
    assert_close_at((actual), (expected), (relative), (absolute), __FILE__, __LINE__)

#endif
