/* The study of ratio estimators on problems with a known answer (ratio_problems.h): every method
 * on every problem with every seed, and what came of it.
 *
 * ratio_study.c runs it, ratio_study_view.c makes tables, text and JSON, ratio_study_page.c the
 * HTML report. */
#ifndef N2_RATIO_STUDY_H
#define N2_RATIO_STUDY_H

#include "base/arena.h"
#include "ratio/fit.h"
#include "ratio/ratio_problems.h"
#include "ratio_peers.h"
#include "report/text_table.h"
#include "task/device_options.h"

enum { N2_STUDY_METHODS = 14 };

/* How a method fits; 0 in a number means: the verbs choose. */
typedef struct n2_study_method {
    const char *name;
    int colour; /* in plots */
    n2_estimator estimator;
    n2_parts parts;
    n2_contrast contrast;
    double magnitude;
    size_t stages;
    bool as_published; /* as many stages as the literature used, where it says */
    n2_peer_fn *peer;  /* in the place of all that, or NULL: gives a number without an interval */
} n2_study_method;

/* One fit. A fit that failed has no numbers. All in nats but for the seconds, which are the only
 * numbers that vary from run to run (unless --time-limit cuts a fit short). */
typedef struct n2_study_fit {
    uint64_t seed;
    double estimate, lo, hi; /* the interval has 95 % coverage by the fit's own standard error; NaN
                              * of a peer, which has none */
    double log_ratio_mse;    /* mean squared error of the log ratio at fresh rows of the numerator;
                              * NaN where the true one has no closed form */
    double seconds;
    bool done, failed, trusted; /* trusted: by its own account */
    const char *device;         /* that its networks were trained on */
} n2_study_fit;

typedef struct n2_ratio_study {
    const n2ce_options *options;
    const n2_problem **problems; /* in the order of their table, so groups are together */
    size_t n_problems;
    const n2_study_method *methods[N2_STUDY_METHODS];
    size_t n_methods, n_seeds;
    uint64_t first_seed;
    size_t rows;             /* --n; 0: as published */
    double max_seconds;      /* of a fit; 0: no limit */
    n2_device_choice choice; /* of every fit, which settles it by itself */
    n2_study_fit *fits;      /* problem by problem, in it method by method, in it seed by seed */
    size_t n_done;
    bool interrupted;
} n2_ratio_study;

/* The colour of a method by its name; -1, neutral, if the study has none of this name. */
int n2_study_colour(const char *method);

static inline size_t n2_study_fits(const n2_ratio_study *s) {
    return s->n_problems * s->n_methods * s->n_seeds;
}

/* ---- summaries (ratio_study_view.c) ---------------------------------------------------------- */

/* Fits of one method on problems [first, end). Means over fits; NaN where there is none. */
typedef struct n2_study_summary {
    size_t done, failed, doubtful; /* doubtful: gave a number, but did not converge */
    double mean, spread;           /* estimate: mean and standard deviation */
    double error, relative;        /* |estimate - truth|, and that over the truth */
    double mse, seconds;
} n2_study_summary;

n2_study_summary n2_study_summarise(const n2_ratio_study *s, size_t first, size_t end,
                                    size_t method);

/* One past the last problem of the group that problem `first` belongs to. */
size_t n2_study_group_end(const n2_ratio_study *s, size_t first);

const char *n2_study_group_text(const char *group); /* a sentence: what the problems are */

/* What the reader must know to judge the numbers. */
extern const char n2_study_caveat[], n2_study_legend[];

typedef enum n2_study_table { N2_STUDY_ESTIMATES, N2_STUDY_MSE } n2_study_table;

/* The table of a group in the arena; without rows where there is nothing to show. */
n2ce_status n2_study_table_make(const n2_ratio_study *s, size_t first, size_t end,
                                n2_study_table which, n2_arena *arena, n2_text_table *out);

/* ---- answers --------------------------------------------------------------------------------- */

n2ce_status n2_ratio_study_show(n2ce_ctx *ctx, const n2_ratio_study *study, n2ce_answer *answer);
n2ce_status n2_ratio_study_page(n2ce_ctx *ctx, const n2_ratio_study *study, char **html);

#endif
