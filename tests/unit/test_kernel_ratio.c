/* Facts about the kernel density ratios uLSIF and KLIEP. */
#include "contexts.h"
#include "failing_alloc.h"

#include "base/linalg.h"
#include "base/numerics.h"
#include "base/random.h"
#include "ratio/kernel_ratio.h"

#include <time.h>

static const n2_kernel_method methods[] = {N2_ULSIF, N2_KLIEP};

static double *new_doubles(size_t n) {
    double *x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

/* n x cols independent normals. */
static double *normal_sample(size_t n, size_t cols, double mean, double sd, uint32_t stream) {
    double *x = new_doubles(n * cols);
    float *z = malloc((n * cols + 1) * sizeof *z);
    assert_non_null(z);
    n2_fill_normal((n2_stream){.seed = 11, .stream = stream}, 0, n * cols, z);
    for (size_t i = 0; i < n * cols; i++) x[i] = mean + sd * (double)z[i];
    free(z);
    return x;
}

static n2_kernel_ratio *fit(n2ce_ctx *ctx, n2_kernel_method method, const double *num, size_t n_num,
                            const double *den, size_t n_den, size_t cols, size_t centres,
                            uint64_t seed) {
    n2_kernel_ratio *r;
    const n2ce_status status =
        n2_kernel_ratio_fit(ctx, method, num, n_num, den, n_den, cols, centres, seed, &r);
    if (status != N2CE_OK) print_error("%s\n", n2ce_errmsg(ctx));
    assert_int_equal(status, N2CE_OK);
    return r;
}

static void mean_and_top(const n2_kernel_ratio *r, const double *x, size_t n, double *mean,
                         double *top) {
    double *f = new_doubles(n);
    n2_kernel_ratio_score(r, x, n, f);
    *mean = *top = 0;
    for (size_t i = 0; i < n; i++) {
        *mean += exp(f[i]) / (double)n;
        *top = fmax(*top, exp(f[i]));
    }
    free(f);
}

/* The definition, with nothing shared with the library. */
static double kernel(const double *x, const double *c, size_t cols, double sigma) {
    double sum = 0;
    for (size_t j = 0; j < cols; j++) sum += (x[j] - c[j]) * (x[j] - c[j]);
    return exp(-sum / (2 * sigma * sigma));
}

static double ratio_by_definition(const n2_kernel_ratio *r, const double *x) {
    double sum = 0;
    for (size_t l = 0; l < r->centres; l++)
        sum += r->alpha[l] * kernel(x, r->centre + l * r->cols, r->cols, r->sigma);
    return sum;
}

/* ln N(x; 0, 1) / N(x; 0.5, 1.2) */
static double true_log_ratio(double x) {
    const double z = (x - 0.5) / 1.2;
    return -x * x / 2 + z * z / 2 + log(1.2);
}

/* ---- against the truth ------------------------------------------------------------------ */

static void check_bulk(n2_kernel_method method, size_t n_num, size_t n_den, double rms,
                       double worst) {
    n2ce_ctx *ctx = new_ctx(1);
    for (uint32_t repeat = 0; repeat < 3; repeat++) {
        double *num = normal_sample(n_num, 1, 0, 1, 2 * repeat);
        double *den = normal_sample(n_den, 1, 0.5, 1.2, 2 * repeat + 1);
        double x[41], f[41], square = 0, mean, top;
        n2_kernel_ratio *r = fit(ctx, method, num, n_num, den, n_den, 1, 0, repeat);
        for (size_t i = 0; i < COUNT_OF(x); i++) x[i] = -2 + 0.1 * (double)i;
        n2_kernel_ratio_score(r, x, COUNT_OF(x), f);
        for (size_t i = 0; i < COUNT_OF(x); i++) {
            assert_close(f[i], true_log_ratio(x[i]), 0, worst);
            square += pow(f[i] - true_log_ratio(x[i]), 2);
        }
        assert_true(sqrt(square / COUNT_OF(x)) < rms);
        mean_and_top(r, den, n_den, &mean, &top);
        assert_close(mean, 1, 0, method == N2_KLIEP ? 1e-9 : 0.1);
        n2_kernel_ratio_free(r);
        free(num), free(den);
    }
    n2ce_ctx_free(ctx);
}

/* Within two standard deviations of the numerator, from 2000 rows a side: 0.15 in the mean
 * square, 0.4 everywhere. */
static void the_ratio_of_two_normals_is_found(void **state) {
    (void)state;
    check_bulk(N2_ULSIF, 2000, 2000, 0.15, 0.4);
    check_bulk(N2_KLIEP, 2000, 2000, 0.15, 0.4);
}

/* A sum divided by the other sample's size would be off by ln 8 = 2.1. */
static void sizes_may_differ(void **state) {
    (void)state;
    check_bulk(N2_ULSIF, 250, 2000, 0.3, 0.7);
    check_bulk(N2_ULSIF, 2000, 250, 0.3, 0.7);
    check_bulk(N2_KLIEP, 250, 2000, 0.3, 0.7);
    check_bulk(N2_KLIEP, 2000, 250, 0.3, 0.7);
}

/* Equal distributions, and equal rows: the ratio is 1, without spikes. */
static void equal_samples_have_ratio_one(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    const size_t sizes[] = {60, 200, 1000}, widths[] = {1, 5};
    for (size_t i = 0; i < COUNT_OF(methods) * COUNT_OF(sizes) * COUNT_OF(widths) * 2; i++) {
        const n2_kernel_method method = methods[i % 2];
        const size_t cols = widths[i / 2 % 2], n = sizes[i / 4 % 3];
        double *num = normal_sample(n, cols, 0, 1, 20), mean, top;
        double *den = i / 12 ? normal_sample(n, cols, 0, 1, 21) : num;
        n2_kernel_ratio *r = fit(ctx, method, num, n, den, n, cols, 0, 1);
        mean_and_top(r, den, n, &mean, &top);
        assert_close(mean, 1, 0, 0.1);
        assert_true(top < (n < 1000 ? 2.5 : 1.3));
        n2_kernel_ratio_free(r);
        if (den != num) free(den);
        free(num);
    }
    n2ce_ctx_free(ctx);
}

/* ---- against the definitions ------------------------------------------------------------ */

/* Scores belong to the rows asked for: any number, any order, seen or not. */
static void scores_follow_the_definition_at_any_rows(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double *num = normal_sample(120, 3, 0, 1, 30), *den = normal_sample(90, 3, 0.3, 1.2, 31);
    double *fresh = normal_sample(301, 3, 0, 1.5, 32), *f = new_doubles(301);
    for (size_t m = 0; m < COUNT_OF(methods); m++) {
        n2_kernel_ratio *r = fit(ctx, methods[m], num, 120, den, 90, 3, 0, 1);
        n2_kernel_ratio_score(r, fresh, 301, f);
        for (size_t i = 0; i < 301; i++) {
            double alone;
            assert_close(f[i], log(fmax(ratio_by_definition(r, fresh + 3 * i), 1e-12)), 1e-11,
                         1e-11);
            n2_kernel_ratio_score(r, fresh + 3 * i, 1, &alone);
            assert_close(alone, f[i], 0, 0);
        }
        n2_kernel_ratio_free(r);
    }
    free(num), free(den), free(fresh), free(f);
    n2ce_ctx_free(ctx);
}

/* alpha = max(0, (H + lambda I)^-1 h), H over the denominator and h over the numerator, each
 * divided by its own size. */
static void ulsif_solves_its_equations(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    const size_t n_num = 130, n_den = 310, cols = 2;
    double *num = normal_sample(n_num, cols, 0, 1, 40);
    double *den = normal_sample(n_den, cols, 0.4, 1.3, 41);
    n2_kernel_ratio *r = fit(ctx, N2_ULSIF, num, n_num, den, n_den, cols, 30, 3);
    const size_t b = r->centres;
    double *h = new_doubles(b), *gram = new_doubles(b * b);
    for (size_t l = 0; l < b; l++) {
        const double *c = r->centre + l * cols;
        for (size_t i = 0; i < n_num; i++)
            h[l] += kernel(num + i * cols, c, cols, r->sigma) / (double)n_num;
        for (size_t m = 0; m < b; m++)
            for (size_t i = 0; i < n_den; i++)
                gram[l * b + m] += kernel(den + i * cols, c, cols, r->sigma) *
                                   kernel(den + i * cols, r->centre + m * cols, cols, r->sigma) /
                                   (double)n_den;
        gram[l * b + l] += r->lambda;
    }
    assert_int_equal(b, 30);
    assert_true(r->lambda >= 1e-3 * (1 - 1e-12) && r->lambda <= 10);
    assert_true(n2_cholesky(gram, b));
    n2_cholesky_solve(gram, b, h, 1);
    for (size_t l = 0; l < b; l++) assert_close(r->alpha[l], fmax(h[l], 0), 1e-8, 1e-10);
    n2_kernel_ratio_free(r);
    free(num), free(den), free(h), free(gram);
    n2ce_ctx_free(ctx);
}

/* mean_den ratio = 1, and at the maximum no kernel has mean_num k / ratio > mean_den k. */
static void kliep_is_at_its_maximum(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    const size_t n_num = 210, n_den = 130, cols = 2;
    double *num = normal_sample(n_num, cols, 0, 1, 50);
    double *den = normal_sample(n_den, cols, 0.4, 1.3, 51);
    n2_kernel_ratio *r = fit(ctx, N2_KLIEP, num, n_num, den, n_den, cols, 0, 3);
    double total = 0;
    for (size_t l = 0; l < r->centres; l++) {
        double from_num = 0, from_den = 0;
        for (size_t i = 0; i < n_num; i++)
            from_num += kernel(num + i * cols, r->centre + l * cols, cols, r->sigma) /
                        ratio_by_definition(r, num + i * cols) / (double)n_num;
        for (size_t i = 0; i < n_den; i++)
            from_den +=
                kernel(den + i * cols, r->centre + l * cols, cols, r->sigma) / (double)n_den;
        assert_true(r->alpha[l] >= 0);
        assert_true(from_num < 1.01 * from_den);
        total += r->alpha[l] * from_den;
    }
    assert_close(total, 1, 1e-12, 0);
    n2_kernel_ratio_free(r);
    free(num), free(den);
    n2ce_ctx_free(ctx);
}

/* As many centres as rows: every row is one, none twice. And fewer: all different. */
static void centres_are_drawn_without_replacement(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    const size_t n = 70;
    double *num = normal_sample(n, 1, 0, 1, 60);
    const size_t asked[] = {70, 1000, 20}, given[] = {70, 70, 20};
    for (size_t a = 0; a < COUNT_OF(asked); a++) {
        n2_kernel_ratio *r = fit(ctx, N2_ULSIF, num, n, num, n, 1, asked[a], 2);
        size_t used = 0;
        assert_int_equal(r->centres, given[a]);
        for (size_t i = 0; i < n; i++) {
            size_t times = 0;
            for (size_t l = 0; l < r->centres; l++) times += r->centre[l] == num[i];
            assert_true(times <= 1);
            used += times;
        }
        assert_int_equal(used, given[a]);
        n2_kernel_ratio_free(r);
    }
    free(num);
    n2ce_ctx_free(ctx);
}

/* ---- invariances ------------------------------------------------------------------------ */

static void assert_same(const n2_kernel_ratio *a, const n2_kernel_ratio *b) {
    assert_int_equal(a->centres, b->centres);
    assert_true(a->sigma == b->sigma && a->lambda == b->lambda);
    assert_memory_equal(a->alpha, b->alpha, a->centres * sizeof(double));
}

static void threads_do_not_matter(void **state) {
    (void)state;
    double *num = normal_sample(331, 2, 0, 1, 70), *den = normal_sample(257, 2, 0.3, 1.2, 71);
    double one_by_one[257], together[257];
    for (size_t m = 0; m < COUNT_OF(methods); m++) {
        n2ce_ctx *alone = new_ctx(1);
        n2_kernel_ratio *first = fit(alone, methods[m], num, 331, den, 257, 2, 40, 1);
        n2_kernel_ratio_score(first, den, 257, one_by_one);
        for (int threads = 2; threads <= 7; threads += 5) {
            n2ce_ctx *ctx = new_ctx(threads);
            n2_kernel_ratio *r = fit(ctx, methods[m], num, 331, den, 257, 2, 40, 1);
            assert_same(r, first);
            n2_kernel_ratio_score(r, den, 257, together);
            assert_memory_equal(together, one_by_one, sizeof together);
            n2_kernel_ratio_free(r);
            n2ce_ctx_free(ctx);
        }
        n2_kernel_ratio_free(first);
        n2ce_ctx_free(alone);
    }
    free(num), free(den);
}

static void the_seed_decides(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double *num = normal_sample(300, 1, 0, 1, 80), *den = normal_sample(300, 1, 0.3, 1.2, 81);
    n2_kernel_ratio *a = fit(ctx, N2_ULSIF, num, 300, den, 300, 1, 20, 1);
    n2_kernel_ratio *b = fit(ctx, N2_ULSIF, num, 300, den, 300, 1, 20, 1);
    n2_kernel_ratio *c = fit(ctx, N2_ULSIF, num, 300, den, 300, 1, 20, 2);
    assert_same(a, b);
    assert_memory_equal(a->centre, b->centre, 20 * sizeof(double));
    assert_memory_not_equal(a->centre, c->centre, 20 * sizeof(double));
    n2_kernel_ratio_free(a), n2_kernel_ratio_free(b), n2_kernel_ratio_free(c);
    free(num), free(den);
    n2ce_ctx_free(ctx);
}

/* x with a column of equal numbers beside it. */
static double *with_constant(const double *x, size_t n, double value) {
    double *both = new_doubles(2 * n);
    for (size_t i = 0; i < n; i++) both[2 * i] = x[i], both[2 * i + 1] = value;
    return both;
}

static void a_constant_column_changes_nothing(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double *num = normal_sample(200, 1, 0, 1, 90), *den = normal_sample(150, 1, 0.3, 1.2, 91);
    double *num2 = with_constant(num, 200, 4), *den2 = with_constant(den, 150, 4);
    for (size_t m = 0; m < COUNT_OF(methods); m++) {
        n2_kernel_ratio *a = fit(ctx, methods[m], num, 200, den, 150, 1, 0, 1);
        n2_kernel_ratio *b = fit(ctx, methods[m], num2, 200, den2, 150, 2, 0, 1);
        assert_same(a, b);
        n2_kernel_ratio_free(a), n2_kernel_ratio_free(b);
    }
    free(num), free(den), free(num2), free(den2);
    n2ce_ctx_free(ctx);
}

/* ---- the ends --------------------------------------------------------------------------- */

/* All rows equal; two rows a side; a thousand equal rows against spread ones. */
static void degenerate_samples_are_fitted(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double zeros[40] = {0}, pair[] = {0, 1, 0.5, 2};
    double *spread = normal_sample(500, 1, 0, 1, 100);
    for (size_t m = 0; m < COUNT_OF(methods); m++) {
        double mean, top;
        n2_kernel_ratio *r = fit(ctx, methods[m], zeros, 20, zeros, 20, 2, 0, 1);
        mean_and_top(r, zeros, 20, &mean, &top);
        assert_close(mean, 1, 0, 0.01);
        n2_kernel_ratio_free(r);
        r = fit(ctx, methods[m], pair, 2, pair, 2, 2, 0, 1);
        mean_and_top(r, pair, 2, &mean, &top);
        assert_true(isfinite(mean) && mean < 3);
        n2_kernel_ratio_free(r);
        r = fit(ctx, methods[m], zeros, 40, spread, 500, 1, 0, 1);
        mean_and_top(r, spread, 500, &mean, &top);
        assert_true(isfinite(mean) && mean > 0.2 && mean < 3 && top > 1.5);
        n2_kernel_ratio_free(r);
    }
    free(spread);
    n2ce_ctx_free(ctx);
}

static void far_away_the_floor_is_reported(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double *num = normal_sample(100, 1, 0, 1, 110), *den = normal_sample(100, 1, 0, 2, 111);
    const double x[] = {1e9, N2_NAN, N2_INFINITY, -1e200};
    const double expected[] = {log(1e-12), N2_NAN, log(1e-12), log(1e-12)};
    double f[COUNT_OF(x)];
    for (size_t m = 0; m < COUNT_OF(methods); m++) {
        n2_kernel_ratio *r = fit(ctx, methods[m], num, 100, den, 100, 1, 0, 1);
        n2_kernel_ratio_score(r, x, COUNT_OF(x), f);
        for (size_t i = 0; i < COUNT_OF(x); i++) assert_close(f[i], expected[i], 1e-15, 0);
        n2_kernel_ratio_free(r);
    }
    free(num), free(den);
    n2ce_ctx_free(ctx);
}

/* Beyond 10,000 rows a side evenly spaced ones are used. Rows sorted by value would give a
 * wrong ratio if only the first were taken. */
static void large_samples_are_thinned_evenly(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    const size_t n = 25000;
    double *num = new_doubles(n), *den = normal_sample(2000, 1, 0, 1, 120), x[] = {-1, 0, 1}, f[3];
    for (size_t i = 0; i < n; i++) num[i] = n2_normal_quantile(((double)i + 0.5) / (double)n);
    n2_kernel_ratio *r = fit(ctx, N2_ULSIF, num, n, den, 2000, 1, 50, 1);
    n2_kernel_ratio_score(r, x, 3, f);
    for (size_t i = 0; i < 3; i++) assert_close(f[i], 0, 0, 0.1);
    n2_kernel_ratio_free(r);
    free(num), free(den);
    n2ce_ctx_free(ctx);
}

static void assert_refused(n2ce_ctx *ctx, const double *num, size_t n_num, const double *den,
                           size_t n_den, size_t cols, n2ce_status expected, const char *says) {
    for (size_t m = 0; m < COUNT_OF(methods); m++) {
        n2_kernel_ratio *r = (n2_kernel_ratio *)1;
        assert_int_equal(
            n2_kernel_ratio_fit(ctx, methods[m], num, n_num, den, n_den, cols, 0, 1, &r), expected);
        assert_null(r);
        assert_non_null(strstr(n2ce_errmsg(ctx), says));
    }
}

static void what_cannot_be_fitted_is_refused(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    const double good[] = {0, 1, 2, 3}, nan[] = {0, 1, 2, N2_NAN}, huge[] = {1e200, 0, 0, -1e200};
    assert_refused(ctx, good, 1, good, 2, 2, N2CE_EINVAL, "numerator sample has 1 row;");
    assert_refused(ctx, good, 2, good, 0, 2, N2CE_EINVAL, "denominator sample has 0 rows;");
    assert_refused(ctx, good, 4, good, 4, 0, N2CE_EINVAL, "no columns");
    assert_refused(ctx, nan, 2, good, 2, 2, N2CE_ENAN, "Column 2 of row 2 of the numerator");
    assert_refused(ctx, good, 2, nan, 4, 1, N2CE_ENAN, "Column 1 of row 4 of the denominator");
    assert_refused(ctx, huge, 4, huge, 4, 1, N2CE_ERANGE, "overflow");
    n2_kernel_ratio_free(NULL);
    n2ce_ctx_free(ctx);
}

static void a_cancelled_fit_stops(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double *x = normal_sample(50, 1, 0, 1, 130);
    n2ce_ctx_cancel(ctx);
    for (size_t m = 0; m < COUNT_OF(methods); m++) {
        n2_kernel_ratio *r = (n2_kernel_ratio *)1;
        assert_int_equal(n2_kernel_ratio_fit(ctx, methods[m], x, 50, x, 50, 1, 0, 1, &r),
                         N2CE_ECANCELED);
        assert_null(r);
    }
    free(x);
    n2ce_ctx_free(ctx);
}

/* ---- memory ----------------------------------------------------------------------------- */

static n2ce_status whole_life(failing_alloc *memory, n2_kernel_method method, const double *x) {
    const n2ce_ctx_options options = failing_alloc_options(memory, 2);
    n2ce_ctx *ctx = NULL;
    n2_kernel_ratio *r = NULL;
    double f[130];
    n2ce_status status = n2ce_ctx_new(&ctx, &options);
    if (ctx) status = n2_kernel_ratio_fit(ctx, method, x, 130, x, 70, 1, 10, 1, &r);
    assert_true((status == N2CE_OK) == (r != NULL));
    if (ctx && status != N2CE_OK) assert_non_null(strstr(n2ce_errmsg(ctx), "memory"));
    if (r) n2_kernel_ratio_score(r, x, 130, f);
    n2_kernel_ratio_free(r);
    n2ce_ctx_free(ctx);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    double *x = normal_sample(130, 1, 0, 1, 140);
    for (size_t m = 0; m < COUNT_OF(methods); m++) {
        n2ce_status status = N2CE_ENOMEM;
        for (size_t at = 0; status != N2CE_OK; at++) {
            failing_alloc memory = failing_alloc_new(at, false);
            assert_true(at < 200);
            status = whole_life(&memory, methods[m], x);
            assert_int_equal(memory.live, 0);
            assert_int_equal(memory.strangers, 0);
            if (memory.calls > at) assert_int_equal(status, N2CE_ENOMEM);
        }
    }
    free(x);
}

/* A score goes on without the memory for threads. */
static void a_score_needs_no_memory(void **state) {
    (void)state;
    failing_alloc memory = failing_alloc_new(NEVER, true);
    const n2ce_ctx_options options = failing_alloc_options(&memory, 2);
    n2ce_ctx *ctx;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    double centre = 0, alpha = 2, f[300], *x = normal_sample(300, 1, 0, 1, 150);
    const n2_kernel_ratio r = {ctx, N2_ULSIF, 1, 1, &centre, &alpha, 1.5, 0.1};
    memory.fail_at = memory.calls;
    n2_kernel_ratio_score(&r, x, 300, f);
    for (size_t i = 0; i < 300; i++) assert_close(f[i], log(2) - x[i] * x[i] / 4.5, 1e-13, 1e-13);
    free(x);
    n2ce_ctx_free(ctx);
}

/* ---- cost ------------------------------------------------------------------------------- */

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The limit is wide enough for sanitizers. */
static void two_thousand_rows_take_no_time(void **state) {
    (void)state;
#ifdef __SANITIZE_THREAD__
    const size_t n = 200;
#else
    const size_t n = 2000;
#endif
    n2ce_ctx *ctx = new_ctx(1);
    double *num = normal_sample(n, 5, 0, 1, 160), *den = normal_sample(n, 5, 0.3, 1.1, 161);
    for (size_t m = 0; m < COUNT_OF(methods); m++) {
        const double start = seconds();
        n2_kernel_ratio *r = fit(ctx, methods[m], num, n, den, n, 5, 0, 1);
        print_message("%s, %zu rows a side: %.2f s\n", m ? "KLIEP" : "uLSIF", n, seconds() - start);
        assert_true(seconds() - start < 60);
        n2_kernel_ratio_free(r);
    }
    free(num), free(den);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ratio_of_two_normals_is_found),
        cmocka_unit_test(sizes_may_differ),
        cmocka_unit_test(equal_samples_have_ratio_one),
        cmocka_unit_test(scores_follow_the_definition_at_any_rows),
        cmocka_unit_test(ulsif_solves_its_equations),
        cmocka_unit_test(kliep_is_at_its_maximum),
        cmocka_unit_test(centres_are_drawn_without_replacement),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(the_seed_decides),
        cmocka_unit_test(a_constant_column_changes_nothing),
        cmocka_unit_test(degenerate_samples_are_fitted),
        cmocka_unit_test(far_away_the_floor_is_reported),
        cmocka_unit_test(large_samples_are_thinned_evenly),
        cmocka_unit_test(what_cannot_be_fitted_is_refused),
        cmocka_unit_test(a_cancelled_fit_stops),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_score_needs_no_memory),
        cmocka_unit_test(two_thousand_rows_take_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
