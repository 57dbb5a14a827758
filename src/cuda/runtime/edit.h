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
/* The job before i that makes the slices at x. */
size_t n2_maker_of_slices(const n2_queue *q, size_t i, const float *x);

/* Floats from a span's beginning to its end. */
static inline int64_t n2_floats_in(const span *s) {
    return (int64_t)((s->end - s->begin) / sizeof(float));
}
/* Whether a job with these spans may be done anywhere between jobs a and b. */
bool n2_may_move(const n2_queue *q, const noted *n, size_t a, size_t b);

void n2_forget_spans(noted *n);
/* It does nothing any more. */
void n2_drop(noted *n);
/* What it reads at `from` it reads at `to`; its fields are the caller's. */
void n2_replace_read(noted *n, const float *from, const float *to, int64_t floats);
/* Jobs from `first` to `last` that make x make `instead`. */
void n2_redirect(n2_queue *q, size_t first, size_t last, const float *x, float *instead, int64_t n);

/* x + y, which job `sum` makes of two, becomes what makes y alone: */
typedef struct merger {
    size_t sum, first, last; /* the jobs that make y, each but the first adding to it */
    const float *y;
} merger;

/* False: others than those up to `last` touch y too, or what is to take its place. */
bool n2_find_merger(const n2_queue *q, size_t sum, size_t last, const float *y, merger *m);
void n2_apply_merger(n2_queue *q, const merger *m);

#endif
