/* "bench step" and "bench svgd": how fast the engine is on this machine. */
#include "base/clock.h"
#include "base/numerics.h"
#include "bench_model.h"
#include "cpu/cpu.h"
#include "cuda/cuda.h"
#include "task/device_options.h"
#include "task/task.h"
#include "task/vocabulary.h"

#include <stdio.h>
#include <sys/resource.h>

static const n2ce_option step_options[] = {
    {"M", 'M', N2CE_OPTION_COUNT, "100", 1, 1e5, NULL, "M",
     "noise magnitude; 128 M rows of noise go through the network"},
    {"seconds", 0, N2CE_OPTION_REAL, "2", 0.01, 1e6, NULL, "S", "time to measure for"},
    {"plan", 'p', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,
     "print the plan: steps, bytes, floating-point operations, time"},
    N2_SEED_OPTION,
    N2_ANY_DEVICE_OPTION,
    N2_PRECISION_OPTION,
    {0},
};

static const n2ce_option svgd_options[] = {
    {"particles", 0, N2CE_OPTION_COUNT, "256", 2, 1e5, NULL, "N", "number of particles"},
    {"iterations", 0, N2CE_OPTION_COUNT, "500", 1, 1e9, NULL, "T", "iterations to time"},
    {"plan", 'p', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL, "print the plan"},
    N2_SEED_OPTION,
    N2_ANY_DEVICE_OPTION,
    N2_PRECISION_OPTION,
    {0},
};

static double peak_megabytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

typedef struct timing {
    const char *title;
    double compile, first, seconds, flops; /* flops: of one run, counted plainly */
    uint64_t runs;
    double value; /* of the output after the last run */
} timing;

/* Makes the graphs of several runs, and of many, if they are short. */
static n2ce_status warm_up(n2_plan *plan) {
    const double start = n2_seconds();
    N2_TRY(n2_plan_run_many(plan, 16));
    return n2_seconds() - start < 0.1 ? n2_plan_run_many(plan, 64) : N2CE_OK;
}

/* Runs until the time or the number of runs is over (0: no such limit). A device is asked for
 * ever more runs at once, up to a twentieth of a second. */
static n2ce_status time_plan(n2ce_ctx *ctx, const n2_backend *backend, n2_plan *plan,
                             double seconds, uint64_t runs, timing *t) {
    double start = n2_seconds();
    uint64_t batch = 1;
    N2_TRY(n2_plan_run(plan));
    t->first = n2_seconds() - start;
    if (backend->device) N2_TRY(warm_up(plan));
    start = n2_seconds();
    while (!n2_cancelled(ctx) && (runs ? t->runs < runs : t->seconds < seconds)) {
        const double before = t->seconds;
        if (runs && batch > runs - t->runs) batch = runs - t->runs;
        N2_TRY(n2_plan_run_many(plan, batch));
        t->runs += batch;
        t->seconds = n2_seconds() - start;
        if (backend->device && t->seconds - before < 0.05) batch *= 2;
        n2_progress(ctx, runs ? (double)t->runs : t->seconds, runs ? (double)runs : seconds);
    }
    t->value = n2_plan_scalar(plan, 0);
    return t->runs ? N2CE_OK : N2CE_ECANCELED;
}

static void describe_device(n2_writer *a, const n2_backend *backend, const n2_plan *plan) {
    size_t bytes, most;
    if (!backend->device) return;
    n2_cuda_memory(backend, &bytes, &most);
    n2_text_add(&a->text, "%zu launches a run, GPU memory %.0f MB\n",
                n2_plan_measure(plan).launches, (double)most / 1048576);
    n2_text_add(&a->json, ", \"launches\": %zu, \"gpu_mb\": %.1f", n2_plan_measure(plan).launches,
                (double)most / 1048576);
}

static void show(n2_writer *a, const timing *t, const n2_backend *backend, const n2_plan *plan,
                 bool with_plan) {
    const double ms = 1e3 * t->seconds / (double)t->runs;
    const double gflops = t->flops * (double)t->runs / t->seconds * 1e-9;
    n2_text_add(&a->text,
                "%s: %.3f ms a run, %.1f GFLOP/s as the plain algorithm counts, %llu runs\n",
                t->title, ms, gflops, (unsigned long long)t->runs);
    n2_text_add(&a->text, "compiled in %.1f ms, first run %.1f ms, peak memory %.0f MB\n",
                1e3 * t->compile, 1e3 * t->first, peak_megabytes());
    if (with_plan) n2_plan_print(plan, &a->text);
    n2_text_add(&a->json, "{\"ms\": %.6g, \"gflops\": %.6g, \"peak_mb\": %.1f, \"steps\": %llu, ",
                ms, gflops, peak_megabytes(), (unsigned long long)t->runs);
    n2_text_add(&a->json,
                "\"seconds\": %.6g, \"compile_ms\": %.4g, \"first_ms\": %.4g, \"value\": ",
                t->seconds, 1e3 * t->compile, 1e3 * t->first);
    n2_text_add_number(&a->json, t->value);
    n2_text_add(&a->json, ", \"device\": \"%s\"", backend->name);
    describe_device(a, backend, plan);
    n2_text_add(&a->json, "}");
    n2_text_add(&a->brief, "%.6g\n", ms);
    n2_text_add(&a->kept, "%llu runs\n", (unsigned long long)t->runs);
}

/* A benchmark: builds its graph, and how long it runs. */
typedef struct bench {
    n2_node (*build)(const n2ce_options *o, n2_bench_model *m, timing *t);
    double seconds;
    uint64_t runs;
} bench;

static n2ce_status time_graph(n2ce_ctx *ctx, const n2ce_options *o, const bench *b,
                              const n2_backend *backend, n2_bench_model *m, n2_writer *a,
                              double *seconds) {
    n2_plan *plan;
    timing t = {.title = NULL};
    const n2_node output = b->build(o, m, &t);
    const double start = n2_seconds();
    N2_TRY(n2_plan_compile(m->graph, backend, &output, 1, &plan));
    t.compile = n2_seconds() - start;
    n2_plan_seed(plan, n2_options_count(o, "seed"), 0);
    n2_plan_time(plan, a && n2_options_flag(o, "plan"));
    const n2ce_status status = time_plan(ctx, backend, plan, b->seconds, b->runs, &t);
    *seconds = t.runs ? t.seconds / (double)t.runs : 0;
    if (status == N2CE_OK && a) show(a, &t, backend, plan, n2_options_flag(o, "plan"));
    n2_plan_free(plan);
    return status;
}

/* a NULL: measures only. */
static n2ce_status bench_on(n2ce_ctx *ctx, const n2ce_options *o, const bench *b,
                            const n2_backend *backend, n2_writer *a, double *seconds) {
    n2_bench_model m;
    n2ce_status status = n2_bench_model_new(ctx, n2_options_count(o, "seed"), &m);
    if (status == N2CE_OK) status = time_graph(ctx, o, b, backend, &m, a, seconds);
    n2_bench_model_free(&m);
    return status;
}

/* A short look, for "auto". */
typedef struct look {
    n2ce_ctx *ctx;
    const n2ce_options *o;
    bench b;
} look;

static n2ce_status look_at(void *user, const n2_backend *backend, double *seconds) {
    const look *l = user;
    return bench_on(l->ctx, l->o, &l->b, backend, NULL, seconds);
}

static n2ce_status bench_one(n2ce_ctx *ctx, const n2ce_options *o, const bench *b, n2_writer *a) {
    n2_device_choice choice;
    double seconds;
    look l = {ctx, o, {b->build, N2_TRIAL_SECONDS, 0}};
    N2_TRY(n2_choice_of_options(ctx, o, &choice));
    N2_TRY(n2_choice_settle(&choice, ctx, N2_INFINITY, look_at, &l));
    n2_text_add(&a->text, "%s: %s\n", n2_choice_name(&choice), choice.reason);
    return bench_on(ctx, o, b, n2_choice_backend(&choice), a, &seconds);
}

/* Which one "auto" would take, and why. */
static void show_choice(n2_writer *a, const double ms[2], const char *gpu) {
    const bool faster = gpu && ms[1] < ms[0];
    if (gpu)
        n2_text_add(&a->text, "auto takes %s: %.3f ms a run, against %.3f ms\n",
                    faster ? gpu : "cpu", faster ? ms[1] : ms[0], faster ? ms[0] : ms[1]);
    else
        n2_text_add(&a->text, "auto takes cpu: there is nothing to compare it with\n");
    n2_text_add(&a->json, ", \"auto\": \"%s\"}", faster ? "cuda" : "cpu");
}

/* Processor and GPU 0: each has a heading, and an object of the JSON to itself. */
static n2ce_status bench_all(n2ce_ctx *ctx, const n2ce_options *o, const bench *b, n2_writer *a) {
    double seconds[2] = {0, 0};
    const n2_cuda_options options = {.strict = n2_options_has_word(o, "precision", "float32")};
    const n2_backend *gpu = NULL;
    n2_text_add(&a->text, "cpu: %d threads\n", n2_ctx_threads(ctx));
    n2_text_add(&a->json, "{\"cpu\": ");
    N2_TRY(bench_on(ctx, o, b, n2_cpu_backend(), a, &seconds[0]));
    n2_text_add(&a->json, ", \"cuda\": ");
    n2ce_status status = n2_cuda_backend(ctx, &options, &gpu);
    if (status == N2CE_OK) {
        n2_text_add(&a->text, "%s: %s\n", gpu->name, n2_cuda_name(gpu));
        status = bench_on(ctx, o, b, gpu, a, &seconds[1]);
    }
    if (status != N2CE_OK && status != N2CE_EDEVICE) return status;
    if (status == N2CE_EDEVICE) {
        n2_text_add(&a->text, "cuda: %s\n", n2ce_errmsg(ctx));
        n2_text_add(&a->json, "null");
    }
    const double ms[2] = {1e3 * seconds[0], 1e3 * seconds[1]};
    show_choice(a, ms, status == N2CE_OK ? gpu->name : NULL);
    return N2CE_OK;
}

static n2ce_status run_bench(n2ce_ctx *ctx, const n2ce_options *o, const bench *b,
                             n2ce_answer *answer) {
    n2_writer a = n2_writer_new(ctx);
    const n2ce_status status =
        n2_wants_all_devices(o) ? bench_all(ctx, o, b, &a) : bench_one(ctx, o, b, &a);
    n2_text_add(&a.json, "\n");
    if (status == N2CE_OK) return n2_writer_take(&a, answer);
    n2_writer_free(&a);
    return status;
}

static n2_node build_step(const n2ce_options *o, n2_bench_model *m, timing *t) {
    const int64_t magnitude = (int64_t)n2_options_count(o, "M");
    t->title = "training step";
    t->flops = n2_bench_flops(m, magnitude);
    return n2_bench_step(m, magnitude);
}

static n2_node build_svgd(const n2ce_options *o, n2_bench_model *m, timing *t) {
    n2_parameters start = n2_parameters_new(m->store, 2);
    const int64_t n = (int64_t)n2_options_count(o, "particles");
    t->title = "SVGD iteration";
    return n2_bench_svgd(m, n2_parameter(&start, "particles", n2_dims(n, N2_BENCH_NZ), 1.7));
}

static n2ce_status run_step(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    const bench b = {build_step, n2ce_options_number(o, "seconds"), 0};
    return run_bench(ctx, o, &b, answer);
}

static n2ce_status run_svgd(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    const bench b = {build_svgd, 0, n2_options_count(o, "iterations")};
    return run_bench(ctx, o, &b, answer);
}

static const char step_description[] =
    "One step trains the ratio network (nz 20, width 128, 16 blocks, 7 stages) on 128 data\n"
    "and 128 M noise rows, then encoder and decoder through it, with Adam and clipping.\n"
    "./run bench step runs the same work in PyTorch and JAX beside it.\n";

/* "n2ce bench" is short for "n2ce bench step". */
#define STEP_TASK(NAME)                                                                      \
    {                                                                                        \
        .name = NAME, .summary = "time the paper's training step on this machine",           \
        .description = step_description,                                                     \
        .examples = "n2ce bench step --M 100\nn2ce bench --plan\n", .options = step_options, \
        .run = run_step                                                                      \
    }
const n2ce_task n2_bench_task = STEP_TASK("bench");
const n2ce_task n2_bench_step_task = STEP_TASK("bench step");

const n2ce_task n2_bench_svgd_task = {
    .name = "bench svgd",
    .summary = "time Stein variational gradient descent on the same model",
    .description = "Particles in the latent space move along the score of the energy-based prior,\n"
                   "conditioned on a value, with the median heuristic recomputed every time.\n",
    .examples = "n2ce bench svgd --particles 256 --iterations 500\n",
    .options = svgd_options,
    .run = run_svgd,
};
