/* The study of pictures: priors of the codes of one autoencoder, by how near their samples are to
 * real pictures.
 *
 * images_study.c has options and the order of work, images_data.c the pictures, images_arms.c what
 * is trained and sampled, images_judge.c features and distances, images_kept.c takes over earlier
 * runs, images_view.c makes tables, text and JSON, images_page.c the HTML report. */
#ifndef N2_IMAGES_STUDY_H
#define N2_IMAGES_STUDY_H

#include "base/numerics.h"
#include "metric/feature_net.h"
#include "metric/patch_features.h"
#include "metric/set_distance.h"
#include "report/text_table.h"
#include "study_runner.h"
#include "task/lebm_options.h"
#include "task/task.h"

/* ---- arms ---- */

typedef enum n2_images_source {
    N2_IMAGES_CODES,  /* codes of the pictures themselves: as good as the decoder allows */
    N2_IMAGES_NORMAL, /* N(0, I) */
    N2_IMAGES_FITTED, /* Gaussians fitted to the codes */
    N2_IMAGES_LEARNT  /* a learnt prior */
} n2_images_source;

typedef struct n2_images_arm {
    const char *name, *title;
    n2_images_source source;
    size_t components; /* of N2_IMAGES_FITTED */
    n2_prior_kind kind;
    double magnitude;
    int64_t stages;
    bool over_normal; /* f is learnt over N(0, I), as in the paper, whatever --base says */
} n2_images_arm;

enum { N2_IMAGES_ARMS = 11, N2_IMAGES_MOVES = 100, N2_IMAGES_SHOWN = 64 };
extern const n2_images_arm n2_images_arms[N2_IMAGES_ARMS];

/* How near the samples of an arm are to the pictures. */
typedef struct n2_images_score {
    bool done;
    double frechet, kid, kid_spread, precision, recall;
    double classes; /* class score; NaN: the features have none */
    double gain;    /* of codes that were not learnt from, over N(0, I), nats; NaN: not known */
} n2_images_score;

/* Codes stand still, or were refined together with a learnt prior. */
enum { N2_IMAGES_FROZEN, N2_IMAGES_JOINT, N2_IMAGES_STAGES };

typedef struct n2_images_run {
    n2_images_score score[N2_IMAGES_STAGES];
    double seconds;
    bool failed;            /* numbers ceased to be finite: what is not done will not be */
    n2_lebm_record *record; /* of the training; NULL: none, or taken over */
    n2_text sheet;          /* of the first seed, a PNG; empty: none */
} n2_images_run;

/* ---- the study ---- */

typedef struct n2_images_set {
    n2_images *train, *test; /* test NULL: the set has none */
    const char *name;
} n2_images_set;

typedef struct n2_images_study {
    n2ce_ctx *ctx;
    const n2ce_options *options;
    n2_arena *arena;
    n2_images_set set;
    n2_lebm_plan plan; /* but for the prior and the seed */
    bool asked[N2_IMAGES_ARMS];
    size_t n_seeds, number, neighbours; /* number: pictures that are made */
    uint64_t first_seed;
    n2_device_choice choice;
    double deadline; /* n2_seconds(); 0: none */

    n2_feature_net *net; /* NULL: layout and texture */
    n2_patch_basis *basis;
    size_t d, classes;
    float *real; /* features of the pictures; NULL: not yet */
    double real_classes;
    n2_set_distance floor; /* test against train, or halves */
    bool halves;

    n2_images_run *runs;          /* arm by arm, in it seed by seed */
    n2_lebm_record vae;           /* of the first seed */
    n2_text chains, pairs, lines; /* PNGs of the first seed */
    char settings[1024];          /* what runs must have in common to be compared */
    size_t n_done;
    double vae_seconds;
    bool interrupted, out_of_time;
} n2_images_study;

static inline n2_images_run *n2_images_run_at(const n2_images_study *s, size_t arm, size_t seed) {
    return &s->runs[arm * s->n_seeds + seed];
}

static inline bool n2_images_has_joint(const n2_images_study *s, size_t arm) {
    return n2_images_arms[arm].source == N2_IMAGES_LEARNT &&
           s->plan.schedule.steps[N2_LEBM_JOINT] > 0;
}

/* Whether nothing is left to do for an arm and a seed. */
bool n2_images_is_done(const n2_images_study *s, size_t arm, size_t seed);

/* ---- images_data.c ---- */

/* The set that the options name. Fails with N2CE_EINVAL, N2CE_EIO, N2CE_EDATA. */
n2ce_status n2_images_set_read(n2ce_ctx *ctx, const n2ce_options *o, n2_images_set *out);
void n2_images_set_free(n2_images_set *set);

/* Which pictures a set has: check sums of both parts. */
enum { N2_SET_SUM_ROOM = 40 };
void n2_images_set_sum(const n2_images_set *set, char sum[N2_SET_SUM_ROOM]);

/* ---- images_judge.c ---- */

/* What features are made by, which is looked at before anything is trained; then those of the
 * pictures themselves. */
n2ce_status n2_images_features_open(n2_images_study *s);
n2ce_status n2_images_judge_open(n2_images_study *s);
void n2_images_judge_close(n2_images_study *s);
n2ce_status n2_images_judge(n2_images_study *s, const n2_images *made, n2_images_score *out);

/* ---- images_arms.c ---- */

/* Trains the autoencoder of a seed and all arms that are asked for and not done. */
n2ce_status n2_images_run_seed(n2_images_study *s, n2_runner *runner, size_t seed);

/* ---- images_kept.c ---- */

/* Takes over runs of earlier answers, paths of files or of folders with an images.json, separated
 * by commas; those with other settings are left, with a warning. */
n2ce_status n2_images_take_kept(n2ce_ctx *ctx, const char *paths, n2_images_study *s);

/* ---- images_view.c, images_page.c ---- */

/* Over seeds. */
typedef struct n2_images_summary {
    n2_tally frechet, kid, precision, recall, classes, gain;
} n2_images_summary;
n2_images_summary n2_images_summarise(const n2_images_study *s, size_t arm, size_t stage);

/* The differences of Fréchet distances of two arms, seed by seed, which share an autoencoder: those
 * of `arm` less those of the last arm, N2CE with K = 3. */
n2_tally n2_images_gap(const n2_images_study *s, size_t arm, size_t stage);

n2ce_status n2_images_table(const n2_images_study *s, n2_arena *arena, n2_text_table *out);
extern const char n2_images_caveat[];
n2ce_status n2_images_show(n2ce_ctx *ctx, const n2_images_study *s, n2ce_answer *answer);
n2ce_status n2_images_page(n2ce_ctx *ctx, const n2_images_study *s, char **html);

#endif
