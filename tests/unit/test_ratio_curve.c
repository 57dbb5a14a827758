/* Facts about what half of the rows say of those that are missing, and about what functions of the
 * distance from the middle find. */
#include "samples.h"

#include "base/numerics.h"
#include "ratio/estimate.h"
#include "task/ratio_verdict.h"

#include <math.h>
#include <string.h>

typedef struct fitted {
    n2_ratio *ratio;
    n2_scores scores;
    n2_fit_record record;
} fitted;

/* By a smooth part and no network. den NULL: mutual information of two columns. */
static fitted fit(n2ce_ctx *ctx, const double *num, const double *den, size_t n, size_t d) {
    const n2_fit_options o = {.critic = {.stages = 1}, .smooth = true, .seed = 5};
    n2_table *a = new_table(ctx, num, n, d), *b = den ? new_table(ctx, den, n, d) : NULL;
    fitted out;
    assert_int_equal(
        n2_ratio_fit(ctx, a, b, den ? 0 : 1, NULL, &o, &out.ratio, &out.scores, &out.record),
        N2CE_OK);
    n2_table_free(a);
    n2_table_free(b);
    return out;
}

static void fitted_free(fitted *f) {
    n2_ratio_free(f->ratio);
    n2_scores_free(&f->scores);
}

/* ---- given log ratios ---- */

enum { N = 2000 };

/* The true log ratios of N(1/2, 1) over N(-1/2, 1), which are the rows, and a share of them. */
typedef struct known {
    double *f[2], *half[2];
} known;

static known know(double share) {
    known k;
    for (uint32_t side = 0; side < 2; side++) {
        k.f[side] = normals(N, side ? 0.5 : -0.5, 1, 31 + side);
        k.half[side] = new_doubles(N);
        for (size_t i = 0; i < N; i++) k.half[side][i] = share * k.f[side][i];
    }
    return k;
}

static void forget(known *k) {
    for (size_t side = 0; side < 2; side++) {
        free(k->f[side]);
        free(k->half[side]);
    }
}

static n2_scores scores_of(const known *k, double half_share) {
    return (n2_scores){.n = {N, N},
                       .f = {k->f[0], k->f[1]},
                       .learned = {k->f[0], k->f[1]},
                       .half = {k->half[0], k->half[1]},
                       .half_share = half_share};
}

static const n2_fit_record LEARNED = {.used = {.critic = {.magnitude = 1}},
                                      .gaussian = N2_NAN,
                                      .gaussian_reverse = N2_NAN,
                                      .learned = true};

/* Half of the rows that say the same add nothing; those that find 4/10 of each log ratio add what
 * they miss to the error, and nothing to the number. */
static void what_half_of_the_rows_miss_is_in_the_interval(void **state) {
    (void)state;
    known same = know(1), less = know(0.4);
    const n2_scores a = scores_of(&same, 1), b = scores_of(&less, 1);
    n2_quality q, r;
    const n2_estimate e = n2_estimate_kl(&a, &LEARNED, &q), w = n2_estimate_kl(&b, &LEARNED, &r);
    assert_close(q.curve, 0, 0, 1e-12);
    assert_close(w.value, e.value, 1e-12, 0);
    assert_true(r.curve > 0.1 * w.value && r.curve < 0.5 * w.value);
    assert_true(w.error * w.error > e.error * e.error + r.curve * r.curve - 1e-9);
    const n2_estimate js = n2_estimate_path(&b, 1), sure = n2_estimate_path(&a, 1);
    assert_close(js.value, sure.value, 1e-12, 0);
    assert_true(js.error > sure.error && n2_estimate_curve(&a) < 1e-12);
    assert_close(r.curve, n2_estimate_curve(&b) * w.value, 1e-9, 0);
    forget(&same);
    forget(&less);
}

/* Of a fifth of the rows alone it is known: what these miss stands for all. */
static void what_some_rows_miss_stands_for_all(void **state) {
    (void)state;
    known some = know(1);
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < N / 5; i++) some.half[side][i] *= 0.5;
    const n2_scores all = scores_of(&some, 1), fifth = scores_of(&some, 0.2);
    assert_true(n2_estimate_curve(&all) > 0);
    assert_close(n2_estimate_curve(&fifth), 5 * n2_estimate_curve(&all), 1e-9, 0);
    forget(&some);
}

/* ---- the verdict ---- */

static n2_judgement judge(double value, double curve) {
    n2_ratio ratio = {0};
    known same = know(1);
    const n2_session s = {.ratio = &ratio, .rows = {1000, 1000}, .scores = scores_of(&same, 1)};
    const n2_quality q = {.curve = curve};
    const n2_judgement out = n2_judge(&s, N2_JUDGED_KL, (n2_estimate){value, 0.1}, &q, 1.96);
    forget(&same);
    return out;
}

/* A number that more than a quarter of is still to be found is doubtful, and says why. */
static void what_rises_with_the_rows_is_doubtful(void **state) {
    (void)state;
    assert_int_equal(judge(0.5, 0.12).trust, N2_TRUSTED);
    const n2_judgement rising = judge(0.5, 0.13);
    assert_int_equal(rising.trust, N2_DOUBTFUL);
    assert_non_null(strstr(rising.reason, "half of the rows find 0.13 nats less"));
}

/* What trees would add that were not sure enough to be taken is missing like that. */
static void what_was_passed_over_is_in_the_interval(void **state) {
    (void)state;
    known same = know(1);
    n2_scores s = scores_of(&same, 1);
    n2_quality q;
    s.passed_over = 0.1 * n2_estimate_path(&s, 1).value;
    const n2_estimate e = n2_estimate_kl(&s, &LEARNED, &q);
    assert_close(q.curve, 0.1 * e.value, 1e-9, 0);
    forget(&same);
}

/* Who does not know JS, which is below 0.7, knows no other number. */
static void a_wide_js_makes_all_doubtful(void **state) {
    (void)state;
    known few = know(1);
    n2_ratio ratio = {0};
    n2_session s = {.ratio = &ratio, .rows = {1000, 1000}, .scores = scores_of(&few, 1)};
    const n2_estimate e = {0.5, 0.1};
    const n2_quality q = {0};
    assert_int_equal(n2_judge(&s, N2_JUDGED_KL, e, &q, 1.96).trust, N2_TRUSTED);
    s.scores.n[0] = s.scores.n[1] = 2; /* of whose rows nobody knows much */
    const n2_judgement wide = n2_judge(&s, N2_JUDGED_KL, e, &q, 1.96);
    assert_int_equal(wide.trust, N2_DOUBTFUL);
    assert_non_null(strstr(wide.reason, "standard error of JS"));
    forget(&few);
}

/* ---- fits ---- */

/* y follows sin 4x, with noise. */
static double *waves(size_t n) {
    double *xy = normals(2 * n, 0, 1, 33);
    for (size_t i = 0; i < n; i++) xy[2 * i + 1] = sin(4 * xy[2 * i]) + 0.3 * xy[2 * i + 1];
    return xy;
}

/* The part of the error is larger with few rows, and the truth in the interval with either. */
static void more_rows_leave_less_to_be_found(void **state) {
    (void)state;
    enum { FEW = 200, MANY = 2000 };
    n2ce_ctx *ctx = new_ctx(2);
    double *few = waves(FEW), *many = waves(MANY);
    fitted a = fit(ctx, few, NULL, FEW, 2), b = fit(ctx, many, NULL, MANY, 2);
    n2_quality q, r;
    const n2_estimate e = n2_estimate_kl(&a.scores, &a.record, &q);
    const n2_estimate w = n2_estimate_kl(&b.scores, &b.record, &r);
    assert_non_null(a.scores.half[0]);
    assert_true(a.scores.half_share == 1);
    assert_true(q.curve > 0.05 && q.curve > 2 * r.curve);
    assert_true(w.value > e.value - 2 * q.curve);
    assert_close(e.value, w.value, 0, 3 * e.error);
    fitted_free(&a);
    fitted_free(&b);
    free(few);
    free(many);
    n2ce_ctx_free(ctx);
}

/* Two bumps two apart from a normal, and far from it in another column. */
static double *bumps(size_t n) {
    double *x = normals(2 * n, 0, 0.7, 40);
    for (size_t i = 0; i < n; i++) {
        x[2 * i] += i % 2 ? 1.2 : -1.2;
        x[2 * i + 1] += 1.5;
    }
    return x;
}

/* A network of half of the rows begins where one of all rows does, at the Gaussian part: else what
 * the two say would be as far apart as that part is wide. */
static void half_of_the_rows_teach_beside_the_gaussian_part(void **state) {
    (void)state;
    enum { ROWS = 600 };
    n2ce_ctx *ctx = new_ctx(2);
    double *num = bumps(ROWS), *den = normals(2 * ROWS, 0, 1, 41), apart = 0;
    const n2_fit_options o = {
        .critic = {.stages = 1, .magnitude = 1, .width = 16, .steps = 300}, .folds = 2, .seed = 5};
    n2_table *a = new_table(ctx, num, ROWS, 2), *b = new_table(ctx, den, ROWS, 2);
    fitted f;
    assert_int_equal(n2_ratio_fit(ctx, a, b, 0, NULL, &o, &f.ratio, &f.scores, &f.record), N2CE_OK);
    assert_non_null(f.scores.half[1]);
    for (size_t i = 0; i < ROWS; i++) apart += fabs(f.scores.half[1][i] - f.scores.f[1][i]) / ROWS;
    if (!(apart < 0.4)) print_error("they are %g nats apart\n", apart);
    assert_true(apart < 0.4);
    n2_table_free(a);
    n2_table_free(b);
    fitted_free(&f);
    free(num);
    free(den);
    n2ce_ctx_free(ctx);
}

/* Rows on a shell: a direction by chance, and a gamma variable of a whole shape as the radius. */
static double *shell(size_t n, size_t shape, double mean, uint32_t stream) {
    double *x = normals(3 * n, 0, 1, stream), *u = uniforms(shape * n, stream + 1);
    for (size_t i = 0; i < n; i++) {
        double radius = 0, square = 0;
        for (size_t k = 0; k < shape; k++) radius -= log(fmax(u[i * shape + k], 1e-12));
        for (size_t j = 0; j < 3; j++) square += x[3 * i + j] * x[3 * i + j];
        for (size_t j = 0; j < 3; j++) x[3 * i + j] *= radius * mean / (double)shape / sqrt(square);
    }
    free(u);
    return x;
}

/* KL of gamma distributions of whole shapes a and b with means m and l. */
static double gamma_kl(double a, double m, double b, double l) {
    double digamma = -0.57721566490153286;
    for (double k = 1; k < a; k++) digamma += 1 / k;
    const double scale = m / a, other = l / b;
    return (a - b) * digamma - lgamma(a) + lgamma(b) + b * log(other / scale) +
           a * (scale - other) / other;
}

/* The log ratio of two shells is a sum of the radius and its logarithm, which kernels do not carry
 * on where there are no rows. */
static void shells_are_told_by_their_radius(void **state) {
    (void)state;
    enum { ROWS = 1000 };
    n2ce_ctx *ctx = new_ctx(2);
    double *num = shell(ROWS, 4, 1.6, 34), *den = shell(ROWS, 12, 2, 36);
    fitted f = fit(ctx, num, den, ROWS, 3);
    n2_quality q;
    const double truth = gamma_kl(4, 1.6, 12, 2);
    assert_close(truth, 0.757, 0.01, 0);
    assert_true(f.record.shaped);
    const double value = n2_estimate_kl(&f.scores, &f.record, &q).value;
    if (!(value > 0.6 * truth)) print_error("%g of %g\n", value, truth);
    assert_true(value > 0.6 * truth && value < 1.3 * truth);
    fitted_free(&f);
    free(num);
    free(den);
    n2ce_ctx_free(ctx);
}

/* A log ratio of 0 everywhere has no variance, and may be wrong all the same. */
static void nothing_found_has_an_error(void **state) {
    enum { FEW = 50 };
    (void)state;
    double zeros[2][FEW] = {{0}};
    const n2_scores s = {.n = {FEW, FEW}, .f = {zeros[0], zeros[1]}, .certainty = 1};
    const n2_estimate two_js = n2_estimate_path(&s, 1);
    assert_close(two_js.value, 0, 0, 1e-12);
    assert_close(two_js.error, 0.5 / FEW, 1e-12, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_found_has_an_error),
        cmocka_unit_test(what_half_of_the_rows_miss_is_in_the_interval),
        cmocka_unit_test(what_some_rows_miss_stands_for_all),
        cmocka_unit_test(what_rises_with_the_rows_is_doubtful),
        cmocka_unit_test(what_was_passed_over_is_in_the_interval),
        cmocka_unit_test(a_wide_js_makes_all_doubtful),
        cmocka_unit_test(more_rows_leave_less_to_be_found),
        cmocka_unit_test(half_of_the_rows_teach_beside_the_gaussian_part),
        cmocka_unit_test(shells_are_told_by_their_radius),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
