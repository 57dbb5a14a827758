/* Ways to propose designs: the method of the paper, those it is compared with, and what every
 * method has to beat.
 *
 * A row of n2_methods is a method by its name; a file has a method. A method that is another one
 * with something changed (a smaller M, another sampler) is a variant of it: it has its own name
 * and row. */
#ifndef N2_METHODS_H
#define N2_METHODS_H

#include "design/design.h"
#include "train/device_choice.h"

/* How much work a method does, and where. */
typedef struct n2_effort {
    size_t scale; /* 1: networks and training as published; S: 1/S of their widths and of their
                   * steps, though not below what follows */
    int64_t least_width;
    uint64_t least_steps;
    n2_device_choice *choice; /* NULL: the processor. A method with networks settles it */
} n2_effort;

enum { N2_LEAST_WIDTH = 256, N2_LEAST_STEPS = 500 }; /* the usual ones */

/* What is done at this effort where so much was published. */
int64_t n2_effort_width(const n2_effort *effort, int64_t published);
uint64_t n2_effort_steps(const n2_effort *effort, uint64_t published);

/* As n2_method.propose, which does the published amount of work on the processor. */
typedef n2ce_status n2_propose_with(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                                    const n2_effort *effort, n2_proposals *out);

/* Designs for values: n targets, in the data's units, and room for `rows` designs for each. */
typedef struct n2_aims {
    size_t n, rows;
    const double *target;
    double *x; /* target by target */
} n2_aims;

/* As n2_method.propose, on a device as that of an effort; besides, draws of designs given each
 * of the values, if there are any. */
typedef n2ce_status n2_propose_and_aim(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed,
                                       n2_device_choice *choice, const n2_aims *aims,
                                       n2_proposals *out);

typedef struct n2_listed_method {
    const n2_method *method;
    n2_propose_with *with;   /* NULL: effort is nothing to it */
    n2_propose_and_aim *aim; /* NULL: it cannot be asked for a value */
    const char *variant_of;  /* the method it is a variant of; NULL: none */
    bool trivial;            /* learns nothing: what others have to beat */
    int colour;              /* in plots */
} n2_listed_method;

extern const n2_listed_method n2_methods[];
extern const size_t n2_method_count;

const n2_listed_method *n2_method_find(const char *name); /* NULL if there is none */

/* Proposals of a listed method, and what it draws for values where it can and aims is not NULL;
 * N2CE_EINVAL for an offline set without rows. Once more on the processor, with a warning, where a
 * device fails that nobody insists on. */
n2ce_status n2_method_run(n2ce_ctx *ctx, const n2_listed_method *m, const n2_designs *offline,
                          uint64_t seed, const n2_effort *effort, const n2_aims *aims,
                          n2_proposals *out);

/* ---- the methods ---- */

extern const n2_method n2_random_method, n2_top_method, n2_gradient_method, n2_coms_method,
    n2_cma_es_method, n2_reinforce_method, n2_cbas_method, n2_auto_cbas_method, n2_mins_method,
    n2_gp_qei_method, n2_ddom_method, n2_bonet_method, n2_gbm_rank_method, n2_mlp_evolve_method;
extern const n2_method n2_cube_05_method, n2_cube_1_method, n2_cube_5_method,
    n2_cube_10_method; /* variants of random */

n2_propose_with n2_gradient_with, n2_coms_with, n2_cma_es_with, n2_reinforce_with, n2_cbas_with,
    n2_auto_cbas_with, n2_mins_with, n2_gp_qei_with, n2_ddom_with, n2_bonet_with, n2_gbm_rank_with,
    n2_mlp_evolve_with;

/* n2_method.propose of a method that has `with`. */
#define N2_PROPOSE_AS_PUBLISHED(with)                                                   \
    static n2ce_status propose(n2ce_ctx *ctx, const n2_designs *offline, uint64_t seed, \
                               n2_proposals *out) {                                     \
        const n2_effort effort = {1, 0, 0, NULL};                                       \
        return with(ctx, offline, seed, &effort, out);                                  \
    }

#endif
