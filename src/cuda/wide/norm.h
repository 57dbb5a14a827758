/* Norms of many numbers, in 16 bits or as floats: a block has some channels, in whole groups, of
 * one picture. It asks for them at once, keeps them in shared memory as they lie in memory, finds
 * mean and variance there in two passes, and writes the result: memory is read once and written
 * once. A gradient's block has x and dy so, and writes dx, the sums, or both. What does not fit is
 * read again for every pass. */
#ifndef N2_CUDA_NORM_H
#define N2_CUDA_NORM_H

#include "wide.h"

/* What job.wide.about is. The job's in has x, shift, gamma and beta, NULL where there is none; gate
 * is dy; what is added to dx is the addend. out is y or dx, and more[0] the sums; of a job that
 * makes sums only they are out. */
typedef struct wide_norm {
    uint32_t pictures, positions, c, each; /* each: channels of a group */
    uint32_t width, slices;                /* channels of a block; blocks of a picture */
    uint32_t cluster, share;               /* blocks of a cluster; positions of each */
    uint32_t threads;
    uint32_t rows;    /* parts that a channel's sums have first: of rows of threads, or of warps */
    uint32_t step[3]; /* from a picture's shift, gamma, beta to the next one's */
    float eps, slope, addend_scale;
    uint8_t act;                                    /* n2_act */
    uint8_t has_y, has_dx, has_sums;                /* what is made */
    uint8_t by_warps;                               /* rows: of warps */
    uint8_t held;                                   /* in shared memory */
    uint8_t type_x, type_dy, type_out, type_addend; /* n2_dtype */
} wide_norm;

/* Whether a norm, or a gradient of one, is to be wide; and notes it. */
bool n2_wide_norm_takes(const n2_call *c);
void n2_note_wide_norm(const n2_call *c);

/* norm_addend.cu: gradients add what passes would add to them. */
void n2_norms_add(n2_queue *q);

void n2_wide_norm_launch(const n2_queue *q, const job *j, cudaStream_t stream, bool early);
cudaError_t n2_wide_norm_prepare(int most_shared);

#endif
