/* Distillation of a diffusion model into a generator of one step or of few.
 *
 *   SiD     (Zhou et al. 2024)   one step. A second network, the fake score, learns to remove noise
 *           from what the generator makes; the generator goes where it agrees with the teacher.
 *   SiDA    the same with real pictures: the way down of the fake score is a discriminator too.
 *           SiD2A is SiDA from a generator that SiD made.
 *   DxMI    (Yoon et al. 2024)   few steps of ancestral sampling, whose every step is trained
 *           against a value of pictures, which is an energy of real ones.
 *
 * The discriminator of SiDA and the energy of DxMI are log ratios of real and made pictures, and
 * learnt by N2CE, or as published: logistic loss, contrastive divergence. sid_loss.h and
 * dxmi_loss.h have the losses, sid_train.c and dxmi_train.c the trainings. */
#ifndef N2_DISTILL_H
#define N2_DISTILL_H

#include "denoiser.h"

typedef enum n2_distill_method {
    N2_DISTILL_SID,
    N2_DISTILL_SIDA,
    N2_DISTILL_DXMI
} n2_distill_method;

/* How real and made pictures are told apart. */
typedef struct n2_critic {
    bool published;   /* the logistic loss of SiDA, the contrastive divergence of DxMI; else N2CE */
    double magnitude; /* M */
    double lambda;    /* of the mean squares of log ratios, on real and on made pictures */
} n2_critic;

typedef struct n2_distill_plan {
    n2_distill_method method;
    n2_critic critic;
    uint64_t seed, steps;
    int64_t batch;
    bool flips;

    /* SiD, SiDA: rates of both networks, Adam without a first moment */
    double rate;
    double fall;      /* share of the steps, at the end, over which it falls to 0 */
    double alpha;     /* of SiD's loss */
    double sigma;     /* of the noise that the generator begins with */
    double half_life; /* of the average of the generator, pictures */
    double alone;     /* SiDA: pictures before the generator is trained, */
    double by_score;  /* and before it is trained by the discriminator too */

    /* DxMI */
    size_t sampler_steps;
    int64_t value_width; /* of the value's network */
    double sampler_rate, noise_rate, value_rate;
    double clip; /* of norms of gradients: of the sampler's, and of the value's steps */
    double entropy, velocity; /* tau_1, tau_2, of all steps but the last `plain` */
    size_t plain;
} n2_distill_plan;

/* Settings for networks that train in minutes; docs/diffusion.md says where they come from. */
n2_distill_plan n2_distill_defaults(n2_distill_method method);

/* The numbers of a curve: names up to NULL, for JSON and reports. */
const char *const *n2_distill_numbers(n2_distill_method method);

typedef struct n2_distillation {
    const n2_denoiser *teacher;
    const n2_denoiser *start; /* a student that the generator begins as; NULL: the teacher */
    const n2_images *pictures;
    n2_distill_plan plan;
} n2_distillation;

/* Trains a student, which is the caller's. Fails with N2CE_EDATA (pictures or start of another
 * size, a teacher that is none), and as n2_denoiser_train. */
n2ce_status n2_distill(n2ce_ctx *ctx, const n2_distillation *task, const n2_denoiser_run *run,
                       n2_denoiser **student, n2_denoiser_record *record);

/* One iteration of SiD or SiDA after its warm-up, in a graph of the caller's and with tensors in
 * its store, which is empty: what a training replays, for benchmarks. The fake score's loss, a
 * scalar; N2_NONE: out of memory. */
n2_node n2_distill_iteration(n2_graph *g, const n2_distillation *task);

/* ---- inside (sid_train.c, dxmi_train.c) ---- */

n2_denoiser_spec n2_student_spec(const n2_distillation *task);

n2ce_status n2_distill_by_score(n2_store *store, const n2_distillation *task,
                                const n2_denoiser_run *run, n2_denoiser *student,
                                n2_denoiser_record *record);
n2ce_status n2_distill_by_value(n2_store *store, const n2_distillation *task,
                                const n2_denoiser_run *run, n2_denoiser *student,
                                n2_denoiser_record *record);

#endif
