/* Critics among the arrays of a model file. */
#ifndef N2_CRITIC_FILE_H
#define N2_CRITIC_FILE_H

#include "critic.h"
#include "io/bundle.h"

/* The parameters of critic k; they must stay until the bundle is written. */
n2ce_status n2_critic_put(n2_bundle *b, const n2_critic *c, size_t k);

/* What n2_critic_new is told. */
typedef struct n2_critic_shape {
    size_t d, dx;
    const n2_gauss *gauss;
    const n2_critic_options *options;
} n2_critic_shape;

/* Critic k of a file. Fails with N2CE_EDATA, without a sentence, if it is not there or does not
 * have this shape, N2CE_ENOMEM; *out is then NULL. */
n2ce_status n2_critic_take(n2ce_ctx *ctx, const n2_st_file *f, size_t k,
                           const n2_critic_shape *shape, n2_critic **out);

#endif
