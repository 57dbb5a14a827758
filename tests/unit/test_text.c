/* Facts about growing text: it never loses a byte, and numbers survive the round trip. */
#include "close.h"
#include "failing_alloc.h"

#include "base/numerics.h"
#include "base/text.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

typedef struct fixture {
    failing_alloc memory;
    n2ce_ctx *ctx;
} fixture;

static int set_up(void **state) {
    static fixture f;
    f.memory = failing_alloc_new(NEVER, false);
    const n2ce_ctx_options options = failing_alloc_options(&f.memory, 1);
    *state = &f;
    return n2ce_ctx_new(&f.ctx, &options) == N2CE_OK ? 0 : -1;
}

static int tear_down(void **state) {
    fixture *f = *state;
    n2ce_ctx_free(f->ctx);
    return f->memory.live == 0 ? 0 : -1;
}

/* Takes the text and compares it. */
static void assert_text(n2_text *text, const char *expected) {
    n2ce_ctx *ctx = text->ctx;
    char *s = NULL;
    assert_int_equal(n2_text_take(text, &s), N2CE_OK);
    assert_string_equal(s, expected);
    n2_free(ctx, s);
}

/* ---- numbers ---------------------------------------------------------------- */

/* Digits that matter: without sign, point, zeros at either end and exponent. */
static int significant_digits(const char *s) {
    int n = 0, zeros = 0;
    for (; *s && *s != 'e'; s++) {
        if (*s < '0' || *s > '9' || (n == 0 && *s == '0')) continue;
        zeros = *s == '0' ? zeros + 1 : 0;
        n++;
    }
    return n - zeros;
}

static int fewest_digits(double value) {
    char trial[40];
    for (int digits = 1; digits < 17; digits++) {
        snprintf(trial, sizeof trial, "%.*e", digits - 1, value);
        if (strtod(trial, NULL) == value) return digits;
    }
    return 17;
}

static void assert_shortest(double value) {
    char buffer[32], full[400];
    assert_ptr_equal(n2_format_number(value, buffer), buffer);
    assert_close(strtod(buffer, NULL), value, 0, 0);
    if (value == floor(value) && fabs(value) < 1e15) {
        snprintf(full, sizeof full, "%.0f", value);
        assert_string_equal(buffer, full);
    } else if (significant_digits(buffer) > fewest_digits(value)) {
        fail_msg("%s can be written with %d digits", buffer, fewest_digits(value));
    }
}

/* Whole numbers are written in full, others with the fewest digits that read back. */
static void numbers_are_the_shortest_that_read_back(void **state) {
    (void)state;
    static const double edges[] = {
        0.1,         0.2,           1.0 / 3, 2.5e-5,  1e22,
        1e23,        1e-7,          DBL_MAX, DBL_MIN, 5e-324,
        DBL_EPSILON, 123456789.125, 1e15,    1e16,    9007199254740993.0};
    for (int i = -1000; i <= 1000; i++) assert_shortest(i * 10);
    for (size_t i = 0; i < COUNT_OF(edges); i++) {
        assert_shortest(edges[i]);
        assert_shortest(-edges[i]);
    }
    uint64_t random = 1;
    for (int i = 0; i < 20000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        double value;
        memcpy(&value, &random, sizeof value);
        if (isfinite(value)) assert_shortest(value);
        assert_shortest((double)(random >> 40) / 1000);
    }
}

/* The usual numbers look as a person would write them. */
static void usual_numbers_look_usual(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {{0, "0"},     {1, "1"},     {-1, "-1"},     {0.5, "0.5"},
                {0.1, "0.1"}, {0.2, "0.2"}, {2.75, "2.75"}, {-1.5, "-1.5"},
                {123, "123"}, {100, "100"}, {4000, "4000"}, {-20, "-20"}};
    char buffer[32];
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(n2_format_number(rows[i].value, buffer), rows[i].text);
}

/* In a buffer: inf, -inf, nan. In JSON, which has no such numbers: null. */
static void what_is_not_finite_has_a_name(void **state) {
    fixture *f = *state;
    char buffer[32];
    assert_string_equal(n2_format_number(N2_INFINITY, buffer), "inf");
    assert_string_equal(n2_format_number(-N2_INFINITY, buffer), "-inf");
    assert_non_null(strstr(n2_format_number(N2_NAN, buffer), "nan"));
    n2_text text = n2_text_new(f->ctx);
    n2_text_add_number(&text, N2_INFINITY);
    n2_text_add_number(&text, -N2_INFINITY);
    n2_text_add_number(&text, N2_NAN);
    n2_text_add_number(&text, 0.25);
    assert_text(&text, "nullnullnull0.25");
}

/* A host program whose locale writes 0,5 changes nothing: neither point nor length. */
static void the_locale_changes_nothing(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8",  "fr_FR.utf8",
                                        "de_DE",       "fr_FR",       "it_IT.UTF-8", "pl_PL.UTF-8"};
    const char *found = NULL;
    for (size_t i = 0; i < COUNT_OF(names) && !found; i++) found = setlocale(LC_ALL, names[i]);
    if (!found) skip();
    char half[32], tenth[32];
    n2_format_number(0.5, half);
    n2_format_number(0.1, tenth);
    setlocale(LC_ALL, "C");
    assert_string_equal(half, "0.5");
    assert_string_equal(tenth, "0.1");
}

/* ---- strings ------------------------------------------------------------------ */

/* Thousands of additions of every kind end up in order and terminated. */
static void text_grows_without_losing_a_byte(void **state) {
    fixture *f = *state;
    n2_text text = n2_text_new(f->ctx);
    for (int i = 0; i < 5000; i++) {
        n2_text_add(&text, "%d", i % 10);
        n2_text_add_raw(&text, "ab", 2);
        n2_text_pad(&text, 2);
        assert_int_equal(text.length, 5 * (i + 1));
        assert_int_equal(text.data[text.length], '\0');
    }
    char *s = NULL;
    assert_int_equal(n2_text_take(&text, &s), N2CE_OK);
    assert_int_equal(strlen(s), 25000);
    for (int i = 0; i < 5000; i++) {
        const char expected[] = {(char)('0' + i % 10), 'a', 'b', ' ', ' '};
        assert_memory_equal(s + 5 * i, expected, 5);
    }
    n2_free(f->ctx, s);
}

/* One addition may be much larger than all before, and may fill a block exactly. */
static void additions_of_any_length_fit(void **state) {
    fixture *f = *state;
    static char long_one[5000];
    memset(long_one, 'x', sizeof long_one - 1);
    for (size_t n = 250; n < 260; n++) {
        n2_text text = n2_text_new(f->ctx);
        n2_text_add(&text, "%.*s", (int)n, long_one);
        n2_text_add(&text, "%s", long_one);
        assert_int_equal(text.length, n + 4999);
        assert_int_equal(strlen(text.data), n + 4999);
        n2_text_free(&text);
    }
}

/* A text to which nothing was added is the empty string. */
static void an_empty_text_is_the_empty_string(void **state) {
    fixture *f = *state;
    n2_text text = n2_text_new(f->ctx);
    assert_text(&text, "");
    n2_text_add(&text, "%s", "");
    n2_text_pad(&text, 0);
    assert_text(&text, "");
    n2_text_free(&text);
}

/* JSON strings: quotes, backslashes and control characters are escaped, the rest is not. */
static void json_strings_are_escaped(void **state) {
    fixture *f = *state;
    n2_text text = n2_text_new(f->ctx);
    n2_text_add_json_string(&text, "a \"b\" \\ /\n\t\x01\x1f\x7f \xc3\xa9 %s");
    assert_text(&text, "\"a \\\"b\\\" \\\\ /\\u000a\\u0009\\u0001\\u001f\x7f \xc3\xa9 %s\"");
    n2_text_add_json_string(&text, "");
    assert_text(&text, "\"\"");
    n2_text_add_json_string(&text, "caf\xe9/\xe9\x80"); /* Latin-1, as a name of a file may be */
    assert_text(&text, "\"caf\xef\xbf\xbd/\xef\xbf\xbd\xef\xbf\xbd\"");
}

/* XML: & < > \" become references, the rest stays. */
static void xml_is_escaped(void **state) {
    fixture *f = *state;
    n2_text text = n2_text_new(f->ctx);
    n2_text_add_xml(&text, "a < b && \"c\" > 'd' \xce\xbb %d");
    assert_text(&text, "a &lt; b &amp;&amp; &quot;c&quot; &gt; 'd' \xce\xbb %d");
}

/* ---- failure ------------------------------------------------------------------ */

static void write_everything(n2_text *text) {
    static char filler[3000];
    memset(filler, 'y', sizeof filler - 1);
    n2_text_add(text, "%s", "start");
    n2_text_add_raw(text, filler, sizeof filler - 1);
    n2_text_pad(text, 3000);
    n2_text_add_number(text, 0.5);
    n2_text_add_json_string(text, filler);
    n2_text_add_xml(text, filler);
}

/* After one failed allocation every addition does nothing, and taking reports it. */
static void failure_is_sticky(void **state) {
    fixture *f = *state;
    n2_text text = n2_text_new(f->ctx);
    n2_text_add(&text, "before");
    f->memory.fail_at = f->memory.calls; /* once; memory is there again afterwards */
    write_everything(&text);
    assert_true(text.failed);
    const size_t calls = f->memory.calls;
    write_everything(&text);
    assert_int_equal(f->memory.calls, calls);
    char *s = (char *)1;
    assert_int_equal(n2_text_take(&text, &s), N2CE_ENOMEM);
    assert_null(s);
    assert_int_equal(f->memory.live, 1); /* the context */
}

/* Whichever allocation fails: out of memory or the whole text, nothing between. */
static void no_failure_leaves_half_a_text(void **state) {
    fixture *f = *state;
    bool succeeded = false;
    for (size_t n = 0; !succeeded; n++) {
        assert_true(n < 100);
        f->memory.fail_at = f->memory.calls + n;
        n2_text text = n2_text_new(f->ctx);
        write_everything(&text);
        char *s = NULL;
        const n2ce_status status = n2_text_take(&text, &s);
        succeeded = status == N2CE_OK;
        if (succeeded)
            assert_int_equal(strlen(s), 5 + 2999 + 3000 + 3 + 3001 + 2999);
        else
            assert_int_equal(status, N2CE_ENOMEM);
        n2_free(f->ctx, s);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(numbers_are_the_shortest_that_read_back),
        TEST(usual_numbers_look_usual),
        TEST(what_is_not_finite_has_a_name),
        TEST(the_locale_changes_nothing),
        TEST(text_grows_without_losing_a_byte),
        TEST(additions_of_any_length_fit),
        TEST(an_empty_text_is_the_empty_string),
        TEST(json_strings_are_escaped),
        TEST(xml_is_escaped),
        TEST(failure_is_sticky),
        TEST(no_failure_leaves_half_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
