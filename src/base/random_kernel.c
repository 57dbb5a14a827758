/* Kernel file, compiled once per instruction set (isa.h). */
#include "random.h"

#include "isa.h"
#include "lanes.h"
#include "philox.h"

#include <math.h>

typedef void fill_fn(n2_stream s, uint64_t first_group, size_t n_groups, float *out);
fill_fn N2_ISA(n2_fill_uniform_groups), N2_ISA(n2_fill_normal_groups);
typedef void bits_fn(n2_stream s, uint64_t first, size_t n, uint64_t *out);
bits_fn N2_ISA(n2_random_bits_lanes);

/* The 4 x 16 words of one group. */
static inline void group_words(n2_stream s, uint64_t group, uint32_t words[N2_DRAW_GROUP]) {
    const uint64_t base = group * N2_LANES;
    const uint32_t low = (uint32_t)base, high = (uint32_t)(base >> 32);
    const uint32_t k0 = (uint32_t)s.seed, k1 = (uint32_t)(s.seed >> 32);
    for (int l = 0; l < N2_LANES; l++) {
        uint32_t a = low + (uint32_t)l, b = high, c = s.step, d = s.stream;
        N2_PHILOX_ROUNDS(a, b, c, d, k0, k1);
        words[l] = a;
        words[N2_LANES + l] = b;
        words[2 * N2_LANES + l] = c;
        words[3 * N2_LANES + l] = d;
    }
}

static inline float open_uniform(uint32_t w) { return (float)w * 0x1p-32f + 0x1p-33f; }

static inline void box_muller(const uint32_t *restrict words, float *restrict out) {
    for (int l = 0; l < N2_LANES; l++) {
        const float radius = sqrtf(-2.0f * n2_lane_log(open_uniform(words[l])));
        float c, s;
        n2_lane_turn(words[N2_LANES + l], &c, &s);
        out[l] = radius * c;
        out[N2_LANES + l] = radius * s;
    }
}

void N2_ISA(n2_fill_uniform_groups)(n2_stream s, uint64_t first_group, size_t n_groups,
                                    float *out) {
    for (size_t g = 0; g < n_groups; g++, out += N2_DRAW_GROUP) {
        uint32_t words[N2_DRAW_GROUP];
        group_words(s, first_group + g, words);
        for (int i = 0; i < N2_DRAW_GROUP; i++) out[i] = open_uniform(words[i]);
    }
}

void N2_ISA(n2_fill_normal_groups)(n2_stream s, uint64_t first_group, size_t n_groups, float *out) {
    for (size_t g = 0; g < n_groups; g++, out += N2_DRAW_GROUP) {
        uint32_t words[N2_DRAW_GROUP];
        group_words(s, first_group + g, words);
        box_muller(words, out);
        box_muller(words + 2 * N2_LANES, out + 2 * N2_LANES);
    }
}

/* n is a multiple of N2_LANES. */
void N2_ISA(n2_random_bits_lanes)(n2_stream s, uint64_t first, size_t n, uint64_t *out) {
    const uint32_t k0 = (uint32_t)s.seed, k1 = (uint32_t)(s.seed >> 32);
    for (size_t i = 0; i < n; i += N2_LANES, first += N2_LANES, out += N2_LANES)
        for (int l = 0; l < N2_LANES; l++) {
            const uint64_t counter = first + (uint64_t)l;
            uint32_t a = (uint32_t)counter, b = (uint32_t)(counter >> 32), c = s.step, d = s.stream;
            N2_PHILOX_ROUNDS(a, b, c, d, k0, k1);
            out[l] = (uint64_t)a << 32 | b;
        }
}
