/* What benchmarks of the engine share: a workload builds a graph; this times its runs where
 * --device says, or on processor and GPU one after the other, and tells. */
#ifndef N2_BENCH_RUN_H
#define N2_BENCH_RUN_H

#include "engine/plan.h"
#include "task/device_options.h"
#include "task/task.h"
#include "task/vocabulary.h"

/* Rows that every workload's table of options has: the last five, and a limit in time. */
#define N2_BENCH_OPTIONS                                                                     \
    {"plan",  'p',  N2CE_OPTION_FLAG,                                                        \
     "false", 0,    0,                                                                       \
     NULL,    NULL, "print the plan: steps, bytes, floating-point operations, time"},        \
        {"recompute",                                                                        \
         0,                                                                                  \
         N2CE_OPTION_WORD,                                                                   \
         "auto",                                                                             \
         0,                                                                                  \
         0,                                                                                  \
         "auto|always|never",                                                                \
         "WHEN",                                                                             \
         "make norms and activations again for gradients instead of keeping them: auto, if " \
         "memory is short, always or never"},                                                \
        N2_SEED_OPTION, N2_ANY_DEVICE_OPTION, N2_PICTURES_PRECISION_OPTION
#define N2_BENCH_SECONDS_OPTION(DEFAULT) \
    { "seconds", 0, N2CE_OPTION_REAL, DEFAULT, 0.01, 1e6, NULL, "S", "time to measure for" }

/* What a workload says of itself. */
typedef struct n2_bench_about {
    const char *title;  /* of a run */
    double flops;       /* of a run, as the plain algorithm counts; 0: as the plan does */
    int64_t pictures;   /* that a run trains on or makes; 0: none */
    int64_t parameters; /* 0: not told */
    n2ce_status status; /* of what came before the graph; a failure is told by the context */
} n2_bench_about;

typedef struct n2_bench {
    /* Builds a run into the graph of an empty store; the result is its output, a scalar, or none if
     * that failed, which the graph or `about` tell. */
    n2_node (*build)(const n2ce_options *o, n2_graph *g, n2_bench_about *about);
    double seconds; /* to measure for, or else so many runs */
    uint64_t runs;
} n2_bench;

n2ce_status n2_bench_run(n2ce_ctx *ctx, const n2ce_options *o, const n2_bench *bench,
                         n2ce_answer *answer);

#endif
