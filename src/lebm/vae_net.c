/* Networks of a model, and the losses of encoder and decoder. */
#define N2_INSIDE
#include "lebm.h"

#include <string.h>

n2_lebm_spec n2_lebm_defaults(const n2_image_spec *net) {
    const bool wide = strcmp(net->name, "svhn") != 0, digits = net->channels == 1;
    const bool cifar = strcmp(net->name, "cifar") == 0;
    return (n2_lebm_spec){.net = net,
                          .nz = digits           ? 8
                                : cifar          ? 128
                                : net->side > 64 ? 512
                                                 : 100,
                          .encoder_width = digits ? 128 : 64,
                          .embedding = 1024,
                          .decoder_width = wide ? 128 : 64,
                          .prior = n2_prior_defaults()};
}

n2ce_status n2_lebm_nets_new(n2_store *store, const n2_lebm_spec *spec, uint64_t seed,
                             n2_lebm_nets *out) {
    *out = (n2_lebm_nets){.spec = *spec, .vae = n2_parameters_new(store, seed)};
    if (spec->nz < 1 || spec->encoder_width < 1 || spec->embedding < 1 || spec->decoder_width < 1)
        return n2_fail(n2_store_ctx(store), N2CE_EINVAL,
                       "Codes and layers have at least one number.");
    out->encoder =
        n2_image_encoder_new(&out->vae, spec->net, spec->encoder_width, spec->embedding, spec->nz);
    out->decoder = n2_image_decoder_new(&out->vae, spec->net, spec->decoder_width, spec->nz);
    if (out->vae.failed) return N2CE_ENOMEM;
    return n2_prior_new(store, &spec->prior, spec->nz, seed, &out->prior);
}

/* Of the prior its square matrices. */
n2ce_status n2_lebm_nets_count(n2ce_ctx *ctx, const n2_lebm_spec *spec, double *numbers) {
    enum { SQUARES = 5 }; /* beside the blocks */
    const n2_prior_spec *prior = &spec->prior;
    const double width = (double)prior->width, nz = (double)spec->nz;
    n2_store *store;
    N2_TRY(n2_store_new(ctx, sizeof(float), &store));
    n2_parameters p = n2_parameters_to_count(store);
    (void)n2_image_encoder_new(&p, spec->net, spec->encoder_width, spec->embedding, spec->nz);
    (void)n2_image_decoder_new(&p, spec->net, spec->decoder_width, spec->nz);
    *numbers = (double)n2_parameters_count(&p);
    n2_store_free(store);
    if (prior->kind == N2_PRIOR_GAUSSIAN) return N2CE_OK;
    *numbers += ((double)prior->depth + SQUARES) * width * width;
    if (prior->fitted) *numbers += 2 * nz * nz;
    return N2CE_OK;
}

n2_lebm_batch n2_build_lebm_encode(n2_graph *g, const n2_image_encoder *encoder, n2_node x,
                                   n2_node eps) {
    n2_lebm_batch b = {.x = x};
    n2_image_encode(g, encoder, x, &b.mean, &b.logvar);
    b.z = n2g_reparameterise(g, b.mean, b.logvar, eps);
    return b;
}

/* The mean over pictures of the sum over pixels. */
static n2_node misfit_of(n2_graph *g, const n2_image_decoder *decoder, const n2_lebm_batch *b) {
    const n2_node made = n2_image_decode(g, decoder, b->z);
    if (!made.id) return N2_NONE;
    const double n = (double)n2_shape_at(g, made).dim[0];
    const n2_node miss = n2g_sub(g, b->x, made);
    return n2g_scale(g, n2g_total(g, n2g_mul(g, miss, miss)), 1 / n);
}

n2_lebm_bound n2_build_lebm_bound(n2_graph *g, const n2_image_decoder *decoder,
                                  const n2_prior *prior, const n2_lebm_batch *batch,
                                  double weight) {
    n2_lebm_bound b = {.misfit = misfit_of(g, decoder, batch), .ratio = n2g_constant(g, 0)};
    b.divergence = n2g_gaussian_kl(g, batch->mean, batch->logvar);
    b.loss = n2g_add(g, n2g_scale(g, b.misfit, weight), b.divergence);
    if (!prior || prior->spec.kind == N2_PRIOR_GAUSSIAN) return b;
    b.ratio = n2_prior_mean_ratio(g, prior, batch->z);
    b.loss = n2g_sub(g, b.loss, b.ratio);
    return b;
}
