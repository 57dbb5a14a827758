/* Facts about the latent model on a GPU: what it learns is what the processor learns but for
 * rounding, its proposals are proposals, and a checkpoint holds what the GPU has, and that it has
 * been there. "auto" measures, and does without a GPU that is missing or fails: that is tested
 * with the emulated one, which can be told to (docs/cuda.md). Skipped where there is none. */
#define _POSIX_C_SOURCE 200809L
#include "close.h"
#include "fast_backend.h"

#include "base/random.h"
#include "n2ce.h"
#include "optimize/latent_model.h"
#include "task/device_options.h"

#include <unistd.h>

enum { ROWS = 64, COLUMNS = 3, WANTED = 6 };

/* A number, a whole number, a category. */
typedef struct sample {
    n2_factor factor[COLUMNS];
    double x[ROWS * COLUMNS], y[ROWS];
    n2_designs designs;
} sample;

static void fill(sample *s) {
    const n2_factor factor[COLUMNS] = {
        {N2_CONTINUOUS, -2, 2, 0}, {N2_WHOLE, 1, 9, 0}, {N2_CATEGORY, 0, 0, 3}};
    float u[ROWS * COLUMNS];
    n2_fill_uniform((n2_stream){5, 1, 0}, 0, ROWS * COLUMNS, u);
    memcpy(s->factor, factor, sizeof factor);
    for (size_t i = 0; i < ROWS; i++) {
        double *x = s->x + i * COLUMNS;
        const float *v = u + i * COLUMNS;
        x[0] = -1.9 + 3.8 * (double)v[0];
        x[1] = 1 + floor(8.999 * (double)v[1]);
        x[2] = floor(2.999 * (double)v[2]);
        s->y[i] = x[0] - 0.05 * (x[1] - 4) * (x[1] - 4) + (x[2] == 1);
    }
    s->designs = (n2_designs){{s->factor, COLUMNS}, ROWS, s->x, s->y};
}

static n2_latent_options tiny(n2_device_choice *choice) {
    n2_latent_options o = n2_latent_defaults();
    o.members = 2;
    o.width = o.code_width = o.ratio_width = 8;
    o.blocks = 1;
    o.latent = 3;
    o.stages = 2;
    o.batch = 16;
    o.noise = 2;
    o.value_steps = 50;
    o.code_steps = o.prior_steps = o.joint_steps = 25;
    o.rounds = 2;
    o.moves = 4;
    o.seed = 3;
    o.choice = choice;
    return o;
}

static char warning[2048]; /* all of a context */
static void keep_warning(void *user, n2ce_log_level level, const char *text) {
    const size_t n = strlen(warning);
    (void)user;
    if (level == N2CE_LOG_WARNING) snprintf(warning + n, sizeof warning - n, "%s\n", text);
}

static n2ce_ctx *new_ctx(void) {
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    n2ce_ctx *ctx;
    options.log = keep_warning;
    warning[0] = '\0';
    assert_int_equal(n2ce_ctx_new(&ctx, &options), N2CE_OK);
    return ctx;
}

/* What a model says of the designs, and what it proposes. */
typedef struct said {
    double predicted[ROWS], spread[ROWS], prior[ROWS];
    n2_latent_record record;
    double x[WANTED * COLUMNS], expected[WANTED];
    size_t rows;
} said;

static void learn(const sample *s, const n2_latent_options *o, said *out) {
    n2ce_ctx *ctx = new_ctx();
    n2_latent *m;
    n2_proposals p = {.rows = WANTED, .x = out->x, .predicted = out->expected};
    if (n2_latent_fit(ctx, &s->designs, o, &m) != N2CE_OK) fail_msg("%s", n2ce_errmsg(ctx));
    assert_int_equal(n2_latent_appraise(m, s->x, ROWS, out->predicted, out->spread, out->prior),
                     N2CE_OK);
    out->record = *n2_latent_seen(m);
    if (n2_latent_propose(m, &p) != N2CE_OK) fail_msg("%s", n2ce_errmsg(ctx));
    out->rows = p.rows;
    n2_latent_free(m);
    n2ce_ctx_free(ctx);
}

static void assert_valid(const sample *s, const double *x) {
    assert_true(x[0] >= -2 && x[0] <= 2);
    assert_true(x[1] >= 1 && x[1] <= 9 && x[1] == floor(x[1]));
    assert_true(x[2] == 0 || x[2] == 1 || x[2] == 2);
    for (size_t k = 0; k < ROWS; k++)
        assert_memory_not_equal(x, s->x + k * COLUMNS, COLUMNS * sizeof *x);
}

/* ---- where it fails: these come first, for what is open stays open ---- */

static bool is_emulated_gpu(void) { return getenv("N2CE_EMULATED") != NULL; }

/* What the verb says of the device under "auto". So many steps that a GPU is looked for. */
static void assert_auto_says(const sample *s, const char *words) {
    static const char *const pairs[] = {"device", "auto", "effort", "0.02",
                                        "rounds", "1",    "count",  "4"};
    n2ce_ctx *ctx = new_ctx();
    n2ce_options *o;
    n2ce_answer *answer;
    const n2ce_matrix data[] = {{s->x, N2CE_F64, ROWS, COLUMNS, 0, 0},
                                {s->y, N2CE_F64, ROWS, 1, 0, 0}};
    const n2ce_task *task = n2ce_task_find("optimize");
    assert_int_equal(n2ce_options_new(ctx, n2ce_task_options(task), &o), N2CE_OK);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i += 2)
        assert_int_equal(n2ce_options_set(o, pairs[i], pairs[i + 1]), N2CE_OK);
    if (n2ce_task_run_on(ctx, task, o, data, 2, &answer) != N2CE_OK)
        fail_msg("%s", n2ce_errmsg(ctx));
    const char *model = strstr(n2ce_answer_json(answer), "\"device\": \"cpu\", \"device_reason\":");
    if (!model || !strstr(model, words)) fail_msg("%s: %.200s", words, model ? model : "not cpu");
    n2ce_answer_free(answer);
    n2ce_options_free(o);
    n2ce_ctx_free(ctx);
}

static void auto_does_without_a_gpu(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"none", "no GPU on this machine"},
                                          {"no-driver", "no NVIDIA driver"},
                                          {"old-driver", "knows CUDA 10.2"},
                                          {"old", "needs 8.0"}};
    static sample s;
    if (!is_emulated_gpu()) skip();
    fill(&s);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        setenv("N2CE_EMULATED_GPU", rows[i][0], 1);
        assert_auto_says(&s, rows[i][1]);
        assert_null(strstr(warning, "processor"));
    }
    unsetenv("N2CE_EMULATED_GPU");
}

/* One that fails is warned about: while it is measured, and later. */
static void auto_does_without_a_gpu_that_fails(void **state) {
    (void)state;
    static sample s;
    n2_device_choice choice = {.backend = open_cuda_or_skip(true), .optional = true};
    const n2_latent_options o = tiny(&choice);
    n2_latent *m;
    if (!is_emulated_gpu()) skip();
    fill(&s);
    setenv("N2CE_EMULATED_MEMORY", "65536", 1);
    assert_auto_says(&s, "out of memory");
    assert_non_null(strstr(warning, "The processor goes on instead."));
    n2ce_ctx *ctx = new_ctx();
    const n2ce_status status = n2_latent_fit(ctx, &s.designs, &o, &m);
    assert_int_equal(status, N2CE_EDEVICE);
    assert_true(n2_choice_retreat(&choice, ctx, status));
    assert_int_equal(n2_latent_fit(ctx, &s.designs, &o, &m), N2CE_OK);
    unsetenv("N2CE_EMULATED_MEMORY");
    n2_latent_free(m);
    n2ce_ctx_free(ctx);
}

/* ---- the same numbers ---- */

static n2ce_status open_gpu(const n2_device_choice *choice, n2ce_ctx *ctx, const n2_backend **out) {
    return n2_cuda_backend(ctx, &(n2_cuda_options){choice->device, choice->strict, choice->narrow},
                           out);
}

/* An emulated GPU is never the faster one; that it was tried changes nothing. */
static void auto_takes_the_faster_one(void **state) {
    (void)state;
    static sample s;
    static said asked, measured;
    n2_device_choice choice = {.open = open_gpu, .optional = true, .strict = true};
    open_cuda_or_skip(true);
    if (!is_emulated_gpu()) skip();
    fill(&s);
    n2_latent_options o = tiny(NULL);
    o.value_steps = 30000; /* so many that measuring is worth it */
    learn(&s, &o, &asked);
    o.choice = &choice;
    learn(&s, &o, &measured);
    assert_null(choice.open);
    assert_null(choice.backend);
    assert_non_null(strstr(choice.reason, "measured: "));
    assert_non_null(strstr(choice.reason, " ms on cuda:0, float32"));
    assert_memory_equal(measured.predicted, asked.predicted, sizeof asked.predicted);
    assert_memory_equal(measured.x, asked.x, sizeof asked.x);
}

static void it_learns_what_the_processor_learns(void **state) {
    (void)state;
    static sample s;
    static said here, there;
    const n2_backend *cuda = open_cuda_or_skip(true);
    size_t before, after, most;
    fill(&s);
    n2_cuda_memory(cuda, &before, &most);
    n2_device_choice choice = {.backend = cuda};
    n2_latent_options o = tiny(NULL);
    learn(&s, &o, &here);
    o.choice = &choice;
    learn(&s, &o, &there);
    for (size_t i = 0; i < ROWS; i++) {
        assert_close(there.predicted[i], here.predicted[i], 0, 2e-3);
        assert_close(there.spread[i], here.spread[i], 0, 2e-3);
        assert_close(there.prior[i], here.prior[i], 0, 1e-2);
    }
    assert_close(there.record.r2, here.record.r2, 0, 2e-3);
    assert_close(there.record.misfit, here.record.misfit, 1e-3, 1e-3);
    assert_close(there.record.prior_loss, here.record.prior_loss, 1e-3, 1e-3);
    assert_close(there.record.misfit_ceiling, here.record.misfit_ceiling, 1e-3, 1e-3);
    assert_int_equal(there.rows, WANTED);
    for (size_t i = 0; i < WANTED; i++) {
        assert_valid(&s, there.x + i * COLUMNS);
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(there.x + i * COLUMNS, there.x + k * COLUMNS,
                                    COLUMNS * sizeof *s.x);
    }
    assert_close(there.expected[0], here.expected[0], 0, 0.3); /* chains may part */
    n2_cuda_memory(cuda, &after, &most);
    assert_int_equal(after, before);
}

static n2ce_ctx *to_cancel;
static void cancel_at(void *user, double done, double total) {
    if (done > *(double *)user * total) n2ce_ctx_cancel(to_cancel);
}

/* "auto" goes back to the device of a checkpoint; other devices go on with a warning. */
static void assert_made_there(const sample *s, n2_latent_options o) {
    static said elsewhere;
    char name[N2_DEVICE_NAME];
    n2ce_ctx *ctx = new_ctx();
    n2_device_choice choice = {.open = open_gpu, .optional = true};
    assert_int_equal(n2_checkpoint_device(ctx, o.checkpoint, name), N2CE_OK);
    assert_string_equal(name, "cuda:0, float32");
    assert_int_equal(n2_choice_again(ctx, name, &choice), N2CE_OK);
    assert_string_equal(choice.backend->name, name); /* each context opens the GPU for itself */
    assert_null(choice.open);
    assert_string_equal(choice.reason, "where this run began");
    choice = (n2_device_choice){.open = open_gpu, .optional = true};
    assert_int_equal(n2_choice_again(ctx, "cuda:15, tf32", &choice), N2CE_OK);
    assert_null(choice.backend);
    assert_non_null(strstr(choice.reason, "There is no GPU 15"));
    n2ce_ctx_free(ctx);
    o.choice = &choice;
    learn(s, &o, &elsewhere);
    assert_non_null(strstr(warning, "was made on cuda:0, float32 and is continued on cpu"));
}

/* Stopped and gone on: the same bytes. */
static void a_checkpoint_holds_what_the_gpu_has(void **state) {
    (void)state;
    static sample s;
    static said whole, again;
    n2_device_choice choice = {.backend = open_cuda_or_skip(true)};
    n2_latent_options o = tiny(&choice);
    const char *path = "test_latent_device.checkpoint";
    fill(&s);
    o.rounds = o.moves = 1;
    o.joint_steps = 0;
    learn(&s, &o, &whole);
    o.checkpoint = path;
    unlink(path);
    double share = 0.2; /* while values are learnt */
    n2ce_ctx_options options = N2CE_CTX_OPTIONS_INIT;
    n2_latent *m;
    options.progress = cancel_at;
    options.progress_user = &share;
    assert_int_equal(n2ce_ctx_new(&to_cancel, &options), N2CE_OK);
    assert_int_equal(n2_latent_fit(to_cancel, &s.designs, &o, &m), N2CE_ECANCELED);
    n2ce_ctx_free(to_cancel);
    o.resume = true;
    learn(&s, &o, &again);
    assert_true(again.record.resumed);
    assert_memory_equal(again.predicted, whole.predicted, sizeof whole.predicted);
    assert_memory_equal(again.prior, whole.prior, sizeof whole.prior);
    assert_memory_equal(again.x, whole.x, sizeof whole.x);
    assert_string_equal(warning, "");
    assert_made_there(&s, o);
    unlink(path);
}

/* By Langevin dynamics, in tf32. */
static void designs_are_drawn_for_a_value(void **state) {
    (void)state;
    enum { DRAWN = 8 };
    static sample s;
    double x[DRAWN * COLUMNS];
    n2_device_choice choice = {.backend = open_cuda_or_skip(false)};
    n2_latent_options o = tiny(&choice);
    o.sampler = N2_LATENT_LANGEVIN;
    o.code_steps = o.joint_steps = 0;
    n2ce_ctx *ctx = new_ctx();
    n2_latent *m;
    fill(&s);
    assert_int_equal(n2_latent_fit(ctx, &s.designs, &o, &m), N2CE_OK);
    assert_int_equal(n2_latent_draw(m, 0, DRAWN, x), N2CE_OK);
    for (size_t i = 0; i < DRAWN; i++) {
        const double *d = x + i * COLUMNS;
        assert_true(fabs(d[0]) <= 2 && d[1] >= 1 && d[1] <= 9 && d[2] >= 0 && d[2] < 3);
    }
    n2_latent_free(m);
    n2ce_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_does_without_a_gpu),
        cmocka_unit_test(auto_does_without_a_gpu_that_fails),
        cmocka_unit_test(auto_takes_the_faster_one),
        cmocka_unit_test(it_learns_what_the_processor_learns),
        cmocka_unit_test(a_checkpoint_holds_what_the_gpu_has),
        cmocka_unit_test(designs_are_drawn_for_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
