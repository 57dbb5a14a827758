/* Elementary functions for kernels: branch-free float arithmetic in additions,
 * multiplications, one rounding at a time, so that every compiler, instruction
 * set and device that keeps IEEE 754 gives the same bits. For use inside loops
 * over lanes; relative error below 3e-7 on the stated domains. */
#ifndef N2_LANES_H
#define N2_LANES_H

#include <stdint.h>
#include <string.h>

static inline uint32_t n2_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float n2_from_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* ln(u) for normal u > 0. u = 2^e (1+t) with 1+t in [sqrt(1/2), sqrt(2));
 * ln(1+t) = t - t^2/2 + t^3 p(t), p a minimax fit. */
static inline float n2_lane_log(float u) {
    const uint32_t bits = n2_bits(u);
    const int32_t e = (int32_t)(bits - 0x3f3504f3u) >> 23;
    const float t = n2_from_bits(bits - ((uint32_t)e << 23)) - 1.0f;
    float p = -0.078596115f;
    p = p * t + 0.128816475f;
    p = p * t - 0.131287548f;
    p = p * t + 0.141811919f;
    p = p * t - 0.166245540f;
    p = p * t + 0.200022863f;
    p = p * t - 0.250008104f;
    p = p * t + 0.333333167f;
    const float t2 = t * t;
    return (float)e * 0.693147181f + (t - 0.5f * t2 + t2 * t * p);
}

/* exp(x), x clamped to [-87, 80]: the results stay normal numbers whose products
 * with one another's reciprocals do not overflow. x = k ln 2 + r. */
static inline float n2_lane_exp(float x) {
    x = x < 80.0f ? x : 80.0f;
    x = x > -87.0f ? x : -87.0f;
    const float magic = 12582912.0f; /* 1.5 2^23: adding it rounds to integer */
    const float k = (x * 1.44269504f + magic) - magic;
    const float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 0.00139505f;
    p = p * r + 0.00836888f;
    p = p * r + 0.04166621f;
    p = p * r + 0.16666519f;
    p = p * r + 0.5f;
    p = (p * r) * r + r + 1.0f;
    return p * n2_from_bits((uint32_t)((int32_t)k + 127) << 23);
}

/* cos and sin of 2 pi w / 2^32. The nearest quarter turn q is taken off exactly,
 * in integers; what is left is at most an eighth of a turn. */
static inline void n2_lane_turn(uint32_t w, float *cosine, float *sine) {
    const uint32_t q = (w + 0x20000000u) >> 30;
    const float x = (float)(int32_t)(w - (q << 30)) * 1.46291808e-9f; /* pi/2 2^-30 */
    const float y = x * x;
    const float s =
        x + x * y * (-0.166666667f + y * (0.00833333188f - y * (1.98400881e-4f - y * 2.725e-6f)));
    const float c =
        1.0f - 0.5f * y + y * y * (0.0416666469f + y * (-0.00138873675f + y * 2.44384514e-5f));
    const uint32_t odd = 0u - (q & 1u); /* odd quarter turns swap the two */
    const uint32_t sb = n2_bits(s), cb = n2_bits(c);
    *sine = n2_from_bits(((sb & ~odd) | (cb & odd)) ^ ((q & 2u) << 30));
    *cosine = n2_from_bits(((cb & ~odd) | (sb & odd)) ^ (((q + 1u) & 2u) << 30));
}

#endif
