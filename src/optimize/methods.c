/* The table of methods. */
#include "methods.h"

#include "draws.h"
#include "latent_methods.h"

#include <string.h>

#define LATENT(name, variant_of) \
    { &name##_method, NULL, name##_aim, variant_of, false, 0 }

const n2_listed_method n2_methods[] = {
    LATENT(n2_latent, NULL),
    LATENT(n2_latent_m1, "n2ce"),
    LATENT(n2_latent_m10, "n2ce"),
    LATENT(n2_latent_m1000, "n2ce"),
    LATENT(n2_latent_k1, "n2ce"),
    LATENT(n2_latent_k2, "n2ce"),
    LATENT(n2_latent_k4, "n2ce"),
    LATENT(n2_latent_k8, "n2ce"),
    LATENT(n2_latent_gaussian, "n2ce"),
    LATENT(n2_latent_langevin, "n2ce"),
    LATENT(n2_latent_mle, "n2ce"),
    LATENT(n2_latent_mle_langevin, "n2ce"),
    LATENT(n2_draws, "n2ce"),
    LATENT(n2_draws_m1, "n2ce"),
    LATENT(n2_draws_k1, "n2ce"),
    LATENT(n2_draws_k1_m1, "n2ce"),
    LATENT(n2_draws_gaussian, "n2ce"),
    LATENT(n2_draws_mle, "n2ce"),
    {&n2_gradient_method, n2_gradient_with, NULL, NULL, false, 1},
    {&n2_coms_method, n2_coms_with, NULL, NULL, false, 2},
    {&n2_cma_es_method, n2_cma_es_with, NULL, NULL, false, 3},
    {&n2_reinforce_method, n2_reinforce_with, NULL, NULL, false, 4},
    {&n2_cbas_method, n2_cbas_with, NULL, NULL, false, 5},
    {&n2_auto_cbas_method, n2_auto_cbas_with, NULL, NULL, false, 12},
    {&n2_mins_method, n2_mins_with, NULL, NULL, false, 13},
    {&n2_gp_qei_method, n2_gp_qei_with, NULL, NULL, false, 14},
    {&n2_ddom_method, n2_ddom_with, NULL, NULL, false, 6},
    {&n2_bonet_method, n2_bonet_with, NULL, NULL, false, 15},
    {&n2_gbm_rank_method, n2_gbm_rank_with, NULL, NULL, false, 10},
    {&n2_mlp_evolve_method, n2_mlp_evolve_with, NULL, NULL, false, 11},
    {&n2_random_method, NULL, NULL, NULL, true, 7},
    {&n2_top_method, NULL, NULL, NULL, true, 8},
    {&n2_cube_05_method, NULL, NULL, "random", true, 9},
    {&n2_cube_1_method, NULL, NULL, "random", true, 9},
    {&n2_cube_5_method, NULL, NULL, "random", true, 9},
    {&n2_cube_10_method, NULL, NULL, "random", true, 9},
};

const size_t n2_method_count = sizeof n2_methods / sizeof n2_methods[0];

const n2_listed_method *n2_method_find(const char *name) {
    for (size_t i = 0; i < n2_method_count; i++)
        if (strcmp(n2_methods[i].method->name, name) == 0) return &n2_methods[i];
    return NULL;
}

static uint64_t divide(uint64_t published, uint64_t by, uint64_t least) {
    const uint64_t share = published / (by ? by : 1), floor = published < least ? published : least;
    return share > floor ? share : floor;
}

int64_t n2_effort_width(const n2_effort *effort, int64_t published) {
    return (int64_t)divide((uint64_t)published, effort->scale, (uint64_t)effort->least_width);
}

uint64_t n2_effort_steps(const n2_effort *effort, uint64_t published) {
    return divide(published, effort->scale, effort->least_steps);
}

static n2ce_status run_here(n2ce_ctx *ctx, const n2_listed_method *m, const n2_designs *offline,
                            uint64_t seed, const n2_effort *effort, const n2_aims *aims,
                            n2_proposals *out) {
    if (m->aim) return m->aim(ctx, offline, seed, effort->choice, aims, out);
    if (m->with) return m->with(ctx, offline, seed, effort, out);
    return m->method->propose(ctx, offline, seed, out);
}

n2ce_status n2_method_run(n2ce_ctx *ctx, const n2_listed_method *m, const n2_designs *offline,
                          uint64_t seed, const n2_effort *effort, const n2_aims *aims,
                          n2_proposals *out) {
    const n2_proposals asked = *out;
    if (offline->rows < 1)
        return n2_fail(ctx, N2CE_EINVAL, "%s has no designs to learn from.", m->method->name);
    const n2ce_status status = run_here(ctx, m, offline, seed, effort, aims, out);
    if (!n2_choice_retreat(effort->choice, ctx, status)) return status;
    *out = asked;
    return run_here(ctx, m, offline, seed, effort, aims, out);
}
