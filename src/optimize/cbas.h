/* CbAS in the making: what it has in common with autofocused CbAS. */
#ifndef N2_CBAS_H
#define N2_CBAS_H

#include "surrogate.h"

enum { N2_CBAS_LATENT = 32, N2_CBAS_ROUNDS = 20 };

/* Encoder and decoder with a list of parameters of their own. */
typedef struct n2_autoencoder {
    n2_parameters parameters;
    n2_first_layer first;
    n2_layer mean, logvar;
    n2_mlp decoder;
} n2_autoencoder;

typedef struct n2_cbas {
    n2_workspace *ws;
    n2_code code;
    n2_surrogate surrogate;
    bool sequence;
    n2_autoencoder p, q;
    n2_tensor *bounds; /* of the log spread of numbers */
    n2_tensor *data, *samples, *weight;
    n2_plan *draw;    /* samples of q */
    n2_plan *compare; /* autofocused: ln q - ln p of the data */
    double *x, *log_p, *log_q, *w, *means, *spreads, *sorted;
} n2_cbas;

/* What is done after each round; NULL: nothing. */
typedef n2ce_status n2_cbas_focus(n2_cbas *c, size_t round);

n2ce_status n2_cbas_run(n2_workspace *ws, const n2_designs *offline, n2_cbas_focus *focus,
                        n2_proposals *out);

/* ln of the density that an autoencoder gives rows x at latent rows z, [rows x 1]. */
n2_node n2_cbas_log_density(n2_graph *g, const n2_cbas *c, const n2_autoencoder *a, n2_node z,
                            n2_node x);

/* Turns n logarithms into weights with mean 1; those more than 20 below the largest count as that.
 */
void n2_cbas_weights(double *w, size_t n);

#endif
