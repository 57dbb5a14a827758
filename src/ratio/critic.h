/* The learned part of a log ratio: a network trained by contrast.
 *
 * The log ratio is  f(x) = base(x) + sum_k g(x, k),  where base is the Gaussian part in
 * closed form (gauss.h), if there is one, and g(., k) corrects it between two
 * neighbouring waymarks. The network of g sees, besides x itself, the distances of x from
 * the centres of both Gaussians, measured in their own covariances: so what depends on
 * these alone, such as the ratio of two Student distributions, is easy to learn. For
 * p(x,y) / p(x)p(y) it also has a part phi(x) . psi(y). g starts at 0 and is trained on batches
 * that are drawn afresh every step; what was best on validation rows is kept, and if nothing beat
 * the base it stays 0. */
#ifndef N2_CRITIC_H
#define N2_CRITIC_H

#include "gauss.h"
#include "train/device_choice.h"

typedef enum n2_contrast {
    N2_CONTRAST_N2CE,
    N2_CONTRAST_NWJ,
    N2_CONTRAST_NEG_REWEIGHT,
    N2_CONTRAST_DV,
    N2_CONTRAST_INFONCE,
    N2_CONTRAST_SMILE
} n2_contrast;

/* Samples in rows of features. With dx > 0 there is no denominator: it is the product of
 * the margins of the numerator's first dx and other features, drawn by pairing rows at
 * random. Rows [held, held_end) of both are not touched. */
typedef struct n2_contrast_data {
    n2_rows_view num, den;
    size_t dx;
    size_t held[2][2]; /* of num and den: first, end */
} n2_contrast_data;

typedef struct n2_critic_options {
    n2_contrast contrast;
    double magnitude, regularisation;
    double judge;        /* magnitude of the N2CE loss on validation rows */
    size_t stages;       /* at least 1 */
    const double *alpha; /* stages + 1 waymarks, 1 (den) ... 0 (num) */
    size_t width, blocks;
    size_t batch, noise; /* numerator rows a step; noise rows for each of them */
    size_t steps;
    double rate, decay;
    double tau; /* SMILE's clip */
    uint64_t seed;
    double deadline; /* n2_seconds() at which to stop, 0: none */
    n2_device_choice
        *choice; /* where networks run; NULL: the processor. The first training settles it */
} n2_critic_options;

typedef struct n2_critic n2_critic;

/* Losses on validation rows: before the first step, and whenever they were looked at. */
enum { N2_MOST_LOOKS = 48 };
typedef struct n2_learning_curve {
    size_t n;
    double step[N2_MOST_LOOKS], loss[N2_MOST_LOOKS];
} n2_learning_curve;

typedef struct n2_critic_record {
    size_t steps;           /* that were run */
    size_t best_step;       /* after so many the parameters that were kept were there */
    double loss, base_loss; /* on validation rows: at the best step, and with g = 0 */
    n2_learning_curve curve;
    double gain, gain_error; /* by how much g lowers the loss of held-out rows, and the error */
    bool stopped_early;      /* no progress any more, before the last step */
    bool out_of_time;
} n2_critic_record;

/* Is told the share of the steps that is done. */
typedef struct n2_critic_listener {
    void (*progress)(void *user, double share); /* may be NULL */
    void *user;
} n2_critic_listener;

/* `base` is the log ratio to start from, fitted without the held-out rows; `shape` the
 * Gaussians that distances are measured by, and what a loaded critic is given again. Both
 * NULL: a plain network. Fails with N2CE_ENOMEM, N2CE_ENAN, N2CE_ECANCELED, N2CE_EDEVICE. */
n2ce_status n2_critic_train(n2ce_ctx *ctx, const n2_contrast_data *data, const n2_gauss *base,
                            const n2_gauss *shape, const n2_critic_options *o,
                            const n2_critic_listener *listener, n2_critic **out,
                            n2_critic_record *record);

/* A critic with the shapes of o and parameters still to be set: for loading. */
n2ce_status n2_critic_new(n2ce_ctx *ctx, size_t d, size_t dx, const n2_gauss *shape,
                          const n2_critic_options *o, n2_critic **out);
void n2_critic_free(n2_critic *c); /* NULL is fine */

/* Adds sum_k g(x, k) of n rows to f. */
n2ce_status n2_critic_add(n2_critic *c, const double *x, size_t n, double *f);

/* g(x, k) of n rows, n x stages, to g. */
n2ce_status n2_critic_stages(n2_critic *c, const double *x, size_t n, double *g);

/* The same critic where o's choice is. */
n2ce_status n2_critic_copy(const n2_critic *c, const n2_gauss *shape, const n2_critic_options *o,
                           n2_critic **out);

/* Parameters, for saving and loading: names and float values; NULL beyond the last. Pull before
 * reading their data, push after writing it. */
struct n2_tensor;
struct n2_tensor *n2_critic_parameter(const n2_critic *c, size_t index);
n2ce_status n2_critic_pull(const n2_critic *c);
void n2_critic_push(n2_critic *c);

#endif
