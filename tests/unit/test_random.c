/* Facts about the generator: known answers, purity, distribution, equal bits on every machine. */
#include "close.h"

#include "base/isa.h"
#include "base/random.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 1000000 };

static const n2_stream stream_a = {12345, 3, 7};

typedef void fill_fn(n2_stream s, uint64_t first_group, size_t n_groups, float *out);
N2_ISA_TABLE(fill_fn, n2_fill_uniform_groups);
N2_ISA_TABLE(fill_fn, n2_fill_normal_groups);

static float *floats(size_t n) {
    float *p = malloc(n * sizeof *p);
    assert_non_null(p);
    return p;
}

static float *normals(n2_stream s, size_t n) {
    float *z = floats(n);
    n2_fill_normal(s, 0, n, z);
    return z;
}

/* ---- the generator --------------------------------------------------------- */

/* Philox4x32-10 gives the known answers of Random123. */
static void philox_gives_the_published_answers(void **state) {
    (void)state;
    static const uint32_t rows[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (size_t i = 0; i < 3; i++) {
        uint32_t out[4];
        n2_philox(rows[i], rows[i] + 4, out);
        assert_memory_equal(out, rows[i] + 6, sizeof out);
    }
}

/* The word behind element e: word (e / 16) % 4 of counter 16 (e / 64) + e % 16. */
static uint32_t word_of(n2_stream s, uint64_t e) {
    const uint64_t block = e / 64 * 16 + e % 16;
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), s.step, s.stream};
    const uint32_t key[2] = {(uint32_t)s.seed, (uint32_t)(s.seed >> 32)};
    uint32_t out[4];
    n2_philox(counter, key, out);
    return out[e % 64 / 16];
}

/* A uniform is w 2^-32 + 2^-33 of its Philox word w, every operation rounded to float. */
static void uniforms_are_the_documented_function_of_the_words(void **state) {
    (void)state;
    static const n2_stream streams[] = {{12345, 3, 7},
                                        {0xfedcba9876543210u, 0xffffffff, 0x80000000}};
    static const uint64_t firsts[] = {0, 64 * 1000003, (uint64_t)1 << 40};
    enum { N = 4096 };
    float u[N];
    for (size_t s = 0; s < 2; s++)
        for (size_t k = 0; k < 3; k++) {
            n2_fill_uniform(streams[s], firsts[k], N, u);
            for (size_t i = 0; i < N; i++) {
                const float w = (float)word_of(streams[s], firsts[k] + i);
                const float expected = w * 0x1p-32f + 0x1p-33f;
                assert_close((double)u[i], (double)expected, 0, 0);
            }
        }
}

/* Uniforms lie in (0, 1]. */
static void uniforms_are_never_zero(void **state) {
    (void)state;
    float *u = floats(MANY);
    n2_fill_uniform(stream_a, 0, MANY, u);
    for (size_t i = 0; i < MANY; i++) assert_true(u[i] > 0.0f && u[i] <= 1.0f);
    free(u);
}

/* A range drawn in pieces, at any offsets, is the range drawn at once. */
static void fills_do_not_depend_on_how_a_range_is_split(void **state) {
    (void)state;
    enum { N = 1000 };
    static const uint64_t firsts[] = {0, 1, 63, 64, 65, 4294967290u * 4u, 1000000007};
    static const size_t pieces[] = {1, 3, 16, 63, 64, 65, 128, 999};
    float whole[2][N], parts[2][N];
    for (size_t f = 0; f < COUNT_OF(firsts); f++) {
        n2_fill_normal(stream_a, firsts[f], N, whole[0]);
        n2_fill_uniform(stream_a, firsts[f], N, whole[1]);
        for (size_t p = 0; p < COUNT_OF(pieces); p++) {
            for (size_t at = 0; at < N; at += pieces[p]) {
                const size_t n = N - at < pieces[p] ? N - at : pieces[p];
                n2_fill_normal(stream_a, firsts[f] + at, n, parts[0] + at);
                n2_fill_uniform(stream_a, firsts[f] + at, n, parts[1] + at);
            }
            assert_memory_equal(whole, parts, sizeof whole);
        }
    }
}

/* Nothing is written beyond the range asked for; an empty range is nothing. */
static void fills_stay_inside_their_range(void **state) {
    (void)state;
    for (size_t n = 0; n < 200; n++) {
        float out[202];
        for (size_t i = 0; i < 202; i++) out[i] = 99;
        n2_fill_normal(stream_a, 5, n, out + 1);
        assert_true(out[0] == 99.0f && out[n + 1] == 99.0f);
    }
}

/* All instruction sets give the same bits. */
static void instruction_sets_agree_bit_for_bit(void **state) {
    (void)state;
    enum { GROUPS = 4000, N = GROUPS * N2_DRAW_GROUP };
    float *a = floats(N), *b = floats(N);
    for (int isa = 0; isa <= (int)n2_isa_current(); isa++) {
        n2_fill_normal_groups_table[0](stream_a, 17, GROUPS, a);
        n2_fill_normal_groups_table[isa](stream_a, 17, GROUPS, b);
        assert_memory_equal(a, b, N * sizeof *a);
        n2_fill_uniform_groups_table[0](stream_a, 17, GROUPS, a);
        n2_fill_uniform_groups_table[isa](stream_a, 17, GROUPS, b);
        assert_memory_equal(a, b, N * sizeof *a);
    }
    free(a);
    free(b);
}

/* ---- normals ---------------------------------------------------------------- */

/* A normal is Box-Muller of its words (0,1) or (2,3), here in long double. */
static void normals_are_box_muller(void **state) {
    (void)state;
    enum { N = 64 * 2000 };
    float *z = floats(N), *u = floats(N);
    n2_fill_normal(stream_a, 0, N, z);
    n2_fill_uniform(stream_a, 0, N, u);
    for (size_t e = 0; e < N; e++) {
        const bool is_sine = e / 16 % 2;
        const size_t first = is_sine ? e - 16 : e;
        const long double radius = sqrtl(-2 * logl((long double)u[first]));
        const long double turn = (long double)word_of(stream_a, first + 16) * 0x1p-32L;
        const long double angle = 2 * 3.14159265358979323846L * turn;
        const long double expected = radius * (is_sine ? sinl(angle) : cosl(angle));
        assert_close((double)z[e], (double)expected, 1e-6, 1e-12);
    }
    free(z);
    free(u);
}

/* Mean, variance, skewness and kurtosis of a million draws: 0, 1, 0, 3. */
static void normals_have_normal_moments(void **state) {
    (void)state;
    float *z = normals(stream_a, MANY);
    double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
    for (size_t i = 0; i < MANY; i++) {
        const double x = (double)z[i];
        m1 += x;
        m2 += x * x;
        m3 += x * x * x;
        m4 += x * x * x * x;
    }
    const double n = MANY, root = sqrt(n);
    assert_close(m1 / n, 0, 0, 5 * 1 / root);
    assert_close(m2 / n, 1, 0, 5 * sqrt(2) / root);
    assert_close(m3 / n, 0, 0, 5 * sqrt(15) / root);
    assert_close(m4 / n, 3, 0, 5 * sqrt(96) / root);
    free(z);
}

/* As many draws lie beyond 3 and 4 sigma, on either side, as should; none beyond 6.77. */
static void normals_have_normal_tails(void **state) {
    (void)state;
    float *z = normals(stream_a, MANY);
    for (int sigma = 3; sigma <= 4; sigma++) {
        double above = 0, below = 0;
        for (size_t i = 0; i < MANY; i++) {
            above += z[i] > (float)sigma;
            below += z[i] < -(float)sigma;
            assert_true(fabs((double)z[i]) < 6.77);
        }
        const double expected = MANY * erfc(sigma / sqrt(2)) / 2;
        assert_close(above, expected, 0, 5 * sqrt(expected));
        assert_close(below, expected, 0, 5 * sqrt(expected));
    }
    free(z);
}

static int compare_floats(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The empirical distribution stays as close to Phi as Kolmogorov's law allows. */
static void normals_pass_kolmogorov_smirnov(void **state) {
    (void)state;
    enum { N = 200000 };
    float *z = normals((n2_stream){99, 1, 0}, N);
    qsort(z, N, sizeof *z, compare_floats);
    double distance = 0;
    for (size_t i = 0; i < N; i++) {
        const double phi = erfc(-(double)z[i] / sqrt(2)) / 2;
        distance = fmax(distance, fmax(phi - (double)i / N, (double)(i + 1) / N - phi));
    }
    assert_true(distance * sqrt(N) < 1.95); /* exceeded once in a thousand */
    free(z);
}

static double correlation(const float *x, const float *y, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)y[i];
    return sum / (double)n;
}

/* Neighbours at every distance inside a group, and beyond it, are uncorrelated. */
static void neighbouring_elements_are_uncorrelated(void **state) {
    (void)state;
    enum { N = 100000 };
    float *z = normals(stream_a, N + 130);
    for (size_t lag = 1; lag <= 129; lag++)
        assert_close(correlation(z, z + lag, N), 0, 0, 5 / sqrt(N));
    free(z);
}

/* Another stream, another step, another seed: other, uncorrelated numbers. */
static void streams_steps_and_seeds_are_uncorrelated(void **state) {
    (void)state;
    enum { N = 100000 };
    const n2_stream a = stream_a;
    const n2_stream others[] = {
        {a.seed, a.stream + 1, a.step},
        {a.seed, a.stream, a.step + 1},
        {a.seed, a.step, a.stream},
        {a.seed + 1, a.stream, a.step},
        {a.seed | 1ull << 32, a.stream, a.step},
    };
    float *x = normals(a, N);
    for (size_t k = 0; k < COUNT_OF(others); k++) {
        float *y = normals(others[k], N);
        assert_memory_not_equal(x, y, N * sizeof *x);
        assert_close(correlation(x, y, N), 0, 0, 5 / sqrt(N));
        free(y);
    }
    free(x);
}

/* The two halves of a Box-Muller pair do not know each other's size either. */
static void squares_of_a_pair_are_uncorrelated(void **state) {
    (void)state;
    enum { N = 64 * 4000 };
    float *z = normals(stream_a, N);
    double sum = 0, n = 0;
    for (size_t e = 0; e < N; e++) {
        if (e / 16 % 2) continue;
        const double x = (double)z[e], y = (double)z[e + 16];
        sum += (x * x - 1) * (y * y - 1);
        n++;
    }
    assert_close(sum / n, 0, 0, 5 * 2 / sqrt(n));
    free(z);
}

static void bits_are_what_is_divided(void **state) {
    (void)state;
    uint64_t bits[100];
    const n2_stream s = {77, 5, 3};
    const uint64_t first = ((uint64_t)1 << 32) - 40; /* to both sides of a word's end */
    for (size_t n = 0; n <= 100; n += 25) {
        memset(bits, 0, sizeof bits);
        n2_random_bits(s, first, n, bits);
        for (size_t i = 0; i < n; i++)
            assert_true(bits[i] % 1000003 == n2_random_below(s, first + i, 1000003));
        for (size_t i = n; i < 100; i++) assert_true(bits[i] == 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_answers),
        cmocka_unit_test(bits_are_what_is_divided),
        cmocka_unit_test(uniforms_are_the_documented_function_of_the_words),
        cmocka_unit_test(uniforms_are_never_zero),
        cmocka_unit_test(fills_do_not_depend_on_how_a_range_is_split),
        cmocka_unit_test(fills_stay_inside_their_range),
        cmocka_unit_test(instruction_sets_agree_bit_for_bit),
        cmocka_unit_test(normals_are_box_muller),
        cmocka_unit_test(normals_have_normal_moments),
        cmocka_unit_test(normals_have_normal_tails),
        cmocka_unit_test(normals_pass_kolmogorov_smirnov),
        cmocka_unit_test(neighbouring_elements_are_uncorrelated),
        cmocka_unit_test(streams_steps_and_seeds_are_uncorrelated),
        cmocka_unit_test(squares_of_a_pair_are_uncorrelated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
