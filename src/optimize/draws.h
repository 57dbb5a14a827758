/* Draws from the latent model as methods that a study can compare. */
#ifndef N2_DRAWS_H
#define N2_DRAWS_H

#include "methods.h"

/* The default, and it with one thing changed: M = 1, K = 1, both, no learnt prior, the prior by
 * maximum likelihood. */
extern const n2_method n2_draws_method, n2_draws_m1_method, n2_draws_k1_method,
    n2_draws_k1_m1_method, n2_draws_gaussian_method, n2_draws_mle_method;

n2_propose_and_aim n2_draws_aim, n2_draws_m1_aim, n2_draws_k1_aim, n2_draws_k1_m1_aim,
    n2_draws_gaussian_aim, n2_draws_mle_aim;

#endif
