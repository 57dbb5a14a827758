/* Adam as networks of pictures are trained in this room. */
#ifndef N2_PICTURE_ADAM_H
#define N2_PICTURE_ADAM_H

#include "nn/nn.h"

/* Betas 0.5 and 0.999, gradients clipped at 100, and a rate that falls to nothing by half a cosine
 * in so many steps, which must stay where they are while the graph is built. */
static inline n2_optimiser n2_picture_adam(double rate, const double *steps) {
    return (n2_optimiser){.adam = {0.5, 0.999, 1e-8, 0},
                          .rate = rate,
                          .clip = 100,
                          .loss_scale = N2_HALF_LOSS_SCALE,
                          .schedule = n2_schedule_cosine,
                          .schedule_arg = steps};
}

#endif
