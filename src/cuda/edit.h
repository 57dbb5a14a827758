/* Questions about the jobs of a queue, and changes of them: for simplify.cu and unite.cu. */
#ifndef N2_CUDA_EDIT_H
#define N2_CUDA_EDIT_H

#include "queue.h"

/* The last job before i that writes exactly the n numbers at x and nothing else of them does;
 * SIZE_MAX: there is none. */
size_t n2_writer_of(const n2_queue *q, size_t i, const float *x, int64_t n);
/* Whether a job between the two writes any of these numbers. */
bool n2_is_written_between(const n2_queue *q, size_t a, size_t b, const float *x, int64_t n);
/* Whether job i is the only one that reads what job k wrote to x, and the caller does not after the
 * run. */
bool n2_is_only_reader(n2_queue *q, size_t k, size_t i, const float *x, int64_t n);
/* x + y, element by element. */
bool n2_is_sum_of_two(const job *j);

void n2_forget_spans(noted *n);
/* It does nothing any more. */
void n2_drop(noted *n);
/* What it reads at `from` it reads at `to`; its fields are the caller's. */
void n2_replace_read(noted *n, const float *from, const float *to, int64_t floats);
/* Jobs from `first` to `last` that make x make `instead`. */
void n2_redirect(n2_queue *q, size_t first, size_t last, const float *x, float *instead, int64_t n);

#endif
