/* The report of the ratio verbs: what is behind the number, as JSON and as a page.
 *
 * It is made only if it was asked for (n2_report_wanted), because it takes another look at the
 * rows: the fit must then explain itself (n2_fit_options.explain). */
#ifndef N2_RATIO_REPORT_H
#define N2_RATIO_REPORT_H

#include "ratio_answer.h"
#include "report/histogram.h"
#include "report/page.h"

enum { N2_REPORT_BALANCES = 5 };

/* A check: what was found, its standard error, and the share of the rows that it rests on. */
typedef struct n2_report_check {
    double magnitude; /* balance: the M it was taken at */
    n2_estimate found;
    double share; /* means of ratios: effective share of the rows */
} n2_report_check;

struct n2_ratio_report {
    n2_bins bins;      /* of log ratios, nats */
    n2_histogram f[2]; /* den, num */
    bool seen;         /* the fit has seen those rows, as kernel models have */
    n2_report_check balance[N2_REPORT_BALANCES];
    double used_balance;     /* the M of the one that the estimate uses */
    n2_report_check mean[2]; /* of r over the denominator [0], of 1/r over the numerator [1] */
    size_t *order;           /* columns that are not constant, those that carry most first */
    size_t columns;          /* of them */
};

/* Of a session that has its fit and no report yet. */
n2ce_status n2_report_new(n2_session *s);
void n2_report_free(n2ce_ctx *ctx, n2_ratio_report *r); /* NULL is fine */

/* Histograms of log ratios (den, num) of rows that no fit has seen, instead of the session's own.
 */
void n2_report_show(n2_ratio_report *r, const double *const f[2], const size_t n[2]);

/* , "report": {... without the brace at the end: a verb may add to it. */
void n2_report_json(const n2_session *s, n2_text *json);

/* Counts of a histogram: {"low": .., "width": .., "NAME": [..], ..}. */
void n2_report_json_bins(n2_text *json, const n2_bins *bins, const n2_histogram *const *h,
                         const char *const *names, size_t n);

/* ---- the page ---- */

/* What stands before all else. */
typedef struct n2_report_front {
    const char *verb, *title;
    const n2_page_number *numbers;
    size_t n_numbers;
    const n2_judgement *judgement;                  /* of the headline */
    const char *verdict;                            /* in the place of it, if that is NULL */
    void (*more)(const void *about, n2_text *page); /* sections of the verb's own, or NULL */
    const void *about;
} n2_report_front;

/* The session's report becomes the answer's page; nothing happens if there is none. */
n2ce_status n2_report_page(const n2_session *s, const n2_report_front *front, n2ce_answer *answer);

/* What a sample is called on the page: the file, or what the option is called. side 1: num. */
const char *n2_report_sample(const n2_session *s, size_t side);

/* A number of the front, "0.4132" and "95 % interval 0.39 to 0.43"; the texts are in the buffers.
 */
enum { N2_REPORT_TEXT = 128 };
n2_page_number n2_report_number(const n2ce_options *o, const char *what, n2_interval v,
                                char value[N2_REPORT_TEXT], char note[N2_REPORT_TEXT]);

#endif
