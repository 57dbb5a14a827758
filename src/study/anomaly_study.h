/* The study of anomalies: a digit of MNIST is held out, methods learn from the others, and score
 * pictures of all digits; how well do the scores find the held-out one?
 *
 * anomaly_split.h says what is learnt from and what is judged. A method (anomaly_methods.c) is a
 * function of the split and a seed. anomaly_study.c has the options and the runs,
 * anomaly_study_kept.c takes over runs of earlier studies, anomaly_study_view.c makes tables and
 * text, anomaly_study_json.c JSON, anomaly_study_page.c the HTML report. */
#ifndef N2_ANOMALY_STUDY_H
#define N2_ANOMALY_STUDY_H

#include "anomaly_split.h"
#include "base/numerics.h"
#include "metric/ranking.h"
#include "report/text_table.h"
#include "task/task.h"
#include "train/device_choice.h"

enum {
    N2_ANOMALY_DIGITS = 10,
    N2_ANOMALY_METHODS = 16,
    N2_ANOMALY_PARTS = 8,
    N2_ANOMALY_CHECKS = 33,
    N2_ANOMALY_CURVE = 41, /* recalls at which precision is kept: 0, 0.025, ..., 1 */
    N2_ANOMALY_SHOWN = 24  /* pictures that are kept of each kind */
};

/* ---- methods (anomaly_methods.c) ---- */

/* How methods that train networks do it. */
typedef struct n2_anomaly_effort {
    size_t width;     /* channels of a decoder's layers are 8, 4 and 2 of these */
    size_t steps;     /* of training; 0: those of the method */
    size_t checks;    /* the test pictures are scored so many times meanwhile */
    double rate;      /* on published learning rates */
    double sigma;     /* of a pixel, in Langevin dynamics */
    double slow;      /* share of the way that the slow sampler goes every 10 steps */
    size_t subset;    /* n2_anomaly_split_thin; 0: all pictures */
    double weight;    /* default: of the squared error in the autoencoder's loss, */
    double magnitude; /* M of the critic of mixes, */
    size_t members;   /* models that are averaged */
    const char *keep; /* a folder for the parts of scores; NULL: they are not kept */
    n2_device_choice *choice;
} n2_anomaly_effort;

/* What a run of networks depends on, so that another study knows whether it may take it over. */
enum { N2_ANOMALY_SETTINGS = 8 };
typedef struct n2_anomaly_setting {
    const char *key;
    double value;
} n2_anomaly_setting;
void n2_anomaly_settings(const n2_anomaly_effort *e, n2_anomaly_setting out[N2_ANOMALY_SETTINGS]);

/* What is asked of a method. */
typedef struct n2_anomaly_job {
    n2ce_ctx *ctx;
    n2_arena *arena; /* for whatever it needs */
    const n2_anomaly_split *split;
    uint64_t seed;
    n2_anomaly_effort effort;
} n2_anomaly_job;

/* A term of the score by itself, as `name` of the method. */
typedef struct n2_anomaly_part {
    const char *name;
    double *score; /* [n_test], memory of the job's arena */
} n2_anomaly_part;

/* What the test pictures say after so many steps. Nothing is chosen by it. */
typedef struct n2_anomaly_check {
    double step, auprc;
} n2_anomaly_check;

typedef struct n2_anomaly_scores {
    double *score; /* [n_test], the larger the odder; room that the caller gives */
    n2_anomaly_part parts[N2_ANOMALY_PARTS];
    size_t n_parts;
    /* AUPRC after every so many steps and of the last score; none: there was one score only. */
    n2_anomaly_check checks[N2_ANOMALY_CHECKS];
    size_t n_checks;
} n2_anomaly_scores;

typedef struct n2_anomaly_method {
    const char *name, *summary;
    const char *published; /* the paper's name of it; NULL: not there */
    bool seeded;           /* differs from seed to seed; else it is run once */
    n2ce_status (*score)(const n2_anomaly_job *job, n2_anomaly_scores *out);
} n2_anomaly_method;

extern const n2_anomaly_method n2_anomaly_methods[];
extern const size_t n2_anomaly_method_count;
const n2_anomaly_method *n2_anomaly_method_find(const char *name); /* NULL: there is none */

/* Mean distance to the 5 nearest pictures learnt from, in their first 50 principal components;
 * squared error of a reconstruction from 20 (anomaly_baselines.c). */
n2ce_status n2_anomaly_neighbours(const n2_anomaly_job *job, n2_anomaly_scores *out);
n2ce_status n2_anomaly_reconstruction(const n2_anomaly_job *job, n2_anomaly_scores *out);

/* Latent energy-based models with an amortised sampler, by their priors (anomaly_damc.c). */
n2ce_status n2_anomaly_damc_mle(const n2_anomaly_job *job, n2_anomaly_scores *out);
n2ce_status n2_anomaly_damc_1(const n2_anomaly_job *job, n2_anomaly_scores *out);
n2ce_status n2_anomaly_damc_100(const n2_anomaly_job *job, n2_anomaly_scores *out);
n2ce_status n2_anomaly_damc_100_k3(const n2_anomaly_job *job, n2_anomaly_scores *out);

/* The default recipe of pictures (anomaly_oddity.c, lebm/oddity.h). */
n2ce_status n2_anomaly_oddity(const n2_anomaly_job *job, n2_anomaly_scores *out);
/* The bound of its autoencoder alone. */
n2ce_status n2_anomaly_bound(const n2_anomaly_job *job, n2_anomaly_scores *out);

/* ---- runs ---- */

/* One method on one digit with one seed. */
typedef struct n2_anomaly_run {
    uint64_t seed;
    bool done, failed;
    double auprc, auroc; /* of the last score */
    n2_anomaly_check checks[N2_ANOMALY_CHECKS];
    size_t n_checks;
    struct {
        const char *name;
        double auprc;
    } parts[N2_ANOMALY_PARTS];
    size_t n_parts;
    double precision[N2_ANOMALY_CURVE];
    /* Numbers of pictures: the odd and the normal ones that score highest, the highest first. */
    size_t odd[N2_ANOMALY_SHOWN], normal[N2_ANOMALY_SHOWN], n_odd, n_normal;
    double seconds;
    const char *device; /* where it was made, if that was measured; else NULL */
} n2_anomaly_run;

typedef struct n2_anomaly_study {
    const n2ce_options *options;
    n2_arena *arena;           /* of all that is below */
    const n2_images *pictures; /* NULL: not needed */
    int digits[N2_ANOMALY_DIGITS];
    const n2_anomaly_method *methods[N2_ANOMALY_METHODS];
    size_t n_digits, n_methods, n_seeds;
    uint64_t first_seed;
    n2_anomaly_effort effort;
    n2_device_choice choice;
    n2_anomaly_run *runs; /* digit by digit, in it method by method, in it seed by seed */
    struct {
        size_t n_train, n_normal, n_odd;
    } counts[N2_ANOMALY_DIGITS]; /* of each of `digits` */
    size_t n_done;
    bool interrupted;
} n2_anomaly_study;

static inline size_t n2_anomaly_runs(const n2_anomaly_study *s) {
    return s->n_digits * s->n_methods * s->n_seeds;
}

static inline n2_anomaly_run *n2_anomaly_run_at(const n2_anomaly_study *s, size_t d, size_t m,
                                                size_t seed) {
    return &s->runs[(d * s->n_methods + m) * s->n_seeds + seed];
}

/* Whether a run is to be made at all: of methods without a seed only the first. */
static inline bool n2_anomaly_is_due(const n2_anomaly_study *s, size_t m, size_t seed) {
    return seed == 0 || s->methods[m]->seeded;
}

/* The largest AUPRC of any check; NaN: there were none. */
double n2_anomaly_best(const n2_anomaly_run *run);

/* Takes over the runs of earlier studies (their JSON, or folders with anomaly.json, separated by
 * commas) that this one would make: of the same method, digit, seed and settings. */
n2ce_status n2_anomaly_take_kept(n2ce_ctx *ctx, const char *paths, n2_anomaly_study *s);

/* ---- summaries (anomaly_study_view.c) ---- */

/* A method on a digit over its seeds. */
typedef struct n2_anomaly_summary {
    size_t done, failed;
    n2_tally auprc, auroc, best, seconds, parts[N2_ANOMALY_PARTS];
} n2_anomaly_summary;

n2_anomaly_summary n2_anomaly_summarise(const n2_anomaly_study *s, size_t digit, size_t method);

/* The share of odd pictures among those that are judged. */
double n2_anomaly_prevalence(const n2_anomaly_study *s, size_t digit);

/* The mean over digits of the mean over seeds; NaN unless all digits have one. */
double n2_anomaly_mean(const n2_anomaly_study *s, size_t method);

/* Tables in the arena: AUPRC of the last checkpoint, and of the best; of the parts of scores;
 * AUROC. Without rows where there is nothing to show. */
typedef enum n2_anomaly_table {
    N2_ANOMALY_LAST,
    N2_ANOMALY_BEST,
    N2_ANOMALY_AUROC
} n2_anomaly_table;
n2ce_status n2_anomaly_table_of(const n2_anomaly_study *s, n2_anomaly_table which, n2_arena *arena,
                                n2_text_table *out);
n2ce_status n2_anomaly_parts_table(const n2_anomaly_study *s, n2_arena *arena, n2_text_table *out);

/* What the reader must know to judge the numbers. */
extern const char n2_anomaly_caveat[];

/* ---- answers ---- */

n2_form n2_anomaly_study_json; /* about an n2_anomaly_study */

n2ce_status n2_anomaly_study_show(n2ce_ctx *ctx, const n2_anomaly_study *s, n2ce_answer *answer);
n2ce_status n2_anomaly_study_page(n2ce_ctx *ctx, const n2_anomaly_study *s, char **html);

/* ---- what is published (anomaly_published.c) ---- */

typedef struct n2_anomaly_published {
    const char *method;
    double auprc[5], spread[5]; /* digits 1, 4, 5, 7, 9 */
    bool same_protocol;         /* as far as can be told: its test set has as many odd pictures */
} n2_anomaly_published;

const n2_anomaly_published *n2_anomaly_published_at(size_t i); /* NULL beyond the last */
/* The place of a digit in the tables; -1: they do not have it. */
int n2_anomaly_published_place(int digit);

#endif
