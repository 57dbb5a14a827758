/* What distill answers: text, JSON, the page with its curves. */
#ifndef N2_DISTILL_REPORT_H
#define N2_DISTILL_REPORT_H

#include "diffusion/distill.h"
#include "task.h"

typedef struct n2_distilled {
    const n2ce_options *options;
    n2_distillation task;
    n2_denoiser *student;
    n2_denoiser_record record;
    const char *output, *device;
    size_t watched; /* samples of a distance; 0: none was measured */
} n2_distilled;

n2ce_status n2_distill_answer(n2ce_ctx *ctx, const n2_distilled *d, n2ce_answer *answer);

#endif
