/* What is learnt from all normal rows but those of a fold: three opinions of how odd a row is. */
#ifndef N2_EXPERT_H
#define N2_EXPERT_H

#include "column_map.h"
#include "learned.h"
#include "near_rows.h"

/* The parts of a score. */
typedef enum n2_part {
    N2_PART_PLAIN,  /* nearest neighbours, columns standardised */
    N2_PART_NORMAL, /* nearest neighbours, columns with normal margins */
    N2_PART_RATIO   /* the learned log ratio */
} n2_part;
enum { N2_PARTS_COUNT = 3 };

/* Normal rows: n x cols, as column_map.h wants them. */
typedef struct n2_normal_rows {
    const double *x;
    size_t n, cols;
    const size_t *levels; /* of each column */
} n2_normal_rows;

typedef struct n2_expert {
    n2ce_ctx *ctx;
    n2_column_map *map;
    n2_near_rows *near[N2_VIEWS];
    n2_learned *learned; /* NULL: not asked for */
} n2_expert;

/* Learns from all rows but held[0] .. held[1] - 1, of which at least one must be left. ratio:
 * NULL, no learned part. Fails with N2CE_ENOMEM, N2CE_ECANCELED, N2CE_ENAN, N2CE_EDEVICE. */
n2ce_status n2_expert_new(n2ce_ctx *ctx, const n2_normal_rows *rows, const size_t held[2],
                          const n2_learned_options *ratio, n2_expert **out);
void n2_expert_free(n2_expert *e); /* NULL is fine */

/* The opinions of n rows, n x N2_PARTS_COUNT; 0 of a part that there is not. */
n2ce_status n2_expert_score(n2_expert *e, const double *rows, size_t n, double *parts);

#endif
