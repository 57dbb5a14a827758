/* Elementary functions for kernels: branch-free float arithmetic in additions,
 * multiplications, one rounding at a time, so that every compiler, instruction
 * set and device that keeps IEEE 754 gives the same bits. For use inside loops
 * over lanes; relative error below 3e-7 on the stated domains. */
#ifndef N2_LANES_H
#define N2_LANES_H

#include <stdint.h>
#include <string.h>

/* Sixteen lanes as vectors of what the instruction set holds in one register: for
 * sums that must stay in registers, where compilers do not manage with arrays. */
#if defined(__AVX512F__)
enum { N2_VEC_BYTES = 64 };
#elif defined(__AVX2__)
enum { N2_VEC_BYTES = 32 };
#else /* SSE2, NEON */
enum { N2_VEC_BYTES = 16 };
#endif
typedef float n2_vec __attribute__((vector_size(N2_VEC_BYTES), may_alias));
enum { N2_PARTS = 64 / N2_VEC_BYTES, N2_PART_LANES = N2_VEC_BYTES / 4 };

/* Part p of the sixteen floats at an address aligned to 64 bytes. */
#define n2_load(at, p)         (((const n2_vec *)(const void *)(at))[p])
#define n2_store(at, p, value) (((n2_vec *)(void *)(at))[p] = (value))

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
    float p = 0.0891786330f;
    p = p * t - 0.143502005f;
    p = p * t + 0.148769626f;
    p = p * t - 0.165656346f;
    p = p * t + 0.199653980f;
    p = p * t - 0.250017469f;
    p = p * t + 0.333338581f;
    p = p * t - 0.5f;
    return (float)e * 0.693147181f + (t * t * p + t);
}

/* exp(x), x clamped to [-87, 80]: the results stay normal numbers whose products
 * with one another's reciprocals do not overflow. x = k ln 2 + r. */
static inline float n2_lane_exp(float x) {
    x = x < 80.0f ? x : 80.0f;
    x = x > -87.0f ? x : -87.0f;
    const float magic = 12582912.0f; /* 1.5 2^23: adding it rounds to integer */
    const float shifted = x * 1.44269504f + magic, k = shifted - magic;
    const float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 0.00139505f;
    p = p * r + 0.00836888f;
    p = p * r + 0.04166621f;
    p = p * r + 0.16666519f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    /* the low bits of `shifted` hold k: add them to the exponent of p */
    return n2_from_bits(n2_bits(p) + (n2_bits(shifted) << 23));
}

/* cos and sin of 2 pi w / 2^32. The nearest quarter turn q is taken off exactly,
 * in integers; what is left is at most an eighth of a turn. */
static inline void n2_lane_turn(uint32_t w, float *cosine, float *sine) {
    const uint32_t q = (w + 0x20000000u) >> 30;
    const float x = (float)(int32_t)(w - (q << 30)) * 1.46291808e-9f; /* pi/2 2^-30 */
    const float y = x * x;
    const float s = x + x * y * (-0.16666665f + y * (0.00833275f - y * 1.9588e-4f));
    const float c =
        1.0f + y * (-0.5f + y * (0.0416666469f + y * (-0.00138873675f + y * 2.44384514e-5f)));
    const uint32_t odd = 0u - (q & 1u); /* odd quarter turns swap the two */
    const uint32_t sb = n2_bits(s), cb = n2_bits(c);
    *sine = n2_from_bits(((sb & ~odd) | (cb & odd)) ^ ((q & 2u) << 30));
    *cosine = n2_from_bits(((cb & ~odd) | (sb & odd)) ^ (((q + 1u) & 2u) << 30));
}

#endif
