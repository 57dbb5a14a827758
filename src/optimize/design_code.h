/* Designs as the numbers that networks see, and back.
 *
 * Numbers are standardised with mean and standard deviation of the offline rows (a constant column
 * is only shifted). A category of C levels becomes
 *
 *   LOGITS   C - 1 numbers, standardised too: of the softened one-hot .6 o + .4/C the logarithms,
 *            less that of level 0, which is left out. Back: the largest of 0 and these. This is how
 *            Design-Bench lets continuous optimisers work on sequences.
 *   ONE_HOT  C numbers, 0 or 1. Back: the largest. */
#ifndef N2_DESIGN_CODE_H
#define N2_DESIGN_CODE_H

#include "base/arena.h"
#include "design/design.h"

typedef enum n2_code_kind { N2_CODE_LOGITS, N2_CODE_ONE_HOT } n2_code_kind;

typedef struct n2_code {
    const n2_space *space;
    n2_code_kind kind;
    size_t width;             /* numbers of a coded design */
    double *mean, *deviation; /* of each of them */
    double y_mean, y_deviation;
    size_t rows;
    double *x, *y; /* the offline set, coded: rows x width, rows */
} n2_code;

/* All memory is the arena's. */
n2ce_status n2_code_new(n2_arena *arena, const n2_designs *offline, n2_code_kind kind,
                        n2_code *out);

void n2_code_encode(const n2_code *code, const double *design, double *coded);
void n2_code_decode(const n2_code *code, const double *coded, double *design);

/* Decodes out->rows rows and settles them: the end of a method. */
void n2_code_propose(const n2_code *code, const double *coded, n2_proposals *out);

/* The best k designs offline, coded, best first: where many methods start. */
n2ce_status n2_code_best(n2_arena *arena, const n2_designs *offline, const n2_code *code, size_t k,
                         double **out);

/* True if the space has categories only, all with the same number of levels. */
bool n2_space_is_sequence(const n2_space *space);

#endif
