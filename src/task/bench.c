/* "bench step" and "bench svgd": how fast the engine is on this machine. */
#include "bench_model.h"
#include "task.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

static const n2ce_option step_options[] = {
    {"M", 'M', N2CE_OPTION_COUNT, "100", 1, 1e5, NULL, "M",
     "noise magnitude; 128 M rows of noise go through the network"},
    {"seconds", 0, N2CE_OPTION_REAL, "2", 0.01, 1e6, NULL, "S", "time to measure for"},
    {"plan", 'p', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,
     "print the plan: steps, bytes, floating-point operations, time"},
    {"seed", 's', N2CE_OPTION_COUNT, "0", 0, 9007199254740992.0, NULL, "S", "random seed"},
    {0},
};

static const n2ce_option svgd_options[] = {
    {"particles", 0, N2CE_OPTION_COUNT, "256", 2, 1e5, NULL, "N", "number of particles"},
    {"iterations", 0, N2CE_OPTION_COUNT, "500", 1, 1e9, NULL, "T", "iterations to time"},
    {"plan", 'p', N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL, "print the plan"},
    {"seed", 's', N2CE_OPTION_COUNT, "0", 0, 9007199254740992.0, NULL, "S", "random seed"},
    {0},
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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

/* Runs until the time or the number of runs is over (0: no such limit). */
static n2ce_status time_plan(n2ce_ctx *ctx, n2_plan *plan, double seconds, uint64_t runs,
                             timing *t) {
    double start = now();
    N2_TRY(n2_plan_run(plan));
    t->first = now() - start;
    start = now();
    while (!n2_cancelled(ctx) && (runs ? t->runs < runs : t->seconds < seconds)) {
        N2_TRY(n2_plan_run(plan));
        t->runs++;
        t->seconds = now() - start;
        n2_progress(ctx, runs ? (double)t->runs : t->seconds, runs ? (double)runs : seconds);
    }
    t->value = n2_plan_scalar(plan, 0);
    return t->runs ? N2CE_OK : N2CE_ECANCELED;
}

static n2ce_status show(n2ce_ctx *ctx, const timing *t, const n2_plan *plan, bool with_plan,
                        n2ce_answer *answer) {
    const double ms = 1e3 * t->seconds / (double)t->runs;
    const double gflops = t->flops * (double)t->runs / t->seconds * 1e-9;
    n2_text text = n2_text_new(ctx), json = n2_text_new(ctx), brief = n2_text_new(ctx),
            kept = n2_text_new(ctx);
    n2_text_add(&text, "%s: %.3f ms a run, %.1f GFLOP/s as the plain algorithm counts, %llu runs\n",
                t->title, ms, gflops, (unsigned long long)t->runs);
    n2_text_add(&text, "compiled in %.1f ms, first run %.1f ms, peak memory %.0f MB\n",
                1e3 * t->compile, 1e3 * t->first, peak_megabytes());
    if (with_plan) n2_plan_print(plan, &text);
    n2_text_add(&json, "{\"ms\": %.6g, \"gflops\": %.6g, \"peak_mb\": %.1f, \"steps\": %llu, ", ms,
                gflops, peak_megabytes(), (unsigned long long)t->runs);
    n2_text_add(&json, "\"seconds\": %.6g, \"compile_ms\": %.4g, \"first_ms\": %.4g, \"value\": ",
                t->seconds, 1e3 * t->compile, 1e3 * t->first);
    n2_text_add_number(&json, t->value);
    n2_text_add(&json, "}\n");
    n2_text_add(&brief, "%.6g\n", ms);
    n2_text_add(&kept, "%llu runs\n", (unsigned long long)t->runs);
    n2ce_status status = n2_text_take(&text, &answer->text);
    if (status == N2CE_OK) status = n2_text_take(&json, &answer->json);
    if (status == N2CE_OK) status = n2_text_take(&brief, &answer->brief);
    if (status == N2CE_OK) status = n2_text_take(&kept, &answer->kept);
    n2_text_free(&text);
    n2_text_free(&json);
    n2_text_free(&brief);
    n2_text_free(&kept);
    return status;
}

/* Compiles the model's graph and times it. */
static n2ce_status bench(n2ce_ctx *ctx, const n2ce_options *o, n2_bench_model *m, n2_node output,
                         double seconds, uint64_t runs, timing *t, n2ce_answer *answer) {
    n2_plan *plan;
    const double start = now();
    N2_TRY(n2_plan_compile(m->graph, n2_cpu_backend(), &output, 1, &plan));
    t->compile = now() - start;
    n2_plan_seed(plan, n2_options_count(o, "seed"), 0);
    n2_plan_time(plan, n2_options_flag(o, "plan"));
    n2ce_status status = time_plan(ctx, plan, seconds, runs, t);
    if (status == N2CE_OK) status = show(ctx, t, plan, n2_options_flag(o, "plan"), answer);
    n2_plan_free(plan);
    return status;
}

static n2ce_status run_step(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    n2_bench_model m;
    const int64_t magnitude = (int64_t)n2_options_count(o, "M");
    n2ce_status status = n2_bench_model_new(ctx, n2_options_count(o, "seed"), &m);
    if (status == N2CE_OK) {
        const n2_node loss = n2_bench_step(&m, magnitude);
        timing t = {.title = "training step", .flops = n2_bench_flops(&m, magnitude)};
        status = bench(ctx, o, &m, loss, n2ce_options_number(o, "seconds"), 0, &t, answer);
    }
    n2_bench_model_free(&m);
    return status;
}

static n2ce_status run_svgd(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    n2_bench_model m;
    n2ce_status status = n2_bench_model_new(ctx, n2_options_count(o, "seed"), &m);
    if (status == N2CE_OK) {
        n2_parameters start = n2_parameters_new(m.store, 2);
        const int64_t n = (int64_t)n2_options_count(o, "particles");
        n2_tensor *particles = n2_parameter(&start, "particles", n2_dims(n, N2_BENCH_NZ), 1.7);
        const n2_node density = n2_bench_svgd(&m, particles);
        timing t = {.title = "SVGD iteration"};
        status = bench(ctx, o, &m, density, 0, n2_options_count(o, "iterations"), &t, answer);
    }
    n2_bench_model_free(&m);
    return status;
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
