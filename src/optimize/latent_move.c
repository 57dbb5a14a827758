/* How codes move towards a value: by SVGD or Langevin dynamics. */
#include "latent_model.h"
#include "rewrite/rewrites.h"
#include "sampler/svgd.h"

static const double RATE = 0.05, LANGEVIN_STEP = 0.1;

typedef struct aim {
    const n2_latent *m;
    double target; /* standardised */
} aim;

/* -(target - E y)^2 / (2 doubt^2) + ln p(z). */
static n2_node density(n2_graph *g, n2_node z, const void *arg) {
    const aim *a = arg;
    const n2_latent *m = a->m;
    const n2_node x = n2_latent_expected(g, &m->vae, n2_latent_decode(g, &m->vae, z));
    const n2_node miss = n2g_affine(g, n2_latent_mean_value(g, m, x), -1, a->target);
    const double sharpness = 0.5 / (m->record.doubt * m->record.doubt);
    const n2_node fit = n2g_scale(g, n2g_mul(g, miss, miss), -sharpness);
    return n2g_add(g, fit, n2_latent_log_prior(g, z, m));
}

static n2_node clipped(n2_graph *g, n2_node x, double most) {
    return n2g_minimum(g, n2g_maximum(g, x, n2g_constant(g, -most)), n2g_constant(g, most));
}

/* A sharp density makes long moves: they are cut where Langevin dynamics would overshoot. */
static n2_node langevin(n2_graph *g, n2_tensor *codes, const aim *a) {
    const n2_node z = n2g_read(g, codes);
    n2_node each;
    const n2_node score = clipped(g, n2_score(g, z, density, a, &each), 1 / LANGEVIN_STEP);
    const n2_node mean = n2g_total(g, n2g_mean(g, each, N2_ALL_AXES));
    n2g_watch(g, mean);
    n2g_assign(g, codes, n2_langevin_move(g, z, score, LANGEVIN_STEP));
    return mean;
}

n2ce_status n2_latent_build_move(n2_latent *m, const char *name, n2_tensor *z, double target,
                                 n2_latent_plan *out) {
    const aim a = {m, target};
    n2_graph *g = out->g = n2_graph_new(m->store);
    if (!g) return N2CE_ENOMEM;
    const bool svgd = m->o.sampler == N2_LATENT_SVGD;
    const n2_node mean = svgd ? n2_svgd_step(g, name, z, density, &a, RATE) : langevin(g, z, &a);
    return n2_plan_compile(g, m->backend, &mean, 1, &out->plan);
}

n2ce_status n2_latent_build_decode(n2_latent *m, n2_tensor *z, n2_latent_plan *out) {
    n2_graph *g = out->g = n2_graph_new(m->store);
    if (!g) return N2CE_ENOMEM;
    const n2_node x = n2_latent_decode(g, &m->vae, n2g_read(g, z));
    return n2_plan_compile(g, m->backend, &x, 1, &out->plan);
}
