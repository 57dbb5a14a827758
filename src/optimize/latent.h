/* Proposals from a latent energy-based model of designs.
 *
 * What is learnt, in three phases, each with its own steps, from offline designs only:
 *
 *   value   E[y|x], by networks that each leave out a fold of the rows and stop where the
 *           error on it is least, and by forests without the same folds, mixed as is best for
 *           them; their mean is the prediction, their spread its doubt
 *   code    a variational autoencoder p(x|z), q(z|x) with a small weight on its divergence,
 *           so that the code carries the design
 *   prior   p(z) = N(z; 0, I) exp sum_k f_k(z), the stages' log ratios f_k by N2CE on the
 *           frozen posterior; or the paper's alternatives
 *
 * so that p(x, y|z) = p(x|z) p(y|x). Designs are then sought by chains: each of the best
 * designs known is the start of one, and each gives one proposal. A chain moves in z along
 *
 *     -(target - E[y|x(z)])^2 / (2 doubt^2) + ln p(z)
 *
 * by SVGD (or Langevin dynamics), decodes, and keeps a decoded design that the value networks
 * predict to be better and that nobody has tried or proposed; where designs are a small part of
 * what the bounds allow, some chains stay near a known one. Predictions more than
 * `ambition` standard deviations of y above the best are not believed: they count as that. */
#ifndef N2_LATENT_H
#define N2_LATENT_H

#include "design/design_rules.h"
#include "train/device_choice.h"

struct n2_bundle;  /* io/bundle.h */
struct n2_st_file; /* io/safetensors.h */

typedef enum n2_latent_prior {
    N2_LATENT_N2CE,     /* telescoping log ratios */
    N2_LATENT_GAUSSIAN, /* N(0, I) alone */
    N2_LATENT_MLE       /* one log ratio by maximum likelihood, negatives by Langevin dynamics */
} n2_latent_prior;

typedef enum n2_latent_sampler { N2_LATENT_SVGD, N2_LATENT_LANGEVIN } n2_latent_sampler;

/* Another column of the designs' rows that must be large enough: turned and shifted so that it is
 * enough from 0 on. */
typedef struct n2_latent_need {
    const double *y;
} n2_latent_need;
enum { N2_LATENT_NEEDS_MAX = 8 };

typedef struct n2_latent_options {
    uint64_t seed;
    n2_latent_prior prior;
    n2_latent_sampler sampler;
    double magnitude;           /* M */
    size_t stages;              /* K: 1 to N2_LATENT_STAGES_MAX */
    size_t members, width;      /* value networks and their hidden units */
    size_t latent, code_width;  /* nz; hidden units of encoder and decoder */
    size_t ratio_width, blocks; /* of the ratio network */
    size_t batch, noise;        /* rows a step; noise rows a data row, weighted to M */
    size_t value_steps, code_steps, prior_steps, joint_steps;
    double divergence_weight; /* of KL(q || p) against ln p(x|z) */
    size_t rounds, moves;     /* of a chain; steps of the sampler in a round */
    double ambition;          /* standard deviations of y; NAN: as trials say (latent_trial.c) */
    double seconds;           /* stop training after so many; 0: no limit */
    const char *checkpoint;   /* where to keep the state while training; NULL: nowhere */
    bool resume;              /* continue from it if it is there */
    const char *identity;     /* what it must be of: train.h; or NULL */
    n2_device_choice
        *choice; /* where it trains and samples; NULL: the processor. Fitting settles it */
    const struct n2_st_file *trained; /* weights to be taken instead of training; NULL: none */
    const n2_design_rules *rules;     /* what every proposal obeys; NULL: nothing but bounds */
    bool value_only;                  /* learn values alone: no code, no prior, no trials */
    const struct n2_latent *like;     /* then with the scale and the parts that this model found
                                       * useful; NULL: with its own */
    const n2_latent_need *needs;      /* what proposals must have besides; of as many rows */
    size_t n_needs;
    const double *taken; /* designs that others propose: none of them is proposed */
    size_t n_taken;
} n2_latent_options;

n2_latent_options n2_latent_defaults(void);
n2_latent_options n2_latent_paper(void); /* the paper's sizes and steps */

/* What training saw. */
enum {
    N2_LATENT_MEMBERS_MAX = 8,
    N2_LATENT_STAGES_MAX = 8,
    N2_LATENT_DEPTHS = 2,
    N2_LATENT_AMBITIONS = 3,
    N2_LATENT_TRIED = 64
};

/* Proposals from rows of which the best were hidden, in units of y: means over them. */
typedef struct n2_latent_trial {
    double hidden;    /* share of the rows */
    double best;      /* the best that was left */
    double ambition;  /* standard deviations */
    double predicted; /* by the model that knows the rest */
    double judged;    /* by the model that knows all */
    double n;         /* so many proposals, at most N2_LATENT_TRIED */
    double each_predicted[N2_LATENT_TRIED], each_judged[N2_LATENT_TRIED];
} n2_latent_trial;

typedef struct n2_latent_record {
    size_t rows, code_numbers;
    double y_sd, y_best;                     /* of the values */
    bool y_log;                              /* learnt as logarithms */
    double r2;                               /* of held-out rows: 1 - error / variance */
    double network_r2;                       /* that of the networks by themselves */
    double forest_share;                     /* of the trees in a network's prediction, 0 to 1 */
    double process_share;                    /* of the Gaussian process in both's, 0 to 1 */
    size_t best_step[N2_LATENT_MEMBERS_MAX]; /* where a member was best */
    double misfit, divergence;               /* of the code, nats: the ELBO is minus their sum */
    double prior_loss;                       /* the last */
    double stage_mean[N2_LATENT_STAGES_MAX]; /* of f_k over codes of designs, nats */
    double prior_floor, prior_median;        /* ln p(z): the least that is plausible, a design's */
    double misfit_median, misfit_ceiling;    /* -ln p(x|z) that half, 1 % of the designs exceed */
    double structure; /* share of designs with columns from different rows that exceed the latter */
    double narrow;    /* share of designs by chance within the bounds that do */
    double doubt;     /* spread of the members, standardised */
    double ambition;  /* as it was given, or as trials say */
    double shift;     /* to be added to predictions of proposals, in y_sd */
    double cut;       /* how abruptly values end, 0 to 1: as if the best had been cut off */
    double error;     /* standard deviation of the mean over proposals, in y_sd */
    double ceiling;   /* nothing is said to be worth more, in units of y; infinite: that is open */
    double chance;    /* the best of designs by chance, as it is judged, in units of y */
    bool outdone;     /* the best proposal of a trial was worse than that */
    n2_latent_trial trial[N2_LATENT_DEPTHS * N2_LATENT_AMBITIONS];
    size_t trials;
    size_t steps_done, steps_all;
    bool out_of_time, resumed;
} n2_latent_record;

typedef struct n2_latent n2_latent;

/* Learns from designs, which must outlive *out. Fails with N2CE_EDATA for designs from which
 * nothing can be learnt (fewer than 8, y constant, all outside the bounds), N2CE_ENAN if
 * training goes bad, N2CE_EDEVICE (the choice may then retreat), N2CE_ECANCELED (the checkpoint, if
 * there is one, is then written). */
n2ce_status n2_latent_fit(n2ce_ctx *ctx, const n2_designs *designs, const n2_latent_options *o,
                          n2_latent **out);
void n2_latent_free(n2_latent *m); /* NULL is fine */
const n2_latent_record *n2_latent_seen(const n2_latent *m);

/* Fills at most out->rows proposals, best first, and sets out->rows to how many there are:
 * fewer only if the space has not that many designs that are new and plausible. */
n2ce_status n2_latent_propose(n2_latent *m, n2_proposals *out);

/* Fills rows with draws of x given y = target, in units of y: 300 moves of SVGD (or Langevin
 * dynamics) along the density above from codes of designs by chance, decoded. Nothing is chosen
 * among them, and none is refused. */
n2ce_status n2_latent_draw(n2_latent *m, double target, size_t rows, double *x);

/* Prediction, the standard deviation of its error (what the members disagree by, and what trials
 * say that all are off by together), in units of y, and ln p(z) of n designs; any but the designs
 * may be NULL. */
n2ce_status n2_latent_appraise(n2_latent *m, const double *designs, size_t n, double *predicted,
                               double *spread, double *log_prior);

/* The probability that each of n designs meets all needs, as the models of the needs see it; 1
 * where there are none. */
n2ce_status n2_latent_chance(n2_latent *m, const double *designs, size_t n, double *chance);

/* Adds the trained parts to a file, whose bytes are those of the model's tensors until it is
 * written; makes the model again from that file and from the designs that it was learnt from,
 * which must outlive *out. It then says and proposes the same, to the byte, on the same device.
 * Loading fails with N2CE_EDATA for a file that does not fit. */
n2ce_status n2_latent_put(const n2_latent *m, struct n2_bundle *b);
n2ce_status n2_latent_load(n2ce_ctx *ctx, const n2_designs *designs, const struct n2_st_file *f,
                           const n2_design_rules *rules, n2_device_choice *choice, n2_latent **out);

#endif
