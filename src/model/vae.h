/* Variational autoencoder of MLPs, as the paper uses for offline optimisation: the encoder
 * has two hidden layers and heads for mean and log variance, the decoder four hidden
 * layers (4, 2, 1, 1 times a width) and a linear output. LeakyReLU(0.2). */
#ifndef N2_VAE_H
#define N2_VAE_H

#include "nn/nn.h"

typedef struct n2_vae {
    n2_mlp encoder, decoder;
    n2_layer mean, logvar;
} n2_vae;

/* The paper's sizes are width 32: encoder 128, decoder 128-64-32-32. */
n2_vae n2_vae_new(n2_parameters *p, int64_t dim, int64_t nz, int64_t width);

#define n2_vae_encode(g, ...) N2_BUILT_ALL(g, n2_build_vae_encode(g, __VA_ARGS__))
void n2_build_vae_encode(n2_graph *g, const n2_vae *vae, n2_node x, n2_node *mean, n2_node *logvar);
#define n2_vae_decode(g, ...) N2_BUILT(g, n2_build_vae_decode(g, __VA_ARGS__))
n2_node n2_build_vae_decode(n2_graph *g, const n2_vae *vae, n2_node z);

#endif
