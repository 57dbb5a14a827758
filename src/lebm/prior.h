/* Priors of codes: p(z) = N(z; 0, I) exp(f(z)) / Z, f the sum of the log ratios f_k of a ratio
 * network.
 *
 *     N(0, I)  f = 0: that of a plain variational autoencoder
 *     N2CE     f_k by N2CE over waymarks, for any M and K; the ratios are normalised by themselves:
 *              ln Z is 0 but for what is not learnt
 *     MLE      one f by maximum likelihood: short chains of Langevin dynamics from N(0, I) draw
 * from the model; Z is not known
 *
 * A fitted prior has a Gaussian with the mean and full covariance of the codes in the place of
 * N(0, I): it is one of u = (z - centre) whiten, and z = centre + u colour. What Gaussians can say
 * of codes is then said before f is learnt.
 *
 * Larger f is more like data. A prior is used as nodes of a graph; its parameters are a list of
 * their own, so that one optimiser trains them and nothing else. */
#ifndef N2_PRIOR_H
#define N2_PRIOR_H

#include "model/ratio_loss.h"
#include "sampler/langevin.h"

enum { N2_PRIOR_STAGES_MAX = 8 };

typedef enum n2_prior_kind { N2_PRIOR_GAUSSIAN, N2_PRIOR_N2CE, N2_PRIOR_MLE } n2_prior_kind;

typedef struct n2_prior_spec {
    n2_prior_kind kind;
    double magnitude;     /* M, at least 1 */
    int64_t noise;        /* rows of the denominator for one code, weighted to M */
    int64_t stages;       /* K, 1 to N2_PRIOR_STAGES_MAX; MLE has 1 */
    int64_t width, depth; /* of the ratio network: units of a layer, residual blocks */
    int64_t moves;        /* MLE: Langevin steps of a chain, of size `step` */
    double step;
    bool fitted; /* codes are made those of N(0, I) first, as far as a Gaussian can */
} n2_prior_spec;

/* The paper's for pictures: M = 100, all of them noise rows, K = 3, width 128, 3 blocks; 60 moves
 * of 0.4. */
n2_prior_spec n2_prior_defaults(void);

/* Of a fitted prior: [1 x nz], [nz x nz], [nz x nz], and ln |whiten| [1 x 1]. */
enum { N2_PRIOR_CENTRE, N2_PRIOR_WHITEN, N2_PRIOR_COLOUR, N2_PRIOR_VOLUME, N2_PRIOR_BASE };

typedef struct n2_prior {
    n2_prior_spec spec;
    int64_t nz;
    n2_parameters parameters; /* none of N(0, I) */
    n2_ratio_net net;
    n2_tensor *waymarks;
    n2_tensor *base[N2_PRIOR_BASE]; /* NULL: it is not fitted, and u is z */
} n2_prior;

/* Networks as tensors of the store: names of ratio_net.h, "waymarks" and, of a fitted prior, whose
 * u is z at first, "base.*". Fails with N2CE_EINVAL for a spec beyond the bounds above,
 * N2CE_ENOMEM. */
n2ce_status n2_prior_new(n2_store *store, const n2_prior_spec *spec, int64_t nz, uint64_t seed,
                         n2_prior *out);

/* The Gaussian of a fitted prior: its mean [nz], and the lower factor of its covariance [nz x nz].
 * N2CE_ENOMEM. */
n2ce_status n2_prior_set_base(n2_store *store, const n2_prior *prior, const double *mean,
                              const double *factor);

/* Codes z as rows u, and rows u as codes. */
#define n2_prior_standardise(g, ...) N2_BUILT(g, n2_build_prior_standardise(g, __VA_ARGS__))
#define n2_prior_place(g, ...)       N2_BUILT(g, n2_build_prior_place(g, __VA_ARGS__))
n2_node n2_build_prior_standardise(n2_graph *g, const n2_prior *prior, n2_node z);
n2_node n2_build_prior_place(n2_graph *g, const n2_prior *prior, n2_node u);

/* ln p(u) + ln Z of each row, [n x 1], without the constant of N(0, I): f(u) - |u|^2 / 2. An
 * n2_log_density whose model is an n2_prior. */
n2_node n2_prior_log_density(n2_graph *g, n2_node z, const void *prior);

/* ln p(z) / N(z; 0, I) + ln Z: f alone, or f and what the fitted Gaussian says. Of each row
 * [n x 1], not of a prior that is N(0, I); the mean over rows, of N(0, I) the constant 0. */
#define n2_prior_ratio(g, ...) N2_BUILT(g, n2_build_prior_ratio(g, __VA_ARGS__))
n2_node n2_build_prior_ratio(n2_graph *g, const n2_prior *prior, n2_node z);
#define n2_prior_mean_ratio(g, ...) N2_BUILT(g, n2_build_prior_mean_ratio(g, __VA_ARGS__))
n2_node n2_build_prior_mean_ratio(n2_graph *g, const n2_prior *prior, n2_node z);

/* Rows u moved by so many steps of unadjusted Langevin dynamics, all in this graph, detached. */
#define n2_prior_chain(g, ...) N2_BUILT(g, n2_build_prior_chain(g, __VA_ARGS__))
n2_node n2_build_prior_chain(n2_graph *g, const n2_prior *prior, n2_node z, int64_t moves,
                             double step);

/* What N2CE or MLE minimises for codes z [n x nz], which are detached here. MLE draws chains of its
 * own; where there are others, n2_prior_contrast takes them, all of them as rows u: the mean of f
 * over the model's rows minus that over the data's, whose gradient is that of minus the likelihood.
 */
#define n2_prior_loss(g, ...)     N2_BUILT(g, n2_build_prior_loss(g, __VA_ARGS__))
#define n2_prior_contrast(g, ...) N2_BUILT(g, n2_build_prior_contrast(g, __VA_ARGS__))
n2_node n2_build_prior_loss(n2_graph *g, const n2_prior *prior, n2_node z);
n2_node n2_build_prior_contrast(n2_graph *g, const n2_prior *prior, n2_node z, n2_node from_model);

#endif
