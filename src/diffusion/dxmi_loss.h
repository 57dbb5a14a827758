/* Losses of DxMI, as nodes (Yoon et al. 2024; docs/diffusion.md). V is a value of pictures, and the
 * energy of real ones: f = -V is the log ratio that N2CE learns. */
#ifndef N2_DXMI_LOSS_H
#define N2_DXMI_LOSS_H

#include "distill.h"

/* Of values [n x 1] of real and of made pictures: N2CE's loss of -V with lambda times both mean
 * squares; or contrastive divergence, mean V(real) - mean V(made), with the squares times 1. */
#define n2_energy_loss(g, ...) N2_BUILT(g, n2_build_energy_loss(g, __VA_ARGS__))
n2_node n2_build_energy_loss(n2_graph *g, const n2_critic *critic, n2_node real, n2_node made);

/* The mean of (V(x) - V(next) - cost)^2, V(next) without gradient. */
#define n2_temporal_loss(g, ...) N2_BUILT(g, n2_build_temporal_loss(g, __VA_ARGS__))
n2_node n2_build_temporal_loss(n2_graph *g, n2_node value, n2_node next, n2_node cost);

/* s^2 of a step after pictures went from x to next: 0.99 s^2 + 0.01 mean (next - x)^2. */
#define n2_adapt_velocity(g, ...) N2_BUILT(g, n2_build_adapt_velocity(g, __VA_ARGS__))
n2_node n2_build_adapt_velocity(n2_graph *g, n2_node s2, n2_node x, n2_node next);

/* (next - x)^2 / (2 s^2), the mean over each picture: [n, 1, 1, 1]. s2: [n, 1, 1, 1]. */
#define n2_velocity(g, ...) N2_BUILT(g, n2_build_velocity(g, __VA_ARGS__))
n2_node n2_build_velocity(n2_graph *g, n2_node x, n2_node next, n2_node s2);

#endif
