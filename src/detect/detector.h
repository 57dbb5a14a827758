/* Which rows are not like the others.
 *
 * The room src/detect: it may touch base, io, objective, engine, rewrite, nn, train, model, ratio.
 *
 * Normal rows are dealt into folds. For each fold an expert (expert.h) learns from the rows of the
 * others, so every normal row has scores by an expert that has not seen it, and these are the
 * yardstick (calibration.h). Rows that are copies are in one fold (equal_rows.h). A part's score
 * becomes -ln of the share of normal rows that are as odd, and the parts are averaged with fixed
 * weights.
 *
 * The score of a new row is the mean over experts. Its p-value is by one of them, which is drawn:
 * so it is judged as the held-out normal rows were, by an expert like theirs, and the rank among
 * them is as likely as any other. That of the mean would not be, since a mean is less extreme.
 *
 * Rules that were left open (weights, neighbours, noise) were chosen on ten tables and looked at on
 * ten others; docs/detect.md has both. Nothing is ever told which rows are odd. */
#ifndef N2_DETECTOR_H
#define N2_DETECTOR_H

#include "calibration.h"
#include "equal_rows.h"
#include "expert.h"
#include "io/table.h"

enum {
    N2_DETECT_FOLDS = 10,   /* at most */
    N2_DETECT_ROWS = 10000, /* normal rows that are used, unless the caller asks for more */
    N2_DETECT_LEAST_ROWS = 10
};

typedef struct n2_detect_options {
    uint64_t seed;
    size_t folds;             /* 0: 5, or 10 of fewer than 100 rows, of which copies are one */
    bool use[N2_PARTS_COUNT]; /* which parts; none: all of them */
    n2_device_choice *choice; /* where networks are trained; NULL: the processor */
} n2_detect_options;

typedef struct n2_detector {
    n2ce_ctx *ctx;
    size_t cols;
    char **names; /* of the columns */
    bool *categorical;
    n2_levels *levels; /* frozen */
    size_t *n_levels;  /* of each column; 0: numbers */

    size_t n;             /* normal rows, */
    double *rows;         /* n x cols, fold by fold */
    n2_equal_rows *equal; /* if some are copies, which lie in one fold; else NULL */
    size_t folds, begin[N2_DETECT_FOLDS + 1];
    n2_expert *expert[N2_DETECT_FOLDS];

    double weight[N2_PARTS_COUNT];
    n2_tail tail[N2_PARTS_COUNT];
    double *parts;  /* n x N2_PARTS_COUNT: opinions of each normal row by the expert that has not
                     * seen it */
    double *held;   /* n: what they come to: its score */
    double *sorted; /* the same, sorted */
    uint64_t seed;
} n2_detector;

/* Steps of fitting and of loading: the expert of a fold, with a network or with room for one; and,
 * when there are parts, tails and scores. */
n2ce_status n2_detector_teach(n2_detector *d, size_t fold, bool network, n2_device_choice *choice);
n2ce_status n2_detector_calibrate(n2_detector *d);

/* The fold of row i of a sample without copies: in every `folds` rows there is one of each. */
size_t n2_detect_fold(uint64_t seed, uint64_t i, size_t folds);

/* The fold whose expert judges row number i: one that is drawn or, if the row is a copy of a normal
 * one, that of the normal one. */
size_t n2_detector_fold(const n2_detector *d, const double *row, uint64_t i);

/* Learns what is normal from the rows of a table that was read with keep_missing. origin: the
 * number of each row, which decides its fold; NULL: 0, 1, 2. Levels are copied. Fails with
 * N2CE_EDATA (too few rows), and as n2_expert_new does. */
n2ce_status n2_detector_fit(n2ce_ctx *ctx, const n2_table *normal, const n2_levels *levels,
                            const size_t *origin, const n2_detect_options *o, n2_detector **out);
void n2_detector_free(n2_detector *d); /* NULL is fine */

/* Scores of n new rows, and, unless by_fold is NULL, those of each expert, n x folds. */
n2ce_status n2_detector_score(n2_detector *d, const double *rows, size_t n, double *score,
                              double *by_fold);

/* The same by the expert of one fold. */
n2ce_status n2_detector_score_by(n2_detector *d, size_t fold, const double *rows, size_t n,
                                 double *score);

/* Rows of the sample that the normal rows come from: n x cols, and their numbers there, or NULL
 * and the first of numbers that follow one another. */
typedef struct n2_own_rows {
    const double *x;
    size_t n;
    const size_t *number;
    uint64_t first;
} n2_own_rows;

/* Their scores, each by the expert that has not seen it. */
n2ce_status n2_detector_score_own(n2_detector *d, const n2_own_rows *own, double *score);

/* Rank of new row number i among the normal ones, by the score of n2_detector_fold; ranks are 1 to
 * n2_detector_ranks. */
size_t n2_detector_rank(const n2_detector *d, const double *row, const double *by_fold, uint64_t i);
size_t n2_detector_ranks(const n2_detector *d);

/* Reads rows of a file, or a matrix, block by block, as this detector needs them. */
n2ce_status n2_detector_open_rows(const n2_detector *d, const char *path, n2_header header,
                                  n2_reader **out);
n2ce_status n2_detector_open_matrix(const n2_detector *d, const n2ce_matrix *m, n2_reader **out);

#endif
