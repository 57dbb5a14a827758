/* The latent model as methods that a study can compare. */
#ifndef N2_LATENT_METHODS_H
#define N2_LATENT_METHODS_H

#include "design/design.h"

/* The default, and it with one thing changed: M = 1, 10 or 1000, one stage, no learnt prior,
 * Langevin dynamics instead of SVGD, the prior by maximum likelihood (with either sampler). */
extern const n2_method n2_latent_method, n2_latent_m1_method, n2_latent_m10_method,
    n2_latent_m1000_method, n2_latent_k1_method, n2_latent_gaussian_method,
    n2_latent_langevin_method, n2_latent_mle_method, n2_latent_mle_langevin_method;

#endif
