/* Facts about the problems with a known answer: the answers, that samples and answers belong
 * together, the definitions of the benchmark's maps, purity. */
#include "close.h"
#include "failing_alloc.h"

#include "base/numerics.h"
#include "ratio/ratio_problems.h"

enum { MANY = 20000 };

static const double pi = 3.14159265358979323846;

static n2ce_ctx *ctx;

static int set_up(void **state) {
    (void)state;
    return n2ce_ctx_new(&ctx, NULL) == N2CE_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    n2ce_ctx_free(ctx);
    return 0;
}

static const n2_problem *find(const char *name) {
    const n2_problem *p = n2_problem_find(name);
    assert_non_null(p);
    return p;
}

static double *doubles(size_t n) {
    double *p = malloc(n * sizeof *p);
    assert_non_null(p);
    return p;
}

/* The numerator, or the pairs; `den` may be NULL. */
static double *draw_with(n2ce_ctx *with, const n2_problem *p, size_t n, uint64_t seed,
                         double **den) {
    const size_t size = n * n2_problem_row_length(p);
    double *a = doubles(size), *b = p->kind == N2_PROBLEM_KL ? doubles(size) : NULL;
    assert_int_equal(n2_problem_draw(with, p, n, seed, a, b), N2CE_OK);
    if (den)
        *den = b;
    else
        free(b);
    return a;
}

static double *draw(const char *name, size_t n) { return draw_with(ctx, find(name), n, 5, NULL); }

/* ---- the table ------------------------------------------------------------------------------- */

/* What benchmark-mi 0.1.3 says of its 40 tasks, in its order: dimensions and truth. */
static const struct {
    size_t x, y;
    double truth;
} package[40] = {
    {1, 1, 0.41333928659223396},  {1, 1, 0.41333928659223396},  {1, 1, 1.7094379124341003},
    {1, 1, 0.3333333333333333},   {1, 1, 0.41333928659223396},  {1, 1, 0.41333928659223396},
    {1, 1, 0.41333928659223396},  {1, 1, 0.22417142752923613},  {1, 1, 0.22417142752923613},
    {2, 1, 0.41333928659223396},  {2, 2, 0.2938933324510593},   {3, 3, 0.41333928659223407},
    {5, 5, 0.5928118328288701},   {25, 25, 1.2921837216593204}, {50, 50, 1.6242653743037039},
    {2, 2, 1.0216512475319819},   {3, 3, 1.0216512475319819},   {5, 5, 1.021651247531981},
    {25, 25, 1.0216512475319774}, {2, 2, 0.43194562200144127},  {2, 2, 0.1931471805599454},
    {3, 3, 0.29092192268276484},  {3, 3, 0.17871185309236282},  {5, 5, 0.44815067691532917},
    {5, 5, 0.29854362265275824},  {3, 3, 1.0216512475319819},   {5, 5, 1.021651247531981},
    {25, 25, 1.0216512475319774}, {3, 3, 1.0216512475319819},   {5, 5, 1.021651247531981},
    {25, 25, 1.0216512475319774}, {3, 3, 1.0216512475319819},   {5, 5, 1.021651247531981},
    {25, 25, 1.0216512475319774}, {3, 3, 1.0216512475319819},   {5, 5, 1.021651247531981},
    {25, 25, 1.0216512475319774}, {2, 2, 0.43194562200144127},  {3, 3, 0.29092192268276484},
    {5, 5, 0.44815067691532917},
};

static void the_first_forty_are_those_of_the_package(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(package); i++) {
        const n2_problem *p = n2_problem_at(i);
        assert_string_equal(p->group, "bmi");
        assert_int_equal(p->kind, N2_PROBLEM_MI);
        assert_int_equal(p->dim_x, package[i].x);
        assert_int_equal(p->dim_y, package[i].y);
        assert_int_equal(p->n, 5000);
        assert_close(p->truth, package[i].truth, 1e-12, 0);
    }
    assert_string_not_equal(n2_problem_at(COUNT_OF(package))->group, "bmi");
}

static const struct {
    const char *name;
    size_t x, y, n;
    double truth;
} others[] = {
    {"gaussian-mi-20", 10, 10, 100000, 5},   {"gaussian-mi-320", 160, 160, 100000, 80},
    {"mutinfo-1", 1, 1, 10000, 2},           {"mutinfo-64", 64, 64, 10000, 128},
    {"correlated-normal-1", 1, 1, 10000, 1}, {"correlated-normal-10", 1, 1, 10000, 10},
    {"tre-peaked", 1, 0, 10000, 13.3155},    {"dre-infinity-peaked", 1, 0, 10000, 6.4078},
    {"tre-gap-3", 1, 0, 10000, 200.2708},    {"tre-gap-4", 1, 0, 10000, 355.8264},
    {"tre-gap-10", 1, 0, 10000, 50},         {"mdre-gap-2", 1, 0, 10000, 50.3181},
    {"shifted-2d", 2, 0, 10000, 16},         {"sanity-1d", 1, 0, 10000, 0.5},
    {"sanity-2d", 2, 0, 10000, 1.445},       {"sanity-5d", 5, 0, 10000, 2.8125},
};

/* As the papers say, to the digits that can be had from them. */
static void the_others_have_the_published_truth(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        const n2_problem *p = find(others[i].name);
        assert_int_equal(p->dim_x, others[i].x);
        assert_int_equal(p->dim_y, others[i].y);
        assert_int_equal(p->n, others[i].n);
        assert_int_equal(p->kind, others[i].y ? N2_PROBLEM_MI : N2_PROBLEM_KL);
        assert_close(n2_problem_truth(p), others[i].truth, 0, 5e-5);
    }
    assert_close(find("gaussian-mi-40")->recipe.rho, 0.795060, 0, 5e-7);
}

static bool is_word(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    return name[0] && name[strspn(name, letters)] == '\0';
}

static void names_are_unique_words(void **state) {
    (void)state;
    assert_int_equal(n2_problem_count(), 40 + 5 + 7 + 10 + 6 + 1 + 3);
    for (size_t i = 0; i < n2_problem_count(); i++) {
        assert_true(is_word(n2_problem_at(i)->name) && is_word(n2_problem_at(i)->group));
        assert_ptr_equal(n2_problem_find(n2_problem_at(i)->name), n2_problem_at(i));
    }
    assert_null(n2_problem_at(n2_problem_count()));
    assert_null(n2_problem_find("no such problem"));
}

/* ---- samples and answers belong together -------------------------------------------------------
 */

typedef struct moments {
    double mean, error; /* of the mean: its standard error */
} moments;

static moments moments_of(const double *v, size_t n, size_t stride) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) sum += v[i * stride];
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) squares += (v[i * stride] - mean) * (v[i * stride] - mean);
    return (moments){mean, sqrt(squares) / (double)n};
}

static void assert_mean(const double *v, size_t n, size_t stride, double expected) {
    const moments m = moments_of(v, n, stride);
    assert_close(m.mean, expected, 0, 5 * m.error);
}

static double *log_ratios(const n2_problem *p, const double *rows, size_t n) {
    double *f = doubles(n);
    for (size_t i = 0; i < n; i++)
        f[i] = n2_problem_log_ratio(p, rows + i * n2_problem_row_length(p));
    return f;
}

/* The mean of the true log ratio over the numerator's samples is the truth. Mapped problems have no
 * such ratio. */
static void the_mean_log_ratio_is_the_truth(void **state) {
    (void)state;
    for (size_t i = 0; i < n2_problem_count(); i++) {
        const n2_problem *p = n2_problem_at(i);
        const size_t n = n2_problem_row_length(p) > 20 ? 2000 : MANY;
        double *rows = draw_with(ctx, p, n, i, NULL), *f = log_ratios(p, rows, n);
        if (p->recipe.map == N2_MAP_NONE)
            assert_mean(f, n, 1, p->truth);
        else
            assert_true(isnan(f[0]));
        free(rows);
        free(f);
    }
}

/* Brings x of a row together with y of the next: samples of the product of the margins. */
static void pair_anew(const n2_problem *p, size_t n, double *rows) {
    const size_t length = n2_problem_row_length(p);
    for (size_t i = 0; i + 1 < n; i++)
        memcpy(rows + i * length + p->dim_x, rows + (i + 1) * length + p->dim_x,
               p->dim_y * sizeof *rows);
}

/* A ratio has mean 1 under the denominator. */
static void ratios_are_normalised(void **state) {
    (void)state;
    static const char *const names[] = {
        "bivariate-normal",  "multinormal-dense-2", "multinormal-dense-3", "additive-noise-10",
        "additive-noise-75", "student-2-nu-2",      "sanity-1d",           "sanity-2d"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const n2_problem *p = find(names[i]);
        double *den, *rows = draw_with(ctx, p, MANY, 7, &den);
        if (!den) pair_anew(p, MANY, rows);
        double *f = log_ratios(p, den ? den : rows, MANY - 1);
        for (size_t k = 0; k < MANY - 1; k++) f[k] = exp(f[k]);
        assert_mean(f, MANY - 1, 1, 1);
        free(rows);
        free(den);
        free(f);
    }
}

/* A row that cannot be. */
static void the_ratio_is_zero_outside_the_support(void **state) {
    (void)state;
    const n2_problem *p = find("additive-noise-10");
    assert_close(n2_problem_log_ratio(p, (double[]){0.5, 0.61}), -N2_INFINITY, 0, 0);
    assert_close(n2_problem_log_ratio(p, (double[]){0.5, 0.55}), -log(0.2), 1e-15, 0);
}

/* ---- distributions -----------------------------------------------------------------------------
 */

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov, exceeded once in a thousand; every column from `first` on. */
static void assert_distributed(const char *name, size_t first, size_t n_columns,
                               double (*cdf)(double)) {
    const size_t length = n2_problem_row_length(find(name));
    double *rows = draw(name, MANY), *column = doubles(MANY);
    for (size_t c = first; c < first + n_columns; c++) {
        for (size_t i = 0; i < MANY; i++) column[i] = rows[i * length + c];
        qsort(column, MANY, sizeof *column, compare_doubles);
        double distance = 0;
        for (size_t i = 0; i < MANY; i++) {
            const double f = cdf(column[i]);
            distance = fmax(distance, fmax(f - (double)i / MANY, (double)(i + 1) / MANY - f));
        }
        assert_true(distance * sqrt(MANY) < 1.95);
    }
    free(rows);
    free(column);
}

static double uniform_cdf(double u) { return fmin(fmax(u, 0), 1); }
static double cauchy_cdf(double t) { return 0.5 + atan(t) / pi; }
static double student_2_cdf(double t) { return 0.5 + t / (2 * sqrt(2 + t * t)); }
static double student_3_cdf(double t) {
    const double s = t / sqrt(3);
    return 0.5 + (s / (1 + s * s) + atan(s)) / pi;
}
static double bimodal_x_cdf(double x) {
    return 0.3 * n2_normal_cdf(x) + 0.7 * n2_normal_cdf(x - 5);
}
static double bimodal_y_cdf(double y) {
    return 0.5 * n2_normal_cdf(y + 1) + 0.5 * n2_normal_cdf(y - 3);
}
static double peaked_cdf(double x) { return n2_normal_cdf(x / 1e-6); }
static double gap_cdf(double x) { return n2_normal_cdf((x + 1) / 0.08); }

static void columns_have_their_distributions(void **state) {
    (void)state;
    assert_distributed("bivariate-normal", 0, 2, n2_normal_cdf);
    assert_distributed("multinormal-dense-3", 0, 6, n2_normal_cdf);
    assert_distributed("multinormal-2pair-5", 0, 10, n2_normal_cdf);
    assert_distributed("correlated-normal-10", 0, 2, n2_normal_cdf);
    assert_distributed("normal-cdf", 0, 2, uniform_cdf);
    assert_distributed("additive-noise-10", 0, 1, uniform_cdf);
    assert_distributed("bimodal", 0, 1, bimodal_x_cdf);
    assert_distributed("bimodal", 1, 1, bimodal_y_cdf);
    assert_distributed("swiss-roll", 2, 1, uniform_cdf);
    assert_distributed("student-1-nu-1", 0, 2, cauchy_cdf);
    assert_distributed("student-3-nu-2", 0, 6, student_2_cdf);
    assert_distributed("student-5-nu-3", 0, 10, student_3_cdf);
    assert_distributed("tre-peaked", 0, 1, peaked_cdf);
    assert_distributed("tre-gap-3", 0, 1, gap_cdf);
}

/* The mean product of two columns of the draws, which have variance 1, is their correlation. */
static void assert_correlations(const char *name, size_t pairs, double rho, double rest) {
    const n2_problem *p = find(name);
    const size_t length = n2_problem_row_length(p);
    double *rows = draw(name, MANY), *products = doubles(MANY);
    for (size_t a = 0; a < length; a++)
        for (size_t b = 0; b < a; b++) {
            for (size_t i = 0; i < MANY; i++)
                products[i] = rows[i * length + a] * rows[i * length + b];
            assert_mean(products, MANY, 1, a == b + p->dim_x && b < pairs ? rho : rest);
        }
    free(rows);
    free(products);
}

static void correlations_are_where_they_belong(void **state) {
    (void)state;
    assert_correlations("bivariate-normal", 1, 0.75, 0);
    assert_correlations("multinormal-2pair-5", 2, 0.8, 0);
    assert_correlations("multinormal-dense-5", 0, 0, 0.5);
    assert_correlations("gaussian-mi-20", 10, 0.795060, 0);
}

/* ---- the maps of the benchmark -----------------------------------------------------------------
 */

/* Draws of a mapped problem and of its base, with the same seed. */
typedef struct mapped {
    const n2_problem *problem;
    double *rows, *base;
    size_t length, base_length;
} mapped;

static mapped draw_mapped(const char *name, const char *base) {
    return (mapped){find(name), draw(name, MANY), draw(base, MANY),
                    n2_problem_row_length(find(name)), n2_problem_row_length(find(base))};
}

static void free_mapped(mapped m) {
    free(m.rows);
    free(m.base);
}

static double same(double v) { return v; }
static double wiggled_x(double z) {
    return z + 0.4 * sin(1.0 * z) + 0.2 * sin(1.7 * z + 1) + 0.03 * sin(3.3 * z - 2.5);
}
static double wiggled_y(double z) {
    return z - 0.4 * sin(0.4 * z) + 0.17 * sin(1.3 * z + 3.5) + 0.02 * sin(4.3 * z - 2.5);
}
static double signed_power(double z) { return copysign(pow(fabs(z), 1.5), z); }

/* undone_x(row) = done_x(base row), and the same for y, in every coordinate. */
typedef struct coordinate_map {
    const char *name, *base;
    double (*undone_x)(double), (*done_x)(double), (*undone_y)(double), (*done_y)(double);
} coordinate_map;

static const coordinate_map coordinate_maps[] = {
    {"normal-cdf", "bivariate-normal", same, n2_normal_cdf, same, n2_normal_cdf},
    {"normal-cdf-2pair-5", "multinormal-2pair-5", same, n2_normal_cdf, same, n2_normal_cdf},
    {"bimodal", "bivariate-normal", bimodal_x_cdf, n2_normal_cdf, bimodal_y_cdf, n2_normal_cdf},
    {"wiggly", "bivariate-normal", same, wiggled_x, same, wiggled_y},
    {"half-cube", "bivariate-normal", same, signed_power, same, signed_power},
    {"half-cube-2pair-3", "multinormal-2pair-3", same, signed_power, same, signed_power},
    {"asinh-student-1-nu-1", "student-1-nu-1", sinh, same, sinh, same},
    {"asinh-student-5-nu-2", "student-5-nu-2", sinh, same, sinh, same},
};

static void coordinates_are_mapped_as_defined(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT_OF(coordinate_maps); c++) {
        const coordinate_map *map = &coordinate_maps[c];
        const mapped m = draw_mapped(map->name, map->base);
        assert_int_equal(m.length, m.base_length);
        for (size_t i = 0; i < MANY * m.length; i++) {
            const bool is_x = i % m.length < m.problem->dim_x;
            const double undone = (is_x ? map->undone_x : map->undone_y)(m.rows[i]);
            const double done = (is_x ? map->done_x : map->done_y)(m.base[i]);
            assert_close(undone, done, 1e-12, 1e-14);
        }
        free_mapped(m);
    }
}

/* The roll starts at t = 1.5 pi for u = 0, makes one and a half turns to 4.5 pi, and has radius
 * t / 21; y is untouched. */
static void the_swiss_roll_is_rolled(void **state) {
    (void)state;
    const mapped m = draw_mapped("swiss-roll", "normal-cdf");
    for (size_t i = 0; i < MANY; i++) {
        const double *row = m.rows + 3 * i, u = m.base[2 * i];
        const double t = 21 * hypot(row[0], row[1]);
        assert_close(t, 1.5 * pi + 3 * pi * u, 1e-13, 0);
        assert_close(row[0], t * cos(t) / 21, 0, 1e-12);
        assert_close(row[1], t * sin(t) / 21, 0, 1e-12);
        assert_close(row[2], m.base[2 * i + 1], 0, 0);
    }
    free_mapped(m);
}

/* v is w with coordinates k and k+1 turned counter-clockwise by |w|^2 / dim. */
static void assert_turned(const double *v, const double *w, size_t dim, size_t k) {
    double squares = 0;
    for (size_t i = 0; i < dim; i++) squares += w[i] * w[i];
    const double radius = hypot(w[k], w[k + 1]);
    const double angle = atan2(w[k + 1], w[k]) + squares / (double)dim;
    assert_close(v[k], radius * cos(angle), 0, 1e-12);
    assert_close(v[k + 1], radius * sin(angle), 0, 1e-12);
    for (size_t i = 0; i < dim; i++)
        if (i != k && i != k + 1) assert_close(v[i], w[i], 0, 0);
}

/* The first two coordinates of x, the second and third of y. */
static void spirals_turn_two_coordinates(void **state) {
    (void)state;
    static const char *const names[][2] = {{"spiral-2pair-3", "multinormal-2pair-3"},
                                           {"spiral-2pair-25", "multinormal-2pair-25"},
                                           {"spiral-normal-cdf-2pair-5", "normal-cdf-2pair-5"}};
    for (size_t c = 0; c < COUNT_OF(names); c++) {
        const mapped m = draw_mapped(names[c][0], names[c][1]);
        const size_t dim = m.problem->dim_x;
        for (size_t i = 0; i < MANY; i++) {
            const double *v = m.rows + i * m.length, *w = m.base + i * m.length;
            assert_turned(v, w, dim, 0);
            assert_turned(v + dim, w + dim, dim, 1);
        }
        free_mapped(m);
    }
}

/* The noise is uniform, and within its width. */
static void additive_noise_is_uniform(void **state) {
    (void)state;
    double *rows = draw("additive-noise-75", MANY), *noise = doubles(MANY);
    for (size_t i = 0; i < MANY; i++) {
        noise[i] = (rows[2 * i + 1] - rows[2 * i]) / 0.75;
        assert_true(fabs(noise[i]) <= 1);
    }
    assert_mean(noise, MANY, 1, 0);
    for (size_t i = 0; i < MANY; i++) noise[i] *= noise[i];
    assert_mean(noise, MANY, 1, 1.0 / 3);
    free(rows);
    free(noise);
}

/* ---- rescaling ---------------------------------------------------------------------------------
 */

static void rescaled_columns_have_mean_0_and_variance_1(void **state) {
    (void)state;
    const size_t n = 5000;
    double *rows = draw("student-3-nu-2", n), *before = draw("student-3-nu-2", n);
    n2_problem_rescale(n, 6, rows);
    for (size_t c = 0; c < 6; c++) {
        const moments m = moments_of(rows + c, n, 6), was = moments_of(before + c, n, 6);
        assert_close(m.mean, 0, 0, 1e-14);
        assert_close(m.error, 1 / sqrt((double)n), 1e-13, 0);
        assert_close(rows[c], (before[c] - was.mean) / (was.error * sqrt((double)n)), 1e-12, 1e-14);
    }
    free(rows);
    free(before);
}

static void a_constant_column_is_centred(void **state) {
    (void)state;
    double rows[] = {7, 7, 7};
    n2_problem_rescale(3, 1, rows);
    for (size_t i = 0; i < 3; i++) assert_close(rows[i], 0, 0, 0);
}

/* ---- purity ------------------------------------------------------------------------------------
 */

/* Row i does not depend on n or on the number of threads. */
static void rows_are_a_pure_function(void **state) {
    (void)state;
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = 3;
    n2ce_ctx *three;
    assert_int_equal(n2ce_ctx_new(&three, &options), N2CE_OK);
    for (size_t i = 0; i < n2_problem_count(); i++) {
        const n2_problem *p = n2_problem_at(i);
        double *den[2],
            *num[2] = {draw_with(ctx, p, 1100, 3, &den[0]), draw_with(three, p, 701, 3, &den[1])};
        const size_t bytes = 701 * n2_problem_row_length(p) * sizeof(double);
        assert_memory_equal(num[0], num[1], bytes);
        if (den[0]) assert_memory_equal(den[0], den[1], bytes);
        for (size_t k = 0; k < 2; k++) {
            free(num[k]);
            free(den[k]);
        }
    }
    n2ce_ctx_free(three);
}

static void assert_uncorrelated(const double *a, const double *b, size_t n) {
    double *products = doubles(n);
    for (size_t i = 0; i < n; i++) products[i] = a[i] * b[i];
    assert_mean(products, n, 1, 0);
    free(products);
}

/* Seeds, sides and neighbouring rows are uncorrelated. */
static void seeds_sides_and_rows_are_independent(void **state) {
    (void)state;
    const n2_problem *p = find("tre-peaked");
    double *den[2],
        *num[2] = {draw_with(ctx, p, MANY, 0, &den[0]), draw_with(ctx, p, MANY, 1, &den[1])};
    assert_uncorrelated(num[0], num[1], MANY);
    assert_uncorrelated(den[0], den[1], MANY);
    assert_uncorrelated(num[0], den[0], MANY);
    for (size_t lag = 1; lag < 5; lag++) assert_uncorrelated(num[0], num[0] + lag, MANY - lag);
    for (size_t k = 0; k < 2; k++) {
        free(num[k]);
        free(den[k]);
    }
}

/* Hardly any draw fits into a float, and no two are the same. */
static void draws_have_double_precision(void **state) {
    (void)state;
    double *rows = draw("multinormal-2pair-2", MANY);
    size_t coarse = 0;
    for (size_t i = 0; i < 4 * MANY; i++) coarse += rows[i] == (double)(float)rows[i];
    assert_true(coarse < 5);
    qsort(rows, 4 * MANY, sizeof *rows, compare_doubles);
    for (size_t i = 1; i < 4 * MANY; i++) assert_true(rows[i - 1] < rows[i]);
    free(rows);
}

/* ---- errors ------------------------------------------------------------------------------------
 */

static void sides_must_fit_the_kind(void **state) {
    (void)state;
    double a[2], b[2];
    const n2_problem *mi = find("bivariate-normal"), *kl = find("sanity-2d");
    assert_int_equal(n2_problem_draw(ctx, mi, 1, 0, a, b), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(ctx), "bivariate-normal"));
    assert_int_equal(n2_problem_draw(ctx, kl, 1, 0, a, NULL), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(ctx), "sanity-2d"));
    assert_int_equal(n2_problem_draw(ctx, mi, 0, 0, a, NULL), N2CE_OK);
}

static n2ce_status draw_on(failing_alloc *memory, const n2_problem *p, double *a, double *b) {
    const n2ce_ctx_options options = failing_alloc_options(memory, 2);
    n2ce_ctx *own = NULL;
    n2ce_status status = n2ce_ctx_new(&own, &options);
    if (status == N2CE_OK) status = n2_problem_draw(own, p, 600, 1, a, b);
    n2ce_ctx_free(own);
    return status;
}

/* Out of memory at any allocation: an error, and nothing leaks. */
static void running_out_of_memory_is_an_error(void **state) {
    (void)state;
    const n2_problem *p = find("sanity-1d");
    double a[600], b[600];
    n2ce_status status = N2CE_ENOMEM;
    for (size_t k = 0; status != N2CE_OK; k++) {
        assert_true(k < 100);
        failing_alloc memory = failing_alloc_new(k, true);
        status = draw_on(&memory, p, a, b);
        assert_true(status == N2CE_OK || status == N2CE_ENOMEM);
        assert_int_equal(memory.live, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_forty_are_those_of_the_package),
        cmocka_unit_test(the_others_have_the_published_truth),
        cmocka_unit_test(names_are_unique_words),
        cmocka_unit_test(the_mean_log_ratio_is_the_truth),
        cmocka_unit_test(ratios_are_normalised),
        cmocka_unit_test(the_ratio_is_zero_outside_the_support),
        cmocka_unit_test(columns_have_their_distributions),
        cmocka_unit_test(correlations_are_where_they_belong),
        cmocka_unit_test(coordinates_are_mapped_as_defined),
        cmocka_unit_test(the_swiss_roll_is_rolled),
        cmocka_unit_test(spirals_turn_two_coordinates),
        cmocka_unit_test(additive_noise_is_uniform),
        cmocka_unit_test(rescaled_columns_have_mean_0_and_variance_1),
        cmocka_unit_test(a_constant_column_is_centred),
        cmocka_unit_test(rows_are_a_pure_function),
        cmocka_unit_test(seeds_sides_and_rows_are_independent),
        cmocka_unit_test(draws_have_double_precision),
        cmocka_unit_test(sides_must_fit_the_kind),
        cmocka_unit_test(running_out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
