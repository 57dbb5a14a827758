/* "bench step" and "bench svgd": how fast the engine is on this machine. */
#include "bench_model.h"
#include "bench_run.h"

static const n2ce_option step_options[] = {
    {"M", 'M', N2CE_OPTION_COUNT, "100", 1, 1e5, NULL, "M",
     "noise magnitude; 128 M rows of noise go through the network"},
    N2_BENCH_SECONDS_OPTION("2"),
    N2_BENCH_OPTIONS,
    {0},
};

static const n2ce_option svgd_options[] = {
    {"particles", 0, N2CE_OPTION_COUNT, "256", 2, 1e5, NULL, "N", "number of particles"},
    {"iterations", 0, N2CE_OPTION_COUNT, "500", 1, 1e9, NULL, "T", "iterations to time"},
    N2_BENCH_OPTIONS,
    {0},
};

static n2_node build_step(const n2ce_options *o, n2_graph *g, n2_bench_about *about) {
    n2_bench_model m;
    const int64_t magnitude = (int64_t)n2_options_count(o, "M");
    if (!n2_bench_model_in(g, n2_options_count(o, "seed"), &m)) return N2_NONE;
    about->title = "training step";
    about->flops = n2_bench_flops(&m, magnitude);
    return n2_bench_step(&m, magnitude);
}

static n2_node build_svgd(const n2ce_options *o, n2_graph *g, n2_bench_about *about) {
    n2_bench_model m;
    if (!n2_bench_model_in(g, n2_options_count(o, "seed"), &m)) return N2_NONE;
    n2_parameters start = n2_parameters_new(m.store, 2);
    const int64_t n = (int64_t)n2_options_count(o, "particles");
    about->title = "SVGD iteration";
    return n2_bench_svgd(&m, n2_parameter(&start, "particles", n2_dims(n, N2_BENCH_NZ), 1.7));
}

static n2ce_status run_step(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    const n2_bench b = {build_step, n2ce_options_number(o, "seconds"), 0};
    return n2_bench_run(ctx, o, &b, answer);
}

static n2ce_status run_svgd(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer) {
    const n2_bench b = {build_svgd, 0, n2_options_count(o, "iterations")};
    return n2_bench_run(ctx, o, &b, answer);
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
