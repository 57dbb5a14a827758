/* Facts about the results of tasks as numbers: they are those of the text, whatever the verb. */
#include "samples.h"

static n2ce_answer *run_on(n2ce_ctx *ctx, const char *verb, const n2ce_matrix *data,
                           const char *const *pairs) {
    const n2ce_task *task = n2ce_task_find(verb);
    n2ce_options *o;
    n2ce_answer *answer;
    assert_int_equal(n2ce_options_new(ctx, n2ce_task_options(task), &o), N2CE_OK);
    for (; pairs[0]; pairs += 2) assert_int_equal(n2ce_options_set(o, pairs[0], pairs[1]), N2CE_OK);
    if (n2ce_task_run_on(ctx, task, o, data, 2, &answer) != N2CE_OK)
        fail_msg("%s: %s", verb, n2ce_errmsg(ctx));
    n2ce_options_free(o);
    return answer;
}

/* The sample of N(1, 1) and N(0, 1), whose KL is 1/2 both ways. */
static void estimates_have_intervals(void **state) {
    (void)state;
    enum { N = 800 };
    n2ce_ctx *ctx = new_ctx(1);
    double *num = normals(N, 1, 1, 1), *den = normals(N, 0, 1, 2);
    const n2ce_matrix data[] = {matrix(num, N, 1), matrix(den, N, 1)};
    static const char *const pairs[] = {"critic", "quadratic", "level", "0.95", "path",
                                        "1,100",  "unit",      "nats",  NULL};
    n2ce_answer *a = run_on(ctx, "divergence", data, pairs);
    static const char *const names[] = {"estimate", "kl", "kl_reverse", "js", "path 1", "path 100"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const n2ce_estimate *e = n2ce_answer_estimate(a, names[i]);
        assert_non_null(e);
        assert_true(e->lo < e->value && e->value < e->hi && e->standard_error > 0);
        assert_close(e->value - e->lo, 1.959964 * e->standard_error, 1e-5, 0);
        assert_string_equal(e->unit, "nats");
        assert_true(e->trusted);
        assert_string_equal(e->verdict, "trusted");
        assert_string_equal(e->reason, "");
    }
    const n2ce_estimate *kl = n2ce_answer_estimate(a, "kl");
    assert_true(kl->value == n2ce_answer_number(a, "estimate"));
    assert_true(kl->lo == n2ce_answer_number(a, "lo") && kl->hi == n2ce_answer_number(a, "hi"));
    assert_close(kl->value, 0.5, 0, 3.5 * kl->standard_error);
    assert_close(n2ce_answer_estimate(a, "path 1")->value, 2 * n2ce_answer_estimate(a, "js")->value,
                 1e-12, 0);
    assert_null(n2ce_answer_estimate(a, "mi"));
    assert_null(n2ce_answer_estimate(a, "path 10"));
    assert_null(n2ce_answer_test(a));
    assert_null(n2ce_answer_proposals(a));
    n2ce_answer_free(a);
    free(num);
    free(den);
    n2ce_ctx_free(ctx);
}

static void a_test_has_a_p_value(void **state) {
    (void)state;
    enum { N = 200 };
    n2ce_ctx *ctx = new_ctx(1);
    double *num = normals(N, 2, 1, 1), *den = normals(N + 2, 0, 1, 2);
    const n2ce_matrix data[] = {matrix(num, N, 1), matrix(den, N + 2, 1)};
    static const char *const pairs[] = {"critic", "quadratic", "permutations", "99", NULL};
    n2ce_answer *a = run_on(ctx, "test", data, pairs);
    const n2ce_test_result *t = n2ce_answer_test(a);
    assert_non_null(t);
    assert_close(t->p, 0.01, 1e-12, 0); /* the least there is */
    assert_true(t->p == n2ce_answer_number(a, "p"));
    assert_true(t->accuracy > 0.7 && t->accuracy <= 1);
    assert_int_equal(t->permutations, 99);
    assert_int_equal(t->n_num, N / 2);
    assert_int_equal(t->n_den, N / 2 + 1);
    assert_null(n2ce_answer_estimate(a, "estimate"));
    n2ce_answer_free(a);
    free(num);
    free(den);
    n2ce_ctx_free(ctx);
}

/* Designs of a number and of a category whose values are 5 and 7: smaller is better. */
static void proposals_are_a_matrix(void **state) {
    (void)state;
    enum { N = 60, Q = 8 };
    n2ce_ctx *ctx = new_ctx(2);
    double *x = uniforms(2 * N, 5), y[N];
    for (size_t i = 0; i < N; i++) {
        x[2 * i + 1] = x[2 * i + 1] < 0.5 ? 5 : 7;
        y[i] = (x[2 * i] - 0.3) * (x[2 * i] - 0.3) + (x[2 * i + 1] == 5);
    }
    const n2ce_matrix data[] = {matrix(x, N, 2), matrix(y, N, 1)};
    static const char *const pairs[] = {"minimize", "y", "categorical", "1", "effort", "0.02",
                                        "rounds",   "2", "count",       "8", NULL};
    n2ce_answer *a = run_on(ctx, "optimize", data, pairs);
    const n2ce_proposals *p = n2ce_answer_proposals(a);
    assert_non_null(p);
    assert_int_equal(p->rows, Q);
    assert_int_equal(p->cols, 2);
    assert_true(n2ce_answer_number(a, "rows") == Q);
    assert_true(n2ce_answer_number(a, "best_predicted") == p->predicted[0]);
    assert_string_equal(p->names[0], "0");
    assert_int_equal(p->n_levels[0], 0);
    assert_int_equal(p->n_levels[1], 2);
    assert_true(!strcmp(p->levels[1][0], "5") != !strcmp(p->levels[1][0], "7"));
    for (size_t i = 0; i < Q; i++) {
        assert_true(p->designs[2 * i] >= 0 && p->designs[2 * i] <= 1);
        assert_true(p->designs[2 * i + 1] == 0 || p->designs[2 * i + 1] == 1);
        assert_true(i == 0 || p->predicted[i] >= p->predicted[i - 1]); /* best first */
        assert_true(p->spread[i] >= 0 && p->distance[i] >= 0 && isfinite(p->log_prior[i]));
    }
    assert_true(p->predicted[0] < 0.5);
    n2ce_answer_free(a);
    free(x);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimates_have_intervals),
        cmocka_unit_test(a_test_has_a_p_value),
        cmocka_unit_test(proposals_are_a_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
