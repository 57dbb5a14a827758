#include "bench_model.h"

#include "rewrite/rewrites.h"
#include "sampler/svgd.h"

#include <math.h>

bool n2_bench_model_in(n2_graph *g, uint64_t seed, n2_bench_model *m) {
    *m = (n2_bench_model){.store = n2_graph_store(g), .graph = g};
    m->ratio_parameters = n2_parameters_new(m->store, seed);
    m->vae_parameters = n2_parameters_new(m->store, seed);
    m->ratio = n2_ratio_net_new(&m->ratio_parameters, N2_BENCH_NZ, 128, 16, N2_BENCH_STAGES);
    m->vae = n2_vae_new(&m->vae_parameters, N2_BENCH_DIM, N2_BENCH_NZ, 32);
    if (!m->ratio_parameters.failed && !m->vae_parameters.failed) return true;
    return n2_graph_out_of_memory(g);
}

n2ce_status n2_bench_model_new(n2ce_ctx *ctx, uint64_t seed, n2_bench_model *m) {
    *m = (n2_bench_model){.store = NULL};
    N2_TRY(n2_store_new(ctx, sizeof(float), &m->store));
    m->graph = n2_graph_new(m->store);
    return m->graph && n2_bench_model_in(m->graph, seed, m) ? N2CE_OK : N2CE_ENOMEM;
}

void n2_bench_model_free(n2_bench_model *m) {
    n2_graph_free(m->graph);
    if (m->store) n2_store_free(m->store);
}

static n2_node vae_loss(n2_bench_model *m, n2_node x, n2_node mean, n2_node logvar, n2_node z) {
    n2_graph *g = m->graph;
    const double n = N2_BENCH_BATCH;
    const n2_node miss = n2g_sub(g, n2_vae_decode(g, &m->vae, z), x);
    const n2_node fit = n2g_scale(g, n2g_total(g, n2g_mul(g, miss, miss)), 50 / n);
    const n2_node f = n2_ratio_mean(g, &m->ratio, z);
    return n2g_add(g, fit, n2g_scale(g, n2g_sub(g, n2g_gaussian_kl(g, mean, logvar), f), 0.75));
}

n2_node n2_bench_step(n2_bench_model *m, int64_t magnitude) {
    /* of the paper's waymarks, and the data's 1 */
    static const double variance[N2_BENCH_STAGES + 1] = {0.01,   0.3237, 0.5165, 0.6322,
                                                         0.7132, 0.7734, 0.9997, 1};
    n2_graph *g = m->graph;
    n2_parameters data = n2_parameters_new(m->store, 1);
    n2_tensor *designs = n2_parameter(&data, "designs", n2_dims(N2_BENCH_BATCH, N2_BENCH_DIM), 1);
    const n2_node x = n2g_read(g, designs);
    n2_node mean, logvar;
    n2_vae_encode(g, &m->vae, x, &mean, &logvar);
    const n2_node eps = n2g_randn(g, n2_dims(N2_BENCH_BATCH, N2_BENCH_NZ));
    const n2_node z = n2g_reparameterise(g, mean, logvar, eps);
    const n2_ratio_task task = {
        .net = &m->ratio,
        .waymarks = n2_waymarks_new(m->store, "waymarks", variance, N2_BENCH_STAGES + 1),
        .times = magnitude,
        .magnitude = (double)magnitude};
    const n2_node loss = n2_ratio_loss(g, &task, n2g_detach(g, z));
    const n2_optimiser for_ratio = {.adam = {0.9, 0.999, 1e-8, 0}, .rate = 5e-5, .clip = 100};
    n2_minimise(g, &for_ratio, "ratio", &m->ratio_parameters, loss, NULL);
    const n2_optimiser for_vae = {.adam = {0.5, 0.999, 1e-8, 0}, .rate = 1e-4, .clip = 100};
    n2_minimise(g, &for_vae, "vae", &m->vae_parameters, vae_loss(m, x, mean, logvar, z), NULL);
    return loss;
}

n2_node n2_bench_svgd(n2_bench_model *m, n2_tensor *particles) {
    n2_graph *g = m->graph;
    const n2_node z = n2g_read(g, particles);
    const n2_node y = n2g_slice(g, n2_vae_decode(g, &m->vae, z), 1, N2_BENCH_DIM - 1, 1);
    const n2_node miss = n2g_affine(g, y, -1, 1);
    const n2_node condition = n2g_scale(g, n2g_total(g, n2g_mul(g, miss, miss)), -20);
    const n2_node prior = n2g_scale(g, n2g_total(g, n2g_mul(g, z, z)), -0.5);
    const n2_node f = n2g_total(g, n2_ratio_net_sum(g, &m->ratio, z));
    const n2_node density = n2g_add(g, n2g_add(g, f, prior), condition);
    n2_node score;
    n2g_watch(g, density);
    n2g_grad(g, density, &z, 1, &score);
    const n2_node downhill = n2g_neg(g, n2_svgd_direction(g, z, score));
    n2_tensor *const tensors[] = {particles, n2_store_add(m->store, "svgd.m", particles->shape),
                                  n2_store_add(m->store, "svgd.v", particles->shape)};
    n2_tensor *count = n2_store_add(m->store, "svgd.step", n2_scalar_shape());
    const n2_node step = n2g_assign(g, count, n2g_affine(g, n2g_read(g, count), 1, 1));
    const n2_adam adam = {0.9, 0.999, 1e-8, 0};
    n2g_adam_update(g, &adam, tensors, downhill, n2g_constant(g, 0.3), n2g_constant(g, 1), step);
    return n2g_scale(g, density, 1 / (double)particles->shape.dim[0]);
}

double n2_bench_flops(const n2_bench_model *m, int64_t magnitude) {
    const double p = (double)n2_parameters_count(&m->ratio_parameters), n = N2_BENCH_BATCH;
    return 6 * p * n * (1 + (double)magnitude) + 4 * p * n * N2_BENCH_STAGES;
}
