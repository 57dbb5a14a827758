/* Logits of both sides for the tests of the objective. */
#ifndef TEST_LOGITS_H
#define TEST_LOGITS_H

#include "close.h"

#include "base/numerics.h"
#include "base/random.h"
#include "n2ce.h"

static const double eps = DBL_EPSILON;

static const double magnitudes[] = {1, 1.5, 10, 100, 1000, 1e6, 1e12};

static const n2ce_family families[] = {N2CE_FAMILY_N2CE, N2CE_FAMILY_NWJ, N2CE_FAMILY_NEG_REWEIGHT};

enum { NUM = 7, DEN = 5 };

/* Logits of both sides with room for their gradients. */
typedef struct problem {
    n2ce_objective objective;
    double num[NUM], den[DEN], grad_num[NUM], grad_den[DEN];
} problem;

static inline problem make_problem(n2ce_family family, double magnitude, uint32_t stream) {
    problem p = {.objective = N2CE_OBJECTIVE_INIT};
    p.objective.family = family;
    p.objective.magnitude = magnitude;
    float z[NUM + DEN];
    n2_fill_normal((n2_stream){1, stream, 0}, 0, NUM + DEN, z);
    for (size_t i = 0; i < NUM; i++) p.num[i] = 2 * (double)z[i] + 0.5;
    for (size_t i = 0; i < DEN; i++) p.den[i] = 2 * (double)z[NUM + i] - 0.5;
    return p;
}

static inline double solve(problem *p) {
    const n2ce_logits_f64 logits = {p->num, NUM, p->den, DEN, p->grad_num, p->grad_den};
    double loss = N2_NAN;
    assert_int_equal(n2ce_loss_f64(NULL, &p->objective, &logits, &loss, NULL), N2CE_OK);
    return loss;
}

static inline double loss_of(const n2ce_objective *o, const double *num, size_t n_num,
                             const double *den, size_t n_den) {
    const n2ce_logits_f64 logits = {num, n_num, den, n_den, NULL, NULL};
    double loss = N2_NAN;
    assert_int_equal(n2ce_loss_f64(NULL, o, &logits, &loss, NULL), N2CE_OK);
    return loss;
}

static inline n2ce_objective objective_of(n2ce_family family, double magnitude) {
    n2ce_objective o = N2CE_OBJECTIVE_INIT;
    o.family = family;
    o.magnitude = magnitude;
    return o;
}

/* Three stages, one of which does not count. */
static const uint32_t stage_num[NUM] = {0, 1, 2, 0, 1, 2, 2}, stage_den[DEN] = {2, 1, 0, 1, 2};
static const double stage_weights[3] = {0.3, 0, 2.5};

static inline void add_stages(problem *p) {
    p->objective.n_stages = 3;
    p->objective.stage_weights = stage_weights;
    p->objective.stage_num = stage_num;
    p->objective.stage_den = stage_den;
}

#endif
