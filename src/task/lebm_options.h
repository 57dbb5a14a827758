/* Options of latent energy-based models of pictures, for the verbs that train some. */
#ifndef N2_LEBM_OPTIONS_H
#define N2_LEBM_OPTIONS_H

#include "base/options.h"
#include "lebm/lebm.h"

/* clang-format off */
#define N2_LEBM_OPTIONS                                                                           \
    {"base", 0, N2CE_OPTION_WORD, "fitted", 0, 0, "fitted|normal", "NAME",                        \
     "what a prior's f is learnt over: a Gaussian that is fitted to the codes, or N(0, I) as in " \
     "the paper"},                                                                                \
    {"preset", 0, N2CE_OPTION_WORD, "fast", 0, 0, "fast|paper", "NAME",                           \
     "settings by name: fast, minutes on two cores; paper, the publication's sizes, for a GPU"},  \
    {"net", 0, N2CE_OPTION_WORD, "auto", 0, 0, "auto|mnist|svhn|cifar|celeba|celeba-hq|s|ddpmpp|ddpm", "NAME", \
     "layers of encoder and decoder; auto: the smallest that hold the pictures. Of diffusion: s, " \
     "ddpmpp or ddpm; auto: s"},                                                                  \
    {"codes", 0, N2CE_OPTION_COUNT, "auto", 1, 4096, NULL, "N",                                   \
     "numbers of a code; auto: those of the preset"},                                             \
    {"width", 0, N2CE_OPTION_COUNT, "auto", 4, 4096, NULL, "W",                                   \
     "width of the networks of pictures: channels of the first layer; auto: those of the preset"},\
    {"misfit", 0, N2CE_OPTION_REALS, "auto", 1e-6, 1e6, NULL, "W,W",                              \
     "weights of the squared error of a picture in the phases vae and joint; auto: by the net"},  \
    {"noise", 0, N2CE_OPTION_COUNT, "auto", 1, 1e4, NULL, "R",                                    \
     "noise rows for each code, weighted to M; auto: M, or 8 in the preset fast"},                \
    {"batch", 0, N2CE_OPTION_COUNT, "auto", 1, 1e5, NULL, "N",                                    \
     "rows a step: pictures; auto: 128, or 64 in the preset fast"},                               \
    {"phases", 0, N2CE_OPTION_REALS, "auto", 0, 1e9, NULL, "A,B,C,D",                             \
     "steps of the phases vae, prior, joint and, which may be left out, settle; auto: the preset's"},      \
    {"rate", 0, N2CE_OPTION_REAL, "auto", 1e-9, 1, NULL, "R",                                     \
     "learning rate of encoder and decoder in the phase vae, at the start; auto: the preset's"},  \
    {"prior-rate", 0, N2CE_OPTION_REAL, "auto", 1e-9, 1, NULL, "R",                               \
     "learning rate of the prior on its own, at the start; auto: by how it is learnt"},           \
    {"effort", 0, N2CE_OPTION_REAL, "1", 0.001, 100, NULL, "F", "factor on the steps of training"}

#define N2_CHAINS_OPTIONS                                                                         \
    {"step-size", 0, N2CE_OPTION_REAL, "0.4", 1e-6, 10, NULL, "ETA",                              \
     "length of a step: s of z + s^2/2 grad ln p(z) + s N(0, I)"},                                \
    {"chains", 0, N2CE_OPTION_WORD, "auto", 0, 0, "auto|plain|adjusted", "NAME",                  \
     "Langevin dynamics on the prior: plain, as in the paper, or each step tested by Metropolis' " \
     "rule, which makes it exact; auto: adjusted, plain where f was learnt by maximum likelihood"}
/* clang-format on */

/* Chains as these options say. */
n2_lebm_sampling n2_lebm_sampling_of(const n2ce_options *o);

/* What to train for pictures, as the options say: the prior's kind, M and K aside, which are in
 * `prior`. */
typedef struct n2_lebm_plan {
    n2_lebm_spec spec;
    n2_lebm_schedule schedule;
} n2_lebm_plan;

/* Fails with N2CE_EINVAL, and with N2CE_EDATA for pictures that no net holds. */
n2ce_status n2_lebm_plan_of_options(n2ce_ctx *ctx, const n2ce_options *o, const n2_images *pictures,
                                    n2_lebm_plan *out);

/* Another prior in a plan: base, noise rows and rates are those that suit it. */
void n2_lebm_plan_prior(const n2ce_options *o, n2_prior_kind kind, double magnitude, int64_t stages,
                        n2_lebm_plan *plan);

#endif
