/* A set of designs: whether one was tried already. */
#ifndef N2_DESIGN_SET_H
#define N2_DESIGN_SET_H

#include "base/ctx.h"

/* Open addressing; an entry is the number of a design in `rows` plus one. */
typedef struct n2_design_set {
    n2ce_ctx *ctx;
    size_t columns, n, room, slots;
    double *rows;
    size_t *slot;
} n2_design_set;

/* With room for so many; what is added beyond is left out. Fails with N2CE_ENOMEM. Close it in any
 * case. */
n2ce_status n2_design_set_open(n2ce_ctx *ctx, size_t columns, size_t room, n2_design_set *s);
void n2_design_set_close(n2_design_set *s);

bool n2_design_set_has(const n2_design_set *s, const double *x);
void n2_design_set_add(n2_design_set *s, const double *x);

#endif
