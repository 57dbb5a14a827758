/* What a number of the ratio verbs is worth.
 *
 *   trusted    no check below found anything
 *   doubtful   a check did: the reason says which, and what to do
 *   failed     the number means nothing: too few rows, an interval below 0, an infinite truth
 *
 * docs/ratio.md lists the checks; src/task/ratio_verdict.c has a function for each. */
#ifndef N2_RATIO_VERDICT_H
#define N2_RATIO_VERDICT_H

#include "ratio_session.h"

typedef enum n2_trust { N2_TRUSTED, N2_DOUBTFUL, N2_FAILED } n2_trust;

typedef struct n2_judgement {
    n2_trust trust;
    char reason[240]; /* "": there is none */
} n2_judgement;

/* Which number is judged. */
typedef enum n2_judged {
    N2_JUDGED_KL,      /* KL(num || den), or the mutual information */
    N2_JUDGED_REVERSE, /* KL(den || num) */
    N2_JUDGED_BOUNDED  /* JS and the M-path, which are finite whatever the samples are */
} n2_judged;

/* `z` is the normal quantile of the interval. */
n2_judgement n2_judge(const n2_session *s, n2_judged which, n2_estimate e, const n2_quality *q,
                      double z);

const char *n2_trust_name(n2_trust trust); /* "trusted", .. */

#endif
