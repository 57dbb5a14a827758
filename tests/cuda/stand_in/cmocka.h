/* As much of cmocka as the tests of the engine use, for machines that have none: those with a GPU,
 * often. The same names; a failed assertion ends its test with longjmp. */
#ifndef STAND_IN_CMOCKA_H
#define STAND_IN_CMOCKA_H

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void stand_in_test(void **state);
typedef int stand_in_fixture(void **state);
struct CMUnitTest {
    const char *name;
    stand_in_test *test_func;
    stand_in_fixture *setup_func, *teardown_func;
    void *initial_state;
};
#define cmocka_unit_test_setup_teardown(f, setup, teardown) \
    { #f, f, setup, teardown, NULL }
#define cmocka_unit_test(f) cmocka_unit_test_setup_teardown(f, NULL, NULL)

static jmp_buf stand_in_end;
static const char *stand_in_filter = "*";

__attribute__((unused)) static void cmocka_set_test_filter(const char *pattern) {
    stand_in_filter = pattern;
}

__attribute__((noreturn, unused)) static void _fail(const char *file, int line) {
    printf("%s:%d: failed\n", file, line);
    longjmp(stand_in_end, 1);
}

__attribute__((noreturn, unused, format(printf, 3, 4))) static void stand_in_fail(
    const char *file, int line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    _fail(file, line);
}

__attribute__((noreturn, unused)) static void stand_in_skip(void) { longjmp(stand_in_end, 2); }

__attribute__((unused)) static void stand_in_equal(long long found, long long expected,
                                                   const char *text, const char *file, int line) {
    if (found != expected) stand_in_fail(file, line, "%s is %lld, not %lld", text, found, expected);
}

#define print_error(...)   printf(__VA_ARGS__)
#define print_message(...) printf(__VA_ARGS__)
#define fail()             _fail(__FILE__, __LINE__)
#define fail_msg(...)      stand_in_fail(__FILE__, __LINE__, __VA_ARGS__)
#define skip()             stand_in_skip()
#define test_malloc        malloc
#define test_calloc        calloc
#define test_free          free
#define STAND_IN(x)        ((x) ? (void)0 : stand_in_fail(__FILE__, __LINE__, "%s", #x))

#define assert_true(x)                   STAND_IN(x)
#define assert_false(x)                  STAND_IN(!(x))
#define assert_null(x)                   STAND_IN((x) == NULL)
#define assert_non_null(x)               STAND_IN((x) != NULL)
#define assert_string_equal(a, b)        STAND_IN(strcmp(a, b) == 0)
#define assert_string_not_equal(a, b)    STAND_IN(strcmp(a, b) != 0)
#define assert_memory_equal(a, b, n)     STAND_IN(memcmp(a, b, n) == 0)
#define assert_memory_not_equal(a, b, n) STAND_IN(memcmp(a, b, n) != 0)
#define assert_int_equal(a, b) \
    stand_in_equal((long long)(a), (long long)(b), #a, __FILE__, __LINE__)
#define assert_int_not_equal(a, b) STAND_IN((long long)(a) != (long long)(b))
#define assert_ptr_equal(a, b)     STAND_IN((const void *)(a) == (const void *)(b))
#define assert_ptr_not_equal(a, b) STAND_IN((const void *)(a) != (const void *)(b))
#define assert_in_range(x, low, high) \
    STAND_IN((long long)(x) >= (long long)(low) && (long long)(x) <= (long long)(high))

/* A test without a state of its own has the group's, as in cmocka. */
static int stand_in_one(const struct CMUnitTest *t, void *group_state) {
    static void *state; /* a longjmp leaves it as it is */
    state = t->initial_state ? t->initial_state : group_state;
    printf("[ RUN      ] %s\n", t->name);
    fflush(stdout);
    const int ended = setjmp(stand_in_end);
    if (ended == 0) {
        if (t->setup_func) t->setup_func(&state);
        t->test_func(&state);
    }
    if (t->teardown_func) t->teardown_func(&state);
    printf("[  %s ] %s\n", ended == 0 ? "     OK" : ended == 1 ? " FAILED" : "SKIPPED", t->name);
    return ended == 1;
}

__attribute__((unused)) static int _cmocka_run_group_tests(const char *group,
                                                           const struct CMUnitTest *tests, size_t n,
                                                           stand_in_fixture *setup,
                                                           stand_in_fixture *teardown) {
    int failed = 0, run = 0;
    void *state = NULL;
    if (setup && setup(&state)) return 1;
    for (size_t i = 0; i < n; i++) {
        if (fnmatch(stand_in_filter, tests[i].name, 0) != 0) continue;
        failed += stand_in_one(&tests[i], state);
        run++;
    }
    if (teardown) teardown(&state);
    printf("%s: %d tests, %d failed\n", group, run, failed);
    return failed;
}
#define cmocka_run_group_tests_name(name, tests, setup, teardown) \
    _cmocka_run_group_tests(name, tests, sizeof(tests) / sizeof(tests[0]), setup, teardown)
#define cmocka_run_group_tests(tests, setup, teardown) \
    cmocka_run_group_tests_name(#tests, tests, setup, teardown)

#endif
