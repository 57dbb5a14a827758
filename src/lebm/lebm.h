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

#include "model/image_net.h"
#include "prior.h"

/* What a model is: sizes that a file must know to make it again. */
typedef struct n2_lebm_spec {
    const n2_image_spec *net;         /* layers, and the size of pictures inside */
    int64_t nz;                       /* numbers of a code */
    int64_t encoder_width, embedding; /* channels of the first layer; numbers before the heads */
    int64_t decoder_width;
    n2_prior_spec prior;
} n2_lebm_spec;

/* The paper's sizes for a net of image_net.h. */
n2_lebm_spec n2_lebm_defaults(const n2_image_spec *net);

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

#endif
