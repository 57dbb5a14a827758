/* Latent energy-based models of pictures: phases of training, sampling, the model file.
 *
 *     z ~ p(z) = N(z; 0, I) exp(f(z)) / Z        prior.h
 *     x ~ N(g(z), I / (2 w))                     the decoder g, w the weight of the misfit
 *     q(z|x) = N(mean(x), exp(logvar(x)))        the encoder
 *
 * Training has three phases, each with its own steps (lebm_train.h):
 *
 *     vae      encoder and decoder, with N(0, I) for a prior
 *     prior    f alone, on codes of the pictures; encoder and decoder stand still
 *     joint    both: f on codes that are detached, then encoder and decoder against f as it is,
 *
 *                  w |x - g(z)|^2 + KL(q || N(0, I)) - f(z),      the mean over pictures,
 *
 *              which is minus the evidence lower bound up to ln Z: codes go where f is large
 *
 * Pictures are [n x side x side x channels] in [-1, 1]. May use base, io, image, engine, rewrite,
 * nn, train, sampler, model, objective. */
#ifndef N2_LEBM_H
#define N2_LEBM_H

#include "image/image.h"
#include "model/image_net.h"
#include "prior.h"
#include "train/device_choice.h"

/* Size of the pictures as they are given and made: smaller ones than the net's are framed in black,
 * grey ones become RGB where the net has three channels. */
typedef struct n2_lebm_frame {
    size_t height, width, channels;
} n2_lebm_frame;

/* What a model is: sizes that a file must know to make it again. */
typedef struct n2_lebm_spec {
    n2_lebm_frame frame;
    const n2_image_spec *net;         /* layers, and the size of pictures inside */
    int64_t nz;                       /* numbers of a code */
    int64_t encoder_width, embedding; /* channels of the first layer; numbers before the heads */
    int64_t decoder_width;
    n2_prior_spec prior;
} n2_lebm_spec;

/* The paper's sizes for a net of image_net.h. The frame is the whole picture. */
n2_lebm_spec n2_lebm_defaults(const n2_image_spec *net);

/* The net for pictures of this size, by name or, for "auto", the smallest that holds them: "mnist"
 * for grey ones up to 28 x 28, else "svhn" up to 32, "celeba" up to 64, "celeba-hq" up to 256.
 * Fails with N2CE_EDATA if they are too large, or have colours that the net has not. */
n2ce_status n2_lebm_net_for(n2ce_ctx *ctx, const n2_images *pictures, const char *name,
                            const n2_image_spec **out);

/* Encoder and decoder are one list of parameters, the prior another. */
typedef struct n2_lebm_nets {
    n2_lebm_spec spec;
    n2_parameters vae;
    n2_image_encoder encoder;
    n2_image_decoder decoder;
    n2_prior prior;
} n2_lebm_nets;

/* As tensors of the store, initial values by the seed. Fails with N2CE_EINVAL, N2CE_ENOMEM. */
n2ce_status n2_lebm_nets_new(n2_store *store, const n2_lebm_spec *spec, uint64_t seed,
                             n2_lebm_nets *out);

/* Numbers that they have, or a few less; none is made. */
n2ce_status n2_lebm_nets_count(n2ce_ctx *ctx, const n2_lebm_spec *spec, double *numbers);

/* ---- losses, as nodes ---- */

/* Pictures and a code of each, drawn from the posterior. */
typedef struct n2_lebm_batch {
    n2_node x, mean, logvar, z;
} n2_lebm_batch;

/* eps: N(0, I), [n x nz]. */
#define n2_lebm_encode(g, out, ...) N2_BUILT_ALL(g, *(out) = n2_build_lebm_encode(g, __VA_ARGS__))
n2_lebm_batch n2_build_lebm_encode(n2_graph *g, const n2_image_encoder *encoder, n2_node x,
                                   n2_node eps);

/* Parts of a bound, means over pictures, scalars. */
typedef struct n2_lebm_bound {
    n2_node misfit;     /* |x - g(z)|^2 */
    n2_node divergence; /* KL(q || N(0, I)), nats */
    n2_node ratio;      /* f(z) */
    n2_node loss;       /* weight misfit + divergence - ratio */
} n2_lebm_bound;

/* prior NULL: N(0, I). Its parameters are those of before any update that was built. */
#define n2_lebm_bound_of(g, out, ...) N2_BUILT_ALL(g, *(out) = n2_build_lebm_bound(g, __VA_ARGS__))
n2_lebm_bound n2_build_lebm_bound(n2_graph *g, const n2_image_decoder *decoder,
                                  const n2_prior *prior, const n2_lebm_batch *batch, double weight);

/* ---- models ---- */

typedef struct n2_lebm {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_lebm_nets nets;
    const n2_backend *backend; /* where its plans run: that of the training, else the processor's */
} n2_lebm;

/* A model that has learnt nothing. Fails with N2CE_EINVAL, N2CE_ENOMEM. */
n2ce_status n2_lebm_new(n2ce_ctx *ctx, const n2_lebm_spec *spec, uint64_t seed, n2_lebm **out);
void n2_lebm_free(n2_lebm *m); /* NULL is fine */

/* Copies encoder and decoder of a model of the same sizes: what several priors have in common is
 * learnt once. N2CE_EINVAL: the sizes differ. */
n2ce_status n2_lebm_take_vae(n2_lebm *to, const n2_lebm *from);

/* ---- training (vae_train.c) ---- */

typedef enum n2_lebm_phase {
    N2_LEBM_VAE,
    N2_LEBM_PRIOR,
    N2_LEBM_JOINT,
    N2_LEBM_SETTLE, /* the prior once more: codes moved in the joint phase, and stand still again */
    N2_LEBM_PHASES
} n2_lebm_phase;
extern const char *const n2_lebm_phase_names[N2_LEBM_PHASES]; /* "vae", "prior", ... */

/* What is done in which measure. Rates fall to 0 as half a cosine in every phase. */
typedef struct n2_lebm_schedule {
    uint64_t seed, steps[N2_LEBM_PHASES];
    int64_t batch;
    double weight[N2_LEBM_PHASES]; /* of the misfit; those of the prior's phases are not used */
    double vae_rate, joint_rate;   /* of encoder and decoder */
    double prior_rate, joint_prior_rate;
    bool flips; /* every picture or its mirror image, by chance */
} n2_lebm_schedule;

/* The paper's weights and rates for a net: 1 and 5; 100 and 2 for "cifar"; 2e-4; digits are not
 * mirrored. MLE has a tenth of the prior's rates, at which its chains keep up. Steps: 10000, 10000,
 * 5000, and 3000 to settle, which the paper does not have. */
n2_lebm_schedule n2_lebm_schedule_for(const n2_lebm_spec *spec);

typedef struct n2_lebm_run {
    n2_lebm_schedule schedule;
    double seconds;           /* stop after so many; 0: no limit */
    const char *checkpoint;   /* where to keep the state while training; NULL: nowhere */
    bool resume;              /* go on from it if it is there */
    n2_device_choice *choice; /* NULL: the processor. Settled by training */
    bool quiet;               /* looks are noted, and not told */
} n2_lebm_run;

/* What was seen of some of the pictures while training: parts of the bound, and what each stage
 * adds to f, in nats but for the misfit. */
typedef struct n2_lebm_look {
    n2_lebm_phase phase;
    uint64_t step; /* of the phase, before it */
    double misfit, divergence, ratio[N2_PRIOR_STAGES_MAX];
} n2_lebm_look;

enum { N2_LEBM_LOOKS = 10, N2_LEBM_LOOKS_MAX = N2_LEBM_PHASES * (N2_LEBM_LOOKS + 2) };
typedef struct n2_lebm_record {
    n2_lebm_look look[N2_LEBM_LOOKS_MAX]; /* in the order of the steps, the last at the end */
    size_t looks;
    uint64_t steps[N2_LEBM_PHASES]; /* that were done */
    double prior_loss;              /* the last; NaN: there is none */
    bool out_of_time, resumed;
} n2_lebm_record;

/* A phase can be trained once in the life of a model, all of them in one run or in several.
 * Trains on pictures, which must have the size of the model's frame; phases of no steps, and those
 * of a prior that has nothing to learn, are left out. Looks are told as log lines. Fails with
 * N2CE_EDATA (another size; a checkpoint of something else), N2CE_ENAN, N2CE_EDEVICE (the choice
 * may then retreat), N2CE_ECANCELED with the checkpoint written, N2CE_ENOMEM. */
n2ce_status n2_lebm_train(n2_lebm *m, const n2_images *pictures, const n2_lebm_run *run,
                          n2_lebm_record *record);

/* ---- codes (vae_codes.c) ---- */

/* Mean and log variance of the posterior of each picture, [n x nz] and [n x nz] side by side; of
 * their mirror images if asked for. */
n2ce_status n2_lebm_codes(n2_lebm *m, const n2_images *pictures, bool mirrored, float *codes);

/* ---- how good a prior is (prior_gain.c) ---- */

typedef struct n2_lebm_gain {
    double nats;  /* mean over codes of ln p(z) / N(z; 0, I) */
    double draws; /* that Z rests on, of 50,000 draws of N(0, I): few, and the gain is too large */
} n2_lebm_gain;

/* Of n codes [n x nz], with Z by importance sampling. 0 for the prior N(0, I). */
n2ce_status n2_lebm_prior_gain(n2_lebm *m, const double *z, size_t n, uint64_t seed,
                               n2_lebm_gain *out);

/* ---- sampling (sample.c) ---- */

/* Chains of codes that are moved and shown, so many at once. */
typedef struct n2_lebm_sampler n2_lebm_sampler;

/* Whether each move is tested by Metropolis' rule, which makes chains exact. Auto: those of ratios,
 * which are a density; not those of maximum likelihood, whose f was learnt for chains without. */
typedef enum n2_lebm_chains { N2_LEBM_AUTO, N2_LEBM_PLAIN, N2_LEBM_ADJUSTED } n2_lebm_chains;

typedef struct n2_lebm_sampling {
    size_t rows;   /* chains at once; 0: 500 */
    double step;   /* s of Langevin dynamics; 0: 0.4 */
    bool no_prior; /* N(0, I), whatever was learnt */
    n2_lebm_chains chains;
} n2_lebm_sampling;

/* On the model's backend; the model must outlive *out, and not be trained meanwhile. */
n2ce_status n2_lebm_sampler_open(n2_lebm *m, const n2_lebm_sampling *how, n2_lebm_sampler **out);
void n2_lebm_sampler_close(n2_lebm_sampler *s); /* NULL is fine */

/* All chains to N(0, I), the draws of this batch of this seed; or n codes [n x nz] from the
 * caller. Then so many moves, which for a seed and a batch are always the same. */
n2ce_status n2_lebm_sampler_begin(n2_lebm_sampler *s, uint64_t seed, uint32_t batch);
n2ce_status n2_lebm_sampler_set(n2_lebm_sampler *s, const double *codes, size_t n);
n2ce_status n2_lebm_sampler_move(n2_lebm_sampler *s, uint64_t moves);

/* The pictures of the first n codes as pictures first .. first + n - 1 of `to`, which has the
 * model's frame. */
n2ce_status n2_lebm_sampler_show(n2_lebm_sampler *s, size_t n, const n2_images *to, size_t first);

/* n pictures from the prior, by chains of so many moves, none where it is N(0, I); picture i is the
 * same for every n. */
n2ce_status n2_lebm_sample(n2_lebm *m, const n2_lebm_sampling *how, size_t n, uint64_t moves,
                           uint64_t seed, n2_images **out);

/* Pictures of n codes [n x nz]. */
n2ce_status n2_lebm_decode(n2_lebm *m, const double *codes, size_t n, n2_images **out);

/* Black pictures of the model's frame. */
n2ce_status n2_lebm_blank(const n2_lebm *m, size_t n, n2_images **out);

/* Each picture and what the mean of its code becomes, in turns; and for neighbours 2 k and 2 k + 1,
 * a row of `columns` pictures on the line between their codes, ends included. */
n2ce_status n2_lebm_reconstruct(n2_lebm *m, const n2_images *pictures, n2_images **out);
n2ce_status n2_lebm_interpolate(n2_lebm *m, const n2_images *pictures, size_t columns,
                                n2_images **out);

/* Settles a choice where there is no training, by timing moves and decoding for n pictures. The
 * model's plans then run there. */
n2ce_status n2_lebm_settle(n2_lebm *m, n2_device_choice *choice, size_t n, uint64_t moves);

/* ---- files (lebm_file.c) ---- */

/* The model as a safetensors file: parameters by PyTorch's names and in its order of kernels, sizes
 * as metadata, and the caller's note, a text (NULL: none). Fails with N2CE_EEXIST unless
 * `overwrite`, N2CE_EIO, N2CE_ENOMEM. */
n2ce_status n2_lebm_save(const n2_lebm *m, const char *note, const char *path, bool overwrite);

/* Fails with N2CE_EDATA for a file that is damaged or not such a model, N2CE_EIO, N2CE_ENOMEM. */
n2ce_status n2_lebm_load(n2ce_ctx *ctx, const char *path, n2_lebm **out);

/* Whether a file says that it is such a model. */
bool n2_lebm_is_model(n2ce_ctx *ctx, const char *path);

/* Sizes, and what was done, as JSON objects. */
void n2_lebm_spec_json(const n2_lebm_spec *spec, n2_text *out);
void n2_lebm_schedule_json(const n2_lebm_schedule *schedule, n2_text *out);

#endif
