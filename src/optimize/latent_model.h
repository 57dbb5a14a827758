/* The parts of the latent model, for the files that train and use it. */
#ifndef N2_LATENT_MODEL_H
#define N2_LATENT_MODEL_H

#include "design/forest.h"
#include "gauss_process.h"
#include "latent.h"
#include "latent_code.h"
#include "model/ratio_loss.h"
#include "train/train.h"

enum { N2_APPRAISE_ROWS = 1024 };

/* A graph with its plan. */
typedef struct n2_latent_plan {
    n2_graph *g;
    n2_plan *plan;
} n2_latent_plan;
void n2_latent_plan_free(n2_latent_plan *p);

/* Values as they are learnt: standardised, after v = y or v = ln(y - floor), and compressed far
 * below and far above,
 *
 *     b - s ln(1 + (b - v)/s) for v < b,  t + s ln(1 + (v - t)/s) for v > t = b + 3 s,
 *     b the median, s from there to the 90 % quantile,
 *
 * because how bad a bad design is does not matter, and heavy tails drown what does. The logarithm
 * is for quantities that are products: flows, yields, rates. Beyond what was seen the scale
 * decides. */
typedef struct n2_latent_scale {
    bool log, bend_low, bend_high;
    double margin, range, floor; /* of the logarithm: floor is so many ranges below the least */
    double middle, width;        /* b and s */
    double mean, deviation;      /* then */
} n2_latent_scale;

struct n2_latent {
    n2ce_ctx *ctx;
    const n2_designs *designs;
    n2_latent_options o;
    const n2_backend *backend; /* of the choice, once training has settled it */
    n2_latent_record record;
    n2_latent_code *code;
    n2_store *store;
    n2_tensor *x, *y; /* rows in a random order */
    n2_parameters value_parameters, code_parameters, prior_parameters;
    n2_latent_scale scale;
    n2_layer line[N2_LATENT_MEMBERS_MAX]; /* the linear part of each member, in closed form */
    n2_mlp live[N2_LATENT_MEMBERS_MAX], value[N2_LATENT_MEMBERS_MAX]; /* trained; averaged */
    n2_forest *forest[N2_LATENT_MEMBERS_MAX];
    n2_gauss_process *process;                    /* NULL: none */
    n2_latent *need[N2_LATENT_NEEDS_MAX];         /* models of the needs */
    n2_designs need_designs[N2_LATENT_NEEDS_MAX]; /* what they learnt: x is shared */
    n2_latent_vae vae;
    n2_ratio_net ratio;
    n2_tensor *waymarks;
    n2_latent_plan check, appraise;
    n2_tensor *rows; /* what `appraise` reads */
    double *out;     /* what it says: members, ln p(z), codes */
    double started;
    float *x_given;  /* the rows, to compare those of a checkpoint with, while training */
    size_t searches; /* so far; names of their tensors */
};

/* ---- latent_networks.c: the graphs ---- */

n2ce_status n2_latent_make_networks(n2_latent *m);

/* A step of each phase; `user` is the model. */
n2_build_step n2_latent_value_step, n2_latent_code_step, n2_latent_prior_step, n2_latent_joint_step;

/* Plans on the model's backend: errors of the members on their folds; what is said of designs. */
n2ce_status n2_latent_build_check(n2_latent *m);
n2ce_status n2_latent_build_appraise(n2_latent *m);

/* ln p(z), [n x 1], up to a constant. */
n2_node n2_latent_log_prior(n2_graph *g, n2_node z, const n2_latent *m);

/* The last rows, which code and prior do not see: they say what is usual. */
size_t n2_latent_uncoded(const n2_latent *m);

/* Held-out rows of member e: a block of the shuffled rows. */
void n2_latent_fold(const n2_latent *m, size_t e, int64_t *first, int64_t *n);

/* Mean prediction of the members for rows of the code: [n x 1], standardised. */
n2_node n2_latent_mean_value(n2_graph *g, const n2_latent *m, n2_node x);

/* ---- latent_line.c ---- */

/* The linear parts by ridge regression, each without its fold; zero where there are too many
 * numbers a row. */
n2ce_status n2_latent_fit_lines(n2_latent *m);

/* ---- latent_scale.c ---- */

/* The scale for the designs' values, from all of them; the code must be there. */
n2ce_status n2_latent_choose_scale(n2_latent *m);
double n2_latent_scaled(const n2_latent *m, double y);
double n2_latent_unscaled(const n2_latent *m, double v);

/* ---- latent_forest.c ---- */

/* A forest for each member, and the share of it in the member's prediction that is best for the
 * rows that the member has not seen; record.forest_share and record.r2 are set. */
n2ce_status n2_latent_fit_forests(n2_latent *m);

/* Mixes what the forests say of coded rows into what the networks said, [n x members]. */
n2ce_status n2_latent_ask_forests(const n2_latent *m, const float *rows, size_t n, double *members);
void n2_latent_free_forests(n2_latent *m);

/* ---- latent_process.c ---- */

/* A Gaussian process, and its share in every member's prediction, likewise; after the forests.
 * record.process_share and record.r2 are set. */
n2ce_status n2_latent_fit_process(n2_latent *m);
n2ce_status n2_latent_ask_process(const n2_latent *m, const float *rows, size_t n, double *members);

/* ---- latent_move.c ---- */

/* A step of the codes z along -(target - E y)^2 / (2 doubt^2) + ln p(z), by the options' sampler;
 * SVGD keeps its moments in tensors NAME.m, NAME.v and NAME.step. */
n2ce_status n2_latent_build_move(n2_latent *m, const char *name, n2_tensor *z, double target,
                                 n2_latent_plan *out);
/* What the codes z decode to. */
n2ce_status n2_latent_build_decode(n2_latent *m, n2_tensor *z, n2_latent_plan *out);

/* ---- latent_train.c ---- */

/* All phases, from rows and networks that are there; then the plan that appraises. */
n2ce_status n2_latent_train(n2_latent *m);

/* ---- latent_need.c ---- */

/* A model of values for each of the needs. */
n2ce_status n2_latent_fit_needs(n2_latent *m);
void n2_latent_free_needs(n2_latent *m);

/* What coded rows lose for needs that they do not meet likely enough, in standard deviations of the
 * value: 0 where they do. */
n2ce_status n2_latent_penalise(n2_latent *m, const float *rows, size_t n, double *penalty);

/* ---- latent_trial.c ---- */

/* How far to go: hides the best rows at several depths, learns from the others, proposes with
 * several ambitions, and lets the model, which knows what was hidden, judge. Sets record.trial and
 * record.ambition. */
n2ce_status n2_latent_try(n2_latent *m);

/* What the trials with the ambition that was taken say: whether chance did better,
 * record.outdone, and what predictions of proposals are off by (n2_latent_learn_shift). */
n2ce_status n2_latent_learn_from_trials(n2_latent *m);

/* ---- latent_expect.c ---- */

/* What predictions of proposals are off by: record.shift, record.cut and record.error. */
n2ce_status n2_latent_learn_shift(n2_latent *m);

/* Turns out->predicted, unless NULL, into what is to be expected, and sets the interval of the
 * mean; `predicted` has the same values in any order, `sway` is what members disagree by about the
 * mean. */
void n2_latent_expect(const n2_latent *m, const double *predicted, double sway, n2_proposals *out);

/* ---- latent_file.c ---- */

/* What training would have left, out of a file; the plan that appraises must be there. */
n2ce_status n2_latent_take(n2_latent *m, const struct n2_st_file *f);

/* ---- latent_use.c ---- */

/* What the model says of coded rows, standardised; any may be NULL. */
typedef struct n2_latent_words {
    double *members;   /* predictions, n x members */
    double *log_prior; /* ln p(z) of the code z of the row */
    double *misfit;    /* -ln p(x|z): how badly the code holds the row */
    double *codes;     /* n x latent */
} n2_latent_words;
n2ce_status n2_latent_say(n2_latent *m, const float *rows, size_t n, const n2_latent_words *words);

/* Half of how far y + width is from y - width, the width being standardised. */
double n2_latent_half_width(const n2_latent *m, double y, double width);

/* How much the members disagree about the mean of n designs, standardised. */
n2ce_status n2_latent_sway(n2_latent *m, const double *designs, size_t n, double *sway);

#endif
