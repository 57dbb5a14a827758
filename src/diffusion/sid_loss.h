/* Losses of SiD and SiDA, as nodes (Zhou et al. 2024; the sheet's equations in docs/diffusion.md).
 *
 * y = G(z) is made, x = y + sigma n; a = D_teacher(x), b = D_fake(x). */
#ifndef N2_SID_LOSS_H
#define N2_SID_LOSS_H

#include "distill.h"

/* n levels of noise for the generator's step: those of u ~ U(0, 0.8). */
#define n2_sid_sigmas(g, n) N2_BUILT(g, n2_build_sid_sigmas(g, n))
n2_node n2_build_sid_sigmas(n2_graph *g, int64_t n);

/* What a generator makes of noise z like pictures: D(sigma z; sigma). */
#define n2_generate(g, ...) N2_BUILT(g, n2_build_generate(g, __VA_ARGS__))
n2_node n2_build_generate(n2_graph *g, const n2_edm *edm, const n2_unet *net, n2_node z,
                          n2_node labels, double sigma, bool training);

/* 1 / max(mean of |y - a| over a picture, 1e-5), [n, 1, 1, 1], without gradient. */
#define n2_sid_scale(g, y, a) N2_BUILT(g, n2_build_sid_scale(g, y, a))
n2_node n2_build_sid_scale(n2_graph *g, n2_node y, n2_node a);

/* The mean over pictures of scale sum (a - b) ((a - y) - alpha (a - b)). The gradient goes through
 * y directly, and through a and b. */
#define n2_sid_loss(g, ...) N2_BUILT(g, n2_build_sid_loss(g, __VA_ARGS__))
n2_node n2_build_sid_loss(n2_graph *g, n2_node a, n2_node b, n2_node y, n2_node scale,
                          double alpha);

/* Log ratios of places of a picture: the mean over channels of what the way down ends with,
 * [n, h, w, 1]. */
#define n2_logit_map(g, bottom) N2_BUILT(g, n2_build_logit_map(g, bottom))
n2_node n2_build_logit_map(n2_graph *g, n2_node bottom);

/* Of logits on real and on made pictures: N2CE's loss and lambda times both mean squares; or the
 * mean of the two logistic losses. */
#define n2_critic_loss(g, ...) N2_BUILT(g, n2_build_critic_loss(g, __VA_ARGS__))
n2_node n2_build_critic_loss(n2_graph *g, const n2_critic *critic, n2_node real, n2_node made);

/* What the generator loses by logits: 0.01 numbers-of-a-picture mean(scale) mean softplus(-logit),
 * with logits between -10 and 10. */
#define n2_adversarial_loss(g, ...) N2_BUILT(g, n2_build_adversarial_loss(g, __VA_ARGS__))
n2_node n2_build_adversarial_loss(n2_graph *g, n2_node logits, n2_node scale, double numbers);

/* The mean of all elements. */
#define n2_mean_of(g, x) N2_BUILT(g, n2_build_mean_of(g, x))
n2_node n2_build_mean_of(n2_graph *g, n2_node x);

#endif
