/* What the files of a fit share: fit.c trains and decides, fit_base.c has the Gaussian part,
 * fit_smooth.c the smooth one, fit_trees.c trees, fit_learned.c what has been learned at rows that
 * it has not seen. */
#ifndef N2_FIT_PARTS_H
#define N2_FIT_PARTS_H

#include "base/arena.h"
#include "fit.h"

/* Scores of all rows by each learned part; NULL: there are none. */
typedef struct n2_part_scores {
    double *of[2][N2_BLEND_PARTS];
} n2_part_scores;

typedef struct n2_fitter {
    n2ce_ctx *ctx;
    n2_fit_options o; /* resolved */
    n2_fit_record *record;
    n2_ratio *ratio;
    n2_scores *scores;
    n2_rows_view num, den; /* features */
    size_t dx;
    bool pooled;                   /* both Gaussians have the pooled covariance */
    n2_fold_sums *sums[2];         /* of den (NULL with dx) and num, for the Gaussian part */
    n2_gauss *base[N2_MOST_FOLDS]; /* of this fold and of those to come */
    n2_gauss_scoring *scoring[2 * N2_MOST_FOLDS]; /* of folds up to, not including, `scored` */
    size_t n_scoring, scored;
    n2_part_scores held;                   /* by learned parts that have not seen the rows */
    n2_smooth *half_smooth[N2_MOST_FOLDS]; /* the same of half of the rows; NULL: none */
    n2_critic *half_critic;                /* of the first fold */
    n2_boosting *half_trees[N2_MOST_FOLDS];
    bool *says; /* which of many columns have a say: num.d, all false if that is not known */
    bool go_on; /* with networks, after the first one */
    double start;
    size_t fold;
} n2_fitter;

/* Rows of fold k of n. */
void n2_fold_rows(size_t n, size_t folds, size_t k, size_t range[2]);

/* Those of the numerator and of the denominator. */
void n2_find_fold(const n2_fitter *f, size_t fold, size_t held[2][2]);

/* Rows first .. first + n - 1 of a fold, each with the y of the row `shift` rows on in the fold. */
typedef struct n2_pairing {
    const n2_fitter *f;
    size_t begin, rows; /* of the fold */
    size_t first, n, shift;
    double *x;
} n2_pairing;

/* Writes them to x, on all threads. */
n2ce_status n2_pair_rows(n2_pairing *p);

/* ---- the Gaussian part ---- */

/* Its divergences of the whole samples, and how each row moves them. */
n2ce_status n2_fit_gaussian(n2_fitter *f);

/* That of the present fold. */
n2ce_status n2_fit_base(n2_fitter *f);

/* The folds' rows are scored by threads that have nothing else to do, from the beginning until the
 * end; forgetting frees what that took. */
n2ce_status n2_fit_begin_scoring(n2_fitter *f);
n2ce_status n2_fit_end_scoring(n2_fitter *f);
void n2_fit_forget_scoring(n2_fitter *f);
void n2_fit_free_sums(n2_fitter *f);

/* ---- the learned parts ---- */

/* Whether there is to be a smooth part; it needs the Gaussian parts of all folds. */
bool n2_fit_has_smooth(const n2_fitter *f);
n2ce_status n2_fit_smooth(n2_fitter *f);

/* Rows outside of a fold that a smooth part is learned from, or a half of them, which must be
 * enough for all kernels; those inside that it is judged by; and the base's scores of them. */
n2ce_status n2_fit_gather_outside(const n2_fitter *f, n2_arena *arena, size_t fold, bool half,
                                  n2_smooth_rows *out);
n2ce_status n2_fit_gather_inside(const n2_fitter *f, n2_arena *arena, size_t fold,
                                 n2_smooth_rows *out);

/* Whether trees may be of use. They are `bare` if the base is no part of what they learn. */
bool n2_fit_has_trees(const n2_fitter *f);
bool n2_fit_trees_are_bare(const n2_fitter *f);
n2ce_status n2_fit_trees(n2_fitter *f);
void n2_fit_drop_trees(n2_fitter *f);

/* As many, learned from half of the rows. */
n2ce_status n2_fit_half_trees(n2_fitter *f, size_t folds);

/* Whether the parts are weighed, not just added. */
bool n2_fit_is_blended(const n2_fitter *f);

/* What the network of the first fold gains over its smooth part, on the fold's rows. */
n2ce_status n2_fit_first_gain(n2_fitter *f, n2_gain *out);

/* Weighs the parts, and puts the ratio together if that gains more than chance would. */
n2ce_status n2_fit_blend(n2_fitter *f);

void n2_fit_free_parts(const n2_fitter *f, n2_part_scores *scores);

/* What half of the rows would have said: scores by parts that were learned from so many. */
n2ce_status n2_fit_halves(n2_fitter *f);
void n2_fit_free_halves(n2_fitter *f);

/* Do networks of all folds lower their own loss of held-out rows by more than twice its error? */
bool n2_networks_pay(const n2_fit_record *r, size_t folds);

/* Adds what they say to the scores of the rows of each fold. */
n2ce_status n2_fit_learned(n2_fitter *f);

/* A fold's network is replaced by a copy where networks are evaluated now. */
n2ce_status n2_fit_bring_back(const n2_fitter *f, size_t fold);

#endif
