#define N2_INSIDE
#include "damc.h"

#include <stdio.h>

static const double NOTHING_SLOPE = 0.01;

n2_damc_spec n2_damc_defaults(void) {
    n2_damc_spec s = {.net = n2_image_spec_named("mnist"), .nz = 8, .sigma = 1};
    s.decoder_width = s.encoder_width = s.sampler_width = 128;
    s.embedding = 1024;
    s.prior = n2_prior_defaults();
    return s;
}

/* ---- networks ---- */

static n2_damc_sampler new_sampler(n2_parameters *p, const n2_damc_spec *s) {
    const int64_t widths[] = {s->nz, s->sampler_width, s->embedding};
    n2_damc_sampler sampler;
    sampler.encoder = n2_image_encoder_new(p, s->net, s->encoder_width, s->embedding, 0);
    sampler.nothing = n2_mlp_new(p, "sampler.nothing", widths, 3, NOTHING_SLOPE);
    sampler.net = n2_damc_net_new(p, s->nz, s->sampler_width, s->embedding);
    return sampler;
}

static void slow_gated(const n2_store *store, n2_gated_layer *layer) {
    layer->context = n2_averaged_layer(store, layer->context);
    layer->linear = n2_averaged_layer(store, layer->linear);
    layer->gate = n2_averaged_layer(store, layer->gate);
    layer->shift = n2_averaged_layer(store, layer->shift);
    layer->skip = n2_averaged_layer(store, layer->skip);
}

n2_damc_net n2_averaged_damc_net(const n2_store *store, const n2_damc_net *of) {
    n2_damc_net net = *of;
    net.projection = n2_average_of(store, net.projection);
    for (int i = 0; i < 2; i++) net.time[i] = n2_averaged_layer(store, net.time[i]);
    for (int i = 0; i < N2_DAMC_LEVELS; i++) {
        slow_gated(store, &net.down[i]);
        slow_gated(store, &net.up[i]);
    }
    slow_gated(store, &net.middle);
    return net;
}

static void slow_encoder(const n2_store *store, n2_image_encoder *net) {
    for (int i = 0; i < net->n; i++) {
        net->conv[i].weight = n2_average_of(store, net->conv[i].weight);
        net->conv[i].bias = n2_average_of(store, net->conv[i].bias);
        if (i + 1 == net->n) break;
        net->norm[i].scale = n2_average_of(store, net->norm[i].scale);
        net->norm[i].shift = n2_average_of(store, net->norm[i].shift);
    }
}

static n2ce_status slow_copy(n2_store *store, const n2_damc *m, n2_damc_sampler *slow) {
    N2_TRY(n2_averages_add(&m->sampler_parameters));
    *slow = m->sampler;
    slow_encoder(store, &slow->encoder);
    slow->net = n2_averaged_damc_net(store, &m->sampler.net);
    return n2_averaged_mlp(store, &m->sampler.nothing, &slow->nothing);
}

n2ce_status n2_damc_new(n2_store *store, const n2_damc_spec *spec, uint64_t seed, n2_damc *out) {
    if (!spec->net || spec->nz < 2 || spec->nz % 2 || spec->sampler_width < 4 ||
        spec->sampler_width % 2 || spec->decoder_width < 1 || spec->encoder_width < 1 ||
        !(spec->sigma > 0))
        return n2_fail(n2_store_ctx(store), N2CE_EINVAL,
                       "A model with an amortised sampler needs codes of 2, 4, ... numbers, a "
                       "sampler of an even width of at least 4, and a positive sigma.");
    *out = (n2_damc){.spec = *spec};
    out->decoder_parameters = n2_parameters_new(store, seed);
    out->sampler_parameters = n2_parameters_new(store, seed + 1);
    out->decoder =
        n2_image_decoder_new(&out->decoder_parameters, spec->net, spec->decoder_width, spec->nz);
    out->sampler = new_sampler(&out->sampler_parameters, spec);
    if (out->decoder_parameters.failed || out->sampler_parameters.failed) return N2CE_ENOMEM;
    N2_TRY(n2_prior_new(store, &spec->prior, spec->nz, seed + 2, &out->prior));
    return slow_copy(store, out, &out->slow);
}

/* ---- pictures and codes in the making ---- */

n2ce_status n2_damc_batch_new(n2_store *store, const n2_damc *m, const char *name, int64_t n,
                              n2_damc_batch *out) {
    const n2_image_spec *net = m->spec.net;
    char x[64], embedding[64];
    snprintf(x, sizeof x, "%s.x", name);
    snprintf(embedding, sizeof embedding, "%s.embedding", name);
    out->x = n2_store_add_blank(store, x, n2_dims(n, net->side, net->side, net->channels));
    out->embedding = n2_store_add_blank(store, embedding, n2_dims(n, m->spec.embedding));
    out->chain = n2_diffusion_chain_new(store, name, n, m->spec.nz);
    return out->x && out->embedding && out->chain.z && out->chain.left ? N2CE_OK : N2CE_ENOMEM;
}

void n2_build_damc_begin(n2_graph *g, const n2_damc_sampler *sampler, const n2_damc_batch *b,
                         n2_node x) {
    n2g_assign(g, b->embedding, n2_image_embed(g, &sampler->encoder, x));
    n2g_assign(g, b->x, x);
    n2_diffusion_begin(g, &b->chain);
}

n2_node n2_build_damc_draw(n2_graph *g, const n2_damc_sampler *sampler, const n2_damc_batch *b) {
    return n2_diffusion_step(g, &b->chain, &sampler->net, n2g_read(g, b->embedding));
}

n2_node n2_build_damc_misfit(n2_graph *g, const n2_damc *m, n2_node x, n2_node z) {
    const n2_node made = n2_image_decode(g, &m->decoder, z);
    if (!made.id) return N2_NONE;
    const n2_node miss = n2g_sub(g, x, made);
    const int pixels = n2_axis(1) | n2_axis(2) | n2_axis(3);
    const n2_node sum = n2g_sum(g, n2g_mul(g, miss, miss), pixels);
    return n2g_reshape(g, sum, n2_dims(n2_shape_at(g, made).dim[0], 1));
}

n2_node n2_damc_log_posterior(n2_graph *g, n2_node z, const void *posterior) {
    const n2_damc_posterior *p = posterior;
    const n2_damc *m = p->m;
    const n2_node misfit = n2_damc_misfit(g, m, n2g_read(g, p->x), z);
    const n2_node fit = n2g_scale(g, misfit, -0.5 / (m->spec.sigma * m->spec.sigma));
    return n2g_add(g, fit, n2_prior_log_density(g, z, &m->prior));
}
