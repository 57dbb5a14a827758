/* Facts about the ratio verbs on a GPU: the processor's answers, models that come back from it,
 * sentences and fallbacks where it is missing or too small. Skipped where there is none, but for
 * the emulated one, which can be told to fail (docs/cuda.md). */
#define _POSIX_C_SOURCE 200809L
#include "fast_backend.h"
#include "samples.h"

#include "ratio/estimate.h"
#include "task/device_options.h"

#include <stdio.h>
#include <unistd.h>

#define QUICK                                                                                   \
    "steps", "24", "width", "8", "blocks", "1", "batch", "32", "noise", "2", "folds", "2", "M", \
        "10", "critic", "net", "precision", "float32"

static char warning[512];

static void keep_warning(void *user, n2ce_log_level level, const char *text) {
    (void)user;
    (void)level;
    snprintf(warning, sizeof warning, "%s", text);
}

static n2ce_ctx *open_ctx(void) {
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    n2ce_ctx *ctx;
    options.log = keep_warning;
    warning[0] = '\0';
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    return ctx;
}

static n2ce_status run_verb(n2ce_ctx *ctx, const char *verb, const n2ce_matrix *data,
                            const char *device, n2ce_answer **answer) {
    static const char *const pairs[] = {QUICK, NULL};
    const n2ce_task *task = n2ce_task_find(verb);
    n2ce_options *o;
    assert_int_equal(n2ce_options_new(ctx, n2ce_task_options(task), &o), N2CE_OK);
    for (size_t i = 0; pairs[i]; i += 2)
        assert_int_equal(n2ce_options_set(o, pairs[i], pairs[i + 1]), N2CE_OK);
    assert_int_equal(n2ce_options_set(o, "device", device), N2CE_OK);
    const n2ce_status status = n2ce_task_run_on(ctx, task, o, data, 2, answer);
    n2ce_options_free(o);
    return status;
}

static n2ce_answer *answer_on(n2ce_ctx *ctx, const char *verb, const n2ce_matrix *data,
                              const char *device) {
    n2ce_answer *answer;
    if (run_verb(ctx, verb, data, device, &answer) != N2CE_OK)
        fail_msg("%s on %s: %s", verb, device, n2ce_errmsg(ctx));
    return answer;
}

/* ---- where it fails: these come first, for what is open stays open ---- */

static bool is_emulated_gpu(void) { return getenv("N2CE_EMULATED") != NULL; }

typedef struct pair {
    double *num, *den;
    n2ce_matrix data[2];
} pair;

static pair new_pair(size_t n, size_t d) {
    pair p = {normals(n * d, 0.7, 1, 1), normals(n * d, 0, 1, 2), {{0}, {0}}};
    for (size_t i = 0; i < n * d; i++) p.num[i] += 0.2 * p.num[i] * p.num[i];
    p.data[0] = matrix(p.num, n, d);
    p.data[1] = matrix(p.den, n, d);
    return p;
}

static void pair_free(pair *p) {
    free(p->num);
    free(p->den);
}

/* What is wrong with the GPU is said in a sentence; "auto" does without it. */
static void a_gpu_that_cannot_be_used(void **state) {
    (void)state;
    static const struct {
        const char *what, *words;
    } rows[] = {{"none", "no GPU on this machine"},
                {"no-driver", "no NVIDIA driver"},
                {"old-driver", "knows CUDA 10.2"},
                {"old", "needs 8.0"}};
    if (!is_emulated_gpu()) skip();
    n2ce_ctx *ctx = open_ctx();
    pair p = new_pair(100, 1);
    n2ce_answer *answer;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        setenv("N2CE_EMULATED_GPU", rows[i].what, 1);
        assert_int_equal(run_verb(ctx, "divergence", p.data, "cuda", &answer), N2CE_EDEVICE);
        if (!strstr(n2ce_errmsg(ctx), rows[i].words)) fail_msg("%s", n2ce_errmsg(ctx));
        answer = answer_on(ctx, "divergence", p.data, "auto");
        assert_non_null(strstr(n2ce_answer_json(answer), "\"device\": \"cpu\""));
        n2ce_answer_free(answer);
    }
    unsetenv("N2CE_EMULATED_GPU");
    assert_string_equal(warning, "");
    pair_free(&p);
    n2ce_ctx_free(ctx);
}

/* ---- the same answers ---- */

static void assert_same_answers(const char *verb, const n2ce_matrix *data, double tolerance) {
    n2ce_ctx *ctx = open_ctx();
    n2ce_answer *here = answer_on(ctx, verb, data, "cpu");
    n2ce_answer *there = answer_on(ctx, verb, data, "cuda");
    const char *name = strcmp(verb, "test") == 0 ? "accuracy" : "estimate";
    assert_non_null(strstr(n2ce_answer_json(here), "\"device\": \"cpu\""));
    assert_non_null(strstr(n2ce_answer_json(there), "\"device\": \"cuda:0, float32\""));
    assert_close(n2ce_answer_number(there, name), n2ce_answer_number(here, name), 0, tolerance);
    n2ce_answer_free(here);
    n2ce_answer_free(there);
    n2ce_ctx_free(ctx);
}

static void every_verb_agrees_with_the_processor(void **state) {
    (void)state;
    open_cuda_or_skip(true);
    pair p = new_pair(160, 2);
    assert_same_answers("divergence", p.data, 2e-3);
    assert_same_answers("mi", p.data, 2e-3);
    assert_same_answers("test", p.data, 0.03);
    pair_free(&p);
}

/* A model that was trained on a GPU scores as the one of the processor, holds none of the GPU's
 * memory, and is the same when it was saved and loaded. */
static void a_model_comes_back(void **state) {
    (void)state;
    const n2_backend *cuda = open_cuda_or_skip(true);
    enum { N = 160, D = 2 };
    char path[] = "/tmp/n2ce_model_XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    pair p = new_pair(N, D);
    n2ce_ctx *ctx = open_ctx();
    double f[3][N];
    size_t before, after, most;
    n2_cuda_memory(cuda, &before, &most);
    for (int i = 0; i < 2; i++) {
        n2ce_answer *answer = answer_on(ctx, "fit", p.data, i ? "cuda" : "cpu");
        n2ce_model *model = n2ce_answer_take_model(answer), *loaded;
        n2ce_answer_free(answer);
        n2_cuda_memory(cuda, &after, &most);
        assert_int_equal(after, before);
        assert_int_equal(n2ce_model_score(model, &p.data[0], f[i]), N2CE_OK);
        assert_int_equal(n2ce_model_save(model, path, true), N2CE_OK);
        assert_int_equal(n2ce_model_load(ctx, path, &loaded), N2CE_OK);
        assert_int_equal(n2ce_model_score(loaded, &p.data[0], f[2]), N2CE_OK);
        assert_memory_equal(f[i], f[2], sizeof f[i]);
        n2ce_model_free(model);
        n2ce_model_free(loaded);
    }
    for (size_t i = 0; i < N; i++) assert_close(f[1][i], f[0][i], 0, 5e-3);
    pair_free(&p);
    n2ce_ctx_free(ctx);
    close(file);
    unlink(path);
}

/* Log ratios of rows of a file, as "score" writes them. */
static char *scores_on(n2ce_ctx *ctx, const char *model, const char *rows, const char *device) {
    const n2ce_task *task = n2ce_task_find("score");
    const char *const pairs[] = {"model", model,       "rows",    rows, "device",
                                 device,  "precision", "float32", NULL};
    n2ce_options *o;
    n2ce_answer *answer;
    assert_int_equal(n2ce_options_new(ctx, n2ce_task_options(task), &o), N2CE_OK);
    for (size_t i = 0; pairs[i]; i += 2)
        assert_int_equal(n2ce_options_set(o, pairs[i], pairs[i + 1]), N2CE_OK);
    if (n2ce_task_run(ctx, task, o, &answer) != N2CE_OK) fail_msg("%s", n2ce_errmsg(ctx));
    char *text = strdup(n2ce_answer_brief(answer));
    assert_non_null(strstr(n2ce_answer_json(answer), device)); /* "cuda" is in "cuda:0" */
    n2ce_answer_free(answer);
    n2ce_options_free(o);
    return text;
}

static void a_model_may_score_on_a_gpu(void **state) {
    (void)state;
    open_cuda_or_skip(true);
    enum { N = 160, D = 2 };
    char folder[] = "/tmp/n2ce_score_XXXXXX", model[64], rows[64];
    assert_non_null(mkdtemp(folder));
    snprintf(model, sizeof model, "%s/model", folder);
    snprintf(rows, sizeof rows, "%s/rows.csv", folder);
    pair p = new_pair(N, D);
    n2ce_ctx *ctx = open_ctx();
    n2ce_answer *answer = answer_on(ctx, "fit", p.data, "cpu");
    n2ce_model *fitted = n2ce_answer_take_model(answer);
    assert_int_equal(n2ce_model_save(fitted, model, false), N2CE_OK);
    FILE *out = fopen(rows, "w");
    for (size_t i = 0; i < N; i++) fprintf(out, "%.17g,%.17g\n", p.num[i * D], p.num[i * D + 1]);
    fclose(out);
    char *here = scores_on(ctx, model, rows, "cpu"), *there = scores_on(ctx, model, rows, "cuda");
    char *a = here, *b = there;
    for (size_t i = 0; i < N; i++) assert_close(strtod(b, &b), strtod(a, &a), 1e-5, 1e-5);
    free(here);
    free(there);
    n2ce_model_free(fitted);
    n2ce_answer_free(answer);
    pair_free(&p);
    n2ce_ctx_free(ctx);
    unlink(model);
    unlink(rows);
    rmdir(folder);
}

/* "auto" measures, and an emulated GPU is never the faster one. */
static void auto_takes_the_faster_one(void **state) {
    (void)state;
    open_cuda_or_skip(true);
    if (!is_emulated_gpu()) skip();
    enum { N = 160, D = 2 };
    n2ce_ctx *ctx = open_ctx();
    pair p = new_pair(N, D);
    n2ce_answer *answer;
    n2_device_choice choice = {.reason = ""};
    n2ce_options *o;
    const n2ce_task *task = n2ce_task_find("divergence");
    assert_int_equal(n2ce_options_new(ctx, n2ce_task_options(task), &o), N2CE_OK);
    assert_int_equal(n2_choice_of_options(ctx, o, &choice), N2CE_OK);
    assert_true(choice.open && choice.optional && !choice.backend);
    n2ce_options_set(o, "steps", "1000000"); /* so much that measuring is worth it */
    n2ce_options_set(o, "time-limit", "0.5");
    n2ce_options_set(o, "width", "8");
    assert_int_equal(n2ce_task_run_on(ctx, task, o, p.data, 2, &answer), N2CE_OK);
    assert_non_null(strstr(n2ce_answer_json(answer), "\"device\": \"cpu\""));
    n2ce_answer_free(answer);
    n2ce_options_free(o);
    pair_free(&p);
    n2ce_ctx_free(ctx);
}

/* ---- too small ---- */

/* What was asked for fails with a sentence; what was not goes on elsewhere, and says so. */
static void a_gpu_without_memory(void **state) {
    (void)state;
    open_cuda_or_skip(true);
    if (!is_emulated_gpu()) skip();
    enum { N = 6000, D = 3 }; /* more than there is memory for, be it given back by others */
    n2ce_ctx *ctx = open_ctx();
    pair p = new_pair(N, D);
    n2ce_answer *answer;
    n2_table *num = new_table(ctx, p.num, N, D), *den = new_table(ctx, p.den, N, D);
    setenv("N2CE_EMULATED_MEMORY", "65536", 1);
    assert_int_equal(run_verb(ctx, "divergence", p.data, "cuda", &answer), N2CE_EDEVICE);
    assert_non_null(strstr(n2ce_errmsg(ctx), "out of memory"));
    n2_device_choice choice = {.backend = open_cuda_or_skip(true), .optional = true};
    const n2_fit_options o = {
        .parts = N2_PARTS_NET,
        .folds = 2,
        .critic = {.steps = 20, .width = 8, .blocks = 1, .magnitude = 10, .choice = &choice}};
    n2_ratio *ratio;
    n2_scores scores;
    n2_fit_record record;
    assert_int_equal(n2_ratio_fit(ctx, num, den, 0, NULL, &o, &ratio, &scores, &record), N2CE_OK);
    assert_null(choice.backend);
    assert_non_null(strstr(warning, "The processor goes on instead."));
    unsetenv("N2CE_EMULATED_MEMORY");
    n2_ratio_free(ratio);
    n2_scores_free(&scores);
    n2_table_free(num);
    n2_table_free(den);
    pair_free(&p);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_that_cannot_be_used),
        cmocka_unit_test(every_verb_agrees_with_the_processor),
        cmocka_unit_test(a_model_comes_back),
        cmocka_unit_test(a_model_may_score_on_a_gpu),
        cmocka_unit_test(auto_takes_the_faster_one),
        cmocka_unit_test(a_gpu_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
