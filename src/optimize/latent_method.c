/* The latent model and its ablations as methods of a study. */
#include "latent.h"
#include "latent_methods.h"

/* A learnt model's proposals, and what it draws for values. */
static n2ce_status use(n2_latent *m, const n2_aims *aims, n2_proposals *out, size_t columns) {
    N2_TRY(n2_latent_propose(m, out));
    for (size_t i = 0; aims && i < aims->n; i++)
        N2_TRY(n2_latent_draw(m, aims->target[i], aims->rows, aims->x + i * aims->rows * columns));
    return N2CE_OK;
}

static n2ce_status propose(n2ce_ctx *ctx, const n2_designs *offline, n2_latent_options o,
                           uint64_t seed, const n2_aims *aims, n2_proposals *out) {
    n2_latent *m;
    o.seed = seed;
    N2_TRY(n2_latent_fit(ctx, offline, &o, &m));
    const n2ce_status status = use(m, aims, out, offline->space.n);
    n2_latent_free(m);
    return status;
}

#define METHOD(...) N2_LATENT_METHOD(propose, __VA_ARGS__)

METHOD(latent, "n2ce", "latent model, N2CE prior with M = 100 and 6 stages, SVGD", (void)0);
METHOD(latent_m1, "n2ce-m1", "the same with M = 1", o.magnitude = 1);
METHOD(latent_m10, "n2ce-m10", "the same with M = 10", o.magnitude = 10);
METHOD(latent_m1000, "n2ce-m1000", "the same with M = 1000", o.magnitude = 1000);
METHOD(latent_k1, "n2ce-k1", "the same with one stage", o.stages = 1);
METHOD(latent_k2, "n2ce-k2", "the same with 2 stages", o.stages = 2);
METHOD(latent_k4, "n2ce-k4", "the same with 4 stages", o.stages = 4);
METHOD(latent_k8, "n2ce-k8", "the same with 8 stages", o.stages = 8);
METHOD(latent_gaussian, "gaussian", "the same without a learnt prior",
       o.prior = N2_LATENT_GAUSSIAN);
METHOD(latent_langevin, "n2ce-ld", "the same with Langevin dynamics instead of SVGD",
       o.sampler = N2_LATENT_LANGEVIN);
METHOD(latent_mle, "mle", "the same with a prior by maximum likelihood", o.prior = N2_LATENT_MLE);
METHOD(latent_mle_langevin, "mle-ld", "the same with Langevin dynamics",
       (o.prior = N2_LATENT_MLE, o.sampler = N2_LATENT_LANGEVIN));
