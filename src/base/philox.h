/* The ten rounds of Philox4x32-10 on scalars, as a macro: it must be straight
 * code inside a loop over lanes for compilers to vectorise that loop. */
#ifndef N2_PHILOX_H
#define N2_PHILOX_H

#include <stdint.h>

#define N2_PHILOX_ROUND(a, b, c, d, k0, k1)              \
    do {                                                 \
        const uint64_t p_ = (uint64_t)0xD2511F53u * (a); \
        const uint64_t q_ = (uint64_t)0xCD9E8D57u * (c); \
        (a) = (uint32_t)(q_ >> 32) ^ (b) ^ (k0);         \
        (c) = (uint32_t)(p_ >> 32) ^ (d) ^ (k1);         \
        (b) = (uint32_t)q_;                              \
        (d) = (uint32_t)p_;                              \
    } while (0)

/* The key is bumped by Weyl constants from round to round. */
#define N2_PHILOX_STEP(a, b, c, d, k0, k1, i) \
    N2_PHILOX_ROUND(a, b, c, d, (k0) + (i)*0x9E3779B9u, (k1) + (i)*0xBB67AE85u)

#define N2_PHILOX_ROUNDS(a, b, c, d, k0, k1)    \
    do {                                        \
        N2_PHILOX_STEP(a, b, c, d, k0, k1, 0u); \
        N2_PHILOX_STEP(a, b, c, d, k0, k1, 1u); \
        N2_PHILOX_STEP(a, b, c, d, k0, k1, 2u); \
        N2_PHILOX_STEP(a, b, c, d, k0, k1, 3u); \
        N2_PHILOX_STEP(a, b, c, d, k0, k1, 4u); \
        N2_PHILOX_STEP(a, b, c, d, k0, k1, 5u); \
        N2_PHILOX_STEP(a, b, c, d, k0, k1, 6u); \
        N2_PHILOX_STEP(a, b, c, d, k0, k1, 7u); \
        N2_PHILOX_STEP(a, b, c, d, k0, k1, 8u); \
        N2_PHILOX_STEP(a, b, c, d, k0, k1, 9u); \
    } while (0)

#endif
