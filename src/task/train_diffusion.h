/* train --model diffusion. */
#ifndef N2_TRAIN_DIFFUSION_H
#define N2_TRAIN_DIFFUSION_H

#include "diffusion_options.h"
#include "task.h"

/* clang-format off */
#define N2_TRAIN_DIFFUSION_OPTIONS                                                                \
    {"seen", 0, N2CE_OPTION_REAL, "auto", 1, 1e12, NULL, "N",                                     \
     "pictures to learn from in all, each counted as often as it comes; auto: 12.5e6 for a "      \
     "diffusion model"},                                                                          \
    {"labels", 0, N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,                                    \
     "tell a diffusion model the classes of the pictures, which their file has"},                 \
    {"augment", 0, N2CE_OPTION_REAL, "0", 0, 1, NULL, "P",                                        \
     "change pictures of a diffusion model with this probability each way, as EDM does (0.12): "  \
     "turned, scaled, rotated, stretched, moved"},                                                \
    N2_DECAY_OPTION("0.5"),                                                                       \
    N2_HALVE_OPTION,                                                                              \
    N2_WATCH_OPTIONS,                                                                             \
    N2_FORCE_CPU_OPTION
/* clang-format on */

n2ce_status n2_train_diffusion(n2ce_ctx *ctx, const n2ce_options *o, n2ce_answer *answer);

/* N2CE_EINVAL, with a sentence, if one of the options was given: names up to NULL, which belong to
 * the other kind of model. */
n2ce_status n2_options_of_other(n2ce_ctx *ctx, const n2ce_options *o, const char *const *names,
                                const char *other);

/* Options of train that diffusion models have no use for, and that they alone have. */
extern const char *const n2_options_of_lebm[], *const n2_options_of_diffusion[];

#endif
