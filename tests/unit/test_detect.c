/* Facts about detecting odd rows: distances, columns, p-values of normal rows, files, memory. */
#include "contexts.h"
#include "failing_alloc.h"
#include "samples.h"

#include "base/numerics.h"
#include "base/random.h"
#include "detect/blame.h"
#include "detect/detector_file.h"

#include <stdio.h>
#include <unistd.h>

static const char *const PATH = "test_detect.n2ce";

/* ---- near rows ---- */

/* The definition, with nothing shared with the library: mean distance to the five nearest. */
static double reach_of(const double *x, size_t n, size_t d, const double *row, size_t skip,
                       size_t nearest[5]) {
    double best[5] = {N2_INFINITY, N2_INFINITY, N2_INFINITY, N2_INFINITY, N2_INFINITY}, sum = 0;
    for (size_t i = 0; i < n; i++) {
        double square = 0;
        for (size_t j = 0; j < d; j++) square += (row[j] - x[i * d + j]) * (row[j] - x[i * d + j]);
        if (i == skip || square >= best[4]) continue;
        size_t at = 4;
        for (; at > 0 && best[at - 1] > square; at--) {
            best[at] = best[at - 1];
            nearest[at] = nearest[at - 1];
        }
        best[at] = square;
        nearest[at] = i;
    }
    for (size_t k = 0; k < 5; k++) sum += sqrt(best[k]) / 5;
    return sum;
}

static double score_of(const double *x, size_t n, size_t d, const double *row) {
    size_t near[5], others[5];
    const double reach = reach_of(x, n, d, row, SIZE_MAX, near);
    double scale = 0, unit = 0;
    for (size_t k = 0; k < 5; k++) scale += reach_of(x, n, d, x + near[k] * d, near[k], others) / 5;
    for (size_t i = 0; i < n; i++) unit += reach_of(x, n, d, x + i * d, i, others) / (double)n;
    return reach / sqrt(fmax(scale, unit / 4));
}

static void scores_are_those_of_the_definition(void **state) {
    enum { N = 131, D = 7, NEW = 77 };
    n2ce_ctx *ctx = new_ctx(2);
    double *x = normals(N * D, 0, 1, 3), *rows = normals(NEW * D, 0, 1, 4), score[NEW], one;
    n2_near_rows *s;
    (void)state;
    assert_int_equal(n2_near_rows_new(ctx, x, N, D, 5, &s), N2CE_OK);
    assert_int_equal(n2_near_rows_score(s, rows, NEW, score), N2CE_OK);
    for (size_t i = 0; i < NEW; i++) {
        assert_close(score[i], score_of(x, N, D, rows + i * D), 1e-12, 0);
        assert_int_equal(n2_near_rows_score(s, rows + i * D, 1, &one), N2CE_OK);
        assert_true(one == score[i]); /* whatever stands beside it */
    }
    n2_near_rows_free(s);
    n2ce_ctx_free(ctx);
    free(x);
    free(rows);
}

static void duplicates_are_at_distance_0(void **state) {
    double x[40], score[2];
    const double rows[2] = {1, 1.5};
    n2ce_ctx *ctx = new_ctx(1);
    n2_near_rows *s;
    (void)state;
    for (size_t i = 0; i < 40; i++) x[i] = 1;
    assert_int_equal(n2_near_rows_new(ctx, x, 40, 1, 5, &s), N2CE_OK);
    assert_int_equal(n2_near_rows_score(s, rows, 2, score), N2CE_OK);
    assert_true(score[0] == 0);
    assert_true(isfinite(score[1]) && score[1] > 0);
    n2_near_rows_free(s);
    n2ce_ctx_free(ctx);
}

/* ---- columns ---- */

/* Numbers, numbers with gaps, a constant, three levels of which one is rare. */
enum { MIXED = 4, MIXED_ROWS = 60 };
static const size_t mixed_levels[MIXED] = {0, 0, 0, 4};

static void fill_mixed(double *rows) {
    for (size_t i = 0; i < MIXED_ROWS; i++) {
        double *row = rows + i * MIXED;
        row[0] = exp((double)(i * 37 % MIXED_ROWS) / 10);
        row[1] = i % 6 ? (double)(i * 11 % 23) : N2_NAN;
        row[2] = 5;
        row[3] = i == 7 ? 2 : (double)(i % 2);
    }
}

static double *features_of(const n2_column_map *m, n2_column_view view, const double *rows,
                           size_t n) {
    double *x = calloc(n * n2_column_map_width(m), sizeof *x);
    assert_non_null(x);
    assert_int_equal(n2_column_map_apply(m, view, rows, n, x), N2CE_OK);
    return x;
}

static void both_views_are_standardised(void **state) {
    double rows[MIXED_ROWS * MIXED];
    n2ce_ctx *ctx = new_ctx(2);
    n2_column_map *m;
    (void)state;
    fill_mixed(rows);
    assert_int_equal(n2_column_map_new(ctx, rows, MIXED_ROWS, MIXED, mixed_levels, &m), N2CE_OK);
    const size_t width = n2_column_map_width(m);
    assert_int_equal(width, 1 + 2 + 0 + 3 + 1); /* with gaps, and what is new */
    for (int v = 0; v < N2_VIEWS; v++) {
        double *x = features_of(m, (n2_column_view)v, rows, MIXED_ROWS);
        for (size_t j = 0; j < 3; j++) {
            n2_tally t = {0};
            for (size_t i = 0; i < MIXED_ROWS; i++) n2_tally_add(&t, x[i * width + j]);
            assert_close(n2_tally_mean(&t), 0, 0, 1e-9);
            if (j != 1) assert_close(n2_tally_spread(&t), 1, 0.02, 0);
        }
        for (size_t i = 0; i < MIXED_ROWS; i++) assert_true(x[i * width + width - 1] == 0);
        free(x);
    }
    n2_column_map_free(m);
    n2ce_ctx_free(ctx);
}

static double novelty(const n2_column_map *m, double a, double b, double c, double d) {
    const double row[MIXED] = {a, b, c, d};
    double *x = features_of(m, N2_VIEW_PLAIN, row, 1);
    const double last = x[n2_column_map_width(m) - 1];
    free(x);
    return last;
}

static void what_normal_rows_never_had_is_counted(void **state) {
    double rows[MIXED_ROWS * MIXED];
    n2ce_ctx *ctx = new_ctx(1);
    n2_column_map *m;
    (void)state;
    fill_mixed(rows);
    assert_int_equal(n2_column_map_new(ctx, rows, MIXED_ROWS, MIXED, mixed_levels, &m), N2CE_OK);
    assert_true(novelty(m, 1, 1, 5, 0) == 0);
    assert_true(novelty(m, 1, N2_NAN, 5, 2) == 0);
    assert_true(novelty(m, N2_NAN, 1, 5, 0) == 5); /* this column had no gaps, */
    assert_true(novelty(m, 1, 1, 6, 0) == 5);      /* this one another value, */
    assert_true(novelty(m, 1, 1, 5, 3) == 5);      /* and this level no row, */
    assert_true(novelty(m, 1, 1, 5, N2_NAN) == 5); /* as unknown ones */
    assert_true(novelty(m, N2_NAN, 1, 6, 3) == 15);
    n2_column_map_free(m);
    n2ce_ctx_free(ctx);
}

/* Normal margins: a monotone map that goes on beyond the values that were seen. */
static void margins_go_on_beyond_the_data(void **state) {
    enum { N = 300 };
    double x[N], at[200];
    const size_t levels[1] = {0};
    n2ce_ctx *ctx = new_ctx(1);
    n2_column_map *m;
    (void)state;
    for (size_t i = 0; i < N; i++) x[i] = pow((double)(i * 7 % N) / 30, 3);
    for (size_t i = 0; i < 200; i++) at[i] = -1000 + 20 * (double)i;
    assert_int_equal(n2_column_map_new(ctx, x, N, 1, levels, &m), N2CE_OK);
    double *f = features_of(m, N2_VIEW_NORMAL, at, 200);
    for (size_t i = 1; i < 200; i++) assert_true(f[2 * i] > f[2 * (i - 1)]);
    assert_true(f[0] < -4 && f[2 * 199] > 6);
    free(f);
    n2_column_map_free(m);
    n2ce_ctx_free(ctx);
}

/* ---- detectors ---- */

static void every_hand_has_a_row_of_each_fold(void **state) {
    (void)state;
    size_t first = 0;
    for (uint64_t hand = 0; hand < 100; hand++) {
        bool seen[5] = {false};
        for (uint64_t i = 0; i < 5; i++) seen[n2_detect_fold(7, 5 * hand + i, 5)] = true;
        for (size_t k = 0; k < 5; k++) assert_true(seen[k]);
        first += n2_detect_fold(7, 5 * hand, 5) == 0;
    }
    assert_in_range(first, 8, 35); /* about a fifth of them begin with fold 0 */
}

static n2_detector *fit_rows(n2ce_ctx *ctx, double *rows, size_t n, size_t cols, uint64_t seed,
                             const char *parts) {
    const n2ce_matrix m = matrix(rows, n, cols);
    n2_detect_options o = {.seed = seed,
                           .use = {strchr(parts, 'n'), strchr(parts, 'm'), strchr(parts, 'r')}};
    const n2_table_options keep = {.keep_missing = true};
    n2_table *t;
    n2_detector *d = NULL;
    n2ce_status status = n2_table_of_matrix(ctx, &m, "rows", &keep, &t);
    if (status == N2CE_OK) {
        status = n2_detector_fit(ctx, t, NULL, NULL, &o, &d);
        n2_table_free(t);
    }
    assert_true((status == N2CE_OK) == (d != NULL));
    return d;
}

static void judge(n2_detector *d, const double *rows, size_t n, double *score, double *p) {
    double *by_fold = calloc(n * d->folds, sizeof *by_fold);
    assert_non_null(by_fold);
    assert_int_equal(n2_detector_score(d, rows, n, score, by_fold), N2CE_OK);
    for (size_t i = 0; i < n; i++)
        p[i] = (double)n2_detector_rank(d, rows + i * d->cols, by_fold + i * d->folds, i) /
               (double)n2_detector_ranks(d);
    free(by_fold);
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The greatest distance of the distribution of p from the uniform one. */
static double kolmogorov_smirnov(double *p, size_t n) {
    double most = 0;
    qsort(p, n, sizeof *p, ascending);
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, (double)(i + 1) / (double)n - p[i]);
        most = fmax(most, p[i] - (double)i / (double)n);
    }
    return most;
}

typedef double draw_fn(double u);
static double few_values(double u) { return u < 0.5 ? 0 : u < 0.8 ? 1 : 2; }
static double cauchy(double u) { return tan(3.141592653589793 * (u - 0.5)); }

/* Over seeds, p-values of normal rows are uniform, with ties and with heavy tails: the largest
 * deviation of 1000 of them stays below what 1 of 100 sets of uniform numbers exceeds (0.0515; here
 * a fifth more, for those of one seed share their yardstick). */
static void p_values_of_normal_rows_are_uniform(void **state) {
    enum { N = 150, NEW = 50, SEEDS = 20, D = 3 };
    draw_fn *const draw[] = {few_values, cauchy};
    static double p[SEEDS * NEW];
    (void)state;
    for (size_t c = 0; c < COUNT_OF(draw); c++) {
        for (uint32_t seed = 0; seed < SEEDS; seed++) {
            n2ce_ctx *ctx = new_ctx(2);
            double *x = uniforms((N + NEW) * D, 100 + seed), score[NEW];
            for (size_t i = 0; i < (N + NEW) * D; i++) x[i] = draw[c](x[i]);
            n2_detector *d = fit_rows(ctx, x, N, D, seed, "nm");
            judge(d, x + N * D, NEW, score, p + seed * NEW);
            n2_detector_free(d);
            n2ce_ctx_free(ctx);
            free(x);
        }
        const double distance = kolmogorov_smirnov(p, SEEDS * NEW);
        if (distance > 0.062) fail_msg("case %zu: %g", c, distance);
    }
}

/* ---- copies ---- */

static bool are_copies(double *x, size_t n, size_t cols) {
    static const size_t numbers[8] = {0};
    n2ce_ctx *ctx = new_ctx(1);
    n2_equal_rows *e;
    bool copies = false;
    assert_int_equal(n2_equal_rows_new(ctx, x, n, cols, &e), N2CE_OK);
    assert_int_equal(n2_equal_rows_are_copies(e, numbers, &copies), N2CE_OK);
    n2_equal_rows_free(e);
    n2ce_ctx_free(ctx);
    return copies;
}

static void repeat(double *x, size_t n, size_t cols, size_t times) {
    for (size_t k = 1; k < times; k++) memcpy(x + k * n * cols, x, n * cols * sizeof *x);
}

static void rows_that_repeat_by_nature_are_no_copies(void **state) {
    enum { N = 80, TIMES = 5, D = 3 };
    double *u = uniforms(N * TIMES * D, 77), x[N * TIMES * D];
    (void)state;
    memcpy(x, u, sizeof x);
    assert_false(are_copies(x, N * TIMES, D));
    repeat(x, N, D, TIMES);
    assert_true(are_copies(x, N * TIMES, D)); /* measurements, */
    for (size_t i = 0; i < N * D; i++) x[i] = floor(20 * u[i]);
    repeat(x, N, D, TIMES);
    assert_true(are_copies(x, N * TIMES, D)); /* counts */
    for (size_t i = 0; i < N * TIMES * D; i++) x[i] = floor(4 * u[i]);
    assert_false(are_copies(x, N * TIMES, D)); /* counts that repeat by themselves, */
    for (size_t i = 0; i < N * TIMES; i++) x[i * D + 1] = 2 * (x[i * D] = floor(40 * u[i * D]));
    for (size_t i = 0; i < N * TIMES; i++) x[i * D + 2] = -x[i * D];
    assert_false(are_copies(x, N * TIMES, D)); /* also if they depend on one another */
    for (size_t i = N; i < N * TIMES; i++)
        memcpy(u + i * D, u + (size_t)(pow(u[i * D], 3) * N) * D, D * sizeof *u);
    assert_false(are_copies(u, N * TIMES, D)); /* goods of which some are sold more often */
    free(u);
}

static void equal_rows_are_found(void **state) {
    double x[] = {3, N2_NAN, 1, 2, 3, N2_NAN, 0, 1, 1, 2, 3, N2_NAN};
    static const double none[] = {3, 2}, gap[] = {3, N2_NAN}, zero[] = {-0.0, 1};
    static const size_t group[] = {0, 1, 0, 2, 1, 0};
    n2ce_ctx *ctx = new_ctx(1);
    n2_equal_rows *e;
    (void)state;
    assert_int_equal(n2_equal_rows_new(ctx, x, 6, 2, &e), N2CE_OK);
    assert_memory_equal(e->group, group, sizeof group);
    assert_int_equal(e->groups, 3);
    assert_int_equal(e->largest, 3);
    assert_true(e->pairs == 4);
    assert_int_equal(n2_equal_rows_find(e, gap), 0);
    assert_int_equal(n2_equal_rows_find(e, zero), 3);
    assert_true(n2_equal_rows_find(e, none) == SIZE_MAX);
    n2_equal_rows_free(e);
    n2ce_ctx_free(ctx);
}

/* Normal rows that are there five times, and new ones that are not; and rows drawn from 60 ones,
 * among them the new ones: p-values are uniform. */
static void p_values_are_uniform_where_rows_repeat(void **state) {
    enum { N = 60, TIMES = 5, NEW = 50, SEEDS = 20, D = 3, ALL = N * TIMES + NEW };
    static double p[SEEDS * NEW], x[ALL * D];
    (void)state;
    for (size_t drawn = 0; drawn < 2; drawn++) {
        for (uint32_t seed = 0; seed < SEEDS; seed++) {
            n2ce_ctx *ctx = new_ctx(2);
            double *rows = normals((N + NEW) * D, 0, 1, 300 + seed), *u = uniforms(ALL, seed);
            double score[NEW];
            memcpy(x, rows, sizeof *x * N * D);
            repeat(x, N, D, TIMES);
            memcpy(x + N * TIMES * D, rows + N * D, sizeof *x * NEW * D);
            for (size_t i = 0; drawn && i < ALL; i++)
                memcpy(x + i * D, rows + (size_t)(u[i] * N) * D, sizeof *x * D);
            n2_detector *d = fit_rows(ctx, x, N * TIMES, D, seed, "nm");
            assert_non_null(d->equal);
            judge(d, x + N * TIMES * D, NEW, score, p + seed * NEW);
            n2_detector_free(d);
            n2ce_ctx_free(ctx);
            free(rows);
            free(u);
        }
        const double distance = kolmogorov_smirnov(p, SEEDS * NEW);
        if (distance > 0.07) fail_msg("case %zu: %g", drawn, distance);
    }
}

/* Copies are scored by an expert that has seen none of them. */
static void copies_are_in_one_fold(void **state) {
    enum { N = 40, TIMES = 4, D = 2 };
    double *rows = normals(N * D, 0, 1, 6), x[N * TIMES * D], score[N * TIMES];
    n2ce_ctx *ctx = new_ctx(1);
    (void)state;
    memcpy(x, rows, sizeof *x * N * D);
    repeat(x, N, D, TIMES);
    n2_detector *d = fit_rows(ctx, x, N * TIMES, D, 1, "nm");
    assert_int_equal(d->folds, 10); /* of fewer than 100 different rows */
    assert_int_equal(n2_detector_ranks(d), TIMES * (N + 1));
    const n2_own_rows own = {.x = x, .n = N * TIMES};
    assert_int_equal(n2_detector_score_own(d, &own, score), N2CE_OK);
    for (size_t i = 0; i < N * TIMES; i++) {
        assert_true(score[i] == score[i % N]);
        assert_true(score[i] > 0); /* it is at distance 0 of nothing */
    }
    n2_detector_free(d);
    n2ce_ctx_free(ctx);
    free(rows);
}

/* Of what is flagged at a rate of 0.2 about a fifth is normal at most, and the odd rows are. */
static void false_discoveries_are_as_few_as_asked(void **state) {
    enum { N = 200, NEW = 60, ODD = 12, D = 2, SEEDS = 25 };
    double wrong = 0, found = 0;
    (void)state;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        n2ce_ctx *ctx = new_ctx(2);
        double *x = normals((N + NEW) * D, 0, 1, 200 + seed), score[NEW], p[NEW];
        for (size_t i = N; i < N + ODD; i++) x[i * D] += 9;
        uint64_t count[N + 2] = {0};
        n2_detector *d = fit_rows(ctx, x, N, D, seed, "nm");
        judge(d, x + N * D, NEW, score, p);
        for (size_t i = 0; i < NEW; i++) count[(size_t)lround(p[i] * (N + 1))]++;
        const double limit = (double)n2_flagged_rank(count, N + 1, 0.2) / (N + 1) + 1e-9;
        size_t flags[2] = {0, 0};
        for (size_t i = 0; i < NEW; i++) flags[i < ODD] += p[i] <= limit;
        wrong += flags[0] ? (double)flags[0] / (double)(flags[0] + flags[1]) / SEEDS : 0;
        found += (double)flags[1] / ODD / SEEDS;
        n2_detector_free(d);
        n2ce_ctx_free(ctx);
        free(x);
    }
    assert_true(wrong < 0.25);
    assert_true(found > 0.95);
}

/* The learned ratio tells rows against a correlation, which no column shows by itself. */
static void the_ratio_sees_a_broken_correlation(void **state) {
    enum { N = 150, D = 2 };
    n2ce_ctx *ctx = new_ctx(2);
    double *x = normals(N * D, 0, 1, 5), rows[] = {1.2, 1.2, -1, -1, 1.2, -1.2, -1, 1}, score[4],
           p[4];
    (void)state;
    for (size_t i = 0; i < N; i++) x[i * D + 1] = x[i * D] + 0.2 * x[i * D + 1];
    n2_detector *d = fit_rows(ctx, x, N, D, 0, "r");
    assert_non_null(d->expert[0]->learned->critic);
    judge(d, rows, 4, score, p);
    assert_true(fmax(score[0], score[1]) < 3 && fmin(score[2], score[3]) > 5);
    n2_blame blame;
    assert_int_equal(n2_blame_of(d, 0, rows + 4, &blame), N2CE_OK);
    assert_int_equal(blame.n, 2);
    n2_detector_free(d);
    n2ce_ctx_free(ctx);
    free(x);
}

/* A gap is to blame, though the nearest row has it, too. */
static void a_gap_is_to_blame(void **state) {
    enum { N = 100, D = 3 };
    n2ce_ctx *ctx = new_ctx(1);
    double *x = normals(N * D, 0, 1, 8), row[] = {0.1, N2_NAN, -0.1};
    (void)state;
    for (size_t i = 0; i < 3; i++) x[(i * 30 + 7) * D + 1] = N2_NAN;
    n2_detector *d = fit_rows(ctx, x, N, D, 0, "nm");
    for (size_t fold = 0; fold < d->folds; fold++) {
        n2_blame blame;
        assert_int_equal(n2_blame_of(d, fold, row, &blame), N2CE_OK);
        assert_true(blame.n > 0);
        assert_int_equal(blame.column[0], 1);
        assert_true(isfinite(blame.usual[0]));
    }
    n2_detector_free(d);
    n2ce_ctx_free(ctx);
    free(x);
}

/* ---- files ---- */

static void a_detector_that_was_saved_says_the_same(void **state) {
    double rows[MIXED_ROWS * MIXED], score[2][MIXED_ROWS], p[2][MIXED_ROWS];
    n2ce_ctx *ctx = new_ctx(2);
    n2_detector *loaded;
    (void)state;
    fill_mixed(rows);
    unlink(PATH);
    n2_detector *d = fit_rows(ctx, rows, MIXED_ROWS, MIXED, 3, "nmr");
    judge(d, rows, MIXED_ROWS, score[0], p[0]);
    assert_int_equal(n2_detector_save(d, PATH, false), N2CE_OK);
    assert_int_equal(n2_detector_save(d, PATH, false), N2CE_EEXIST);
    assert_int_equal(n2_detector_load(ctx, PATH, NULL, &loaded), N2CE_OK);
    judge(loaded, rows, MIXED_ROWS, score[1], p[1]);
    assert_memory_equal(score[0], score[1], sizeof score[0]);
    assert_memory_equal(p[0], p[1], sizeof p[0]);
    n2_detector_free(d);
    n2_detector_free(loaded);
    n2ce_ctx_free(ctx);
}

/* Of the test before, with parts of normal rows that are no numbers, which no fit leaves. */
static void parts_are_numbers(void **state) {
    const char *path = "test_detect_parts.safetensors";
    n2ce_ctx *ctx = new_ctx(1);
    n2_detector *d, *loaded;
    (void)state;
    assert_int_equal(n2_detector_load(ctx, PATH, NULL, &d), N2CE_OK);
    for (size_t k = 0; k < 2; k++) {
        d->parts[N2_PARTS_COUNT + k] = k ? (double)INFINITY : (double)NAN;
        assert_int_equal(n2_detector_save(d, path, true), N2CE_OK);
        assert_int_equal(n2_detector_load(ctx, path, NULL, &loaded), N2CE_EDATA);
        assert_null(loaded);
    }
    unlink(path);
    n2_detector_free(d);
    n2ce_ctx_free(ctx);
}

/* After the same test: any byte that is another is noticed, as is any end that is missing. */
static void damaged_files_are_refused(void **state) {
    static char bytes[1 << 17];
    n2ce_ctx *ctx = new_ctx(1);
    FILE *file = fopen(PATH, "rb");
    n2_detector *d;
    (void)state;
    assert_non_null(file);
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(n, 1000, sizeof bytes - 1);
    for (size_t at = 0; at < n; at += n / 37) {
        bytes[at] ^= 4;
        assert_non_null(file = fopen(PATH, "wb"));
        fwrite(bytes, 1, at % 2 ? n : n - at / 2 - 1, file);
        fclose(file);
        assert_int_equal(n2_detector_load(ctx, PATH, NULL, &d), N2CE_EDATA);
        assert_null(d);
        bytes[at] ^= 4;
    }
    unlink(PATH);
    n2ce_ctx_free(ctx);
}

/* ---- memory ---- */

/* The whole life of a detector on this allocator. */
static n2ce_status whole_life(failing_alloc *memory) {
    double rows[16 * MIXED], score[16];
    const n2ce_ctx_options options = failing_alloc_options(memory, 1);
    n2ce_options *o = NULL;
    n2ce_ctx *ctx;
    n2ce_detector *d = NULL;
    for (size_t i = 0; i < 16 * MIXED; i++) rows[i] = (double)(i * 7 % 13);
    const n2ce_matrix m = matrix(rows, 16, MIXED), some = matrix(rows, 3, MIXED);
    n2ce_status status = n2ce_ctx_new(&ctx, &options);
    if (status != N2CE_OK) return status;
    status = n2ce_options_new(ctx, n2ce_task_options(n2ce_task_find("detect")), &o);
    if (status == N2CE_OK) status = n2ce_options_set(o, "categorical", "3");
    if (status == N2CE_OK) status = n2ce_detector_fit(ctx, o, &m, &d);
    if (status == N2CE_OK) status = n2ce_detector_score(d, &some, 0, score, NULL);
    if (status == N2CE_OK) status = n2ce_detector_score_fitted(d, &m, score);
    if (status != N2CE_OK) assert_int_equal(status, N2CE_ENOMEM);
    n2ce_detector_free(d);
    n2ce_options_free(o);
    n2ce_ctx_free(ctx);
    return status;
}

static void memory_may_end_anywhere(void **state) {
    (void)state;
    assert_true(live_without_memory(whole_life, 40) > 20); /* the first folds one by one */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_the_definition),
        cmocka_unit_test(duplicates_are_at_distance_0),
        cmocka_unit_test(both_views_are_standardised),
        cmocka_unit_test(what_normal_rows_never_had_is_counted),
        cmocka_unit_test(margins_go_on_beyond_the_data),
        cmocka_unit_test(every_hand_has_a_row_of_each_fold),
        cmocka_unit_test(p_values_of_normal_rows_are_uniform),
        cmocka_unit_test(rows_that_repeat_by_nature_are_no_copies),
        cmocka_unit_test(equal_rows_are_found),
        cmocka_unit_test(p_values_are_uniform_where_rows_repeat),
        cmocka_unit_test(copies_are_in_one_fold),
        cmocka_unit_test(false_discoveries_are_as_few_as_asked),
        cmocka_unit_test(the_ratio_sees_a_broken_correlation),
        cmocka_unit_test(a_gap_is_to_blame),
        cmocka_unit_test(a_detector_that_was_saved_says_the_same),
        cmocka_unit_test(parts_are_numbers),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(memory_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
