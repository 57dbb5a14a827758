/* How odd pictures are, learnt from normal ones alone.
 *
 * Normal pictures are dealt: nine of ten train a variational autoencoder, and on its codes, which
 * then stand still, three networks beside it; one of ten is held out and says what is usual. With
 * the mean m of a picture's code and the picture g(m) that the decoder makes of it, the parts are
 *
 *     error        ln |x - g(m)|^2
 *     surprise     ln of |x - g(m)|^2 over what is usual for m: a second decoder knows that
 *     place        -ln p(m), by the prior that N2CE learns on codes of normal pictures
 *     neighbours   ln of the mean distance of m to its 5 nearest codes of training
 *     contrast     minus the log ratio of decoded codes to decoded mixes of codes at g(m)
 *     bound        what the autoencoder minimises: the weighted error and the code's divergence
 *
 * The larger, the odder. The contrast is learnt by N2CE and a convolutional critic. Both sides of
 * it are decoded, so blur does not tell them apart; what lies between kinds of pictures does.
 *
 * Each part is turned into nats of surprise: minus the logarithm of the share of held-out pictures
 * that have it at least as large, with an exponential tail beyond the largest. So parts can be
 * added: error + surprise / 2 + (place + neighbours) / 2 + contrast is the score, three kinds of
 * evidence with the same weight. Several models with other seeds agree better than one: parts are
 * means over them. */
#ifndef N2_ODDITY_H
#define N2_ODDITY_H

#include "detect/calibration.h"
#include "image/image.h"
#include "lebm.h"
#include "train/device_choice.h"

typedef enum n2_oddity_part {
    N2_ODD_ERROR,
    N2_ODD_SURPRISE,
    N2_ODD_PLACE,
    N2_ODD_NEIGHBOURS,
    N2_ODD_CONTRAST,
    N2_ODD_BOUND,
    N2_ODDITY_PARTS
} n2_oddity_part;

extern const char *const n2_oddity_part_names[N2_ODDITY_PARTS];

typedef struct n2_oddity_spec {
    const n2_image_spec *net;  /* n2_lebm_net_for: smaller pictures are framed */
    int64_t nz, width;         /* numbers of a code; channels of first layers */
    double weight;             /* of the squared error in the autoencoder's loss */
    uint64_t vae_steps, steps; /* of the autoencoder; of the networks beside it */
    int64_t batch;
    double vae_rate, rate;     /* of Adam, by half a cosine to nothing */
    double contrast_magnitude; /* M of the critic */
    size_t members;            /* models with seeds that follow one another */
} n2_oddity_spec;

/* Codes of 8 numbers for "mnist", 32 for other nets. */
n2_oddity_spec n2_oddity_defaults(const n2_image_spec *net);

enum { N2_ODDITY_MEMBERS = 10 }; /* at most */

typedef struct n2_oddity n2_oddity;

/* Learns from at least 100 normal pictures. Fails with N2CE_EDATA (too few, or too large for the
 * net), N2CE_ENAN, N2CE_EDEVICE, N2CE_ECANCELED, N2CE_ENOMEM. */
n2ce_status n2_oddity_learn(n2ce_ctx *ctx, const n2_oddity_spec *spec, const n2_images *normal,
                            uint64_t seed, n2_device_choice *choice, n2_oddity **out);
void n2_oddity_free(n2_oddity *o); /* NULL is fine */

/* Parts of pictures in nats, means over members, [n x N2_ODDITY_PARTS]; and as one member has them,
 * not in nats. Pictures must have the size of those that it learnt from. Unless NULL, scores are
 * those by each member, [n x members]. Fails with N2CE_EDATA, N2CE_ENOMEM, N2CE_EDEVICE. */
n2ce_status n2_oddity_nats(n2_oddity *o, const n2_images *pictures, double *nats, double *scores);
n2ce_status n2_oddity_parts(n2_oddity *o, size_t member, const n2_images *pictures, double *parts);

/* The parts of the pictures that a member holds out, [*n x N2_ODDITY_PARTS]; its memory. Every
 * second of them, from the first on, says what is usual. */
const double *n2_oddity_held_out(const n2_oddity *o, size_t member, size_t *n);

/* Scores of the others, each by the member that held it out, rising; *n of them. A new picture
 * whose score is by one member, drawn without looking, has a p-value among them that is right for
 * any number of them (n2_conformal_rank). */
const double *n2_oddity_ranked(const n2_oddity *o, size_t *n);

/* ---- files (oddity_file.c) ---- */

struct n2_st_file;

/* Written whole or not at all. Fails with N2CE_EEXIST unless `overwrite`, N2CE_EIO, N2CE_ENOMEM. */
n2ce_status n2_oddity_save(const n2_oddity *o, const char *path, bool overwrite);

/* choice: where its networks run; NULL: the processor. Fails with N2CE_EDATA for a file that is
 * damaged or not ours. */
n2ce_status n2_oddity_load(n2ce_ctx *ctx, const char *path, n2_device_choice *choice,
                           n2_oddity **out);

/* Whether an open safetensors file says it is one. */
bool n2_is_oddity(const struct n2_st_file *f);

/* ---- scores ---- */

/* The size of pictures that it takes, and how many members it has. */
n2_lebm_frame n2_oddity_frame(const n2_oddity *o);
size_t n2_oddity_member_count(const n2_oddity *o);

/* The score of a picture from its parts in nats. */
double n2_oddity_score(const double nats[N2_ODDITY_PARTS]);

#endif
