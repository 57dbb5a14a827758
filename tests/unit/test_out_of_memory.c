/* Facts about running out of memory: an error at every single allocation, never a crash or a
 * leak. */
#include "close.h"
#include "failing_alloc.h"

#include <string.h>

static const char *const settings[][2] = {{"dim", "2"}, {"n", "4"}, {"runs", "3"}, {"steps", "5"}};

static n2ce_status set_all(n2ce_options *options) {
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        const n2ce_status status = n2ce_options_set(options, settings[i][0], settings[i][1]);
        if (status != N2CE_OK) return status;
    }
    return N2CE_OK;
}

static n2ce_status run_with(n2ce_ctx *ctx, n2ce_answer **answer) {
    const n2ce_task *task = n2ce_task_find("study gaussian");
    n2ce_options *options = (n2ce_options *)1;
    n2ce_status status = n2ce_options_new(ctx, n2ce_task_options(task), &options);
    assert_true((status == N2CE_OK) == (options != NULL));
    if (status == N2CE_OK) status = set_all(options);
    if (status == N2CE_OK) status = n2ce_task_run(ctx, task, options, answer);
    n2ce_options_free(options);
    return status;
}

static void read_answer(const n2ce_answer *answer) {
    const char *const texts[] = {n2ce_answer_text(answer), n2ce_answer_json(answer),
                                 n2ce_answer_brief(answer), n2ce_answer_kept(answer)};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_non_null(texts[i]);
        assert_int_equal(texts[i][strlen(texts[i]) - 1], '\n');
    }
}

/* The whole life of a study on this allocator. */
static n2ce_status whole_life(failing_alloc *memory) {
    const n2ce_ctx_options options = failing_alloc_options(memory, 2);
    n2ce_ctx *ctx = (n2ce_ctx *)1;
    n2ce_answer *answer = NULL;
    n2ce_status status = n2ce_ctx_new(&ctx, &options);
    assert_true((status == N2CE_OK) == (ctx != NULL));
    if (ctx) {
        status = run_with(ctx, &answer);
        assert_true((status == N2CE_OK) == (answer != NULL));
        if (status != N2CE_OK) assert_non_null(strstr(n2ce_errmsg(ctx), "memory"));
    }
    if (answer) read_answer(answer);
    n2ce_answer_free(answer);
    n2ce_ctx_free(ctx);
    return status;
}

/* Fails the n-th allocation for n = 0, 1, 2, ... until all goes well. */
static void fail_each_in_turn(bool and_after) {
    n2ce_status status = N2CE_ENOMEM;
    size_t n = 0;
    for (; status != N2CE_OK; n++) {
        assert_true(n < 5000);
        failing_alloc memory = failing_alloc_new(n, and_after);
        status = whole_life(&memory);
        if (memory.calls > n) assert_int_equal(status, N2CE_ENOMEM);
        if (memory.calls <= n) assert_int_equal(status, N2CE_OK);
        assert_int_equal(memory.live, 0);
        assert_int_equal(memory.strangers, 0);
    }
    assert_true(n > 10); /* it did fail, often */
}

/* One allocation fails and all others succeed: out of memory, nothing leaks. */
static void a_single_failed_allocation_is_an_error(void **state) {
    (void)state;
    fail_each_in_turn(false);
}

/* From one allocation on nothing succeeds: the same. */
static void no_memory_from_some_point_on_is_an_error(void **state) {
    (void)state;
    fail_each_in_turn(true);
}

/* A context that ran out of memory once can be used again. */
static void a_context_survives_its_failures(void **state) {
    (void)state;
    failing_alloc memory = failing_alloc_new(NEVER, false);
    const n2ce_ctx_options options = failing_alloc_options(&memory, 2);
    n2ce_ctx *ctx = NULL;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    for (size_t n = 0; n < 60; n += 3) {
        n2ce_answer *answer = NULL;
        memory.fail_at = memory.calls + n;
        const bool failed = run_with(ctx, &answer) == N2CE_ENOMEM;
        assert_true(failed == (memory.calls > memory.fail_at));
        n2ce_answer_free(answer);
        memory.fail_at = NEVER;
        assert_int_equal(run_with(ctx, &answer), N2CE_OK);
        n2ce_answer_free(answer);
    }
    n2ce_ctx_free(ctx);
    assert_int_equal(memory.live, 0);
}

/* The objective allocates nothing at all. */
static void the_objective_needs_no_memory(void **state) {
    (void)state;
    failing_alloc memory = failing_alloc_new(1, true);
    const n2ce_ctx_options options = failing_alloc_options(&memory, 2);
    n2ce_ctx *ctx = NULL;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    const n2ce_objective objective = N2CE_OBJECTIVE_INIT;
    const double f[3] = {0, 1, 2};
    double loss, grad_num[3], grad_den[3], path;
    const n2ce_logits_f64 logits = {f, 3, f, 3, grad_num, grad_den};
    n2ce_diagnostics d;
    assert_int_equal(n2ce_loss_f64(ctx, &objective, &logits, &loss, &d), N2CE_OK);
    assert_int_equal(n2ce_path_discrete(ctx, f, f, 3, 10, &path), N2CE_OK);
    assert_int_equal(memory.calls, 1);
    n2ce_ctx_free(ctx);
    assert_int_equal(memory.live, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_single_failed_allocation_is_an_error),
        cmocka_unit_test(no_memory_from_some_point_on_is_an_error),
        cmocka_unit_test(a_context_survives_its_failures),
        cmocka_unit_test(the_objective_needs_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
