/* What the verbs that train networks with noise have in common: the GPU that they want, what a
 * checkpoint is of. */
#ifndef N2_DIFFUSION_OPTIONS_H
#define N2_DIFFUSION_OPTIONS_H

#include "base/options.h"
#include "diffusion/denoiser.h"

/* clang-format off */
#define N2_FORCE_CPU_OPTION                                                                       \
    {"force-cpu", 0, N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,                                 \
     "train on the processor, however long that takes; else a diffusion model wants a GPU"}
#define N2_HALVE_OPTION                                                                           \
    {"halve", 0, N2CE_OPTION_COUNT, "0", 0, 8, NULL, "N",                                         \
     "halve the sides of the pictures N times first, for a diffusion model: means of 2 x 2 pixels"}
#define N2_DECAY_OPTION(initial)                                                                  \
    {"decay", 0, N2CE_OPTION_REAL, initial, 0, 1, NULL, "SHARE",                                  \
     "of the training, at its end, over which the rate of a diffusion model or of a one-step "    \
     "student falls to 0"}
#define N2_WATCH_OPTIONS                                                                          \
    {"features", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "NET",                                    \
     "features of a network, as compare has them, for distances along the way; default: layout "  \
     "and texture"},                                                                              \
    {"watched", 0, N2CE_OPTION_COUNT, "2000", 0, 1e6, NULL, "N",                                  \
     "pictures for each distance along the way; 0: none is measured"},                            \
    {"looks", 0, N2CE_OPTION_COUNT, "20", 1, 128, NULL, "N",                                      \
     "points of the curve: how often samples are looked at"},                                     \
    {"sheet", 0, N2CE_OPTION_PATH, NULL, 0, 0, NULL, "PNG",                                       \
     "write pictures made so far side by side to this file, at every look"}
/* clang-format on */

/* The GPU, whichever there is for "auto", in bf16 unless --precision is given; or the processor. */
n2ce_status n2_diffusion_device(n2ce_ctx *ctx, const n2ce_options *o, n2_device_choice *out);

/* Before the work: whether --sheet can be written, again and again; what is there is replaced with
 * --force alone. */
n2ce_status n2_diffusion_check_sheet(n2ce_ctx *ctx, const n2ce_options *o);

/* What --features and --watched ask for, into the run, which owns it (n2_distance_watch_close).
 * Features are measured in float32, on the same device: `own` is the choice for them. */
n2ce_status n2_open_watch(n2ce_ctx *ctx, const n2ce_options *o, const n2_images *pictures,
                          const n2_device_choice *device, n2_device_choice *own,
                          n2_denoiser_run *run);

/* On the processor without --force-cpu: N2CE_EDEVICE, and how long `seconds` are. */
n2ce_status n2_diffusion_check_time(n2ce_ctx *ctx, const n2ce_options *o,
                                    const n2_device_choice *choice, uint64_t steps, int64_t batch,
                                    double seconds);

/* At least 100 pictures of --images, halved as often as --halve says. */
n2ce_status n2_diffusion_pictures(n2ce_ctx *ctx, const n2ce_options *o, n2_images **out);

/* What a checkpoint is of: a line for each option that matters, and the sum of the pictures. Free
 * it. */
n2ce_status n2_diffusion_identity(n2ce_ctx *ctx, const n2ce_options *o, const n2_images *pictures,
                                  char **out);

/* The curve as JSON: a list of objects with "seen", "distance" and the names. */
void n2_curve_json(const n2_curve *curve, const char *const *names, n2_text *out);

#endif
