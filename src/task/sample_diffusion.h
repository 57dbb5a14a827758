/* Pictures of diffusion models, for sample. */
#ifndef N2_SAMPLE_DIFFUSION_H
#define N2_SAMPLE_DIFFUSION_H

#include "base/options.h"
#include "diffusion/denoiser.h"

/* clang-format off */
#define N2_SAMPLE_DIFFUSION_OPTIONS                                                               \
    {"sampler", 0, N2CE_OPTION_WORD, "auto", 0, 0, "auto|heun|ancestral|fastdpm", "NAME",         \
     "how chains move, of a diffusion model: auto is heun, or what a distilled one was made for"},\
    {"churn", 0, N2CE_OPTION_REAL, "0", 0, 1e6, NULL, "S",                                        \
     "noise that heun adds on its way, EDM's S_churn"},                                           \
    {"second", 0, N2CE_OPTION_REAL, "1", 0.1, 1, NULL, "A",                                       \
     "where in a step of heun its second look is: 1, at the end, as published; 0.6 makes less "   \
     "of a mistake"},                                                                             \
    {"guidance", 0, N2CE_OPTION_REAL, "1", 0, 100, NULL, "W",                                     \
     "of a teacher that was told classes: how much more than without them it removes; 1: as it "  \
     "learnt, at half the time"},                                                                 \
    {"label", 0, N2CE_OPTION_COUNT, "auto", 0, 255, NULL, "K",                                    \
     "class of the pictures, of a model that was told classes; auto: all in turn"}
/* clang-format on */

/* Pictures as the options say. Fails with N2CE_EINVAL for a sampler that the model does not have.
 */
n2ce_status n2_sample_diffusion(n2_denoiser *m, const n2ce_options *o, n2_device_choice *choice,
                                n2_images **out);

#endif
