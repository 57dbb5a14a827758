/** n2ce: density ratios and energy-based models by "noisier" noise contrastive
 *  estimation (N2CE).
 *
 *  This header is the manual: every public type and function is documented
 *  where it is declared. It has six parts:
 *
 *      1. status codes and the context
 *      2. the objective: logits in, loss and gradient out (pure functions)
 *      3. closed forms: divergences, bounds, the recommended magnitude
 *      4. tasks: what the command line does, as a library
 *      5. models: log ratios that were fitted, saved, loaded
 *      6. optimisers: designs to try next, from a model that is kept
 *
 *  n2ce_engine.h (experimental) is for networks and energy-based models of your
 *  own.
 *
 *  Conventions. The ratio is always  numerator / denominator  ("num", "den");
 *  f is a log ratio  ln p_num(x)/p_den(x)  in nats; M >= 1 is the noise
 *  magnitude. Functions that can fail return n2ce_status, 0 for success; NULL
 *  where it makes no sense, and sizes that no memory has, are N2CE_EINVAL.
 *  Nothing here prints, exits, or keeps global state.
 *
 *  Threads. A context, and what was made from it, is used by one thread at a
 *  time; different contexts are independent. n2ce_ctx_cancel() is the one
 *  function that any thread, or a signal handler, may call at any time.
 *
 *  Forks. A child has its parent's contexts, models and what else was made; it
 *  may use them as its parent does, with threads of its own, and frees them.
 *  Of a context that another thread was using at that moment a model can
 *  score, be saved and freed; a fit or an optimisation that was running is
 *  not. What lives on a GPU does not survive a fork. */
#ifndef N2CE_H
#define N2CE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define N2CE_API __attribute__((visibility("default")))
#else
#define N2CE_API
#endif

#define N2CE_VERSION_MAJOR 0
#define N2CE_VERSION_MINOR 1
#define N2CE_VERSION_PATCH 0

/** Version of the library that is running, "major.minor.patch". Compare with
 *  the N2CE_VERSION_* macros to detect a header of another version. */
N2CE_API const char *n2ce_version(void);

/* ---------------------------------------------------------------------------
 * 1. Status codes and the context
 * ------------------------------------------------------------------------ */

/** Every status: name, value, meaning. The values are stable. */
#define N2CE_STATUS_LIST(X)                                             \
    X(OK, 0, "success")                                                 \
    X(EINVAL, -1, "invalid argument")                                   \
    X(ENOMEM, -2, "out of memory")                                      \
    X(ENAN, -3, "an input is not a finite number")                      \
    X(ERANGE, -4, "the result does not fit in a floating-point number") \
    X(EIO, -5, "a file could not be read or written")                   \
    X(EEXIST, -6, "the file exists and may not be overwritten")         \
    X(ECANCELED, -7, "stopped on request")                              \
    X(EDATA, -8, "a file's contents are not what they should be")       \
    X(EDEVICE, -9, "the device is missing, or failed")

typedef enum n2ce_status {
#define N2CE_STATUS_ENUM(name, value, text) N2CE_##name = value,
    N2CE_STATUS_LIST(N2CE_STATUS_ENUM)
#undef N2CE_STATUS_ENUM
} n2ce_status;

/** "N2CE_EINVAL" and "invalid argument"; for an unknown value, a text that
 *  says so. Never NULL. */
N2CE_API const char *n2ce_status_name(n2ce_status status);
N2CE_API const char *n2ce_status_text(n2ce_status status);

/** The context: allocator, threads, callbacks, the last error message. */
typedef struct n2ce_ctx n2ce_ctx;

typedef enum n2ce_log_level {
    N2CE_LOG_WARNING = 1, /**< something the user should know */
    N2CE_LOG_INFO = 2     /**< what was chosen, and why */
} n2ce_log_level;

/** Allocator hook, in the manner of realloc: `size` 0 frees `ptr` and returns
 *  NULL; `ptr` NULL allocates. Memory must be aligned as malloc's is. It is
 *  called from the thread that uses the context only. */
typedef void *n2ce_alloc_fn(void *user, void *ptr, size_t size);

/** One message without a newline. */
typedef void n2ce_log_fn(void *user, n2ce_log_level level, const char *text);

/** Progress of the running task: `done` of `total` units of work. May be
 *  called from a worker thread, never from two at once. Call
 *  n2ce_ctx_cancel() from here, or from anywhere, to stop early. */
typedef void n2ce_progress_fn(void *user, double done, double total);

/** How to make a context. Start from N2CE_CTX_OPTIONS_INIT. */
typedef struct n2ce_ctx_options {
    size_t struct_size;         /**< sizeof(n2ce_ctx_options) */
    int threads;                /**< worker threads; 0: one for each processor that the process
                                     may use, by affinity and quota; never more than 8 or as
                                     many as these */
    n2ce_alloc_fn *alloc;       /**< NULL: the C library's */
    void *alloc_user;           /**< passed to alloc */
    n2ce_log_fn *log;           /**< NULL: silent */
    void *log_user;             /**< passed to log */
    n2ce_progress_fn *progress; /**< NULL: none */
    void *progress_user;        /**< passed to progress */
} n2ce_ctx_options;

/* clang-format off */
#define N2CE_CTX_OPTIONS_INIT                                                  \
    {sizeof(n2ce_ctx_options), 0, NULL, NULL, NULL, NULL, NULL, NULL}
/* clang-format on */

/** Makes a context. `options` may be NULL for the defaults. Results never
 *  depend on the number of threads. Fails with N2CE_EINVAL (negative thread
 *  count, wrong struct_size) or N2CE_ENOMEM; *out is then NULL. */
N2CE_API n2ce_status n2ce_ctx_new(n2ce_ctx **out, const n2ce_ctx_options *options);

/** Frees a context. Free what was made from it first. NULL is fine. */
N2CE_API void n2ce_ctx_free(n2ce_ctx *ctx);

/** The message of the last failure in this context: what was found, where,
 *  and what to do. "" when nothing has failed. Valid until the next failure. */
N2CE_API const char *n2ce_errmsg(const n2ce_ctx *ctx);

/** Asks the running task to stop soon. It returns N2CE_ECANCELED together with
 *  what it had finished. Safe in signal handlers and from other threads. */
N2CE_API void n2ce_ctx_cancel(n2ce_ctx *ctx);

/** Several processes, called ranks, that run the same program on the same task.
 *  What a context that has joined them does is shared between them: folds,
 *  members and rows. All have the results, which are the same bytes for any
 *  number of ranks; rank 0 alone writes files. */
typedef struct n2ce_world n2ce_world;

/** Joins the processes that mpirun or srun started, if one of them did; or, with
 *  `ranks` > 1, forks so many less one of this one, each of which returns from
 *  here: before there are threads. `ctx` has the memory and must stay. Fails
 *  with N2CE_EINVAL, N2CE_ENOMEM, or N2CE_EDEVICE if there is no MPI. */
N2CE_API n2ce_status n2ce_world_join(n2ce_ctx *ctx, int ranks, n2ce_world **out);
N2CE_API int n2ce_world_rank(const n2ce_world *world);    /**< 0 .. ranks - 1 */
N2CE_API int n2ce_world_ranks(const n2ce_world *world);   /**< at least 1 */
N2CE_API int n2ce_world_threads(const n2ce_world *world); /**< a good number for a
                                                               rank; 0: the default */

/** From now on this context's work is shared. */
N2CE_API n2ce_status n2ce_ctx_join(n2ce_ctx *ctx, n2ce_world *world);

/** Tells the others that this rank ends, with an exit code, and waits for them;
 *  not for ever if the code is not 0. *code becomes the job's. True: it is for
 *  this rank to say why the job ended; of several that failed the others keep
 *  quiet. */
N2CE_API bool n2ce_world_leave(n2ce_world *world, int *code);

/** After that. If some ranks did not leave they are ended, with this code. NULL
 *  is fine. */
N2CE_API void n2ce_world_free(n2ce_world *world, int code);

/* ---------------------------------------------------------------------------
 * 2. The objective
 * ------------------------------------------------------------------------ */

/** Members of the N2CE family, as losses to minimise. With r = exp(f):
 *
 *  N2CE          mean_num softplus(ln M - f) + M mean_den softplus(f - ln M)
 *                M = 1 is vanilla NCE.                        [paper, eq. 5]
 *  NWJ           -mean_num f + mean_den exp(f). M is ignored.
 *                It is the limit of N2CE minus ln M.          [paper, eq. 2]
 *  NEG_REWEIGHT  mean_num softplus(-f) + M mean_den softplus(f - ln M)
 *                the paper's ablation; not a proper loss for M > 1 (its
 *                optimum is not the ratio).       [appendix "Gaussian ..."]
 *
 *  docs/math.md derives them and their gradients. */
typedef enum n2ce_family {
    N2CE_FAMILY_N2CE = 0,
    N2CE_FAMILY_NWJ = 1,
    N2CE_FAMILY_NEG_REWEIGHT = 2
} n2ce_family;

/** What is minimised. Start from N2CE_OBJECTIVE_INIT, which is vanilla NCE.
 *
 *  Stages. When one network learns the K ratios of a telescope, each sample
 *  belongs to a stage and its terms are multiplied by that stage's weight:
 *
 *      mean_i w[stage_num[i]] l(f_num[i]) + M mean_j w[stage_den[j]] l(f_den[j])
 *
 *  Leave n_stages at 0 for a single ratio. */
typedef struct n2ce_objective {
    size_t struct_size;          /**< sizeof(n2ce_objective) */
    n2ce_family family;          /**< which member */
    double magnitude;            /**< M, finite, at least 1 */
    double regularisation;       /**< lambda >= 0: adds lambda (mean_num f^2 +
                                      mean_den f^2) */
    size_t n_stages;             /**< K; 0: no stages */
    const double *stage_weights; /**< K weights, finite, >= 0 */
    const uint32_t *stage_num;   /**< stage of each numerator sample, < K */
    const uint32_t *stage_den;   /**< stage of each denominator sample, < K */
} n2ce_objective;

/* clang-format off */
#define N2CE_OBJECTIVE_INIT                                                    \
    {sizeof(n2ce_objective), N2CE_FAMILY_N2CE, 1.0, 0.0, 0, NULL, NULL, NULL}
/* clang-format on */

/** Log ratios at samples of both distributions, and room for the gradient.
 *  The two sample sizes are independent. grad_num and grad_den receive dL/df,
 *  one value per logit; either may be NULL. They may not overlap the logits. */
typedef struct n2ce_logits_f64 {
    const double *num; /**< f at samples of the numerator */
    size_t n_num;      /**< at least 1 */
    const double *den; /**< f at samples of the denominator */
    size_t n_den;      /**< at least 1 */
    double *grad_num;  /**< n_num values, or NULL */
    double *grad_den;  /**< n_den values, or NULL */
} n2ce_logits_f64;

/** The same in single precision. The arithmetic inside is double. */
typedef struct n2ce_logits_f32 {
    const float *num;
    size_t n_num;
    const float *den;
    size_t n_den;
    float *grad_num;
    float *grad_den;
} n2ce_logits_f32;

/** What the logits say besides the loss. Stage weights and lambda play no part
 *  here; for NEG_REWEIGHT the bound and the weights are those of N2CE. A number
 *  that does not fit (NWJ with f > 709, logits near 1e308) is infinite or NaN
 *  without failing the call. */
typedef struct n2ce_diagnostics {
    double mean_num;      /**< mean f over num, nats: plug-in KL(num || den) */
    double mean_den;      /**< mean f over den, nats: plug-in -KL(den || num) */
    double kl_bound;      /**< lower bound on KL(num || den), nats: the path value
                               (1+M) h(M/(1+M)) - L_M; for NWJ  1 - L_NWJ.
                               In expectation, for any logits. */
    double kl_cap;        /**< what kl_bound cannot exceed, n2ce_bound_cap(M);
                               infinity for NWJ */
    double js_bound;      /**< lower bound on JS(num, den), nats: ln 2 - L_1 / 2 */
    double js_cap;        /**< ln 2 */
    double ess_den;       /**< effective number of noise samples,
                               (sum w)^2 / sum w^2 with w = M r / (M + r); from 1
                               (one sample decides) to n_den */
    double saturated_num; /**< share of num samples with r > M: their gradient
                               is less than half of maximum likelihood's */
    double saturated_den; /**< share of den samples with r > M: their weight
                               has hit the ceiling M */
} n2ce_diagnostics;

/** Loss of the N2CE family in nats, its gradient and its diagnostics.
 *
 *      dL/df_num = -w M / (M + r) / n_num      + 2 lambda f / n_num
 *      dL/df_den = +w M r / (M + r) / n_den    + 2 lambda f / n_den
 *
 *  A pure function: no state, no allocation, any number of threads at once
 *  (with different contexts, or NULL). Exact to a few units in the last place
 *  for M from 1 to 1e12 and beyond, and for logits up to +-1e4 and beyond.
 *
 *  ctx           receives the error message; may be NULL
 *  loss          required
 *  diagnostics   may be NULL (it costs about as much as the loss)
 *
 *  Fails with
 *  N2CE_EINVAL   an empty sample, M < 1, a stage out of range, ...
 *  N2CE_ENAN     a logit is NaN or infinite; the message says which. Nothing
 *                was written.
 *  N2CE_ERANGE   the loss or a gradient overflows, as NWJ does for f > 709
 *                (f > 88 for single-precision gradients). The outputs are
 *                written, infinities included. */
N2CE_API n2ce_status n2ce_loss_f64(n2ce_ctx *ctx, const n2ce_objective *objective,
                                   const n2ce_logits_f64 *logits, double *loss,
                                   n2ce_diagnostics *diagnostics);

/** As n2ce_loss_f64, for logits and gradients in single precision. */
N2CE_API n2ce_status n2ce_loss_f32(n2ce_ctx *ctx, const n2ce_objective *objective,
                                   const n2ce_logits_f32 *logits, double *loss,
                                   n2ce_diagnostics *diagnostics);

/* ---------------------------------------------------------------------------
 * 3. Closed forms
 *
 * With alpha = M/(1+M) and the mixture m = alpha den + (1-alpha) num,
 *
 *     D_alpha = (1-alpha) KL(num || m) + alpha KL(den || m).
 *
 * D_alpha is JS at M = 1 and goes to 0 as M grows; it is the M-path
 *
 *     path(M) = (1+M) D_alpha = (1+M) h(alpha) - min L_M
 *
 * that runs from 2 JS at M = 1 up to KL(num || den) at infinity. The paper
 * prints these without the factor 1+M (docs/math.md, "The M-path").
 * ------------------------------------------------------------------------ */

/** Binary entropy h(a) = -a ln a - (1-a) ln(1-a), nats. NaN outside [0,1]. */
N2CE_API double n2ce_binary_entropy(double a);

/** What a bound from L_M cannot exceed: (1+M) h(M/(1+M)), which is also the
 *  loss of a blind critic (f = 0 everywhere):
 *
 *      ln(1+M) + M ln(1 + 1/M)     1.386 at M = 1, 5.610 at M = 100
 *
 *  and close to 1 + ln(1+M). A true KL above it cannot be read from the bound;
 *  use the mean log ratio. NaN for M < 1, infinity at infinity. */
N2CE_API double n2ce_bound_cap(double magnitude);

/** path(M) for two discrete distributions given as n probabilities each, nats.
 *  They are normalised here. magnitude may be INFINITY (then it is the KL,
 *  infinite where den is 0 and num is not). Fails with N2CE_EINVAL or
 *  N2CE_ENAN. D_alpha itself is the result divided by 1+M. */
N2CE_API n2ce_status n2ce_path_discrete(n2ce_ctx *ctx, const double *num, const double *den,
                                        size_t n, double magnitude, double *path);

/** path(M) between N(a, I) and N(b, I) in any dimension, nats, where
 *  `distance` = |a - b|; by quadrature, absolute error below 1e-10. At
 *  infinity it is the KL, distance^2 / 2. NaN for M < 1 or distance < 0. */
N2CE_API double n2ce_path_gaussian(double distance, double magnitude);

/** The constant C that n2ce_magnitude_for() uses when given 0: sqrt(10), the
 *  geometric middle of the paper's range 1 to 10. */
#define N2CE_MAGNITUDE_C 3.1622776601683795

/** Recommended noise magnitude for n samples a side: max(1, C sqrt(n)).
 *
 *  It balances a squared gradient bias of order 1/M^2 against a variance of
 *  order M^2/n [paper, proposition 3.3], so it is an upper bound on a good M
 *  up to the constant: C depends on how rough the ratio is. In the paper's
 *  Gaussian study the best M is 100 at n = 500 (C = 4.5) and 1.5 at n = 2
 *  (C = 1). Near the best M little is lost: there a factor of 10 either way
 *  costs 8 % at n = 500. The rule knows nothing of the dimension or of
 *  the distance between the distributions: with a distant denominator prefer a
 *  telescope of stages to a larger M.
 *
 *  c     the constant, 0 for N2CE_MAGNITUDE_C. NaN for n < 1 or c < 0. */
N2CE_API double n2ce_magnitude_for(double n, double c);

/* ---------------------------------------------------------------------------
 * 4. Tasks
 *
 * A task is a verb of the command line: a name, a table of options, and a
 * function from options to an answer. Parser, help, completion, manual pages,
 * JSON and the bindings read the same table.
 *
 *     const n2ce_task *task = n2ce_task_find("study gaussian");
 *     n2ce_options_new(ctx, n2ce_task_options(task), &options);
 *     n2ce_options_set(options, "runs", "20");
 *     n2ce_task_run(ctx, task, options, &answer);
 *     puts(n2ce_answer_text(answer));
 * ------------------------------------------------------------------------ */

typedef enum n2ce_option_type {
    N2CE_OPTION_FLAG,  /**< "true" or "false" */
    N2CE_OPTION_COUNT, /**< whole number; 1e6, 10K, 2M are understood */
    N2CE_OPTION_REAL,  /**< finite number */
    N2CE_OPTION_REALS, /**< finite numbers separated by commas */
    N2CE_OPTION_WORDS, /**< words of `choices` separated by commas */
    N2CE_OPTION_WORD,  /**< one of `choices` */
    N2CE_OPTION_PATH,  /**< file or folder */
    N2CE_OPTION_TEXT   /**< any text */
} n2ce_option_type;

/** One option. A table of them ends with a NULL name. */
typedef struct n2ce_option {
    const char *name;      /**< long name, without dashes */
    char letter;           /**< one-letter alias, or 0 */
    n2ce_option_type type; /**< how the value is read */
    const char *fallback;  /**< default, as text; "auto" is always accepted for
                                an option whose default is "auto" */
    double min, max;       /**< range of each number; both 0: any */
    const char *choices;   /**< "a|b|c" for words */
    const char *value;     /**< what help calls the value, e.g. "LIST" */
    const char *help;      /**< one sentence */
} n2ce_option;

/** Option values of one table. */
typedef struct n2ce_options n2ce_options;

/** All options at their defaults. The table must outlive the handle. */
N2CE_API n2ce_status n2ce_options_new(n2ce_ctx *ctx, const n2ce_option *table, n2ce_options **out);
N2CE_API void n2ce_options_free(n2ce_options *options); /**< NULL is fine */

/** Sets one option from text, checked against the table. Fails with
 *  N2CE_EINVAL (unknown name, and the nearest known one; unreadable or out of
 *  range) or N2CE_ENOMEM; the old value then stays. */
N2CE_API n2ce_status n2ce_options_set(n2ce_options *options, const char *name, const char *text);

/** Value of an option as text, its default if it was not set; NULL for an
 *  unknown name. Valid until the option is set again. */
N2CE_API const char *n2ce_options_get(const n2ce_options *options, const char *name);

/** Value of an option that is one number; NaN if it is not, or is "auto". */
N2CE_API double n2ce_options_number(const n2ce_options *options, const char *name);

/** The row of a name, or else of a letter, as a one-character string; NULL if
 *  the table has none. */
N2CE_API const n2ce_option *n2ce_option_find(const n2ce_option *table, const char *name);

/** The word of a list that a misspelt one probably meant (edit distance at most
 *  a third of its length, at least 1), or NULL. */
N2CE_API const char *n2ce_nearest_word(const char *word, const char *const *words, size_t n);

typedef struct n2ce_task n2ce_task;

/** Tasks by index, NULL beyond the last; and by name ("study gaussian"), NULL
 *  if there is none. */
N2CE_API const n2ce_task *n2ce_task_at(size_t index);
N2CE_API const n2ce_task *n2ce_task_find(const char *name);

/** What help prints: name, one line, paragraphs, an example to paste. */
N2CE_API const char *n2ce_task_name(const n2ce_task *task);
N2CE_API const char *n2ce_task_summary(const n2ce_task *task);
N2CE_API const char *n2ce_task_description(const n2ce_task *task);
N2CE_API const char *n2ce_task_examples(const n2ce_task *task);
N2CE_API const n2ce_option *n2ce_task_options(const n2ce_task *task);

/** Names of options, separated by blanks, that the command line also takes as
 *  bare words in this order ("model data"); "" if there are none. */
N2CE_API const char *n2ce_task_operands(const n2ce_task *task);

/** What a task computed, in every form it can be shown. */
typedef struct n2ce_answer n2ce_answer;

/** Runs a task with options made from its table. After N2CE_ECANCELED *out
 *  holds what was finished by then, or NULL if nothing was. A task that has an
 *  option "report" writes its report into that folder; if only that fails, *out
 *  holds the answer all the same.
 *
 *  Results do not depend on the number of threads. Same options, same bytes, on
 *  the same device and instruction set. So what a stopwatch decides may differ
 *  from run to run: the device where it is "auto", which is the default of fit,
 *  divergence, mi and test and chooses on a machine with a GPU, and what is done
 *  within a limit of time. Say device "cpu" or "cuda" to have the same bytes
 *  always. */
N2CE_API n2ce_status n2ce_task_run(n2ce_ctx *ctx, const n2ce_task *task,
                                   const n2ce_options *options, n2ce_answer **out);
N2CE_API void n2ce_answer_free(n2ce_answer *answer); /**< NULL is fine */

typedef enum n2ce_dtype {
    N2CE_F64 = 0,
    N2CE_F32 = 1,
    N2CE_I64 = 2,
    N2CE_I32 = 3,
    N2CE_U8 = 4
} n2ce_dtype;

/** Samples in the caller's memory, one a row. Only read, never kept. */
typedef struct n2ce_matrix {
    const void *data;
    n2ce_dtype type;
    size_t rows, cols;
    ptrdiff_t row_stride, col_stride; /**< in bytes; both 0: row-major without
                                           gaps */
} n2ce_matrix;

/** Runs a task on samples in memory instead of the files that its options name:
 *
 *      fit, divergence, test    data[0] is the numerator, data[1] the denominator
 *      mi                       data[0] is x, data[1] is y, row by row
 *      optimize                 data[0] holds designs, data[1] their values, one
 *                               column; say which way with "maximize" or
 *                               "minimize", whose column name is then free
 *
 *  Everything else is as in n2ce_task_run(). Fails with N2CE_EINVAL for a task
 *  that takes no data, or another number of matrices. */
N2CE_API n2ce_status n2ce_task_run_on(n2ce_ctx *ctx, const n2ce_task *task,
                                      const n2ce_options *options, const n2ce_matrix *data,
                                      size_t n_data, n2ce_answer **out);

/** A number of the first level of the answer's JSON object by its name; NaN if
 *  there is none of this name:
 *
 *      fit, divergence, mi    estimate, lo, hi
 *      test                   p, accuracy, permutations
 *      optimize               rows, seen, best_seen, best_predicted, above, far
 *
 *  Studies and benchmarks have their JSON alone. */
N2CE_API double n2ce_answer_number(const n2ce_answer *answer, const char *name);

/** A number with its interval. Later versions may add members at the end. */
typedef struct n2ce_estimate {
    double value;          /**< not clipped: may be below 0 where the truth is near */
    double lo, hi;         /**< the interval of the option "level" */
    double standard_error; /**< what the interval was made of */
    const char *unit;      /**< "nats" or "bits" */
    bool trusted;          /**< whether all of the library's own checks were passed */
    const char *verdict;   /**< "trusted", "doubtful" or "failed" */
    const char *reason;    /**< a sentence that says why, "" if it is trusted */
} n2ce_estimate;

/** An estimate of the answer, owned by it; NULL if it has none of this name:
 *
 *      fit, divergence    "kl", KL(num || den)
 *      divergence         "kl_reverse", "js", and "path 100" for the M-path at
 *                         M = 100, as for every other M of the option "path"
 *      mi                 "mi"
 *
 *  "estimate" is the first of its verb: "kl" or "mi". */
N2CE_API const n2ce_estimate *n2ce_answer_estimate(const n2ce_answer *answer, const char *name);

/** The two-sample test. Later versions may add members at the end. */
typedef struct n2ce_test_result {
    double p;            /**< uniform if the distributions are the same */
    double accuracy;     /**< share of held-out rows told apart; 0.5 is chance */
    size_t permutations; /**< of labels; with fewer than 3000 rows a side p is a multiple of
                              1 / (permutations + 1) */
    size_t n_num, n_den; /**< held-out rows */
    bool trusted;        /**< the ratio that tells them apart */
} n2ce_test_result;

/** The result of "test", owned by the answer; NULL for other tasks. */
N2CE_API const n2ce_test_result *n2ce_answer_test(const n2ce_answer *answer);

/** Designs to try next, best prediction first. Later versions may add members
 *  at the end. */
typedef struct n2ce_proposals {
    size_t rows, cols;
    const double *designs;            /**< rows x cols, row-major, in the data's units; a
                                           category by its number */
    const char *const *names;         /**< of the columns */
    const size_t *n_levels;           /**< of each column; 0: it holds numbers */
    const char *const *const *levels; /**< levels[column][number] is a category's
                                           text */
    const double *predicted;          /**< the value that is expected of each row */
    const double *spread;    /**< standard deviation of its error, as members and trials say */
    const double *log_prior; /**< how usual the design is, nats, up to a
                                  constant */
    const double *distance;  /**< from the nearest known design: root mean
                                  square over columns, in ranges of the data */
} n2ce_proposals;

/** The proposals of "optimize", owned by the answer; NULL for other tasks. */
N2CE_API const n2ce_proposals *n2ce_answer_proposals(const n2ce_answer *answer);

/** The answer for a terminal (aligned tables), as one JSON object, as bare
 *  numbers one a line, and in one sentence that says what is complete. Owned
 *  by the answer. Each text ends with a newline. */
N2CE_API const char *n2ce_answer_text(const n2ce_answer *answer);
N2CE_API const char *n2ce_answer_json(const n2ce_answer *answer);
N2CE_API const char *n2ce_answer_brief(const n2ce_answer *answer);
N2CE_API const char *n2ce_answer_kept(const n2ce_answer *answer);

/** The page of the answer's report; NULL if it has none. */
N2CE_API const char *n2ce_answer_page(const n2ce_answer *answer);

/** Checks, before hours of work, that a report of `task` can be written into
 *  `folder`, by making what is missing and removing it again.
 *  Fails with N2CE_EIO, or N2CE_EEXIST if a report is there already and
 *  `overwrite` is false. */
N2CE_API n2ce_status n2ce_report_check(n2ce_ctx *ctx, const n2ce_task *task, const char *folder,
                                       bool overwrite);

/** Writes the report: NAME.html, a page without external files, and
 *  NAME.json. Each is written under a temporary name, synced and renamed, so a
 *  crash leaves the old file or the new one. An answer without a page, that of
 *  a run that was stopped before there was anything to show, writes nothing.
 *  Fails as n2ce_report_check. */
N2CE_API n2ce_status n2ce_report_write(n2ce_ctx *ctx, const n2ce_answer *answer, const char *folder,
                                       bool overwrite);

/** File name of the page a task's report has, e.g. "gaussian.html"; NULL if the
 *  task has no report. */
N2CE_API const char *n2ce_report_page(const n2ce_task *task);

/* ---------------------------------------------------------------------------
 * 5. Models
 *
 *     n2ce_model_load(ctx, "model.safetensors", &model);
 *     n2ce_model_score(model, &rows, log_ratios);
 * ------------------------------------------------------------------------ */

/** A fitted log ratio ln p_num(x)/p_den(x), with everything it needs to be used
 *  again: columns, scaling, parameters, how it was fitted. */
typedef struct n2ce_model n2ce_model;

/** Takes the model out of the answer of "fit" (or of "mi", whose ratio is
 *  p(x,y) / p(x)p(y) on the columns of x followed by those of y); NULL if it
 *  has none, or it was taken already. Free it with n2ce_model_free(). */
N2CE_API n2ce_model *n2ce_answer_take_model(n2ce_answer *answer);

/** Reads and writes a model as a safetensors file, written whole or not at all.
 *  Loading fails with N2CE_EDATA for a file that is damaged or not ours. */
N2CE_API n2ce_status n2ce_model_load(n2ce_ctx *ctx, const char *path, n2ce_model **out);
N2CE_API n2ce_status n2ce_model_save(const n2ce_model *model, const char *path, bool overwrite);
N2CE_API void n2ce_model_free(n2ce_model *model); /**< NULL is fine */

/** Columns a row must have, and their names. */
N2CE_API size_t n2ce_model_columns(const n2ce_model *model);
N2CE_API const char *n2ce_model_column(const n2ce_model *model, size_t column);

/** Gives the columns of a model that was fitted to matrices names, as many as it
 *  has columns; else they are called by their numbers. "score" finds the columns
 *  of a file by them. Fails with N2CE_EINVAL (a name is empty, no UTF-8, or comes
 *  twice) and changes nothing then. */
N2CE_API n2ce_status n2ce_model_name(n2ce_model *model, const char *const *names);

/** Log ratios in nats of all rows. Same model, same rows: same bytes, whichever
 *  program calls it. A number in a categorical column is the name of a level, as
 *  in a file: 20 is "20". Fails with N2CE_EINVAL (wrong number of columns) or
 *  N2CE_EDATA (a value is not finite, a level was not there when the model was
 *  fitted; the message says where). */
N2CE_API n2ce_status n2ce_model_score(n2ce_model *model, const n2ce_matrix *rows,
                                      double *log_ratios);

/** What the model is, as one JSON object. Owned by the model. */
N2CE_API const char *n2ce_model_json(const n2ce_model *model);

/* ---------------------------------------------------------------------------
 * 6. Optimisers
 *
 *     n2ce_optimizer_fit(ctx, NULL, &designs, &values, &optimizer);
 *     n2ce_optimizer_propose(optimizer, 256, &proposals);
 *     n2ce_optimizer_save(optimizer, "model.safetensors", false);
 * ------------------------------------------------------------------------ */

/** What "optimize" learns from designs that were tried, kept so that it can
 *  propose more than once, today or another day. */
typedef struct n2ce_optimizer n2ce_optimizer;

/** Learns from designs, one a row, and their values, one column.
 *
 *  options    of the task "optimize", NULL for its defaults: larger values are
 *             better unless "minimize" is set (to any text); those that are
 *             about files, the count and the back-test play no part
 *
 *  Fails as the task does, with N2CE_EDATA for designs from which nothing can be
 *  learnt; *out is then NULL. */
N2CE_API n2ce_status n2ce_optimizer_fit(n2ce_ctx *ctx, const n2ce_options *options,
                                        const n2ce_matrix *designs, const n2ce_matrix *values,
                                        n2ce_optimizer **out);
N2CE_API void n2ce_optimizer_free(n2ce_optimizer *optimizer); /**< NULL is fine */

/** Gives the columns names, which else are their numbers, and categories texts:
 *  levels[j][v], of n_levels[j], is that of the number v in column j of the
 *  designs. n_levels[j] is 0 for a column of numbers, or of categories that keep
 *  their texts; both may be NULL. Fails with N2CE_EINVAL (a name twice, a
 *  category without a text, texts for one that has them already) and changes
 *  nothing then. */
N2CE_API n2ce_status n2ce_optimizer_name(n2ce_optimizer *optimizer, const char *const *names,
                                         const char *const *const *levels, const size_t *n_levels);

/** At most n new designs, fewer only if the columns allow no more. *out is owned
 *  by the optimiser, until it is asked again. The same n gives the same bytes
 *  every time, on the same device. */
N2CE_API n2ce_status n2ce_optimizer_propose(n2ce_optimizer *optimizer, size_t n,
                                            const n2ce_proposals **out);

/** Reads and writes an optimiser, the designs included, as a safetensors file,
 *  written whole or not at all. One that was loaded proposes the same bytes, on
 *  the same device; it is used on the device it was trained on, or else on the
 *  processor. Loading takes seconds for what is worked out anew, and fails with
 *  N2CE_EDATA for a file that is damaged or not ours. */
N2CE_API n2ce_status n2ce_optimizer_save(n2ce_optimizer *optimizer, const char *path,
                                         bool overwrite);
N2CE_API n2ce_status n2ce_optimizer_load(n2ce_ctx *ctx, const char *path, n2ce_optimizer **out);

/** What the optimiser is, as one JSON object. Owned by the optimiser. */
N2CE_API const char *n2ce_optimizer_json(const n2ce_optimizer *optimizer);

/* ---------------------------------------------------------------------------
 * 7. Detectors
 *
 *     n2ce_detector_fit(ctx, NULL, &normal, &detector);
 *     n2ce_detector_score(detector, &rows, 0, scores, p_values);
 * ------------------------------------------------------------------------ */

/** What "detect" learns from normal rows, kept to judge others. */
typedef struct n2ce_detector n2ce_detector;

/** Learns from normal rows, at least 10. A value that is NaN is missing.
 *
 *  options    of the task "detect", NULL for its defaults; those that are about
 *             files and flags play no part
 *
 *  Fails as the task does; *out is then NULL. */
N2CE_API n2ce_status n2ce_detector_fit(n2ce_ctx *ctx, const n2ce_options *options,
                                       const n2ce_matrix *normal, n2ce_detector **out);
N2CE_API void n2ce_detector_free(n2ce_detector *detector); /**< NULL is fine */

/** Gives the columns names, as many as there are; else they are called by their
 *  numbers. "detect" with "model" finds the columns of a file by them. Fails as
 *  n2ce_model_name() does. */
N2CE_API n2ce_status n2ce_detector_name(n2ce_detector *detector, const char *const *names);

/** Scores of rows, larger is odder, and their p-values, which are uniform where
 *  rows are like the normal ones. Either may be NULL. `first` is the number of
 *  the first row among all that are judged, in whatever calls: what p-values
 *  leave to chance depends on it, and on the seed. A number in a categorical
 *  column is the name of a level, as in a file. Fails with N2CE_EINVAL (other
 *  columns) or N2CE_EDATA (a value is infinite). */
N2CE_API n2ce_status n2ce_detector_score(n2ce_detector *detector, const n2ce_matrix *rows,
                                         size_t first, double *scores, double *p_values);

/** Scores of the rows that it was fitted to, all of them and in their order, each
 *  by what was learnt from others. Fails with N2CE_EINVAL for fewer rows than
 *  it has learnt from. */
N2CE_API n2ce_status n2ce_detector_score_fitted(n2ce_detector *detector, const n2ce_matrix *normal,
                                                double *scores);

/** Reads and writes a detector, its normal rows included, as a safetensors file,
 *  written whole or not at all: the files of "detect" with "save". Loading works
 *  some of it out anew, and fails with N2CE_EDATA for a file that is damaged or
 *  not ours. */
N2CE_API n2ce_status n2ce_detector_save(const n2ce_detector *detector, const char *path,
                                        bool overwrite);
N2CE_API n2ce_status n2ce_detector_load(n2ce_ctx *ctx, const char *path, n2ce_detector **out);

/** What the detector is, as one JSON object. Owned by the detector. */
N2CE_API const char *n2ce_detector_json(const n2ce_detector *detector);

/* ---------------------------------------------------------------------------
 * Pictures
 * ------------------------------------------------------------------------ */

/** Pictures of one size, in memory. */
typedef struct n2ce_images n2ce_images;

/** All pictures of a file: PNG, IDX, CIFAR-10's binary batches, NPY (bytes,
 *  [n,h,w], [n,h,w,c] or [n,c,h,w]), plain or packed by gzip or xz, known by what
 *  is in it; or of a folder of PNGs, in the order of their names. Fails with
 *  N2CE_EDATA (no pictures, damaged, cut short, of several sizes, or this build
 *  lacks a library), N2CE_EIO, N2CE_ENOMEM, N2CE_EINVAL (`ctx` or `path` is NULL). */
N2CE_API n2ce_status n2ce_images_read(n2ce_ctx *ctx, const char *path, n2ce_images **out);
N2CE_API void n2ce_images_free(n2ce_images *images); /**< NULL is fine */

/** How many, height, width, channels: 1, grey, or 3, RGB. */
N2CE_API void n2ce_images_size(const n2ce_images *images, size_t size[4]);

/** [n][height][width][channels], and a label of each picture or NULL if the file
 *  has none. Owned by the images. */
N2CE_API const uint8_t *n2ce_images_pixels(const n2ce_images *images);
N2CE_API const uint8_t *n2ce_images_labels(const n2ce_images *images);

/** The first n pictures, all if n is 0, side by side in one PNG, which is written
 *  whole or not at all; `columns` of them in a row, 0: nearly a square. Fails with
 *  N2CE_EINVAL (there are fewer), N2CE_EEXIST, N2CE_EIO, N2CE_ENOMEM. */
N2CE_API n2ce_status n2ce_images_write_sheet(const n2ce_images *images, size_t n, size_t columns,
                                             const char *path, bool overwrite);

#ifdef __cplusplus
}
#endif
#endif /* N2CE_H */
