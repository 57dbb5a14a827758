/* Numbers in 16 bits: bfloat16 (N2_BF16), the upper half of a float, and IEEE 754 half precision
 * (N2_F16). They are storage: arithmetic is done with what they are widened to. Narrowing rounds to
 * the nearest, of two that are equally near to the even one; too large becomes infinite, and NaN
 * stays NaN. A double is rounded to float first. Processor and GPU run this very code. */
#ifndef N2_NARROW_H
#define N2_NARROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define N2_NARROW static inline __host__ __device__
#else
#define N2_NARROW static inline
#endif

/* How a number is stored: as the backend computes, double or float, or in 16 bits. */
typedef enum n2_dtype { N2_NUMBER, N2_BF16, N2_F16 } n2_dtype;

/* How a GPU computes. Zeroed: tf32. */
typedef struct n2_precision {
    bool strict;     /* matrix products to float32's precision; else factors rounded to tf32 */
    n2_dtype narrow; /* how values inside networks of pictures lie in memory; N2_NUMBER: floats */
} n2_precision;

/* tf32, float32, bf16 or half; false: another word. */
static inline bool n2_precision_of_word(const char *word, n2_precision *out) {
    *out = (n2_precision){strcmp(word, "float32") == 0, N2_NUMBER};
    if (strcmp(word, "bf16") == 0) out->narrow = N2_BF16;
    if (strcmp(word, "half") == 0) out->narrow = N2_F16;
    return out->strict || out->narrow != N2_NUMBER || strcmp(word, "tf32") == 0;
}

static inline const char *n2_precision_name(n2_precision p) {
    if (p.narrow != N2_NUMBER) return p.narrow == N2_BF16 ? "bf16" : "half";
    return p.strict ? "float32" : "tf32";
}

/* number: bytes of N2_NUMBER. */
static inline size_t n2_dtype_bytes(n2_dtype type, size_t number) {
    return type == N2_NUMBER ? number : sizeof(uint16_t);
}

static inline const char *n2_dtype_name(n2_dtype type) {
    return type == N2_BF16 ? "bf16" : type == N2_F16 ? "f16" : "number";
}

N2_NARROW uint32_t n2_word_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

N2_NARROW float n2_float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

N2_NARROW uint16_t n2_to_bf16(float x) {
    const uint32_t u = n2_word_of(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

N2_NARROW uint16_t n2_to_f16(float x) {
    const uint32_t u = n2_word_of(x), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (a >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and more */
    if (a < 0x38800000u) /* below 2^-14: multiples of 2^-24, as numbers beside 1/2 are */
        return (uint16_t)(sign | (n2_word_of(n2_float_of(a) + 0.5f) - 0x3f000000u));
    return (uint16_t)(sign | ((a + 0xfffu + (a >> 13 & 1u) - 0x38000000u) >> 13));
}

N2_NARROW float n2_from_f16(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = h >> 10 & 31u, m = h & 0x3ffu;
    if (e == 0) { /* m 2^-24 */
        const float x = (float)m * 5.9604644775390625e-8f;
        return sign ? -x : x;
    }
    return n2_float_of(sign | (e == 31 ? 0x7f800000u : (e + 112) << 23) | m << 13);
}

N2_NARROW uint16_t n2_narrow(n2_dtype type, float x) {
    return type == N2_BF16 ? n2_to_bf16(x) : n2_to_f16(x);
}

N2_NARROW float n2_widen(n2_dtype type, uint16_t x) {
    return type == N2_BF16 ? n2_float_of((uint32_t)x << 16) : n2_from_f16(x);
}

/* Element i of an array of a type; number: bytes of N2_NUMBER. */
static inline double n2_load_number(const void *data, n2_dtype type, size_t number, size_t i) {
    if (type != N2_NUMBER) return (double)n2_widen(type, ((const uint16_t *)data)[i]);
    return number == sizeof(float) ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static inline void n2_store_number(void *data, n2_dtype type, size_t number, size_t i, double x) {
    if (type != N2_NUMBER)
        ((uint16_t *)data)[i] = n2_narrow(type, (float)x);
    else if (number == sizeof(float))
        ((float *)data)[i] = (float)x;
    else
        ((double *)data)[i] = x;
}

#endif
