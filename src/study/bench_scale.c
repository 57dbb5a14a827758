/* "bench scale": what a training step costs on 1, 2, 4 ... ranks, what they send each other, and
 * what that makes of more ranks than were measured. */
#include "base/clock.h"
#include "base/numerics.h"
#include "bench_model.h"
#include "comm/comm.h"
#include "cpu/cpu.h"
#include "engine/plan.h"
#include "engine/plan_ranks.h"
#include "task/task.h"
#include "task/vocabulary.h"

#include <math.h>

static const n2ce_option scale_options[] = {
    {"M", 'M', N2CE_OPTION_COUNT, "100", 1, 1e5, NULL, "M",
     "noise magnitude; 128 M rows of noise go through the network"},
    {"seconds", 0, N2CE_OPTION_REAL, "2", 0.01, 1e6, NULL, "S",
     "time to measure each number of ranks for"},
    {"step", 0, N2CE_OPTION_REAL, "0", 0, 1e6, NULL, "MS",
     "project with this time of a step on one rank, a GPU say, and not with the one measured"},
    {"bandwidth", 0, N2CE_OPTION_REAL, "0", 0, 1e6, NULL, "GB",
     "project with so many gigabytes a second between ranks, and not with those measured"},
    {"latency", 0, N2CE_OPTION_REAL, "0", 0, 1e6, NULL, "US",
     "project with so many microseconds a message, and not with those measured"},
    {"most", 0, N2CE_OPTION_COUNT, "1024", 1, 1e6, NULL, "R", "ranks to project to"},
    N2_SEED_OPTION,
    {0},
};

enum { COUNTS = 16 };

typedef struct measured {
    int ranks;
    double ms, bytes, messages; /* of a step: sent by rank 0 */
} measured;

/* What the model is made of. */
typedef struct constants {
    double step, shared;       /* seconds on one rank; the part of it that ranks share */
    double numbers;            /* bytes of all sums of a step */
    double bandwidth, latency; /* bytes a second; seconds a message */
    double collectives;        /* a step */
} constants;

typedef struct scale {
    n2ce_ctx *ctx;
    const n2ce_options *o;
    n2_plan *plan;
    measured of[COUNTS];
    size_t n;
    constants c;
} scale;

/* ---- measuring ----------------------------------------------------------- */

static n2ce_status time_runs(scale *s, uint64_t runs, double *seconds) {
    bool together = true;
    N2_TRY(n2_comm_any(s->ctx, &together)); /* all begin at the same time */
    const double start = n2_seconds();
    N2_TRY(n2_plan_run_many(s->plan, runs));
    *seconds = n2_seconds() - start;
    return N2CE_OK;
}

/* As many runs as the time allows, by rank 0's clock. */
static n2ce_status measure(scale *s, measured *m) {
    double seconds;
    N2_TRY(time_runs(s, 1, &seconds));
    N2_TRY(time_runs(s, 2, &seconds));
    const double limit = n2ce_options_number(s->o, "seconds");
    uint64_t runs = (uint64_t)fmax(2, fmin(1e6, limit / (seconds / 2)));
    N2_TRY(n2_comm_broadcast(s->ctx, 0, &runs, sizeof runs));
    const n2_comm_traffic before = n2_comm_sent(s->ctx);
    N2_TRY(time_runs(s, runs, &seconds));
    const n2_comm_traffic after = n2_comm_sent(s->ctx);
    m->ms = 1e3 * seconds / (double)runs;
    m->bytes = (after.bytes - before.bytes) / (double)runs;
    m->messages = (after.exchanges - before.exchanges) / (double)runs;
    return N2CE_OK;
}

/* Ranks that are not among the first k wait for those that are. */
static n2ce_status measure_counts(scale *s) {
    const int ranks = n2_ranks(s->ctx), rank = n2_rank(s->ctx);
    for (int k = 1; k <= ranks && s->n < COUNTS; k *= 2) {
        measured *m = &s->of[s->n++];
        *m = (measured){.ranks = k};
        n2_comm_few(s->ctx, k);
        const n2ce_status status = rank < k ? measure(s, m) : N2CE_OK;
        n2_comm_few(s->ctx, 0);
        N2_TRY(status);
        N2_TRY(n2_comm_broadcast(s->ctx, 0, m, sizeof *m));
    }
    return N2CE_OK;
}

/* Seconds of a sum of so many numbers over all ranks. */
static n2ce_status time_sum(n2ce_ctx *ctx, float *x, size_t n, int ranks, double *seconds) {
    enum { TIMES = 20 };
    N2_TRY(n2_comm_sum(ctx, x, n, sizeof *x, ranks));
    const double start = n2_seconds();
    for (int i = 0; i < TIMES; i++) N2_TRY(n2_comm_sum(ctx, x, n, sizeof *x, ranks));
    *seconds = (n2_seconds() - start) / TIMES;
    return n2_comm_broadcast(ctx, 0, seconds, sizeof *seconds);
}

/* From sums of a number and of a million: a sum sends 2 (1 - 1/R) times its bytes. */
static n2ce_status measure_link(scale *s) {
    enum { MANY = 1 << 20 };
    int ranks = 1;
    double one, many;
    while (2 * ranks <= n2_ranks(s->ctx)) ranks *= 2;
    if (ranks == 1) return N2CE_OK;
    float *x = n2_alloc(s->ctx, MANY, sizeof *x);
    if (!x) return N2CE_ENOMEM;
    n2ce_status status = time_sum(s->ctx, x, 1, ranks, &one);
    if (status == N2CE_OK) status = time_sum(s->ctx, x, MANY, ranks, &many);
    n2_free(s->ctx, x);
    N2_TRY(status);
    const double sent = 2 * (1 - 1.0 / ranks) * MANY * sizeof *x;
    s->c.latency = one / log2(ranks);
    s->c.bandwidth = sent / fmax(many - 2 * one, 1e-9);
    return N2CE_OK;
}

/* Which part of a step is shared, from a few timed runs of a rank alone. */
static n2ce_status measure_shared(scale *s) {
    enum { RUNS = 4 };
    n2_comm_alone(s->ctx);
    n2_plan_time(s->plan, true);
    const n2ce_status status = n2_plan_run_many(s->plan, RUNS);
    n2_plan_time(s->plan, false);
    n2_comm_together(s->ctx);
    s->c.shared = n2_plan_shared_time(s->plan);
    N2_TRY(status);
    return n2_comm_broadcast(s->ctx, 0, &s->c.shared, sizeof s->c.shared);
}

/* ---- the model ----------------------------------------------------------- */

/* A step on so many ranks of one batch (`rows` 1), or of one as many times as large. */
static double model(const constants *c, double ranks, double rows) {
    const double alone = c->step * (1 - c->shared), work = c->step * c->shared * rows / ranks;
    if (ranks <= 1) return alone + work;
    const double sent = 2 * (1 - 1 / ranks) * c->numbers / c->bandwidth;
    return alone + work + sent + c->collectives * 2 * log2(ranks) * c->latency;
}

static void say_link(const scale *s, n2_text *out) {
    if (s->c.bandwidth > 0)
        n2_text_add(out, "%.1f MB of sums a step, %.2f GB/s and %.1f us a message between ranks\n",
                    1e-6 * s->c.numbers, 1e-9 * s->c.bandwidth, 1e6 * s->c.latency);
    else
        n2_text_add(out, "one rank: add --ranks, or mpirun, to measure what lies between ranks\n");
}

static void add_measured(const scale *s, n2_writer *w) {
    n2_text_add(&w->text, "%8s %10s %10s %10s %8s\n", "ranks", "ms a step", "model", "MB sent",
                "of ideal");
    n2_text_add(&w->json, "\"measured\": [");
    for (size_t i = 0; i < s->n; i++) {
        const measured *m = &s->of[i];
        const double made = 1e3 * model(&s->c, m->ranks, 1);
        n2_text_add(&w->text, "%8d %10.3f %10.3f %10.3f %7.0f %%\n", m->ranks, m->ms, made,
                    1e-6 * m->bytes, 100 * s->of[0].ms / m->ms / m->ranks);
        n2_text_add(&w->json,
                    "%s{\"ranks\": %d, \"ms\": %.6g, \"model_ms\": %.6g, \"bytes\": %.6g, "
                    "\"messages\": %.6g}",
                    i ? ", " : "", m->ranks, m->ms, made, m->bytes, m->messages);
        n2_text_add(&w->brief, "%d %.6g\n", m->ranks, m->ms);
    }
    n2_text_add(&w->json, "], ");
}

static void add_projected(const scale *s, n2_writer *w) {
    const double most = n2ce_options_number(s->o, "most");
    n2_text_add(&w->text, "\nprojection by the model, nothing of it measured\n%8s %16s %22s\n",
                "ranks", "ms, one batch", "ms, a batch a rank");
    n2_text_add(&w->json, "\"projected\": [");
    for (double r = 1; r <= most && s->c.bandwidth > 0; r *= 2) {
        const double one = 1e3 * model(&s->c, r, 1), more = 1e3 * model(&s->c, r, r);
        n2_text_add(&w->text, "%8.0f %16.3f %22.3f\n", r, one, more);
        n2_text_add(&w->json, "%s{\"ranks\": %.0f, \"ms\": %.6g, \"ms_batch_a_rank\": %.6g}",
                    r > 1 ? ", " : "", r, one, more);
    }
    n2_text_add(&w->json, "]}\n");
}

static void or_else(double *constant, double said, double unit) {
    if (said > 0) *constant = said * unit;
}

static n2ce_status write_scale(scale *s, n2ce_answer *answer) {
    n2_writer w = n2_writer_new(s->ctx);
    s->c.step = 1e-3 * s->of[0].ms;
    const measured *last = &s->of[s->n - 1];
    s->c.numbers = last->ranks > 1 ? last->bytes / (2 * (1 - 1.0 / last->ranks)) : 0;
    s->c.collectives = last->ranks > 1 ? last->messages / (2 * log2(last->ranks)) : 0;
    n2_text_add(&w.text, "a step on one rank: %.3f ms, %.1f %% of it shared between ranks\n",
                1e3 * s->c.step, 100 * s->c.shared);
    say_link(s, &w.text);
    n2_text_add(&w.json,
                "{\"threads\": %d, \"step_ms\": %.6g, \"shared\": %.6g, \"sum_bytes\": %.6g, "
                "\"bandwidth\": %.6g, \"latency\": %.6g, ",
                n2_ctx_threads(s->ctx), 1e3 * s->c.step, s->c.shared, s->c.numbers, s->c.bandwidth,
                s->c.latency);
    add_measured(s, &w);
    or_else(&s->c.step, n2ce_options_number(s->o, "step"), 1e-3);
    or_else(&s->c.bandwidth, n2ce_options_number(s->o, "bandwidth"), 1e9);
    or_else(&s->c.latency, n2ce_options_number(s->o, "latency"), 1e-6);
    add_projected(s, &w);
    n2_text_add(&w.kept, "nothing\n");
    return n2_writer_take(&w, answer);
}

static n2ce_status run_model(scale *s, n2_bench_model *m, n2ce_answer *answer) {
    const n2_node loss = n2_bench_step(m, (int64_t)n2_options_count(s->o, "M"));
    N2_TRY(n2_plan_compile(m->graph, n2_cpu_backend(), &loss, 1, &s->plan));
    n2_plan_seed(s->plan, n2_options_count(s->o, "seed"), 0);
    n2ce_status status = measure_shared(s);
    if (status == N2CE_OK) status = measure_link(s);
    if (status == N2CE_OK) status = measure_counts(s);
    n2_plan_free(s->plan);
    return status == N2CE_OK ? write_scale(s, answer) : status;
}

static n2ce_status run_scale(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    scale s = {.ctx = ctx, .o = o};
    n2_bench_model m;
    n2ce_status status = n2_bench_model_new(ctx, n2_options_count(o, "seed"), &m);
    if (status == N2CE_OK) status = run_model(&s, &m, answer);
    n2_bench_model_free(&m);
    return status;
}

const n2ce_task n2_bench_scale_task = {
    .name = "bench scale",
    .summary = "time the training step on 1, 2, 4 ... ranks, and project to more",
    .description =
        "The step of n2ce bench step, shared by as many of the ranks as are a power of two: time,\n"
        "bytes sent, and a model of both, a step's own work, bytes by bandwidth and messages by\n"
        "latency, from constants that are measured along the way or given. Beyond the ranks that\n"
        "were measured it is a projection, and marked so.\n",
    .examples = "n2ce bench scale --ranks 4\nmpirun -n 8 n2ce bench scale --json\n",
    .options = scale_options,
    .run = run_scale,
};
