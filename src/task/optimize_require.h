/* optimize --require: columns that are no part of a design, and what they must be. */
#ifndef N2_OPTIMIZE_REQUIRE_H
#define N2_OPTIMIZE_REQUIRE_H

#include "design/design_table.h"
#include "optimize/latent.h"

typedef struct n2_requirements {
    n2_arena arena;
    const char *text[N2_LATENT_NEEDS_MAX], *column[N2_LATENT_NEEDS_MAX]; /* as it was given */
    double sign[N2_LATENT_NEEDS_MAX], limit[N2_LATENT_NEEDS_MAX];        /* -1: at most */
    n2_latent_need need[N2_LATENT_NEEDS_MAX];
    size_t met[N2_LATENT_NEEDS_MAX], rows; /* so many of the rows have it */
    size_t n;
} n2_requirements;

/* Reads "COLUMN >= NUMBER; COLUMN <= NUMBER". Fails with N2CE_EINVAL. Free it in any case. */
n2ce_status n2_requirements_read(n2ce_ctx *ctx, const char *text, n2_requirements *out);
void n2_requirements_free(n2_requirements *r);

/* Values of the table's columns aside as needs, which are enough from 0 on. Warns of what no row
 * has. */
n2ce_status n2_requirements_fill(const n2_design_table *t, n2_requirements *r);

/* Leaves out proposals that are unlikely to have what is required, and notes the chance of the
 * others. Fails with N2CE_EDATA, and says what is too much, if none is left. */
n2ce_status n2_requirements_keep(n2ce_ctx *ctx, n2_latent *m, const n2_requirements *r,
                                 size_t columns, n2_proposals *p);

#endif
