/* Facts about fitting ratios: known answers, held-out rows, the same bits again, failures. */
#include "failing_alloc.h"
#include "samples.h"

#include "base/clock.h"
#include "base/numerics.h"
#include "engine/graph.h"
#include "ratio/estimate.h"

/* Small and fast; what is 0 is chosen from the data. */
static n2_fit_options quick(void) {
    return (n2_fit_options){
        .critic = {.steps = 200, .width = 16, .blocks = 1, .batch = 64, .noise = 2},
        .folds = 2,
        .seed = 5,
    };
}

typedef struct fitted {
    n2_ratio *ratio;
    n2_scores scores;
    n2_fit_record record;
} fitted;

/* Samples in rows of d; den NULL: mutual information of the first x_cols columns and the rest. */
static n2ce_status try_fit(n2ce_ctx *ctx, const double *num, size_t n, const double *den, size_t m,
                           size_t d, size_t x_cols, const n2_fit_options *o, fitted *out) {
    n2_table *a = new_table(ctx, num, n, d), *b = den ? new_table(ctx, den, m, d) : NULL;
    const n2ce_status status =
        n2_ratio_fit(ctx, a, b, x_cols, NULL, o, &out->ratio, &out->scores, &out->record);
    assert_true((status == N2CE_OK) == (out->ratio != NULL));
    n2_table_free(a);
    n2_table_free(b);
    return status;
}

static fitted fit(n2ce_ctx *ctx, const double *num, size_t n, const double *den, size_t m, size_t d,
                  size_t x_cols, const n2_fit_options *o) {
    fitted out;
    assert_int_equal(try_fit(ctx, num, n, den, m, d, x_cols, o, &out), N2CE_OK);
    return out;
}

static void fitted_free(fitted *f) {
    n2_ratio_free(f->ratio);
    n2_scores_free(&f->scores);
}

/* Within four standard errors, which are themselves of a size that makes sense. */
static void assert_estimate(n2_estimate e, double truth, double least, double most) {
    if (!(e.error > least && e.error < most)) print_error("the error is %g\n", e.error);
    assert_true(e.error > least && e.error < most);
    assert_close(e.value, truth, 0, 4 * e.error);
}

/* ---- known answers ---- */

/* 150 rows of 20 columns: covariances that cannot be told apart are taken for the same, and the
 * rows' weights make sense; others are not. */
static void few_rows_share_a_covariance(void **state) {
    (void)state;
    enum { D = 20, ROWS = 150 };
    n2ce_ctx *ctx = new_ctx(2);
    n2_fit_options o = quick();
    o.parts = N2_PARTS_QUADRATIC;
    o.scaling = N2_SCALING_LINEAR;
    for (size_t wide = 0; wide < 2; wide++) {
        double *num = normals(D * ROWS, 0.2, wide ? 1.5 : 1, 1), share;
        double *den = normals(D * ROWS, 0, 1, 2);
        fitted f = fit(ctx, num, ROWS, den, ROWS, D, 0, &o);
        n2_quality q;
        const double v = wide ? 2.25 : 1, truth = 0.5 * D * (v - 1 - log(v) + 0.04);
        assert_true((f.record.pooled_off > 0) == !wide);
        assert_estimate(n2_estimate_kl(&f.scores, &f.record, &q), truth, 0.01, 2);
        if (!wide) assert_true(n2_estimate_mean_ratio(&f.scores, 0, &share).value < 2);
        fitted_free(&f);
        free(num);
        free(den);
    }
    n2ce_ctx_free(ctx);
}

/* One factor in forty columns: what covariances of few rows say of other rows is noise for the most
 * part, whether parts beside them are learned or not; the divergence of the normals stays. */
static void a_factor_in_many_columns(void **state) {
    (void)state;
    enum { D = 40, ROWS = 500 };
    static const double SIZE = 4; /* of the factor's variance */
    n2ce_ctx *ctx = new_ctx(2);
    double *num = normals(D * ROWS, 0, 1, 1), *den = normals(D * ROWS, 0, 1, 2);
    double *factor = normals(ROWS, 0, sqrt(SIZE / D), 3);
    for (size_t i = 0; i < D * ROWS; i++) num[i] += factor[i / D];
    n2_fit_options o = quick();
    o.smooth = true;
    fitted f = fit(ctx, num, ROWS, den, ROWS, D, 0, &o);
    n2_quality q;
    assert_estimate(n2_estimate_kl(&f.scores, &f.record, &q), 0.5 * (SIZE - log1p(SIZE)), 0.01, 1);
    assert_estimate(n2_estimate_reverse_kl(&f.scores, &f.record, &q),
                    0.5 * (log1p(SIZE) - SIZE / (1 + SIZE)), 0.01, 1);
    assert_true(f.record.calmed && f.ratio->blend.weight[0] < 0.7);
    assert_true(q.normalisation < 3);
    fitted_free(&f);
    free(factor);
    free(num);
    free(den);
    n2ce_ctx_free(ctx);
}

/* N(1, 1) against N(0, 1): KL both ways 1/2 each, and the M-path between. */
static void two_normals(void **state) {
    (void)state;
    enum { N = 1500 };
    n2ce_ctx *ctx = new_ctx(1);
    double *num = normals(N, 1, 1, 1), *den = normals(N, 0, 1, 2);
    const n2_fit_options o = quick();
    fitted f = fit(ctx, num, N, den, N, 1, 0, &o);
    n2_quality q, back;
    assert_estimate(n2_estimate_kl(&f.scores, &f.record, &q), 0.5, 0.01, 0.08);
    assert_estimate(n2_estimate_reverse_kl(&f.scores, &f.record, &back), 0.5, 0.01, 0.08);
    static const double magnitudes[] = {1, 10, 1000};
    for (size_t i = 0; i < COUNT_OF(magnitudes); i++)
        assert_estimate(n2_estimate_path(&f.scores, magnitudes[i]),
                        n2ce_path_gaussian(1, magnitudes[i]), 0.001, 0.1);
    assert_close(q.normalisation, 1, 0.2, 0);
    assert_close(q.balance, 0, 0, 4 * q.balance_error + 0.01);
    assert_true(q.ess > 0.1 && q.ess < 0.8); /* the truth is 1/e */
    assert_true(q.bound < q.cap);
    fitted_free(&f);
    free(num);
    free(den);
    n2ce_ctx_free(ctx);
}

/* Samples of different sizes, correlated, in three dimensions and odd units. */
static void unequal_samples_in_odd_units(void **state) {
    (void)state;
    enum { N = 900, M = 1700, D = 3 };
    n2ce_ctx *ctx = new_ctx(1);
    double *num = normals(N * D, 0, 1, 3), *den = normals(M * D, 0, 1, 4);
    for (size_t i = 0; i < N; i++) num[i * D] += 1;
    for (size_t i = 0; i < N + M; i++) { /* the same linear map on both: KL stays */
        double *x = i < N ? num + i * D : den + (i - N) * D;
        x[1] = 1e5 * (x[1] + 0.9 * x[0]);
        x[2] = 1e-5 * (x[2] - x[0]) + 3;
    }
    const n2_fit_options o = quick();
    fitted f = fit(ctx, num, N, den, M, D, 0, &o);
    n2_quality q;
    assert_estimate(n2_estimate_kl(&f.scores, &f.record, &q), 0.5, 0.01, 0.1);
    assert_int_equal(f.scores.n[1], N);
    assert_int_equal(f.scores.n[0], M);
    fitted_free(&f);
    free(num);
    free(den);
    n2ce_ctx_free(ctx);
}

/* A correlated pair: -ln(1 - rho^2) / 2. */
static void mutual_information_of_a_pair(void **state) {
    (void)state;
    enum { N = 1500 };
    n2ce_ctx *ctx = new_ctx(1);
    double *xy = correlated(N, 0.8, 5);
    const n2_fit_options o = quick();
    fitted f = fit(ctx, xy, N, NULL, 0, 2, 1, &o);
    n2_quality q;
    assert_estimate(n2_estimate_kl(&f.scores, &f.record, &q), -0.5 * log(1 - 0.64), 0.005, 0.08);
    assert_int_equal(f.ratio->dx, 1);
    fitted_free(&f);
    free(xy);
    n2ce_ctx_free(ctx);
}

/* One distribution twice: nothing is found. */
static void one_distribution_twice(void **state) {
    (void)state;
    enum { N = 1000, D = 2 };
    n2ce_ctx *ctx = new_ctx(1);
    double *num = normals(N * D, 0, 1, 6), *den = normals(N * D, 0, 1, 7);
    const n2_fit_options o = quick();
    fitted f = fit(ctx, num, N, den, N, D, 0, &o);
    n2_quality q;
    assert_close(n2_estimate_kl(&f.scores, &f.record, &q).value, 0, 0, 0.02);
    assert_close(q.normalisation, 1, 0.05, 0);
    assert_true(q.ess > 0.9);
    fitted_free(&f);
    free(num);
    free(den);
    n2ce_ctx_free(ctx);
}

/* ---- what is not Gaussian ---- */

/* Two peaks at -2 and 2 of width 1/2, and a normal with the same mean and variance. */
static const double PEAK = 2, WIDTH = 0.5;

static double normal_density(double x, double mean, double sd) {
    const double z = (x - mean) / sd;
    return exp(-0.5 * z * z) / (sd * sqrt(2 * acos(-1)));
}

static double peaks_density(double x) {
    return 0.5 * (normal_density(x, -PEAK, WIDTH) + normal_density(x, PEAK, WIDTH));
}

static double peaks_sd(void) { return sqrt(PEAK * PEAK + WIDTH * WIDTH); }

static double peaks_log_ratio(double x) {
    return log(peaks_density(x) / normal_density(x, 0, peaks_sd()));
}

static double peaks_kl(void) {
    double kl = 0;
    for (double x = -6; x < 6; x += 1e-3) kl += 1e-3 * peaks_density(x) * peaks_log_ratio(x);
    return kl;
}

static double *peaks(size_t n, uint32_t stream) {
    double *x = normals(n, 0, WIDTH, stream), *side = uniforms(n, stream);
    for (size_t i = 0; i < n; i++) x[i] += side[i] < 0.5 ? -PEAK : PEAK;
    free(side);
    return x;
}

static n2_fit_options learning(void) {
    n2_fit_options o = quick();
    o.critic.steps = 600;
    o.critic.width = 32;
    o.critic.batch = 128;
    o.critic.noise = 4;
    o.critic.rate = 1e-2;
    o.critic.magnitude = 10;
    o.scaling = N2_SCALING_LINEAR;
    return o;
}

/* From the base's loss down to the one that was kept. */
static void assert_curve_leads_to_the_best(const n2_critic_record *r) {
    const n2_learning_curve *c = &r->curve;
    double least = c->loss[0], at = c->step[0];
    assert_true(c->n > 2 && c->n <= N2_MOST_LOOKS);
    assert_true(c->step[0] == 0 && c->loss[0] == r->base_loss);
    for (size_t i = 1; i < c->n; i++) {
        assert_true(c->step[i] > c->step[i - 1]);
        if (c->loss[i] < least) {
            least = c->loss[i];
            at = c->step[i];
        }
    }
    assert_true(c->step[c->n - 1] == (double)r->steps);
    assert_true(least == r->loss && at == (double)r->best_step);
}

/* The Gaussian part is blind to the peaks; the network sees them. */
static void the_network_learns_what_the_gaussians_miss(void **state) {
    (void)state;
    enum { N = 2000 };
    n2ce_ctx *ctx = new_ctx(1);
    double *num = peaks(N, 8), *den = normals(N, 0, peaks_sd(), 9), *new_rows = peaks(N, 10);
    n2_fit_options o = learning();
    fitted f = fit(ctx, num, N, den, N, 1, 0, &o);
    n2_quality q;
    const double truth = peaks_kl();
    assert_true(truth > 0.3);
    assert_close(f.record.gaussian, 0, 0, 0.02);
    assert_true(f.record.learned && f.ratio->critics > 0);
    for (size_t k = 0; k < f.record.folds_run; k++)
        assert_curve_leads_to_the_best(&f.record.fold[k]);
    assert_close(n2_estimate_kl(&f.scores, &f.record, &q).value, truth, 0, 0.12);
    double *got = new_doubles(N), off = 0, blind = 0;
    assert_int_equal(n2_ratio_score(f.ratio, new_rows, N, got), N2CE_OK);
    for (size_t i = 0; i < N; i++) {
        off += fabs(got[i] - peaks_log_ratio(new_rows[i])) / N;
        blind += fabs(peaks_log_ratio(new_rows[i])) / N;
    }
    if (!(off < 0.6 * blind)) print_error("off by %g, blind by %g\n", off, blind);
    assert_true(off < 0.6 * blind); /* 600 steps are few */
    fitted_free(&f);

    o.parts = N2_PARTS_QUADRATIC;
    f = fit(ctx, num, N, den, N, 1, 0, &o);
    assert_int_equal(f.ratio->critics, 0);
    assert_true(n2_estimate_kl(&f.scores, &f.record, &q).value < 0.1);
    fitted_free(&f);
    free(num);
    free(den);
    free(new_rows);
    free(got);
    n2ce_ctx_free(ctx);
}

/* y is near x^2: no correlation, and much information. */
static void the_network_learns_dependence_without_correlation(void **state) {
    (void)state;
    enum { N = 2000 };
    n2ce_ctx *ctx = new_ctx(1);
    double *xy = normals(2 * N, 0, 1, 11);
    for (size_t i = 0; i < N; i++) xy[2 * i + 1] = xy[2 * i] * xy[2 * i] + 0.5 * xy[2 * i + 1];
    const n2_fit_options o = learning();
    fitted f = fit(ctx, xy, N, NULL, 0, 2, 1, &o);
    n2_quality q;
    assert_close(f.record.gaussian, 0, 0, 0.02);
    assert_true(f.record.learned);
    assert_true(n2_estimate_kl(&f.scores, &f.record, &q).value > 0.4);
    fitted_free(&f);
    free(xy);
    n2ce_ctx_free(ctx);
}

/* Every contrast runs, and finds two normals one apart to be different. */
static void every_contrast_finds_the_difference(void **state) {
    (void)state;
    enum { N = 600 };
    n2ce_ctx *ctx = new_ctx(1);
    double *num = normals(N, 1.5, 1, 12), *den = normals(N, 0, 1, 13);
    for (n2_contrast c = N2_CONTRAST_N2CE; c <= N2_CONTRAST_SMILE; c++) {
        n2_fit_options o = quick();
        o.critic.contrast = c;
        o.critic.rate = 3e-3;
        o.critic.magnitude = c == N2_CONTRAST_N2CE || c == N2_CONTRAST_NEG_REWEIGHT ? 10 : 1;
        o.critic.stages = 1;
        o.parts = N2_PARTS_NET;
        fitted f = fit(ctx, num, N, den, N, 1, 0, &o);
        assert_null(f.ratio->base);
        assert_true(f.ratio->critics > 0);
        const double gap = mean_of(f.scores.f[1], N) - mean_of(f.scores.f[0], N);
        if (!(gap > 0.5 && gap < 20)) print_error("contrast %d: %g\n", (int)c, gap);
        assert_true(gap > 0.5 && gap < 20); /* the truth is 2.25 */
        fitted_free(&f);
    }
    free(num);
    free(den);
    n2ce_ctx_free(ctx);
}

/* The kernel methods need no network, and give ratios of about the right size. */
static void kernel_methods(void **state) {
    (void)state;
    enum { N = 400 };
    n2ce_ctx *ctx = new_ctx(1);
    double *num = normals(N, 1, 1, 14), *den = normals(N, 0, 1, 15), *xy = correlated(N, 0.8, 16);
    static const n2_estimator methods[] = {N2_ESTIMATOR_ULSIF, N2_ESTIMATOR_KLIEP};
    for (size_t i = 0; i < 2; i++) {
        n2_fit_options o = quick();
        n2_quality q;
        o.estimator = methods[i];
        fitted f = fit(ctx, num, N, den, N, 1, 0, &o);
        assert_non_null(f.ratio->kernel);
        assert_int_equal(f.ratio->critics, 0);
        assert_close(n2_estimate_kl(&f.scores, &f.record, &q).value, 0.5, 0, 0.25);
        fitted_free(&f);
        f = fit(ctx, xy, N, NULL, 0, 2, 1, &o);
        assert_close(n2_estimate_kl(&f.scores, &f.record, &q).value, 0.51, 0, 0.3);
        fitted_free(&f);
    }
    free(num);
    free(den);
    free(xy);
    n2ce_ctx_free(ctx);
}

/* ---- estimates from given log ratios ---- */

/* With the true log ratios every estimate is right, and knows its error; with none (f = 0) all
 * are exactly 0. */
static void estimates_from_the_truth(void **state) {
    (void)state;
    enum { N = 4000 };
    double *num = normals(N, 1, 1, 17), *den = normals(N, 0, 1, 18), *zero = new_doubles(N);
    for (size_t i = 0; i < N; i++) {
        num[i] -= 0.5;
        den[i] -= 0.5;
    }
    const n2_scores s = {.n = {N, N}, .f = {den, num}, .learned = {den, num}};
    const n2_scores none = {.n = {N, N}, .f = {zero, zero}, .learned = {zero, zero}};
    const n2_fit_record r = {.used = {.critic = {.magnitude = 10}},
                             .gaussian = N2_NAN,
                             .gaussian_reverse = N2_NAN,
                             .learned = true};
    n2_quality q;
    assert_estimate(n2_estimate_kl(&s, &r, &q), 0.5, 0.005, 0.05);
    assert_close(q.normalisation, 1, 0.1, 0);
    assert_close(q.cap, n2ce_bound_cap(10), 1e-12, 0);
    assert_close(q.bound, n2ce_path_gaussian(1, 10), 0.1, 0);
    assert_estimate(n2_estimate_reverse_kl(&s, &r, &q), 0.5, 0.005, 0.05);
    assert_estimate(n2_estimate_path(&s, 1), n2ce_path_gaussian(1, 1), 0.001, 0.05);
    assert_close(n2_estimate_kl(&none, &r, &q).value, 0, 0, 1e-12);
    assert_close(q.normalisation, 1, 1e-12, 0);
    assert_close(q.ess, 1, 1e-12, 0);
    assert_close(n2_estimate_path(&none, 7).value, 0, 0, 1e-12);
    free(num);
    free(den);
    free(zero);
}

/* ---- held-out rows ---- */

/* Rows of whole numbers, so that means do not depend on the order of additions. */
static double *whole_numbers(size_t n, double shift, uint32_t stream) {
    double *x = normals(n, 0, 3, stream);
    for (size_t i = 0; i < n; i++) x[i] = shift + floor(x[i]);
    return x;
}

/* The places in the table of the rows that come first after the shuffle. */
static size_t *order_of_rows(n2ce_ctx *ctx, size_t n, uint64_t seed) {
    double *x = new_doubles(n);
    size_t *order = calloc(n, sizeof *order);
    assert_non_null(order);
    for (size_t i = 0; i < n; i++) x[i] = (double)i;
    n2_table *t = new_table(ctx, x, n, 1);
    assert_int_equal(n2_table_shuffle(t, seed, 1), N2CE_OK);
    for (size_t i = 0; i < n; i++) order[i] = (size_t)t->x[i];
    n2_table_free(t);
    free(x);
    return order;
}

static bool same_parameters(const n2_critic *a, const n2_critic *b) {
    const n2_tensor *x, *y;
    for (size_t i = 0; (x = n2_critic_parameter(a, i)); i++) {
        y = n2_critic_parameter(b, i);
        if (memcmp(x->data, y->data, (size_t)n2_elements(x->shape) * sizeof(float)) != 0)
            return false;
    }
    return true;
}

/* A critic does not see its own fold: exchanging rows there changes no bit of it, while it
 * changes the critics of other folds. */
static void critics_do_not_see_their_fold(void **state) {
    (void)state;
    enum { N = 90, FOLDS = 3 };
    n2ce_ctx *ctx = new_ctx(1);
    n2_fit_options o = quick();
    o.folds = FOLDS;
    o.parts = N2_PARTS_NET;
    o.scaling = N2_SCALING_LINEAR;
    o.critic.magnitude = 10;
    o.critic.stages = 1;
    o.critic.steps = 30;
    double *num = whole_numbers(2 * N, 2, 19), *den = whole_numbers(2 * N, 0, 20);
    fitted before = fit(ctx, num, N, den, N, 2, 0, &o);
    size_t *order = order_of_rows(ctx, N, o.seed);
    for (size_t i = 0; i + 1 < N / FOLDS; i++) { /* moves each row of fold 0 to the next place */
        double *a = num + 2 * order[i], *b = num + 2 * order[i + 1], t[2];
        memcpy(t, a, sizeof t);
        memcpy(a, b, sizeof t);
        memcpy(b, t, sizeof t);
    }
    fitted after = fit(ctx, num, N, den, N, 2, 0, &o);
    assert_int_equal(before.ratio->critics, FOLDS);
    assert_true(same_parameters(before.ratio->critic[0], after.ratio->critic[0]));
    assert_false(same_parameters(before.ratio->critic[1], after.ratio->critic[1]));
    assert_false(same_parameters(before.ratio->critic[2], after.ratio->critic[2]));
    fitted_free(&before);
    fitted_free(&after);
    free(order);
    free(num);
    free(den);
    n2ce_ctx_free(ctx);
}

/* ---- the same again ---- */

static fitted fit_peaks(int threads, uint64_t seed, n2ce_ctx **ctx) {
    enum { N = 300 };
    double *num = peaks(N, 21), *den = normals(N, 0, peaks_sd(), 22);
    n2_fit_options o = quick();
    o.parts = N2_PARTS_NET;
    o.critic.stages = 2;
    o.critic.steps = 30;
    o.seed = seed;
    *ctx = new_ctx(threads);
    fitted f = fit(*ctx, num, N, den, N, 1, 0, &o);
    free(num);
    free(den);
    return f;
}

/* The seed decides every bit, the number of threads none. */
static void the_seed_decides_and_threads_do_not(void **state) {
    (void)state;
    static const int threads[] = {2, 7, 1};
    n2ce_ctx *ctx, *other;
    fitted first = fit_peaks(1, 3, &ctx);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        fitted again = fit_peaks(threads[i], i < 2 ? 3 : 4, &other);
        for (size_t side = 0; side < 2; side++) {
            const size_t bytes = first.scores.n[side] * sizeof(double);
            const bool same = memcmp(first.scores.f[side], again.scores.f[side], bytes) == 0;
            assert_true(same == (i < 2));
        }
        assert_true(same_parameters(first.ratio->critic[0], again.ratio->critic[0]) == (i < 2));
        fitted_free(&again);
        n2ce_ctx_free(other);
    }
    fitted_free(&first);
    n2ce_ctx_free(ctx);
}

/* The model's score of many rows is that of one row at a time, up to the last bits of a float:
 * some kernels round differently where a row stands alone. */
static void scores_do_not_depend_on_company(void **state) {
    (void)state;
    enum { ROWS = 5000 }; /* more than a block */
    n2ce_ctx *ctx;
    fitted f = fit_peaks(2, 3, &ctx);
    double *x = normals(ROWS, 0, 2, 23), *all = new_doubles(ROWS), one;
    assert_int_equal(n2_ratio_score(f.ratio, x, ROWS, all), N2CE_OK);
    for (size_t i = 0; i < ROWS; i += 499) {
        assert_int_equal(n2_ratio_score(f.ratio, x + i, 1, &one), N2CE_OK);
        assert_close(one, all[i], 1e-5, 1e-5);
    }
    free(x);
    free(all);
    fitted_free(&f);
    n2ce_ctx_free(ctx);
}

/* ---- limits and failures ---- */

/* Without an end in sight the time limit ends it, with a result that says so. */
static void max_seconds_is_honoured(void **state) {
    (void)state;
    enum { N = 500 };
    n2ce_ctx *ctx = new_ctx(1);
    double *num = peaks(N, 24), *den = normals(N, 0, peaks_sd(), 25);
    n2_fit_options o = quick();
    o.parts = N2_PARTS_NET;
    o.critic.steps = 1000000000;
    o.critic.rate = 1e-7; /* so slow that it never stops early */
    o.max_seconds = 0.5;
    const double start = n2_seconds();
    fitted f = fit(ctx, num, N, den, N, 1, 0, &o);
    assert_true(n2_seconds() - start < 10); /* machines are busy at times */
    assert_true(f.record.fold[0].out_of_time);
    fitted_free(&f);
    free(num);
    free(den);
    n2ce_ctx_free(ctx);
}

static void cancel_at_once(void *user, double done, double total) {
    (void)done;
    (void)total;
    n2ce_ctx_cancel(*(n2ce_ctx **)user);
}

/* Cancelled in the middle: nothing comes back, nothing is left. */
static void cancelling_leaves_nothing(void **state) {
    (void)state;
    enum { N = 300 };
    failing_alloc memory = failing_alloc_new(NEVER, false);
    n2ce_ctx_options options = failing_alloc_options(&memory, 2);
    n2ce_ctx *ctx;
    options.progress = cancel_at_once;
    options.progress_user = &ctx;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    double *num = peaks(N, 26), *den = normals(N, 0, peaks_sd(), 27);
    const n2_fit_options o = quick();
    fitted f;
    assert_int_equal(try_fit(ctx, num, N, den, N, 1, 0, &o, &f), N2CE_ECANCELED);
    assert_null(f.scores.f[0]);
    n2ce_ctx_free(ctx);
    assert_int_equal(memory.live, 0);
    free(num);
    free(den);
}

/* What a fit of 64 rows, enough for a network, asks for; den NULL: mutual information. */
enum { TINY = 64 };

static n2ce_status tiny_fit(failing_alloc *memory, const double *num, const double *den,
                            const n2_fit_options *o) {
    const n2ce_ctx_options options = failing_alloc_options(memory, 2);
    const n2ce_matrix m[] = {matrix(num, TINY, 2), matrix(den, TINY, 2)};
    n2ce_ctx *ctx;
    n2_table *a = NULL, *b = NULL;
    fitted f = {0};
    n2ce_status status = n2ce_ctx_new(&ctx, &options);
    if (status != N2CE_OK) return status;
    status = n2_table_of_matrix(ctx, &m[0], "num", NULL, &a);
    if (status == N2CE_OK && den) status = n2_table_of_matrix(ctx, &m[1], "den", NULL, &b);
    if (status == N2CE_OK) {
        status = n2_ratio_fit(ctx, a, b, den ? 0 : 1, NULL, o, &f.ratio, &f.scores, &f.record);
        assert_true((status == N2CE_OK) == (f.ratio != NULL));
    }
    if (status == N2CE_OK) assert_true(f.record.folds_run > 0 || o->estimator);
    if (status == N2CE_OK) {
        double scores[TINY];
        status = n2_ratio_score(f.ratio, num, TINY, scores);
    }
    /* the Gaussian divergence has no status: NaN says that it could not be had */
    const bool gaussian = o->parts == N2_PARTS_BOTH && o->estimator == N2_ESTIMATOR_NEURAL;
    if (status == N2CE_OK && gaussian &&
        isnan(f.record.gaussian + (den ? f.record.gaussian_reverse : 0)))
        status = N2CE_ENOMEM;
    const bool said = strstr(n2ce_errmsg(ctx), "memory") != NULL;
    if (status != N2CE_OK && !said) print_error("%zu: \"%s\"\n", memory->fail_at, n2ce_errmsg(ctx));
    assert_true(status == N2CE_OK || said);
    if (f.ratio) fitted_free(&f);
    n2_table_free(a);
    n2_table_free(b);
    n2ce_ctx_free(ctx);
    return status;
}

/* Fails every single allocation of a fit in turn. */
static void fail_each(const double *num, const double *den, const n2_fit_options *o) {
    n2ce_status status = N2CE_ENOMEM;
    size_t n = 0;
    for (; status != N2CE_OK; n++) {
        failing_alloc memory = failing_alloc_new(n, false);
        assert_true(n < 20000);
        status = tiny_fit(&memory, num, den, o);
        if (status != (memory.calls > n ? N2CE_ENOMEM : N2CE_OK))
            print_error("allocation %zu: status %d\n", n, (int)status);
        assert_int_equal(status, memory.calls > n ? N2CE_ENOMEM : N2CE_OK);
        if (memory.live) print_error("allocation %zu leaves %ld blocks\n", n, memory.live);
        assert_int_equal(memory.live, 0);
        assert_int_equal(memory.strangers, 0);
    }
    assert_true(n > 20);
}

static void every_failed_allocation_is_an_error(void **state) {
    (void)state;
    double *num = normals(2 * TINY, 1, 1, 28), *den = normals(2 * TINY, 0, 1, 29);
    n2_fit_options o = {.critic = {.steps = 2, .width = 4, .blocks = 1, .batch = 8, .noise = 1},
                        .folds = 2};
    fail_each(num, den, &o);
    fail_each(num, NULL, &o);
    o.parts = N2_PARTS_NET;
    o.critic.stages = 2;
    o.explain = true;
    fail_each(num, den, &o);
    o.estimator = N2_ESTIMATOR_KLIEP;
    fail_each(num, NULL, &o);
    free(num);
    free(den);
}

/* Every row is there once, whole, and in the same place for any number of threads. */
static void shuffling_moves_whole_rows(void **state) {
    (void)state;
    enum { MOST_ROWS = 9001, COLS = 3 };
    static const size_t sizes[] = {1, 2, 3, 100, 5000, MOST_ROWS};
    double *x = new_doubles(MOST_ROWS * COLS), *first = new_doubles(MOST_ROWS * COLS);
    for (size_t i = 0; i < MOST_ROWS * COLS; i++) x[i] = (double)i;
    for (size_t k = 0; k < COUNT_OF(sizes); k++)
        for (int threads = 1; threads < 5; threads++) {
            n2ce_ctx *ctx = new_ctx(threads);
            const size_t n = sizes[k];
            n2_table *t = new_table(ctx, x, n, COLS);
            unsigned char *seen = calloc(n, 1);
            assert_int_equal(n2_table_shuffle(t, 3, 1), N2CE_OK);
            for (size_t i = 0; i < n; i++) {
                const double *row = t->x + i * COLS;
                assert_int_equal(seen[(size_t)row[0] / COLS]++, 0);
                assert_true(row[1] == row[0] + 1 && row[2] == row[0] + 2);
            }
            if (threads == 1) memcpy(first, t->x, n * COLS * sizeof *first);
            assert_memory_equal(first, t->x, n * COLS * sizeof *first);
            free(seen);
            n2_table_free(t);
            n2ce_ctx_free(ctx);
        }
    free(x);
    free(first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffling_moves_whole_rows),
        cmocka_unit_test(two_normals),
        cmocka_unit_test(few_rows_share_a_covariance),
        cmocka_unit_test(a_factor_in_many_columns),
        cmocka_unit_test(unequal_samples_in_odd_units),
        cmocka_unit_test(mutual_information_of_a_pair),
        cmocka_unit_test(one_distribution_twice),
        cmocka_unit_test(the_network_learns_what_the_gaussians_miss),
        cmocka_unit_test(the_network_learns_dependence_without_correlation),
        cmocka_unit_test(every_contrast_finds_the_difference),
        cmocka_unit_test(kernel_methods),
        cmocka_unit_test(estimates_from_the_truth),
        cmocka_unit_test(critics_do_not_see_their_fold),
        cmocka_unit_test(the_seed_decides_and_threads_do_not),
        cmocka_unit_test(scores_do_not_depend_on_company),
        cmocka_unit_test(max_seconds_is_honoured),
        cmocka_unit_test(cancelling_leaves_nothing),
        cmocka_unit_test(every_failed_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
