/* The table of methods. */
#include "methods.h"

#include "latent_methods.h"

#include <string.h>

const n2_listed_method n2_methods[] = {
    {&n2_latent_method, NULL, NULL, false, 0},
    {&n2_latent_m1_method, NULL, "n2ce", false, 0},
    {&n2_latent_m10_method, NULL, "n2ce", false, 0},
    {&n2_latent_m1000_method, NULL, "n2ce", false, 0},
    {&n2_latent_k1_method, NULL, "n2ce", false, 0},
    {&n2_latent_gaussian_method, NULL, "n2ce", false, 0},
    {&n2_latent_langevin_method, NULL, "n2ce", false, 0},
    {&n2_latent_mle_method, NULL, "n2ce", false, 0},
    {&n2_latent_mle_langevin_method, NULL, "n2ce", false, 0},
    {&n2_gradient_method, n2_gradient_with, NULL, false, 1},
    {&n2_coms_method, n2_coms_with, NULL, false, 2},
    {&n2_cma_es_method, n2_cma_es_with, NULL, false, 3},
    {&n2_reinforce_method, n2_reinforce_with, NULL, false, 4},
    {&n2_cbas_method, n2_cbas_with, NULL, false, 5},
    {&n2_ddom_method, n2_ddom_with, NULL, false, 6},
    {&n2_random_method, NULL, NULL, true, 7},
    {&n2_top_method, NULL, NULL, true, 8},
    {&n2_cube_1_method, NULL, "random", true, 9},
    {&n2_cube_10_method, NULL, "random", true, 9},
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

n2ce_status n2_method_run(n2ce_ctx *ctx, const n2_listed_method *m, const n2_designs *offline,
                          uint64_t seed, const n2_effort *effort, n2_proposals *out) {
    if (offline->rows < 1)
        return n2_fail(ctx, N2CE_EINVAL, "%s has no designs to learn from.", m->method->name);
    if (m->with) return m->with(ctx, offline, seed, effort, out);
    return m->method->propose(ctx, offline, seed, out);
}
