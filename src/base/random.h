/* Random numbers as a pure function.
 *
 * A draw is determined by (seed, stream, step, element) and by nothing else:
 * not by threads, not by what was drawn before, not by the instruction set. The
 * generator is Philox4x32-10 (Salmon et al., SC 2011): key = seed, counter =
 * (element / 4 as 64 bits, step, stream).
 *
 * Elements come in groups of 64, so that 16 counters can be worked on side by
 * side: element e of a group is word e / 16 of counter e % 16.
 *
 *   uniform   float(w) 2^-32 + 2^-33, every operation rounded to float, in (0, 1]
 *   normal    Box-Muller on words (0,1) and (2,3) of a counter; |z| < 6.77 */
#ifndef N2_RANDOM_H
#define N2_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct n2_stream {
    uint64_t seed;
    uint32_t stream; /* who draws: a node, a run, a side */
    uint32_t step;   /* when: the iteration */
} n2_stream;

enum { N2_DRAW_GROUP = 64 };

/* Four words from counter and key; the generator itself. */
void n2_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Draw i of a stream as a whole number in [0, n), n > 0. */
size_t n2_random_below(n2_stream s, uint64_t i, size_t n);

/* Draws first .. first+n-1 as 64 bits each: n2_random_below is the rest of one divided by its n. */
void n2_random_bits(n2_stream s, uint64_t first, size_t n, uint64_t *out);

/* Elements first .. first+n-1 of a stream. */
void n2_fill_uniform(n2_stream s, uint64_t first, size_t n, float *out);
void n2_fill_normal(n2_stream s, uint64_t first, size_t n, float *out);

#endif
