/* How the ratio verbs tell what they found: numbers with intervals, checks, choices. */
#ifndef N2_RATIO_ANSWER_H
#define N2_RATIO_ANSWER_H

#include "ratio_verdict.h"

/* A number with its interval, in the unit that was asked for. */
typedef struct n2_interval {
    double value, lo, hi, error;
} n2_interval;

/* `most`: what the quantity cannot exceed, in nats. */
n2_interval n2_interval_of(const n2ce_options *o, n2_estimate e, double most);

/* "value": .., "lo": .., "hi": .., with the first under another name. */
void n2_interval_json(n2_text *json, const char *name, n2_interval v);
void n2_interval_say(n2_text *text, const n2ce_options *o, const char *name, n2_interval v);

/* KL(num || den) or the mutual information, and whether to trust it. */
typedef struct n2_headline {
    n2_interval v;
    n2_quality quality;
    n2_judgement verdict;
} n2_headline;

n2_headline n2_headline_of(const n2_session *s);

/* The normal quantile of the option "level". */
double n2_interval_quantile(const n2ce_options *o);

/* An estimate of the session's answer, and what it is worth. */
void n2_answer_note(const n2_session *s, const n2_judgement *verdict, const char *name,
                    n2_interval v);

/* "verdict": .., "reason": .. or null */
void n2_verdict_json(n2_text *json, const n2_judgement *verdict);

/* The answer's JSON begins with the headline, which is noted as "estimate" and under a name of the
 * verb's; what a verb adds comes between the two. */
void n2_headline_begin(const n2_session *s, const n2_headline *h, const char *name, n2_writer *w);
void n2_headline_end(const n2_session *s, const n2_headline *h, const char *kept, n2_writer *w);

/* Rows, choices, checks, verdict: the lines below the numbers. */
void n2_headline_say(const n2_session *s, const n2_headline *h, n2_text *text);

#endif
