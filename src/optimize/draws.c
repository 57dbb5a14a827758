/* The paper's own way to propose, as variants of n2ce: draws from the latent model given the best
 * value offline, of which none is chosen and none refused. What a prior does to designs shows here,
 * where no search makes up for it. */
#include "draws.h"

#include "base/numerics.h"
#include "design/design_space.h"
#include "latent.h"
#include "latent_methods.h"

#include <math.h>

/* A learnt model's draws: for the best value offline, and for others. */
static n2ce_status use(n2_latent *m, double best, const n2_aims *aims, n2_proposals *out,
                       const n2_space *space) {
    N2_TRY(n2_latent_draw(m, best, out->rows, out->x));
    n2_proposals_settle(space, out);
    for (size_t i = 0; aims && i < aims->n; i++)
        N2_TRY(n2_latent_draw(m, aims->target[i], aims->rows, aims->x + i * aims->rows * space->n));
    return N2CE_OK;
}

static n2ce_status draw(n2ce_ctx *ctx, const n2_designs *offline, n2_latent_options o,
                        uint64_t seed, const n2_aims *aims, n2_proposals *out) {
    double best = -N2_INFINITY;
    n2_latent *m;
    o.seed = seed;
    o.ambition = 0; /* of a search, for which trials would be made */
    for (size_t i = 0; i < offline->rows; i++) best = fmax(best, offline->y[i]);
    N2_TRY(n2_latent_fit(ctx, offline, &o, &m));
    const n2ce_status status = use(m, best, aims, out, &offline->space);
    n2_latent_free(m);
    return status;
}

#define DRAWS(...) N2_LATENT_METHOD(draw, __VA_ARGS__)

DRAWS(draws, "n2ce-draws", "n2ce's draws for the best value offline", (void)0);
DRAWS(draws_m1, "n2ce-m1-draws", "the same with M = 1", o.magnitude = 1);
DRAWS(draws_k1, "n2ce-k1-draws", "the same with one stage", o.stages = 1);
DRAWS(draws_k1_m1, "n2ce-k1-m1-draws", "the same with one stage and M = 1",
      (o.stages = 1, o.magnitude = 1));
DRAWS(draws_gaussian, "gaussian-draws", "the same without a learnt prior",
      o.prior = N2_LATENT_GAUSSIAN);
DRAWS(draws_mle, "mle-draws", "the same with a prior by maximum likelihood",
      o.prior = N2_LATENT_MLE);
