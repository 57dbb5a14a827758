/* The paper's offline-optimisation model, for the benchmarks: nz 20, width 128, 16 blocks,
 * 7 rows of stages, batch 128, designs of 86 numbers and a value; the same work as the
 * scripts in bench/peers. */
#ifndef N2_BENCH_MODEL_H
#define N2_BENCH_MODEL_H

#include "model/ratio_loss.h"
#include "model/vae.h"

enum { N2_BENCH_NZ = 20, N2_BENCH_BATCH = 128, N2_BENCH_DIM = 87, N2_BENCH_STAGES = 7 };

typedef struct n2_bench_model {
    n2_store *store;
    n2_graph *graph;
    n2_parameters ratio_parameters, vae_parameters;
    n2_ratio_net ratio;
    n2_vae vae;
} n2_bench_model;

n2ce_status n2_bench_model_new(n2ce_ctx *ctx, uint64_t seed, n2_bench_model *m);
void n2_bench_model_free(n2_bench_model *m);

/* The same in a graph of one's own, and its store, which stay the caller's. False: the graph has
 * failed. */
bool n2_bench_model_in(n2_graph *g, uint64_t seed, n2_bench_model *m);

/* One training step at magnitude m: the ratio network, then encoder and decoder. */
n2_node n2_bench_step(n2_bench_model *m, int64_t magnitude);

/* One iteration of SVGD on `particles`; returns their mean log density. */
n2_node n2_bench_svgd(n2_bench_model *m, n2_tensor *particles);

/* Floating-point operations of a training step, counted as the plain algorithm does it:
 * every row through the whole network. */
double n2_bench_flops(const n2_bench_model *m, int64_t magnitude);

#endif
