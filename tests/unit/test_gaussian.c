/* Facts about the Gaussian study: exact parts against quadrature, the kernel against double
 * arithmetic, the paper's tables through the public door. */
#include "contexts.h"

#include "base/isa.h"
#include "base/numerics.h"
#include "base/random.h"
#include "objective/gaussian_bias.h"
#include "objective/linear_moments.h"
#include "study/gaussian.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double plane_target[] = {1.5, -0.8}, plane_start[] = {-2, 1};
static const double line_target[] = {-1.5, -0.75, 0, 0.75, 1.5};
static const double line_start[] = {1.5, 0.75, 0, -0.75, -1.5};

static n2_gaussian_setting paper_setting(size_t dim) {
    return (n2_gaussian_setting){.dim = dim,
                                 .n = 500,
                                 .runs = 1,
                                 .steps = 150,
                                 .step_size = 0.2,
                                 .target = dim == 2 ? plane_target : line_target,
                                 .start = dim == 2 ? plane_start : line_start};
}

/* ---- exact parts ---------------------------------------------------------------------- */

/* grad L_M - grad L_MLE at a, by the definition, on a grid in the plane. */
static double plane_squared_bias(const double *a, const double *target, double m) {
    const double h = 0.1, reach = 12, density = h * h / (2 * 3.14159265358979323846);
    double bias[2] = {0, 0};
    for (double x = -reach; x <= reach; x += h)
        for (double y = -reach; y <= reach; y += h) {
            const double u = x - target[0], v = y - target[1];
            const double num = density * exp(-(u * u + v * v) / 2);
            const double den = density * exp(-(x * x + y * y) / 2);
            const double r = exp(a[0] * x + a[1] * y - (a[0] * a[0] + a[1] * a[1]) / 2);
            /* weights M/(M+r) and M r/(M+r), less those of maximum likelihood, 1 and r */
            const double weight = -num * r / (m + r) + den * r * r / (m + r);
            bias[0] += weight * (x - a[0]);
            bias[1] += weight * (y - a[1]);
        }
    return bias[0] * bias[0] + bias[1] * bias[1];
}

/* The squared bias is the squared norm of its definition, integrated in the plane. */
static void squared_bias_is_its_definition(void **state) {
    (void)state;
    static const double points[][2] = {{-2, 1}, {-1, 0.5}, {0.3, 0.2}, {1.4, -0.8}, {0, 2}};
    static const double ms[] = {1, 10, 1000, 1e6};
    for (size_t i = 0; i < COUNT_OF(points); i++)
        for (size_t k = 0; k < COUNT_OF(ms); k++)
            assert_close(n2_gaussian_squared_bias(points[i], plane_target, 2, ms[k]),
                         plane_squared_bias(points[i], plane_target, ms[k]), 1e-7, 0);
}

/* The same on a line, where num is N(t,1) and the integral has one dimension. */
static void squared_bias_on_a_line(void **state) {
    (void)state;
    static const double rows[][3] = {{1, 2, 1}, {-1.5, 1.5, 10}, {3, 0.5, 100}, {5, 5.5, 1e4}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const double a = rows[i][0], t = rows[i][1], m = rows[i][2], h = 1e-3;
        double bias = 0;
        for (double x = -30; x <= 30; x += h) {
            const double c = 1 / (1 + m * exp(a * a / 2 - a * x));
            const double num = exp(-(x - t) * (x - t) / 2), p = exp(-(x - a) * (x - a) / 2);
            bias += h * 0.3989422804014327 * c * (p - num) * (x - a);
        }
        assert_close(n2_gaussian_squared_bias(&a, &t, 1, m), bias * bias, 1e-7, 0);
    }
}

/* At a = 0 the ratio is 1 and the squared bias |a*|^2 / (1+M)^2; at a = a* it is 0. */
static void squared_bias_has_closed_forms(void **state) {
    (void)state;
    static const double zero[5] = {0};
    for (double m = 1; m < 1e8; m *= 7) {
        assert_close(n2_gaussian_squared_bias(zero, line_target, 5, m), 5.625 / (1 + m) / (1 + m),
                     1e-12, 0);
        assert_close(n2_gaussian_squared_bias(line_target, line_target, 5, m), 0, 0, 1e-24);
        const double near_zero[5] = {1e-6, 0, 0, 0, 0};
        assert_close(n2_gaussian_squared_bias(near_zero, line_target, 5, m),
                     5.625 / (1 + m) / (1 + m), 1e-5, 0);
    }
}

/* Rotating everything changes nothing; extra coordinates that are 0 do not either. */
static void squared_bias_is_rotation_invariant(void **state) {
    (void)state;
    const double c = cos(0.7), s = sin(0.7);
    const double a[2] = {-2, 1}, t[2] = {1.5, -0.8};
    const double ra[3] = {c * a[0] - s * a[1], 0, s * a[0] + c * a[1]};
    const double rt[3] = {c * t[0] - s * t[1], 0, s * t[0] + c * t[1]};
    for (double m = 1; m < 1e6; m *= 10)
        assert_close(n2_gaussian_squared_bias(ra, rt, 3, m), n2_gaussian_squared_bias(a, t, 2, m),
                     1e-9, 0);
}

/* Nearest the noise the squared bias falls as 1/M^2, in both problems of the paper. */
static void the_bias_slope_is_minus_two(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    for (size_t dim = 2; dim <= 5; dim += 3) {
        const n2_gaussian_setting s = paper_setting(dim);
        n2_arena arena = n2_arena_new(ctx);
        n2_gaussian_bias bias;
        assert_int_equal(n2_gaussian_bias_curves(&s, &arena, &bias), N2CE_OK);
        assert_true(bias.curves[0].slope >= -2.1 && bias.curves[0].slope <= -1.9);
        for (int i = 1; i < N2_BIAS_POINTS; i++)
            assert_true(bias.curves[0].squared[i] < bias.curves[0].squared[i - 1]);
        assert_close(bias.curves[0].magnitude[0], 1, 1e-15, 0);
        assert_close(bias.curves[0].magnitude[N2_BIAS_POINTS - 1], 1e6, 1e-14, 0);
        n2_arena_free(&arena);
    }
    n2ce_ctx_free(ctx);
}

/* Exact maximum likelihood scores 0.4167 on the paper's five-dimensional problem. */
static void exact_likelihood_scores_0_4167(void **state) {
    (void)state;
    n2_gaussian_setting s = paper_setting(5);
    assert_close(n2_gaussian_mle_score(&s), 0.4167, 0, 5e-5);
    static const double step_sizes[] = {0.2, 1, 1.5, 2, 1e-9};
    for (size_t k = 0; k < COUNT_OF(step_sizes); k++) {
        double gap = -3, sum = 0; /* of the first coordinate; all shrink alike */
        for (int t = 0; t < 150; t++) {
            sum += gap * gap * (22.5 / 9);
            gap -= step_sizes[k] * gap;
        }
        s.step_size = step_sizes[k];
        assert_close(n2_gaussian_mle_score(&s), sum / 150, 1e-6, 0);
    }
}

/* ---- the kernel ------------------------------------------------------------------------ */

N2_ISA_TABLE(n2_linear_moments_fn, n2_linear_moments);

enum { DIM = 5, BLOCKS = 20, SAMPLES = BLOCKS * 16, SIDES = 6 };

typedef struct kernel_case {
    _Alignas(64) float z[SAMPLES * DIM];
    _Alignas(64) float weights[N2_LINEAR_GROUP * SAMPLES];
    float a[SIDES][DIM];
    n2_linear_side sides[SIDES];
} kernel_case;

/* Six objectives, NWJ and M = 1e9 among them, on one side. */
static void fill_case(kernel_case *k, bool is_den) {
    static const float inverse[SIDES] = {1, 0.1f, 0.01f, 0, 1e-9f, 0.3f};
    n2_fill_normal((n2_stream){3, 1, is_den}, 0, SAMPLES * DIM, k->z);
    n2_fill_normal((n2_stream){3, 2, is_den}, 0, SIDES * DIM, k->a[0]);
    for (size_t g = 0; g < SIDES; g++)
        k->sides[g] = (n2_linear_side){
            .a = k->a[g], .offset = 0.25f * (float)g - 1, .inv_m = inverse[g], .is_den = is_den};
}

static void moments_in_double(const kernel_case *k, size_t g, size_t n, double sums[DIM + 1]) {
    const n2_linear_side *side = &k->sides[g];
    for (size_t i = 0; i < n; i++) {
        const float *z = k->z + i / 16 * DIM * 16 + i % 16;
        double f = (double)side->offset;
        for (size_t d = 0; d < DIM; d++) f += (double)side->a[d] * (double)z[d * 16];
        const double w = (side->is_den ? exp(f) : 1) / (1 + exp(f) * (double)side->inv_m);
        for (size_t d = 0; d < DIM; d++) sums[d] += w * (double)z[d * 16];
        sums[DIM] += w;
    }
}

/* The kernel's sums are those of double arithmetic to 1e-5, for any sample size. */
static void the_kernel_agrees_with_double_arithmetic(void **state) {
    (void)state;
    static kernel_case k;
    static const size_t sizes[] = {1, 2, 15, 16, 17, 100, SAMPLES - 1, SAMPLES};
    for (int is_den = 0; is_den < 2; is_den++)
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            fill_case(&k, is_den);
            double sums[SIDES][DIM + 1] = {{0}};
            n2_linear_moments_table[n2_isa_current()](k.sides, SIDES, k.z, sizes[i], DIM, k.weights,
                                                      sums[0]);
            for (size_t g = 0; g < SIDES; g++) {
                double expected[DIM + 1] = {0};
                moments_in_double(&k, g, sizes[i], expected);
                for (size_t d = 0; d <= DIM; d++)
                    assert_close(sums[g][d], expected[d], 1e-5, 1e-5 * expected[DIM]);
            }
        }
}

/* All instruction sets give the same bits; sums are added to what was there. */
static void instruction_sets_agree_bit_for_bit(void **state) {
    (void)state;
    static kernel_case k;
    for (int is_den = 0; is_den < 2; is_den++)
        for (int isa = 0; isa <= (int)n2_isa_current(); isa++)
            for (size_t n = 1; n <= SAMPLES; n += 7) {
                double first[SIDES * (DIM + 1)], sums[SIDES * (DIM + 1)];
                for (size_t i = 0; i < COUNT_OF(sums); i++) first[i] = sums[i] = (double)i;
                fill_case(&k, is_den);
                n2_linear_moments_table[0](k.sides, SIDES, k.z, n, DIM, k.weights, first);
                n2_linear_moments_table[isa](k.sides, SIDES, k.z, n, DIM, k.weights, sums);
                assert_memory_equal(first, sums, sizeof sums);
                assert_true(sums[DIM] > DIM);
            }
}

/* An objective's sums do not depend on which others are computed beside it. */
static void objectives_do_not_disturb_each_other(void **state) {
    (void)state;
    static kernel_case k;
    fill_case(&k, true);
    n2_linear_moments_fn *moments = n2_linear_moments_table[n2_isa_current()];
    double together[SIDES][DIM + 1] = {{0}};
    moments(k.sides, SIDES, k.z, 100, DIM, k.weights, together[0]);
    for (size_t g = 0; g < SIDES; g++) {
        double alone[DIM + 1] = {0};
        moments(&k.sides[g], 1, k.z, 100, DIM, k.weights, alone);
        assert_memory_equal(alone, together[g], sizeof alone);
    }
}

/* ---- one step of the simulation ----------------------------------------------------------- */

typedef struct gradient {
    double g[3], scale;
} gradient;

/* Adds sign * mean w (x - a) over the samples of one side, all in double. */
static void add_side(const n2_gaussian_setting *s, const n2_gaussian_column *c, bool is_den,
                     gradient *out) {
    const size_t padded = (s->n + 15) / 16 * 16;
    float *z = malloc(padded * s->dim * sizeof *z);
    assert_non_null(z);
    n2_fill_normal((n2_stream){s->seed, is_den, 0}, 0, padded * s->dim, z);
    const double m = c->family == N2CE_FAMILY_NEG_REWEIGHT && !is_den ? 1 : c->magnitude;
    for (size_t i = 0; i < s->n; i++) {
        double x[3], f = 0;
        for (size_t d = 0; d < s->dim; d++) {
            x[d] = (double)z[(i / 16 * s->dim + d) * 16 + i % 16] + (is_den ? 0 : s->target[d]);
            f += s->start[d] * x[d] - s->start[d] * s->start[d] / 2;
        }
        const double w = (is_den ? exp(f) : 1) / (1 + exp(f) / m) / (double)s->n;
        for (size_t d = 0; d < s->dim; d++) {
            out->g[d] += (is_den ? -w : w) * (x[d] - s->start[d]);
            out->scale += w * fabs(x[d] - s->start[d]);
        }
    }
    free(z);
}

static void check_first_step(n2ce_ctx *ctx, n2_gaussian_setting *s) {
    n2_gaussian_column columns[] = {{.family = N2CE_FAMILY_NWJ, .magnitude = N2_INFINITY},
                                    {.family = N2CE_FAMILY_N2CE, .magnitude = 1},
                                    {.family = N2CE_FAMILY_N2CE, .magnitude = 30},
                                    {.family = N2CE_FAMILY_NEG_REWEIGHT, .magnitude = 30},
                                    {.family = N2CE_FAMILY_N2CE, .magnitude = 1e9}};
    s->n_columns = COUNT_OF(columns);
    memcpy(s->columns, columns, sizeof columns);
    n2_arena arena = n2_arena_new(ctx);
    static n2_gaussian_result result;
    n2_gaussian_progress progress = {0, 0};
    assert_int_equal(n2_gaussian_simulate(ctx, s, &progress, &arena, &result), N2CE_OK);
    for (size_t c = 0; c < s->n_columns; c++) {
        gradient expected = {{0}, 0};
        add_side(s, &s->columns[c], false, &expected);
        add_side(s, &s->columns[c], true, &expected);
        const double *paths[] = {result.paths[c].x, result.paths[c].y};
        double error = 0;
        for (size_t d = 0; d < s->dim; d++) {
            const double gap = s->target[d] - s->start[d];
            error += (expected.g[d] - gap) * (expected.g[d] - gap);
            if (d >= 2) continue;
            const double found = (paths[d][1] - paths[d][0]) / s->step_size;
            assert_close(found, expected.g[d], 0, 1e-5 * expected.scale);
        }
        assert_close(result.scores[c].gradient_error, error, 1e-4, 1e-8);
    }
    n2_arena_free(&arena);
}

/* The first step is a + eta (mean_num w (x-a) - mean_den w (x-a)), recomputed in double. */
static void one_step_is_the_gradient_in_double(void **state) {
    (void)state;
    static const double target[] = {1, -0.5, 0.25}, start[] = {-0.75, 0.5, 1};
    static const uint64_t sizes[] = {1, 2, 37, 2000};
    n2ce_ctx *ctx = new_ctx(1);
    for (size_t dim = 1; dim <= 3; dim++)
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            n2_gaussian_setting s = {.dim = dim,
                                     .n = sizes[i],
                                     .runs = 1,
                                     .steps = 1,
                                     .step_size = 0.2,
                                     .seed = 11,
                                     .target = target,
                                     .start = start};
            check_first_step(ctx, &s);
        }
    n2ce_ctx_free(ctx);
}

/* ---- through the public door --------------------------------------------------------------- */

typedef struct study {
    n2ce_ctx *ctx;
    n2ce_options *options;
    n2ce_answer *answer;
} study;

/* Names and values alternate, NULL at the end. */
static study make_study(n2ce_ctx *ctx, const char *const *settings) {
    study s = {.ctx = ctx};
    const n2ce_option *table = n2ce_task_options(n2ce_task_find("study gaussian"));
    assert_int_equal(n2ce_options_new(ctx, table, &s.options), N2CE_OK);
    for (; *settings; settings += 2)
        assert_int_equal(n2ce_options_set(s.options, settings[0], settings[1]), N2CE_OK);
    return s;
}

static n2ce_status run_study(study *s) {
    return n2ce_task_run(s->ctx, n2ce_task_find("study gaussian"), s->options, &s->answer);
}

static void free_study(study *s) {
    n2ce_answer_free(s->answer);
    n2ce_options_free(s->options);
}

static study run_with(n2ce_ctx *ctx, const char *const *settings) {
    study s = make_study(ctx, settings);
    assert_int_equal(run_study(&s), N2CE_OK);
    return s;
}

/* The number after "key": in the row of an objective; M is infinity for NWJ. */
static double row_value(const char *json, const char *kind, double m, const char *key) {
    char start[64], field[64];
    snprintf(start, sizeof start, "\"kind\": \"%s\", \"M\": ", kind);
    snprintf(field, sizeof field, "\"%s\": ", key);
    for (const char *row = json; (row = strstr(row, start)); row++) {
        const char *value = row + strlen(start);
        if (isfinite(m) && strtod(value, NULL) != m) continue;
        const char *found = strstr(row, field);
        assert_non_null(found);
        return strtod(found + strlen(field), NULL);
    }
    fail_msg("no row for %s, M = %g", kind, m);
    return N2_NAN;
}

/* n = 500: the paper's table within 0.01. */
static void the_papers_table_for_n_500(void **state) {
    (void)state;
    static const double rows[][2] = {
        {1, 0.678}, {10, 0.489}, {50, 0.456}, {100, 0.453}, {1000, 0.489}};
    static const char *const settings[] = {"dim",      "5",    "n",          "500",
                                           "runs",     "100",  "magnitudes", "1,10,50,100,1000",
                                           "families", "n2ce", NULL};
    n2ce_ctx *ctx = new_ctx(0);
    study s = run_with(ctx, settings);
    const char *json = n2ce_answer_json(s.answer);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_close(row_value(json, "n2ce", rows[i][0], "mean"), rows[i][1], 0, 0.01);
        assert_close(row_value(json, "n2ce", rows[i][0], "paper"), rows[i][1], 1e-12, 0);
        assert_close(row_value(json, "n2ce", rows[i][0], "runs"), 100, 0, 0);
    }
    free_study(&s);
    n2ce_ctx_free(ctx);
}

/* n = 2: the paper's table within 0.05, for the magnitudes whose mean exists in practice. */
static void the_papers_table_for_n_2(void **state) {
    (void)state;
    static const double rows[][2] = {{1, 0.904}, {1.5, 0.884}, {2, 0.888}, {5, 0.983}, {10, 1.139}};
    static const char *const settings[] = {"dim",      "5",    "n",          "2",
                                           "runs",     "100",  "magnitudes", "1,1.5,2,5,10",
                                           "families", "n2ce", NULL};
    n2ce_ctx *ctx = new_ctx(0);
    study s = run_with(ctx, settings);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_close(row_value(n2ce_answer_json(s.answer), "n2ce", rows[i][0], "mean"), rows[i][1],
                     0, 0.05);
    free_study(&s);
    n2ce_ctx_free(ctx);
}

/* NWJ is the limit of large M: on common random numbers the two agree. */
static void nwj_and_a_huge_magnitude_agree(void **state) {
    (void)state;
    static const char *const settings[] = {"target", "0.75,-0.5", "n",          "200", "runs", "20",
                                           "steps",  "40",        "magnitudes", "1e9", NULL};
    n2ce_ctx *ctx = new_ctx(1);
    study s = run_with(ctx, settings);
    static const char *const keys[] = {"mean", "std", "gradient_error"};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        const double nwj = row_value(n2ce_answer_json(s.answer), "nwj", N2_INFINITY, keys[i]);
        assert_close(row_value(n2ce_answer_json(s.answer), "n2ce", 1e9, keys[i]), nwj, 1e-3, 0);
        assert_true(nwj > 0);
    }
    free_study(&s);
    n2ce_ctx_free(ctx);
}

/* With many samples the biased but quiet estimator is near exact maximum likelihood. */
static void many_samples_and_a_large_magnitude_approach_likelihood(void **state) {
    (void)state;
    static const char *const settings[] = {"target",   "0.5,-0.25", "n",  "20000",      "runs",
                                           "2",        "steps",     "60", "magnitudes", "1000",
                                           "families", "n2ce",      NULL};
    n2ce_ctx *ctx = new_ctx(0);
    study s = run_with(ctx, settings);
    const double gap2 = 4 * 0.3125, exact = gap2 * (1 - pow(0.64, 60)) / 0.36 / 60;
    assert_close(row_value(n2ce_answer_json(s.answer), "n2ce", 1000, "mean"), exact, 0.02, 0);
    free_study(&s);
    n2ce_ctx_free(ctx);
}

/* Same options, same bytes, for 1, 2 and 7 threads, in every form of the answer. */
static void answers_do_not_depend_on_threads(void **state) {
    (void)state;
    static const char *const settings[] = {"dim",   "3",  "n",    "50", "runs", "23",
                                           "steps", "20", "seed", "4",  NULL};
    static const int threads[] = {1, 2, 7};
    n2ce_ctx *ctx[3];
    study s[3];
    for (size_t i = 0; i < 3; i++) {
        ctx[i] = new_ctx(threads[i]);
        s[i] = run_with(ctx[i], settings);
        assert_string_equal(n2ce_answer_json(s[i].answer), n2ce_answer_json(s[0].answer));
        assert_string_equal(n2ce_answer_text(s[i].answer), n2ce_answer_text(s[0].answer));
        assert_string_equal(n2ce_answer_brief(s[i].answer), n2ce_answer_brief(s[0].answer));
    }
    for (size_t i = 0; i < 3; i++) {
        free_study(&s[i]);
        n2ce_ctx_free(ctx[i]);
    }
}

static size_t count_of(const char *text, const char *what) {
    size_t n = 0;
    for (; (text = strstr(text, what)); text++) n++;
    return n;
}

/* A row for every objective; the short form has one number for each; another seed differs. */
static void every_objective_has_a_row(void **state) {
    (void)state;
    static const char *const settings[] = {"dim",   "2", "n",          "8",     "runs", "3",
                                           "steps", "4", "magnitudes", "1,2,3", NULL};
    n2ce_ctx *ctx = new_ctx(1);
    study s = run_with(ctx, settings);
    assert_int_equal(count_of(n2ce_answer_json(s.answer), "\"gradient_error\": "), 5);
    assert_int_equal(count_of(n2ce_answer_brief(s.answer), "\n"), 5);
    assert_non_null(strstr(n2ce_answer_json(s.answer), "\"interrupted\": false"));
    assert_non_null(strstr(n2ce_answer_kept(s.answer), "3 of 3 runs"));
    assert_int_equal(count_of(n2ce_answer_json(s.answer), "{"),
                     count_of(n2ce_answer_json(s.answer), "}"));
    study other = make_study(ctx, settings);
    assert_int_equal(n2ce_options_set(other.options, "seed", "1"), N2CE_OK);
    assert_int_equal(run_study(&other), N2CE_OK);
    assert_string_not_equal(n2ce_answer_brief(other.answer), n2ce_answer_brief(s.answer));
    free_study(&other);
    free_study(&s);
    n2ce_ctx_free(ctx);
}

/* More runs than are held in memory at once: the first runs do not change. */
static void runs_beyond_one_wave_are_counted(void **state) {
    (void)state;
    static const char *const settings[] = {"dim",      "1",     "n", "2",          "runs",
                                           "600",      "steps", "2", "magnitudes", "1",
                                           "families", "n2ce",  NULL};
    n2ce_ctx *ctx = new_ctx(2);
    study s = run_with(ctx, settings);
    assert_close(row_value(n2ce_answer_json(s.answer), "n2ce", 1, "runs"), 600, 0, 0);
    assert_true(row_value(n2ce_answer_json(s.answer), "n2ce", 1, "std") > 0);
    free_study(&s);
    n2ce_ctx_free(ctx);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void assert_setting_refused(study *s, const char *name, const char *value) {
    assert_int_equal(n2ce_options_set(s->options, name, value), N2CE_EINVAL);
    assert_non_null(strstr(n2ce_errmsg(s->ctx), name));
}

/* Values that make no sense are refused when they are set, by name. */
static void senseless_values_are_refused(void **state) {
    (void)state;
    static const char *const none[] = {NULL};
    n2ce_ctx *ctx = new_ctx(1);
    study s = make_study(ctx, none);
    assert_setting_refused(&s, "target", "1,nan");
    assert_setting_refused(&s, "start", "inf");
    assert_setting_refused(&s, "magnitudes", "0");
    assert_setting_refused(&s, "magnitudes", "10,0.5");
    assert_setting_refused(&s, "n", "0");
    assert_setting_refused(&s, "dim", "0");
    assert_setting_refused(&s, "runs", "0");
    assert_setting_refused(&s, "steps", "0");
    assert_setting_refused(&s, "step-size", "0");
    assert_setting_refused(&s, "families", "nce");
    assert_setting_refused(&s, "seed", "-1");
    free_study(&s);
    n2ce_ctx_free(ctx);
}

static void assert_run_refused(const char *const *settings, const char *named) {
    n2ce_ctx *ctx = new_ctx(1);
    study s = make_study(ctx, settings);
    s.answer = (n2ce_answer *)1;
    assert_int_equal(run_study(&s), N2CE_EINVAL);
    assert_null(s.answer);
    assert_non_null(strstr(n2ce_errmsg(ctx), named));
    free_study(&s);
    n2ce_ctx_free(ctx);
}

/* Options that contradict each other are refused when the task runs, by name. */
static void contradictions_are_refused(void **state) {
    (void)state;
    static const char *const target[] = {"dim", "3", "target", "1,2", NULL};
    static const char *const start[] = {"target", "1,2", "start", "1,2,3", NULL};
    static const char *const dim_start[] = {"dim", "1", "start", "1,2,3", NULL};
    assert_run_refused(target, "--target");
    assert_run_refused(start, "--start");
    assert_run_refused(dim_start, "--start");
    static char list[400];
    for (size_t i = 0; i < 100; i++) memcpy(list + 2 * i, i < 99 ? "2," : "2", i < 99 ? 2 : 1);
    const char *const columns[] = {"dim", "1", "n", "1", "magnitudes", list, NULL};
    assert_run_refused(columns, "--magnitudes");
}

/* ---- progress and cancellation -----------------------------------------------------------------
 */

typedef struct watcher {
    n2ce_ctx *ctx;
    int calls, cancel_at; /* 0: never */
    double done, total;
    bool went_back;
} watcher;

static void watch(void *user, double done, double total) {
    watcher *w = user;
    w->went_back |= done < w->done || done > total * (1 + 1e-12);
    w->done = done;
    w->total = total;
    if (++w->calls == w->cancel_at) n2ce_ctx_cancel(w->ctx);
}

static n2ce_ctx *make_watched_ctx(watcher *w, int threads) {
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.threads = threads;
    options.progress = watch;
    options.progress_user = w;
    assert_int_equal(n2ce_ctx_new(&w->ctx, &options), N2CE_OK);
    return w->ctx;
}

static const char *const small[] = {"dim",   "2", "n",          "16",  "runs", "50",
                                    "steps", "5", "magnitudes", "1,5", NULL};

/* Progress never goes back and ends at the total. */
static void progress_reaches_its_total(void **state) {
    (void)state;
    watcher w = {.cancel_at = 0};
    n2ce_ctx *ctx = make_watched_ctx(&w, 1);
    study s = run_with(ctx, small);
    assert_true(w.calls >= 50);
    assert_false(w.went_back);
    assert_close(w.done, w.total, 1e-12, 0);
    free_study(&s);
    n2ce_ctx_free(ctx);
}

/* Cancelled in the third run: two runs are kept and the answer says that it is incomplete. */
static void a_cancelled_study_keeps_what_was_finished(void **state) {
    (void)state;
    watcher w = {.cancel_at = 12};
    n2ce_ctx *ctx = make_watched_ctx(&w, 1);
    study s = make_study(ctx, small);
    assert_int_equal(run_study(&s), N2CE_ECANCELED);
    assert_non_null(s.answer);
    assert_non_null(strstr(n2ce_answer_json(s.answer), "\"interrupted\": true"));
    assert_close(row_value(n2ce_answer_json(s.answer), "n2ce", 5, "runs"), 2, 0, 0);
    assert_non_null(strstr(n2ce_answer_kept(s.answer), "2 of 50"));
    free_study(&s);
    n2ce_ctx_free(ctx);
}

/* Cancelled before the first run is finished: no answer. The context works again after that. */
static void cancelled_at_once_there_is_no_answer(void **state) {
    (void)state;
    watcher w = {.cancel_at = 2};
    n2ce_ctx *ctx = make_watched_ctx(&w, 1);
    study s = make_study(ctx, small);
    s.answer = (n2ce_answer *)1;
    assert_int_equal(run_study(&s), N2CE_ECANCELED);
    assert_null(s.answer);
    assert_int_equal(run_study(&s), N2CE_OK);
    assert_non_null(strstr(n2ce_answer_json(s.answer), "\"interrupted\": false"));
    free_study(&s);
    n2ce_ctx_free(ctx);
}

/* The runs that a cancelled study kept are those of a shorter study. */
static void what_is_kept_is_what_a_shorter_study_gives(void **state) {
    (void)state;
    watcher w = {.cancel_at = 12}, unwatched = {.cancel_at = 0};
    n2ce_ctx *ctx = make_watched_ctx(&w, 1), *other = make_watched_ctx(&unwatched, 1);
    study cut = make_study(ctx, small), whole = make_study(other, small);
    assert_int_equal(n2ce_options_set(whole.options, "runs", "2"), N2CE_OK);
    assert_int_equal(run_study(&cut), N2CE_ECANCELED);
    assert_int_equal(run_study(&whole), N2CE_OK);
    assert_string_equal(n2ce_answer_brief(cut.answer), n2ce_answer_brief(whole.answer));
    free_study(&cut);
    free_study(&whole);
    n2ce_ctx_free(ctx);
    n2ce_ctx_free(other);
}

/* With several threads cancellation is as safe, whatever was finished. */
static void several_threads_can_be_cancelled(void **state) {
    (void)state;
    for (int at = 1; at < 40; at += 3) {
        watcher w = {.cancel_at = at};
        n2ce_ctx *ctx = make_watched_ctx(&w, 3);
        study s = make_study(ctx, small);
        const n2ce_status status = run_study(&s);
        assert_false(w.went_back);
        assert_int_equal(status, w.calls >= at ? N2CE_ECANCELED : N2CE_OK);
        if (s.answer)
            assert_non_null(strstr(n2ce_answer_json(s.answer), status == N2CE_OK
                                                                   ? "\"interrupted\": false"
                                                                   : "\"interrupted\": true"));
        free_study(&s);
        n2ce_ctx_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(squared_bias_is_its_definition),
        cmocka_unit_test(squared_bias_on_a_line),
        cmocka_unit_test(squared_bias_has_closed_forms),
        cmocka_unit_test(squared_bias_is_rotation_invariant),
        cmocka_unit_test(the_bias_slope_is_minus_two),
        cmocka_unit_test(exact_likelihood_scores_0_4167),
        cmocka_unit_test(the_kernel_agrees_with_double_arithmetic),
        cmocka_unit_test(instruction_sets_agree_bit_for_bit),
        cmocka_unit_test(objectives_do_not_disturb_each_other),
        cmocka_unit_test(one_step_is_the_gradient_in_double),
        cmocka_unit_test(the_papers_table_for_n_500),
        cmocka_unit_test(the_papers_table_for_n_2),
        cmocka_unit_test(nwj_and_a_huge_magnitude_agree),
        cmocka_unit_test(many_samples_and_a_large_magnitude_approach_likelihood),
        cmocka_unit_test(answers_do_not_depend_on_threads),
        cmocka_unit_test(every_objective_has_a_row),
        cmocka_unit_test(runs_beyond_one_wave_are_counted),
        cmocka_unit_test(senseless_values_are_refused),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(progress_reaches_its_total),
        cmocka_unit_test(a_cancelled_study_keeps_what_was_finished),
        cmocka_unit_test(cancelled_at_once_there_is_no_answer),
        cmocka_unit_test(what_is_kept_is_what_a_shorter_study_gives),
        cmocka_unit_test(several_threads_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
