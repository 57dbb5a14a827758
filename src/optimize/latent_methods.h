/* The latent model as methods that a study can compare. */
#ifndef N2_LATENT_METHODS_H
#define N2_LATENT_METHODS_H

#include "methods.h"

/* The default, and it with one thing changed: M = 1, 10 or 1000, K = 1, 2, 4 or 8, no
 * learnt prior, Langevin dynamics instead of SVGD, the prior by maximum likelihood (with either
 * sampler). */
extern const n2_method n2_latent_method, n2_latent_m1_method, n2_latent_m10_method,
    n2_latent_m1000_method, n2_latent_k1_method, n2_latent_k2_method, n2_latent_k4_method,
    n2_latent_k8_method, n2_latent_gaussian_method, n2_latent_langevin_method, n2_latent_mle_method,
    n2_latent_mle_langevin_method;

n2_propose_and_aim n2_latent_aim, n2_latent_m1_aim, n2_latent_m10_aim, n2_latent_m1000_aim,
    n2_latent_k1_aim, n2_latent_k2_aim, n2_latent_k4_aim, n2_latent_k8_aim, n2_latent_gaussian_aim,
    n2_latent_langevin_aim, n2_latent_mle_aim, n2_latent_mle_langevin_aim;

/* A method that is the latent model with one thing changed; `by` is what fits and uses it. Its file
 * includes latent.h. */
#define N2_LATENT_METHOD(by, name, title, text, change)                                        \
    n2ce_status n2_##name##_aim(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,       \
                                n2_device_choice *choice, const n2_aims *aims,                 \
                                n2_proposals *out) {                                           \
        n2_latent_options o = n2_latent_defaults();                                            \
        o.choice = choice;                                                                     \
        change;                                                                                \
        return by(ctx, offline, o, seed, aims, out);                                           \
    }                                                                                          \
    static n2ce_status propose_##name(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed, \
                                      n2_proposals *out) {                                     \
        return n2_##name##_aim(ctx, offline, seed, NULL, NULL, out);                           \
    }                                                                                          \
    const n2_method n2_##name##_method = {title, text, propose_##name}

#endif
