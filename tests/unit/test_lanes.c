/* Facts about the elementary functions of the kernels: close to libm on their domains. */
#include "close.h"

#include "base/lanes.h"

static const double stated_error = 3e-7;

/* ln(u) has relative error below 3e-7 for normal u of every size. */
static void log_is_accurate_for_every_normal_number(void **state) {
    (void)state;
    for (uint32_t bits = 0x00800000u; bits < 0x7f800000u; bits += 4999) {
        const float u = n2_from_bits(bits);
        assert_close((double)n2_lane_log(u), log((double)u), stated_error, 0);
    }
}

/* Around 1, where ln(u) vanishes, the error is still relative; ln(1) is 0. */
static void log_is_accurate_near_one(void **state) {
    (void)state;
    assert_true(n2_lane_log(1.0f) == 0.0f);
    for (uint32_t d = 1; d < 400000; d += 7) {
        const float below = n2_from_bits(0x3f800000u - d), above = n2_from_bits(0x3f800000u + d);
        assert_close((double)n2_lane_log(below), log((double)below), stated_error, 0);
        assert_close((double)n2_lane_log(above), log((double)above), stated_error, 0);
    }
}

/* exp(x) has relative error below 3e-7 on [-87, 80]. */
static void exp_is_accurate_on_its_domain(void **state) {
    (void)state;
    for (int i = 0; i <= 1670000; i += 3) {
        const float x = -87.0f + (float)i * 1e-4f;
        assert_close((double)n2_lane_exp(x), exp((double)x), stated_error, 0);
    }
    for (float x = 1.0f; x > 1e-30f; x /= 1.7f) {
        assert_close((double)n2_lane_exp(x), exp((double)x), stated_error, 0);
        assert_close((double)n2_lane_exp(-x), exp(-(double)x), stated_error, 0);
    }
    assert_true(n2_lane_exp(0.0f) == 1.0f);
}

/* Beyond its domain exp stays at the ends: normal numbers, never 0 or infinity. */
static void exp_is_clamped_at_both_ends(void **state) {
    (void)state;
    static const float beyond[] = {80.0001f, 88.8f, 1e4f, FLT_MAX, INFINITY};
    for (size_t i = 0; i < COUNT_OF(beyond); i++) {
        assert_true(n2_lane_exp(beyond[i]) == n2_lane_exp(80.0f));
        assert_true(n2_lane_exp(-10.0f - beyond[i]) == n2_lane_exp(-87.0f));
    }
    assert_close((double)n2_lane_exp(80.0f), exp(80), stated_error, 0);
    assert_close((double)n2_lane_exp(-87.0f), exp(-87), stated_error, 0);
    assert_true(n2_lane_exp(-87.0f) >= FLT_MIN);
    assert_true(isfinite(n2_lane_exp(80.0f)));
}

/* exp never decreases by more than its error. */
static void exp_is_monotone_up_to_its_error(void **state) {
    (void)state;
    float last = n2_lane_exp(-87.0f);
    for (int i = 1; i < 1670000; i += 5) {
        const float y = n2_lane_exp(-87.0f + (float)i * 1e-4f);
        assert_true((double)y >= (double)last * (1 - stated_error));
        last = y;
    }
}

static void assert_turn(uint32_t w) {
    float c, s;
    n2_lane_turn(w, &c, &s);
    const double angle = (double)w * (2 * 3.14159265358979323846 / 4294967296.0);
    assert_close((double)c, cos(angle), 0, stated_error);
    assert_close((double)s, sin(angle), 0, stated_error);
}

/* cos and sin of a fraction of a turn have absolute error below 3e-7. */
static void turn_is_accurate_all_the_way_round(void **state) {
    (void)state;
    for (uint64_t w = 0; w < (uint64_t)1 << 32; w += 9973) assert_turn((uint32_t)w);
    for (uint32_t eighth = 0; eighth < 8; eighth++)
        for (uint32_t d = 0; d < 1000; d++) {
            assert_turn((eighth << 29) + d);
            assert_turn((eighth << 29) - d);
        }
}

/* Quarter turns are exact. */
static void quarter_turns_are_exact(void **state) {
    (void)state;
    static const float cosines[] = {1, 0, -1, 0}, sines[] = {0, 1, 0, -1};
    for (uint32_t q = 0; q < 4; q++) {
        float c, s;
        n2_lane_turn(q << 30, &c, &s);
        assert_true(c == cosines[q] && s == sines[q]);
    }
}

/* Near a multiple of half a turn the small sine is accurate relative to itself. */
static void small_sines_keep_their_digits(void **state) {
    (void)state;
    for (uint32_t w = 1; w < 1u << 28; w += w / 16 + 1) {
        float c, s;
        n2_lane_turn(w, &c, &s);
        const double angle = (double)w * (2 * 3.14159265358979323846 / 4294967296.0);
        assert_close((double)s, sin(angle), stated_error, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_is_accurate_for_every_normal_number),
        cmocka_unit_test(log_is_accurate_near_one),
        cmocka_unit_test(exp_is_accurate_on_its_domain),
        cmocka_unit_test(exp_is_clamped_at_both_ends),
        cmocka_unit_test(exp_is_monotone_up_to_its_error),
        cmocka_unit_test(turn_is_accurate_all_the_way_round),
        cmocka_unit_test(quarter_turns_are_exact),
        cmocka_unit_test(small_sines_keep_their_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
