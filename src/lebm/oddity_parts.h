/* Inside of oddity.h: a member of an ensemble. oddity_train.c trains it, oddity_score.c asks it,
 * oddity.c has the ensemble. */
#ifndef N2_ODDITY_PARTS_H
#define N2_ODDITY_PARTS_H

#include "base/arena.h"
#include "oddity.h"
#include "train/train.h"

/* What a plan says of a picture, before logarithms and neighbours. */
typedef enum n2_oddity_fact {
    N2_FACT_ERROR,    /* |x - g(m)|^2 */
    N2_FACT_EXPECTED, /* the sum of variances of pixels, given m */
    N2_FACT_PLACE,
    N2_FACT_CONTRAST,
    N2_FACT_DIVERGENCE, /* of the posterior from N(0, I), nats */
    N2_ODDITY_FACTS
} n2_oddity_fact;

typedef struct n2_oddity_member {
    n2ce_ctx *ctx;
    n2_oddity_spec spec;
    uint64_t seed;
    n2_store *store;
    n2_lebm_nets nets;                 /* autoencoder, and prior of its codes */
    n2_parameters variance_parameters; /* named "variance.*" */
    n2_image_decoder variance;         /* m to ln of the variance of each pixel */
    n2_parameters critic_parameters;   /* named "critic.*" */
    n2_image_encoder critic;
    n2_layer critic_head;
    n2_tensor *pictures; /* to train on */
    n2_tensor *asked;    /* [ASKED x ..]: pictures in question */
    n2_graph *graph;     /* of N2_ODDITY_FACTS + 1 results, the last being m */
    n2_plan *plan;
    n2_node result[N2_ODDITY_FACTS + 1];
    n2_arena arena; /* of what follows */
    float *codes;   /* of the pictures trained on, [n_codes x nz] */
    size_t n_codes;
    double *held_out; /* parts of those held out, [n_held_out x N2_ODDITY_PARTS] */
    size_t n_held_out;
    n2_tail tails[N2_ODDITY_PARTS];
} n2_oddity_member;

struct n2_oddity {
    n2ce_ctx *ctx;
    size_t n;
    n2_oddity_member *members;
    double *ranked; /* of all members, rising */
    size_t n_ranked;
};

/* No members yet, and room for so many. */
n2ce_status n2_oddity_new(n2ce_ctx *ctx, size_t members, n2_oddity **out);

/* Tails and ranks from the parts of pictures that members hold out. */
n2ce_status n2_oddity_calibrate(n2_oddity *o);

/* The autoencoder among the networks of a member, for pictures of this size. */
n2_lebm_spec n2_oddity_autoencoder(const n2_oddity_spec *spec, n2_lebm_frame frame);

/* Networks with initial values for pictures of this size, and room for n of them.
 * n2_oddity_member_close is due after failures too. */
n2ce_status n2_oddity_member_open(n2ce_ctx *ctx, const n2_oddity_spec *spec, uint64_t seed,
                                  n2_lebm_frame frame, size_t n, n2_oddity_member *out);
void n2_oddity_member_close(n2_oddity_member *m);

/* Trains on the pictures of the tensor. */
n2ce_status n2_oddity_member_train(n2_oddity_member *m, n2_device_choice *choice);

/* ln of the variance of each pixel, and the critic's log ratio [n x 1] of pictures. */
#define n2_oddity_variance(g, ...) N2_BUILT(g, n2_build_oddity_variance(g, __VA_ARGS__))
n2_node n2_build_oddity_variance(n2_graph *g, const n2_oddity_member *m, n2_node code);
#define n2_oddity_critic(g, ...) N2_BUILT(g, n2_build_oddity_critic(g, __VA_ARGS__))
n2_node n2_build_oddity_critic(n2_graph *g, const n2_oddity_member *m, n2_node pictures);

/* Compiles the plan that is asked, for a backend. */
n2ce_status n2_oddity_member_compile(n2_oddity_member *m, const n2_backend *backend);

/* Parts of the pictures with these numbers, [n x N2_ODDITY_PARTS]; without neighbours (NaN) where
 * there are no codes yet. codes: [n x nz], or NULL. */
n2ce_status n2_oddity_member_ask(n2_oddity_member *m, const n2_images *pictures,
                                 const size_t *numbers, size_t n, double *parts, float *codes);

/* Pictures as the networks see them. */
void n2_oddity_pixels(const n2_oddity_member *m, const n2_images *pictures, const size_t *numbers,
                      size_t n, float *out);

#endif
