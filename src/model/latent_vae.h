/* A variational autoencoder of rows with numbers, numbers with an atom, and categories.
 *
 * A row of the code (optimize/latent_code.h) has, in this order,
 *
 *   numbers      in [-1, 1]; the first `atoms` of them are 0 where their atom is taken
 *   atoms        1 where a number has the value that is frequent in its column
 *   categories   a one for the level, zeros for the others
 *
 * The decoder's raw outputs are bounded: numbers by tanh, log odds to +-10. So what it
 * proposes lies within the bounds by construction. LeakyReLU(0.2). */
#ifndef N2_LATENT_VAE_H
#define N2_LATENT_VAE_H

#include "nn/nn.h"

typedef struct n2_latent_layout {
    int64_t numbers, atoms, categories; /* columns of each kind; categories counts levels */
    const size_t *block;                /* of each level: the number of its category */
} n2_latent_layout;

typedef struct n2_latent_vae {
    n2_latent_layout layout;
    int64_t width, nz;
    n2_mlp encoder, decoder;
    n2_layer mean, logvar;
    n2_tensor *same; /* levels x levels: 1 where two belong to one category; NULL: none */
} n2_latent_vae;

int64_t n2_latent_width(const n2_latent_layout *layout);

/* Encoder width-h-h-(nz, nz), decoder nz-h-h-width. */
n2_latent_vae n2_latent_vae_new(n2_parameters *p, const n2_latent_layout *layout, int64_t nz,
                                int64_t hidden);

#define n2_latent_encode(g, ...) N2_BUILT_ALL(g, n2_build_latent_encode(g, __VA_ARGS__))
void n2_build_latent_encode(n2_graph *g, const n2_latent_vae *vae, n2_node x, n2_node *mean,
                            n2_node *logvar);

/* Numbers in (-1, 1), then log odds of atoms and levels. */
#define n2_latent_decode(g, ...) N2_BUILT(g, n2_build_latent_decode(g, __VA_ARGS__))
n2_node n2_build_latent_decode(n2_graph *g, const n2_latent_vae *vae, n2_node z);

/* The row that is expected: probabilities instead of log odds. */
#define n2_latent_expected(g, ...) N2_BUILT(g, n2_build_latent_expected(g, __VA_ARGS__))
n2_node n2_build_latent_expected(n2_graph *g, const n2_latent_vae *vae, n2_node decoded);

/* -ln p(x|z) of rows in nats without its constant, [n x 1]; numbers have this standard
 * deviation. */
#define n2_latent_misfits(g, ...) N2_BUILT(g, n2_build_latent_misfits(g, __VA_ARGS__))
n2_node n2_build_latent_misfits(n2_graph *g, const n2_latent_vae *vae, n2_node decoded, n2_node x,
                                double sd);

#endif
