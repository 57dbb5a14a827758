/* Fitting a log ratio to samples, with everything chosen from the data unless the caller
 * says otherwise, and cross-fitted log ratios to estimate from.
 *
 * Rows are dealt into folds. A critic is trained once for each fold on the other rows,
 * and the fold's own rows are scored by it: so every row has a log ratio from a critic
 * that has not seen it, and estimates built on those (estimate.h) need no correction for
 * overfitting. The model that is kept scores new rows with the mean of all critics. */
#ifndef N2_FIT_H
#define N2_FIT_H

#include "base/text.h"
#include "blend.h"
#include "boosting.h"
#include "critic.h"
#include "explain.h"
#include "feature_map.h"
#include "kernel_ratio.h"
#include "second_opinion.h"
#include "smooth.h"

enum { N2_MOST_FOLDS = 10, N2_MOST_STAGES = 32 };

/* Which parts the log ratio has. */
typedef enum n2_parts {
    N2_PARTS_BOTH,      /* Gaussian part, smooth part if asked for, and network */
    N2_PARTS_QUADRATIC, /* Gaussian part alone */
    N2_PARTS_NET        /* network alone */
} n2_parts;

typedef enum n2_estimator {
    N2_ESTIMATOR_NEURAL, /* parts and contrast say which */
    N2_ESTIMATOR_ULSIF,
    N2_ESTIMATOR_KLIEP
} n2_estimator;

/* 0 in a number means: choose. */
typedef struct n2_fit_options {
    n2_estimator estimator;
    n2_parts parts;
    n2_scaling scaling;
    n2_critic_options critic; /* stages, magnitude, width, blocks, batch, noise, steps,
                                 rate: 0 chooses; alpha is ignored */
    size_t folds;
    double max_seconds; /* 0: no limit */
    uint64_t seed;
    bool smooth;  /* with a smooth part between the Gaussian one and the network, where it fits */
    bool explain; /* say what the log ratio is made of, too */
} n2_fit_options;

/* What was used, and what was seen. */
typedef struct n2_fit_record {
    n2_fit_options used;
    double alpha[N2_MOST_STAGES + 1];
    double gaussian;         /* divergence of the Gaussian parts, nats, unbiased */
    double gaussian_reverse; /* the other way round; NaN with dx */
    double second_order;     /* standard deviation of the Gaussian divergences by products of what
                              * moments are off by; 0 if covariances are taken for the same */
    double pooled_off;       /* what is lost if covariances are not the same, where they are taken
                                for it, nats; else 0 */
    double excess;           /* kurtosis of columns, the mean excess, where that was looked at */
    n2_critic_record fold[N2_MOST_FOLDS];
    size_t folds_run;  /* in which a network was trained */
    bool learned;      /* the learned parts are part of the ratio */
    n2_gain sharper;   /* of the blend's NCE loss of held-out rows by trees; 0: there were none */
    n2_gain gain;      /* of the blend's NCE loss of held-out rows over the Gaussian part's */
    double penalty;    /* of the smooth part */
    bool calmed;       /* what folds' Gaussian parts say was made less: it was noise for a part */
    bool reweighed;    /* the base has a weight of its own, and nothing in its place */
    bool shaped;       /* it has functions of columns in the Gaussian part's place */
    double looser[2];  /* how much a smaller penalty adds to the mean log ratio of den and num */
    double unresolved; /* by how much half of the smooth part's kernels lose, nats a row */
    n2_opinion second; /* of the nearest rows' votes over the ratio: see second_opinion.h */
    size_t mapped;     /* columns given normal margins */
    bool raced;        /* several magnitudes were tried */
    char race[48];     /* "1, 15 and 224" */
    double seconds;
} n2_fit_record;

/* The parts of a fitted log ratio: base and critics or a kernel model. */
typedef struct n2_ratio {
    n2ce_ctx *ctx;
    n2_features *features;
    size_t dx; /* features of x in the ratio p(x,y) / p(x)p(y); 0: two samples */
    n2_gauss *base;
    n2_critic *critic[N2_MOST_FOLDS];
    size_t critics;
    n2_shapes *shapes; /* functions of columns that the smooth parts use; NULL: none */
    n2_smooth *smooth[N2_MOST_FOLDS];
    size_t smooths;
    n2_boosting *trees[N2_MOST_FOLDS];
    size_t forests; /* folds that have trees: all or none */
    n2_blend blend; /* of base, and the means of the smooth parts, the critics and the trees */
    double shift;   /* taken off the critics' mean: DV and InfoNCE leave a constant open */
    n2_kernel_ratio *kernel;
} n2_ratio;

void n2_ratio_free(n2_ratio *r); /* NULL is fine */

/* Moves the networks, made with these options, to another device: they score there from now on.
 * Models are on the processor, where they hold no memory of a device and survive a fork. */
n2ce_status n2_ratio_move(n2_ratio *r, const n2_critic_options *o, n2_device_choice *choice);

/* Log ratios of rows of a table (columns, not features). */
n2ce_status n2_ratio_score(n2_ratio *r, const double *rows, size_t n, double *f);

/* Log ratios of rows by critics that have not seen them. side 1: numerator, 0:
 * denominator. With dx the denominator's rows are pairs within each fold. */
typedef struct n2_scores {
    n2ce_ctx *ctx;
    size_t n[2];
    double *f[2];       /* whole log ratio */
    double *learned[2]; /* what is learned of it: all but the Gaussian part */
    double *seen[2];    /* the whole by learned parts that have seen the row; NULL: not known */
    double
        *half[2]; /* the whole by learned parts that half of the rows were enough for; likewise */
    double left_over;   /* that the NCE loss would fall by: see left_over.h */
    double passed_over; /* that trees would lower it by, which were not sure enough to be taken */
    double half_share; /* of the rows for which that is known: that of the first fold, or 1. For the
                          others half is f. */
    double *base[2];   /* the Gaussian part fitted to all rows; NULL with dx or without it */
    double *influence; /* of denominator rows on the Gaussian divergence; NULL with dx */
    double *reverse;   /* of numerator rows on the reverse one */
    double replaced;   /* 1 - the weight of the Gaussian part in f: others took its place */
    double cells;      /* combinations of levels a row, where all columns are levels; else 0 */
    double certainty;  /* that the learned parts belong there: the share of them that is in f */
    double *terms;     /* room for a number for each row of either side; NULL: none */
    n2_explanation explanation; /* if it was asked for */
} n2_scores;

void n2_scores_free(n2_scores *s);

/* num and den are shuffled in place, and their rows given back. den NULL: the ratio of the joint
 * sample num to the product of the margins of its first x_cols columns and the others. levels[c] is
 * how many levels column c has, or NULL. After N2CE_ECANCELED nothing is returned. */
n2ce_status n2_ratio_fit(n2ce_ctx *ctx, n2_table *num, n2_table *den, size_t x_cols,
                         const size_t *levels, const n2_fit_options *o, n2_ratio **out,
                         n2_scores *scores, n2_fit_record *record);

#endif
