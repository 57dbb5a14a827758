#define N2_INSIDE
#include "prior.h"

n2_prior_spec n2_prior_defaults(void) {
    return (n2_prior_spec){.kind = N2_PRIOR_N2CE,
                           .magnitude = 100,
                           .noise = 100,
                           .stages = 3,
                           .width = 128,
                           .depth = 3,
                           .moves = 60,
                           .step = 0.4};
}

/* What is wrong with a spec; NULL: nothing. */
static const char *mistake_in(const n2_prior_spec *s) {
    const bool chains = s->kind == N2_PRIOR_MLE;
    if (s->kind == N2_PRIOR_GAUSSIAN) return NULL;
    if (s->stages < 1 || s->stages > N2_PRIOR_STAGES_MAX) return "1 to 8 stages";
    if (chains && s->stages != 1) return "one stage, if it is learnt by maximum likelihood";
    if (s->width < 2 || s->width % 2 || s->depth < 0) return "an even width of at least 2";
    if (chains ? s->moves < 1 || !(s->step > 0) : s->noise < 1) return "noise rows, or moves";
    return chains || s->magnitude >= 1 ? NULL : "a magnitude of at least 1";
}

n2ce_status n2_prior_new(n2_store *store, const n2_prior_spec *spec, int64_t nz, uint64_t seed,
                         n2_prior *out) {
    double variances[N2_PRIOR_STAGES_MAX + 1];
    const char *mistake = mistake_in(spec);
    *out = (n2_prior){.spec = *spec, .nz = nz, .parameters = n2_parameters_new(store, seed)};
    if (mistake)
        return n2_fail(n2_store_ctx(store), N2CE_EINVAL, "A prior of codes needs %s.", mistake);
    if (spec->kind == N2_PRIOR_GAUSSIAN) return N2CE_OK;
    out->net = n2_ratio_net_new(&out->parameters, nz, spec->width, (int)spec->depth, spec->stages);
    n2_waymarks_of_stages((size_t)spec->stages, variances);
    out->waymarks = n2_waymarks_new(store, "waymarks", variances, (size_t)spec->stages + 1);
    return out->parameters.failed || !out->waymarks ? N2CE_ENOMEM : N2CE_OK;
}

n2_node n2_prior_log_density(n2_graph *g, n2_node z, const void *model) {
    const n2_prior *p = model;
    const n2_node base = n2g_scale(g, n2g_sum(g, n2g_mul(g, z, z), n2_axis(1)), -0.5);
    if (p->spec.kind == N2_PRIOR_GAUSSIAN) return base;
    return n2g_add(g, n2_ratio_net_sum(g, &p->net, z), base);
}

n2_node n2_build_prior_mean_ratio(n2_graph *g, const n2_prior *p, n2_node z) {
    if (p->spec.kind == N2_PRIOR_GAUSSIAN) return n2g_constant(g, 0);
    return n2_ratio_mean(g, &p->net, z);
}

n2_node n2_build_prior_chain(n2_graph *g, const n2_prior *p, n2_node z, int64_t moves,
                             double step) {
    n2_node at = n2g_detach(g, z);
    for (int64_t i = 0; i < moves && at.id; i++) {
        const n2_node score = n2_score(g, at, n2_prior_log_density, p, NULL);
        at = n2g_detach(g, n2_langevin_move(g, at, score, step));
    }
    return at;
}

n2_node n2_build_prior_contrast(n2_graph *g, const n2_prior *p, n2_node z, n2_node from_model) {
    const n2_node data = n2_ratio_mean(g, &p->net, n2g_detach(g, z));
    return n2g_sub(g, n2_ratio_mean(g, &p->net, n2g_detach(g, from_model)), data);
}

static n2_node mle_loss(n2_graph *g, const n2_prior *p, n2_node z) {
    const n2_node start = n2g_randn(g, n2_shape_at(g, z));
    const n2_node end = n2_prior_chain(g, p, start, p->spec.moves, p->spec.step);
    return n2_prior_contrast(g, p, z, end);
}

n2_node n2_build_prior_loss(n2_graph *g, const n2_prior *p, n2_node z) {
    if (!z.id) return N2_NONE;
    if (p->spec.kind == N2_PRIOR_GAUSSIAN)
        return n2_graph_fail(g, "The prior N(0, I) has nothing to learn.");
    if (p->spec.kind == N2_PRIOR_MLE) return mle_loss(g, p, z);
    const n2_ratio_task task = {.net = &p->net,
                                .waymarks = p->waymarks,
                                .times = p->spec.noise,
                                .magnitude = p->spec.magnitude,
                                .every_stage = p->spec.stages > 1};
    return n2_ratio_loss(g, &task, n2g_detach(g, z));
}
