#include "ratio_problems.h"

#include "base/numerics.h"
#include "base/pool.h"
#include "base/random.h"

#include <pthread.h>
#include <string.h>

enum {
    MOST_EXTRAS = 4,    /* random numbers of a row beside its coordinates */
    ITEM_ROWS = 512,    /* drawn by one thread at a time */
    STREAM = 0x70726f62 /* "prob": none that an estimator with the same seed draws from */
};

static const double pi = 3.14159265358979323846;

/* ---- the table ------------------------------------------------------------------------------- */

#define MI(group_, name_, x, y, n_, ...)                                                        \
    {                                                                                           \
        .group = group_, .name = name_, .kind = N2_PROBLEM_MI, .dim_x = x, .dim_y = y, .n = n_, \
        .recipe = {                                                                             \
            __VA_ARGS__                                                                         \
        }                                                                                       \
    }
#define KL(group_, name_, dim, mean, sd, other_mean, other_sd)                           \
    {                                                                                    \
        .group = group_, .name = name_, .kind = N2_PROBLEM_KL, .dim_x = dim, .n = 10000, \
        .recipe = {                                                                      \
            N2_BASE_SIDES,                                                               \
            .num_mean = mean,                                                            \
            .num_sd = sd,                                                                \
            .den_mean = other_mean,                                                      \
            .den_sd = other_sd                                                           \
        }                                                                                \
    }

#define BMI(name, x, y, ...) MI("bmi", name, x, y, 5000, __VA_ARGS__)
#define DENSE                N2_BASE_DENSE, .rho = 0.5
#define ONE_PAIR             N2_BASE_PAIRS, .pairs = 1, .rho = 0.75
#define TWO_PAIRS            N2_BASE_PAIRS, .pairs = 2, .rho = 0.8
#define STUDENT(nu)          N2_BASE_STUDENT, .dof = nu
#define ADDITIVE(width)      N2_BASE_ADDITIVE, .noise = width
#define GAUSSIAN_MI(d)                                                                        \
    MI("gaussian-mi", "gaussian-mi-" #d, d / 2, d / 2, 100000, N2_BASE_PAIRS, .pairs = d / 2, \
       .nats = 0.5)
#define MUTINFO(d) MI("mutinfo", "mutinfo-" #d, d, d, 10000, N2_BASE_PAIRS, .pairs = d, .nats = 2)
#define CORRELATED(mi)                                                                        \
    MI("correlated-normal", "correlated-normal-" #mi, 1, 1, 10000, N2_BASE_PAIRS, .pairs = 1, \
       .nats = mi)

static const double zero[] = {0}, one[] = {1}, minus_one[] = {-1}, minus_two[] = {-2};
static const double minus_five[] = {-5}, fours[] = {4, 4};
static const double paper_2d[] = {1.5, -0.8}, paper_5d[] = {-1.5, -0.75, 0, 0.75, 1.5};

static n2_problem problems[] = {
    BMI("bivariate-normal", 1, 1, ONE_PAIR),
    BMI("normal-cdf", 1, 1, ONE_PAIR, .map = N2_MAP_CDF),
    BMI("additive-noise-10", 1, 1, ADDITIVE(0.1)),
    BMI("additive-noise-75", 1, 1, ADDITIVE(0.75)),
    BMI("bimodal", 1, 1, ONE_PAIR, .map = N2_MAP_BIMODAL),
    BMI("wiggly", 1, 1, ONE_PAIR, .map = N2_MAP_WIGGLY),
    BMI("half-cube", 1, 1, ONE_PAIR, .map = N2_MAP_HALF_CUBE),
    BMI("student-1-nu-1", 1, 1, STUDENT(1)),
    BMI("asinh-student-1-nu-1", 1, 1, STUDENT(1), .map = N2_MAP_ASINH),
    BMI("swiss-roll", 2, 1, ONE_PAIR, .map = N2_MAP_SWISS_ROLL),
    BMI("multinormal-dense-2", 2, 2, DENSE),
    BMI("multinormal-dense-3", 3, 3, DENSE),
    BMI("multinormal-dense-5", 5, 5, DENSE),
    BMI("multinormal-dense-25", 25, 25, DENSE),
    BMI("multinormal-dense-50", 50, 50, DENSE),
    BMI("multinormal-2pair-2", 2, 2, TWO_PAIRS),
    BMI("multinormal-2pair-3", 3, 3, TWO_PAIRS),
    BMI("multinormal-2pair-5", 5, 5, TWO_PAIRS),
    BMI("multinormal-2pair-25", 25, 25, TWO_PAIRS),
    BMI("student-2-nu-1", 2, 2, STUDENT(1)),
    BMI("student-2-nu-2", 2, 2, STUDENT(2)),
    BMI("student-3-nu-2", 3, 3, STUDENT(2)),
    BMI("student-3-nu-3", 3, 3, STUDENT(3)),
    BMI("student-5-nu-2", 5, 5, STUDENT(2)),
    BMI("student-5-nu-3", 5, 5, STUDENT(3)),
    BMI("normal-cdf-2pair-3", 3, 3, TWO_PAIRS, .map = N2_MAP_CDF),
    BMI("normal-cdf-2pair-5", 5, 5, TWO_PAIRS, .map = N2_MAP_CDF),
    BMI("normal-cdf-2pair-25", 25, 25, TWO_PAIRS, .map = N2_MAP_CDF),
    BMI("half-cube-2pair-3", 3, 3, TWO_PAIRS, .map = N2_MAP_HALF_CUBE),
    BMI("half-cube-2pair-5", 5, 5, TWO_PAIRS, .map = N2_MAP_HALF_CUBE),
    BMI("half-cube-2pair-25", 25, 25, TWO_PAIRS, .map = N2_MAP_HALF_CUBE),
    BMI("spiral-2pair-3", 3, 3, TWO_PAIRS, .map = N2_MAP_SPIRAL),
    BMI("spiral-2pair-5", 5, 5, TWO_PAIRS, .map = N2_MAP_SPIRAL),
    BMI("spiral-2pair-25", 25, 25, TWO_PAIRS, .map = N2_MAP_SPIRAL),
    BMI("spiral-normal-cdf-2pair-3", 3, 3, TWO_PAIRS, .map = N2_MAP_SPIRAL_OF_CDF),
    BMI("spiral-normal-cdf-2pair-5", 5, 5, TWO_PAIRS, .map = N2_MAP_SPIRAL_OF_CDF),
    BMI("spiral-normal-cdf-2pair-25", 25, 25, TWO_PAIRS, .map = N2_MAP_SPIRAL_OF_CDF),
    BMI("asinh-student-2-nu-1", 2, 2, STUDENT(1), .map = N2_MAP_ASINH),
    BMI("asinh-student-3-nu-2", 3, 3, STUDENT(2), .map = N2_MAP_ASINH),
    BMI("asinh-student-5-nu-2", 5, 5, STUDENT(2), .map = N2_MAP_ASINH),

    GAUSSIAN_MI(20),
    GAUSSIAN_MI(40),
    GAUSSIAN_MI(80),
    GAUSSIAN_MI(160),
    GAUSSIAN_MI(320),
    MUTINFO(1),
    MUTINFO(2),
    MUTINFO(4),
    MUTINFO(8),
    MUTINFO(16),
    MUTINFO(32),
    MUTINFO(64),
    CORRELATED(1),
    CORRELATED(2),
    CORRELATED(3),
    CORRELATED(4),
    CORRELATED(5),
    CORRELATED(6),
    CORRELATED(7),
    CORRELATED(8),
    CORRELATED(9),
    CORRELATED(10),

    KL("tre", "tre-peaked", 1, zero, 1e-6, 0, 1),
    KL("tre", "dre-infinity-peaked", 1, zero, 1e-3, 0, 1),
    KL("tre", "tre-gap-3", 1, minus_one, 0.08, 2, 0.15),
    KL("tre", "tre-gap-4", 1, minus_two, 0.08, 2, 0.15),
    KL("tre", "tre-gap-10", 1, minus_five, 1, 5, 1),
    KL("tre", "mdre-gap-2", 1, minus_one, 0.1, 1, 0.2),
    KL("shifted-2d", "shifted-2d", 2, fours, 1, 0, 1),
    KL("sanity", "sanity-1d", 1, one, 1, 0, 1),
    KL("sanity", "sanity-2d", 2, paper_2d, 1, 0, 1),
    KL("sanity", "sanity-5d", 5, paper_5d, 1, 0, 1),
};

enum { PROBLEMS = sizeof problems / sizeof problems[0] };

/* ---- the truth ------------------------------------------------------------------------------- */

/* ln det of the matrix of k rows with 1 on the diagonal and rho elsewhere. */
static double log_det_dense(double rho, size_t k) {
    return (double)(k - 1) * log1p(-rho) + log1p((double)(k - 1) * rho);
}

/* ln Gamma(twice / 2). The library's lgamma writes to a global, and threads call this. */
static double log_gamma_of_half(size_t twice) {
    double value = twice % 2 ? 0.5 * log(pi) : 0;
    for (size_t t = twice % 2 ? 1 : 2; t < twice; t += 2) value += log((double)t / 2);
    return value;
}

/* Entropy of the k-dimensional t with identity dispersion, less k/2 ln(dof pi), which cancels in
 * mutual information (Arellano-Valle, Contreras-Reyes and Genton 2013, equation 7). */
static double student_entropy(size_t k, size_t dof) {
    const double half_sum = (double)(dof + k) / 2, half = (double)dof / 2;
    return log_gamma_of_half(dof) - log_gamma_of_half(dof + k) +
           half_sum * (n2_digamma(half_sum) - n2_digamma(half));
}

static double square(double x) { return x * x; }

static double kl_of_sides(const n2_problem *p) {
    const n2_problem_recipe *r = &p->recipe;
    n2_sum sum = {0, 0};
    for (size_t i = 0; i < p->dim_x; i++) {
        const double width = square(r->num_sd / r->den_sd);
        const double shift = square((r->num_mean[i] - r->den_mean) / r->den_sd);
        n2_sum_add(&sum, 0.5 * (width + shift - 1 - log(width)));
    }
    return n2_sum_value(&sum);
}

/* Maps of x alone and of y alone that can be undone leave mutual information as it is, so it is
 * that of what is drawn. */
static double closed_form(const n2_problem *p) {
    const n2_problem_recipe *r = &p->recipe;
    const size_t x = p->dim_x, y = p->dim_y;
    switch (r->base) {
    case N2_BASE_PAIRS:
        return (double)r->pairs * r->nats;
    case N2_BASE_DENSE:
        return 0.5 *
               (log_det_dense(r->rho, x) + log_det_dense(r->rho, y) - log_det_dense(r->rho, x + y));
    case N2_BASE_STUDENT:
        return student_entropy(x, r->dof) + student_entropy(y, r->dof) -
               student_entropy(x + y, r->dof);
    case N2_BASE_ADDITIVE:
        return r->noise > 0.5 ? 0.25 / r->noise : r->noise - log(2 * r->noise);
    case N2_BASE_SIDES:
        return kl_of_sides(p);
    }
    return N2_NAN;
}

static void complete_table(void) {
    for (size_t i = 0; i < PROBLEMS; i++) {
        n2_problem_recipe *r = &problems[i].recipe;
        if (r->nats > 0)
            r->rho = sqrt(-expm1(-2 * r->nats));
        else
            r->nats = -0.5 * log1p(-square(r->rho));
        problems[i].truth = closed_form(&problems[i]);
    }
}

size_t n2_problem_count(void) { return PROBLEMS; }

const n2_problem *n2_problem_at(size_t i) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, complete_table);
    return i < PROBLEMS ? &problems[i] : NULL;
}

const n2_problem *n2_problem_find(const char *name) {
    const n2_problem *p;
    for (size_t i = 0; (p = n2_problem_at(i)); i++)
        if (strcmp(p->name, name) == 0) return p;
    return NULL;
}

double n2_problem_truth(const n2_problem *problem) { return problem->truth; }

size_t n2_problem_row_length(const n2_problem *problem) { return problem->dim_x + problem->dim_y; }

/* ---- random numbers in double precision ------------------------------------------------------ */

/* A counter of the generator has 128 bits: two uniforms or two normals. */
typedef struct source {
    uint64_t seed;
    uint32_t side;    /* numerator or denominator */
    uint64_t counter; /* the next one */
} source;

/* 52 bits and a half: strictly between 0 and 1. */
static double unit_interval(uint32_t high, uint32_t low) {
    const uint64_t bits = ((uint64_t)high << 32 | low) >> 12;
    return ((double)bits + 0.5) * 0x1p-52;
}

static void two_uniforms(source *s, double u[2]) {
    const uint32_t counter[4] = {(uint32_t)s->counter, (uint32_t)(s->counter >> 32), s->side,
                                 STREAM};
    const uint32_t key[2] = {(uint32_t)s->seed, (uint32_t)(s->seed >> 32)};
    uint32_t word[4];
    n2_philox(counter, key, word);
    u[0] = unit_interval(word[0], word[1]);
    u[1] = unit_interval(word[2], word[3]);
    s->counter++;
}

/* Box-Muller. */
static void normals(source *s, size_t n, double *out) {
    for (size_t i = 0; i < n; i += 2) {
        double u[2];
        two_uniforms(s, u);
        const double radius = sqrt(-2 * log(u[0])), angle = 2 * pi * u[1];
        out[i] = radius * cos(angle);
        if (i + 1 < n) out[i + 1] = radius * sin(angle);
    }
}

/* ---- what is drawn --------------------------------------------------------------------------- */

static void correlate_pairs(const n2_problem *p, size_t dim_x, double *row) {
    const double rest = exp(-p->recipe.nats); /* sqrt(1 - rho^2), also where rho rounds to 1 */
    for (size_t i = 0; i < p->recipe.pairs; i++)
        row[dim_x + i] = p->recipe.rho * row[i] + rest * row[dim_x + i];
}

static void correlate_all(double rho, source *s, size_t dim, double *row) {
    double common;
    normals(s, 1, &common);
    for (size_t i = 0; i < dim; i++) row[i] = sqrt(rho) * common + sqrt(1 - rho) * row[i];
}

/* A t is a normal over the root of a mean of `dof` squared normals, here one for the whole row. */
static void divide_by_chi(size_t dof, source *s, size_t dim, double *row) {
    double extra[MOST_EXTRAS], chi_squared = 0;
    normals(s, dof, extra);
    for (size_t i = 0; i < dof; i++) chi_squared += square(extra[i]);
    const double scale = sqrt((double)dof / chi_squared);
    for (size_t i = 0; i < dim; i++) row[i] *= scale;
}

static void shift_and_scale(const n2_problem *p, bool numerator, double *row) {
    const n2_problem_recipe *r = &p->recipe;
    for (size_t i = 0; i < p->dim_x; i++)
        row[i] = numerator ? r->num_mean[i] + r->num_sd * row[i] : r->den_mean + r->den_sd * row[i];
}

static void add_noise(double noise, source *s, double row[2]) {
    double u[2];
    two_uniforms(s, u);
    row[0] = u[0];
    row[1] = u[0] + noise * (2 * u[1] - 1);
}

/* Before the map. The Swiss roll has one coordinate of x more than is drawn. */
static size_t drawn_dim_x(const n2_problem *p) {
    return p->dim_x - (p->recipe.map == N2_MAP_SWISS_ROLL);
}

static void draw_base(const n2_problem *p, source s, size_t row_number, double *row) {
    const n2_problem_recipe *r = &p->recipe;
    const size_t dim_x = drawn_dim_x(p), dim = dim_x + p->dim_y;
    s.counter = row_number * ((dim + 1) / 2 + MOST_EXTRAS / 2);
    if (r->base == N2_BASE_ADDITIVE) {
        add_noise(r->noise, &s, row);
        return;
    }
    normals(&s, dim, row);
    if (r->base == N2_BASE_PAIRS) correlate_pairs(p, dim_x, row);
    if (r->base == N2_BASE_DENSE) correlate_all(r->rho, &s, dim, row);
    if (r->base == N2_BASE_STUDENT) divide_by_chi(r->dof, &s, dim, row);
    if (r->base == N2_BASE_SIDES) shift_and_scale(p, s.side == 0, row);
}

/* ---- what is done to it ---------------------------------------------------------------------- */

/* The t with w Phi(t - a) + (1 - w) Phi(t - b) = Phi(z): quantiles of a mixture of two normals. It
 * lies between z + a and z + b, since the mixture does. */
static double mixture_quantile(double z, double w, double a, double b) {
    double low = z + fmin(a, b), high = z + fmax(a, b);
    for (double middle = (low + high) / 2; low < middle && middle < high;
         middle = (low + high) / 2) {
        /* in the tail where the numbers are small, not close to 1 */
        const double sign = z > 0 ? -1 : 1;
        const double mixture =
            w * n2_normal_cdf(sign * (middle - a)) + (1 - w) * n2_normal_cdf(sign * (middle - b));
        if (sign * (mixture - n2_normal_cdf(sign * z)) < 0)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

static double bimodal_x(double z) { return mixture_quantile(z, 0.3, 0, 5); }
static double bimodal_y(double z) { return mixture_quantile(z, 0.5, -1, 3); }

static double wiggly_x(double z) {
    return z + 0.4 * sin(z) + 0.2 * sin(1.7 * z + 1) + 0.03 * sin(3.3 * z - 2.5);
}

static double wiggly_y(double z) {
    return z - 0.4 * sin(0.4 * z) + 0.17 * sin(1.3 * z + 3.5) + 0.02 * sin(4.3 * z - 2.5);
}

static double half_cube(double z) { return z * sqrt(fabs(z)); }

/* Maps of one coordinate, of x and of y. */
static const struct {
    double (*of_x)(double), (*of_y)(double);
} coordinate_maps[] = {
    [N2_MAP_CDF] = {n2_normal_cdf, n2_normal_cdf},
    [N2_MAP_BIMODAL] = {bimodal_x, bimodal_y},
    [N2_MAP_WIGGLY] = {wiggly_x, wiggly_y},
    [N2_MAP_HALF_CUBE] = {half_cube, half_cube},
    [N2_MAP_ASINH] = {asinh, asinh},
    [N2_MAP_SWISS_ROLL] = {n2_normal_cdf, n2_normal_cdf},
    [N2_MAP_SPIRAL] = {NULL, NULL},
    [N2_MAP_SPIRAL_OF_CDF] = {n2_normal_cdf, n2_normal_cdf},
};

/* Turns coordinates i and i + 1 by |v|^2 / dim radians. */
static void spiral(size_t dim, size_t i, double *v) {
    double squares = 0;
    for (size_t k = 0; k < dim; k++) squares += square(v[k]);
    const double angle = squares / (double)dim, a = v[i], b = v[i + 1];
    v[i] = cos(angle) * a - sin(angle) * b;
    v[i + 1] = sin(angle) * a + cos(angle) * b;
}

/* (u, y) with u in (0,1) becomes a point of the roll, and y. */
static void swiss_roll(double row[3]) {
    const double t = 1.5 * pi * (1 + 2 * row[0]), y = row[1];
    row[0] = t * cos(t) / 21;
    row[1] = t * sin(t) / 21;
    row[2] = y;
}

static void apply_map(const n2_problem *p, double *row) {
    const int map = (int)p->recipe.map;
    const size_t dim_x = drawn_dim_x(p);
    if (coordinate_maps[map].of_x) {
        for (size_t i = 0; i < dim_x; i++) row[i] = coordinate_maps[map].of_x(row[i]);
        for (size_t i = 0; i < p->dim_y; i++)
            row[dim_x + i] = coordinate_maps[map].of_y(row[dim_x + i]);
    }
    if (map == N2_MAP_SWISS_ROLL) swiss_roll(row);
    if (map == N2_MAP_SPIRAL || map == N2_MAP_SPIRAL_OF_CDF) {
        spiral(p->dim_x, 0, row);
        spiral(p->dim_y, 1, row + p->dim_x);
    }
}

/* ---- drawing rows ---------------------------------------------------------------------------- */

typedef struct draw_job {
    const n2_problem *problem;
    source source;
    size_t n;
    double *rows;
} draw_job;

static void draw_item(void *arg, size_t item, int worker) {
    (void)worker;
    const draw_job *job = arg;
    const size_t length = n2_problem_row_length(job->problem), first = item * ITEM_ROWS;
    const size_t end = job->n - first < ITEM_ROWS ? job->n : first + ITEM_ROWS;
    for (size_t i = first; i < end; i++) {
        draw_base(job->problem, job->source, i, job->rows + i * length);
        apply_map(job->problem, job->rows + i * length);
    }
}

static n2ce_status draw_side(n2ce_ctx *ctx, draw_job job) {
    const size_t items = job.n / ITEM_ROWS + (job.n % ITEM_ROWS != 0);
    return n2_parallel_for(ctx, items, draw_item, &job);
}

n2ce_status n2_problem_draw(n2ce_ctx *ctx, const n2_problem *problem, size_t n, uint64_t seed,
                            double *a, double *b) {
    const bool two_sides = problem->kind == N2_PROBLEM_KL;
    if (two_sides != (b != NULL))
        return n2_fail(ctx, N2CE_EINVAL, "Problem %s has %s; %s a place for the denominator.",
                       problem->name, two_sides ? "two sides" : "one sample of pairs",
                       two_sides ? "give" : "do not give");
    N2_TRY(draw_side(ctx, (draw_job){problem, {seed, 0, 0}, n, a}));
    return two_sides ? draw_side(ctx, (draw_job){problem, {seed, 1, 0}, n, b}) : N2CE_OK;
}

static void rescale_column(size_t n, size_t row_length, double *column) {
    n2_sum sum = {0, 0}, squares = {0, 0};
    for (size_t i = 0; i < n; i++) n2_sum_add(&sum, column[i * row_length]);
    const double mean = n2_sum_value(&sum) / (double)n;
    for (size_t i = 0; i < n; i++) n2_sum_add(&squares, square(column[i * row_length] - mean));
    const double deviation = sqrt(n2_sum_value(&squares) / (double)n);
    for (size_t i = 0; i < n; i++) {
        const double centred = column[i * row_length] - mean;
        column[i * row_length] = deviation > 0 ? centred / deviation : centred;
    }
}

void n2_problem_rescale(size_t n, size_t row_length, double *rows) {
    for (size_t i = 0; i < row_length; i++) rescale_column(n, row_length, rows + i);
}

/* ---- the true log ratio ---------------------------------------------------------------------- */

static double sum_of_squares(const double *v, size_t n) {
    n2_sum sum = {0, 0};
    for (size_t i = 0; i < n; i++) n2_sum_add(&sum, square(v[i]));
    return n2_sum_value(&sum);
}

/* ln p(y_i | x_i) - ln p(y_i), added up. */
static double log_ratio_of_pairs(const n2_problem *p, const double *x, const double *y) {
    const n2_problem_recipe *r = &p->recipe;
    n2_sum sum = {0, 0};
    for (size_t i = 0; i < r->pairs; i++) {
        const double residual = (y[i] - r->rho * x[i]) * exp(r->nats);
        n2_sum_add(&sum, r->nats + 0.5 * (y[i] + residual) * (y[i] - residual));
    }
    return n2_sum_value(&sum);
}

/* Log density less what cancels; the inverse of the matrix is Sherman and Morrison's. */
static double log_density_of_dense(double rho, const double *v, size_t k) {
    n2_sum sum = {0, 0};
    for (size_t i = 0; i < k; i++) n2_sum_add(&sum, v[i]);
    const double common = rho / (1 + (double)(k - 1) * rho) * square(n2_sum_value(&sum));
    return -0.5 * (log_det_dense(rho, k) + (sum_of_squares(v, k) - common) / (1 - rho));
}

/* Log density, less -k/2 ln(dof pi), plus ln Gamma(dof/2) as it is. */
static double log_density_of_student(size_t dof, const double *v, size_t k) {
    const double nu = (double)dof;
    return log_gamma_of_half(dof + k) - log_gamma_of_half(dof) -
           0.5 * (nu + (double)k) * log1p(sum_of_squares(v, k) / nu);
}

/* y given x is uniform on an interval; its own density is the part of that width around y that
 * lies in (0,1). */
static double log_ratio_of_additive(double noise, double x, double y) {
    if (x < 0 || x > 1 || fabs(y - x) > noise) return -N2_INFINITY;
    return -log(fmin(y + noise, 1) - fmax(y - noise, 0));
}

static double log_ratio_of_sides(const n2_problem *p, const double *x) {
    const n2_problem_recipe *r = &p->recipe;
    n2_sum sum = {0, 0};
    for (size_t i = 0; i < p->dim_x; i++) {
        const double num = (x[i] - r->num_mean[i]) / r->num_sd;
        const double den = (x[i] - r->den_mean) / r->den_sd;
        n2_sum_add(&sum, log(r->den_sd / r->num_sd) + 0.5 * (den + num) * (den - num));
    }
    return n2_sum_value(&sum);
}

double n2_problem_log_ratio(const n2_problem *problem, const double *row) {
    const n2_problem_recipe *r = &problem->recipe;
    const size_t x = problem->dim_x, y = problem->dim_y;
    const double *row_y = row + x;
    if (r->map != N2_MAP_NONE) return N2_NAN;
    switch (r->base) {
    case N2_BASE_PAIRS:
        return log_ratio_of_pairs(problem, row, row_y);
    case N2_BASE_DENSE:
        return log_density_of_dense(r->rho, row, x + y) - log_density_of_dense(r->rho, row, x) -
               log_density_of_dense(r->rho, row_y, y);
    case N2_BASE_STUDENT:
        return log_density_of_student(r->dof, row, x + y) - log_density_of_student(r->dof, row, x) -
               log_density_of_student(r->dof, row_y, y);
    case N2_BASE_ADDITIVE:
        return log_ratio_of_additive(r->noise, row[0], row[1]);
    case N2_BASE_SIDES:
        return log_ratio_of_sides(problem, row);
    }
    return N2_NAN;
}
