/* Facts about the ratio verbs as a library: samples in memory, answers, models, errors. */
#include "failing_alloc.h"
#include "samples.h"

#include <stdio.h>
#include <unistd.h>

#define QUICK \
    "steps", "40", "width", "8", "blocks", "1", "batch", "64", "noise", "2", "folds", "2", "M", "10"

static n2ce_options *new_options(n2ce_ctx *ctx, const char *verb, const char *const *pairs) {
    n2ce_options *o;
    const n2ce_option *table = n2ce_task_options(n2ce_task_find(verb));
    assert_int_equal(n2ce_options_new(ctx, table, &o), N2CE_OK);
    for (; pairs && pairs[0]; pairs += 2)
        assert_int_equal(n2ce_options_set(o, pairs[0], pairs[1]), N2CE_OK);
    return o;
}

static n2ce_status try_on(n2ce_ctx *ctx, const char *verb, const n2ce_matrix *data, size_t n_data,
                          const char *const *pairs, n2ce_answer **answer) {
    n2ce_options *o = new_options(ctx, verb, pairs);
    *answer = (n2ce_answer *)1;
    const n2ce_status status = n2ce_task_run_on(ctx, n2ce_task_find(verb), o, data, n_data, answer);
    n2ce_options_free(o);
    return status;
}

static n2ce_answer *run_on(n2ce_ctx *ctx, const char *verb, const n2ce_matrix *data,
                           const char *const *pairs) {
    n2ce_answer *answer;
    const n2ce_status status = try_on(ctx, verb, data, 2, pairs, &answer);
    if (status != N2CE_OK) print_error("%s: %s\n", verb, n2ce_errmsg(ctx));
    assert_int_equal(status, N2CE_OK);
    return answer;
}

/* Two samples of d columns: normals of mean `shift` and of mean 0. */
typedef struct samples {
    double *num, *den;
    n2ce_matrix data[2];
} samples;

static samples new_samples(size_t n, size_t m, size_t d, double shift) {
    samples s = {normals(n * d, shift, 1, 1), normals(m * d, 0, 1, 2), {{0}, {0}}};
    s.data[0] = matrix(s.num, n, d);
    s.data[1] = matrix(s.den, m, d);
    return s;
}

static void samples_free(samples *s) {
    free(s->num);
    free(s->den);
}

/* ---- answers ---- */

/* N(1, 1) against N(0, 1): 1/2 is in the interval, which is not absurdly wide. */
static void divergence_in_memory(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    samples s = new_samples(800, 600, 1, 1);
    static const char *const pairs[] = {QUICK, "level", "0.999", NULL};
    n2ce_answer *a = run_on(ctx, "divergence", s.data, pairs);
    const double lo = n2ce_answer_number(a, "lo"), hi = n2ce_answer_number(a, "hi");
    const double estimate = n2ce_answer_number(a, "estimate");
    assert_true(lo < 0.5 && 0.5 < hi && lo < estimate && estimate < hi && hi - lo < 0.6);
    assert_null(n2ce_answer_take_model(a));
    assert_non_null(strstr(n2ce_answer_text(a), "800 and 600 rows, 1 column"));
    n2ce_answer_free(a);
    samples_free(&s);
    n2ce_ctx_free(ctx);
}

/* One distribution twice: 0 is in the interval. */
static void one_distribution_has_no_divergence(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    samples s = new_samples(500, 500, 2, 0);
    static const char *const pairs[] = {QUICK, "level", "0.999", NULL};
    n2ce_answer *a = run_on(ctx, "divergence", s.data, pairs);
    assert_true(n2ce_answer_number(a, "lo") < 0 && n2ce_answer_number(a, "hi") > 0);
    assert_close(n2ce_answer_number(a, "estimate"), 0, 0, 0.02);
    n2ce_answer_free(a);
    samples_free(&s);
    n2ce_ctx_free(ctx);
}

/* Numbers are found by name at the first level of the object, and nowhere else. */
static void numbers_of_an_answer(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    samples s = new_samples(100, 100, 1, 1);
    static const char *const pairs[] = {"critic", "quadratic", "seed", "17", NULL};
    n2ce_answer *a = run_on(ctx, "divergence", s.data, pairs);
    double brief;
    assert_int_equal(sscanf(n2ce_answer_brief(a), "%lf", &brief), 1);
    assert_close(n2ce_answer_number(a, "estimate"), brief, 1e-15, 0);
    static const char *const none[] = {"seed", "value", "kl", "unit", "verdict", "estimat", ""};
    for (size_t i = 0; i < COUNT_OF(none); i++) assert_true(isnan(n2ce_answer_number(a, none[i])));
    n2ce_answer_free(a);
    samples_free(&s);
    n2ce_ctx_free(ctx);
}

/* Bits are nats over ln 2; a higher level is a wider interval around the same number. */
static void units_and_levels(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    samples s = new_samples(200, 200, 2, 1);
    static const char *const nats[] = {"critic", "quadratic", NULL};
    static const char *const bits[] = {"critic", "quadratic", "unit", "bits", NULL};
    static const char *const wide[] = {"critic", "quadratic", "level", "0.99", NULL};
    static const char *const names[] = {"estimate", "lo", "hi"};
    static const char *const verbs[] = {"divergence", "mi", "fit"};
    for (size_t v = 0; v < COUNT_OF(verbs); v++) {
        n2ce_answer *a = run_on(ctx, verbs[v], s.data, nats);
        n2ce_answer *b = run_on(ctx, verbs[v], s.data, bits);
        n2ce_answer *c = run_on(ctx, verbs[v], s.data, wide);
        for (size_t i = 0; i < 3; i++)
            assert_close(n2ce_answer_number(b, names[i]), n2ce_answer_number(a, names[i]) / log(2),
                         1e-14, 0);
        const double estimate = n2ce_answer_number(a, "estimate");
        const double near = n2ce_answer_number(a, "hi") - estimate;
        const double far = n2ce_answer_number(c, "hi") - estimate;
        assert_close(far / near, 2.5758293035489004 / 1.959963984540054, 1e-9, 0);
        n2ce_answer_free(a);
        n2ce_answer_free(b);
        n2ce_answer_free(c);
    }
    samples_free(&s);
    n2ce_ctx_free(ctx);
}

/* A correlated pair has -ln(1 - rho^2) / 2 nats; the ratio is on the columns of x, then y. */
static void mutual_information_in_memory(void **state) {
    (void)state;
    enum { N = 800 };
    n2ce_ctx *ctx = new_ctx(1);
    double *xy = correlated(N, 0.9, 3);
    const ptrdiff_t row = 2 * sizeof(double), col = sizeof(double);
    const n2ce_matrix data[] = {{xy, N2CE_F64, N, 1, row, col}, {xy + 1, N2CE_F64, N, 1, row, col}};
    static const char *const pairs[] = {QUICK, "level", "0.999", NULL};
    n2ce_answer *a = run_on(ctx, "mi", data, pairs);
    const double truth = -0.5 * log(1 - 0.81);
    assert_true(n2ce_answer_number(a, "lo") < truth && truth < n2ce_answer_number(a, "hi"));
    n2ce_model *m = n2ce_answer_take_model(a);
    assert_non_null(m);
    assert_int_equal(n2ce_model_columns(m), 2);
    const double together[] = {1, 1, 1, -1};
    const n2ce_matrix rows = matrix(together, 2, 2);
    double f[2];
    assert_int_equal(n2ce_model_score(m, &rows, f), N2CE_OK);
    assert_true(f[0] > 0 && f[1] < -1);
    n2ce_model_free(m);
    n2ce_answer_free(a);
    free(xy);
    n2ce_ctx_free(ctx);
}

/* p is a multiple of 1 / (1 + permutations); far samples get the least one. */
static void tests_have_p_values(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    samples far = new_samples(200, 150, 2, 1), near = new_samples(200, 150, 2, 0);
    static const char *const pairs[] = {"critic", "quadratic", "permutations", "199", NULL};
    n2ce_answer *a = run_on(ctx, "test", far.data, pairs);
    assert_close(n2ce_answer_number(a, "p"), 1.0 / 200, 1e-12, 0);
    assert_true(n2ce_answer_number(a, "accuracy") > 0.65);
    n2ce_answer_free(a);
    a = run_on(ctx, "test", near.data, pairs);
    const double p = n2ce_answer_number(a, "p");
    assert_true(p > 0.01 && p <= 1);
    assert_close(200 * p, round(200 * p), 0, 1e-9);
    assert_close(n2ce_answer_number(a, "permutations"), 199, 0, 0);
    n2ce_answer_free(a);
    samples_free(&far);
    samples_free(&near);
    n2ce_ctx_free(ctx);
}

/* Where the distributions are one, p is uniform, even if the ratio is rubbish: 200 tests with
 * their own samples, whose p-values are spread as they should be (Kolmogorov-Smirnov, 1 in 10000).
 */
static void p_values_are_uniform(void **state) {
    (void)state;
    enum { TESTS = 200, N = 24 };
    n2ce_ctx *ctx = new_ctx(1);
    static const char *const pairs[] = {"critic", "quadratic", "permutations", "99", NULL};
    double *all = normals(TESTS * 2 * N, 0, 1, 4), worst = 0;
    size_t below[101] = {0};
    for (size_t i = 0; i < TESTS; i++) {
        const n2ce_matrix data[] = {matrix(all + 2 * i * N, N, 1),
                                    matrix(all + (2 * i + 1) * N, N, 1)};
        n2ce_answer *a = run_on(ctx, "test", data, pairs);
        const size_t p = (size_t)lround(100 * n2ce_answer_number(a, "p"));
        assert_true(p >= 1 && p <= 100);
        for (size_t k = p; k <= 100; k++) below[k]++;
        n2ce_answer_free(a);
    }
    for (size_t k = 1; k <= 100; k++)
        worst = fmax(worst, fabs((double)below[k] / TESTS - (double)k / 100));
    assert_true(worst < 2.2 / sqrt(TESTS));
    free(all);
    n2ce_ctx_free(ctx);
}

/* ---- the same again ---- */

/* Samples in files give the numbers of samples in memory. */
static void files_and_memory_agree(void **state) {
    (void)state;
    enum { N = 120 };
    n2ce_ctx *ctx = new_ctx(1);
    samples s = new_samples(N, N, 2, 0.5);
    char paths[2][32] = {"/tmp/n2ce-test-XXXXXX", "/tmp/n2ce-test-XXXXXX"};
    for (size_t k = 0; k < 2; k++) {
        FILE *file = fdopen(mkstemp(paths[k]), "w");
        assert_non_null(file);
        const double *x = s.data[k].data;
        for (size_t i = 0; i < N; i++) fprintf(file, "%.17g,%.17g\n", x[2 * i], x[2 * i + 1]);
        fclose(file);
    }
    static const char *const verbs[] = {"divergence", "test"};
    static const char *const names[] = {"estimate", "p"};
    for (size_t v = 0; v < 2; v++) {
        const char *const pairs[] = {"num", paths[0], "den", paths[1], QUICK, NULL};
        n2ce_answer *a = run_on(ctx, verbs[v], s.data, pairs), *b;
        n2ce_options *o = new_options(ctx, verbs[v], pairs);
        assert_int_equal(n2ce_task_run(ctx, n2ce_task_find(verbs[v]), o, &b), N2CE_OK);
        assert_string_equal(n2ce_answer_json(a), n2ce_answer_json(b));
        assert_true(isfinite(n2ce_answer_number(b, names[v])));
        n2ce_answer_free(a);
        n2ce_answer_free(b);
        n2ce_options_free(o);
    }
    unlink(paths[0]);
    unlink(paths[1]);
    samples_free(&s);
    n2ce_ctx_free(ctx);
}

/* Same options, same bytes, for 1, 2 and 7 threads; another seed, others. */
static void threads_change_no_byte(void **state) {
    (void)state;
    static const int threads[] = {1, 2, 7, 1};
    static const char *const verbs[] = {"divergence", "mi", "test", "fit"};
    samples s = new_samples(150, 150, 2, 0.5);
    for (size_t v = 0; v < COUNT_OF(verbs); v++) {
        char *first = NULL;
        for (size_t i = 0; i < COUNT_OF(threads); i++) {
            const char *const pairs[] = {QUICK, "critic", "net", "seed", i < 3 ? "0" : "1", NULL};
            n2ce_ctx *ctx = new_ctx(threads[i]);
            n2ce_answer *a = run_on(ctx, verbs[v], s.data, pairs);
            if (i == 0) assert_non_null(first = strdup(n2ce_answer_json(a)));
            assert_true((strcmp(first, n2ce_answer_json(a)) == 0) == (i < 3));
            n2ce_answer_free(a);
            n2ce_ctx_free(ctx);
        }
        free(first);
    }
    samples_free(&s);
}

/* ---- errors ---- */

typedef struct mistake {
    const char *verb;
    size_t rows[2], cols[2];
    const char *pairs[4];
    n2ce_status status;
    const char *says;
} mistake;

static const mistake mistakes[] = {
    {"divergence", {50, 50}, {1, 2}, {NULL}, N2CE_EDATA, "1 column and den has 2"},
    {"divergence", {1, 50}, {2, 2}, {NULL}, N2CE_EDATA, "num has 1 row;"},
    {"test", {50, 1}, {2, 2}, {NULL}, N2CE_EDATA, "den has 1 row;"},
    {"fit", {50, 50}, {2, 2}, {"columns", "7", NULL}, N2CE_EINVAL, "num, --columns: \"7\""},
    {"fit", {50, 50}, {2, 2}, {"columns", "a", NULL}, N2CE_EINVAL, "\"a\""},
    {"mi", {50, 49}, {1, 1}, {NULL}, N2CE_EINVAL, "x has 50 rows and y has 49"},
    {"fit", {50, 50}, {1, 1}, {"method", "nce", "M", "7"}, N2CE_EINVAL, "no magnitude"},
    {"fit", {50, 50}, {1, 1}, {"method", "dv", "stages", "2"}, N2CE_EINVAL, "no stages"},
};

static void mistakes_are_sentences(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    double *x = normals(200, 0, 1, 5);
    for (size_t i = 0; i < COUNT_OF(mistakes); i++) {
        const mistake *m = &mistakes[i];
        const char *pairs[5] = {m->pairs[0], m->pairs[1], m->pairs[2], m->pairs[3], NULL};
        const n2ce_matrix data[] = {matrix(x, m->rows[0], m->cols[0]),
                                    matrix(x + 7, m->rows[1], m->cols[1])};
        n2ce_answer *a;
        assert_int_equal(try_on(ctx, m->verb, data, 2, pairs, &a), m->status);
        assert_null(a);
        if (!strstr(n2ce_errmsg(ctx), m->says)) print_error("%s\n", n2ce_errmsg(ctx));
        assert_non_null(strstr(n2ce_errmsg(ctx), m->says));
    }
    free(x);
    n2ce_ctx_free(ctx);
}

/* Values that no sample can have: where they are is said; with drop-missing NaN is dropped. */
static void values_that_are_no_numbers(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    samples s = new_samples(60, 60, 2, 1);
    n2ce_answer *a;
    static const char *const drop[] = {"drop-missing", "true", "critic", "quadratic", NULL};
    s.den[2 * 31 + 1] = (double)NAN;
    assert_int_equal(try_on(ctx, "divergence", s.data, 2, NULL, &a), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(ctx), "den, row 31, column 1 (zero-based)"));
    a = run_on(ctx, "divergence", s.data, drop);
    assert_non_null(strstr(n2ce_answer_json(a), "\"den\": 59"));
    assert_non_null(strstr(n2ce_answer_json(a), "\"dropped\": 1"));
    n2ce_answer_free(a);
    s.num[3] = (double)INFINITY;
    assert_int_equal(try_on(ctx, "divergence", s.data, 2, drop, &a), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(ctx), "num, row 1, column 1 (zero-based)"));
    s.num[3] = 1e200;
    assert_int_equal(try_on(ctx, "divergence", s.data, 2, drop, &a), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(ctx), "\"1\" has values of size 1e+200"));
    samples_free(&s);
    n2ce_ctx_free(ctx);
}

/* Nothing varies: said, not computed. */
static void constants_have_nothing_to_say(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    samples s = new_samples(60, 60, 1, 0);
    n2ce_answer *a;
    for (size_t i = 0; i < 60; i++) s.num[i] = 4;
    assert_int_equal(try_on(ctx, "mi", s.data, 2, NULL, &a), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(ctx), "x has one value only"));
    const n2ce_matrix other[] = {s.data[1], s.data[0]};
    assert_int_equal(try_on(ctx, "mi", other, 2, NULL, &a), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(ctx), "y has one value only"));
    const n2ce_matrix same[] = {s.data[0], s.data[0]};
    assert_int_equal(try_on(ctx, "divergence", same, 2, NULL, &a), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(ctx), "nothing to compare"));
    static const char *const quadratic[] = {"critic", "quadratic", NULL};
    a = run_on(ctx, "divergence", s.data, quadratic); /* one side only: a verdict */
    assert_non_null(strstr(n2ce_answer_json(a), "\"verdict\": \"doubtful\""));
    assert_non_null(strstr(n2ce_answer_text(a), "one value in one of the samples"));
    n2ce_answer_free(a);
    samples_free(&s);
    n2ce_ctx_free(ctx);
}

/* The number of matrices is checked, and whether the task takes any. */
static void tasks_take_as_many_matrices_as_they_take(void **state) {
    (void)state;
    n2ce_ctx *ctx = new_ctx(1);
    samples s = new_samples(30, 30, 1, 0);
    n2ce_answer *a;
    assert_int_equal(try_on(ctx, "fit", s.data, 1, NULL, &a), N2CE_EINVAL);
    assert_null(a);
    assert_non_null(strstr(n2ce_errmsg(ctx), "fit takes 2 matrices, not 1"));
    assert_int_equal(try_on(ctx, "score", s.data, 2, NULL, &a), N2CE_EINVAL);
    assert_int_equal(try_on(ctx, "study gaussian", s.data, 2, NULL, &a), N2CE_EINVAL);
    assert_null(a);
    samples_free(&s);
    n2ce_ctx_free(ctx);
}

/* Without files and without matrices the missing option is named. */
static void missing_options_are_named(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"fit", "--num"},     {"divergence", "--num"},
                                          {"test", "--num"},    {"mi", "--file"},
                                          {"score", "--model"}, {"info", "--model"}};
    n2ce_ctx *ctx = new_ctx(1);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        n2ce_options *o = new_options(ctx, rows[i][0], NULL);
        n2ce_answer *a;
        assert_int_equal(n2ce_task_run(ctx, n2ce_task_find(rows[i][0]), o, &a), N2CE_EINVAL);
        assert_null(a);
        assert_non_null(strstr(n2ce_errmsg(ctx), rows[i][1]));
        assert_int_equal(strncmp(n2ce_errmsg(ctx), rows[i][0], strlen(rows[i][0])), 0);
        n2ce_options_free(o);
    }
    n2ce_ctx_free(ctx);
}

/* Numbers that are names of levels: who fits and who scores means the same by them. */
static void levels_in_memory(void **state) {
    (void)state;
    enum { N = 400 };
    n2ce_ctx *ctx = new_ctx(1);
    double num[N], den[N];
    for (size_t i = 0; i < N; i++) {
        num[i] = i % 4 == 0 ? 7 : -3; /* 1/4 and 3/4 */
        den[i] = i % 2 == 0 ? 7 : -3; /* half and half */
    }
    const n2ce_matrix data[] = {matrix(num, N, 1), matrix(den, N, 1)};
    static const char *const pairs[] = {"categorical", "0", "critic", "quadratic", NULL};
    n2ce_answer *a = run_on(ctx, "fit", data, pairs);
    n2ce_model *m = n2ce_answer_take_model(a);
    const double levels[] = {-3, 7, 0};
    const n2ce_matrix rows = matrix(levels, 2, 1), unknown = matrix(levels, 3, 1);
    double f[3];
    assert_int_equal(n2ce_model_score(m, &rows, f), N2CE_OK);
    assert_true(f[0] > 0.2 && f[1] < -0.3); /* truth: ln 3/2 and ln 1/2 */
    assert_int_equal(n2ce_model_score(m, &unknown, f), N2CE_EDATA);
    assert_non_null(strstr(n2ce_errmsg(ctx), "\"0\" is not a known category"));
    assert_non_null(strstr(n2ce_errmsg(ctx), "row 2"));
    n2ce_model_free(m);
    n2ce_answer_free(a);
    n2ce_ctx_free(ctx);
}

/* ---- stopping and memory ---- */

static void cancel_at_once(void *user, double done, double total) {
    (void)done;
    (void)total;
    n2ce_ctx_cancel(*(n2ce_ctx **)user);
}

/* A cancelled task leaves nothing, and the context can be used again. */
static void a_cancelled_task_has_no_answer(void **state) {
    (void)state;
    n2ce_ctx *ctx;
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    options.progress = cancel_at_once;
    options.progress_user = &ctx;
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    samples s = new_samples(200, 200, 1, 1);
    static const char *const verbs[] = {"fit", "divergence", "mi", "test"};
    static const char *const net[] = {QUICK, "critic", "net", NULL};
    static const char *const quadratic[] = {"critic", "quadratic", NULL};
    for (size_t v = 0; v < COUNT_OF(verbs); v++) {
        n2ce_answer *a;
        assert_int_equal(try_on(ctx, verbs[v], s.data, 2, net, &a), N2CE_ECANCELED);
        assert_null(a);
        n2ce_answer_free(run_on(ctx, verbs[v], s.data, quadratic)); /* reports no progress */
    }
    samples_free(&s);
    n2ce_ctx_free(ctx);
}

static n2ce_status whole_life(failing_alloc *memory, const char *verb, const n2ce_matrix *data,
                              const char *const *pairs) {
    const n2ce_ctx_options options = failing_alloc_options(memory, 2);
    const n2ce_task *task = n2ce_task_find(verb);
    n2ce_ctx *ctx;
    n2ce_options *o = NULL;
    n2ce_answer *a = NULL;
    n2ce_status status = n2ce_ctx_new(&ctx, &options);
    if (status != N2CE_OK) return status;
    status = n2ce_options_new(ctx, n2ce_task_options(task), &o);
    for (; status == N2CE_OK && pairs[0]; pairs += 2)
        status = n2ce_options_set(o, pairs[0], pairs[1]);
    if (status == N2CE_OK) status = n2ce_task_run_on(ctx, task, o, data, 2, &a);
    assert_true((status == N2CE_OK) == (a != NULL));
    if (status != N2CE_OK && !strstr(n2ce_errmsg(ctx), "memory"))
        print_error("%s, allocation %zu: %s\n", verb, memory->fail_at, n2ce_errmsg(ctx));
    if (status == N2CE_OK && isnan(n2ce_answer_number(a, verb[0] == 't' ? "p" : "estimate")))
        status = N2CE_ENOMEM;
    n2ce_answer_free(a);
    n2ce_options_free(o);
    n2ce_ctx_free(ctx);
    return status;
}

/* Fails every allocation of every verb in turn. Only the unbiased Gaussian divergence may fail
 * without an error: then the plain one is used. */
static void every_failed_allocation_is_an_error(void **state) {
    (void)state;
    static const char *const verbs[] = {"fit", "divergence", "mi", "test"};
    static const char *const pairs[] = {"steps",  "20",  "width", "4",  "blocks", "1",
                                        "batch",  "8",   "noise", "1",  "folds",  "2",
                                        "critic", "net", "M",     "10", NULL};
    samples s = new_samples(40, 40, 1, 1);
    for (size_t v = 0; v < COUNT_OF(verbs); v++) {
        n2ce_status status = N2CE_ENOMEM;
        size_t n = 0;
        for (; status != N2CE_OK; n++) {
            failing_alloc memory = failing_alloc_new(n, false);
            assert_true(n < 20000);
            status = whole_life(&memory, verbs[v], s.data, pairs);
            assert_int_equal(status, memory.calls > n ? N2CE_ENOMEM : N2CE_OK);
            assert_int_equal(memory.live, 0);
            assert_int_equal(memory.strangers, 0);
        }
        assert_true(n > 40);
    }
    samples_free(&s);
}

/* The page and the JSON of every verb are in the folder, and nothing else. */
static void remove_reports(const char *folder, const char *const *verbs, size_t n) {
    for (size_t v = 0; v < n; v++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%s.html", folder, verbs[v]);
        assert_int_equal(remove(path), 0);
        snprintf(path, sizeof path, "%s/%s.json", folder, verbs[v]);
        assert_int_equal(remove(path), 0);
    }
    assert_int_equal(remove(folder), 0);
}

static n2ce_status life_with_report(failing_alloc *memory, const char *verb,
                                    const n2ce_matrix *data, const char *const *pairs) {
    const n2ce_ctx_options options = failing_alloc_options(memory, 1);
    const n2ce_task *task = n2ce_task_find(verb);
    n2ce_ctx *ctx;
    n2ce_options *o = NULL;
    n2ce_answer *a = NULL;
    n2ce_status status = n2ce_ctx_new(&ctx, &options);
    if (status != N2CE_OK) return status;
    status = n2ce_options_new(ctx, n2ce_task_options(task), &o);
    for (; status == N2CE_OK && pairs[0]; pairs += 2)
        status = n2ce_options_set(o, pairs[0], pairs[1]);
    if (status == N2CE_OK) status = n2ce_task_run_on(ctx, task, o, data, 2, &a);
    assert_true(status == N2CE_OK ? a != NULL : strstr(n2ce_errmsg(ctx), "memory") != NULL);
    n2ce_answer_free(a);
    n2ce_options_free(o);
    n2ce_ctx_free(ctx);
    return status;
}

/* The same as above for verbs that have to explain themselves and to write a page. */
static void a_report_without_memory_is_an_error(void **state) {
    (void)state;
    static const char *const verbs[] = {"divergence", "test"};
    char folder[] = "/tmp/n2ce-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const char *const pairs[] = {"steps", "2",    "width",  "4",   "blocks", "1",    "batch",  "8",
                                 "noise", "1",    "folds",  "2",   "M",      "10",   "stages", "2",
                                 "force", "true", "critic", "net", "report", folder, NULL};
    samples s = new_samples(130, 130, 1, 1);
    for (size_t v = 0; v < COUNT_OF(verbs); v++) {
        n2ce_status status = N2CE_ENOMEM;
        for (size_t n = 0; status != N2CE_OK; n++) {
            failing_alloc memory = failing_alloc_new(n, false);
            assert_true(n < 20000);
            status = life_with_report(&memory, verbs[v], s.data, pairs);
            assert_int_equal(status, memory.calls > n ? N2CE_ENOMEM : N2CE_OK);
            assert_int_equal(memory.live, 0);
        }
    }
    remove_reports(folder, verbs, COUNT_OF(verbs));
    samples_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divergence_in_memory),
        cmocka_unit_test(one_distribution_has_no_divergence),
        cmocka_unit_test(numbers_of_an_answer),
        cmocka_unit_test(units_and_levels),
        cmocka_unit_test(mutual_information_in_memory),
        cmocka_unit_test(tests_have_p_values),
        cmocka_unit_test(p_values_are_uniform),
        cmocka_unit_test(files_and_memory_agree),
        cmocka_unit_test(threads_change_no_byte),
        cmocka_unit_test(mistakes_are_sentences),
        cmocka_unit_test(values_that_are_no_numbers),
        cmocka_unit_test(constants_have_nothing_to_say),
        cmocka_unit_test(tasks_take_as_many_matrices_as_they_take),
        cmocka_unit_test(missing_options_are_named),
        cmocka_unit_test(levels_in_memory),
        cmocka_unit_test(a_cancelled_task_has_no_answer),
        cmocka_unit_test(every_failed_allocation_is_an_error),
        cmocka_unit_test(a_report_without_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
