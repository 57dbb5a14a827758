/* One vocabulary over all verbs: an option is called the same wherever it means the same, and a
 * name or a letter means one thing. What the program adds to every verb is looked at in
 * tests/cli/letters_mean_one_thing.sh. */
#include "close.h"

#include "n2ce.h"

#include <string.h>

/* A whole number is a number, and words of a list are a text: the stricter reading is fine. */
static n2ce_option_type kind_of(n2ce_option_type type) {
    if (type == N2CE_OPTION_COUNT) return N2CE_OPTION_REAL;
    if (type == N2CE_OPTION_WORDS) return N2CE_OPTION_TEXT;
    return type;
}

/* The length of the first two words of a help: what the option is about. */
static size_t root_of(const char *help) {
    static const char ends[] = " ,;:.";
    const size_t first = strcspn(help, ends);
    if (help[first] != ' ') return first;
    return first + 1 + strcspn(help + first + 1, ends);
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

typedef bool agrees_fn(const n2ce_option *a, const n2ce_option *b);

static bool same_kind(const n2ce_option *a, const n2ce_option *b) {
    return kind_of(a->type) == kind_of(b->type) && same_text(a->value, b->value);
}

static bool same_letter(const n2ce_option *a, const n2ce_option *b) {
    return a->letter == b->letter;
}

static bool same_meaning(const n2ce_option *a, const n2ce_option *b) {
    const size_t n = root_of(a->help);
    return n == root_of(b->help) && strncmp(a->help, b->help, n) == 0;
}

static bool same_name(const n2ce_option *a, const n2ce_option *b) {
    return strcmp(a->name, b->name) == 0;
}

/* But for --model, a file but of train, which makes one of a kind, --method, an estimator of
 * ratios, or a way to distil, and --target, a mean, or what a column is to be: their values say
 * which. */
static bool same_name_and_meaning(const n2ce_option *a, const n2ce_option *b) {
    const bool two = strcmp(a->name, "model") == 0 || strcmp(a->name, "method") == 0;
    const bool aim = strcmp(a->name, "target") == 0 && !same_text(a->value, b->value);
    return same_name(a, b) && !aim && !(two && !same_text(a->choices, b->choices));
}

/* Of all pairs of options of different verbs, those that `when` is true of must agree. */
static void check_pairs(agrees_fn *when, agrees_fn *agree) {
    size_t wrong = 0, pairs = 0;
    for (size_t i = 0; n2ce_task_at(i); i++)
        for (size_t k = 0; k < i; k++)
            for (const n2ce_option *a = n2ce_task_options(n2ce_task_at(i)); a->name; a++)
                for (const n2ce_option *b = n2ce_task_options(n2ce_task_at(k)); b->name; b++) {
                    if (!when(a, b)) continue;
                    pairs++;
                    if (agree(a, b)) continue;
                    wrong++;
                    print_error("%s --%s and %s --%s\n", n2ce_task_name(n2ce_task_at(i)), a->name,
                                n2ce_task_name(n2ce_task_at(k)), b->name);
                }
    assert_true(pairs > 0);
    assert_int_equal(wrong, 0);
}

static void a_name_has_one_type(void **state) {
    (void)state;
    check_pairs(same_name_and_meaning, same_kind);
}

static void a_name_has_one_letter(void **state) {
    (void)state;
    check_pairs(same_name, same_letter);
}

static void a_name_has_one_meaning(void **state) {
    (void)state;
    check_pairs(same_name_and_meaning, same_meaning);
}

/* But for -n: the numerator where there is one, else a number, as of head. */
static bool share_a_letter(const n2ce_option *a, const n2ce_option *b) {
    return a->letter && a->letter == b->letter && a->letter != 'n';
}

static void a_letter_has_one_name(void **state) {
    (void)state;
    check_pairs(share_a_letter, same_name);
}

/* "-n" must not be the short of one option where "--n" is the long of another. */
static void a_name_of_one_character_has_its_own_letter_or_none(void **state) {
    (void)state;
    for (size_t i = 0; n2ce_task_at(i); i++)
        for (const n2ce_option *o = n2ce_task_options(n2ce_task_at(i)); o->name; o++)
            if (o->name[1] == '\0' && o->letter) assert_int_equal(o->letter, o->name[0]);
}

static bool has(size_t task, const char *name) {
    for (const n2ce_option *o = n2ce_task_options(n2ce_task_at(task)); o->name; o++)
        if (strcmp(o->name, name) == 0) return true;
    return false;
}

/* Who has a device has a precision, who writes files asks before it replaces one, who has a page
 * can be asked for it, and who draws random numbers takes a seed: all but the two that only apply a
 * model. */
static void options_come_together(void **state) {
    (void)state;
    for (size_t i = 0; n2ce_task_at(i); i++) {
        const char *verb = n2ce_task_name(n2ce_task_at(i));
        if (has(i, "device") && !has(i, "precision")) fail_msg("%s: --precision", verb);
        if ((has(i, "output") || has(i, "report")) && !has(i, "force"))
            fail_msg("%s: --force", verb);
        const bool page = n2ce_report_page(n2ce_task_at(i));
        if (page != has(i, "report")) fail_msg("%s: --report", verb);
        const bool draws = strcmp(verb, "score") != 0 && strcmp(verb, "info") != 0;
        if (draws != has(i, "seed")) fail_msg("%s: --seed", verb);
        if (has(i, "max-seconds")) fail_msg("%s: --time-limit is the word", verb);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_has_one_type),
        cmocka_unit_test(a_name_has_one_letter),
        cmocka_unit_test(a_name_has_one_meaning),
        cmocka_unit_test(a_letter_has_one_name),
        cmocka_unit_test(a_name_of_one_character_has_its_own_letter_or_none),
        cmocka_unit_test(options_come_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
