/* Exact kernels give the same bits on every instruction set and processor: the sums below were made
 * on x86-64 and hold on aarch64 (tests/check_aarch64.sh). */
#include "close.h"

#include "base/isa.h"
#include "base/lanes.h"
#include "base/linalg_kernel.h"
#include "base/random.h"
#include "objective/linear_moments.h"

#include <inttypes.h>

typedef void fill_fn(n2_stream s, uint64_t first_group, size_t n_groups, float *out);
N2_ISA_TABLE(fill_fn, n2_fill_uniform_groups);
N2_ISA_TABLE(fill_fn, n2_fill_normal_groups);
N2_ISA_TABLE(n2_dot_fn, n2_dot_rows);
N2_ISA_TABLE(n2_quadratic_fn, n2_quadratic_rows);
N2_ISA_TABLE(n2_subtract_rows_fn, n2_subtract_rows);
N2_ISA_TABLE(n2_rotate_fn, n2_rotate);
N2_ISA_TABLE(n2_linear_moments_fn, n2_linear_moments);

enum { GROUPS = 256, N = 64 * GROUPS, COLUMNS = 43, ROWS = 11, DIM = 5, SAMPLES = 320 };
static const n2_stream stream = {12345, 3, 7};

/* Fowler, Noll and Vo's hash of some bytes. */
static uint64_t hash_of(const void *data, size_t bytes) {
    const unsigned char *at = data;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++) h = (h ^ at[i]) * 0x100000001b3u;
    return h;
}

static void assert_bits(uint64_t expected, const void *data, size_t bytes, int isa) {
    const uint64_t found = hash_of(data, bytes);
    if (found != expected)
        fail_msg("%s gives bits with hash %016" PRIx64 ", not %016" PRIx64,
                 n2_isa_name((n2_isa)isa), found, expected);
}

static void random_numbers_have_their_bits(void **state) {
    (void)state;
    _Alignas(64) static float x[N];
    for (int i = 0; i <= (int)n2_isa_current(); i++) {
        n2_fill_uniform_groups_table[i](stream, 1000003, GROUPS, x);
        assert_bits(0xfc47f6fd53733808u, x, sizeof x, i);
        n2_fill_normal_groups_table[i](stream, 1000003, GROUPS, x);
        assert_bits(0x34681c9f380d2529u, x, sizeof x, i);
    }
}

static void elementary_functions_have_their_bits(void **state) {
    (void)state;
    static float out[4][N];
    for (uint32_t i = 0; i < N; i++) {
        out[0][i] = n2_lane_exp(((float)i - N / 2) * 0.01f);
        out[1][i] = n2_lane_log(((float)i + 1) * 1e-3f);
        n2_lane_turn(i * 262147u, &out[2][i], &out[3][i]);
    }
    assert_bits(0xb89e9703109af7f3u, out, sizeof out, 0);
}

static void fill(double *x, size_t n, uint32_t step) {
    for (size_t i = 0; i < n; i += 64) {
        _Alignas(64) float z[64];
        n2_fill_normal((n2_stream){1, 2, step}, i, 64, z);
        for (size_t k = 0; k < 64 && i + k < n; k++) x[i + k] = (double)z[k] / 3;
    }
}

static void linear_algebra_has_its_bits(void **state) {
    (void)state;
    double m[ROWS * COLUMNS], c[ROWS], s[ROWS], sums[2];
    for (int i = 0; i <= (int)n2_isa_current(); i++) {
        fill(m, ROWS * COLUMNS, 1);
        fill(c, ROWS, 2);
        fill(s, ROWS, 3);
        n2_rotate_table[i](m, COLUMNS, COLUMNS, ROWS - 1, c, s);
        n2_subtract_rows_table[i](m, COLUMNS, m + COLUMNS, COLUMNS, ROWS - 1, c, 1);
        assert_bits(0xdbec295a2e0e7c62u, m, sizeof m, i);
        sums[0] = n2_dot_rows_table[i](m, m + COLUMNS, COLUMNS);
        sums[1] = n2_quadratic_rows_table[i](m, m + COLUMNS, m + 2 * COLUMNS, COLUMNS);
        assert_bits(0x73b85f175230ca26u, sums, sizeof sums, i);
    }
}

static void moments_have_their_bits(void **state) {
    (void)state;
    _Alignas(64) static float z[SAMPLES * DIM], weights[N2_LINEAR_GROUP * SAMPLES];
    static const float a[DIM] = {0.3f, -1.1f, 0.7f, 2, -0.2f};
    const n2_linear_side sides[2] = {{.a = a, .offset = -0.5f, .inv_m = 0.01f, .is_den = true},
                                     {.a = a, .offset = 0.25f, .inv_m = 0.3f}};
    n2_fill_normal(stream, 0, SAMPLES * DIM, z);
    for (int i = 0; i <= (int)n2_isa_current(); i++) {
        double sums[2 * (DIM + 1)] = {0};
        n2_linear_moments_table[i](sides, 2, z, SAMPLES, DIM, weights, sums);
        assert_bits(0x9132b45ae719ee73u, sums, sizeof sums, i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_numbers_have_their_bits),
        cmocka_unit_test(elementary_functions_have_their_bits),
        cmocka_unit_test(linear_algebra_has_its_bits),
        cmocka_unit_test(moments_have_their_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
