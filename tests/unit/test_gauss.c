/* Facts about the Gaussian part of a ratio: moments, closed forms, joint and finite samples. */
#include "gaussians.h"

#include "base/linalg.h"

/* ---- stages ---- */

enum { STAGE_ROWS = 150, STAGE_DIMS = 7, STAGES_ASKED = 3 };

typedef struct stage_pairs {
    const double *num, *den;
} stage_pairs;

static void give_pair(void *arg, size_t i, double *num, double *den) {
    const stage_pairs *pairs = arg;
    memcpy(num, pairs->num + i * STAGE_DIMS, STAGE_DIMS * sizeof *num);
    memcpy(den, pairs->den + i * STAGE_DIMS, STAGE_DIMS * sizeof *den);
}

/* The row of a pair at a waymark, and what the stage's ratio is there. */
static double score_mixed(const n2_gauss *g, const stage_pairs *pairs, size_t i, double mix,
                          const double *ab, double c) {
    double row[STAGE_DIMS], f;
    const double keep = sqrt(1 - mix * mix);
    for (size_t j = 0; j < STAGE_DIMS; j++)
        row[j] = g->centre[j] + keep * (pairs->num[i * STAGE_DIMS + j] - g->centre[j]) +
                 mix * (pairs->den[i * STAGE_DIMS + j] - g->centre[j]);
    assert_int_equal(n2_gauss_quadratic(g, ab, c, row, 1, &f), N2CE_OK);
    return f;
}

static void check_stages(const n2_gauss *g, const stage_pairs *pairs, const double *alpha,
                         size_t stages, const size_t n[2]) {
    double ab[2 * STAGE_DIMS], c, den[STAGES_ASKED * STAGE_ROWS], num[STAGES_ASKED * STAGE_ROWS];
    double *const f[2] = {den, num};
    assert_int_equal(n2_gauss_stages(g, alpha, stages, n, give_pair, (void *)(uintptr_t)pairs, f),
                     N2CE_OK);
    for (size_t k = 0; k < stages; k++) {
        n2_gauss_waymark_ratio(g, alpha[k + 1], alpha[k], ab, ab + STAGE_DIMS, &c);
        for (size_t side = 0; side < 2; side++)
            for (size_t i = 0; i < n[side]; i++)
                assert_close(f[side][k * n[side] + i],
                             score_mixed(g, pairs, i, alpha[k + side], ab, c), 1e-11, 1e-11);
    }
}

/* Each row of a stage has the score it has by itself, whichever side has more of them. */
static void stages_score_as_rows_do(void **state) {
    (void)state;
    static const double alpha[] = {1, 0.8, 0.3, 0}, ends[] = {1, 0};
    static const size_t n[][2] = {{STAGE_ROWS, 20}, {70, STAGE_ROWS}, {64, 128}};
    for (int threads = 1; threads < 4; threads += 2) {
        n2ce_ctx *ctx = new_ctx(threads);
        double *x = mixed(STAGE_ROWS, STAGE_DIMS, 1, 2, 1);
        double *y = mixed(STAGE_ROWS, STAGE_DIMS, 0, 1, 2);
        n2_moments num = moments_of(ctx, x, STAGE_ROWS, STAGE_DIMS);
        n2_moments den = moments_of(ctx, y, STAGE_ROWS, STAGE_DIMS);
        n2_gauss *g = new_gauss(ctx, STAGE_DIMS, &num, &den);
        const stage_pairs pairs = {x, y};
        for (size_t k = 0; k < COUNT_OF(n); k++) {
            check_stages(g, &pairs, alpha, STAGES_ASKED, n[k]);
            check_stages(g, &pairs, ends, 1, n[k]);
        }
        n2_gauss_free(g);
        n2_moments_free(ctx, &num);
        n2_moments_free(ctx, &den);
        free(x);
        free(y);
        n2ce_ctx_free(ctx);
    }
}

/* ---- moments ---- */

static void moments_are_means_and_covariances(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    const double x[] = {1, 2, 3, 6, 5, 4};
    n2_moments m = moments_of(ctx, x, 3, 2);
    const double mean[] = {3, 4}, cov[] = {4, 2, 2, 4};
    assert_close(m.n, 3, 0, 0);
    for (size_t i = 0; i < 2; i++) assert_close(m.mean[i], mean[i], 1e-15, 0);
    for (size_t i = 0; i < 4; i++) assert_close(m.cov[i], cov[i], 1e-15, 0);
    n2_moments_free(ctx, &m);
    n2ce_ctx_free(ctx);
}

/* A fold is left out as if it were not there. */
static void held_out_rows_do_not_count(void **state) {
    (void)state;
    enum { N = 90, D = 3, FIRST = 30, END = 50 };
    n2ce_ctx *ctx = new_ctx(2);
    double *x = mixed(N, D, 1, 2, 1), *rest = new_doubles(N * D);
    memcpy(rest, x, FIRST * D * sizeof *x);
    memcpy(rest + FIRST * D, x + END * D, (N - END) * D * sizeof *x);
    for (size_t i = FIRST * D; i < END * D; i++) x[i] = 1e6;
    n2_moments a, b = moments_of(ctx, rest, N - END + FIRST, D);
    n2_fold_sums *s;
    const size_t bounds[] = {0, FIRST, END, N};
    assert_int_equal(n2_fold_sums_new(ctx, (n2_rows_view){x, N, D}, bounds, 3, &s), N2CE_OK);
    assert_int_equal(n2_moments_without(s, 1, &a), N2CE_OK);
    n2_fold_sums_free(s);
    assert_close(a.n, b.n, 0, 0);
    for (size_t i = 0; i < D; i++) assert_close(a.mean[i], b.mean[i], 1e-13, 1e-13);
    for (size_t i = 0; i < D * D; i++) assert_close(a.cov[i], b.cov[i], 1e-13, 1e-13);
    n2_moments_free(ctx, &a);
    n2_moments_free(ctx, &b);
    free(x);
    free(rest);
    n2ce_ctx_free(ctx);
}

/* Moments of more columns than a band has, and of more rows than a panel, are the plain sums. */
static void moments_of_many_columns(void **state) {
    (void)state;
    enum { N = 300, D = 77 };
    n2ce_ctx *ctx = new_ctx(2);
    double *x = mixed(N, D, 50, 2, 3);
    n2_moments m = moments_of(ctx, x, N, D);
    for (size_t j = 0; j < D; j += 19)
        for (size_t k = 0; k < D; k += 7) {
            double cov = 0;
            for (size_t i = 0; i < N; i++)
                cov += (x[i * D + j] - m.mean[j]) * (x[i * D + k] - m.mean[k]) / (N - 1);
            assert_close(m.cov[j * D + k], cov, 1e-12, 1e-12);
            assert_close(m.cov[k * D + j], cov, 1e-12, 1e-12);
        }
    n2_moments_free(ctx, &m);
    free(x);
    n2ce_ctx_free(ctx);
}

/* Pairs have the scores that their rows have as rows. */
static void pairs_score_as_rows_do(void **state) {
    (void)state;
    enum { N = 150, D = 11, DX = 4, SHIFTS = 3 };
    n2ce_ctx *ctx = new_ctx(2);
    double *x = mixed(N, D, 0, 1, 1);
    double *f = new_doubles(N), *pairs = new_doubles(SHIFTS * N), row[D], expected;
    n2_moments a = moments_of(ctx, x, N, D);
    n2_gauss *g = new_joint(ctx, D, DX, &a);
    n2_gauss_scoring *scoring;
    assert_int_equal(
        n2_gauss_scoring_new(g, &(n2_score_rows){x, N, f, SHIFTS, N, pairs}, NULL, &scoring),
        N2CE_OK);
    for (size_t i = n2_gauss_scoring_items(scoring); i-- > 0;) /* in any order, by any worker */
        n2_gauss_scoring_item(scoring, i, (int)(i % 2));
    n2_gauss_scoring_free(scoring);
    for (size_t s = 0; s <= SHIFTS; s++)
        for (size_t i = 0; i < N; i++) {
            memcpy(row, x + i * D, DX * sizeof *row);
            memcpy(row + DX, x + (i + s) % N * D + DX, (D - DX) * sizeof *row);
            assert_int_equal(n2_gauss_score(g, row, 1, &expected), N2CE_OK);
            assert_close(s ? pairs[(s - 1) * N + i] : f[i], expected, 1e-11, 1e-11);
        }
    n2_moments_free(ctx, &a);
    n2_gauss_free(g);
    free(x);
    free(f);
    free(pairs);
    n2ce_ctx_free(ctx);
}

/* Threads change no bit of moments or scores. */
static void threads_change_nothing(void **state) {
    (void)state;
    enum { N = 333, D = 20 };
    static const int threads[] = {1, 2, 7};
    double *x = mixed(N, D, 0, 1, 1), *y = mixed(N, D, 1, 2, 2), cov[3][D * D], f[3][N];
    for (size_t k = 0; k < 3; k++) {
        n2ce_ctx *ctx = new_ctx(threads[k]);
        n2_moments a = moments_of(ctx, x, N, D), b = moments_of(ctx, y, N, D);
        n2_gauss *g = new_gauss(ctx, D, &a, &b);
        memcpy(cov[k], a.cov, sizeof cov[k]);
        assert_int_equal(n2_gauss_score(g, x, N, f[k]), N2CE_OK);
        n2_gauss_free(g);
        n2_moments_free(ctx, &a);
        n2_moments_free(ctx, &b);
        n2ce_ctx_free(ctx);
    }
    for (size_t k = 1; k < 3; k++) {
        assert_memory_equal(cov[0], cov[k], sizeof cov[0]);
        assert_memory_equal(f[0], f[k], sizeof f[0]);
    }
    free(x);
    free(y);
}

/* ---- closed forms ---- */

/* KL(N(m, s^2) || N(0, 1)) = (s^2 + m^2 - 1 - ln s^2) / 2. */
static void kl_of_two_normals(void **state) {
    (void)state;
    static const double cases[][2] = {{0, 1}, {1, 1}, {0, 2}, {-3, 0.5}, {10, 0.01}};
    n2ce_ctx *ctx = new_ctx(1);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        double m = cases[i][0], var = cases[i][1] * cases[i][1], zero = 0, one = 1;
        const n2_moments num = moments(MANY, &m, &var), den = moments(MANY, &zero, &one);
        n2_gauss *g = new_gauss(ctx, 1, &num, &den);
        const double truth = 0.5 * (var + m * m - 1 - log(var));
        const double reverse = 0.5 * ((1 + m * m) / var - 1 + log(var));
        assert_close(n2_gauss_waymark_kl(g, 0, 1), truth, 1e-12, 1e-15);
        assert_close(kl_of(ctx, 1, &num, &den), truth, 1e-9, 1e-11);
        assert_close(kl_of(ctx, 1, &den, &num), reverse, 1e-9, 1e-11);
        n2_gauss_free(g);
    }
    n2ce_ctx_free(ctx);
}

/* The same in two correlated dimensions: (tr B^-1 A + m' B^-1 m - 2 + ln det B / det A) / 2,
 * with the inverse written out; and no matter in which units. */
static void kl_of_correlated_normals(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    const double det_a = 2 * 1 - 0.25, det_b = 1 * 3 - 1, m[] = {1, -2};
    const double trace = (3 * 2 - 2 * 1 * 0.5 + 1 * 1) / det_b;
    const double shift = (3 * m[0] * m[0] - 2 * 1 * m[0] * m[1] + 1 * m[1] * m[1]) / det_b;
    const double truth = 0.5 * (trace + shift - 2 + log(det_b / det_a));
    static const double units[] = {1, 1e-6, 1e9};
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        const double u = units[i];
        double a[] = {2, 0.5 * u, 0.5 * u, u * u}, b[] = {1, u, u, 3 * u * u};
        double mean[] = {5 + m[0], u * (7 + m[1])}, centre[] = {5, u * 7};
        const n2_moments num = moments(MANY, mean, a), den = moments(MANY, centre, b);
        assert_close(kl_of(ctx, 2, &num, &den), truth, 1e-9, 0);
    }
    n2ce_ctx_free(ctx);
}

/* Mutual information of a correlated pair: -ln(1 - rho^2) / 2; of two blocks, by log
 * determinants. */
static void mi_of_correlated_normals(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    static const double rhos[] = {0, 0.1, -0.5, 0.9, 0.999999};
    double zero[4] = {0};
    for (size_t i = 0; i < COUNT_OF(rhos); i++) {
        const double rho = rhos[i];
        double cov[] = {4, 2 * rho, 2 * rho, 1};
        const n2_moments joint = moments(MANY, zero, cov);
        assert_close(mi_of(ctx, 2, 1, &joint), -0.5 * log1p(-rho * rho), 1e-9, 1e-11);
    }
    /* x has two coordinates, y one that is 0.6 of the first: R^2 = 0.36 */
    double cov[] = {1, 0.3, 0.6, 0.3, 1, 0.18, 0.6, 0.18, 1};
    const n2_moments joint = moments(MANY, zero, cov);
    assert_close(mi_of(ctx, 3, 2, &joint), -0.5 * log(1 - 0.36), 1e-9, 0);
    n2ce_ctx_free(ctx);
}

/* KL to the product of the margins is the mutual information. */
static void mi_is_kl_to_the_product_of_the_margins(void **state) {
    (void)state;
    enum { N = 500, D = 5 };
    n2ce_ctx *ctx = new_ctx(1);
    double *x = mixed(N, D, 0, 1, 3);
    n2_moments joint = moments_of(ctx, x, N, D);
    n2_gauss *g = new_joint(ctx, D, 2, &joint);
    joint.n = MANY;
    assert_close(n2_gauss_waymark_kl(g, 0, 1), mi_of(ctx, D, 2, &joint), 1e-9, 0);
    n2_gauss_free(g);
    n2_moments_free(ctx, &joint);
    free(x);
    n2ce_ctx_free(ctx);
}

/* ---- joint samples ---- */

static double product(const n2_gauss *g, size_t i, const double *cov, size_t j) {
    double sum = 0;
    for (size_t a = 0; a < g->d; a++)
        for (size_t b = 0; b < g->d; b++)
            sum += g->basis[i * g->d + a] * cov[a * g->d + b] * g->basis[j * g->d + b];
    return sum;
}

/* What defines the basis: the product of the margins is N(0, I), the joint sample N(0, lambda). */
static void check_joint_basis(const n2_gauss *g, const double *joint, const double *margins) {
    for (size_t i = 0; i < g->d; i++)
        for (size_t j = 0; j < g->d; j++) {
            assert_close(product(g, i, margins, j), i == j, 0, 1e-11);
            assert_close(product(g, i, joint, j), i == j ? g->lambda[i] : 0, 0, 1e-11);
        }
}

/* Correlated directions come in pairs, and scores are those that the two samples give. */
static void a_joint_sample_is_its_margins_and_more(void **state) {
    (void)state;
    enum { N = 200, MOST_D = 20 };
    static const size_t shapes[][2] = {{2, 1}, {5, 2}, {5, 3}, {20, 1}, {20, 19}, {16, 8}, {17, 9}};
    n2ce_ctx *ctx = new_ctx(2);
    for (size_t k = 0; k < COUNT_OF(shapes); k++) {
        const size_t d = shapes[k][0], dx = shapes[k][1];
        double *x = mixed(N, d, 3, 1, 4), cov[MOST_D * MOST_D], f[N], expected[N];
        n2_moments joint = moments_of(ctx, x, N, d), margins = margins_of(&joint, d, dx, cov);
        n2_gauss *g = new_joint(ctx, d, dx, &joint), *two = new_gauss(ctx, d, &joint, &margins);
        check_joint_basis(g, joint.cov, cov);
        assert_int_equal(n2_gauss_score(g, x, N, f), N2CE_OK);
        assert_int_equal(n2_gauss_score(two, x, N, expected), N2CE_OK);
        for (size_t i = 0; i < N; i++) assert_close(f[i], expected[i], 1e-10, 1e-10);
        for (size_t i = 0; i < d * d; i++) assert_close(g->whiten[i], two->whiten[i], 1e-12, 1e-12);
        n2_gauss_free(g);
        n2_gauss_free(two);
        n2_moments_free(ctx, &joint);
        free(x);
    }
    n2ce_ctx_free(ctx);
}

/* Stages of a joint sample, too, score as rows do. */
static void joint_stages_score_as_rows_do(void **state) {
    (void)state;
    static const double alpha[] = {1, 0.8, 0.3, 0};
    static const size_t n[] = {70, STAGE_ROWS};
    n2ce_ctx *ctx = new_ctx(2);
    double *x = mixed(STAGE_ROWS, STAGE_DIMS, 1, 2, 1), *y = mixed(STAGE_ROWS, STAGE_DIMS, 0, 1, 2);
    n2_moments joint = moments_of(ctx, x, STAGE_ROWS, STAGE_DIMS);
    for (size_t dx = 1; dx < STAGE_DIMS; dx += 2) {
        n2_gauss *g = new_joint(ctx, STAGE_DIMS, dx, &joint);
        check_stages(g, &(stage_pairs){x, y}, alpha, STAGES_ASKED, n);
        n2_gauss_free(g);
    }
    n2_moments_free(ctx, &joint);
    free(x);
    free(y);
    n2ce_ctx_free(ctx);
}

/* Nothing between x and y: the log ratio is 0 everywhere. y a copy of x: as far away as numbers
 * can tell. A column that is there twice on one side says nothing new. */
static void extreme_joint_samples(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double mean[] = {1, 2, 3, 4}, f;
    double none[] = {1, 0.5, 0, 0, 0.5, 1, 0, 0, 0, 0, 2, 0.1, 0, 0, 0.1, 3};
    double copy[] = {1, 1, 1, 1};
    double once[] = {1, 0.6, 0.6, 1}, twice[] = {1, 1, 0.6, 1, 1, 0.6, 0.6, 0.6, 1};
    const double row[] = {2, 0, 5, 1}, wide[] = {2, 2, 0.5};
    n2_moments m = moments(MANY, mean, none);
    n2_gauss *g = new_joint(ctx, 4, 2, &m);
    assert_int_equal(n2_gauss_score(g, row, 1, &f), N2CE_OK);
    assert_close(f, 0, 0, 1e-12);
    n2_gauss_free(g);
    m.cov = copy;
    g = new_joint(ctx, 2, 1, &m);
    assert_true(n2_gauss_waymark_kl(g, 0, 1) > 10);
    n2_gauss_free(g);
    double mean2[] = {1, 0}, mean3[] = {1, 1, 0}, expected;
    m = moments(MANY, mean2, once);
    g = new_joint(ctx, 2, 1, &m);
    assert_int_equal(n2_gauss_score(g, wide + 1, 1, &expected), N2CE_OK);
    n2_gauss_free(g);
    m = moments(MANY, mean3, twice);
    g = new_joint(ctx, 3, 2, &m);
    assert_int_equal(n2_gauss_score(g, wide, 1, &f), N2CE_OK);
    assert_close(f, expected, 1e-6, 1e-6);
    n2_gauss_free(g);
    n2ce_ctx_free(ctx);
}

/* ---- finite samples ---- */

typedef struct running {
    double sum, square, n;
} running;

static void add(running *r, double x) {
    r->sum += x;
    r->square += x * x;
    r->n++;
}

/* How many standard errors the mean is above the truth. */
static double errors_off(const running *r, double truth) {
    const double mean = r->sum / r->n, var = r->square / r->n - mean * mean;
    return (mean - truth) / sqrt(var / r->n);
}

/* Over many small samples the estimate is right on average; what the Gaussians say of
 * themselves is far too large. */
static void kl_is_unbiased(void **state) {
    (void)state;
    enum { REPETITIONS = 4000, N = 18, M = 13, D = 2 };
    n2ce_ctx *ctx = new_ctx(1);
    running ours = {0, 0, 0}, plain = {0, 0, 0};
    const double truth = 0.5 * D * (1.44 + 0.25 - 1 - log(1.44));
    double *x = normals(REPETITIONS * N * D, 0.5, 1.2, 4);
    double *y = normals(REPETITIONS * M * D, 0, 1, 5);
    for (size_t i = 0; i < REPETITIONS; i++) {
        n2_moments a = moments_of(ctx, x + i * N * D, N, D);
        n2_moments b = moments_of(ctx, y + i * M * D, M, D);
        n2_gauss *g = new_gauss(ctx, D, &a, &b);
        add(&ours, kl_of(ctx, D, &a, &b));
        add(&plain, n2_gauss_waymark_kl(g, 0, 1));
        n2_gauss_free(g);
        n2_moments_free(ctx, &a);
        n2_moments_free(ctx, &b);
    }
    assert_in_range((int)(100 + 10 * errors_off(&ours, truth)), 60, 140);
    assert_true(errors_off(&plain, truth) > 10);
    free(x);
    free(y);
    n2ce_ctx_free(ctx);
}

static void mi_is_unbiased(void **state) {
    (void)state;
    enum { REPETITIONS = 4000, N = 14, D = 3 };
    n2ce_ctx *ctx = new_ctx(1);
    running ours = {0, 0, 0}, plain = {0, 0, 0};
    double *x = normals(REPETITIONS * N * D, 0, 1, 6);
    for (size_t i = 0; i < REPETITIONS * N; i++) /* y is the third, 0.6 of the first */
        x[i * D + 2] = 0.6 * x[i * D] + 0.8 * x[i * D + 2];
    for (size_t i = 0; i < REPETITIONS; i++) {
        n2_moments m = moments_of(ctx, x + i * N * D, N, D);
        add(&ours, mi_of(ctx, D, 2, &m));
        m.n = MANY;
        add(&plain, mi_of(ctx, D, 2, &m));
        n2_moments_free(ctx, &m);
    }
    const double truth = -0.5 * log(1 - 0.36);
    assert_in_range((int)(100 + 10 * errors_off(&ours, truth)), 60, 140);
    assert_true(errors_off(&plain, truth) > 10);
    free(x);
    n2ce_ctx_free(ctx);
}

/* Fewer rows than an inverse needs: no number rather than a wrong one. */
static void too_few_rows_have_no_divergence(void **state) {
    (void)state;
    enum { D = 4 };
    n2ce_ctx *ctx = new_ctx(1);
    double *x = normals(100 * D, 0, 1, 7);
    n2_moments few = moments_of(ctx, x, D + 2, D), enough = moments_of(ctx, x, D + 3, D);
    n2_moments many = moments_of(ctx, x, 100, D);
    assert_true(isnan(kl_of(ctx, D, &few, &many)));
    assert_true(isnan(kl_of(ctx, D, &many, &few)));
    assert_true(isnan(mi_of(ctx, D, 1, &few)));
    assert_true(isfinite(kl_of(ctx, D, &enough, &many)));
    assert_true(isfinite(mi_of(ctx, D, 1, &enough)));
    n2_moments_free(ctx, &few);
    n2_moments_free(ctx, &enough);
    n2_moments_free(ctx, &many);
    free(x);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_score_as_rows_do),
        cmocka_unit_test(moments_are_means_and_covariances),
        cmocka_unit_test(held_out_rows_do_not_count),
        cmocka_unit_test(moments_of_many_columns),
        cmocka_unit_test(pairs_score_as_rows_do),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(kl_of_two_normals),
        cmocka_unit_test(kl_of_correlated_normals),
        cmocka_unit_test(mi_of_correlated_normals),
        cmocka_unit_test(mi_is_kl_to_the_product_of_the_margins),
        cmocka_unit_test(a_joint_sample_is_its_margins_and_more),
        cmocka_unit_test(joint_stages_score_as_rows_do),
        cmocka_unit_test(extreme_joint_samples),
        cmocka_unit_test(kl_is_unbiased),
        cmocka_unit_test(mi_is_unbiased),
        cmocka_unit_test(too_few_rows_have_no_divergence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
