/* Sums over rows of pictures, in 16 bits or as floats: gradients of biases, sums over pixels. */
#ifndef N2_CUDA_SUMS_H
#define N2_CUDA_SUMS_H

#include "wide.h"

/* in [outer x rows x inner], summed over rows by slices: out [outer x slices x inner], in float. */
typedef struct wide_sums {
    int64_t rows, inner;
    int32_t type; /* n2_dtype of the input */
    int32_t outer, slices, slice_rows;
    int32_t eight;       /* threads have eight columns each, else one */
    int32_t lanes;       /* threads that have a row's columns, of a block, */
    int32_t strips;      /* and blocks that do, side by side */
    int32_t rows_a_time; /* rows that a block reads at once */
} wide_sums;

/* Whether the sum of a call over neighbouring axes, outer x rows x inner, is to be a wide job. */
bool n2_wide_sums_takes(const n2_call *c, int64_t outer, int64_t rows, int64_t inner);
/* Notes it; `to` has `slices` partial sums for each, as n2_wide_sums_slices says. If there is one,
 * and the call adds, it is added to what is there. */
int64_t n2_wide_sums_slices(int64_t outer, int64_t rows, int64_t inner);
void n2_note_wide_sums(const n2_call *c, float *to, int64_t outer, int64_t rows, int64_t inner);

void n2_wide_sums_launch(const n2_queue *q, const job *j, cudaStream_t stream, bool early);

#endif
