#include "bench_run.h"

#include "base/clock.h"
#include "base/numerics.h"
#include "comm/comm.h"
#include "cpu/cpu.h"
#include "cuda/cuda.h"
#include "rewrite/rewrites.h"

#include <stdlib.h>
#include <sys/resource.h>

static double peak_megabytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

enum { SAMPLES = 512 };

typedef struct timing {
    double compile, first, seconds; /* seconds: of all runs that count */
    uint64_t runs;
    double first_value, value; /* of the output after the first and the last run */
    double sample[SAMPLES];
    size_t n_samples; /* the latest are kept */
} timing;

static void add_sample(timing *t, double seconds) { t->sample[t->n_samples++ % SAMPLES] = seconds; }

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Milliseconds that a share of the runs does not exceed; samples are sorted. */
static double quantile_ms(const timing *t, double share) {
    const size_t n = t->n_samples < SAMPLES ? t->n_samples : SAMPLES;
    return 1e3 * t->sample[(size_t)(share * (double)(n - 1) + 0.5)];
}

/* Makes the graphs of several runs, and of many, if they are short. */
static n2ce_status warm_up(n2_plan *plan) {
    double start = n2_seconds();
    N2_TRY(n2_plan_run(plan));
    if (n2_seconds() - start > 0.02) return N2CE_OK;
    start = n2_seconds();
    N2_TRY(n2_plan_run_many(plan, 16));
    return n2_seconds() - start < 0.1 ? n2_plan_run_many(plan, 64) : N2CE_OK;
}

/* Ranks go on together: the clock is rank 0's. */
static n2ce_status wants_more(n2ce_ctx *ctx, const n2_bench *b, const timing *t, bool *more) {
    *more = !n2_cancelled(ctx) && (b->runs ? t->runs < b->runs : t->seconds < b->seconds);
    return n2_comm_decide(ctx, more);
}

/* Runs until the time or the number of runs is over (0: no such limit). A device is asked for
 * ever more runs at once, up to a twentieth of a second. */
static n2ce_status time_plan(n2ce_ctx *ctx, const n2_backend *backend, n2_plan *plan,
                             const n2_bench *b, timing *t) {
    double start = n2_seconds();
    uint64_t batch = 1;
    N2_TRY(n2_plan_run(plan));
    t->first = n2_seconds() - start;
    t->first_value = n2_plan_scalar(plan, 0);
    if (backend->device) N2_TRY(warm_up(plan));
    start = n2_seconds();
    bool more;
    N2_TRY(wants_more(ctx, b, t, &more));
    while (more) {
        const double before = t->seconds;
        if (b->runs && batch > b->runs - t->runs) batch = b->runs - t->runs;
        N2_TRY(n2_plan_run_many(plan, batch));
        t->runs += batch;
        t->seconds = n2_seconds() - start;
        add_sample(t, (t->seconds - before) / (double)batch);
        if (backend->device && t->seconds - before < 0.05) batch *= 2;
        n2_progress(ctx, b->runs ? (double)t->runs : t->seconds,
                    b->runs ? (double)b->runs : b->seconds);
        N2_TRY(wants_more(ctx, b, t, &more));
    }
    if (t->runs == 0) return N2CE_ECANCELED;
    qsort(t->sample, t->n_samples < SAMPLES ? t->n_samples : SAMPLES, sizeof t->sample[0], by_size);
    t->value = n2_plan_scalar(plan, 0);
    return N2CE_OK;
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

static void describe_pictures(n2_writer *a, const n2_bench_about *about, const timing *t) {
    if (about->parameters) {
        n2_text_add(&a->text, "%lld parameters\n", (long long)about->parameters);
        n2_text_add(&a->json, ", \"parameters\": %lld", (long long)about->parameters);
    }
    if (!about->pictures) return;
    const double speed = 1e3 * (double)about->pictures / quantile_ms(t, 0.5);
    n2_text_add(&a->text, "%.1f images/s, %lld a run\n", speed, (long long)about->pictures);
    n2_text_add(&a->json, ", \"batch\": %lld, \"images_per_s\": %.6g", (long long)about->pictures,
                speed);
}

static void show_time(n2_writer *a, const timing *t, const n2_bench_about *about, double flops,
                      size_t plan_bytes) {
    const double ms = 1e3 * t->seconds / (double)t->runs, plan_mb = (double)plan_bytes / 1048576;
    const double gflops = flops * (double)t->runs / t->seconds * 1e-9;
    n2_text_add(&a->text,
                "%s: %.3f ms a run, %.1f GFLOP/s as the plain algorithm counts, %llu runs\n",
                about->title, ms, gflops, (unsigned long long)t->runs);
    n2_text_add(&a->text, "median %.3f ms; eight of ten runs between %.3f and %.3f ms\n",
                quantile_ms(t, 0.5), quantile_ms(t, 0.1), quantile_ms(t, 0.9));
    n2_text_add(&a->text,
                "compiled in %.1f ms, first run %.1f ms; plan %.0f MB, peak memory %.0f MB\n",
                1e3 * t->compile, 1e3 * t->first, plan_mb, peak_megabytes());
    n2_text_add(&a->json, "{\"ms\": %.6g, \"gflops\": %.6g, \"peak_mb\": %.1f, \"steps\": %llu, ",
                ms, gflops, peak_megabytes(), (unsigned long long)t->runs);
    n2_text_add(&a->json, "\"median_ms\": %.6g, \"low_ms\": %.6g, \"high_ms\": %.6g, ",
                quantile_ms(t, 0.5), quantile_ms(t, 0.1), quantile_ms(t, 0.9));
    n2_text_add(&a->json,
                "\"seconds\": %.6g, \"compile_ms\": %.4g, \"first_ms\": %.4g, \"plan_mb\": %.1f, ",
                t->seconds, 1e3 * t->compile, 1e3 * t->first, plan_mb);
    n2_text_add(&a->brief, "%.6g\n", ms);
    n2_text_add(&a->kept, "%llu runs\n", (unsigned long long)t->runs);
}

static n2ce_status show(n2_writer *a, const timing *t, const n2_bench_about *about, n2_plan *plan,
                        bool with_plan) {
    const n2_plan_size size = n2_plan_measure(plan);
    const n2_backend *backend = n2_plan_backend(plan);
    show_time(a, t, about, about->flops > 0 ? about->flops : size.flops, size.bytes);
    n2_text_add(&a->json, "\"value\": ");
    n2_text_add_number(&a->json, t->value);
    n2_text_add(&a->json, ", \"first_value\": ");
    n2_text_add_number(&a->json, t->first_value);
    n2_text_add(&a->json, ", \"device\": \"%s\"", backend->name);
    describe_pictures(a, about, t);
    describe_device(a, backend, plan);
    n2_text_add(&a->json, "}");
    if (!with_plan) return N2CE_OK;
    n2_plan_print(plan, &a->text);
    return n2_plan_profile(plan, &a->text);
}

static n2_recompute recompute_of(const n2ce_options *o) {
    return n2_options_has_word(o, "recompute", "always")  ? N2_RECOMPUTE_ALWAYS
           : n2_options_has_word(o, "recompute", "never") ? N2_RECOMPUTE_NEVER
                                                          : N2_RECOMPUTE_IF_NEEDED;
}

static n2ce_status time_graph(n2ce_ctx *ctx, const n2ce_options *o, const n2_bench *b,
                              const n2_backend *backend, n2_graph *g, n2_writer *a,
                              double *seconds) {
    n2_plan *plan;
    n2_bench_about about = {.title = NULL};
    timing t = {.runs = 0};
    const n2_node output = b->build(o, g, &about);
    N2_TRY(about.status);
    const double start = n2_seconds();
    N2_TRY(n2_plan_compile_with(g, backend, &output, 1, recompute_of(o), &plan));
    t.compile = n2_seconds() - start;
    n2_plan_seed(plan, n2_options_count(o, "seed"), 0);
    n2_plan_time(plan, a && n2_options_flag(o, "plan"));
    n2ce_status status = time_plan(ctx, backend, plan, b, &t);
    *seconds = t.runs ? t.seconds / (double)t.runs : 0;
    if (status == N2CE_OK && a) status = show(a, &t, &about, plan, n2_options_flag(o, "plan"));
    n2_plan_free(plan);
    return status;
}

/* a NULL: measures only. */
static n2ce_status bench_on(n2ce_ctx *ctx, const n2ce_options *o, const n2_bench *b,
                            const n2_backend *backend, n2_writer *a, double *seconds) {
    n2_store *store;
    N2_TRY(n2_store_new(ctx, sizeof(float), &store));
    n2_graph *g = n2_graph_new(store);
    const n2ce_status status = g ? time_graph(ctx, o, b, backend, g, a, seconds) : N2CE_ENOMEM;
    n2_graph_free(g);
    n2_store_free(store);
    return status;
}

/* A short look, for "auto". */
typedef struct look {
    n2ce_ctx *ctx;
    const n2ce_options *o;
    n2_bench b;
} look;

static n2ce_status look_at(void *user, const n2_backend *backend, double *seconds) {
    const look *l = user;
    return bench_on(l->ctx, l->o, &l->b, backend, NULL, seconds);
}

static n2ce_status bench_one(n2ce_ctx *ctx, const n2ce_options *o, const n2_bench *b,
                             n2_writer *a) {
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
static n2ce_status bench_all(n2ce_ctx *ctx, const n2ce_options *o, const n2_bench *b,
                             n2_writer *a) {
    double seconds[2] = {0, 0};
    const n2_precision precision = n2_precision_of_options(o);
    const n2_cuda_options options = {.strict = precision.strict, .narrow = precision.narrow};
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

n2ce_status n2_bench_run(n2ce_ctx *ctx, const n2ce_options *o, const n2_bench *b,
                         n2ce_answer *answer) {
    n2_writer a = n2_writer_new(ctx);
    const n2ce_status status =
        n2_wants_all_devices(o) ? bench_all(ctx, o, b, &a) : bench_one(ctx, o, b, &a);
    n2_text_add(&a.json, "\n");
    if (status == N2CE_OK) return n2_writer_take(&a, answer);
    n2_writer_free(&a);
    return status;
}
