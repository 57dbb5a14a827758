/* Diffusion models of pictures: a network that removes noise of any level, how it is trained, and
 * pictures that are made with it.
 *
 *     n2_denoiser_new, n2_denoiser_train      a teacher, EDM's way (Karras et al. 2022)
 *     n2_denoiser_sample                      pictures, down the levels of noise_levels.h
 *     n2_denoiser_save, n2_denoiser_load      one file; students of distill.h are such files too
 *
 * Pictures are [n, height, width, channels] in [-1, 1]. May use base, io, image, metric, engine,
 * rewrite, nn, train, model. */
#ifndef N2_DENOISER_H
#define N2_DENOISER_H

#include "distance_watch.h"
#include "image/image.h"
#include "model/edm.h"
#include "noise_levels.h"
#include "train/train.h"

/* ---- what a model is ---- */

typedef enum n2_denoiser_kind {
    N2_DENOISER_TEACHER,  /* all levels of noise */
    N2_DENOISER_ONE_STEP, /* a generator: D(sigma z; sigma) is a picture */
    N2_DENOISER_FEW_STEPS /* ancestral sampling in so many steps, with noise of its own */
} n2_denoiser_kind;

typedef struct n2_denoiser_spec {
    int64_t height, width;
    n2_unet_spec net; /* channels and classes among it */
    n2_edm edm;
    n2_denoiser_kind kind;
    double sigma; /* of N2_DENOISER_ONE_STEP */
    size_t steps; /* of N2_DENOISER_FEW_STEPS */
} n2_denoiser_spec;

enum {
    N2_DENOISER_STEPS_MAX = 1000,
    N2_FEW_STEPS_MAX = 64,
    N2_DENOISER_SIDE_MAX = 1024 /* of a picture: what a file says bounds memory */
};

/* The network of a name ("s", "ddpmpp", "ddpm"; unet.h) for pictures of this size. width: of its
 * first layer, 0: its own; labels: classes it is told, 0: none. Fails with N2CE_EDATA for sizes
 * that cannot be halved as often as it does, N2CE_EINVAL for another name. */
n2ce_status n2_denoiser_spec_for(n2ce_ctx *ctx, const char *name, const n2_images *pictures,
                                 int64_t width, int64_t labels, n2_denoiser_spec *out);

/* A network in a store, whose parameters' names begin with `prefix`. */
typedef struct n2_score_net {
    n2_parameters parameters;
    n2_unet unet;
} n2_score_net;
n2ce_status n2_score_net_new(n2_store *store, const char *prefix, const n2_unet_spec *spec,
                             uint64_t seed, n2_score_net *out);
/* Copies parameters between networks of one spec, in one store or in two. */
n2ce_status n2_score_net_copy(const n2_score_net *to, const n2_score_net *from);

typedef struct n2_denoiser {
    n2ce_ctx *ctx;
    n2_store *store;
    n2_denoiser_spec spec;
    n2_score_net net;
    n2_tensor *log_sigma;      /* [steps], of N2_DENOISER_FEW_STEPS: ln of each step's noise */
    const n2_backend *backend; /* where its plans run */
} n2_denoiser;

/* A model that has learnt nothing. Fails with N2CE_EINVAL, N2CE_ENOMEM. */
n2ce_status n2_denoiser_new(n2ce_ctx *ctx, const n2_denoiser_spec *spec, uint64_t seed,
                            n2_denoiser **out);
void n2_denoiser_free(n2_denoiser *m); /* NULL is fine */

static inline int64_t n2_denoiser_numbers(const n2_denoiser_spec *s) {
    return s->height * s->width * s->net.channels;
}

/* N2CE_EDATA, with a sentence, unless the pictures have the model's size. */
n2ce_status n2_denoiser_check_size(n2ce_ctx *ctx, const n2_denoiser_spec *spec,
                                   const n2_images *pictures);

/* ---- training (denoiser_train.c) ---- */

/* Rates rise over the first pictures, and fall to 0 over the last share of the steps. The average
 * of weights forgets half in `half_life` pictures, or in 5 % of those seen where that is less. */
typedef struct n2_denoiser_schedule {
    uint64_t seed, steps;
    int64_t batch;
    double rate, ramp, fall, half_life;
    double untold;  /* share of pictures whose classes the network is not told, for guidance */
    bool flips;     /* every picture or its mirror image, by chance */
    double augment; /* or EDM's augmentation with this probability (augment.h), of a network that
                       is told of it; 0: none */
} n2_denoiser_schedule;

/* 12.5 million pictures, 512 at a time. */
n2_denoiser_schedule n2_denoiser_schedule_default(void);

/* What is seen on the way: at equal steps, and at the end. */
typedef struct n2_curve_point {
    double seen;      /* pictures so far */
    double distance;  /* of samples from the pictures, Frechet; NaN: not measured */
    double number[4]; /* running means of what is learnt; which, says who trains */
} n2_curve_point;
enum { N2_CURVE_POINTS = 130 };
typedef struct n2_curve {
    n2_curve_point point[N2_CURVE_POINTS];
    size_t n;
} n2_curve;

/* Between two checkpoints, which are of hundreds of megabytes. */
#define N2_DENOISER_SAVE_SECONDS 60.0

/* How a training is run: that of a teacher, or of a student. */
typedef struct n2_denoiser_run {
    size_t looks;             /* points of the curve, but the last; at most 128 */
    n2_distance_watch *watch; /* NULL: distances are not measured */
    size_t watched;           /* pictures for each distance */
    const char *sheet;        /* a PNG of 64 samples, written at each look; NULL: none */
    double seconds;           /* stop after so many; 0: no limit */
    const char *checkpoint;   /* NULL: none */
    bool resume;              /* go on from it if it is there */
    const char *identity;     /* of options and data, as the trainer has it */
    n2_device_choice *choice; /* settled; NULL: the processor */
    bool quiet;               /* looks are noted, and not told */
} n2_denoiser_run;

/* What a loss is multiplied by while it is differentiated (n2_optimiser): in half precision
 * gradients would vanish otherwise. */
static inline double n2_denoiser_loss_scale(const n2_denoiser_run *run) {
    return run->choice && run->choice->narrow == N2_F16 ? N2_HALF_LOSS_SCALE : 0;
}

typedef struct n2_denoiser_record {
    n2_curve curve; /* number[0]: the loss, a mean over pictures of sums over pixels */
    uint64_t steps;
    bool out_of_time, resumed;
} n2_denoiser_record;

/* Trains the network; what it becomes is the average of its weights. With labels if the spec has
 * classes. Fails with N2CE_EDATA (another size; no labels), N2CE_ENAN, N2CE_EDEVICE, N2CE_ECANCELED
 * with the checkpoint written, N2CE_ENOMEM. */
n2ce_status n2_denoiser_train(n2_denoiser *m, const n2_images *pictures,
                              const n2_denoiser_schedule *schedule, const n2_denoiser_run *run,
                              n2_denoiser_record *record);

/* Seconds that a step of a schedule would take on the processor, from one of two pictures. */
n2ce_status n2_denoiser_step_seconds(n2ce_ctx *ctx, const n2_denoiser_spec *spec, int64_t batch,
                                     double *seconds);

/* ---- sampling (denoiser_sample.c) ---- */

/* What chains run with: a model, or a network in training. */
typedef struct n2_chain_source {
    n2_store *store;
    const n2_denoiser_spec *spec;
    const n2_score_net *net;
    const n2_tensor *log_sigma; /* or NULL */
    const n2_backend *backend;
} n2_chain_source;

typedef struct n2_chains n2_chains;

/* rows: pictures at once, 0: by the backend. label: of all pictures, -1: class i mod classes of
 * picture i. What `source` points to must outlive *out. */
n2ce_status n2_chains_open(const n2_chain_source *source, const n2_sampling *how, size_t rows,
                           int64_t label, n2_chains **out);
void n2_chains_close(n2_chains *c); /* NULL is fine */

/* Pictures first .. first + n - 1 of a seed, as pictures `at` and following of `to`. Picture i is
 * the same, whatever is made beside it. */
n2ce_status n2_chains_make(n2_chains *c, uint64_t seed, size_t first, size_t n, const n2_images *to,
                           size_t at);

/* The sampling that suits a model: Heun's with 18 steps, or its own. */
n2_sampling n2_denoiser_sampling(const n2_denoiser_spec *spec);

/* n pictures of a seed. */
n2ce_status n2_denoiser_sample(n2_denoiser *m, const n2_sampling *how, int64_t label, size_t n,
                               uint64_t seed, n2_images **out);

/* Settles a choice by timing steps of so many pictures; the model's plans then run there. */
n2ce_status n2_denoiser_settle(n2_denoiser *m, n2_device_choice *choice, const n2_sampling *how,
                               size_t n);

/* ---- files (denoiser_file.c) ---- */

/* As a safetensors file, with the caller's note (NULL: none). Fails with N2CE_EEXIST unless
 * `overwrite`, N2CE_EIO, N2CE_ENOMEM. */
n2ce_status n2_denoiser_save(const n2_denoiser *m, const char *note, const char *path,
                             bool overwrite);
/* Fails with N2CE_EDATA for a file that is damaged or not such a model, N2CE_EIO, N2CE_ENOMEM. */
n2ce_status n2_denoiser_load(n2ce_ctx *ctx, const char *path, n2_denoiser **out);
bool n2_denoiser_is_model(n2ce_ctx *ctx, const char *path);
void n2_denoiser_spec_json(const n2_denoiser_spec *spec, n2_text *out);

#endif
