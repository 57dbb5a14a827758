/* Facts about what a log ratio is made of: columns with known divergences, stages that add up. */
#include "samples.h"

#include "ratio/estimate.h"

typedef struct explained {
    n2_ratio *ratio;
    n2_scores scores;
    n2_fit_record record;
} explained;

/* The Gaussian part alone. */
static n2_fit_options gaussian(void) {
    return (n2_fit_options){.parts = N2_PARTS_QUADRATIC,
                            .scaling = N2_SCALING_LINEAR,
                            .folds = 2,
                            .seed = 3,
                            .explain = true};
}

/* With a network that learns a little. */
static n2_fit_options learning(size_t stages) {
    n2_fit_options o = gaussian();
    o.parts = N2_PARTS_NET;
    o.critic = (n2_critic_options){.steps = 60,
                                   .width = 8,
                                   .blocks = 1,
                                   .batch = 32,
                                   .noise = 2,
                                   .magnitude = 4,
                                   .stages = stages};
    return o;
}

static explained explain(n2ce_ctx *ctx, const double *num, const double *den, size_t n, size_t d,
                         size_t x_cols, const n2_fit_options *o) {
    n2_table *a = new_table(ctx, num, n, d), *b = den ? new_table(ctx, den, n, d) : NULL;
    explained e;
    assert_int_equal(n2_ratio_fit(ctx, a, b, x_cols, NULL, o, &e.ratio, &e.scores, &e.record),
                     N2CE_OK);
    assert_int_equal(e.scores.explanation.columns, d);
    n2_table_free(a);
    n2_table_free(b);
    return e;
}

static void explained_free(explained *e) {
    n2_ratio_free(e->ratio);
    n2_scores_free(&e->scores);
}

/* Within five standard errors and a little. */
static void assert_part(double value, double error, double truth) {
    if (!(fabs(value - truth) < 5 * error + 0.03))
        print_error("%g +- %g, not %g\n", value, error, truth);
    assert_true(fabs(value - truth) < 5 * error + 0.03);
}

/* Three independent columns: a shift of 1 (KL 1/2 both ways), the same, and half the spread. */
static void independent_columns_have_their_own_divergences(void **state) {
    (void)state;
    enum { N = 4000, D = 3 };
    n2ce_ctx *ctx = new_ctx(1);
    double *num = normals(N * D, 0, 1, 1), *den = normals(N * D, 0, 1, 2);
    for (size_t i = 0; i < N; i++) {
        num[i * D] += 1;
        num[i * D + 2] *= 0.5;
    }
    const n2_fit_options o = gaussian();
    explained e = explain(ctx, num, den, N, D, 0, &o);
    const n2_column_part *c = e.scores.explanation.column;
    assert_int_equal(e.scores.explanation.pairs, 1000);
    assert_part(c[0].num, c[0].num_error, 1); /* falls from 1/2 to -1/2 */
    assert_part(c[0].den, c[0].den_error, 1);
    assert_part(c[1].num, c[1].num_error, 0);
    assert_part(c[1].den, c[1].den_error, 0);
    const double there = log(2) - 0.375, back = 1.5 - log(2); /* 0.318 and 0.807 */
    assert_part(c[2].num, c[2].num_error, there + back);
    assert_part(c[2].den, c[2].den_error, there + back);
    assert_true(c[0].num_error > 0.01 && c[0].num_error < 0.2);
    explained_free(&e);
    free(num);
    free(den);
    n2ce_ctx_free(ctx);
}

/* Margins are the same; only the denominator's columns depend on each other. */
static void dependence_counts_for_both_columns(void **state) {
    (void)state;
    enum { N = 3000 };
    n2ce_ctx *ctx = new_ctx(1);
    double *num = normals(2 * N, 0, 1, 3), *den = correlated(N, 0.9, 4);
    const n2_fit_options o = gaussian();
    explained e = explain(ctx, num, den, N, 2, 0, &o);
    for (size_t c = 0; c < 2; c++) {
        const n2_column_part *part = &e.scores.explanation.column[c];
        assert_part(part->num, part->num_error, 0);
        assert_true(part->den > 1 && part->den > 10 * part->den_error);
    }
    explained_free(&e);
    free(num);
    free(den);
    n2ce_ctx_free(ctx);
}

/* y depends on the second x only. */
static void mutual_information_has_its_columns(void **state) {
    (void)state;
    enum { N = 3000 };
    n2ce_ctx *ctx = new_ctx(1);
    double *z = normals(3 * N, 0, 1, 5);
    for (size_t i = 0; i < N; i++) z[3 * i + 2] = 0.8 * z[3 * i + 1] + 0.6 * z[3 * i + 2];
    const n2_fit_options o = gaussian();
    explained e = explain(ctx, z, NULL, N, 3, 2, &o);
    const n2_column_part *c = e.scores.explanation.column;
    assert_part(c[0].num, c[0].num_error, 0);
    assert_part(c[0].den, c[0].den_error, 0);
    for (size_t k = 1; k < 3; k++) assert_true(c[k].num > 0.5 && c[k].num > 8 * c[k].num_error);
    explained_free(&e);
    free(z);
    n2ce_ctx_free(ctx);
}

/* Of rows that are all looked at the stages are all of the log ratio, and exchanging the only
 * column exchanges the samples: of networks, of the Gaussian part, of kernels. */
static void all_of_it_is_explained(void **state) {
    (void)state;
    enum { N = 600 };
    n2ce_ctx *ctx = new_ctx(2);
    double *num = normals(N, 1, 1, 6), *den = normals(N, 0, 1, 7);
    n2_fit_options options[] = {gaussian(), learning(1), learning(3), gaussian()};
    options[0].critic.stages = 2;
    options[3].estimator = N2_ESTIMATOR_ULSIF;
    for (size_t k = 0; k < 4; k++) {
        explained e = explain(ctx, num, den, N, 1, 0, &options[k]);
        const n2_explanation *x = &e.scores.explanation;
        const double there = mean_of(e.scores.f[1], N), back = mean_of(e.scores.f[0], N);
        double sum = 0;
        assert_int_equal(x->pairs, N);
        assert_close(x->column[0].num, there - back, 1e-6, 1e-6);
        assert_close(x->column[0].den, there - back, 1e-6, 1e-6);
        assert_int_equal(x->stages, k == 3 ? 0 : options[k].critic.stages);
        for (size_t i = 0; i < x->stages; i++) sum += x->stage[i].gaussian + x->stage[i].learned;
        if (x->stages) assert_close(sum, there, 1e-6, 1e-6);
        if (k == 2) assert_true(x->stage[0].learned != x->stage[1].learned);
        explained_free(&e);
    }
    free(num);
    free(den);
    n2ce_ctx_free(ctx);
}

static void threads_do_not_matter(void **state) {
    (void)state;
    enum { N = 500, D = 5 };
    double *num = normals(N * D, 0.3, 1, 8), *den = normals(N * D, 0, 1, 9);
    n2_fit_options o = learning(2);
    o.parts = N2_PARTS_BOTH;
    n2_column_part first[D] = {{0}};
    for (int threads = 1; threads <= 7; threads += 3) {
        n2ce_ctx *ctx = new_ctx(threads);
        explained e = explain(ctx, num, den, N, D, 0, &o);
        const size_t bytes = D * sizeof(n2_column_part);
        if (threads == 1) memcpy(first, e.scores.explanation.column, bytes);
        assert_memory_equal(first, e.scores.explanation.column, bytes);
        explained_free(&e);
        n2ce_ctx_free(ctx);
    }
    free(num);
    free(den);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(independent_columns_have_their_own_divergences),
        cmocka_unit_test(dependence_counts_for_both_columns),
        cmocka_unit_test(mutual_information_has_its_columns),
        cmocka_unit_test(all_of_it_is_explained),
        cmocka_unit_test(threads_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
