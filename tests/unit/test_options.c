/* Facts about option tables: what is read, what is refused, and that refusals change nothing. */
#include "close.h"
#include "failing_alloc.h"

#include "base/options.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

static const n2ce_option table[] = {
    {"verbose", 'v', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL, "a switch"},
    {"runs", 'r', N2CE_OPTION_COUNT, "100", 1, 1e9, NULL, "R", "a count"},
    {"dim", 'd', N2CE_OPTION_COUNT, "auto", 1, 10000, NULL, "D", "a count or auto"},
    {"rate", 0, N2CE_OPTION_REAL, "0.2", 1e-12, 100, NULL, "ETA", "a number"},
    {"shift", 0, N2CE_OPTION_REAL, "0", 0, 0, NULL, "X", "any number"},
    {"target", 0, N2CE_OPTION_REALS, "auto", 0, 0, NULL, "LIST", "numbers or auto"},
    {"levels", 'M', N2CE_OPTION_REALS, "1,10", 1, 1e300, NULL, "LIST", "numbers from 1"},
    {"families", 0, N2CE_OPTION_WORDS, "red,blue", 0, 0, "red|green|blue", "LIST", "words"},
    {"unit", 'u', N2CE_OPTION_WORD, "nats", 0, 0, "nats|bits", "UNIT", "a word"},
    {"report", 0, N2CE_OPTION_PATH, "out", 0, 0, NULL, "DIR", "a folder"},
    {0},
};

typedef struct fixture {
    failing_alloc memory;
    n2ce_ctx *ctx;
    n2ce_options *options;
} fixture;

static int set_up(void **state) {
    static fixture f;
    f.memory = failing_alloc_new(NEVER, false);
    const n2ce_ctx_options ctx_options = failing_alloc_options(&f.memory, 1);
    *state = &f;
    if (n2ce_ctx_new(&f.ctx, &ctx_options) != N2CE_OK) return -1;
    return n2ce_options_new(f.ctx, table, &f.options) == N2CE_OK ? 0 : -1;
}

static int tear_down(void **state) {
    fixture *f = *state;
    n2ce_options_free(f->options);
    n2ce_ctx_free(f->ctx);
    return f->memory.live == 0 ? 0 : -1;
}

static void set(fixture *f, const char *name, const char *text) {
    assert_int_equal(n2ce_options_set(f->options, name, text), N2CE_OK);
    assert_string_equal(n2ce_options_get(f->options, name), text);
}

/* The value is refused with a message that names the option; the old one stays. */
static void assert_refused(fixture *f, const char *name, const char *text) {
    char *old = strdup(n2ce_options_get(f->options, name));
    assert_non_null(old);
    const n2ce_status status = n2ce_options_set(f->options, name, text);
    const bool kept = strcmp(n2ce_options_get(f->options, name), old) == 0;
    free(old);
    if (status != N2CE_EINVAL) fail_msg("--%s accepts \"%.40s\"", name, text);
    assert_true(kept);
    assert_non_null(strstr(n2ce_errmsg(f->ctx), n2ce_option_find(table, name)->name));
}

static void assert_list(fixture *f, const char *name, const double *expected, size_t n_expected) {
    n2_arena arena = n2_arena_new(f->ctx);
    double *values = NULL;
    size_t n = 99;
    assert_int_equal(n2_options_reals(f->options, name, &arena, &values, &n), N2CE_OK);
    assert_int_equal(n, n_expected);
    for (size_t i = 0; i < n; i++) assert_close(values[i], expected[i], 0, 0);
    n2_arena_free(&arena);
}

/* ---- reading ------------------------------------------------------------------- */

/* Untouched options have the defaults of the table. */
static void defaults_come_from_the_table(void **state) {
    fixture *f = *state;
    for (const n2ce_option *row = table; row->name; row++)
        assert_string_equal(n2ce_options_get(f->options, row->name), row->fallback);
    assert_false(n2_options_flag(f->options, "verbose"));
    assert_int_equal(n2_options_count(f->options, "runs"), 100);
    assert_true(n2_options_is_auto(f->options, "dim"));
    assert_false(n2_options_is_auto(f->options, "runs"));
    assert_close(n2ce_options_number(f->options, "rate"), 0.2, 0, 0);
    assert_list(f, "target", NULL, 0);
    assert_list(f, "levels", (const double[]){1, 10}, 2);
    assert_true(n2_options_has_word(f->options, "families", "red"));
    assert_false(n2_options_has_word(f->options, "families", "green"));
}

/* A whole number may be written 1000, 1e3, 1K or 1k, and a million 1M. */
static void counts_understand_suffixes(void **state) {
    fixture *f = *state;
    static const struct {
        const char *text;
        uint64_t value;
    } rows[] = {{"1", 1},        {"1000", 1000}, {"1e3", 1000},       {"1K", 1000}, {"2k", 2000},
                {"2M", 2000000}, {"1.5K", 1500}, {"1e9", 1000000000}, {"+7", 7},    {" 8 ", 8},
                {"0.5e1", 5},    {"007", 7},     {"1000.0", 1000}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        set(f, "runs", rows[i].text);
        assert_int_equal(n2_options_count(f->options, "runs"), rows[i].value);
    }
}

/* Numbers may be written in any of C's decimal ways. */
static void reals_are_read(void **state) {
    fixture *f = *state;
    static const char *const texts[] = {"0.5", "-3", "1e-300", "-1.25E+2", ".5", "5.", "1e300"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        set(f, "shift", texts[i]);
        assert_close(n2ce_options_number(f->options, "shift"), strtod(texts[i], NULL), 0, 0);
    }
}

/* The public number of an option: NaN where there is none, or not exactly one. */
static void options_that_are_no_number_are_nan(void **state) {
    fixture *f = *state;
    static const char *const names[] = {"dim", "target", "levels", "families", "unit", "verbose"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_true(isnan(n2ce_options_number(f->options, names[i])));
    assert_true(isnan(n2ce_options_number(f->options, "unknown")));
    set(f, "dim", "2K");
    assert_close(n2ce_options_number(f->options, "dim"), 2000, 0, 0);
    assert_close(n2ce_options_number(f->options, "d"), 2000, 0, 0);
    assert_close(n2ce_options_number(f->options, "runs"), 100, 0, 0);
}

/* Lists are split at commas, spaces around numbers do not matter. */
static void lists_are_read(void **state) {
    fixture *f = *state;
    set(f, "target", "1.5,-0.8");
    assert_list(f, "target", (const double[]){1.5, -0.8}, 2);
    set(f, "target", " 1 , 2,3 ");
    assert_list(f, "target", (const double[]){1, 2, 3}, 3);
    set(f, "target", "-0.25");
    assert_list(f, "target", (const double[]){-0.25}, 1);
    set(f, "target", "auto");
    assert_list(f, "target", NULL, 0);
}

/* A list may have thousands of numbers. */
static void long_lists_are_read(void **state) {
    enum { N = 5000 };
    fixture *f = *state;
    static char text[2 * N];
    static double ones[N];
    for (size_t i = 0; i < N; i++) {
        text[2 * i] = '1';
        text[2 * i + 1] = i + 1 < N ? ',' : '\0';
        ones[i] = 1;
    }
    set(f, "levels", text);
    assert_list(f, "levels", ones, N);
}

/* Switches, words and paths. */
static void words_and_paths_are_read(void **state) {
    fixture *f = *state;
    set(f, "verbose", "true");
    assert_true(n2_options_flag(f->options, "verbose"));
    set(f, "families", "green");
    assert_true(n2_options_has_word(f->options, "families", "green"));
    assert_false(n2_options_has_word(f->options, "families", "red"));
    assert_false(n2_options_has_word(f->options, "families", "gree"));
    set(f, "families", "blue,red,green");
    assert_true(n2_options_has_word(f->options, "families", "red"));
    set(f, "unit", "bits");
    set(f, "report", "a folder/with, odd|name");
}

/* A letter stands for its option; a value set again replaces the last. */
static void letters_are_names(void **state) {
    fixture *f = *state;
    assert_int_equal(n2ce_options_set(f->options, "r", "5"), N2CE_OK);
    assert_int_equal(n2_options_count(f->options, "runs"), 5);
    set(f, "runs", "6");
    assert_string_equal(n2ce_options_get(f->options, "r"), "6");
    assert_ptr_equal(n2ce_option_find(table, "M"), n2ce_option_find(table, "levels"));
    assert_null(n2ce_option_find(table, "m"));
    assert_null(n2ce_option_find(table, ""));
    assert_null(n2ce_option_find(table, "run"));
    assert_null(n2ce_options_get(f->options, "run"));
}

/* ---- text, and options without a default ------------------------------------------ */

static const n2ce_option bare_table[] = {
    {"switch", 0, N2CE_OPTION_FLAG, NULL, 0, 0, NULL, NULL, "a switch"},
    {"count", 0, N2CE_OPTION_COUNT, NULL, 0, 9, NULL, "N", "a count"},
    {"list", 0, N2CE_OPTION_REALS, NULL, 0, 0, NULL, "LIST", "numbers"},
    {"words", 0, N2CE_OPTION_WORDS, NULL, 0, 0, "red|blue", "LIST", "words"},
    {"file", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "FILE", "a file"},
    {"name", 0, N2CE_OPTION_TEXT, NULL, 0, 0, NULL, "NAME", "any text"},
    {0},
};

static int set_up_bare(void **state) {
    const int code = set_up(state);
    fixture *f = *state;
    if (code != 0) return code;
    n2ce_options_free(f->options);
    return n2ce_options_new(f->ctx, bare_table, &f->options) == N2CE_OK ? 0 : -1;
}

/* Text is never refused, not even the empty one, and comes back as it was. */
static void any_text_is_text(void **state) {
    fixture *f = *state;
    static const char *const texts[] = {"",     " ",        "x > 3 && y",     "a,b|c", "auto",
                                        "-",    "--seed=1", "1e999",          "nan",   "\xff\x01",
                                        "true", "\"\\\n",   "\xce\xb1 and b", "0x10"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) set(f, "name", texts[i]);
    assert_true(isnan(n2ce_options_number(f->options, "name")));
}

/* What was not set and has no default is nothing: not true, not auto, no number, no list. */
static void without_a_default_there_is_no_value(void **state) {
    fixture *f = *state;
    n2_arena arena = n2_arena_new(f->ctx);
    double *values = (double *)1;
    size_t n = 99;
    for (const n2ce_option *row = bare_table; row->name; row++) {
        assert_null(n2ce_options_get(f->options, row->name));
        assert_false(n2_options_is_auto(f->options, row->name));
        assert_false(n2_options_flag(f->options, row->name));
        assert_false(n2_options_has_word(f->options, row->name, "red"));
        assert_true(isnan(n2ce_options_number(f->options, row->name)));
    }
    assert_int_equal(n2_options_reals(f->options, "list", &arena, &values, &n), N2CE_OK);
    assert_null(values);
    assert_int_equal(n, 0);
    n2_arena_free(&arena);
}

/* ---- refusing ------------------------------------------------------------------- */

/* What is not a finite decimal number is refused by every option that wants one. */
static void what_is_no_number_is_refused(void **state) {
    fixture *f = *state;
    static const char *const names[] = {"runs", "dim", "rate", "shift", "target", "levels"};
    static const char *const texts[] = {
        "",       " ",    ",",     "nan", "-nan", "inf",  "-inf", "infinity", "1e999",
        "-1e999", "0x10", "0X1p3", "abc", "1a",   "1 2",  "--1",  "1e",       "e5",
        "1;2",    "1..2", "K",     "1KK", "1G",   "\xff", "1\n2"};
    set(f, "runs", "7");
    for (size_t k = 0; k < COUNT_OF(names); k++)
        for (size_t i = 0; i < COUNT_OF(texts); i++) assert_refused(f, names[k], texts[i]);
}

/* Lists with holes, and lists where one number is wanted, are refused. */
static void lists_with_holes_are_refused(void **state) {
    fixture *f = *state;
    static const char *const texts[] = {"1,,2",    ",1",  "1,",     ",,",      "1, ,2",  "1,nan",
                                        "1,inf,2", "1,x", "1,0x10", "1e999,1", "auto,1", "1,auto"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_refused(f, "target", texts[i]);
        assert_refused(f, "levels", texts[i]);
    }
    assert_refused(f, "runs", "1,2");
    assert_refused(f, "rate", "1,2");
    assert_refused(f, "levels", "2K");
}

/* A count is whole. */
static void fractions_are_no_counts(void **state) {
    fixture *f = *state;
    assert_refused(f, "runs", "1.5");
    assert_refused(f, "runs", "1e-3");
    assert_refused(f, "runs", "1.0005K");
}

/* 16.1K is 16100, although 16.1 times 1000 is not when it is rounded. */
static void suffixes_are_decimal(void **state) {
    fixture *f = *state;
    set(f, "runs", "16.1K");
    assert_int_equal(n2_options_count(f->options, "runs"), 16100);
    set(f, "runs", "1.001K");
    assert_int_equal(n2_options_count(f->options, "runs"), 1001);
}

/* The ends of a range are inside it, what is beyond is refused. */
static void ranges_are_kept(void **state) {
    fixture *f = *state;
    set(f, "runs", "1");
    set(f, "runs", "1000000000");
    assert_refused(f, "runs", "0");
    assert_refused(f, "runs", "-1");
    assert_refused(f, "runs", "1000000001");
    set(f, "rate", "100");
    assert_refused(f, "rate", "0");
    assert_refused(f, "rate", "100.0001");
    set(f, "levels", "1,1e300");
    assert_refused(f, "levels", "10,0.99");
    assert_refused(f, "levels", "2e300");
    set(f, "shift", "-1e300"); /* no range */
}

/* "auto" is for options whose default it is. */
static void auto_is_for_options_that_have_it(void **state) {
    fixture *f = *state;
    set(f, "dim", "3");
    set(f, "dim", "auto");
    assert_true(n2_options_is_auto(f->options, "dim"));
    assert_refused(f, "runs", "auto");
    assert_refused(f, "levels", "auto");
    assert_refused(f, "dim", "AUTO");
    assert_refused(f, "dim", "auto ");
}

/* Words must be among the choices, whole. */
static void unknown_words_are_refused(void **state) {
    fixture *f = *state;
    static const char *const lists[] = {"",          ",",        "red,",   ",red",
                                        "red,,blue", "re",       "redd",   "Red",
                                        "red, blue", "red;blue", "purple", "red,purple"};
    for (size_t i = 0; i < COUNT_OF(lists); i++) assert_refused(f, "families", lists[i]);
    static const char *const words[] = {"", "nat", "natss", "nats,bits", "NATS", " nats"};
    for (size_t i = 0; i < COUNT_OF(words); i++) assert_refused(f, "unit", words[i]);
    static const char *const flags[] = {"", "yes", "1", "TRUE", "true "};
    for (size_t i = 0; i < COUNT_OF(flags); i++) assert_refused(f, "verbose", flags[i]);
    assert_refused(f, "report", "");
}

/* The bar that separates choices in the table is no part of a word. */
static void the_bar_of_the_table_is_no_word(void **state) {
    fixture *f = *state;
    assert_refused(f, "unit", "nats|bits");
    assert_refused(f, "families", "red|green");
    assert_refused(f, "families", "|");
}

/* A value of a megabyte is refused or kept, without harm to anything. */
static void very_long_values_do_no_harm(void **state) {
    enum { N = 1 << 20 };
    fixture *f = *state;
    char *text = malloc(N + 1);
    assert_non_null(text);
    memset(text, 'a', N);
    text[N] = '\0';
    static const char *const names[] = {"verbose", "runs", "rate", "target", "families", "unit"};
    for (size_t i = 0; i < COUNT_OF(names); i++) assert_refused(f, names[i], text);
    set(f, "report", text);
    assert_int_equal(n2ce_options_set(f->options, text, "1"), N2CE_EINVAL);
    memset(text, '9', N);
    assert_refused(f, "rate", text); /* 10^(10^6) */
    assert_true(strlen(n2ce_errmsg(f->ctx)) < 4096);
    free(text);
}

/* ---- unknown names --------------------------------------------------------------- */

/* An unknown name is refused and the nearest known one suggested. */
static void unknown_names_suggest_the_nearest(void **state) {
    fixture *f = *state;
    static const char *const pairs[][2] = {{"runz", "\"runs\""},
                                           {"tarqet", "\"target\""},
                                           {"familes", "\"families\""},
                                           {"verbos", "\"verbose\""}};
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        assert_int_equal(n2ce_options_set(f->options, pairs[i][0], "1"), N2CE_EINVAL);
        assert_non_null(strstr(n2ce_errmsg(f->ctx), pairs[i][0]));
        assert_non_null(strstr(n2ce_errmsg(f->ctx), pairs[i][1]));
    }
    assert_int_equal(n2ce_options_set(f->options, "xyzzyxyzzy", "1"), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(f->ctx), "xyzzyxyzzy"));
    assert_null(strstr(n2ce_errmsg(f->ctx), "did you mean"));
}

static void assert_nearest(const char *word, const char *expected) {
    static const char *const words[] = {"magnitude", "magnitudes", "dim", "seed", "step-size"};
    const char *found = n2ce_nearest_word(word, words, COUNT_OF(words));
    if (!expected)
        assert_null(found);
    else
        assert_string_equal(found, expected);
}

/* The nearest word is at most a third of its letters away, at least one. */
static void the_nearest_word_is_near(void **state) {
    (void)state;
    assert_nearest("magnitude", "magnitude");   /* 0 */
    assert_nearest("magnitudes", "magnitudes"); /* 0 beats 1 */
    assert_nearest("magnitud", "magnitude");    /* 1 */
    assert_nearest("magnitudess", "magnitudes");
    assert_nearest("magentude", "magnitude"); /* 2 of 9 */
    assert_nearest("mgntde", NULL);           /* 3 of 6 */
    assert_nearest("di", "dim");              /* 1 of 2: always allowed */
    assert_nearest("mid", NULL);              /* 2 of 3 */
    assert_nearest("sede", "seed");           /* swapped neighbours are one edit */
    assert_nearest("stepsize", "step-size");
    assert_nearest("", NULL);
    assert_null(n2ce_nearest_word("dim", NULL, 0));
}

/* Words too long to compare are simply far away. */
static void a_very_long_word_is_near_to_nothing(void **state) {
    (void)state;
    char word[200];
    memset(word, 'm', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    assert_nearest(word, NULL);
}

/* ---- JSON and memory --------------------------------------------------------------- */

static void assert_json(fixture *f, const char *expected) {
    char json[1000] = "";
    char *taken = NULL;
    n2_text text = n2_text_new(f->ctx);
    n2_options_json(f->options, &text);
    assert_int_equal(n2_text_take(&text, &taken), N2CE_OK);
    strncpy(json, taken, sizeof json - 1);
    n2_free(f->ctx, taken);
    assert_string_equal(json, expected);
}

/* The JSON echo has every option in order, numbers as numbers, the rest escaped. */
static void json_echoes_every_option(void **state) {
    fixture *f = *state;
    assert_json(f, "{\"verbose\": false, \"runs\": 100, \"dim\": \"auto\", \"rate\": 0.2, "
                   "\"shift\": 0, \"target\": \"auto\", \"levels\": \"1,10\", "
                   "\"families\": \"red,blue\", \"unit\": \"nats\", \"report\": \"out\"}");
    set(f, "verbose", "true");
    set(f, "runs", "2K");
    set(f, "dim", "5");
    set(f, "rate", "1e-3");
    set(f, "report", "a\"b\\c");
    assert_json(f, "{\"verbose\": true, \"runs\": 2000, \"dim\": 5, \"rate\": 0.001, "
                   "\"shift\": 0, \"target\": \"auto\", \"levels\": \"1,10\", "
                   "\"families\": \"red,blue\", \"unit\": \"nats\", \"report\": \"a\\\"b\\\\c\"}");
}

/* What has no value is null; text is a string, whatever it looks like. */
static void json_echoes_text_and_nothing(void **state) {
    fixture *f = *state;
    assert_json(f, "{\"switch\": null, \"count\": null, \"list\": null, \"words\": null, "
                   "\"file\": null, \"name\": null}");
    set(f, "count", "7");
    set(f, "file", "-");
    set(f, "name", "5");
    assert_json(f, "{\"switch\": null, \"count\": 7, \"list\": null, \"words\": null, "
                   "\"file\": \"-\", \"name\": \"5\"}");
    set(f, "name", "a\tb \"c\"");
    assert_json(f, "{\"switch\": null, \"count\": 7, \"list\": null, \"words\": null, "
                   "\"file\": \"-\", \"name\": \"a\\u0009b \\\"c\\\"\"}");
}

/* ---- the tables of the tasks ------------------------------------------------------- */

/* Every operand is the long name of an option of its task, and stands there once. */
static void operands_are_options_of_their_task(void **state) {
    (void)state;
    for (size_t i = 0; n2ce_task_at(i); i++) {
        const n2ce_task *task = n2ce_task_at(i);
        assert_non_null(n2ce_task_operands(task));
        const n2ce_option *seen[8];
        size_t n = 0;
        for (const char *at = n2ce_task_operands(task); *at; at += *at == ' ') {
            char name[64] = "";
            const size_t length = strcspn(at, " ");
            assert_true(length > 0 && length < sizeof name && n < COUNT_OF(seen));
            memcpy(name, at, length);
            seen[n] = n2ce_option_find(n2ce_task_options(task), name);
            if (!seen[n]) fail_msg("%s has no option \"%s\"", n2ce_task_name(task), name);
            for (size_t k = 0; k < n; k++) assert_ptr_not_equal(seen[k], seen[n]);
            assert_string_equal(seen[n++]->name, name);
            at += length;
        }
    }
}

/* Without memory for the new value the old one stays. */
static void out_of_memory_leaves_the_old_value(void **state) {
    fixture *f = *state;
    set(f, "runs", "5");
    f->memory.fail_at = f->memory.calls;
    assert_int_equal(n2ce_options_set(f->options, "runs", "6"), N2CE_ENOMEM);
    assert_string_equal(n2ce_options_get(f->options, "runs"), "5");
    f->memory.fail_at = f->memory.calls;
    n2ce_options *none = (n2ce_options *)1;
    assert_int_equal(n2ce_options_new(f->ctx, table, &none), N2CE_ENOMEM);
    assert_null(none);
    n2ce_options_free(NULL);
}

/* A host program whose locale writes 0,5 does not change how values are read. */
static void the_locale_changes_nothing(void **state) {
    fixture *f = *state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8",  "fr_FR.utf8",
                                        "de_DE",       "fr_FR",       "it_IT.UTF-8", "pl_PL.UTF-8"};
    const char *found = NULL;
    for (size_t i = 0; i < COUNT_OF(names) && !found; i++) found = setlocale(LC_ALL, names[i]);
    if (!found) skip();
    const double fallback = n2ce_options_number(f->options, "rate");
    const n2ce_status status = n2ce_options_set(f->options, "shift", "0.5");
    const double value = n2ce_options_number(f->options, "shift");
    setlocale(LC_ALL, "C");
    assert_close(fallback, 0.2, 0, 0);
    assert_int_equal(status, N2CE_OK);
    assert_close(value, 0.5, 0, 0);
}

#define TEST(name)      cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_BARE(name) cmocka_unit_test_setup_teardown(name, set_up_bare, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(defaults_come_from_the_table),
        TEST(counts_understand_suffixes),
        TEST(reals_are_read),
        TEST(options_that_are_no_number_are_nan),
        TEST(lists_are_read),
        TEST(long_lists_are_read),
        TEST(words_and_paths_are_read),
        TEST_BARE(any_text_is_text),
        TEST_BARE(without_a_default_there_is_no_value),
        TEST(letters_are_names),
        TEST(what_is_no_number_is_refused),
        TEST(lists_with_holes_are_refused),
        TEST(fractions_are_no_counts),
        TEST(suffixes_are_decimal),
        TEST(ranges_are_kept),
        TEST(auto_is_for_options_that_have_it),
        TEST(unknown_words_are_refused),
        TEST(the_bar_of_the_table_is_no_word),
        TEST(very_long_values_do_no_harm),
        TEST(unknown_names_suggest_the_nearest),
        TEST(the_nearest_word_is_near),
        TEST(a_very_long_word_is_near_to_nothing),
        TEST(json_echoes_every_option),
        TEST_BARE(json_echoes_text_and_nothing),
        TEST(operands_are_options_of_their_task),
        TEST(out_of_memory_leaves_the_old_value),
        TEST(the_locale_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
