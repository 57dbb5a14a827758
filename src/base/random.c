#include "random.h"

#include "isa.h"
#include "philox.h"

#include <string.h>

typedef void fill_fn(n2_stream s, uint64_t first_group, size_t n_groups, float *out);
N2_ISA_TABLE(fill_fn, n2_fill_uniform_groups);
N2_ISA_TABLE(fill_fn, n2_fill_normal_groups);
typedef void bits_fn(n2_stream s, uint64_t first, size_t n, uint64_t *out);
N2_ISA_TABLE(bits_fn, n2_random_bits_lanes);

void n2_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
    N2_PHILOX_ROUNDS(a, b, c, d, key[0], key[1]);
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

size_t n2_random_below(n2_stream s, uint64_t i, size_t n) {
    const uint32_t key[2] = {(uint32_t)s.seed, (uint32_t)(s.seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)i, (uint32_t)(i >> 32), s.step, s.stream};
    uint32_t word[4];
    n2_philox(counter, key, word);
    return (size_t)(((uint64_t)word[0] << 32 | word[1]) % n);
}

void n2_random_bits(n2_stream s, uint64_t first, size_t n, uint64_t *out) {
    bits_fn *lanes = n2_random_bits_lanes_table[n2_isa_current()];
    const size_t whole = n - n % N2_LANES;
    uint64_t rest[N2_LANES];
    lanes(s, first, whole, out);
    lanes(s, first + whole, n > whole ? N2_LANES : 0, rest);
    if (n > whole) memcpy(out + whole, rest, (n - whole) * sizeof *out);
}

/* Whole groups go straight to the caller; ragged ends through a buffer. */
static void fill(fill_fn *groups, n2_stream s, uint64_t first, size_t n, float *out) {
    while (n > 0) {
        const size_t skip = first % N2_DRAW_GROUP;
        size_t take;
        if (skip == 0 && n >= N2_DRAW_GROUP) {
            const size_t whole = n / N2_DRAW_GROUP;
            groups(s, first / N2_DRAW_GROUP, whole, out);
            take = whole * N2_DRAW_GROUP;
        } else {
            float buffer[N2_DRAW_GROUP];
            groups(s, first / N2_DRAW_GROUP, 1, buffer);
            take = N2_DRAW_GROUP - skip < n ? N2_DRAW_GROUP - skip : n;
            memcpy(out, buffer + skip, take * sizeof *out);
        }
        first += take;
        out += take;
        n -= take;
    }
}

void n2_fill_uniform(n2_stream s, uint64_t first, size_t n, float *out) {
    fill(n2_fill_uniform_groups_table[n2_isa_current()], s, first, n, out);
}

void n2_fill_normal(n2_stream s, uint64_t first, size_t n, float *out) {
    fill(n2_fill_normal_groups_table[n2_isa_current()], s, first, n, out);
}
