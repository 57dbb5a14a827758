/* The study of distillation: students of one teacher, by how near their samples are to pictures.
 *
 * distill_study.c has options and the order of work, distill_arms.c what is trained and sampled,
 * distill_kept.c takes over earlier runs, distill_view.c makes tables, text and JSON,
 * distill_page.c the HTML report. */
#ifndef N2_DISTILL_STUDY_H
#define N2_DISTILL_STUDY_H

#include "base/numerics.h"
#include "diffusion/distill.h"
#include "images_study.h"
#include "report/text_table.h"
#include "study_runner.h"
#include "task/task.h"

typedef enum n2_distill_source {
    N2_STUDY_TEACHER, /* Heun's 18 steps */
    N2_STUDY_START,   /* ten ancestral steps of the teacher, which DxMI begins with */
    N2_STUDY_STUDENT
} n2_distill_source;

typedef struct n2_distill_arm {
    const char *name, *title;
    n2_distill_source source;
    n2_distill_method method;
    n2_critic critic;
} n2_distill_arm;

enum { N2_DISTILL_ARMS = 13, N2_DISTILL_SHOWN = 64 };
extern const n2_distill_arm n2_distill_arms[N2_DISTILL_ARMS];

/* Those whose differences are told: of N2CE with the larger M from the others of its method. */
typedef enum n2_distill_named { N2_ARM_DXMI_M100 = 5, N2_ARM_SIDA_M50 = 11 } n2_distill_named;

typedef struct n2_distill_score {
    double frechet, kid, precision, recall, classes; /* classes: NaN, the features have none */
    double along;      /* the mean distance along the training; NaN: none */
    double real, made; /* log ratios or values at the end; NaN: none */
    double seen;       /* pictures */
} n2_distill_score;

typedef struct n2_distill_run {
    bool done, failed; /* failed: numbers ceased to be finite */
    n2_distill_score score;
    double seconds;
    n2_curve curve;
    n2_text sheet; /* of the first seed, a PNG; empty: none */
} n2_distill_run;

typedef struct n2_distill_study {
    n2ce_ctx *ctx;
    const n2ce_options *options;
    n2_arena *arena;
    n2_images_set set;
    n2_denoiser *teacher;
    n2_denoiser_record *taught; /* NULL: the teacher was there */
    double taught_seconds;
    bool asked[N2_DISTILL_ARMS];
    size_t n_seeds, number;
    uint64_t first_seed;
    n2_device_choice choice, for_watch;
    n2_distance_watch *watch;
    n2_set_distance floor;
    double real_classes;
    double deadline;      /* n2_seconds(); 0: none */
    n2_distill_run *runs; /* arm by arm, in it seed by seed */
    char settings[512];   /* what runs must have in common to be compared */
    size_t n_done;
    bool interrupted, out_of_time;
} n2_distill_study;

static inline n2_distill_run *n2_distill_run_at(const n2_distill_study *s, size_t arm,
                                                size_t seed) {
    return &s->runs[arm * s->n_seeds + seed];
}

/* Teacher and start depend on no seed but the samples'. */
static inline bool n2_distill_is_due(const n2_distill_study *s, size_t arm, size_t seed) {
    const n2_distill_run *r = n2_distill_run_at(s, arm, seed);
    return s->asked[arm] && !r->done && !r->failed;
}

/* ---- distill_arms.c ---- */

/* The teacher from its file, or trained and written there. */
n2ce_status n2_distill_find_teacher(n2_distill_study *s, n2_runner *runner);

/* Trains an arm, makes its samples and judges them. */
n2ce_status n2_distill_run_arm(n2_distill_study *s, n2_runner *runner, size_t arm, size_t seed);

/* ---- distill_kept.c ---- */

n2ce_status n2_distill_take_kept(n2ce_ctx *ctx, const char *paths, n2_distill_study *s);

/* ---- distill_view.c, distill_page.c ---- */

typedef struct n2_distill_summary {
    n2_tally frechet, along, kid, precision, recall, classes, real, made;
} n2_distill_summary;
n2_distill_summary n2_distill_summarise(const n2_distill_study *s, size_t arm);

n2ce_status n2_distill_table(const n2_distill_study *s, n2_arena *arena, n2_text_table *out);
extern const char n2_distill_caveat[];
n2ce_status n2_distill_show(n2ce_ctx *ctx, const n2_distill_study *s, n2ce_answer *answer);
n2ce_status n2_distill_page(n2ce_ctx *ctx, const n2_distill_study *s, char **html);

#endif
