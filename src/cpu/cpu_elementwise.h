/* Formulas of the fast element-wise kernels: a row each, for the operands x and y and the numbers
 * a and b of the node (n2_attr). Compilers make vectors of them, so they have no branches. An op
 * without a row is served by its plain kernel (ref/plain.h). */
#ifndef N2_CPU_ELEMENTWISE_H
#define N2_CPU_ELEMENTWISE_H

#include "base/lanes.h"

#include <math.h>

#define N2_CPU_INLINE static inline __attribute__((always_inline))

/* n2_lane_exp with the ends of the range put back: infinity, zero and NaN show. */
N2_CPU_INLINE float exp_full(float x) {
    float y = n2_lane_exp(x);
    y = x > 80.0f ? y * n2_lane_exp(x - 80.0f) : y; /* up to the overflow */
    y = x > 88.73f ? (float)INFINITY : y;
    y = x < -87.0f ? 0.0f : y;
    return x != x ? x : y;
}

N2_CPU_INLINE float sigmoid(float x) {
    const float e = exp_full(x < 0 ? x : -x), s = 1.0f / (1.0f + e);
    return x < 0 ? e * s : s;
}

/* (1 - e) / (1 + e) with e = exp(-2|x|); a short series where that would cancel. */
N2_CPU_INLINE float tanh_full(float x) {
    const float a = x < 0 ? -x : x, e = exp_full(-2.0f * a), y = x * x;
    const float large = (1.0f - e) / (1.0f + e);
    const float small = a * (1.0f + y * (-0.33333334f + y * (0.13333334f - y * 0.05396825f)));
    const float t = a < 0.15f ? small : large;
    return x < 0 ? -t : t;
}

/* Of x sigmoid(x). */
N2_CPU_INLINE float silu_slope(float x) {
    const float s = sigmoid(x);
    return s * (1.0f + x * (1.0f - s));
}

/* P(z < x) for a standard normal z; bell: exp(-x^2 / 2). With t = 1 / (1 + 0.28 |x|), what is
 * beyond |x| is t bell times a polynomial of t, fitted to a relative error of 5e-7. */
N2_CPU_INLINE float normal_below(float x, float bell) {
    const float a = x < 0 ? -x : x, t = 1.0f / (1.0f + 0.28f * a);
    float p = 0.0261485092f;
    p = p * t - 0.0991272181f;
    p = p * t + 0.101123452f;
    p = p * t - 0.0135513227f;
    p = p * t + 0.0759828463f;
    p = p * t + 0.0828455463f;
    p = p * t + 0.103178836f;
    p = p * t + 0.111695513f;
    p = p * t + 0.111703888f;
    const float beyond = bell * t * p;
    return x < 0 ? beyond : 1.0f - beyond;
}
N2_CPU_INLINE float gelu(float x) { return x * normal_below(x, exp_full(-0.5f * x * x)); }
N2_CPU_INLINE float gelu_slope(float x) {
    const float bell = exp_full(-0.5f * x * x);
    return normal_below(x, bell) + 0.398942280f * x * bell;
}

/* clang-format off */
#define N2_FAST_UNARY(X)                \
    X(neg, -x)                          \
    X(exp, exp_full(x))                 \
    X(sqrt, sqrtf(x))                   \
    X(reciprocal, 1.0f / x)             \
    X(sigmoid, sigmoid(x))              \
    X(tanh, tanh_full(x))               \
    X(positive, x > 0.0f ? 1.0f : 0.0f) \
    X(affine, a * x + b)                \
    X(lrelu, x > 0.0f ? x : a * x)      \
    X(silu, x * sigmoid(x))             \
    X(gelu, gelu(x))

#define N2_FAST_BINARY(X)               \
    X(add, x + y)                       \
    X(sub, x - y)                       \
    X(mul, x * y)                       \
    X(div, x / y)                       \
    X(maximum, x > y || x != x ? x : y) \
    X(minimum, x < y || x != x ? x : y) \
    X(equal, x == y ? 1.0f : 0.0f)      \
    X(greater, x > y ? 1.0f : 0.0f)     \
    X(lrelu_grad, x > 0.0f ? y : a * y) \
    X(silu_grad, y * silu_slope(x))     \
    X(gelu_grad, y * gelu_slope(x))
/* clang-format on */

#endif
