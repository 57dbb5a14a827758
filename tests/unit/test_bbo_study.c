/* Facts about the study of offline optimisation, and about the numbers beside it. */
#include "close.h"
#include "failing_alloc.h"
#include "study/bbo_published.h"
#include "study/bbo_study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- ranks ---- */

/* With the last methods of the table that are no variants. */
static n2_bbo_study study_of(n2_bbo_run *runs, size_t tasks, size_t methods, size_t seeds) {
    n2_bbo_study s = {.n_tasks = tasks, .n_methods = methods, .n_seeds = seeds, .runs = runs};
    size_t n = methods;
    for (size_t t = 0; t < tasks; t++) s.tasks[t] = n2_design_task_at(t);
    for (size_t i = n2_method_count; i-- > 0 && n > 0;)
        if (!n2_methods[i].variant_of) s.methods[--n] = &n2_methods[i];
    return s;
}

/* Means over seeds are ranked, equal ones share a place. */
static void ranks_are_those_of_the_means(void **state) {
    (void)state;
    n2_bbo_run runs[3 * 2] = {0};
    const double max[] = {1, 3, 2, 2, 0, 1};
    for (size_t i = 0; i < 6; i++)
        runs[i] = (n2_bbo_run){.max = max[i], .median = -max[i], .done = true};
    const n2_bbo_study s = study_of(runs, 1, 3, 2);
    assert_close(n2_bbo_rank(&s, 0, 0, 100), 1.5, 0, 0);
    assert_close(n2_bbo_rank(&s, 0, 1, 100), 1.5, 0, 0);
    assert_close(n2_bbo_rank(&s, 0, 2, 100), 3, 0, 0);
    assert_close(n2_bbo_rank(&s, 0, 2, 50), 1, 0, 0);
    assert_close(n2_bbo_mean_rank(&s, 2, 50, NULL), 1, 0, 0);
}

/* A variant does not move others; it has the place that its method would have with its values. */
static void variants_do_not_take_places(void **state) {
    (void)state;
    n2_bbo_run runs[4];
    const double max[] = {3, 4, 2, 2.5};
    const char *const names[] = {"n2ce", "n2ce-m1", "ddom", "n2ce-ld"};
    n2_bbo_study s = study_of(runs, 1, 4, 1);
    for (size_t i = 0; i < 4; i++) {
        runs[i] = (n2_bbo_run){.max = max[i], .done = true};
        s.methods[i] = n2_method_find(names[i]);
        assert_non_null(s.methods[i]);
    }
    assert_close(n2_bbo_rank(&s, 0, 0, 100), 1, 0, 0);
    assert_close(n2_bbo_rank(&s, 0, 1, 100), 1, 0, 0);
    assert_close(n2_bbo_rank(&s, 0, 2, 100), 2, 0, 0);
    assert_close(n2_bbo_rank(&s, 0, 3, 100), 1, 0, 0);
}

/* Who fails is last, and who was not run has no place and moves nobody. */
static void failing_is_the_last_place(void **state) {
    (void)state;
    n2_bbo_run runs[2 * 3] = {{.done = true, .failed = true},
                              {.max = -9, .median = -9, .done = true},
                              {.done = false},
                              {.max = 1, .done = true},
                              {.max = 2, .done = true},
                              {.max = 3, .done = true}};
    const n2_bbo_study s = study_of(runs, 2, 3, 1);
    size_t n;
    assert_close(n2_bbo_rank(&s, 0, 0, 100), 2, 0, 0);
    assert_close(n2_bbo_rank(&s, 0, 1, 100), 1, 0, 0);
    assert_true(isnan(n2_bbo_rank(&s, 0, 2, 100)));
    assert_close(n2_bbo_mean_rank(&s, 0, 100, &n), 2.5, 0, 0);
    assert_int_equal(n, 2);
    assert_close(n2_bbo_mean_rank(&s, 2, 100, &n), 1, 0, 0);
    assert_int_equal(n, 1);
}

/* A run that failed counts as one, without numbers; one that was not made does not count. */
static void failed_runs_have_no_numbers(void **state) {
    (void)state;
    n2_bbo_run runs[3] = {{.max = 1, .done = true}, {.max = 9, .done = true, .failed = true}, {0}};
    const n2_bbo_study s = study_of(runs, 1, 1, 3);
    const n2_bbo_summary sum = n2_bbo_summarise(&s, 0, 0);
    assert_int_equal(sum.done, 2);
    assert_int_equal(sum.failed, 1);
    assert_close(n2_tally_mean(&sum.max), 1, 0, 0);
}

/* ---- published numbers ---- */

static double published(const char *task, const char *method, size_t queries, int percentile) {
    const n2_bbo_published *p = n2_bbo_published_find(task, method, queries, percentile);
    assert_non_null(p);
    return p->value;
}

/* Some cells of every table, columns put right where the paper's header is wrong. */
static void the_paper_is_quoted_right(void **state) {
    (void)state;
    assert_close(published("branin", "n2ce", 128, 100), -0.41, 0, 0);
    assert_close(published("tfbind8", "n2ce", 256, 100), 0.990, 0, 0);
    assert_close(published("superconductor", "ddom", 256, 100), 0.560, 0, 0);
    assert_close(published("superconductor", "n2ce", 256, 50), 0.373, 0, 0);
    assert_close(published("chembl", "n2ce", 256, 50), 0.630, 0, 0);
    assert_close(published("ant", "bonet", 256, 50), 0.819, 0, 0);
    assert_close(published("dkitty", "n2ce", 128, 100), 0.954, 0, 0);
    assert_close(published("tfbind10", "ict", 128, 50), 0.541, 0, 0);
    assert_close(published("superconductor", "n2ce-m1", 256, 100), 0.497, 0, 0);
    assert_close(published("superconductor", "mle", 256, 100), 0.296, 0, 0);
    assert_null(n2_bbo_published_find("chembl", "n2ce", 128, 100));
}

/* No cell stands twice. */
static void the_paper_is_quoted_once(void **state) {
    (void)state;
    const n2_bbo_published *p;
    for (size_t i = 0; (p = n2_bbo_published_at(i)); i++)
        assert_ptr_equal(n2_bbo_published_find(p->task, p->method, p->queries, p->percentile), p);
}

/* ---- memory ---- */

typedef n2ce_status work(n2ce_ctx *ctx, n2ce_answer **answer);

static n2ce_status run_with(n2ce_ctx *ctx, const char *const (*set)[2], n2ce_answer **answer) {
    const n2ce_task *task = n2ce_task_find("study bbo");
    n2ce_options *options;
    n2ce_status status = n2ce_options_new(ctx, n2ce_task_options(task), &options);
    for (; status == N2CE_OK && (*set)[0]; set++)
        status = n2ce_options_set(options, (*set)[0], (*set)[1]);
    if (status == N2CE_OK) status = n2ce_task_run(ctx, task, options, answer);
    n2ce_options_free(options);
    return status;
}

static n2ce_status run_two(n2ce_ctx *ctx, n2ce_answer **answer) {
    static const char *const set[][2] = {{"tasks", "branin-50"},
                                         {"methods", "random,top-offline"},
                                         {"seeds", "2"},
                                         {"device", "cpu"},
                                         {NULL, NULL}};
    return run_with(ctx, set, answer);
}

static const char kept_file[] = "test_bbo_study.json.tmp";

static n2ce_status merge_one(n2ce_ctx *ctx, n2ce_answer **answer) {
    const char *const set[][2] = {{"merge", kept_file}, {NULL, NULL}};
    return run_with(ctx, set, answer);
}

static n2ce_status whole_life(work *w, failing_alloc *memory) {
    const n2ce_ctx_options options = failing_alloc_options(memory, 1);
    n2ce_ctx *ctx;
    n2ce_answer *answer = NULL;
    n2ce_status status = n2ce_ctx_new(&ctx, &options);
    if (status == N2CE_OK) {
        status = w(ctx, &answer);
        assert_true((status == N2CE_OK) == (answer != NULL));
        if (status != N2CE_OK) assert_non_null(strstr(n2ce_errmsg(ctx), "memory"));
    }
    n2ce_answer_free(answer);
    n2ce_ctx_free(ctx);
    return status;
}

/* Whichever allocation fails: an error, and nothing leaks. */
static void fail_everywhere(work *w) {
    n2ce_status status = N2CE_ENOMEM;
    for (size_t n = 0; status != N2CE_OK; n = next_failure(n, 0)) {
        assert_true(n < 5000);
        failing_alloc memory = failing_alloc_new(n, false);
        status = whole_life(w, &memory);
        assert_int_equal(status, memory.calls > n ? N2CE_ENOMEM : N2CE_OK);
        assert_int_equal(memory.live, 0);
    }
}

static void every_failed_allocation_is_an_error(void **state) {
    (void)state;
    fail_everywhere(run_two);
}

static void every_failed_allocation_while_merging_is_an_error(void **state) {
    (void)state;
    FILE *file = fopen(kept_file, "w");
    assert_non_null(file);
    fputs("{\"study\": \"bbo\", \"rows\": [", file);
    for (int i = 0; i < 5; i++)
        fprintf(file, "%s{\"task\": \"branin\", \"method\": \"ddom\", \"seed\": %d, \"max\": -1}",
                i ? ", " : "", i);
    fputs("], \"offline\": [{\"task\": \"branin\", \"seed\": 0, \"rows\": 4500, \"best\": -6}]}",
          file);
    fclose(file);
    fail_everywhere(merge_one);
    remove(kept_file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_those_of_the_means),
        cmocka_unit_test(variants_do_not_take_places),
        cmocka_unit_test(failing_is_the_last_place),
        cmocka_unit_test(failed_runs_have_no_numbers),
        cmocka_unit_test(the_paper_is_quoted_right),
        cmocka_unit_test(the_paper_is_quoted_once),
        cmocka_unit_test(every_failed_allocation_is_an_error),
        cmocka_unit_test(every_failed_allocation_while_merging_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
