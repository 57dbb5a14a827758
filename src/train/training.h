/* Inside a training: shared by train.c (the loop), train_plans.c (graphs, plans, the device they
 * run on), train_state.c (what is kept and saved), average.c. */
#ifndef N2_TRAINING_H
#define N2_TRAINING_H

#include "base/arena.h"
#include "train.h"

/* The plans of a phase: one for each inner loop, then its own. */
typedef struct n2_phase_plans {
    n2_plan *inner[N2_TRAIN_INNER], *step;
} n2_phase_plans;

/* The plans of all phases on a backend; NULL: not compiled. */
typedef struct n2_plan_set {
    const n2_backend *backend;
    n2_phase_plans *phases;
} n2_plan_set;

typedef struct n2_phase_graphs {
    n2_graph *inner[N2_TRAIN_INNER], *step;
    n2_outputs outputs;
} n2_phase_graphs;

typedef struct n2_training {
    n2ce_ctx *ctx;
    const n2_trainer *t;
    n2_phase_record *records;
    n2_arena arena;
    n2_phase_graphs *graphs;
    n2_plan_set sets[2]; /* while a device is chosen there are two */
    n2_plan_set *plans;  /* that are used */
    size_t which;        /* phase */
    uint64_t step;       /* of it */
    double saved;        /* when, in n2_seconds() */
    uint64_t told;       /* thousandths of the steps */
} n2_training;

static inline const n2_phase *n2_phase_at(const n2_training *r) { return &r->t->phases[r->which]; }

/* ---- train_plans.c ---- */

/* Builds all graphs, settles the device and compiles for it. */
n2ce_status n2_training_build(n2_training *r);
void n2_training_free(n2_training *r);

/* ---- train_state.c ---- */

/* The parameters of a phase and its averages, as they are now, are the best so far of a member. */
n2ce_status n2_keep_member(const n2_training *r, size_t member);
/* What a phase leaves: what was kept, or the averages, become the parameters. */
n2ce_status n2_end_weights(const n2_training *r);

n2ce_status n2_training_save(n2_training *r);

/* The same in between and at the end, where a full disk is no reason to lose the work: that is
 * logged. */
n2ce_status n2_training_try_to_save(n2_training *r);
n2ce_status n2_training_resume(n2_training *r);

/* ---- average.c ---- */

enum { N2_TWIN_NAME = 160 };
n2ce_status n2_add_twin(n2_store *store, const char *prefix, const n2_tensor *of);
n2_tensor *n2_twin_of(const n2_store *store, const char *prefix, const n2_tensor *of);
n2ce_status n2_copy_tensor(const n2_store *store, n2_tensor *to, const n2_tensor *from);

#endif
