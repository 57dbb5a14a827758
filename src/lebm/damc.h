/* Latent energy-based models of pictures with an amortised sampler (DAMC, Yu et al. 2023).
 *
 *     z ~ N(z; 0, I) exp(f(z)) / Z               prior.h
 *     x ~ N(g(z), sigma^2 I)                     the decoder g
 *     z | x                                      the sampler, then Langevin dynamics
 *
 * The sampler is a diffusion model of codes that is conditioned on x. It learns to repeat what
 * Langevin dynamics makes of its draws; a slow average of it
 * makes them in training. One iteration of it is
 *
 *     z0     drawn by the slow sampler for a batch x                      100 steps
 *            (for all batches at once until it changes again)
 *     z+     z0 after Langevin dynamics on ln p(x, z), with noise         30 steps of 0.1
 *     z-     maximum likelihood only: z0 after dynamics on ln p(z)        60 steps of 0.4
 *     sampler   denoises z+, given x and given nothing, 6 times           Adam
 *     decoder   |x - g(z+)|^2                                             Adam
 *     prior     N2CE with z+ as data, or f(z-) - f(z+)                    Adam
 *
 * all of it plans that are replayed. To score pictures, z is drawn by the sampler as it is, and
 * follows the gradient of ln p(x, z) for a few steps without noise. */
#ifndef N2_DAMC_H
#define N2_DAMC_H

#include "diffusion.h"
#include "model/image_net.h"
#include "prior.h"
#include "train/train.h"

typedef struct n2_damc_spec {
    const n2_image_spec *net;
    int64_t nz;                       /* numbers of a code, even */
    int64_t decoder_width;            /* channels of the decoder are multiples of it */
    int64_t encoder_width, embedding; /* of what the sampler knows of a picture */
    int64_t sampler_width;
    double sigma; /* of a pixel, in Langevin dynamics */
    n2_prior_spec prior;
} n2_damc_spec;

/* The published sizes for MNIST, M = 100 and K = 3. */
n2_damc_spec n2_damc_defaults(void);

typedef struct n2_damc_sampler {
    n2_image_encoder encoder; /* of pictures, without heads */
    n2_mlp nothing;           /* noise to the embedding of no picture */
    n2_damc_net net;
} n2_damc_sampler;

typedef struct n2_damc {
    n2_damc_spec spec;
    n2_parameters decoder_parameters, sampler_parameters;
    n2_image_decoder decoder;
    n2_damc_sampler sampler, slow; /* slow: tensors average.NAME, train/train.h */
    n2_prior prior;
} n2_damc;

/* Networks as tensors of the store, initial values by the seed; the slow sampler is the sampler.
 * Fails with N2CE_EINVAL for sizes that are none, N2CE_ENOMEM. */
n2ce_status n2_damc_new(n2_store *store, const n2_damc_spec *spec, uint64_t seed, n2_damc *out);

/* The same network with averages in the place of its parameters, which have some. */
n2_damc_net n2_averaged_damc_net(const n2_store *store, const n2_damc_net *net);

/* ---- pictures and codes in the making ---- */

typedef struct n2_damc_batch {
    n2_tensor *x;         /* [n x side x side x channels], in [-1, 1] */
    n2_tensor *embedding; /* of x */
    n2_diffusion_chain chain;
} n2_damc_batch;

/* Tensors NAME.*. Fails with N2CE_ENOMEM. */
n2ce_status n2_damc_batch_new(n2_store *store, const n2_damc *m, const char *name, int64_t n,
                              n2_damc_batch *out);

/* As updates: the batch has pictures x, their embedding, and codes of noise; then the steps of
 * n2_diffusion_step make codes of them. */
#define n2_damc_begin(g, ...) N2_BUILT_ALL(g, n2_build_damc_begin(g, __VA_ARGS__))
void n2_build_damc_begin(n2_graph *g, const n2_damc_sampler *sampler, const n2_damc_batch *b,
                         n2_node x);
#define n2_damc_draw(g, ...) N2_BUILT(g, n2_build_damc_draw(g, __VA_ARGS__))
n2_node n2_build_damc_draw(n2_graph *g, const n2_damc_sampler *sampler, const n2_damc_batch *b);

/* |x - g(z)|^2 of each picture, [n x 1]. */
#define n2_damc_misfit(g, ...) N2_BUILT(g, n2_build_damc_misfit(g, __VA_ARGS__))
n2_node n2_build_damc_misfit(n2_graph *g, const n2_damc *m, n2_node x, n2_node z);

/* ln p(x, z) of each picture without its constants, -|x - g(z)|^2 / (2 sigma^2) + ln p(z): an
 * n2_log_density whose model is an n2_damc_posterior. */
typedef struct n2_damc_posterior {
    const n2_damc *m;
    n2_tensor *x;
} n2_damc_posterior;
n2_node n2_damc_log_posterior(n2_graph *g, n2_node z, const void *posterior);

/* ---- training (damc_train.c) ---- */

typedef struct n2_damc_training {
    uint64_t steps, seed;
    int64_t batch;
    uint64_t moves; /* of Langevin dynamics on ln p(x, z), of size `move` */
    double move;
    uint64_t sampler_steps;
    double decoder_rate, prior_rate, sampler_rate; /* of Adam, by half a cosine to nothing */
    uint64_t slow_every; /* iterations after which the slow sampler goes towards the sampler, */
    double slow_rate;    /* by this share of the way */
} n2_damc_training;

/* The published ones, but for the steps and the schedule of rates. */
n2_damc_training n2_damc_training_defaults(void);

/* A model in the learning. */
typedef struct n2_damc_learner {
    n2_damc model;
    n2_damc_training how;
    n2_tensor *pictures;   /* to learn from, [n x side x side x channels] */
    n2_damc_batch drawn;   /* batches until the slow sampler changes, one after the other */
    n2_tensor *x, *z;      /* that of this iteration, and its codes */
    n2_tensor *from_model; /* z-; NULL unless the prior is learnt by maximum likelihood */
    n2_tensor *count, *sampler_loss;
} n2_damc_learner;

/* Adds what training needs to the store that the model is in. Fails with N2CE_ENOMEM. */
n2ce_status n2_damc_learner_new(n2_store *store, const n2_damc *model, const n2_damc_training *how,
                                n2_tensor *pictures, n2_damc_learner *out);

/* The phase of a trainer whose user is a learner, or begins with one; outputs: misfit, loss of the
 * prior, loss of the sampler. */
n2_phase n2_damc_phase(const n2_damc_learner *learner);

/* ---- scores (damc_score.c) ---- */

/* How odd pictures are: |x - g(z)|^2 and -ln p(z), which add up to the score. */
typedef struct n2_damc_scores {
    double *misfit, *prior; /* [n] each */
} n2_damc_scores;

typedef struct n2_damc_scorer n2_damc_scorer;

/* For the pictures of a tensor, `batch` of them at a time, with `moves` steps of size `move` after
 * the sampler's draw. Adds tensors to the store, which with the model must outlive it. Fails with
 * N2CE_ENOMEM. */
n2ce_status n2_damc_scorer_new(n2_store *store, const n2_damc *model, n2_tensor *pictures,
                               int64_t batch, uint64_t moves, double move, n2_damc_scorer **out);
void n2_damc_scorer_free(n2_damc_scorer *scorer); /* NULL is fine */

/* Its plans are those for `backend` now: what a trainer's `ready` may call. */
n2ce_status n2_damc_scorer_compile(n2_damc_scorer *scorer, const n2_backend *backend);

/* Of all pictures, by the model as it is now; the same seed gives the same draws. Fails with
 * N2CE_ENAN, N2CE_EDEVICE, N2CE_ECANCELED. */
n2ce_status n2_damc_score(n2_damc_scorer *scorer, uint64_t seed, n2_damc_scores *out);

#endif
