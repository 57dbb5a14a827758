/* Between the files that make fused MLPs and gradients of a queue's jobs. */
#ifndef N2_CUDA_MAKE_H
#define N2_CUDA_MAKE_H

#include "fused_mlp.h"
#include "mlp.h"

/* Rows of a fused MLP of few rows (mlp_few_rows.cu), at most: a block for each multiprocessor. */
static inline int n2_few_rows_most(const n2_queue *q) { return FEW_ROWS * q->multiprocessors; }

/* The products whose output nobody reads, only its LeakyReLU, do not store it. */
void n2_fused_mlps_trim(n2_queue *q);
/* Once levels are known: which gradients are made from the stash, and which sums go along. */
void n2_fused_mlps_settle(n2_queue *q);
/* Whether those that were made from the stash, and taken along, before still are. */
bool n2_fused_mlps_hold(const n2_queue *q, const noted *before);

/* Rows that the blocks of a chain have. */
int n2_fused_mlp_rows(const n2_queue *q, size_t chain);
/* The chain that begins with a job as a fused MLP whose blocks begin at first_block. */
void n2_fused_mlp_of_chain(n2_queue *q, size_t chain, uint32_t first_block, fused_mlp *out);
struct gradient;
/* Job i as a gradient, likewise. */
void n2_gradient_of_job(n2_queue *q, size_t i, uint32_t first_block, struct gradient *out);

#endif
