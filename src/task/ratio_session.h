/* What the ratio verbs share: options, samples in, a fit, and its account of itself. */
#ifndef N2_RATIO_SESSION_H
#define N2_RATIO_SESSION_H

#include "device_options.h"
#include "ratio/data_facts.h"
#include "ratio/estimate.h"
#include "ratio/model_file.h"
#include "task.h"
#include "vocabulary.h"

/* clang-format off */
#define N2_SAMPLE_OPTIONS                                                                       \
    {"categorical", 0, N2CE_OPTION_TEXT, "", 0, 0, NULL, "COLS",                                \
     "columns whose values are names of levels, not numbers"},                                  \
    N2_HEADER_OPTION,                                                                           \
    N2_DROP_MISSING_OPTION,                                                                     \
    {"max-rows", 0, N2CE_OPTION_COUNT, "auto", 10, 1e12, NULL, "N",                             \
     "use a random subset of so many rows a file; auto: what fits into 96 MiB, at least 131072"}

#define N2_FIT_OPTIONS                                                                          \
    {"auto", 0, N2CE_OPTION_FLAG, "true", 0, 0, NULL, NULL,                                     \
     "choose what is not given from the data (that is the default)"},                           \
    {"method", 0, N2CE_OPTION_WORD, "n2ce", 0, 0,                                             \
     "n2ce|nce|nwj|neg-reweight|dv|infonce|smile|ulsif|kliep", "NAME",                          \
     "estimator: n2ce, or a baseline to compare with"},                                         \
    {"M", 'M', N2CE_OPTION_REAL, "auto", 1, 1e12, NULL, "M",                                    \
     "noise magnitude; auto: from the number of rows, refined on held-out rows"},               \
    {"critic", 0, N2CE_OPTION_WORD, "auto", 0, 0, "auto|both|quadratic|net", "PARTS",           \
     "the log ratio's parts: quadratic (exact for Gaussians), a network, or both"},             \
    {"scaling", 0, N2CE_OPTION_WORD, "auto", 0, 0, "auto|linear|normal", "HOW",                 \
     "standardise columns as they are, or give them normal margins first"},                     \
    {"stages", 'k', N2CE_OPTION_COUNT, "auto", 1, 32, NULL, "K",                                \
     "ratios of the telescope from den to num; auto: from the divergence to be bridged"},       \
    {"width", 0, N2CE_OPTION_COUNT, "auto", 4, 4096, NULL, "W", "width of the network"},        \
    {"blocks", 0, N2CE_OPTION_COUNT, "auto", 1, 32, NULL, "L", "residual blocks of the network"}, \
    {"batch", 0, N2CE_OPTION_COUNT, "auto", 1, 1e6, NULL, "N", "rows a step: the numerator's"}, \
    {"noise", 0, N2CE_OPTION_COUNT, "auto", 1, 1e4, NULL, "R", "noise rows for each of them"},  \
    {"steps", 0, N2CE_OPTION_COUNT, "auto", 1, 1e9, NULL, "T", "steps of training at most, a fold"}, \
    {"rate", 0, N2CE_OPTION_REAL, "auto", 1e-9, 1, NULL, "R", "learning rate at the start"},    \
    {"lambda", 0, N2CE_OPTION_REAL, "0", 0, 1e9, NULL, "L",                                     \
     "ratio regularisation: adds lambda times the mean square of the learned log ratio"},       \
    {"folds", 0, N2CE_OPTION_COUNT, "auto", 2, 10, NULL, "F",                                   \
     "every row is scored by a network that has not seen its fold"},                            \
    N2_TIME_LIMIT_OPTION,                                                                       \
    N2_SEED_OPTION,                                                                             \
    N2_DEVICE_OPTION,                                                                           \
    N2_PRECISION_OPTION

#define N2_INTERVAL_OPTIONS                                                                     \
    {"unit", 'u', N2CE_OPTION_WORD, "nats", 0, 0, "nats|bits", "UNIT", "nats or bits"},         \
    {"level", 0, N2CE_OPTION_REAL, "0.95", 0.5, 0.9999, NULL, "P", "coverage of the intervals"}, \
    {"strict", 0, N2CE_OPTION_FLAG, "false", 0, 0, NULL, NULL,                                   \
     "exit code 1 unless the verdict is trusted; the answer is printed all the same"}
/* clang-format on */

/* Samples from a file or from the caller's memory. */
typedef struct n2_samples {
    const char *path;          /* NULL: matrix */
    const n2ce_matrix *matrix; /* one, or x and y for mi */
    const char *label;         /* what messages call a matrix */
} n2_samples;

typedef struct n2_ratio_report n2_ratio_report; /* ratio_report.h */

typedef struct n2_session {
    n2ce_ctx *ctx;
    const n2ce_options *options;
    n2ce_answer *answer; /* what is being answered */
    n2_fit_options fit;
    n2_device_choice choice; /* where networks are trained */
    n2_opening opening;
    n2_levels *levels;
    n2_table *num, *den; /* den NULL: joint sample, num's first x_cols columns are x */
    size_t x_cols;
    size_t rows[2], seen[2], dropped; /* den, num */
    size_t copies;         /* rows that were left out for standing in their sample before */
    const char *one_sided; /* name of a column with one value in one sample only, or NULL */
    n2_data_facts facts;   /* of the samples, before they were fitted */
    n2_ratio *ratio;
    n2_scores scores;
    n2_reliability reliability;
    n2_fit_record record;
    n2_ratio_report *report; /* NULL if none was asked for */
} n2_session;

n2ce_status n2_session_open(n2ce_ctx *ctx, const n2ce_options *o, n2_session *s);
void n2_session_close(n2_session *s);

/* N2CE_EINVAL, with a sentence, if an option that a verb needs was not given. */
n2ce_status n2_option_needed(n2ce_ctx *ctx, const n2ce_options *o, const char *verb,
                             const char *name);

/* Runs fn in a session that is opened before and closed after. data: see task.h. */
typedef n2ce_status n2_session_fn(n2_session *s, const n2ce_matrix *data, n2ce_answer *answer);
n2ce_status n2_session_run(n2ce_ctx *ctx, const n2ce_options *o, const n2ce_matrix *data,
                           n2ce_answer *answer, n2_session_fn *fn);

/* The samples of --num and --den, or the two matrices. */
n2ce_status n2_session_read_num_den(n2_session *s, const char *verb, const n2ce_matrix *data);

/* Two samples with the same columns. */
n2ce_status n2_session_read_pair(n2_session *s, const n2_samples *num, const n2_samples *den);

/* Rows of (x, y): columns x and then y of a file, or two matrices side by side. */
n2ce_status n2_session_read_joint(n2_session *s, const n2_samples *joint, const char *x,
                                  const char *y);

n2ce_status n2_session_fit(n2_session *s);

/* How many levels each column has, 0 for numbers; memory of the context. */
n2ce_status n2_session_levels(const n2_session *s, size_t **out);

/* "5000 and 4000 rows, 3 columns", and how many were left out. */
void n2_session_samples(const n2_session *s, n2_text *text);

/* One line: what was chosen and why. */
void n2_session_say(const n2_session *s, n2_text *out);

/* "cpu", or the GPU, that networks were trained on. */
const char *n2_session_device(const n2_session *s);

/* "choices": {...}, "device": ..., "samples": {...}, "version": ..., "options": {...} */
void n2_session_json(const n2_session *s, n2_text *out);

/* The model of the fit; the session's ratio goes into it. */
n2ce_status n2_session_model(n2_session *s, n2ce_model **out);

#endif
