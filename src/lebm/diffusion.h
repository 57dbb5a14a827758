/* Diffusion of codes, by the angle of the noise.
 *
 * The log signal-to-noise ratio of DAMC, lambda(u) = -2 ln tan(a u + b) for u from 0, clean, to 1,
 * noise, is that of an angle theta = a u + b:
 *
 *     z(theta) = cos(theta) z + sin(theta) eps,       eps ~ N(0, I)
 *
 * from tan(theta) = exp(-9.8 / 2) at u = 0 to exp(5.1 / 2) at u = 1. So signal and noise are a
 * cosine and a sine, and what the network is told of the time, atan(exp(-lambda / 2)), is theta. */
#ifndef N2_DIFFUSION_H
#define N2_DIFFUSION_H

#include "model/damc_net.h"

enum { N2_DIFFUSION_STEPS = 100 };

/* theta(u), and a number for the tests: lambda(u). */
double n2_diffusion_angle(double u);
double n2_diffusion_log_snr(double u);

/* theta of times u, element by element. */
#define n2_diffusion_angles(g, ...) N2_BUILT(g, n2_build_diffusion_angles(g, __VA_ARGS__))
n2_node n2_build_diffusion_angles(n2_graph *g, n2_node u);

/* What the noise was that made codes z [n x nz] those that the network is shown, by the network:
 * the mean over rows of |eps - estimate|^2 / 2, every row at a time of its own. u [n] and eps
 * [n x nz] are drawn where they are N2_NONE. */
#define n2_diffusion_loss(g, ...) N2_BUILT(g, n2_build_diffusion_loss(g, __VA_ARGS__))
n2_node n2_build_diffusion_loss(n2_graph *g, const n2_damc_net *net, n2_node z, n2_node embedding,
                                n2_node u, n2_node eps);

/* Codes in the making: z, and how many of the steps are still to come. */
typedef struct n2_diffusion_chain {
    n2_tensor *z;    /* [n x nz] */
    n2_tensor *left; /* [1] */
} n2_diffusion_chain;

/* Tensors NAME.z and NAME.left; NULL where memory is short. */
n2_diffusion_chain n2_diffusion_chain_new(n2_store *store, const char *name, int64_t n, int64_t nz);

/* As updates: noise, with all steps to come; and one step, from z(theta) to a draw of z(theta') by
 * the estimate of z(0), with the larger of the two usual variances. The last of
 * N2_DIFFUSION_STEPS steps leaves that estimate. Both return the new z. */
#define n2_diffusion_begin(g, ...) N2_BUILT(g, n2_build_diffusion_begin(g, __VA_ARGS__))
n2_node n2_build_diffusion_begin(n2_graph *g, const n2_diffusion_chain *chain);
#define n2_diffusion_step(g, ...) N2_BUILT(g, n2_build_diffusion_step(g, __VA_ARGS__))
n2_node n2_build_diffusion_step(n2_graph *g, const n2_diffusion_chain *chain,
                                const n2_damc_net *net, n2_node embedding);

#endif
