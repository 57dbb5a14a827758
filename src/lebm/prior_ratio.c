#define N2_INSIDE
#include "prior.h"

#include "base/linalg.h"

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

/* Rows are on the left: both matrices are transposes, of the factor and of its inverse. */
n2ce_status n2_prior_set_base(n2_store *store, const n2_prior *p, const double *mean,
                              const double *factor) {
    const size_t d = (size_t)p->nz;
    const double volume = -n2_cholesky_log_det(factor, d) / 2;
    double *whiten = n2_alloc(n2_store_ctx(store), 3 * d * d, sizeof *whiten);
    if (!whiten) return N2CE_ENOMEM;
    double *colour = whiten + d * d, *inverse = colour + d * d;
    n2_lower_inverse(factor, d, inverse);
    for (size_t i = 0; i < d * d; i++) {
        const size_t r = i / d, c = i % d;
        whiten[i] = c < r ? 0 : inverse[c * d + r];
        colour[i] = c < r ? 0 : factor[c * d + r];
    }
    n2_tensor_set(store, p->base[N2_PRIOR_CENTRE], mean);
    n2_tensor_set(store, p->base[N2_PRIOR_WHITEN], whiten);
    n2_tensor_set(store, p->base[N2_PRIOR_COLOUR], colour);
    n2_tensor_set(store, p->base[N2_PRIOR_VOLUME], &volume);
    n2_free(n2_store_ctx(store), whiten);
    return N2CE_OK;
}

static n2ce_status add_base(n2_store *store, n2_prior *p) {
    static const char *const names[] = {"base.centre", "base.whiten", "base.colour", "base.volume"};
    const size_t nz = (size_t)p->nz;
    for (int i = 0; i < N2_PRIOR_BASE; i++) {
        const bool square = i == N2_PRIOR_WHITEN || i == N2_PRIOR_COLOUR;
        p->base[i] = n2_store_add(store, names[i],
                                  n2_dims(square ? p->nz : 1, i == N2_PRIOR_VOLUME ? 1 : p->nz));
        if (!p->base[i]) return N2CE_ENOMEM;
    }
    double *plain = n2_alloc(n2_store_ctx(store), nz + nz * nz, sizeof *plain);
    if (!plain) return N2CE_ENOMEM;
    for (size_t i = 0; i < nz; i++) plain[nz + i * nz + i] = 1;
    const n2ce_status status = n2_prior_set_base(store, p, plain, plain + nz);
    n2_free(n2_store_ctx(store), plain);
    return status;
}

/* The paper's waymarks would leave nearly all of what a fitted Gaussian does not say to the first
 * stage; even steps share it. */
static void place_waymarks(const n2_prior_spec *s, double *variances) {
    const size_t stages = (size_t)s->stages;
    if (!s->fitted) n2_waymarks_of_stages(stages, variances);
    for (size_t k = 0; s->fitted && k <= stages; k++) variances[k] = (double)k / (double)stages;
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
    place_waymarks(spec, variances);
    out->waymarks = n2_waymarks_new(store, "waymarks", variances, (size_t)spec->stages + 1);
    if (out->parameters.failed || !out->waymarks) return N2CE_ENOMEM;
    return spec->fitted ? add_base(store, out) : N2CE_OK;
}

n2_node n2_build_prior_standardise(n2_graph *g, const n2_prior *p, n2_node z) {
    if (!p->base[0]) return z;
    const n2_node at = n2g_sub(g, z, n2g_read(g, p->base[N2_PRIOR_CENTRE]));
    return n2g_matmul(g, at, n2g_read(g, p->base[N2_PRIOR_WHITEN]), false, false);
}

n2_node n2_build_prior_place(n2_graph *g, const n2_prior *p, n2_node u) {
    if (!p->base[0]) return u;
    const n2_node at = n2g_matmul(g, u, n2g_read(g, p->base[N2_PRIOR_COLOUR]), false, false);
    return n2g_add(g, at, n2g_read(g, p->base[N2_PRIOR_CENTRE]));
}

static n2_node squares(n2_graph *g, n2_node x) { return n2g_sum(g, n2g_mul(g, x, x), n2_axis(1)); }

n2_node n2_prior_log_density(n2_graph *g, n2_node u, const void *model) {
    const n2_prior *p = model;
    const n2_node base = n2g_scale(g, squares(g, u), -0.5);
    if (p->spec.kind == N2_PRIOR_GAUSSIAN) return base;
    return n2g_add(g, n2_ratio_net_sum(g, &p->net, u), base);
}

n2_node n2_build_prior_ratio(n2_graph *g, const n2_prior *p, n2_node z) {
    const n2_node u = n2_prior_standardise(g, p, z);
    const n2_node f = n2_ratio_net_sum(g, &p->net, u);
    if (!p->base[0]) return f;
    const n2_node gaussian = n2g_scale(g, n2g_sub(g, squares(g, z), squares(g, u)), 0.5);
    return n2g_add(g, n2g_add(g, f, gaussian), n2g_read(g, p->base[N2_PRIOR_VOLUME]));
}

n2_node n2_build_prior_mean_ratio(n2_graph *g, const n2_prior *p, n2_node z) {
    if (p->spec.kind == N2_PRIOR_GAUSSIAN) return n2g_constant(g, 0);
    if (!p->base[0]) return n2_ratio_mean(g, &p->net, z);
    if (!z.id) return N2_NONE;
    const double n = (double)n2_shape_at(g, z).dim[0];
    return n2g_scale(g, n2g_total(g, n2_prior_ratio(g, p, z)), 1 / n);
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
    const n2_node u = n2_prior_standardise(g, p, z);
    if (p->spec.kind == N2_PRIOR_MLE) return mle_loss(g, p, u);
    const n2_ratio_task task = {.net = &p->net,
                                .waymarks = p->waymarks,
                                .times = p->spec.noise,
                                .magnitude = p->spec.magnitude,
                                .every_stage = p->spec.stages > 1};
    return n2_ratio_loss(g, &task, n2g_detach(g, u));
}
