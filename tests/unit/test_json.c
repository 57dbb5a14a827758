/* Facts about reading JSON values; strings, objects and lists are also read in test_safetensors.c.
 */
#include "close.h"
#include "io/json.h"

#include <math.h>
#include <string.h>

static n2ce_ctx *ctx;

static n2ce_status number_of(const char *text, double *out) {
    char strings[64];
    n2_json json = n2_json_new(ctx, "a text", text, strlen(text), strings);
    N2_TRY(n2_json_number(&json, out));
    return n2_json_end(&json);
}

static void numbers_are_read_exactly(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } all[] = {{"0", 0},           {" -12 ", -12},
               {"0.1", 0.1},       {"1e3", 1000},
               {"-2.5E-1", -0.25}, {"-6.284787986942299", -6.284787986942299},
               {"1e-310", 1e-310}, {"9007199254740993", 9007199254740992.0}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        double x;
        assert_int_equal(number_of(all[i].text, &x), N2CE_OK);
        assert_close(x, all[i].value, 0, 0);
    }
}

static void null_is_not_a_number(void **state) {
    (void)state;
    double x = 1;
    assert_int_equal(number_of("null", &x), N2CE_OK);
    assert_true(isnan(x));
}

static void other_values_are_refused(void **state) {
    (void)state;
    static const char *const all[] = {"",   "nul", "nan", "\"1\"", "[1]", "+1",    ".5",
                                      "1.", "01",  "1e",  "0x10",  "inf", "1e999", "true"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        double x;
        assert_int_equal(number_of(all[i], &x), N2CE_EDATA);
        assert_non_null(strstr(n2ce_errmsg(ctx), "a text: the JSON text has"));
    }
}

static void strings_are_told_from_numbers(void **state) {
    (void)state;
    char strings[16];
    n2_json text = n2_json_new(ctx, "a text", "  \"x\"", 5, strings);
    n2_json number = n2_json_new(ctx, "a text", " 1", 2, strings);
    assert_true(n2_json_at_string(&text));
    assert_false(n2_json_at_string(&number));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_exactly),
        cmocka_unit_test(null_is_not_a_number),
        cmocka_unit_test(other_values_are_refused),
        cmocka_unit_test(strings_are_told_from_numbers),
    };
    n2ce_ctx_new(&ctx, NULL);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    n2ce_ctx_free(ctx);
    return failed;
}
