/* The losses of "bench lebm", for tests: a latent energy-based model of pictures, whose prior is
 * that of its codes by three ratios. */
#ifndef N2_BENCH_LEBM_H
#define N2_BENCH_LEBM_H

#include "bench_model.h"
#include "model/image_net.h"

typedef struct n2_lebm {
    n2_image_encoder encoder;
    n2_image_decoder decoder;
    n2_ratio_net ratio;
} n2_lebm;

/* Of the waymarks, as n2_bench_ratio_loss wants them. */
extern const double n2_lebm_variances[4];

/* 5 |x - g(z)|^2 + the divergence of codes from N(0, I) - the sum of f over stages: the mean over
 * pictures. */
n2_node n2_lebm_loss(n2_graph *g, const n2_lebm *net, n2_node x, n2_node mean, n2_node logvar,
                     n2_node z);

#endif
