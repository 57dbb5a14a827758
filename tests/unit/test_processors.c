/* Facts about how many threads there are by default. */
#define _GNU_SOURCE
#include "contexts.h"

#include "base/processors.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that may run on one processor has one thread, however many the machine has. */
static void affinity_counts(void **state) {
    (void)state;
    assert_true(n2_processors() >= 1);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        cpu_set_t set, one;
        if (sched_getaffinity(0, sizeof set, &set) != 0) _exit(77);
        size_t first = 0;
        while (!CPU_ISSET(first, &set)) first++;
        CPU_ZERO(&one);
        CPU_SET(first, &one);
        if (sched_setaffinity(0, sizeof one, &one) != 0) _exit(77);
        _exit(n2_processors() == 1 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Quota and period of a control group, in microseconds: a part of a processor is one. */
static void quotas_are_processors(void **state) {
    (void)state;
    assert_int_equal(n2_processors_of_quota("200000 100000\n"), 2);
    assert_int_equal(n2_processors_of_quota("150000 100000\n"), 2);
    assert_int_equal(n2_processors_of_quota("10000 100000\n"), 1);
    assert_int_equal(n2_processors_of_quota("max 100000\n"), 0);
    assert_int_equal(n2_processors_of_quota("-1 100000"), 0);
    assert_int_equal(n2_processors_of_quota("100000 0"), 0);
    assert_int_equal(n2_processors_of_quota("1e300 1"), 0);
    assert_int_equal(n2_processors_of_quota(""), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(affinity_counts),
        cmocka_unit_test(quotas_are_processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
