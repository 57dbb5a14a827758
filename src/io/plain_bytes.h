/* Blocks of bytes as bits, one for each: for files that are compiled for several instruction sets.
 */
#ifndef N2_PLAIN_BYTES_H
#define N2_PLAIN_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

enum { BLOCK = 64 };

/* VECTOR bytes, and marks of those that are c, or at most c: marks can be joined by operators. */
#if defined(__AVX512BW__)
enum { VECTOR = 64 };
typedef __m512i bytes;
typedef uint64_t marks;

static inline bytes load(const char *text) { return _mm512_loadu_si512(text); }
static inline bytes less(bytes b, char c) { return _mm512_sub_epi8(b, _mm512_set1_epi8(c)); }
static inline bytes with_bit(bytes b, char bit) {
    return _mm512_or_si512(b, _mm512_set1_epi8(bit));
}
static inline marks equal(bytes b, char c) {
    return _mm512_cmpeq_epi8_mask(b, _mm512_set1_epi8(c));
}
static inline marks at_most(bytes b, char c) {
    return _mm512_cmple_epu8_mask(b, _mm512_set1_epi8(c));
}
static inline uint64_t bits_of(marks m) { return m; }
#elif defined(__AVX2__)
enum { VECTOR = 32 };
typedef __m256i bytes, marks;

static inline bytes load(const char *text) {
    return _mm256_loadu_si256((const __m256i *)(const void *)text);
}
static inline bytes less(bytes b, char c) { return _mm256_sub_epi8(b, _mm256_set1_epi8(c)); }
static inline bytes with_bit(bytes b, char bit) {
    return _mm256_or_si256(b, _mm256_set1_epi8(bit));
}
static inline marks equal(bytes b, char c) { return _mm256_cmpeq_epi8(b, _mm256_set1_epi8(c)); }
static inline marks at_most(bytes b, char c) {
    return _mm256_cmpeq_epi8(b, _mm256_min_epu8(b, _mm256_set1_epi8(c)));
}
static inline uint64_t bits_of(marks m) { return (uint32_t)_mm256_movemask_epi8(m); }
#elif defined(__SSE2__)
enum { VECTOR = 16 };
typedef __m128i bytes, marks;

static inline bytes load(const char *text) {
    return _mm_loadu_si128((const __m128i *)(const void *)text);
}
static inline bytes less(bytes b, char c) { return _mm_sub_epi8(b, _mm_set1_epi8(c)); }
static inline bytes with_bit(bytes b, char bit) { return _mm_or_si128(b, _mm_set1_epi8(bit)); }
static inline marks equal(bytes b, char c) { return _mm_cmpeq_epi8(b, _mm_set1_epi8(c)); }
static inline marks at_most(bytes b, char c) {
    return _mm_cmpeq_epi8(b, _mm_min_epu8(b, _mm_set1_epi8(c)));
}
static inline uint64_t bits_of(marks m) { return (uint32_t)_mm_movemask_epi8(m); }
#else
enum { VECTOR = 16 };
typedef uint8_t bytes __attribute__((vector_size(VECTOR)));
typedef int8_t marks __attribute__((vector_size(VECTOR)));

static inline bytes load(const char *text) {
    bytes b;
    memcpy(&b, text, sizeof b);
    return b;
}
static inline bytes less(bytes b, char c) { return b - (uint8_t)c; }
static inline bytes with_bit(bytes b, char bit) { return b | (uint8_t)bit; }
static inline marks equal(bytes b, char c) { return (marks)(b == (uint8_t)c); }
static inline marks at_most(bytes b, char c) { return (marks)(b <= (uint8_t)c); }

/* Byte k keeps its bit k, and the sum of all is the highest byte. */
static inline uint64_t bits_of(marks m) {
    uint64_t half[2];
    memcpy(half, &m, sizeof half);
    for (int i = 0; i < 2; i++) half[i] = (half[i] & 0x8040201008040201) * (UINT64_MAX / 255) >> 56;
    return half[0] | half[1] << 8;
}
#endif

/* Where a character is in BLOCK bytes. */
static inline uint64_t places_of(char c, const char *text) {
    uint64_t all = 0;
    for (int p = 0; p < BLOCK; p += VECTOR) all |= bits_of(equal(load(text + p), c)) << p;
    return all;
}

/* What there is of a block at the end of a text. In a function of its own: the loop around keeps
 * its registers. */
static __attribute__((noinline, unused)) const char *padded(const char *text, size_t n,
                                                            char block[BLOCK]) {
    memset(block, 0, BLOCK);
    return memcpy(block, text, n);
}

#endif
